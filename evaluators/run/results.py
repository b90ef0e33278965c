"""The record of an evaluation: what ran, what each setting scored and what its loop did."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import safe_stepwise
from evaluators.outcomes import Asked, Outcome, statistics_of
from evaluators.run.evaluation import Evaluation, Run, Setting, by_benchmark, code_of
from safe_stepwise import prompts
from safe_stepwise.methods.base import option_values, prompts_digest
from safe_stepwise.metric import judge as judging
from safe_stepwise.records import FAILED, Question, identity
from safe_stepwise.store.files import write_atomically, write_lines
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES

ALL, AVERAGE = "all", "average"
"""Over all questions alike, and the mean of the benchmarks (SAFE v1, Table 3)."""
MEASURES = ("exact_match", "f1", "accuracy")


def write(plan: Evaluation, runs: Sequence[Run]) -> dict[str, Any]:
    """Write trajectories and questions; returns the results, for `finish` to write.

    While the other files change there is no ``results.json``.
    """
    (plan.output / RESULTS).unlink(missing_ok=True)
    lines = (outcome.to_json() for run in runs for outcome in run.outcomes)
    write_lines(plan.output / TRAJECTORIES, lines)
    write_lines(plan.output / QUESTIONS, (_asked(q).to_json() for q in plan.questions))
    return results(plan, runs)


def finish(plan: Evaluation, found: Mapping[str, Any]) -> None:
    """Write ``results.json``: all else is written."""
    text = json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    write_atomically(plan.output / RESULTS, text.encode())


def results(plan: Evaluation, runs: Sequence[Run]) -> dict[str, Any]:
    """The record of an evaluation: its settings, and a run's scores by benchmark and over all."""
    return {
        "version": safe_stepwise.__version__,
        "simulated": any(outcome.simulated for run in runs for outcome in run.outcomes),
        "settings": settings_of(plan),
        "runs": [_record(plan, run, _roles(runs)) for run in runs],
    }


def settings_of(plan: Evaluation) -> dict[str, Any]:
    """All that decides on a run's results, addresses left out."""
    judge = plan.judge
    return {
        **plan.notes,
        "questions": {name: len(p) for name, p in by_benchmark(plan.questions).items()},
        "questions_sha256": identity([identity(question) for question in plan.questions]),
        "methods": list(dict.fromkeys(setting.method.name for setting in plan.settings)),
        "players": _values(setting.names for setting in plan.settings),
        "options": _values(option_values(setting.options) for setting in plan.settings),
        "judge": judge.client.engine.name if judge else None,
        "judge_repeats": judge.repeats if judge else None,
        "judge_skips_exact": judge.skip_exact if judge else None,
        "corpus": {"name": plan.corpus.name, "sha256": plan.corpus.sha256} if plan.corpus else None,
        "prompts_sha256": {
            **{s.method.name: prompts_digest(s.method) for s in plan.settings},
            "judge": prompts.digest(judging.PROMPT),
        },
        "code_sha256": code_of(plan.settings),
    }


def _values(settings: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """By name, all values that any setting has."""
    found: dict[str, dict[Any, None]] = {}
    for setting in settings:
        for name, value in setting.items():
            found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items()}


def _system(setting: Setting) -> dict[str, Any]:
    return {
        "method": setting.method.name,
        "players": setting.names,
        "options": option_values(setting.options),
    }


def _record(plan: Evaluation, run: Run, roles: Sequence[str]) -> dict[str, Any]:
    agreement = judging.count(run.verdicts).agreement
    benchmarks = {
        name: scores([run.outcomes[n] for n in places], roles)
        for name, places in by_benchmark(plan.questions).items()
    }
    return {
        **_system(run.setting),
        "simulated": any(outcome.simulated for outcome in run.outcomes),
        "judge_agreement": asdict(agreement) if agreement else None,
        "benchmarks": benchmarks,
        AVERAGE: {
            measure: _mean([b[measure] for b in benchmarks.values()]) for measure in MEASURES
        },
        ALL: scores(run.outcomes, roles),
    }


def _roles(runs: Sequence[Run]) -> list[str]:
    """All who were asked: each run counts them, so that runs can be laid side by side."""
    attempts = (a for run in runs for o in run.outcomes for a in o.trajectory.attempts)
    return list(dict.fromkeys(role for attempt in attempts for role in attempt.usage))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def scores(outcomes: Sequence[Outcome], roles: Sequence[str] = ()) -> dict[str, Any]:
    """Means over outcomes of one setting, and what its loop did.

    A question that ``failed`` counts as answered with nothing; one whose verdict is ``unscored`` is
    left out of ``accuracy``, which is None without any verdict.
    """
    size = len(outcomes)
    right = sum(outcome.verdict == "correct" for outcome in outcomes)
    judged = right + sum(outcome.verdict == "incorrect" for outcome in outcomes)
    return {
        "exact_match": sum(outcome.exact_match for outcome in outcomes) / size,
        "f1": sum(outcome.f1 for outcome in outcomes) / size,
        "accuracy": right / judged if judged else None,
        "unscored": sum(outcome.verdict == "unscored" for outcome in outcomes),
        "failed": sum(outcome.trajectory.stop_reason == FAILED for outcome in outcomes),
        **asdict(statistics_of(outcomes, roles)),
    }


def _asked(question: Question) -> Asked:
    return Asked(
        question.benchmark,
        question.id,
        question.question,
        question.accepted,
        question.passages,
    )
