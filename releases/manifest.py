"""Release manifests: what a release is made of, read strictly."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from releases.evaluations import (
    OWN_ADAPTER,
    OWN_GENERATOR,
    AdapterEntry,
    EvaluationEntry,
    GeneratorEntry,
    RefinementEntry,
    read_adapter,
    read_evaluation,
    read_generator,
    read_refinement,
)
from releases.keys import Known, check_keys, manifest_values, read_entry
from releases.refining import PART as REFINEMENT
from safe_stepwise import prompts
from safe_stepwise.engines.base import EFFORTS, Allowance, Effort
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.methods.prompt_sets import PromptSet
from safe_stepwise.store.names import (
    ADAPTER,
    AUDITED,
    DATASETS,
    GENERATOR,
    REPORT,
    STEPS,
    TRAIN,
    VALIDATION,
    known_version,
)

PROBE = "path_probe"
"""The part, and the key, of `PathProbeEntry`."""
OWN_PARTS = (*("datasets", REFINEMENT, "verifier_steps", "audits", PROBE, "space", GENERATOR, "adapter"), "evaluation")
"""What a release is made of, in this order; its blocks come behind them."""
SHOWN = ("extract", "path", "inject")
"""Roles of builds that may be shown examples."""
OWN_SET = "verifier_steps"
"""The part that makes the release's own verifier set; a block makes one under its own name."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class BuildEntry:
    """One entry of ``builds``. ``input`` is a file beside the manifest, or any other source.

    So are the lists of a ``teacher`` that is ``published:FILE``.
    """

    benchmark: str
    input: str
    split: str
    teacher: str = "annotations"
    sha256: str | None = None
    limit: int | None = None
    on_error: str = "stop"
    expected_rows: int | None = None
    """Of an input that is not at hand, for a dry run; nothing else goes by it."""
    min_confidence: float = 0.0
    """Noise of which the teacher is less sure is not counted."""
    published: Path | None = None
    """Labels to score ours against; a path that is not absolute is beside the manifest."""


@dataclass(frozen=True, slots=True)
class StepsEntry:
    """``verifier_steps``: what the verifier set is composed of, and who makes its steps."""

    rows: int
    max_length: int
    questions: int | None = None
    ideal: float | None = None
    refined: int | None = 0
    """None, which only a file of them or their mining may have, is all there are."""
    per_benchmark: Mapping[str, tuple[int, int]] | None = None
    """Rows and questions of each; ``{rows: N, questions: N}`` in the file."""
    rows_per_question: int | None = None
    """Rows of a question at most; the composition's own limit, if not said."""
    teacher: str = "annotations"
    test_share: float = 0.1
    test_split: str | None = None
    """The split of the builds whose questions are those of test, in the place of a share."""
    prompts: str | None = None
    """What the rows are rendered by: the paper's, if not said; so the next."""
    verdict_order: str | None = None
    pool: int | None = None
    refined_from: Path | None = None
    """Rows of refinement; a path that is not absolute is beside the manifest."""
    refinement: RefinementEntry | None = None
    """How to mine such rows in the making of the release, in the place of a file."""
    unverifiable: bool = False
    """Of the questions that could not be verified instead: for a block alone."""
    rows_of: str | None = None
    """`OWN_SET`: the rows of the release's own set, made anew by another teacher; likewise."""

    @property
    def prompt_set(self) -> PromptSet:
        """What its rows are rendered by; raises ``ValueError`` for prompts that there are not."""
        said: Any = (self.prompts, self.verdict_order)
        return PromptSet.of(*said)

    @property
    def composition(self) -> dict[str, Any]:
        """What goes into the set, as far as it is said."""
        names = ("rows", "questions", "ideal", "per_benchmark", "rows_per_question")
        said = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {**said, "refined": self.refined}


@dataclass(frozen=True, slots=True)
class Share:
    """A benchmark's part of the verifier set."""

    rows: int
    questions: int


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of ``audits``: scores of what people judged, to stand on the cards."""

    of: str
    """What was judged: labels, or steps."""
    file: Path
    """As ``audit_labels score`` wrote it; a path that is not absolute is beside the manifest."""


@dataclass(frozen=True, slots=True)
class PathProbeEntry:
    """``path_probe``: valid and corrupted relation paths of the release's verified questions.

    Paths that are not absolute are beside the manifest. ``kb`` and ``questions`` are MetaQA's, both
    or neither.
    """

    kb: Path | None = None
    questions: Path | None = None
    derivations: Path | None = None
    """R4C's, for hotpotqa."""
    benchmarks: tuple[str, ...] = ()
    """All that are there, if none is named."""
    limit: int | None = None
    """Questions of each."""

    @property
    def files(self) -> list[Path]:
        """What it reads beside the verified questions."""
        return [file for file in (self.kb, self.questions, self.derivations) if file is not None]


