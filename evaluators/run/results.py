"""The record of an evaluation: its settings, each setting's scores and the statistics of its loop.

``truth.jsonl`` holds the mistakes of simulated generators, as truth for measurements: a line a question and system
whose steps the symbolic generator wrote, in the order of the trajectories; failed trajectories have none::

    {"benchmark": "musique", "question_id": "q1", "method": "safe", "players": {...},
     "options": {...}, "conditions": {...}, "is_faithful": false, "missing": [2],
     "steps": [{"number": 1, "mistake": ""}, {"number": 2, "mistake": "value"}], "simulated": true}

``mistake`` and ``missing`` (places in the plan, from 1) are those of `players.truth`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import safe_stepwise
from evaluators.comparison.scores import AVERAGE
from evaluators.comparison.systems import System, differing, values_by_name
from evaluators.outcomes import METRICS, Outcome, QuestionRecord, grouped, statistics_of
from evaluators.prompting import predictions
from evaluators.prompting.measures import summary
from evaluators.run.evaluation import Evaluation, SystemRun, code_of
from safe_stepwise import prompts
from safe_stepwise.methods.base import prompts_digest
from safe_stepwise.methods.loop import GENERATOR
from safe_stepwise.metric import judge as judging
from safe_stepwise.players.truth import truth_of
from safe_stepwise.records import FAILED, as_object, canonical_json, identity
from safe_stepwise.store.files import write_lines
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES

ALL = "all"
"""Scores over all questions; `AVERAGE` is the mean of the benchmarks (SAFE v1, Table 3)."""

TRUTH = "truth.jsonl"


def write(plan: Evaluation, runs: Sequence[SystemRun]) -> dict[str, Any]:
    """Write trajectories and questions; returns the results, which the caller writes last.

    Results are the settings, and each run's scores by benchmark and over all. While the other files
    change there is no ``results.json``.
    """
    (plan.output / RESULTS).unlink(missing_ok=True)
    outcomes = [outcome for run in runs for outcome in run.outcomes]
    records = (QuestionRecord.from_question(question, plan.conditions) for question in plan.questions)
    write_lines(plan.output / TRAJECTORIES, map(Outcome.to_json, outcomes))
    write_lines(plan.output / QUESTIONS, map(QuestionRecord.to_json, records))
    truth = [canonical_json(row) for run in runs for row in _truth(plan, run)]
    if truth:
        write_lines(plan.output / TRUTH, truth)
    else:
        (plan.output / TRUTH).unlink(missing_ok=True)
    folders = _export(plan, runs)
    roles = roles_of(outcomes)
    agreements = [judging.count(run.verdicts).agreement for run in runs]
    return {
        "version": safe_stepwise.__version__,
        "simulated": any(outcome.simulated for outcome in outcomes),
        "settings": settings_of(plan),
        "runs": [
            {
                **record(run.outcomes, roles),
                "judge_agreement": asdict(agreement) if agreement else None,
                "predictions": f"{predictions.FOLDER}/{folder}",
            }
            for run, agreement, folder in zip(runs, agreements, folders, strict=True)
        ],
    }


def _truth(plan: Evaluation, run: SystemRun) -> Iterator[dict[str, Any]]:
    generator = run.setting.players.get(GENERATOR)
    if generator is None or generator.engine.identity.get("engine") != "symbolic":
        return
    for question, outcome in zip(plan.questions, run.outcomes, strict=True):
        trajectory = outcome.trajectory
        if trajectory.stop_reason == FAILED or not trajectory.steps:
            continue
        if truth := truth_of(question, trajectory):
            steps = zip(trajectory.steps, truth.mistakes, strict=True)
            yield {
                "benchmark": outcome.benchmark,
                "question_id": outcome.question_id,
                **outcome.system,
                "is_faithful": truth.is_faithful,
                "missing": [*truth.missing],
                "steps": [{"number": step.number, "mistake": mistake} for step, mistake in steps],
                "simulated": True,
            }


def _export(plan: Evaluation, runs: Sequence[SystemRun]) -> list[str]:
    """Write the predictions; returns each run's folder, by its method and what sets it apart."""
    systems = [System.make(**run.outcomes[0].system) for run in runs]
    differences = [differing([peer for peer in systems if peer.method == system.method]) for system in systems]
    titles = [f"{system.method} {system.describe(names)}" for system, names in zip(systems, differences, strict=True)]
    folders = predictions.folders(titles)
    answered = [tuple(zip(plan.questions, run.outcomes, strict=True)) for run in runs]
    predictions.write(
        dict(zip(folders, answered, strict=True)),
        plan.scoring,
        plan.output / predictions.FOLDER,
        {folder: system.as_json() for folder, system in zip(folders, systems, strict=True)},
    )
    return folders


