"""What proposes relation paths: an adapter that is trained stage by stage, and its card."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards.models import license_of_base, proposer_card
from releases.paths_manifest import PathsManifest
from releases.reading import RecipeEntry
from releases.stage import Cost, Forecast, Release
from releases.training import Training
from safe_stepwise.engines.weights import Model, find_adapter
from safe_stepwise.store.names import ADAPTER, PATHS, PATHS_RECORD, SFT, paths_set
from trainers.checkpoints import read_json
from trainers.config import PathRecipe
from trainers.record import RECORD


@dataclass(frozen=True)
class Proposer(Training[PathsManifest]):
    """A step of the training, by the folder of the release that its adapter goes to; the last one is published."""

    entry: RecipeEntry
    splits: str
    start: Path | None
    """The adapter that it goes on from."""
    kind = PathsManifest

    @classmethod
    def named_in(cls, release: Release[Any]) -> "Iterator[Proposer]":
        """SFT and KTO in this order, as far as they are named."""
        if (adapter := release.manifest.adapter) is None:
            return
        start = None
        for name, entry in zip([SFT, ADAPTER][-len(adapter.stages) :], adapter.stages.values(), strict=True):
            yield cls(release, name, entry, adapter.splits, start)
            start = release.output / name

    @property
    def needs(self) -> list[str]:
        return [PATHS, *([] if self.start is None else [self.start.name])]

    @property
    def dataset(self) -> Path:
        """What it learns."""
        return self.release.datasets / paths_set(self.release.manifest.paths.benchmark)

    @property
    def recipe(self) -> PathRecipe:
        places = {"dataset": str(self.dataset), "output": str(self.folder), "splits": self.splits}
        start = {} if self.start is None else {"start": str(self.start)}
        return self.entry.read(PathRecipe, **places, **start)

    def price(self, forecast: Forecast) -> Iterator[Cost]:
        recipe = self.recipe
        rows = recipe.filters.rows or forecast.build_rows[0]
        trained = round(rows * recipe.epochs * forecast.expected["paths"]["tokens_per_row"])
        yield Cost(f"{recipe.method} of {recipe.base_model}", rows, trained=trained)

    def finish(self, record: Any) -> None:
        if self.name == ADAPTER:
            write_card(self.release, {})


def write_card(release: Release[PathsManifest], results: Mapping[str, Any]) -> None:
    """The card of the adapter that is published; ``results`` are those of evaluations by their place."""
    steps = list(Proposer.named_in(release))
    published = steps[-1]
    text = proposer_card(
        [read_json(step.folder / RECORD) for step in steps],
        read_json(published.dataset / PATHS_RECORD),
        config=read_json(published.folder / "adapter_config.json"),
        version=release.manifest.version,
        license=license_of_base(published.recipe.base_model),
        results=results,
        weights=str(find_adapter(Model(str(published.folder)))),
    )
    published.write_readme(text)