@dataclass(frozen=True, slots=True)
class BlockEntry:
    """One of ``blocks``: a table of a paper, say, with the adapters that it takes.

    With adapters of its own its evaluation runs once for each of them.
    """

    verifier_steps: StepsEntry | None = None
    """A set that its adapters learn, not published: in the place of the release's, or, of
    questions that could not be verified, beside it."""
    adapters: Mapping[str, AdapterEntry] = field(default_factory=dict)
    evaluation: EvaluationEntry | None = None

    @property
    def needs_adapter(self) -> bool:
        """Whether the release's own adapter has to be there for it."""
        return not self.adapters and self.evaluation is not None and self.evaluation.needs_adapter

    @property
    def needs_generator(self) -> bool:
        """Whether the release's own generator has to be there for it."""
        return self.evaluation is not None and self.evaluation.needs_generator

    @property
    def learns_steps(self) -> bool:
        """Whether any of its adapters learns the release's own set."""
        own = self.verifier_steps
        return bool(self.adapters) and (own is None or own.unverifiable)

    @property
    def needs_steps(self) -> bool:
        """Whether the release's own set has to be there for it."""
        own = self.verifier_steps
        return self.learns_steps or (own is not None and own.rows_of is not None)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A release manifest; ``sha256`` is the file's own digest."""

    path: Path
    sha256: str
    version: str
    seed: int
    evaluation_size: int
    builds: tuple[BuildEntry, ...]
    evaluation_passages: int | None = None
    """Of each question of a sample; the builder's own number, if not said."""
    verifier_steps: StepsEntry | None = None
    generator: GeneratorEntry | None = None
    adapter: AdapterEntry | None = None
    evaluation: EvaluationEntry | None = None
    audits: tuple[AuditEntry, ...] = ()
    path_probe: PathProbeEntry | None = None
    blocks: Mapping[str, BlockEntry] = field(default_factory=dict)
    max_tokens: Mapping[str, int] | None = None
    reasoning_effort: Mapping[str, Effort] | None = None
    examples: tuple[str, ...] = ()
    """Roles of the builds that are shown some, of `SHOWN`; evaluations have their own."""

    @property
    def allowance(self) -> Allowance:
        """What the roles that are named have beside what their prompts say."""
        examples = prompts.examples(self.examples) if self.examples else None
        return Allowance.of(self.max_tokens, self.reasoning_effort, examples)

    @property
    def sets(self) -> dict[str, StepsEntry]:
        """Every verifier set by the part that makes it, the release's own first."""
        named = {name: block.verifier_steps for name, block in self.blocks.items()}
        every = {OWN_SET: self.verifier_steps, **named}
        return {part: steps for part, steps in every.items() if steps is not None}

    @property
    def evaluations(self) -> dict[str, EvaluationEntry]:
        """Every evaluation by its part, the release's own first."""
        named = {name: block.evaluation for name, block in self.blocks.items()}
        every = {"evaluation": self.evaluation, **named}
        return {part: one for part, one in every.items() if one is not None}


def read_manifest(path: Path, known: Known) -> Manifest:
    """Read a manifest strictly: ``UserError`` names the file and the key that is wrong."""
    values, sha256 = manifest_values(path)
    try:
        if isinstance(values, dict):
            values.setdefault("evaluation_size", known.evaluation_size)
        check_keys(Manifest, values, "", given=("path", "sha256"))
        return _manifest(path, sha256, values, known)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _manifest(path: Path, sha256: str, values: Mapping[str, Any], known: Known) -> Manifest:
    if not values["builds"]:
        raise UserError("builds: name at least one")
    for name in ("evaluation_size", "evaluation_passages"):
        if values.get(name, 1) < 1:
            raise UserError(f"{name}: has to be 1 or more")
    known_version(values["version"])
    builds: list[BuildEntry] = []
    for number, entry in enumerate(values["builds"]):
        build = _build(entry, f"builds[{number}].", path.parent, known)
        if (build.benchmark, build.split) in {(b.benchmark, b.split) for b in builds}:
            raise UserError(f"builds[{number}]: {build.benchmark} {build.split} again")
        builds.append(build)
    steps, adapter, evaluation, generator = (
        values.get(name) for name in ("verifier_steps", "adapter", "evaluation", GENERATOR)
    )
    beside = path.parent
    made = None if steps is None else _steps(steps, "verifier_steps", builds, beside, known)
    for name in ("unverifiable", "rows_of"):
        if made is not None and getattr(made, name):
            raise UserError(f"verifier_steps.{name}: such a set is for one of the blocks")
    if adapter is not None and made is None:
        raise UserError("adapter: is trained on the verifier set; add verifier_steps")
    if generator is not None and made is None:
        raise UserError("generator: is trained on the verifier set; add verifier_steps")
    if made is not None and made.refinement is not None and adapter is None:
        raise UserError("verifier_steps.refinement: mines with an adapter; add adapter")
    trained = ((OWN_ADAPTER, adapter), (OWN_GENERATOR, generator))
    own, evaluated = [name for name, entry in trained if entry is not None], None
    if evaluation is not None:
        evaluated = read_evaluation(evaluation, "evaluation", own, beside, known)
    return Manifest(
        path=path,
        sha256=sha256,
        version=values["version"],
        seed=values["seed"],
        evaluation_size=values["evaluation_size"],
        evaluation_passages=values.get("evaluation_passages"),
        builds=tuple(builds),
        verifier_steps=made,
        generator=None if generator is None else read_generator(generator, GENERATOR, beside, known),
        adapter=None if adapter is None else read_adapter(adapter, "adapter", beside, known),
        evaluation=evaluated,
        audits=_audits(values.get("audits", ()), made, beside),
        path_probe=_probe(values.get(PROBE), builds, beside),
        blocks={
            str(name): _block(str(name), block, builds, (made, own), beside, known)
            for name, block in values.get("blocks", {}).items()
        },
        **_by_role(values),
    )


