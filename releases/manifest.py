"""Release manifests: what a release is made of, read strictly."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from releases.refining import RefinementEntry
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.methods import METHODS
from safe_stepwise.store.documents import content_of, parse_yaml
from safe_stepwise.store.names import AUDITED, STEPS, TRAIN, VALIDATION, known_version

OWN_ADAPTER = "{adapter}"
"""In an engine's spec: the folder of the release's own adapter."""
_IN_YAML: Mapping[Any, type] = {Path: str, Mapping: dict, tuple: list}
_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True)
class Known:
    """What a manifest may name, what it need not say, and who reads its specs."""

    benchmarks: Collection[str]
    recipes: Path
    """A folder of ``NAME.yaml``."""
    evaluation_size: int
    max_length: int
    check_teacher: Callable[[str, str], object]
    """Raises ``UserError`` for a spec of no teacher, beginning with the second argument."""
    check_engine: Callable[[str], object]
    """Raises ``UserError`` for a spec of no engine."""
    check_composition: Callable[..., object]
    """Raises ``UserError`` for rows, questions, ideal, refined and the like at odds."""


@dataclass(frozen=True, slots=True)
class BuildEntry:
    """One entry of ``builds``. ``input`` is a file beside the manifest, or any other source."""

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
    pool: int | None = None
    refined_from: Path | None = None
    """Rows of refinement; a path that is not absolute is beside the manifest."""
    refinement: RefinementEntry | None = None
    """How to mine such rows in the making of the release, in the place of a file."""

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
class AdapterEntry:
    """``adapter``: a recipe of ours by its name, or a YAML file beside the manifest."""

    recipe: Path
    verifier: str | None = None
    """An engine's spec to measure the adapter with on the test split; not measured if not said."""


@dataclass(frozen=True, slots=True)
class EvaluationEntry:
    """``evaluation``: the loop over the evaluation samples, by engine specs."""

    generator: str
    verifier: str
    methods: tuple[str, ...]
    """All there are, if not said."""
    judge: str | None = None
    limit: int | None = None
    """Questions of each benchmark; all if not said."""

    @property
    def needs_adapter(self) -> bool:
        """Whether any of its engines is the release's own adapter."""
        return OWN_ADAPTER in f"{self.generator} {self.verifier} {self.judge}"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of ``audits``: scores of what people judged, to stand on the cards."""

    of: str
    """What was judged: labels, or steps."""
    file: Path
    """As ``audit_labels score`` wrote it; a path that is not absolute is beside the manifest."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A release manifest; ``sha256`` is the file's own digest."""

    path: Path
    sha256: str
    version: str
    seed: int
    evaluation_size: int
    builds: tuple[BuildEntry, ...]
    verifier_steps: StepsEntry | None = None
    adapter: AdapterEntry | None = None
    evaluation: EvaluationEntry | None = None
    audits: tuple[AuditEntry, ...] = ()


def read_manifest(path: Path, known: Known) -> Manifest:
    """Read a manifest strictly: ``UserError`` names the file and the key that is wrong."""
    content = content_of(path)
    try:
        values = parse_yaml(content)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    try:
        if isinstance(values, dict):
            values.setdefault("evaluation_size", known.evaluation_size)
        _check_keys(Manifest, values, "", given=("path", "sha256"))
        return _manifest(path, hashlib.sha256(content).hexdigest(), values, known)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _manifest(path: Path, sha256: str, values: Mapping[str, Any], known: Known) -> Manifest:
    if not values["builds"]:
        raise UserError("builds: name at least one")
    if values["evaluation_size"] < 1:
        raise UserError("evaluation_size: has to be 1 or more")
    known_version(values["version"])
    builds: list[BuildEntry] = []
    for number, entry in enumerate(values["builds"]):
        build = _build(entry, f"builds[{number}].", path.parent, known)
        if (build.benchmark, build.split) in {(b.benchmark, b.split) for b in builds}:
            raise UserError(f"builds[{number}]: {build.benchmark} {build.split} again")
        builds.append(build)
    steps, adapter, evaluation = (
        values.get(name) for name in ("verifier_steps", "adapter", "evaluation")
    )
    made = None if steps is None else _steps(steps, builds, path.parent, known)
    if adapter is not None and made is None:
        raise UserError("adapter: is trained on the verifier set; add verifier_steps")
    if made is not None and made.refinement is not None and adapter is None:
        raise UserError("verifier_steps.refinement: mines with an adapter; add adapter")
    return Manifest(
        path=path,
        sha256=sha256,
        version=values["version"],
        seed=values["seed"],
        evaluation_size=values["evaluation_size"],
        builds=tuple(builds),
        verifier_steps=made,
        adapter=None if adapter is None else _adapter(adapter, path.parent, known),
        evaluation=None if evaluation is None else _evaluation(evaluation, adapter, known),
        audits=_audits(values.get("audits", ()), made, path.parent),
    )


