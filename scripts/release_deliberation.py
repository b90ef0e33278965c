"""What measures the proposer of a release of relation paths; no command itself."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from releases.evaluations import OWN_ADAPTER
from releases.parts import Made, Part
from releases.paths_manifest import EVALUATION, OWN_SFT, PathsManifest
from safe_stepwise.store.names import ADAPTER, BLOCKS, DATASETS, REPORT, RESULTS, SFT, paths_set
from safe_stepwise.store.parsing import read_json
from scripts import evaluate_deliberation
from scripts.release_models import show_traces

_ASKING = ("cache", "in_flight", "timeout")


def places(manifest: PathsManifest) -> dict[str, str]:
    """Where in a release each way of asking has its report: the first in the release's own."""
    if manifest.deliberation is None:
        return {}
    first, *others = manifest.deliberation.ways
    return {first: REPORT, **{way: f"{BLOCKS}/{way}/{REPORT}" for way in others}}


def results(manifest: PathsManifest, output: Path) -> dict[str, Any]:
    """What the evaluations came to that are there, by place."""
    found = {place: output / place / RESULTS for place in places(manifest).values()}
    return {place: read_json(file) for place, file in found.items() if file.is_file()}


def deliberation_parts(manifest: PathsManifest, output: Path, **asking: Any) -> Iterator[Part]:
    """A part a way; ``asking`` are options of the command that say how models are asked."""
    for way, place in places(manifest).items():
        yield Part(EVALUATION, partial(_evaluated, manifest, output, way, output / place, asking))


def _evaluated(
    manifest: PathsManifest, output: Path, way: str, home: Path, asking: dict[str, Any]
) -> Made:
    home.mkdir(parents=True, exist_ok=True)
    evaluate_deliberation.main(arguments(manifest, output, way, home, asking))
    show_traces(home)
    return Made()


def arguments(
    manifest: PathsManifest, output: Path, way: str, home: Path, asking: dict[str, Any]
) -> list[str]:
    """The arguments of the command that an entry comes to; raises ``TypeError`` without one."""
    entry, paths = manifest.deliberation, manifest.paths
    if entry is None:
        raise TypeError("no evaluation is named")
    folders = {OWN_ADAPTER: str(output / ADAPTER), OWN_SFT: str(output / SFT)}

    def played(spec: str) -> str:
        for own, folder in folders.items():
            spec = spec.replace(own, folder)
        return spec

    asked = entry.questions or paths.questions
    said: list[tuple[str, object]] = [
        ("benchmark", paths.benchmark),
        ("split", entry.split if entry.questions else paths.split),
        ("kb", None if paths.kb is None else paths.kb.input),
        ("train", output / DATASETS / paths_set(paths.benchmark)),
        ("splits", None if manifest.adapter is None else manifest.adapter.splits),
        ("max-hops", paths.max_hops),
        ("per-hop", entry.per_hop),
        ("generator", entry.generator and played(entry.generator)),
        ("candidates", entry.candidates),
        ("seed", manifest.seed),
        ("output", home),
        *(("questions", one.input) for one in asked),
        *(("paths", played(spec)) for spec in entry.paths),
        *((name.replace("_", "-"), asking.get(name)) for name in _ASKING),
    ]
    flags = [f"--{way}", *(["--held-out"] if entry.held_out else [])]
    told = (text for name, value in said if value is not None for text in (f"--{name}", str(value)))
    return [*told, *flags]