def _build(values: Any, where: str, beside: Path, known: Known) -> BuildEntry:
    entry = read_entry(BuildEntry, values, where)
    one_of(entry.benchmark, known.benchmarks, f"{where}benchmark")
    one_of(entry.split, (TRAIN, VALIDATION), f"{where}split")
    if not (beside / entry.input).exists():
        try:
            known.check_source(entry.benchmark, entry.input)
        except UserError as error:
            raise UserError(f"{where}input: {error}") from None
    known.check_teacher(entry.teacher, f"{where}teacher", beside)
    one_of(entry.on_error, ("stop", "keep"), f"{where}on_error")
    if entry.limit is not None and entry.limit < 1:
        raise UserError(f"{where}limit: has to be 1 or more")
    if not 0 <= entry.min_confidence <= 1:
        raise UserError(f"{where}min_confidence: has to lie between 0 and 1")
    return entry if entry.published is None else replace(entry, published=beside / entry.published)


def _steps(values: Any, key: str, builds: Sequence[BuildEntry], beside: Path, known: Known) -> StepsEntry:
    where = f"{key}."
    entry = read_entry(StepsEntry, values, where, max_length=known.max_length)
    if entry.per_benchmark is not None:
        parts: dict[str, tuple[int, int]] = {}
        for name, part in entry.per_benchmark.items():
            one_of(str(name), [b.benchmark for b in builds], f"{where}per_benchmark")
            of = read_entry(Share, part, f"{where}per_benchmark.{name}.")
            parts[name] = (of.rows, of.questions)
        entry = replace(entry, per_benchmark=parts)
    if entry.refined_from is not None:
        refined = entry.refined if "refined" in values else None
        entry = replace(entry, refined=refined, refined_from=beside / entry.refined_from)
    if entry.refinement is not None:
        found = read_refinement(entry.refinement, f"{where}refinement", known)
        if entry.refined_from is not None:
            raise UserError(f"{where}refinement: finds the rows that refined_from has; name one")
        entry = replace(entry, refinement=found, refined=values.get("refined"))
    try:
        known.check_composition(**entry.composition)
    except UserError as error:
        raise UserError(f"{key}: {error}") from None
    known.check_teacher(entry.teacher, f"{where}teacher", None)
    if entry.max_length < 1 or (entry.pool is not None and entry.pool < 1):
        raise UserError(f"{where}max_length and {where}pool have to be 1 or more")
    if not 0 < entry.test_share < 1:
        raise UserError(f"{where}test_share: a share lies between 0 and 1")
    if entry.test_split is not None:
        one_of(entry.test_split, [build.split for build in builds], f"{where}test_split")
        if "test_share" in values:
            raise UserError(f"{where}test_share and {where}test_split: say one of them")
    try:
        _ = entry.prompt_set
    except ValueError as error:
        raise UserError(f"{key}: {error}") from None
    if entry.unverifiable and (entry.refined or entry.refined_from):
        raise UserError(f"{where}refined: such rows are of verified questions; leave it out")
    return entry


def _made_anew(values: Mapping[str, Any], key: str, own: StepsEntry | None, known: Known) -> StepsEntry:
    """The release's ``own`` set by another teacher, but for rows of refinement."""
    if own is None:
        raise UserError(f"{key}.rows_of: names the release's verifier set; add verifier_steps")
    whole = {"rows": own.rows, "max_length": own.max_length, **values}
    check_keys(StepsEntry, whole, f"{key}.")
    one_of(str(values["rows_of"]), (OWN_SET,), f"{key}.rows_of")
    if others := sorted(values.keys() - {"rows_of", "teacher"}):
        raise UserError(f"{key}.{others[0]}: is as in {OWN_SET}, whose rows these are; leave it out")
    if "teacher" not in values:
        raise UserError(f"{key}.teacher: is missing")
    known.check_teacher(values["teacher"], f"{key}.teacher", None)
    return replace(own, **values, refined=0, refined_from=None, refinement=None)


