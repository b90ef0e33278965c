"""What is written of an evaluation: results, trajectories and questions, a page and a figure.

The trajectories and questions have the form of `evaluators.outcomes`, which the viewer reads;
``exact_match`` is whether the first answer is right, by the rule of the figures.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import safe_stepwise
from evaluators.deliberation.figure import figure
from evaluators.deliberation.measuring import RESAMPLES, Answered, differences, measured, scored
from evaluators.deliberation.page import page
from evaluators.deliberation.running import Plan, Run
from evaluators.deliberation.scorers import METRICS, OURS
from evaluators.outcomes import Outcome, QuestionRecord
from safe_stepwise.methods.path_proposing import prompt_digest
from safe_stepwise.records import identity
from safe_stepwise.store.files import write_atomically, write_lines
from safe_stepwise.store.names import JOURNAL, QUESTIONS, RESULTS, TRAJECTORIES

PAGE, FIGURE = "deliberation.md", "hits_by_hop.png"
FILES = (JOURNAL, TRAJECTORIES, QUESTIONS, RESULTS, PAGE, FIGURE)
GRAPH = ".graph"
"""A folder that a large graph is in until the end."""
OWNED = (*FILES, GRAPH)
"""What an evaluation writes."""


def write(plan: Plan, runs: Sequence[Run]) -> dict[str, Any]:
    """Write all files, ``results.json`` last; returns what is in it."""
    (plan.output / RESULTS).unlink(missing_ok=True)
    found = {run.contender.name: _scored(plan, run) for run in runs}
    outcomes = [one for run in runs for one in _outcomes(plan, run, found[run.contender.name])]
    records = (_record(one) for one in found[runs[0].contender.name])
    write_lines(plan.output / TRAJECTORIES, map(Outcome.to_json, outcomes))
    write_lines(plan.output / QUESTIONS, map(QuestionRecord.to_json, records))
    results = _results(plan, runs, found)
    write_atomically(plan.output / FIGURE, figure(results["runs"]))
    write_atomically(plan.output / PAGE, page(results).encode("utf-8", "backslashreplace"))
    text = json.dumps(results, indent=2, sort_keys=True, ensure_ascii=False)
    write_atomically(plan.output / RESULTS, f"{text}\n".encode("utf-8", "backslashreplace"))
    return results


def _scored(plan: Plan, run: Run) -> list[Answered]:
    pairs = zip(plan.source.asked, run.trajectories, strict=True)
    return [scored(asked, trajectory) for asked, trajectory in pairs]


def _results(plan: Plan, runs: Sequence[Run], found: Mapping[str, Sequence[Answered]]) -> dict[str, Any]:
    told = [
        {
            "name": run.contender.name,
            "players": plan.names(run.contender),
            "conditions": plan.label(run.contender),
            "simulated": plan.is_simulated(run.contender),
            **measured(found[run.contender.name], plan.seed),
        }
        for run in runs
    ]
    first = told[0]
    return {
        "version": safe_stepwise.__version__,
        "simulated": any(run["simulated"] for run in told),
        "scorer": OURS,
        **{name: first[name] for name in (*METRICS, "questions", "failed")},
        "by_hop": {
            hop: {name: of[name] for name in (*METRICS, "questions", "failed")} for hop, of in first["by_hop"].items()
        },
        "settings": _settings(plan),
        "runs": told,
        "differences": differences(found, plan.seed) if len(found) > 1 else [],
    }


def _settings(plan: Plan) -> dict[str, Any]:
    """All that decides on the results, addresses left out."""
    return {
        **plan.notes,
        "questions": len(plan.source.asked),
        "questions_sha256": identity([identity(one.question) for one in plan.source.asked]),
        "paths": [one.name for one in plan.contenders],
        "generator": None if plan.generator is None else plan.generator.name,
        "options": plan.told,
        "seed": plan.seed,
        "resamples": RESAMPLES,
        "prompt_sha256": prompt_digest(),
        "code_sha256": plan.code(),
    }


def _outcomes(plan: Plan, run: Run, found: Sequence[Answered]) -> list[Outcome]:
    return [
        Outcome(
            benchmark=one.asked.question.benchmark,
            method=one.trajectory.method,
            players=plan.names(run.contender),
            options=plan.told,
            question_id=one.asked.question.id,
            exact_match=one.scores[OURS].hits_at_1,
            f1=one.scores[OURS].f1 or 0.0,
            verdict=None,
            trajectory=one.trajectory,
            simulated=plan.is_simulated(run.contender),
            conditions=plan.label(run.contender),
            measures={name: asdict(score) for name, score in one.scores.items()},
        )
        for one in found
    ]


def _record(one: Answered) -> QuestionRecord:
    question = one.asked.question
    gold = tuple(sorted(question.answers))
    return QuestionRecord(question.benchmark, question.id, question.question, gold, ())
