"""``truth.jsonl``: what simulated generators did in each chain, to hold measurements against.

A line a question and system whose steps the symbolic generator wrote, in the order of the
trajectories; failed ones have none::

    {"benchmark": "musique", "question_id": "q1", "method": "safe", "players": {...},
     "options": {...}, "conditions": {...}, "is_faithful": false, "missing": [2],
     "steps": [{"number": 1, "mistake": ""}, {"number": 2, "mistake": "value"}], "simulated": true}

``mistake`` and ``missing`` (places in the plan, from 1) are those of `players.truth`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluators.run.evaluation import Evaluation, Setting, SystemRun
from safe_stepwise.methods.loop import GENERATOR
from safe_stepwise.players.truth import truth_of
from safe_stepwise.records import FAILED, canonical_json
from safe_stepwise.store.files import write_lines

TRUTH = "truth.jsonl"


def write_truth(plan: Evaluation, runs: Sequence[SystemRun], folder: Path) -> None:
    """Write the file; none where no generator is simulated so, and an earlier one is gone."""
    lines = [canonical_json(row) for run in runs for row in _rows(plan, run)]
    if lines:
        write_lines(folder / TRUTH, lines)
    else:
        (folder / TRUTH).unlink(missing_ok=True)


def _rows(plan: Evaluation, run: SystemRun) -> Iterator[dict[str, Any]]:
    if not _is_symbolic(run.setting):
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
                "method": outcome.method,
                "players": dict(outcome.players),
                "options": dict(outcome.options),
                "conditions": dict(outcome.conditions),
                "is_faithful": truth.is_faithful,
                "missing": [*truth.missing],
                "steps": [{"number": step.number, "mistake": made} for step, made in steps],
                "simulated": True,
            }


def _is_symbolic(setting: Setting) -> bool:
    generator = setting.players.get(GENERATOR)
    return generator is not None and generator.engine.identity.get("engine") == "symbolic"