def _block(
    name: str,
    values: Any,
    builds: Sequence[BuildEntry],
    own: tuple[StepsEntry | None, Collection[str]],
    beside: Path,
    known: Known,
) -> BlockEntry:
    """A block; ``own`` are the release's verifier set, if it has one, and what stands for models
    that it trains."""
    where, steps = f"blocks.{name}", None
    _check_name(name, where, OWN_PARTS)
    entry = read_entry(BlockEntry, values, f"{where}.")
    if entry.verifier_steps is not None:
        key, its = f"{where}.verifier_steps", values["verifier_steps"]
        steps = _made_anew(its, key, own[0], known) if "rows_of" in its else _steps(its, key, builds, beside, known)
        if steps.refinement is not None:
            raise UserError(f"{where}.verifier_steps.refinement: is of the release's own set alone")
    for adapter in entry.adapters:
        _check_name(str(adapter), f"{where}.adapters", (DATASETS, ADAPTER, REPORT))
    adapters = {
        str(key): read_adapter(one, f"{where}.adapters.{key}", beside, known) for key, one in entry.adapters.items()
    }
    evaluation = None
    if entry.evaluation is not None:
        there = {*own[1], *([OWN_ADAPTER] if adapters else [])}
        evaluation = read_evaluation(entry.evaluation, f"{where}.evaluation", there, beside, known)
    block = BlockEntry(steps, adapters, evaluation)
    if not adapters and (evaluation is None or steps is not None):
        raise UserError(f"{where}: add adapters (who learn its verifier_steps) or an evaluation")
    if block.learns_steps and own[0] is None:
        raise UserError(f"{where}.adapters: learn the verifier set; add verifier_steps")
    if adapters and evaluation is not None and not evaluation.needs_adapter:
        raise UserError(f"{where}.evaluation: names its adapters nowhere; write {OWN_ADAPTER}")
    return block


def _check_name(name: str, where: str, taken: Sequence[str]) -> None:
    if not _NAME.fullmatch(name) or name in taken:
        raise UserError(
            f"{where}: {name!r} is no name for it: lower-case letters, digits and dashes, and none "
            f"of {', '.join(taken)}"
        )


def _probe(values: Any, builds: Sequence[BuildEntry], beside: Path) -> PathProbeEntry | None:
    if values is None:
        return None
    entry = read_entry(PathProbeEntry, values, f"{PROBE}.")
    for name in entry.benchmarks:
        one_of(str(name), [build.benchmark for build in builds], f"{PROBE}.benchmarks")
    if (entry.kb is None) != (entry.questions is None):
        raise UserError(f"{PROBE}.kb and {PROBE}.questions go together: MetaQA's two files")
    if entry.limit is not None and entry.limit < 1:
        raise UserError(f"{PROBE}.limit: has to be 1 or more")
    named = {name: getattr(entry, name) for name in ("kb", "questions", "derivations")}
    return replace(entry, **{name: beside / file for name, file in named.items() if file})


def _audits(values: Sequence[Any], steps: StepsEntry | None, beside: Path) -> tuple[AuditEntry, ...]:
    audits: dict[str, AuditEntry] = {}
    for number, one in enumerate(values):
        where = f"audits[{number}]"
        entry = read_entry(AuditEntry, one, f"{where}.")
        one_of(entry.of, AUDITED, f"{where}.of")
        if entry.of in audits:
            raise UserError(f"{where}: {entry.of} again; score all files of a sample together")
        if entry.of == STEPS and steps is None:
            raise UserError(f"{where}: judges the verifier set; add verifier_steps")
        audits[entry.of] = replace(entry, file=beside / entry.file)
    return tuple(audits.values())


def _by_role(values: Mapping[str, Any]) -> dict[str, Any]:
    """What some roles are given; raises ``UserError`` for another role, number or effort."""
    names = ("max_tokens", "reasoning_effort")
    found = {name: values[name] for name in names if name in values}
    for name, by_role in found.items():
        for role, said in by_role.items():
            one_of(str(role), prompts.limits(), f"{name}:")
            if name == "reasoning_effort":
                one_of(str(said), EFFORTS, f"{name}.{role}:")
            elif type(said) is not int or said < 1:
                raise UserError(f"{name}.{role}: has to be a whole number from 1 on")
    shown = [one_of(str(role), SHOWN, "examples:") for role in values.get("examples", ())]
    return {**found, "examples": tuple(shown)}