def _build(values: Any, where: str, beside: Path, known: Known) -> BuildEntry:
    entry = _entry(BuildEntry, values, where)
    one_of(entry.benchmark, known.benchmarks, f"{where}benchmark")
    one_of(entry.split, (TRAIN, VALIDATION), f"{where}split")
    known.check_teacher(entry.teacher, f"{where}teacher")
    one_of(entry.on_error, ("stop", "keep"), f"{where}on_error")
    if entry.limit is not None and entry.limit < 1:
        raise UserError(f"{where}limit: has to be 1 or more")
    if not 0 <= entry.min_confidence <= 1:
        raise UserError(f"{where}min_confidence: has to lie between 0 and 1")
    return entry if entry.published is None else replace(entry, published=beside / entry.published)


def _steps(values: Any, builds: Sequence[BuildEntry], beside: Path, known: Known) -> StepsEntry:
    where = "verifier_steps."
    entry = _entry(StepsEntry, values, where, max_length=known.max_length)
    if entry.per_benchmark is not None:
        parts: dict[str, tuple[int, int]] = {}
        for name, part in entry.per_benchmark.items():
            one_of(str(name), [b.benchmark for b in builds], f"{where}per_benchmark")
            of = _entry(Share, part, f"{where}per_benchmark.{name}.")
            parts[name] = (of.rows, of.questions)
        entry = replace(entry, per_benchmark=parts)
    if entry.refined_from is not None:
        refined = entry.refined if "refined" in values else None
        entry = replace(entry, refined=refined, refined_from=beside / entry.refined_from)
    if entry.refinement is not None:
        entry = _with_refinement(entry, values, f"{where}refinement.", known)
    try:
        known.check_composition(**entry.composition)
    except UserError as error:
        raise UserError(f"verifier_steps: {error}") from None
    known.check_teacher(entry.teacher, f"{where}teacher")
    if entry.max_length < 1 or (entry.pool is not None and entry.pool < 1):
        raise UserError(f"{where}max_length and {where}pool have to be 1 or more")
    if not 0 < entry.test_share < 1:
        raise UserError(f"{where}test_share: a share lies between 0 and 1")
    return entry


def _with_refinement(entry: StepsEntry, values: Any, where: str, known: Known) -> StepsEntry:
    """The entry with its rounds read; how many rows they give, the set takes, if not said."""
    found = _entry(RefinementEntry, entry.refinement, where)
    if entry.refined_from is not None:
        raise UserError(f"{where.rstrip('.')}: finds the rows that refined_from has; name one")
    if min(found.rows, found.rounds, found.limit or 1) < 1:
        raise UserError(f"{where}rows, rounds and limit have to be 1 or more")
    for role in ("generator", "verifier"):
        _check_spec(getattr(found, role), f"{where}{role}", True, known)
    known.check_teacher(found.teacher, f"{where}teacher")
    plays = found.verifier.startswith(("symbolic", "mock"))
    if OWN_ADAPTER not in found.verifier and not plays:
        raise UserError(
            f"{where}verifier: {found.verifier} is not what a round trains; write {OWN_ADAPTER} "
            f"for that, as in vllm:BASE+{OWN_ADAPTER}"
        )
    return replace(entry, refinement=found, refined=entry.refined if "refined" in values else None)


