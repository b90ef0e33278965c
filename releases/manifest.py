"""Read the manifest of a release of verified questions, and check its entries.

A manifest is a YAML file; each class here is one of its keys (`BuildEntry`: ``builds``, `StepsEntry`:
``verifier_steps``, `EvaluationEntry`: ``evaluation``). A *block* is a named experiment with its own adapters and
evaluation. Specs of engines may have a *placeholder*, such as ``{adapter}``, for a model that the release trains.
Each ``check`` raises ``UserError`` with the key that is wrong.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

from builders.benchmarks.custom import Terms
from builders.steps.composition import Composition
from builders.verified.questions import EVALUATION_SIZE
from evaluators.run.trial import Trial
from releases.reading import RecipeEntry, read_strictly
from safe_stepwise import prompts
from safe_stepwise.commands.values import Count, Natural, Part, Share
from safe_stepwise.engines.base import EFFORTS, Allowance
from safe_stepwise.errors import UserError, at_place, check_choice
from safe_stepwise.methods.prompt_sets import EvidenceChoice, PromptSet, PromptsName
from safe_stepwise.records import PlannerChoice, VerdictOrder
from safe_stepwise.store import boundary, names
from trainers.config import EncoderRecipe, GeneratorRecipe, VerifierRecipe

OnError = Literal["stop", "keep"]
"""Whether a row that can't be read stops a build, or is kept among its rejects."""
OWN_ADAPTER = "{adapter}"
"""In an engine's spec: the folder of the release's adapter; in a block with adapters, of each of them in turn."""
OWN_GENERATOR = "{generator}"
"""In an engine's spec: the model that the release trains to write steps."""
LOOP = ("no_verification", "self_verification", "safe")
"""The methods of the papers' main table, an evaluation's default."""
METHOD_OPTIONS = tuple(name for name, hint in get_type_hints(Trial).items() if get_origin(hint) is Sequence)
"""The options of methods that an evaluation may set to several values."""
_LIST_KEYS = ("generator", "verifier", "methods", "examples", *METHOD_OPTIONS)
REFINEMENT, PROBE = "refinement", "path_probe"
OWN_SET = "verifier_steps"
"""The part that makes the release's verifier set; the part of a block's set has the block's name."""
OWN_PARTS = (
    *(names.DATASETS, REFINEMENT, OWN_SET, "audits", PROBE, "space", names.GENERATOR, names.ADAPTER),
    "evaluation",
)
"""The parts of a release without blocks, which may not have these names."""
TEST_SHARE = 0.1
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class AdapterEntry(RecipeEntry):
    """The manifest's key ``adapter``: how the release trains its verifier."""

    verifier: str | None = None
    """The engine's spec with which the adapter is measured on the test split, if it is measured."""

    def recipe_type(self) -> type[VerifierRecipe] | type[EncoderRecipe]:
        """Return the class of the recipe, whose file is read for it: that of an encoder has ``views``."""
        keys = boundary.read_yaml(self.file) if self.file.is_file() else None
        return EncoderRecipe if "views" in {*self.change, *(keys or ())} else VerifierRecipe


@dataclass(frozen=True, slots=True)
class EvaluationEntry(Trial):
    """``evaluation``: methods and players, all combinations of which answer the evaluation samples."""

    generator: tuple[str, ...]
    verifier: tuple[str, ...]
    methods: tuple[str, ...] = LOOP
    verdict_order: VerdictOrder | None = None
    """The order of a verdict's fields, if the players' training records do not have it."""
    examples: tuple[str, ...] | None = None
    """The roles of `evaluators.run.trial.PROBED_ROLES` whose prompts get worked examples."""

    def uses(self, placeholder: str) -> bool:
        """Whether a spec of the evaluation has the placeholder of a model."""
        return any(placeholder in spec for spec in (*self.generator, *self.verifier, self.judge or ""))

    def allowed(self, allowance: Allowance) -> Allowance:
        """Return the manifest's ``allowance`` with the examples of this evaluation."""
        allowance = replace(allowance, examples=None)
        return allowance if self.examples is None else allowance.with_examples(prompts.examples(self.examples))


@dataclass(frozen=True, slots=True)
class RefinementEntry:
    """``verifier_steps.refinement``: rounds that mine hard cases with the adapter just trained."""

    rows: Count
    """The maximum number of hard cases that a round adds."""
    generator: str
    verifier: str
    """An engine's spec, in which ``{adapter}`` is the adapter that the round trained."""
    teacher: str = "annotations"
    """The engine that words the labels, or ``annotations`` for the checker's words."""
    limit: Count | None = None
    """The maximum number of training questions of a round; if None, all from which steps are made."""
    rounds: Count = 1


