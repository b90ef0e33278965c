"""The stages that evaluate methods on the release's evaluation samples: the main evaluation and those of blocks.

An evaluation runs each method with every combination of its players and options on every question.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from builders.benchmarks import BENCHMARKS
from builders.verified.evaluation_questions import read
from evaluators.run.command import run_evaluation
from evaluators.run.evaluation import ALL
from evaluators.run.options import Options
from evaluators.run.trial import PROBED_ROLES
from evaluators.traces import page
from releases import stage
from releases.manifest import OWN_ADAPTER, OWN_GENERATOR, EvaluationEntry, Manifest
from releases.stages.training import AdapterStage, GeneratorStage
from safe_stepwise.commands.options import copy_into
from safe_stepwise.errors import UserError, at_place, check_choice
from safe_stepwise.methods import METHODS, base, limits
from safe_stepwise.records import canonical_json
from safe_stepwise.store.names import ADAPTER, BLOCKS, DATASETS, GENERATOR, REPORT, RESULTS, VALIDATION
from trainers.checkpoints import read_record


@dataclass(frozen=True)
class EvaluationStage(stage.Stage[Manifest]):
    """An evaluation, and the adapter that plays in it, if any."""

    entry: EvaluationEntry
    home: Path
    """The folder that gets the report: the release's, a block's, or one of a block's adapters."""
    adapter: AdapterStage | None = None
    """The adapter that replaces `OWN_ADAPTER`; its card gets the scores."""

    @classmethod
    def from_manifest(cls, release: stage.Release[Any]) -> "Iterator[EvaluationStage]":
        """Yield the main evaluation, then those of blocks: one for each adapter of a block, or one without any."""
        manifest: Manifest = release.manifest
        adapter = None if manifest.adapter is None else AdapterStage.of_release(release)
        if manifest.evaluation is not None:
            yield cls(release, "evaluation", manifest.evaluation, release.output, adapter)
        for name, block in manifest.blocks.items():
            if block.evaluation is not None:
                if not block.adapters:
                    yield cls(release, name, block.evaluation, release.output / BLOCKS / name, adapter)
                for adapter in AdapterStage.of_block(release, name):
                    yield cls(release, name, block.evaluation, adapter.home, adapter)

    @property
    def needs(self) -> list[str]:
        uses_adapter = self.entry.uses(OWN_ADAPTER) and (self.adapter is None or self.adapter.name == ADAPTER)
        models = [ADAPTER] * uses_adapter + [GENERATOR] * self.entry.uses(OWN_GENERATOR)
        return [DATASETS, *models]

    def validate(self) -> None:
        entry, place = self.entry, "evaluation" if self.name == "evaluation" else f"blocks.{self.name}.evaluation"
        trained = {*self.release.manifest.trained, *([OWN_ADAPTER] if self.adapter is not None else [])}
        for name in entry.methods:
            check_choice(name, METHODS, f"{place}.methods")
        for role, specs in (("generator", entry.generator), ("verifier", entry.verifier)):
            for spec in specs:
                stage.check_player(spec, f"{place}.{role}", trained)
            if not specs or len(set(specs)) < len(specs):
                raise UserError(f"{place}.{role}: name at least one, and each once")
        if entry.judge is not None:
            stage.check_player(entry.judge, f"{place}.judge", trained)
        if not entry.methods:
            raise UserError(f"{place}.methods: name at least one")
        for role in entry.examples or ():
            check_choice(role, PROBED_ROLES, f"{place}.examples:")
        if entry.judge_without_question and entry.judge is None:
            raise UserError(f"{place}.judge_without_question: there is no judge; name one")
        with at_place(place):
            _ = [*self.options().combinations()]

    def check(self) -> None:
        if self.missing():
            raise UserError(
                f"{self.entry.corpus} is not here: the passages that evidence is searched in; make it "
                "with safe-stepwise build_corpus"
            )

    def missing(self) -> list[str]:
        corpus = self.entry.corpus
        return [] if corpus is None or corpus.is_file() else [f"{corpus.name} is not here"]

    def price(self, forecast: stage.Forecast) -> Iterator[stage.CostEstimate]:
        """Estimate calls and tokens by method; a request that an earlier part sends is counted there."""
        entry, manifest = self.entry, self.release.manifest
        builds = zip(manifest.builds, forecast.build_rows, strict=True)
        samples = [min(rows, manifest.evaluation_size) for build, rows in builds if build.split == VALIDATION]
        questions = sum(min(size, entry.limit or size) for size in samples)
        options = self.options()
        costs: dict[str, list[stage.CostEstimate]] = {name: [] for name in entry.methods}
        judged = 0
        for method, players, method_options in options.combinations():
            values, conditions = base.option_values(method_options), (entry.drop_gold, entry.corpus, options.allowed)
            key = method.name, *players.items(), canonical_json(values), *conditions
            name = "searching" if entry.corpus and "verifier" in players else method.name
            unit_cost = _find_unit_cost(name, values, forecast.expectations["evaluation"])
            pending = forecast.count_new_questions(key, questions)
            costs[method.name].append(stage.price_engine(players["generator"], "", pending, unit_cost))
            judged += forecast.count_new_questions((key, entry.judge), questions)
        for name, method_costs in costs.items():
            yield stage.add_costs(f"evaluate {name}", method_costs)
        if entry.judge is not None:
            yield stage.price_engine(entry.judge, "judge", judged, forecast.expectations["evaluation"]["judge"])

    def make(self) -> stage.StageResult:
        summary = run_evaluation(self.options(), read, BENCHMARKS)
        self.refuse_failed(sum(run[ALL]["failed"] for run in read_record(self.home / REPORT / RESULTS)["runs"]))
        page.show(self.home / REPORT)
        if self.adapter is not None:
            self.adapter.write_card()
        return stage.StageResult(summary)

    def options(self) -> Options:
        """Return the options with which `evaluate_stepwise` would make this evaluation."""
        release, entry = self.release, self.entry
        adapter = str(release.output / ADAPTER if self.adapter is None else self.adapter.model)
        generator = str(GeneratorStage(release, GENERATOR).model) if entry.uses(OWN_GENERATOR) else ""

        def fill_models(spec: str) -> str:
            return spec.replace(OWN_ADAPTER, adapter).replace(OWN_GENERATOR, generator)

        return copy_into(
            Options,
            entry,
            questions=str(release.datasets),
            output=self.home / REPORT,
            report=self.home / REPORT,
            method=entry.methods,
            generator=tuple(map(fill_models, entry.generator)),
            verifier=tuple(map(fill_models, entry.verifier)),
            judge=None if entry.judge is None else fill_models(entry.judge),
            seed=release.manifest.seed,
            allowance=entry.allowed(release.manifest.allowance),
            option=(f"verdict_order={entry.verdict_order}",) if entry.verdict_order else (),
            **release.options.model_options,
        )


def _find_unit_cost(name: str, options: dict[str, Any], expected: dict[str, Any]) -> stage.UnitCost:
    """Return the calls and tokens of one question by a method's name, its retries and votes (of one prompt)."""
    unit_cost: stage.UnitCost = expected.get(name, expected["other"])
    if (calls := expected.get(name, {}).get("calls_by_retries")) and "max_retries" in options:
        share = float(np.interp(limits.retries_of(options), [*calls], [*calls.values()])) / unit_cost["calls"]
        return {count: unit_cost[count] * share for count in stage.COST_FIELDS if count in unit_cost}
    times = {**dict.fromkeys(unit_cost, options.get("samples", 1)), "computed": 1}  # votes share one prompt
    return {count: unit_cost[count] * times[count] for count in stage.COST_FIELDS if count in unit_cost}
