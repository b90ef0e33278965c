"""Release manifests: the entries that a release of verified questions is made of, read strictly."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from builders.steps.composition import Composition
from builders.verified.questions import EVALUATION_SIZE
from evaluators.run.trial import Trial
from releases.reading import RecipeEntry, need_positive, need_seed, need_share, read_strictly
from safe_stepwise import prompts
from safe_stepwise.engines.base import EFFORTS, Allowance
from safe_stepwise.errors import UserError, at_place, one_of
from safe_stepwise.methods.prompt_sets import PromptSet
from safe_stepwise.store import names
from trainers.config import GeneratorRecipe, VerifierRecipe

OWN_ADAPTER = "{adapter}"
"""In an engine's spec: the folder of the release's own adapter; in a block that trains adapters,
of each of them in turn."""
OWN_GENERATOR = "{generator}"
"""In an engine's spec: the model that the release trains to write steps."""
MEASURED_RATE = "{rate}"
"""In a verifier's spec, as ``chance:reject={rate}``: the share of steps that the first of the
verifiers rejects. That is measured first."""
LOOP = ("no_verification", "self_verification", "safe")
"""The methods of the papers' main table, which an evaluation has where it names none."""
METHOD_OPTIONS = tuple(name for name, hint in get_type_hints(Trial).items() if get_origin(hint) is Sequence)
"""Options of methods that an evaluation may name, each with several values."""
_LIST_KEYS = ("generator", "verifier", "methods", "examples", *METHOD_OPTIONS)


@dataclass(frozen=True, slots=True)
class AdapterEntry(RecipeEntry):
    """``adapter``: the verifier that the release trains."""

    verifier: str | None = None
    """An engine's spec to measure the adapter with on the test split; not measured if not said."""
    incomplete_evidence: bool = False
    """Whether it learns to say that evidence is missing (SAFE v2, finding 5)."""

    @property
    def changes(self) -> dict[str, Any]:
        """The recipe's keys that replace the file's."""
        return {**self.change, **({"incomplete_evidence": True} if self.incomplete_evidence else {})}


@dataclass(frozen=True, slots=True)
class EvaluationEntry(Trial):
    """``evaluation``: the loop over the evaluation samples, by engine specs.

    Where several values may be given, one alone need not be a list; ``corpus`` is beside the manifest.
    """

    generator: tuple[str, ...]
    verifier: tuple[str, ...]
    methods: tuple[str, ...] = LOOP
    verdict_order: str | None = None
    """What verdicts begin with in the loop, where the players' training records do not say it."""
    examples: tuple[str, ...] | None = None
    """The roles that get examples, of `evaluators.run.options.SHOWN`."""

    @property
    def matched(self) -> tuple[str, ...]:
        """The verifiers that reject at the first one's rate, which has to be measured before."""
        return tuple(spec for spec in self.verifier if MEASURED_RATE in spec)

    def names(self, placeholder: str) -> bool:
        """Whether a model that the release trains plays in it."""
        return any(placeholder in spec for spec in (*self.generator, *self.verifier, self.judge or ""))

    def allowed(self, allowance: Allowance) -> Allowance:
        """Return the allowance of its roles, with its own examples."""
        allowance = replace(allowance, examples=None)
        return allowance if self.examples is None else allowance.with_examples(prompts.examples(self.examples))


@dataclass(frozen=True, slots=True)
class RefinementEntry:
    """``verifier_steps.refinement``: rounds that mine hard cases with the adapter just trained."""

    rows: int
    """Hard cases that a round may add."""
    generator: str
    verifier: str
    """``{adapter}`` in it is the one that the round trained."""
    teacher: str = "annotations"
    """The engine that words the labels; or annotations, for the checker's own words."""
    limit: int | None = None
    """Training questions of a round; as many as steps are made of, if not said."""
    rounds: int = 1


def list_values(values: Any) -> Any:
    """Return an evaluation's YAML with a list for each single value where several are allowed."""
    if not isinstance(values, dict):
        return values
    lists = {key: value if isinstance(value, list) else [value] for key, value in values.items() if key in _LIST_KEYS}
    return {**values, **{key: tuple(list_) for key, list_ in lists.items()}}