def list_values(values: Any) -> Any:
    """Return an evaluation's YAML with a tuple for each single value where several are allowed."""
    if not isinstance(values, dict):
        return values
    return {k: tuple(v if isinstance(v, list) else [v]) if k in _LIST_KEYS else v for k, v in values.items()}


@dataclass(frozen=True, slots=True)
class BuildEntry:
    """One entry of ``builds``: a split and its teacher; their files are beside the manifest."""

    benchmark: str
    input: str
    split: Literal["train", "validation"]
    own: Terms | None = None
    """The terms of a benchmark of one's own, which ``benchmark`` names; {} if there are none to say."""
    teacher: str = "annotations"
    adjudicate: str | None = None
    """The spec of a model that is asked about what the annotations doubt."""
    sha256: str | None = None
    limit: Count | None = None
    on_error: OnError = "stop"
    expected_rows: int | None = None
    """The number of rows of a missing input, which only a dry run uses."""
    min_confidence: Share = 0.0
    """The least confidence of a noise label that counts as noise."""
    published: Path | None = None
    """The file of labels with which this build's labels are compared."""


@dataclass(frozen=True, slots=True)
class BenchmarkShare:
    """The rows of a benchmark in the verifier set, and the questions that they are made from."""

    rows: int
    questions: int


@dataclass(frozen=True, slots=True)
class StepsEntry:
    """``verifier_steps``: the verifier set's composition and teacher; None is the builder's or paper's default."""

    rows: int
    questions: int | None = None
    ideal: float | None = None
    refined: int | None = None
    """The number of refined rows; if None, all rows of ``refined_from`` or ``refinement``."""
    per_benchmark: Mapping[str, BenchmarkShare] | None = None
    rows_per_question: int | None = None
    teacher: str = "annotations"
    test_share: Part | None = None
    """The share of questions in test; `TEST_SHARE` if neither this nor ``test_split`` is set."""
    test_split: str | None = None
    """The split of the builds whose questions are those of test."""
    prompts: PromptsName | None = None
    verdict_order: VerdictOrder | None = None
    verifier_evidence: EvidenceChoice | None = None
    pool: Count | None = None
    refined_from: Path | None = None
    """The file of refined rows, unless ``refinement`` mines them."""
    refinement: RefinementEntry | None = None
    unverifiable: bool = False
    """Whether rows are made from the questions that could not be verified; only for blocks."""
    planners: PlannerChoice = "structure"
    """Whether a question's structure or its benchmark decides what a model as teacher is told about plans."""
    rows_of: str | None = None
    """`OWN_SET` for the rows of the release's set, made again by another teacher; only for blocks."""

    @property
    def share_of_test(self) -> float:
        """The share of questions in test, unless ``test_split`` is set."""
        return TEST_SHARE if self.test_share is None else self.test_share

    @property
    def prompt_set(self) -> PromptSet:
        """The prompts that render the rows."""
        return PromptSet.from_choices(self.prompts, self.verdict_order, self.verifier_evidence)

    @property
    def composition(self) -> Composition:
        """The numbers of rows by origin and benchmark; raises ``UserError`` for numbers that contradict each other."""
        keys = ("rows", "questions", "ideal", "rows_per_question")
        numbers = {name: value for name in keys if (value := getattr(self, name)) is not None}
        if self.per_benchmark is not None:
            numbers["per_benchmark"] = {name: (s.rows, s.questions) for name, s in self.per_benchmark.items()}
        has_refined = self.refined_from is not None or self.refinement is not None
        return Composition(**numbers, refined=0 if self.refined is None and not has_refined else self.refined)

    def check(self, key: str, builds: Sequence[BuildEntry]) -> None:
        prefix = f"{key}."
        for name in self.per_benchmark or ():
            check_choice(name, [build.benchmark for build in builds], f"{prefix}per_benchmark")
        if self.refinement is not None and self.refined_from is not None:
            raise UserError(f"{prefix}refinement: finds the rows that refined_from has; name one")
        with at_place(key):
            _ = self.composition
        if self.test_split is not None:
            check_choice(self.test_split, [build.split for build in builds], f"{prefix}test_split")
            if self.test_share is not None:
                raise UserError(f"{prefix}test_share and {prefix}test_split: say one of them")
        if self.planners != "structure" and self.teacher == "annotations":
            raise UserError(f"{prefix}planners: instruct a model; leave them out, or name a model as {prefix}teacher")
        if self.unverifiable and (self.refined or self.refined_from):
            raise UserError(f"{prefix}refined: such rows are of verified questions; leave it out")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of ``audits``: the scores that people's judgements give labels or steps, for the cards."""

    of: names.Audited
    file: Path
    """The file that ``audit_labels score`` wrote."""


