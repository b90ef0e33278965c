"""Which adapters a release trains, each on what, by which recipe; no command itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from releases.evaluations import AdapterEntry
from releases.manifest import BlockEntry, Manifest
from safe_stepwise.engines.base import Allowance
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.store.names import ADAPTER, BLOCKS, DATASETS, TUNED, VERIFIER_STEPS
from trainers.base_model import find_base
from trainers.config import Recipe, VerifierRecipe, read_recipe
from trainers.machine import need_libraries


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
    def model(self) -> Path:
        """What an engine loads: the adapter, or the model that was tuned as a whole."""
        return model_of(self.folder, self.recipe)

    @property
    def recipe(self) -> VerifierRecipe:
        """The recipe on the release's rows; raises ``UserError`` for one that is none."""
        where: dict[str, Any] = {"dataset": str(self.steps), "output": str(self.folder)}
        if self.plus is not None:
            where["plus"] = [str(self.plus)]
        return read_recipe(self.entry.recipe, {**self.entry.changes, **where}, VerifierRecipe)

    def check(self) -> None:
        """Raise ``UserError`` if libraries or the base model are missing, before hours of work."""
        need_libraries(self.recipe)
        find_base(self.recipe.base_model)


def model_of(folder: Path, recipe: Recipe) -> Path:
    """What of a training's folder an engine loads."""
    return folder / TUNED if recipe.tuning == "full" else folder


def own_training(manifest: Manifest, entry: AdapterEntry, output: Path) -> Training:
    """The release's own adapter."""
    steps = output / DATASETS / VERIFIER_STEPS
    return Training(entry, output, output, steps, None, *_told(manifest))


def trainings_of(manifest: Manifest, name: str, block: BlockEntry, output: Path) -> Iterator[Training]:
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
