"""The generator: a model that is trained to write steps, and its card."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards.models import license_of_base, model_card
from releases.manifest import OWN_SET, Manifest
from releases.stage import Cost, Forecast
from releases.training import Training, price_training
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import DATASETS, GENERATOR, STEPS_RECORD, VERIFIER_STEPS
from trainers.checkpoints import read_json
from trainers.config import GeneratorRecipe


@dataclass(frozen=True)
class Generator(Training[Manifest]):
    """What learns to write steps from the release's verifier set."""

    part = key = GENERATOR
    needs = (DATASETS, OWN_SET)

    @property
    def steps(self) -> Path:
        """The verifier set that it learns."""
        return self.release.datasets / VERIFIER_STEPS

    @property
    def recipe(self) -> GeneratorRecipe:
        entry = self.release.manifest.generator
        assert entry is not None
        return entry.read(GeneratorRecipe, dataset=str(self.steps), output=str(self.folder))

    def check(self) -> None:
        if self.recipe.tuning != "full":
            raise UserError(f"{self.release.file}: generator: is kept as a model; set tuning: full")
        super().check()

    def price(self, forecast: Forecast) -> Iterator[Cost]:
        yield price_training(self.release.manifest, [OWN_SET], self.recipe, "generator of", forecast)

    def finish(self, record: Any) -> None:
        license, steps = license_of_base(self.recipe.base_model), read_json(self.steps / STEPS_RECORD)
        self.write_readme(model_card(record, version=self.release.manifest.version, license=license, steps=steps))