def settings_of(plan: Evaluation) -> dict[str, Any]:
    """Return all settings that decide a run's results, without addresses."""
    judge = plan.judge
    options = [setting.option_record for setting in plan.settings]
    digests = values_by_name((s.method.name, prompts_digest(s.method, s.options)) for s in plan.settings)
    return {
        **plan.notes,
        "questions": dict(Counter(question.benchmark for question in plan.questions)),
        "questions_sha256": identity([identity(question) for question in plan.questions]),
        "methods": list(dict.fromkeys(setting.method.name for setting in plan.settings)),
        "players": values_by_name(item for s in plan.settings for item in s.names.items()),
        "options": values_by_name(item for values in options for item in values.items()),
        "judge": judge.client.name if judge else None,
        **({f"judge_{name}": value for name, value in judge.client.allowance.plain.items()} if judge else {}),
        **plan.judging,
        "judge_repeats": judge.repeats if judge else None,
        "judge_skips_exact": judge.skip_exact if judge else None,
        **plan.evidence,
        "prompts_sha256": {
            **{name: " ".join(values) for name, values in digests.items()},
            "judge": prompts.digest(judging.PROMPT),
        },
        "code_sha256": code_of(plan.settings),
    }


def record(outcomes: Sequence[Outcome], roles: Sequence[str]) -> dict[str, Any]:
    """Return one system's scores and statistics; ``roles`` are counted in every system."""
    by_benchmark = grouped(outcomes, lambda outcome: outcome.benchmark)
    benchmarks = {name: scores(group, roles) for name, group in by_benchmark.items()}
    columns = {metric: [group[metric] for group in benchmarks.values()] for metric in METRICS}
    return {
        **outcomes[0].system,
        "simulated": any(outcome.simulated for outcome in outcomes),
        "benchmarks": benchmarks,
        AVERAGE: {name: None if None in values else sum(values) / len(values) for name, values in columns.items()},
        ALL: scores(outcomes, roles),
    }


def roles_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return all roles with a call; each run counts them, so that runs can be compared."""
    attempts = (attempt for outcome in outcomes for attempt in outcome.trajectory.attempts)
    return list(dict.fromkeys(role for attempt in attempts for role in attempt.usage))


def scores(outcomes: Sequence[Outcome], roles: Sequence[str] = ()) -> dict[str, Any]:
    """Compute means over outcomes of one setting, and the statistics of its loop.

    A ``failed`` question counts as an empty answer; a question with verdict ``unscored`` is left out
    of ``accuracy``, which is None without any verdict. Prompting methods add `summary`.
    """
    size, verdicts = len(outcomes), Counter(outcome.verdict for outcome in outcomes)
    prompting = summary(outcomes)
    judged = verdicts["correct"] + verdicts["incorrect"]
    return {
        "exact_match": sum(outcome.exact_match for outcome in outcomes) / size,
        "f1": sum(outcome.f1 for outcome in outcomes) / size,
        "accuracy": verdicts["correct"] / judged if judged else None,
        "unscored": verdicts["unscored"],
        "failed": sum(outcome.trajectory.stop_reason == FAILED for outcome in outcomes),
        **as_object(statistics_of(outcomes, roles)),
        **({"prompting": prompting} if prompting else {}),
    }
