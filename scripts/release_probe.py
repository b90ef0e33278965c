"""What makes the path probe of a release; no command itself."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from builders.paths.build import summary
from builders.paths.sources import ProbeBuild
from builders.paths.statistics import ProbeStatistics
from builders.work.publishing import publish_lines, recover, swap_in
from cards.datasets import path_probe as card
from evaluators.derivations import read_derivations
from releases.manifest import PROBE, Manifest, PathProbeEntry
from releases.parts import Made, Part
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import DATASETS, PATH_PROBE, REJECTS, WORK

PROBE_REJECTS = f"{PROBE}_{REJECTS}"
"""What has no row in the probe: `REJECTS` has that of the builds."""


Build = Callable[..., ProbeStatistics]
"""As `builders.paths.build.build`."""


def probe_parts(manifest: Manifest, output: Path, build: Build) -> Iterator[Part]:
    """The part that makes it by ``build``, if the manifest names one."""
    if (entry := manifest.path_probe) is not None:
        check = partial(_check, manifest, entry)
        yield Part(PROBE, partial(_made, manifest, entry, output / DATASETS, build), check)


def _check(manifest: Manifest, entry: PathProbeEntry) -> None:
    for file in entry.files:
        if not file.is_file():
            raise UserError(f"{manifest.path}: {PROBE}: {file} is not here; bring it")


def _made(manifest: Manifest, entry: PathProbeEntry, datasets: Path, build: Build) -> Made:
    """Made among the work, as a build of its own, and then put in place."""
    recover(datasets / PATH_PROBE)
    plan = ProbeBuild(
        verified=datasets,
        output=datasets / WORK / PROBE,
        films=entry.kb,
        questions=entry.questions,
        derivations=entry.derivations,
        benchmarks=entry.benchmarks,
        limit=entry.limit,
        version=manifest.version,
        seed=manifest.seed,
    )
    plan.output.mkdir(parents=True, exist_ok=True)
    known = read_derivations(plan.derivations) if plan.derivations is not None else {}
    made = build(plan, card, known)
    rejects = plan.output / REJECTS
    publish_lines(datasets / PROBE_REJECTS, rejects.read_bytes() if rejects.is_file() else b"")
    swap_in(plan.output / PATH_PROBE, datasets / PATH_PROBE)
    counts = {"rows": made.rows, "questions": made.questions}
    return Made(summary(datasets, made), {"path-probe": counts})
