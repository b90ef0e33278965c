"""The stage that evaluates answers over relation paths of a knowledge graph, once for each mode of proposing."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.paths.questions import Questions
from builders.paths.relation_readers import READERS
from evaluators.deliberation.command import run_deliberation
from evaluators.deliberation.options import BASELINES, CANDIDATES, NO_GRAPH, Options, engines_of, split_name
from evaluators.traces import page
from releases import stage
from releases.manifest import OWN_ADAPTER
from releases.paths_manifest import EVALUATION, OWN_SFT, DeliberationEntry, PathsManifest
from releases.stages.training import write_card
from safe_stepwise.commands.options import copy_into
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.store.names import ADAPTER, PATHS, RESULTS, SFT, paths_set
from trainers.checkpoints import read_record

_ADAPTER_FOLDERS = {OWN_SFT: SFT, OWN_ADAPTER: ADAPTER}
"""The folder of each adapter in the release, by its placeholder in specs."""


@dataclass(frozen=True)
class DeliberationStage(stage.Stage[PathsManifest]):
    """Release stage: evaluate answers over paths in one mode; the last one adds the scores to the proposer's card."""

    entry: DeliberationEntry
    mode: str
    """One of `releases.paths_manifest.Mode`."""
    manifest_type = PathsManifest
    note = (
        "Answers are priced at most: a path proposed for each candidate, in one call (one a hop where the graph has "
        "too many paths to list), and with a generator 1 + 2(k + 1) calls a question of k + 1 candidates; none is "
        "cached, and no reply is asked for anew."
    )

    @classmethod
    def from_manifest(cls, release: stage.Release[Any]) -> "Iterator[DeliberationStage]":
        """Yield one stage for each mode of the manifest's evaluation."""
        if (entry := release.manifest.deliberation) is not None:
            yield from (cls(release, EVALUATION, entry, mode) for mode in entry.report_folders)

    @property
    def needs(self) -> list[str]:
        return [PATHS, *(folder for placeholder, folder in _ADAPTER_FOLDERS.items() if self.entry.uses(placeholder))]

    def validate(self) -> None:
        trained, benchmark = self.release.manifest.trained, self.release.manifest.paths.benchmark
        with at_place(EVALUATION):
            specs = engines_of(self.entry.paths)
            learners = {"majority", "nearest"} & {split_name(text)[1] for text in self.entry.paths}
            if learners and self.entry.labels == "gold" and not READERS[benchmark].HAS_GOLD:
                raise UserError(f"{min(learners)}: {benchmark} has no gold path to learn from; write labels: weak")
            self.options()
        for spec in (*specs, *([self.entry.generator] if self.entry.generator else ())):
            stage.check_player(spec, f"{EVALUATION}.paths", trained)

    def price(self, forecast: stage.Forecast) -> Iterator[stage.CostEstimate]:
        """Yield the highest cost of each proposer, with that of the generator."""
        entry, expected = self.entry, forecast.expectations["deliberation"]
        key = EVALUATION if entry.questions else PATHS
        rows = forecast.question_rows(self.release, key)
        topics = max(forecast.sources[key].topics for key in rows)
        candidates = (entry.candidates or (CANDIDATES if entry.generator else 1)) * topics
        questions, paths = sum(rows.values()), self.release.manifest.paths
        if entry.per_hop is not None:  # as if all were held out; rows without numbers of hops are one group
            reader = READERS[paths.benchmark]
            questions = min(questions, entry.per_hop * ((paths.max_hops or reader.HOPS) if reader.HAS_GOLD else 1))
        for contender in entry.paths:
            name, spec = split_name(contender)
            title = f"answer by {name or spec}, {self.mode}"
            proposed = 0 if spec in BASELINES else candidates
            costs = [stage.price_engine(spec, title, questions, _multiply(expected["propose"], proposed))]
            if entry.generator is not None:
                loop = _multiply(expected["loop"], 1 if spec == NO_GRAPH else 1 + 2 * candidates)
                costs.append(stage.price_engine(entry.generator, title, questions, loop))
            yield stage.add_costs(title, costs, questions)

    def make(self) -> stage.StageResult:
        options = self.options()
        options.output.mkdir(parents=True, exist_ok=True)
        summary = run_deliberation(options, Questions.of_options)
        self.refuse_failed(sum(run["failed"] for run in read_record(options.output / RESULTS)["runs"]))
        page.show(options.output)
        if self.mode == self.entry.ways[-1] and self.entry.uses(OWN_ADAPTER):
            output, reports = self.release.output, self.entry.report_folders.values()
            write_card(self.release, {report: read_record(output / report / RESULTS) for report in reports})
        return stage.StageResult(summary)

    def options(self) -> Options:
        """Return the options with which `evaluate_deliberation` would make this evaluation."""
        release, entry, manifest = self.release, self.entry, self.release.manifest
        paths, adapter = manifest.paths, manifest.adapter
        learnt = {} if adapter is None else {"splits": adapter.splits, "joint": adapter.paths == "joint"}
        models = {name: value for name, value in release.options.model_options.items() if value is not None}
        return copy_into(
            Options,
            entry,
            questions=tuple(source.input for source in entry.questions or paths.questions),
            paths=tuple(map(self._fill_folders, entry.paths)),
            output=release.output / entry.report_folders[self.mode],
            kb=None if paths.kb is None else Path(paths.kb.input),
            benchmark=paths.benchmark,
            split=entry.split if entry.questions else paths.split,
            generator=entry.generator and self._fill_folders(entry.generator),
            train=release.datasets / paths_set(paths.benchmark),
            free=self.mode == "free",
            max_hops=paths.max_hops,
            on_error=paths.on_error,
            seed=manifest.seed,
            **learnt,
            **models,
        )

    def _fill_folders(self, spec: str) -> str:
        for placeholder, folder in _ADAPTER_FOLDERS.items():
            spec = spec.replace(placeholder, str(self.release.output / folder))
        return spec


def _multiply(unit_cost: stage.UnitCost, number: int) -> stage.UnitCost:
    return {key: number * value for key, value in unit_cost.items()}
