"""What trains the proposer of a release of relation paths, stage by stage; no command itself."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cards.models import license_of_base, proposer_card
from releases.evaluations import OWN_ADAPTER
from releases.parts import Made, Part
from releases.paths_manifest import EVALUATION, DeliberationEntry, PathsManifest
from safe_stepwise.engines.weights import Model, find_adapter
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import ADAPTER, PATHS_RECORD, README, RESULTS
from scripts.cli import warn
from scripts.release_stages import Stage, stages_of
from trainers.checkpoints import read_json
from trainers.record import RECORD
from trainers.run import train


def proposer_parts(manifest: PathsManifest, output: Path) -> Iterator[Part]:
    """The parts that train, each of which goes on where it was stopped."""
    stages = stages_of(manifest, output)
    for name, stage in stages.items():
        yield Part(name, partial(_trained, manifest, stages, name), stage.check)


def card_parts(manifest: PathsManifest, output: Path) -> Iterator[Part]:
    """What writes the card of the adapter anew once it was measured, if it is."""
    entry = manifest.deliberation
    if entry is not None and OWN_ADAPTER in entry.specs:
        yield Part(EVALUATION, partial(_carded, manifest, entry, output))


def _trained(manifest: PathsManifest, stages: dict[str, Stage], name: str) -> Made:
    stage = stages[name]
    record = train(stage.recipe, resume=True, warn=warn)
    if name == ADAPTER:
        write_card(manifest, stages, {})
    steps, loss = record["run"]["steps"], record["curve"][-1]["loss"]
    return Made(f"{stage.folder}: {steps:,} steps, loss {loss:.4f}")


def _carded(manifest: PathsManifest, entry: DeliberationEntry, output: Path) -> Made:
    measured = {place: read_json(output / place / RESULTS) for place in entry.places.values()}
    write_card(manifest, stages_of(manifest, output), measured)
    return Made()


def write_card(manifest: PathsManifest, stages: Mapping[str, Stage], measured: Mapping[str, Any]) -> None:
    """The card of the adapter that is published; ``measured`` are results by their place."""
    stage = stages[ADAPTER]
    text = proposer_card(
        [read_json(one.folder / RECORD) for one in stages.values()],
        read_json(stage.dataset / PATHS_RECORD),
        config=read_json(stage.folder / "adapter_config.json"),
        version=manifest.version,
        license=license_of_base(stage.recipe.base_model),
        results=measured,
        weights=str(find_adapter(Model(str(stage.folder)))),
    )
    write_atomically(stage.folder / README, text.encode())
