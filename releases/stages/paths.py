"""The stages that build datasets of paths: relation paths over a knowledge graph, and the path probe.

The *path probe* has valid and corrupted reasoning paths of the release's verified questions, to be told apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builders.benchmarks import sources
from builders.paths import build as probes
from builders.paths.kg_build import build, summary
from builders.paths.kg_collect import PathsBuild
from builders.paths.relation_readers import READERS, check_graph, questions
from builders.paths.sources import ProbeBuild
from builders.work.publishing import publish_lines, recover, swap_in
from cards.datasets import path_probe
from cards.datasets import paths as card
from evaluators.derivations import read_derivations
from releases.manifest import PROBE, Manifest, PathProbeEntry
from releases.paths_manifest import PathsManifest
from releases.stage import CostEstimate, Forecast, SourceRows, Stage, StageResult
from safe_stepwise.commands.options import copy_into
from safe_stepwise.errors import UserError, at_place, check_choice
from safe_stepwise.store.names import DATASETS, PATH_PROBE, PATHS, REJECTS, WORK, paths_set
from safe_stepwise.store.tables import text_table


@dataclass(frozen=True)
class PathsSetStage(Stage[PathsManifest]):
    """The dataset of relation paths of a manifest, and the checks of its sources."""

    manifest_type, default_name = PathsManifest, PATHS

    @property
    def plan(self) -> PathsBuild:
        manifest, entry = self.release.manifest, self.release.manifest.paths
        return PathsBuild(
            benchmark=entry.benchmark,
            sources=tuple(source.input for source in entry.questions),
            split=entry.split,
            output=self.release.datasets,
            kb=None if entry.kb is None else Path(entry.kb.input),
            version=manifest.version,
            seed=manifest.seed,
            keep_rejects=entry.on_error == "keep",
            keep_work=True,
            **entry.options,
            **self.release.options.engine_options,
        )

    def validate(self) -> None:
        entry = self.release.manifest.paths
        check_choice(entry.benchmark, READERS, "paths.benchmark")
        with at_place("paths.kb"):
            check_graph(entry.benchmark, entry.kb)

    def check(self) -> None:
        """Raise ``UserError`` for a missing source, another digest, and another set in the folder."""
        for fault in self.missing():
            raise UserError(f"{self.release.file}: {fault}")
        allowed = {REJECTS, paths_set(self.release.manifest.paths.benchmark)}
        self.release.refuse_unnamed(sorted({path.name for path in self.release.datasets.glob("[!.]*")} - allowed))

    def preface(self, forecast: Forecast) -> str:
        """Render a table of the sources, with the digests that the manifest lacks."""
        lines: list[tuple[object, ...]] = [("source", "file", "rows", "SHA-256")]
        for key, entry in self.release.manifest.sources.items():
            source = self._read(key)
            forecast.sources[key] = source
            note = "as the manifest says" if entry.sha256 else f"{source.sha256}, not in the manifest yet"
            digest = "not here" if source.sha256 is None else note
            lines.append((key, entry.input, "" if source.rows is None else source.rows, digest))
        return text_table(lines)

    def price(self, forecast: Forecast) -> Iterator[CostEstimate]:
        paths = self.release.manifest.paths
        rows = sum(min(rows, paths.limit or rows) for rows in forecast.question_rows(self.release, PATHS).values())
        forecast.build_rows.append(rows)
        yield CostEstimate(f"search {paths.benchmark} {paths.split}", rows)

    def missing(self) -> Iterator[str]:
        reader = READERS[self.release.manifest.paths.benchmark]
        for key, entry in self.release.manifest.sources.items():
            place = f"{key}: {entry.input}"
            if not entry.is_available:
                yield f"{place} is not here; get it from {reader.HOMEPAGE} and put it there"
            elif entry.sha256 is not None and (digest := sources.digest(entry.input)) != entry.sha256:
                yield (
                    f"{place} has the SHA-256 {digest}, not {entry.sha256}; get the file that was "
                    "meant, or correct the digest"
                )

    def make(self) -> StageResult:
        statistics = build(self.plan, card)
        rows = {config: {n: file.rows for n, file in splits.items()} for config, splits in statistics["files"].items()}
        counts = {"questions": statistics["rows"], "rejected": statistics["rejected"], "rows": rows}
        return StageResult(summary(self.plan, statistics), {paths_set(self.plan.benchmark): counts})

    def _read(self, key: str) -> SourceRows:
        """Describe a source. Questions are read to their end, to find bad rows, unless bad rows are rejected."""
        manifest = self.release.manifest
        paths, entry = manifest.paths, manifest.sources[key]
        if entry.is_hub or not entry.is_available:
            return SourceRows()
        digest = sources.digest(entry.input)
        if key == "paths.kb" or paths.on_error == "keep":
            return SourceRows(digest, None if key == "paths.kb" else entry.expected_rows)
        split, limit = paths.split, paths.limit
        if manifest.deliberation is not None:
            limit = None
            split = split if key.startswith("paths.") else manifest.deliberation.split
        rows, topics = 0, 1
        for rows, question in enumerate(questions(paths.benchmark, entry.input, split, limit), 1):  # noqa: B007
            topics = max(topics, len(question.topics))
        return SourceRows(digest, rows, topics)


@dataclass(frozen=True)
class PathProbeStage(Stage[Manifest]):
    """The path probe that a manifest names."""

    default_name = key = PROBE

    @property
    def entry(self) -> PathProbeEntry:
        assert self.release.manifest.path_probe is not None
        return self.release.manifest.path_probe

    needs = (DATASETS,)

    def check(self) -> None:
        for file in self.entry.files:
            if not file.is_file():
                raise UserError(f"{self.release.file}: {PROBE}: {file} is not here; bring it")

    def make(self) -> StageResult:
        """Build the probe in the folder of unfinished work, then move it into place."""
        datasets, entry = self.release.datasets, self.entry
        recover(datasets / PATH_PROBE)
        plan = copy_into(
            ProbeBuild,
            entry,
            verified=datasets,
            output=datasets / WORK / PROBE,
            films=entry.kb,
            version=self.release.manifest.version,
            seed=self.release.manifest.seed,
        )
        plan.output.mkdir(parents=True, exist_ok=True)
        derivations = read_derivations(plan.derivations) if plan.derivations is not None else {}
        statistics = probes.build(plan, path_probe, derivations)
        rejects = plan.output / REJECTS
        # `REJECTS` is the file of the builds.
        publish_lines(datasets / f"{PROBE}_{REJECTS}", rejects.read_bytes() if rejects.is_file() else b"")
        swap_in(plan.output / PATH_PROBE, datasets / PATH_PROBE)
        counts = {name: statistics[name] for name in ("rows", "questions")}
        return StageResult(probes.summary(datasets, statistics), {"path-probe": counts})
