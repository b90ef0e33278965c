"""What all trainings of a release have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from releases.manifest import Manifest
from releases.stage import Cost, Forecast, M, Made, Stage
from safe_stepwise.commands.ending import warn
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import README, TUNED
from trainers.config import Recipe
from trainers.machine import need_libraries
from trainers.models import find_base
from trainers.run import train


@dataclass(frozen=True)
class Training(Stage[M], Generic[M]):
    """A stage that trains; it goes on where it was stopped."""

    trains = True

    @property
    def folder(self) -> Path:
        """Where it goes."""
        return self.release.output / self.name

    @property
    def model(self) -> Path:
        """What an engine loads: the adapter, or the model that was tuned as a whole."""
        return self.folder / TUNED if self.recipe.tuning == "full" else self.folder

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """The recipe on the release's rows; raises ``UserError`` for one that is none."""

    @abstractmethod
    def finish(self, record: Any) -> None:
        """Measure what was trained, and tell of it on its card."""

    def check(self) -> None:
        """Raise ``UserError`` if libraries or the base model are missing, before hours of work."""
        need_libraries(self.recipe)
        find_base(self.recipe.base_model)

    def make(self) -> Made:
        """Train, and finish what was trained."""
        record = train(self.recipe, resume=True, warn=warn)
        self.finish(record)
        return Made(f"{self.folder}: {record['run']['steps']:,} steps, loss {record['curve'][-1]['loss']:.4f}")

    def write_readme(self, card: str) -> None:
        """Put a card beside what was trained."""
        write_atomically(self.folder / README, card.encode())


def price_training(manifest: Manifest, sets: list[str], recipe: Recipe, name: str, forecast: Forecast) -> Cost:
    """What training on verifier sets, by their parts, takes."""
    rows = 0
    for steps in (manifest.sets[part] for part in sets if part in manifest.sets):
        kept = round(steps.rows * (1 - steps.share_of_test))
        rows += min(kept, recipe.filters.rows or kept)
    trained = round(rows * recipe.epochs * forecast.expected["training"]["tokens_per_row"])
    return Cost(f"{name} {recipe.base_model}", rows, trained=trained)
