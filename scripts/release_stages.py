"""The stages in which a release's proposer of paths is trained; no command itself."""

from dataclasses import dataclass
from pathlib import Path

from releases.paths_manifest import PathsManifest, StageEntry
from safe_stepwise.store.names import ADAPTER, DATASETS, SFT, paths_set
from trainers.base_model import find_base
from trainers.config import PathRecipe, read_recipe
from trainers.machine import need_libraries


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the training, and the folder of the release that its adapter goes to."""

    entry: StageEntry
    splits: str
    dataset: Path
    folder: Path
    start: Path | None

    @property
    def recipe(self) -> PathRecipe:
        """The recipe on the release's rows; raises ``UserError`` for one that is none."""
        where = {"dataset": str(self.dataset), "output": str(self.folder), "splits": self.splits}
        if self.start is not None:
            where["start"] = str(self.start)
        return read_recipe(self.entry.recipe, {**(self.entry.change or {}), **where}, PathRecipe)

    def check(self) -> None:
        """Raise ``UserError`` if libraries or the base model are missing, before hours of work."""
        need_libraries(self.recipe)
        find_base(self.recipe.base_model)


def stages_of(manifest: PathsManifest, output: Path) -> dict[str, Stage]:
    """The stages of a manifest's adapter by their parts; the last one makes what is published."""
    if (entry := manifest.adapter) is None:
        return {}
    dataset = output / DATASETS / paths_set(manifest.paths.benchmark)
    found, start = dict[str, Stage](), None
    *first, last = entry.stages.values()
    for part, one in [*((SFT, stage) for stage in first), (ADAPTER, last)]:
        found[part] = Stage(one, entry.splits, dataset, output / part, start)
        start = output / part
    return found