REFINEMENT, PROBE = "refinement", "path_probe"
OWN_SET = "verifier_steps"
"""The part that makes the release's verifier set; a block makes one under the block's name."""
OWN_PARTS = (
    *(names.DATASETS, REFINEMENT, OWN_SET, "audits", PROBE, "space", names.GENERATOR, names.ADAPTER),
    "evaluation",
)
"""The parts of a release, in the order of their making; its blocks come last."""
EXAMPLE_ROLES = ("extract", "path", "inject")
"""Roles of builds that may be shown examples."""
TEST_SHARE = 0.1
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

    def check(self, prefix: str) -> None:
        """Raise ``UserError`` with the key that is wrong."""
        one_of(self.split, (names.TRAIN, names.VALIDATION), f"{prefix}split")
        one_of(self.on_error, ("stop", "keep"), f"{prefix}on_error")
        need_positive(self, prefix, "limit")
        if not 0 <= self.min_confidence <= 1:
            raise UserError(f"{prefix}min_confidence: has to lie between 0 and 1")


@dataclass(frozen=True, slots=True)
class Share:
    """A benchmark's part of the verifier set."""

    rows: int
    questions: int


@dataclass(frozen=True, slots=True)
class StepsEntry:
    """``verifier_steps``: the composition of the verifier set, and the teacher of its steps."""

    rows: int
    max_length: int | None = None
    """The builder's own, if not said."""
    questions: int | None = None
    ideal: float | None = None
    refined: int | None = None
    """None are none; where a file or their mining is named, all there are."""
    per_benchmark: Mapping[str, Share] | None = None
    """Rows and questions of each."""
    rows_per_question: int | None = None
    """Rows of a question at most; the composition's own limit, if not said."""
    teacher: str = "annotations"
    test_share: float | None = None
    """`TEST_SHARE`, if neither this nor the next is said."""
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
    def share_of_test(self) -> float:
        """The share of questions in test, unless the builds' own splits are kept."""
        return TEST_SHARE if self.test_share is None else self.test_share

    @property
    def prompt_set(self) -> PromptSet:
        """What its rows are rendered by; raises ``ValueError`` for prompts that there are not."""
        choices: Any = (self.prompts, self.verdict_order)
        return PromptSet.from_choices(*choices)

    @property
    def composition(self) -> Composition:
        """What goes into the set; raises ``UserError`` for numbers at odds."""
        keys = ("rows", "questions", "ideal", "rows_per_question")
        numbers = {name: getattr(self, name) for name in keys if getattr(self, name) is not None}
        if self.per_benchmark is not None:
            numbers["per_benchmark"] = {name: (s.rows, s.questions) for name, s in self.per_benchmark.items()}
        has_refined = self.refined_from is not None or self.refinement is not None
        return Composition(**numbers, refined=0 if self.refined is None and not has_refined else self.refined)

    def check(self, key: str, builds: Sequence[BuildEntry]) -> None:
        """Raise ``UserError`` with the key that is wrong."""
        prefix = f"{key}."
        for name in self.per_benchmark or ():
            one_of(name, [build.benchmark for build in builds], f"{prefix}per_benchmark")
        if self.refinement is not None and self.refined_from is not None:
            raise UserError(f"{prefix}refinement: finds the rows that refined_from has; name one")
        with at_place(key, (UserError, ValueError)):
            _ = self.composition, self.prompt_set
        if any(number is not None and number < 1 for number in (self.max_length, self.pool)):
            raise UserError(f"{prefix}max_length and {prefix}pool have to be 1 or more")
        need_share(self.test_share, f"{prefix}test_share")
        if self.test_split is not None:
            one_of(self.test_split, [build.split for build in builds], f"{prefix}test_split")
            if self.test_share is not None:
                raise UserError(f"{prefix}test_share and {prefix}test_split: say one of them")
        if self.unverifiable and (self.refined or self.refined_from):
            raise UserError(f"{prefix}refined: such rows are of verified questions; leave it out")


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

    def check(self, builds: Sequence[BuildEntry]) -> None:
        """Raise ``UserError`` with the key that is wrong."""
        for name in self.benchmarks:
            one_of(name, [build.benchmark for build in builds], f"{PROBE}.benchmarks")
        if (self.kb is None) != (self.questions is None):
            raise UserError(f"{PROBE}.kb and {PROBE}.questions go together: MetaQA's two files")
        need_positive(self, f"{PROBE}.", "limit")


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
    def learns_steps(self) -> bool:
        """Whether any of its adapters learns the release's own set."""
        return bool(self.adapters) and (self.verifier_steps is None or self.verifier_steps.unverifiable)

    def check(self, name: str, manifest: "Manifest") -> None:
        """Raise ``UserError`` with the key that is wrong."""
        place, steps, evaluation = f"blocks.{name}", self.verifier_steps, self.evaluation
        _check_name(name, place, OWN_PARTS)
        if steps is not None:
            steps.check(f"{place}.{OWN_SET}", manifest.builds)
            if steps.refinement is not None:
                raise UserError(f"{place}.{OWN_SET}.refinement: is of the release's own set alone")
        for key, adapter in self.adapters.items():
            _check_name(key, f"{place}.adapters", (names.DATASETS, names.ADAPTER, names.REPORT))
            adapter.check(f"{place}.adapters.{key}", VerifierRecipe)
        if not self.adapters and (evaluation is None or steps is not None):
            raise UserError(f"{place}: add adapters (who learn its verifier_steps) or an evaluation")
        if self.learns_steps and manifest.verifier_steps is None:
            raise UserError(f"{place}.adapters: learn the verifier set; add verifier_steps")
        if self.adapters and evaluation is not None and not evaluation.names(OWN_ADAPTER):
            raise UserError(f"{place}.evaluation: names its adapters nowhere; write {OWN_ADAPTER}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest of a release of verified questions."""

    version: str
    seed: int
    builds: tuple[BuildEntry, ...]
    evaluation_size: int = EVALUATION_SIZE
    evaluation_passages: int | None = None
    """Of each question of a sample; the builder's own number, if not said."""
    verifier_steps: StepsEntry | None = None
    generator: RecipeEntry | None = None
    """What learns to write steps from the verifier set."""
    adapter: AdapterEntry | None = None
    evaluation: EvaluationEntry | None = None
    audits: tuple[AuditEntry, ...] = ()
    path_probe: PathProbeEntry | None = None
    blocks: Mapping[str, BlockEntry] = field(default_factory=dict)
    max_tokens: Mapping[str, Any] | None = None
    reasoning_effort: Mapping[str, Any] | None = None
    examples: tuple[str, ...] = ()
    """Roles of the builds that are shown some, of `SHOWN`; evaluations have their own."""

    @property
    def allowance(self) -> Allowance:
        """What the roles that are named have beside what their prompts say."""
        examples = prompts.examples(self.examples) if self.examples else None
        return Allowance.by_role(self.max_tokens, self.reasoning_effort, examples)

    @property
    def trained(self) -> list[str]:
        """What stands for a model that the release trains, in the specs of its evaluations."""
        models = ((OWN_ADAPTER, self.adapter), (OWN_GENERATOR, self.generator))
        return [placeholder for placeholder, entry in models if entry is not None]

    @property
    def sets(self) -> dict[str, StepsEntry]:
        """Every verifier set by the part that makes it, the release's own first."""
        block_sets = {name: block.verifier_steps for name, block in self.blocks.items()}
        sets = {OWN_SET: self.verifier_steps, **block_sets}
        return {name: steps for name, steps in sets.items() if steps is not None}

    def check(self) -> None:
        """Raise ``UserError`` with the key that is wrong."""
        if not self.builds:
            raise UserError("builds: name at least one")
        need_positive(self, "", "evaluation_size", "evaluation_passages")
        need_seed(self.seed)
        names.known_version(self.version)
        for number, build in enumerate(self.builds):
            build.check(f"builds[{number}].")
            if (build.benchmark, build.split) in [(b.benchmark, b.split) for b in self.builds[:number]]:
                raise UserError(f"builds[{number}]: {build.benchmark} {build.split} again")
        steps = self.verifier_steps
        if steps is not None:
            steps.check(OWN_SET, self.builds)
            for name in ("unverifiable", "rows_of"):
                if getattr(steps, name):
                    raise UserError(f"{OWN_SET}.{name}: such a set is for one of the blocks")
        for name in (names.ADAPTER, names.GENERATOR):
            if getattr(self, name) is not None and steps is None:
                raise UserError(f"{name}: is trained on the verifier set; add verifier_steps")
        if steps is not None and steps.refinement is not None and self.adapter is None:
            raise UserError(f"{OWN_SET}.refinement: mines with an adapter; add adapter")
        if self.generator is not None:
            self.generator.check(names.GENERATOR, GeneratorRecipe)
        if self.adapter is not None:
            self.adapter.check(names.ADAPTER, VerifierRecipe)
        if self.path_probe is not None:
            self.path_probe.check(self.builds)
        self._check_audits()
        self._check_roles()
        for name, block in self.blocks.items():
            block.check(name, self)

    def _check_audits(self) -> None:
        for number, entry in enumerate(self.audits):
            place = f"audits[{number}]"
            one_of(entry.of, names.AUDITED, f"{place}.of")
            if entry.of in [earlier.of for earlier in self.audits[:number]]:
                raise UserError(f"{place}: {entry.of} again; score all files of a sample together")
            if entry.of == names.STEPS and self.verifier_steps is None:
                raise UserError(f"{place}: judges the verifier set; add verifier_steps")

    def _check_roles(self) -> None:
        for role, tokens in (self.max_tokens or {}).items():
            one_of(role, prompts.limits(), "max_tokens:")
            if type(tokens) is not int or tokens < 1:
                raise UserError(f"max_tokens.{role}: has to be a whole number from 1 on")
        for role, effort in (self.reasoning_effort or {}).items():
            one_of(role, prompts.limits(), "reasoning_effort:")
            one_of(str(effort), EFFORTS, f"reasoning_effort.{role}:")
        for role in self.examples:
            one_of(role, EXAMPLE_ROLES, "examples:")


def read_manifest(values: Any, beside: Path) -> Manifest:
    """A manifest from its YAML, paths ``beside`` it. Raises ``UserError`` with the key that is wrong."""
    if isinstance(values, dict):
        blocks = values.get("blocks")
        values = {**values, "evaluation": list_values(values.get("evaluation"))}
        if isinstance(blocks, dict):
            values["blocks"] = {str(name): _block_values(str(name), block, values) for name, block in blocks.items()}
    manifest = read_strictly(Manifest, values, beside)
    manifest.check()
    return manifest


def _block_values(name: str, block: Any, values: Mapping[str, Any]) -> Any:
    """A block with its evaluation's values in lists, and the rest of what a set is that has the rows of the own."""
    if not isinstance(block, dict):
        return block
    block = {**block, "evaluation": list_values(block.get("evaluation"))}
    steps, base, key = block.get(OWN_SET), values.get(OWN_SET), f"blocks.{name}.{OWN_SET}"
    if not isinstance(steps, dict) or "rows_of" not in steps:
        return block
    one_of(str(steps["rows_of"]), (OWN_SET,), f"{key}.rows_of")
    if not isinstance(base, dict):
        raise UserError(f"{key}.rows_of: names the release's verifier set; add verifier_steps")
    if unexpected := sorted(steps.keys() - {"rows_of", "teacher"}):
        raise UserError(f"{key}.{unexpected[0]}: is as in {OWN_SET}, whose rows these are; leave it out")
    if "teacher" not in steps:
        raise UserError(f"{key}.teacher: is missing")
    inherited = {name: value for name, value in base.items() if name not in ("refined", "refined_from", "refinement")}
    return {**block, OWN_SET: {**inherited, **steps}}


def _check_name(name: str, place: str, reserved: Collection[str]) -> None:
    if not _NAME.fullmatch(name) or name in reserved:
        raise UserError(
            f"{place}: {name!r} is no name for it: lower-case letters, digits and dashes, and none "
            f"of {', '.join(reserved)}"
        )
