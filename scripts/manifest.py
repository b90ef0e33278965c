"""Release manifests: what a release is made of, read strictly."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from builders.benchmarks import BENCHMARKS
from builders.steps.collect import MAX_LENGTH
from builders.steps.composition import Composition
from builders.verified.collect import EVALUATION_SIZE
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.open import check_spec
from safe_stepwise.store.names import known_version
from scripts.cli import one_of
from scripts.teacher import known_teacher

ADAPTER = "{adapter}"
"""In an engine's spec: the folder of the release's own adapter."""
RECIPES = Path(__file__).parents[1] / "trainers" / "recipes"


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


@dataclass(frozen=True, slots=True)
class StepsEntry:
    """``verifier_steps``: what the verifier set is composed of, and who makes its steps."""

    composition: Composition
    teacher: str = "annotations"
    test_share: float = 0.1
    max_length: int = MAX_LENGTH
    pool: int | None = None
    refined_from: Path | None = None
    """Rows of refinement; a path that is not absolute is beside the manifest."""


@dataclass(frozen=True, slots=True)
class EvaluationEntry:
    """``evaluation``: the loop over the evaluation samples, by engine specs."""

    generator: str
    verifier: str
    judge: str | None = None
    methods: tuple[str, ...] = tuple(METHODS)
    limit: int | None = None
    """Questions of each benchmark; all if not said."""


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
    recipe: Path | None = None
    """Of the verifier adapter."""
    adapter_verifier: str | None = None
    """An engine's spec to measure the adapter with on the test split; not measured if not said."""
    evaluation: EvaluationEntry | None = None


def read_manifest(path: Path) -> Manifest:
    """Read a manifest strictly: ``UserError`` names the file and the key that is wrong."""
    import yaml

    try:
        content = path.read_bytes()
        values = yaml.safe_load(content)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML ({error})") from None
    required = {"version": str, "seed": int, "builds": list}
    sections = {"verifier_steps": dict, "adapter": dict, "evaluation": dict}
    names = {**required, "evaluation_size": int, **sections}
    _check_keys(path, "", values, names, required)
    evaluation_size = values.get("evaluation_size", EVALUATION_SIZE)
    if not values["builds"]:
        raise UserError(f"{path}: builds: name at least one")
    if evaluation_size < 1:
        raise UserError(f"{path}: evaluation_size: has to be 1 or more")
    known_version(values["version"])
    builds = tuple(
        _entry(path, f"builds[{number}].", entry) for number, entry in enumerate(values["builds"])
    )
    for number, entry in enumerate(builds):
        if (entry.benchmark, entry.split) in {(b.benchmark, b.split) for b in builds[:number]}:
            raise UserError(f"{path}: builds[{number}]: {entry.benchmark} {entry.split} again")
    return Manifest(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        version=values["version"],
        seed=values["seed"],
        evaluation_size=evaluation_size,
        builds=builds,
        verifier_steps=_steps_entry(path, values.get("verifier_steps"), builds),
        recipe=_recipe(path, values),
        adapter_verifier=(values.get("adapter") or {}).get("verifier"),
        evaluation=_evaluation(path, values),
    )


def _steps_entry(path: Path, values: Any, builds: Sequence[BuildEntry]) -> StepsEntry | None:
    """The entry ``verifier_steps``; ``per_benchmark`` maps names to ``{rows, questions}``."""
    if values is None:
        return None
    where = "verifier_steps."
    shares = {"ideal": float, "test_share": float}
    numbers = {"rows": int, "questions": int, "refined": int, "max_length": int, "pool": int}
    types = {**numbers, **shares, "per_benchmark": dict, "teacher": str, "refined_from": str}
    _check_keys(path, where, values, types, required=["rows"])
    parts = values.get("per_benchmark")
    for name, part in (parts or {}).items():
        one_of(str(name), [b.benchmark for b in builds], f"{path}: {where}per_benchmark")
        needed = {"rows": int, "questions": int}
        _check_keys(path, f"{where}per_benchmark.{name}.", part, needed, required=needed)
    chosen = {
        key: values[key] for key in ("rows", "questions", "ideal", "refined") if key in values
    }
    refined_from = values.get("refined_from")
    if refined_from is not None:
        chosen.setdefault("refined", None)
    if parts is not None:
        chosen["per_benchmark"] = {n: (p["rows"], p["questions"]) for n, p in parts.items()}
    try:
        composition = Composition(**chosen)
    except UserError as error:
        raise UserError(f"{path}: {where.rstrip('.')}: {error}") from None
    others = {k: values[k] for k in ("teacher", "test_share", "max_length", "pool") if k in values}
    if refined_from is not None:
        others["refined_from"] = path.parent / refined_from
    entry = StepsEntry(composition, **others)
    known_teacher(entry.teacher, where=f"{path}: {where}teacher")
    if entry.max_length < 1 or (entry.pool is not None and entry.pool < 1):
        raise UserError(f"{path}: {where}max_length and {where}pool have to be 1 or more")
    if not 0 < entry.test_share < 1:
        raise UserError(f"{path}: {where}test_share: a share lies between 0 and 1")
    return entry


