"""What measures the proposer of a release of relation paths; no command itself."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evaluators.traces import page
from releases.evaluations import OWN_ADAPTER
from releases.parts import Made, Part
from releases.paths_manifest import EVALUATION, OWN_SFT, DeliberationEntry, PathsManifest
from safe_stepwise.store.names import ADAPTER, DATASETS, SFT, paths_set

_ASKING = ("cache", "in_flight", "timeout")


def deliberation_parts(
    manifest: PathsManifest, output: Path, evaluate: Callable[[Sequence[str]], None], **asking: Any
) -> Iterator[Part]:
    """A part a way; ``evaluate`` is the command that measures, by its arguments.

    ``asking`` are options of it that say how models are asked.
    """
    if (entry := manifest.deliberation) is None:
        return
    for way, place in entry.places.items():
        told = arguments(manifest, entry, output, way, **asking)
        yield Part(EVALUATION, partial(_evaluated, evaluate, told, output / place))


def _evaluated(
    evaluate: Callable[[Sequence[str]], None], told: Sequence[str], folder: Path
) -> Made:
    folder.mkdir(parents=True, exist_ok=True)
    evaluate(told)
    page.show(folder)
    return Made()


def arguments(
    manifest: PathsManifest, entry: DeliberationEntry, output: Path, way: str, **asking: Any
) -> list[str]:
    """The arguments of `evaluate_deliberation` that an entry comes to, asked one ``way``."""
    paths = manifest.paths
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
        ("output", output / entry.places[way]),
        *(("questions", one.input) for one in asked),
        *(("paths", played(spec)) for spec in entry.paths),
        *((name.replace("_", "-"), asking.get(name)) for name in _ASKING),
    ]
    flags = [f"--{way}", *(["--held-out"] if entry.held_out else [])]
    told = (text for name, value in said if value is not None for text in (f"--{name}", str(value)))
    return [*told, *flags]