def _adapter(values: Any, beside: Path, known: Known) -> AdapterEntry:
    entry = _entry(AdapterEntry, values, "adapter.")
    if entry.verifier is not None:
        _check_spec(entry.verifier, "adapter.verifier", True, known)
    named = str(entry.recipe)
    ours = known.recipes / f"{named}.yaml"
    file = beside / named if named.endswith((".yaml", ".yml")) else ours
    if not file.is_file():
        there = ", ".join(sorted(recipe.stem for recipe in known.recipes.glob("*.yaml")))
        raise UserError(f"adapter.recipe: there is no {file}; name one of {there}, or a YAML file")
    return replace(entry, recipe=file)


def _evaluation(values: Any, adapter: object, known: Known) -> EvaluationEntry:
    entry = _entry(EvaluationEntry, values, "evaluation.", methods=list(METHODS))
    for role in ("generator", "verifier", "judge"):
        if (spec := getattr(entry, role)) is not None:
            _check_spec(spec, f"evaluation.{role}", adapter is not None, known)
    for name in entry.methods:
        one_of(str(name), METHODS, "evaluation.methods")
    if not entry.methods or (entry.limit is not None and entry.limit < 1):
        raise UserError("evaluation.methods and evaluation.limit: name at least one")
    return entry


def _audits(
    values: Sequence[Any], steps: StepsEntry | None, beside: Path
) -> tuple[AuditEntry, ...]:
    audits: dict[str, AuditEntry] = {}
    for number, one in enumerate(values):
        where = f"audits[{number}]"
        entry = _entry(AuditEntry, one, f"{where}.")
        one_of(entry.of, AUDITED, f"{where}.of")
        if entry.of in audits:
            raise UserError(f"{where}: {entry.of} again; score all files of a sample together")
        if entry.of == STEPS and steps is None:
            raise UserError(f"{where}: judges the verifier set; add verifier_steps")
        audits[entry.of] = replace(entry, file=beside / entry.file)
    return tuple(audits.values())


def _check_spec(spec: str, where: str, has_adapter: bool, known: Known) -> None:
    if OWN_ADAPTER in spec and not has_adapter:
        raise UserError(
            f"{where}: {OWN_ADAPTER} stands for an adapter; add adapter to the manifest"
        )
    try:
        known.check_engine(spec.replace(OWN_ADAPTER, "adapter"))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _entry(cls: type[_Entry], values: Any, where: str, **unsaid: Any) -> _Entry:
    """A part of the manifest by the fields of its class; ``unsaid`` are values it need not say."""
    values = {**unsaid, **values} if isinstance(values, dict) else values
    hints = _check_keys(cls, values, where)
    return cls(
        **{
            key: hints[key](value) if hints[key] in (Path, tuple) and value is not None else value
            for key, value in values.items()
        }
    )


def _check_keys(
    cls: type, values: Any, where: str, given: Collection[str] = ()
) -> Mapping[str, Any]:
    """The types of a class's fields; raises ``UserError`` for keys or values that are no such."""
    if not isinstance(values, dict):
        raise UserError(f"{where.rstrip('.') or 'the whole'}: has to be a mapping of keys")
    hints = {name: _bare(hint) for name, hint in get_type_hints(cls).items() if name not in given}
    for key, value in values.items():
        one_of(str(key), hints, f"key {where}{key}:")
        wanted = dict if is_dataclass(hints[key]) else _IN_YAML.get(hints[key], hints[key])
        fits = isinstance(value, int | float if wanted is float else wanted)
        if not fits or isinstance(value, bool):
            raise UserError(f"{where}{key}: has to be of type {wanted.__name__}")
    for field in fields(cls):
        if field.default is MISSING and field.name not in (*values, *given):
            raise UserError(f"{where}{field.name}: is missing")
    return hints


def _bare(hint: Any) -> Any:
    """A field's type without its None and its items: ``Path`` of ``Path | None``."""
    said = [one for one in get_args(hint) if one is not NoneType]
    one = said[0] if NoneType in get_args(hint) else hint
    return get_origin(one) or one