def _recipe(path: Path, values: Mapping[str, Any]) -> Path | None:
    """The file of ``adapter.recipe``: one of ours by its name, or a YAML file beside the manifest.

    Raises ``UserError`` if it is not there, and if there is no verifier set to train on.
    """
    if (entry := values.get("adapter")) is None:
        return None
    types = {"recipe": str, "verifier": str}
    _check_keys(path, "adapter.", entry, types, required=["recipe"])
    if "verifier" in entry:
        _check_spec(entry["verifier"], f"{path}: adapter.verifier", True)
    named = entry["recipe"]
    file = path.parent / named if named.endswith((".yaml", ".yml")) else RECIPES / f"{named}.yaml"
    if not file.is_file():
        known = ", ".join(sorted(recipe.stem for recipe in RECIPES.glob("*.yaml")))
        raise UserError(
            f"{path}: adapter.recipe: there is no {file}; name one of {known}, or a YAML file"
        )
    if "verifier_steps" not in values:
        raise UserError(f"{path}: adapter: is trained on the verifier set; add verifier_steps")
    return file


def _evaluation(path: Path, others: Mapping[str, Any]) -> EvaluationEntry | None:
    if (values := others.get("evaluation")) is None:
        return None
    where = "evaluation."
    types = {"generator": str, "verifier": str, "judge": str, "methods": list, "limit": int}
    _check_keys(path, where, values, types, required=["generator", "verifier"])
    for key in ("generator", "verifier", "judge"):
        if key in values:
            _check_spec(values[key], f"{path}: {where}{key}", "adapter" in others)
    methods = tuple(
        one_of(str(name), METHODS, f"{path}: {where}methods")
        for name in values.get("methods", METHODS)
    )
    if not methods or values.get("limit", 1) < 1:
        raise UserError(f"{path}: {where}methods and {where}limit: name at least one")
    return EvaluationEntry(**{**values, "methods": methods})


def _check_spec(spec: str, where: str, has_adapter: bool) -> None:
    if ADAPTER in spec and not has_adapter:
        raise UserError(f"{where}: {ADAPTER} stands for an adapter; add adapter to the manifest")
    try:
        check_spec(spec.replace(ADAPTER, "adapter"))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _entry(path: Path, where: str, values: Any) -> BuildEntry:
    numbers = ("limit", "expected_rows")
    names = {field.name: int if field.name in numbers else str for field in fields(BuildEntry)}
    required = [field.name for field in fields(BuildEntry) if field.default is MISSING]
    _check_keys(path, where, values, names, required)
    entry = BuildEntry(**values)
    one_of(entry.benchmark, BENCHMARKS, f"{path}: {where}benchmark")
    one_of(entry.split, ("train", "validation"), f"{path}: {where}split")
    known_teacher(entry.teacher, where=f"{path}: {where}teacher")
    one_of(entry.on_error, ("stop", "keep"), f"{path}: {where}on_error")
    if entry.limit is not None and entry.limit < 1:
        raise UserError(f"{path}: {where}limit: has to be 1 or more")
    return entry


def _check_keys(
    path: Path, where: str, values: Any, types: Mapping[str, type], required: Sequence[str] | Any
) -> None:
    if not isinstance(values, dict):
        raise UserError(f"{path}: {where.rstrip('.') or 'the whole'}: has to be a mapping of keys")
    for key, value in values.items():
        one_of(str(key), types, f"{path}: key {where}{key}:")
        fits = isinstance(value, int | float if types[key] is float else types[key])
        if not fits or isinstance(value, bool):
            raise UserError(f"{path}: {where}{key}: has to be of type {types[key].__name__}")
    for key in required:
        if key not in values:
            raise UserError(f"{path}: {where}{key}: is missing")
