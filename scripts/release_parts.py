"""What a release has beside its datasets: the adapter, the metric's Space, the evaluation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cards.adapter import adapter as adapter_card
from cards.base_model import License, license_of, license_of_package
from safe_stepwise.engines.weights import Model, find_model
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import VERIFIER_STEPS
from scripts import evaluate_stepwise, evaluate_verifier
from scripts.cli import warn
from scripts.manifest import ADAPTER, Manifest
from trainers.base_model import PACKAGE, find_base
from trainers.config import Recipe, read_recipe
from trainers.verifier import need_libraries, train

SPACE = Path(__file__).parents[1] / "evaluators" / "safe_stepwise"
FOLDERS = ("datasets", "adapter", "space", "report")
"""What a release is made of, and locked."""
README = "README.md"


def recipe_of(manifest: Manifest, output: Path) -> Recipe:
    """The recipe of the release's adapter, on its own verifier set."""
    steps = output / "datasets" / VERIFIER_STEPS
    return read_recipe(manifest.recipe, {"dataset": str(steps), "output": str(output / "adapter")})


def check_training(recipe: Recipe) -> None:
    """Raise ``UserError`` if the libraries or the base model are missing, before hours of work."""
    need_libraries(recipe)
    find_base(recipe.base_model)


def make_space(output: Path) -> None:
    """The metric's Space, as it is in the checkout."""
    folder = output / "space"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SPACE, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))


def make_adapter(manifest: Manifest, output: Path, cache: list[str]) -> str:
    """Train the adapter or go on training it, measure it if that is asked for, write its card."""
    recipe, folder = recipe_of(manifest, output), output / "adapter"
    record = train(recipe, resume=True, warn=warn)
    shutil.rmtree(folder / ".work", ignore_errors=True)
    quality = _quality(manifest, output, cache)
    steps = output / "datasets" / VERIFIER_STEPS / "statistics" / "verifier_steps.json"
    card = adapter_card(
        record,
        quality,
        config=_read(folder / "adapter_config.json"),
        version=manifest.version,
        license=_license(recipe.base_model),
        steps=_read(steps),
    )
    write_atomically(folder / README, card.encode())
    return f"{folder}: {record['run']['steps']:,} steps, loss {record['curve'][-1]['loss']:.4f}"


def make_report(manifest: Manifest, output: Path, cache: list[str]) -> str:
    """The loop over the evaluation samples; returns what there is to say of it."""
    entry, folder = manifest.evaluation, output / "report"
    assert entry is not None
    adapter = str(output / "adapter")
    arguments = ["--questions", str(output / "datasets"), "--output", str(folder), *cache]
    arguments += ["--seed", str(manifest.seed)]
    for method in entry.methods:
        arguments += ["--method", method]
    for role in ("generator", "verifier", "judge"):
        if (spec := getattr(entry, role)) is not None:
            arguments += [f"--{role}", spec.replace(ADAPTER, adapter)]
    if entry.limit is not None:
        arguments += ["--limit", str(entry.limit)]
    said = evaluate_stepwise.evaluated(arguments)
    for work in folder.glob(".*"):
        work.unlink()
    return said


def _quality(manifest: Manifest, output: Path, cache: list[str]) -> Any:
    if manifest.adapter_verifier is None:
        return None
    folder = output / "report" / "verifier"
    spec = manifest.adapter_verifier.replace(ADAPTER, str(output / "adapter"))
    steps = str(output / "datasets")
    evaluate_verifier.main(["--steps", steps, "--verifier", spec, "--output", str(folder), *cache])
    return _read(folder / "verifier_quality.json")


def _license(base: str) -> License | None:
    """The base model's licence as the base model says it; None if it does not."""
    if base.startswith(PACKAGE):
        return license_of_package(base.removeprefix(PACKAGE))
    model = Model.read(base)
    readme = find_model(model).folder / README
    return license_of(readme.read_text("utf-8"), model.name) if readme.is_file() else None


def files(output: Path) -> Iterator[Path]:
    """Every file of a release, in order; its lock aside."""
    for folder in FOLDERS:
        yield from sorted(path for path in (output / folder).rglob("*") if path.is_file())
    if (output / README).is_file():
        yield output / README


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
