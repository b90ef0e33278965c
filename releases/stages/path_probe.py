"""The path probe: valid and corrupted relation paths of the release's verified questions."""

from dataclasses import dataclass

from builders.paths.build import build, summary
from builders.paths.sources import ProbeBuild
from builders.work.publishing import publish_lines, recover, swap_in
from cards.datasets import path_probe as card
from evaluators.derivations import read_derivations
from releases.manifest import PROBE, Manifest, PathProbeEntry
from releases.stage import Made, Stage
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import DATASETS, PATH_PROBE, REJECTS, WORK

PROBE_REJECTS = f"{PROBE}_{REJECTS}"
"""What has no row in the probe: `REJECTS` has that of the builds."""


@dataclass(frozen=True)
class PathProbe(Stage[Manifest]):
    """The probe of a manifest."""

    part = key = PROBE

    @property
    def entry(self) -> PathProbeEntry:
        """What the manifest says of it."""
        assert self.release.manifest.path_probe is not None
        return self.release.manifest.path_probe

    needs = (DATASETS,)

    def check(self) -> None:
        for file in self.entry.files:
            if not file.is_file():
                raise UserError(f"{self.release.file}: {PROBE}: {file} is not here; bring it")

    def make(self) -> Made:
        """Make it among the work, as a build of its own, and then put it in place."""
        datasets, entry = self.release.datasets, self.entry
        recover(datasets / PATH_PROBE)
        plan = ProbeBuild(
            verified=datasets,
            output=datasets / WORK / PROBE,
            films=entry.kb,
            questions=entry.questions,
            derivations=entry.derivations,
            benchmarks=entry.benchmarks,
            limit=entry.limit,
            version=self.release.manifest.version,
            seed=self.release.manifest.seed,
        )
        plan.output.mkdir(parents=True, exist_ok=True)
        derivations = read_derivations(plan.derivations) if plan.derivations is not None else {}
        statistics = build(plan, card, derivations)
        rejects = plan.output / REJECTS
        publish_lines(datasets / PROBE_REJECTS, rejects.read_bytes() if rejects.is_file() else b"")
        swap_in(plan.output / PATH_PROBE, datasets / PATH_PROBE)
        counts = {name: statistics[name] for name in ("rows", "questions")}
        return Made(summary(datasets, statistics), {"path-probe": counts})
