"""The stages in which a release's proposer of paths is trained; no command itself."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from releases.paths_manifest import PathsManifest, StageEntry
from safe_stepwise.engines.weights import Model, find_adapter
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import (
    ADAPTER,
    DATASETS,
    SFT,
    paths_set,
)
from trainers.base_model import find_base
from trainers.config import FREE, PathRecipe, read_recipe
from trainers.machine import need_libraries

_PLACES = (*FREE, "dataset", "base_model", "start")
"""Keys of a recipe that `trainers.record` writes otherwise, or that decide on nothing."""


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


def refuse_another(stage: Stage, record: Any) -> None:
    """Raise ``UserError`` for an adapter that an earlier run made by another recipe."""
    wanted, mend = stage.recipe.plain(), f"delete {stage.folder} and run this again"
    for key in sorted(wanted.keys() - {*_PLACES}):
        if record["recipe"].get(key) != wanted[key]:
            raise UserError(
                f"{stage.folder}: was trained with {key} {record['recipe'].get(key)}, not "
                f"{wanted[key]}; {mend}"
            )
    begun = record.get("start", {}).get("revision")
    if stage.start is not None and begun != find_adapter(Model(str(stage.start))).revision:
        raise UserError(f"{stage.folder}: went on from another adapter than {stage.start}; {mend}")
