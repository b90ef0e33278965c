"""What measures the proposer of a release of relation paths; no command itself."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from evaluators.deliberation.options import Options
from evaluators.traces import page
from releases.evaluations import OWN_ADAPTER
from releases.parts import Made, Part
from releases.paths_manifest import EVALUATION, OWN_SFT, DeliberationEntry, PathsManifest
from safe_stepwise.store.names import ADAPTER, DATASETS, SFT, paths_set


def deliberation_parts(
    manifest: PathsManifest, output: Path, evaluate: Callable[[Options], str], **asking: Any
) -> Iterator[Part]:
    """A part a way, which ``evaluate`` measures.

    ``asking`` are those of its options that say how models are asked.
    """
    if (entry := manifest.deliberation) is not None:
        for way in entry.places:
            asked = partial(options_of, manifest, entry, output, way, **asking)
            yield Part(EVALUATION, partial(_evaluated, evaluate, asked))


def _evaluated(evaluate: Callable[[Options], str], asked: Callable[[], Options]) -> Made:
    options = asked()
    options.output.mkdir(parents=True, exist_ok=True)
    said = evaluate(options)
    page.show(options.output)
    return Made(said)


def options_of(manifest: PathsManifest, entry: DeliberationEntry, output: Path, way: str, **asking: Any) -> Options:
    """The evaluation that an entry comes to, asked one ``way``."""
    paths = manifest.paths
    folders = {OWN_ADAPTER: str(output / ADAPTER), OWN_SFT: str(output / SFT)}

    def played(spec: str) -> str:
        for own, folder in folders.items():
            spec = spec.replace(own, folder)
        return spec

    said = {
        "max_hops": paths.max_hops,
        "splits": None if manifest.adapter is None else manifest.adapter.splits,
        **asking,
    }
    return Options(
        questions=tuple(one.input for one in entry.questions or paths.questions),
        paths=tuple(map(played, entry.paths)),
        output=output / entry.places[way],
        kb=None if paths.kb is None else Path(paths.kb.input),
        benchmark=paths.benchmark,
        split=entry.split if entry.questions else paths.split,
        generator=entry.generator and played(entry.generator),
        per_hop=entry.per_hop,
        train=output / DATASETS / paths_set(paths.benchmark),
        held_out=entry.held_out,
        candidates=entry.candidates,
        free=way == "free",
        seed=manifest.seed,
        **{name: value for name, value in said.items() if value is not None},
    )
