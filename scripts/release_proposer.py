"""What trains the proposer of a release of relation paths, stage by stage; no command itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cards.base_model import license_of_base
from cards.proposer import proposer as card
from releases.parts import Made, Part
from releases.paths_manifest import PathsManifest, StageEntry
from safe_stepwise.engines.weights import Model, find_adapter
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import ADAPTER, DATASETS, PATHS_RECORD, README, SFT, paths_set
from scripts.cli import warn
from scripts.release_deliberation import results
from trainers.base_model import find_base
from trainers.checkpoints import read_json
from trainers.config import FREE, PathRecipe, read_recipe
from trainers.machine import need_libraries
from trainers.record import RECORD
from trainers.run import train

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


def proposer_parts(manifest: PathsManifest, output: Path) -> Iterator[Part]:
    """The parts that train, each of which goes on where it was stopped."""
    stages = stages_of(manifest, output)
    for name, stage in stages.items():
        yield Part(name, partial(_trained, manifest, stages, name), stage.check)


def _trained(manifest: PathsManifest, stages: dict[str, Stage], name: str) -> Made:
    stage = stages[name]
    record = train(stage.recipe, resume=True, warn=warn)
    _refuse_another(stage, record)
    if name == ADAPTER:
        write_card(manifest, stages, {})
    steps, loss = record["run"]["steps"], record["curve"][-1]["loss"]
    return Made(f"{stage.folder}: {steps:,} steps, loss {loss:.4f}")


def _refuse_another(stage: Stage, record: Any) -> None:
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


def carded(manifest: PathsManifest, output: Path) -> Made:
    """Write the card of the adapter anew, if there is one, with what was measured of it."""
    if (output / ADAPTER / RECORD).is_file():
        write_card(manifest, stages_of(manifest, output), results(manifest, output))
    return Made()


def write_card(
    manifest: PathsManifest, stages: Mapping[str, Stage], measured: Mapping[str, Any]
) -> None:
    """The card of the adapter that is published; ``measured`` are results by their place."""
    stage = stages[ADAPTER]
    text = card(
        [read_json(one.folder / RECORD) for one in stages.values()],
        read_json(stage.dataset / PATHS_RECORD),
        config=read_json(stage.folder / "adapter_config.json"),
        version=manifest.version,
        license=license_of_base(stage.recipe.base_model),
        results=measured,
        weights=str(find_adapter(Model(str(stage.folder)))),
    )
    write_atomically(stage.folder / README, text.encode())
