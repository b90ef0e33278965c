"""What trains and measures an adapter of a release, and writes its card; no command itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards.adapter import adapter as card
from cards.base_model import license_of_base
from releases import report
from releases.evaluations import OWN_ADAPTER, AdapterEntry
from releases.manifest import BlockEntry, Manifest
from releases.parts import Made
from releases.planning import Training as Foreseen
from safe_stepwise.engines.allowance import Allowance
from safe_stepwise.engines.weights import Model, find_adapter
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import (
    ADAPTER,
    BLOCKS,
    DATASETS,
    README,
    REPORT,
    RESULTS,
    STEPS_RECORD,
    VERIFIER_STEPS,
)
from scripts import evaluate_verifier
from scripts.cli import warn
from trainers.base_model import find_base
from trainers.checkpoints import read_json
from trainers.config import Recipe, read_recipe
from trainers.machine import need_libraries
from trainers.record import RECORD
from trainers.run import train

QUALITY = Path(REPORT) / "verifier"


@dataclass(frozen=True, slots=True)
class Training:
    """An adapter of a release: what it learns, and the folder that has it and its reports."""

    entry: AdapterEntry
    output: Path
    """The release's folder."""
    home: Path
    """That folder, or one of a block."""
    steps: Path
    plus: Path | None
    version: str
    allowance: Allowance
    """Of the adapter when it is measured."""

    @property
    def folder(self) -> Path:
        """Where the adapter goes."""
        return self.home / ADAPTER

    @property
    def recipe(self) -> Recipe:
        """The recipe on the release's rows; raises ``UserError`` for one that is none."""
        where: dict[str, Any] = {"dataset": str(self.steps), "output": str(self.folder)}
        if self.plus is not None:
            where["plus"] = [str(self.plus)]
        return read_recipe(self.entry.recipe, {**self.entry.changes, **where})

    def check(self) -> None:
        """Raise ``UserError`` if libraries or the base model are missing, before hours of work."""
        need_libraries(self.recipe)
        find_base(self.recipe.base_model)


def own_training(manifest: Manifest, entry: AdapterEntry, output: Path) -> Training:
    """The release's own adapter."""
    steps = output / DATASETS / VERIFIER_STEPS
    return Training(entry, output, output, steps, None, *_told(manifest))


def trainings_of(
    manifest: Manifest, name: str, block: BlockEntry, output: Path
) -> Iterator[Training]:
    """The adapters of a block: of its own set, or of the release's, or of both."""
    home, own = output / BLOCKS / name, block.verifier_steps
    steps, plus = output / DATASETS / VERIFIER_STEPS, None
    if own is not None:
        its = home / DATASETS / VERIFIER_STEPS
        steps, plus = (steps, its) if own.unverifiable else (its, None)
    for key, entry in block.adapters.items():
        yield Training(entry, output, home / key, steps, plus, *_told(manifest))


def _told(manifest: Manifest) -> tuple[str, Allowance]:
    return manifest.version, manifest.allowance.only([ROLE])


def foreseen_trainings(manifest: Manifest) -> Iterator[Foreseen]:
    """What the recipes of all adapters say, before any is trained."""
    named = [("adapter", "", manifest.adapter)] if manifest.adapter is not None else []
    blocks = manifest.blocks.items()
    named += [(part, name, one) for part, b in blocks for name, one in b.adapters.items()]
    for part, name, entry in named:
        recipe = read_recipe(entry.recipe, {**entry.change, "dataset": "-", "output": "-"})
        yield Foreseen(part, name, recipe.base_model, recipe.filters.rows, recipe.epochs)


def trained(training: Training, cache: Path | None, timeout: float | None) -> Made:
    """Train or go on training, measure if that is asked for, write the card."""
    record, spec = train(training.recipe, resume=True, warn=warn), training.entry.verifier
    if spec is not None:
        options = evaluate_verifier.Options(
            str(training.output / DATASETS),
            spec.replace(OWN_ADAPTER, str(training.folder)),
            training.home / QUALITY,
            cache=cache,
            timeout=timeout,
            allowance=training.allowance,
            incomplete_evidence=training.recipe.incomplete_evidence,
        )
        print(evaluate_verifier.evaluated(options))
    write_card(training)
    steps, loss = record["run"]["steps"], record["curve"][-1]["loss"]
    return Made(f"{training.folder}: {steps:,} steps, loss {loss:.4f}")


def write_card(training: Training) -> None:
    """The card of an adapter that is there, with all that has been measured of it so far."""
    folder, measured = training.folder, training.home / QUALITY / "verifier_quality.json"
    if not (folder / RECORD).is_file():
        return
    text = card(
        read_json(folder / RECORD),
        read_json(measured) if training.entry.verifier is not None else None,
        config=read_json(folder / "adapter_config.json"),
        version=training.version,
        license=license_of_base(training.recipe.base_model),
        steps=read_json(training.steps / STEPS_RECORD),
        loops=_results(training),
        weights=str(find_adapter(Model(str(folder)))),
        first=(training.home / REPORT).relative_to(training.output).as_posix(),
    )
    write_atomically(folder / README, text.encode())


def _results(training: Training) -> dict[str, Any]:
    """What the evaluations of the release, or of a block with this adapter, came to, by place."""
    places = [training.home / REPORT]
    if training.home == training.output:
        places = report.folders(training.output)
    found = {place: place / RESULTS for place in places if (place / RESULTS).is_file()}
    return {
        place.relative_to(training.output).as_posix(): read_json(file)
        for place, file in found.items()
    }
