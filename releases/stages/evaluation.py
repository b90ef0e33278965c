"""The stages that evaluate methods on the release's evaluation samples: the main evaluation and those of blocks.

An evaluation runs each method with every combination of its players and options on every question. A
verifier that rejects at random may be *matched*: it rejects as often as the first verifier (`measure_rate`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from builders.benchmarks import BENCHMARKS
from builders.verified.evaluation_questions import read
from evaluators.outcomes import read_outcomes
from evaluators.run.command import run_evaluation
from evaluators.run.evaluation import ALL
from evaluators.run.options import Options
from evaluators.traces import page
from releases.manifest import MEASURED_RATE, METHOD_OPTIONS, OWN_ADAPTER, OWN_GENERATOR, EvaluationEntry, Manifest
from releases.settings import check_evaluation
from releases.stage import (
    COST_FIELDS,
    CostEstimate,
    Forecast,
    Release,
    Result,
    Stage,
    UnitCost,
    add_costs,
    price_engine,
)
from releases.stages.training import AdapterStage, GeneratorStage
from safe_stepwise.commands.options import copy_into
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.methods import base
from safe_stepwise.methods.limits import Limits, retries_of
from safe_stepwise.methods.loop import MALFORMED
from safe_stepwise.records import canonical_json
from safe_stepwise.store.files import remove_folder
from safe_stepwise.store.names import ADAPTER, BLOCKS, DATASETS, GENERATOR, REPORT, RESULTS, VALIDATION, WORK
from safe_stepwise.taxonomy import CORRECT
from trainers.checkpoints import read_json


@dataclass(frozen=True)
class EvaluationStage(Stage[Manifest]):
    """An evaluation, and the adapter that plays in it, if any."""

    entry: EvaluationEntry
    home: Path
    """The folder that gets the report: the release's, a block's, or one of a block's adapters."""
    adapter: AdapterStage | None = None
    """The adapter for which `OWN_ADAPTER` stands, and whose card gets the scores."""

    @classmethod
    def from_manifest(cls, release: Release[Any]) -> "Iterator[EvaluationStage]":
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
        place = "evaluation" if self.name == "evaluation" else f"blocks.{self.name}.evaluation"
        trained = {*self.release.manifest.trained, *([OWN_ADAPTER] if self.adapter is not None else [])}
        check_evaluation(self.entry, place, trained)
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

    def price(self, forecast: Forecast) -> Iterator[CostEstimate]:
        """Estimate calls and tokens by method; a request that an earlier part sends is counted there."""
        entry, manifest = self.entry, self.release.manifest
        builds = zip(manifest.builds, forecast.build_rows, strict=True)
        samples = [min(rows, manifest.evaluation_size) for build, rows in builds if build.split == VALIDATION]
        questions = sum(min(size, entry.limit or size) for size in samples)
        options = self.options()
        costs: dict[str, list[CostEstimate]] = {name: [] for name in entry.methods}
        judged = 0
        for method, players, method_options in options.combinations():
            values, conditions = base.option_values(method_options), (entry.drop_gold, entry.corpus, options.allowed)
            key = method.name, *players.items(), canonical_json(values), *conditions
            name = "searching" if entry.corpus and "verifier" in players else method.name
            unit_cost = _unit_cost(name, values, forecast.expected["evaluation"])
            pending = forecast.count_new_questions(key, questions)
            costs[method.name].append(price_engine(players["generator"], "", pending, unit_cost))
            judged += forecast.count_new_questions((key, entry.judge), questions)
        for name, method_costs in costs.items():
            yield add_costs(f"evaluate {name}", method_costs)
        if entry.judge is not None:
            yield price_engine(entry.judge, "judge", judged, forecast.expected["evaluation"]["judge"])

    def make(self) -> Result:
        remove_folder(self.home / REPORT / REPORT)  # an older version wrote tables there
        options = self.options()
        if self.entry.matched:
            rate = measure_rate(options)
            options = replace(options, verifier=tuple(spec.replace(MEASURED_RATE, rate) for spec in options.verifier))
        summary = run_evaluation(options, read, BENCHMARKS)
        self.refuse_failed(sum(run[ALL]["failed"] for run in read_json(self.home / REPORT / RESULTS)["runs"]))
        page.show(self.home / REPORT)
        if self.adapter is not None:
            self.adapter.write_card()
        return Result(summary)

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


def measure_rate(options: Options) -> str:
    """Measure the share of steps that the first verifier rejects; return it with three decimals.

    The loop runs with the first generator and the most retries, in a folder of unfinished work. A step in the same
    words counts once, an unreadable verdict as a rejection, a reply that is no step not at all; without steps the rate
    is 0.
    """
    folder = options.output / WORK / "rate"
    loop = {field.name for field in fields(Limits)}
    # The first value of each option of the loop; options of other methods do not apply.
    choices: dict[str, Any] = {name: getattr(options, name)[:1] if name in loop else () for name in METHOD_OPTIONS}
    choices["max_retries"] = tuple(sorted(options.max_retries)[-1:])
    measured = replace(
        options,
        **choices,
        output=folder,
        report=folder,
        method=("safe",),
        generator=options.generator[:1],
        verifier=(next(spec for spec in options.verifier if MEASURED_RATE not in spec),),
        judge=None,
        judge_without_question=None,
    )
    run_evaluation(measured, read, BENCHMARKS)
    labels = {
        (outcome.benchmark, outcome.question_id, attempt.number, attempt.text): attempt.feedback.error_type
        for outcome in read_outcomes(folder)
        for attempt in outcome.trajectory.attempts
        if attempt.feedback is not None and attempt.feedback.error_type != MALFORMED
    }
    rejected = sum(label != CORRECT for label in labels.values())
    return f"{rejected / max(len(labels), 1):.3f}"


def _unit_cost(name: str, options: dict[str, Any], expected: dict[str, Any]) -> UnitCost:
    """Return the calls and tokens of one question by a method's name, its retries and votes (of one prompt)."""
    unit_cost: UnitCost = expected.get(name, expected["other"])
    if (calls := expected.get(name, {}).get("calls_by_retries")) and "max_retries" in options:
        share = float(np.interp(retries_of(options), [*calls], [*calls.values()])) / unit_cost["calls"]
        return {count: unit_cost[count] * share for count in COST_FIELDS if count in unit_cost}
    votes = options.get("samples", 1)
    return {
        count: unit_cost[count] * (1 if count == "computed" else votes) for count in COST_FIELDS if count in unit_cost
    }