@dataclass(frozen=True, slots=True)
class PathProbeEntry:
    """``path_probe``: ``kb`` and ``questions`` are MetaQA's files (both or neither), ``derivations`` R4C's."""

    kb: Path | None = None
    questions: Path | None = None
    derivations: Path | None = None
    benchmarks: tuple[str, ...] = ()
    """The benchmarks to take questions from; all, if empty."""
    limit: Count | None = None
    """The maximum number of questions of a benchmark."""

    @property
    def files(self) -> list[Path]:
        """The files that the probe is made from, beside the verified questions."""
        return [file for file in (self.kb, self.questions, self.derivations) if file is not None]

    def check(self, builds: Sequence[BuildEntry]) -> None:
        for name in self.benchmarks:
            check_choice(name, [build.benchmark for build in builds], f"{PROBE}.benchmarks")
        if (self.kb is None) != (self.questions is None):
            raise UserError(f"{PROBE}.kb and {PROBE}.questions go together: MetaQA's two files")


@dataclass(frozen=True, slots=True)
class BlockEntry:
    """One of ``blocks``: an evaluation, such as a paper's table, which runs once for each adapter of the block."""

    verifier_steps: StepsEntry | None = None
    """An unpublished set, from which the adapters learn instead of the release's set.

    They learn from both if this one is of questions that could not be verified.
    """
    adapters: Mapping[str, AdapterEntry] = field(default_factory=dict)
    evaluation: EvaluationEntry | None = None

    @property
    def learns_steps(self) -> bool:
        """Whether its adapters learn from the release's set."""
        return bool(self.adapters) and (self.verifier_steps is None or self.verifier_steps.unverifiable)

    def check(self, name: str, manifest: "Manifest") -> None:
        place, steps, evaluation = f"blocks.{name}", self.verifier_steps, self.evaluation
        _check_name(name, place, OWN_PARTS)
        if steps is not None:
            steps.check(f"{place}.{OWN_SET}", manifest.builds)
            if steps.refinement is not None:
                raise UserError(f"{place}.{OWN_SET}.refinement: is of the release's own set alone")
        for key, adapter in self.adapters.items():
            _check_name(key, f"{place}.adapters", (names.DATASETS, names.ADAPTER, names.REPORT))
            adapter.check(f"{place}.adapters.{key}", adapter.recipe_type())
        if not self.adapters and (evaluation is None or steps is not None):
            raise UserError(f"{place}: add adapters (who learn its verifier_steps) or an evaluation")
        if self.learns_steps and manifest.verifier_steps is None:
            raise UserError(f"{place}.adapters: learn the verifier set; add verifier_steps")
        if self.adapters and evaluation is not None and not evaluation.uses(OWN_ADAPTER):
            raise UserError(f"{place}.evaluation: names its adapters nowhere; write {OWN_ADAPTER}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest of a release of verified questions; relative paths in it start from its folder."""

    version: str
    seed: Natural
    builds: tuple[BuildEntry, ...]
    evaluation_size: Count = EVALUATION_SIZE
    evaluation_passages: Count | None = None
    """The passages of each question in a sample; the builder's default, if None."""
    verifier_steps: StepsEntry | None = None
    generator: RecipeEntry | None = None
    """The recipe by which a model learns to write steps from the verifier set."""
    adapter: AdapterEntry | None = None
    evaluation: EvaluationEntry | None = None
    audits: tuple[AuditEntry, ...] = ()
    path_probe: PathProbeEntry | None = None
    blocks: Mapping[str, BlockEntry] = field(default_factory=dict)
    max_tokens: Mapping[str, Count] | None = None
    reasoning_effort: Mapping[str, Any] | None = None
    examples: tuple[Literal["extract", "path", "inject"], ...] = ()
    """The roles of builds whose prompts get worked examples; evaluations have their own."""

    @property
    def allowance(self) -> Allowance:
        """The token limits, reasoning efforts and examples that replace those of the roles' prompts."""
        examples = prompts.examples(self.examples) if self.examples else None
        return Allowance.by_role(self.max_tokens, self.reasoning_effort, examples)

    @property
    def trained(self) -> list[str]:
        """The placeholders of the models that the release trains."""
        models = ((OWN_ADAPTER, self.adapter), (OWN_GENERATOR, self.generator))
        return [placeholder for placeholder, entry in models if entry is not None]

    @property
    def sets(self) -> dict[str, StepsEntry]:
        """Every verifier set by the part that makes it, the release's set first."""
        sets = {OWN_SET: self.verifier_steps, **{name: block.verifier_steps for name, block in self.blocks.items()}}
        return {name: steps for name, steps in sets.items() if steps is not None}

    def check(self) -> None:
        if not self.builds:
            raise UserError("builds: name at least one")
        names.check_version(self.version)
        for number, build in enumerate(self.builds):
            if (build.benchmark, build.split) in [(b.benchmark, b.split) for b in self.builds[:number]]:
                raise UserError(f"builds[{number}]: {build.benchmark} {build.split} again")
        if (steps := self.verifier_steps) is not None:
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
            self.adapter.check(names.ADAPTER, self.adapter.recipe_type())
        if self.path_probe is not None:
            self.path_probe.check(self.builds)
        self._check_audits()
        self._check_roles()
        for name, block in self.blocks.items():
            block.check(name, self)

    def _check_audits(self) -> None:
        """Raise ``UserError`` for a repeated audit, or one without the set that it judges."""
        for number, entry in enumerate(self.audits):
            place = f"audits[{number}]"
            if entry.of in [earlier.of for earlier in self.audits[:number]]:
                raise UserError(f"{place}: {entry.of} again; score all files of a sample together")
            if entry.of == names.STEPS and self.verifier_steps is None:
                raise UserError(f"{place}: judges the verifier set; add verifier_steps")

    def _check_roles(self) -> None:
        """Raise ``UserError`` for an unknown role in ``max_tokens``, role or value in ``reasoning_effort``."""
        for role in self.max_tokens or ():
            check_choice(role, prompts.limits(), "max_tokens:")
        for role, effort in (self.reasoning_effort or {}).items():
            check_choice(role, prompts.limits(), "reasoning_effort:")
            check_choice(str(effort), EFFORTS, f"reasoning_effort.{role}:")


def read_manifest(values: Any, folder: Path) -> Manifest:
    """Read a manifest of verified questions whose file is in ``folder``; raise ``UserError`` with the wrong key."""
    if isinstance(values, dict):
        blocks = values.get("blocks")
        values = {**values, "evaluation": list_values(values.get("evaluation"))}
        if isinstance(blocks, dict):
            values["blocks"] = {str(name): _block_values(str(name), block, values) for name, block in blocks.items()}
    manifest = read_strictly(Manifest, values, folder)
    manifest.check()
    return manifest


def _block_values(name: str, block: Any, values: Mapping[str, Any]) -> Any:
    """Return a block's YAML with tuples of values, and the release's set where ``rows_of`` names it."""
    if not isinstance(block, dict):
        return block
    block = {**block, "evaluation": list_values(block.get("evaluation"))}
    steps, base, key = block.get(OWN_SET), values.get(OWN_SET), f"blocks.{name}.{OWN_SET}"
    if not isinstance(steps, dict) or "rows_of" not in steps:
        return block
    check_choice(str(steps["rows_of"]), (OWN_SET,), f"{key}.rows_of")
    if not isinstance(base, dict):
        raise UserError(f"{key}.rows_of: names the release's verifier set; add verifier_steps")
    if unexpected := sorted(steps.keys() - {"rows_of", "teacher"}):
        raise UserError(f"{key}.{unexpected[0]}: is as in {OWN_SET}, whose rows these are; leave it out")
    if "teacher" not in steps:
        raise UserError(f"{key}.teacher is not there")
    inherited = {name: value for name, value in base.items() if name not in ("refined", "refined_from", "refinement")}
    return {**block, OWN_SET: {**inherited, **steps}}


def _check_name(name: str, place: str, reserved: Collection[str]) -> None:
    """Raise ``UserError`` for a name of a block or adapter that can't be a folder's, or is reserved."""
    if not _NAME.fullmatch(name) or name in reserved:
        raise UserError(
            f"{place}: {name!r} is no name for it: lower-case letters, digits and dashes, and none "
            f"of {', '.join(reserved)}"
        )
