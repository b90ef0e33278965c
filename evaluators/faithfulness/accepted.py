"""Steps that a verifier accepted and that are unfaithful all the same: what to train it on.

``accepted_unfaithful.jsonl`` has a line a step, which ``scripts.refine_verifier_steps --accepted``
mines; ``passages_sha256`` is that of the passages' titles and texts, as the steps cite them by
number::

    {"benchmark": "musique", "question_id": "q1", "rule": "house", "fault": "factual",
     "number": 2, "kind": "Attribution", "text": "According to Passage 3, ...",
     "previous": [{"number": 1, "text": "...", "kind": "Attribution"}], "passages_sha256": "...",
     "method": "safe", "players": {"generator": "g", "verifier": "v"}, "simulated": true}

Faults are the house's where that rule was measured, else the paper's. Steps of SAFE's loop alone
are listed, as only there each step has a verdict of its own.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from evaluators.faithfulness.lines import RULES, Line
from safe_stepwise.methods.loop import read_reply, tries_at_steps
from safe_stepwise.records import Step, Trajectory, as_object
from safe_stepwise.steps import StepError
from safe_stepwise.store.codec import passages_digest
from safe_stepwise.taxonomy import CORRECT


def accepted_unfaithful(lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """The rows, in the order of the lines."""
    for line in lines:
        rule = next((rule for rule in RULES if rule in line.verdicts), None)
        if rule is None or line.response != "chain":
            continue
        known = {step.number: step for step in accepted(line.outcome.trajectory)}
        for (number, _), judged in zip(line.steps, line.verdicts[rule].steps, strict=False):
            if judged.fault and judged.fault != "unread" and number in known:
                yield _row(line, known[number], rule, judged.fault)


def accepted(trajectory: Trajectory) -> Iterator[Step]:
    """The steps that a verifier called Correct."""
    steps = {step.number: step for step in trajectory.steps}
    for attempt in tries_at_steps(trajectory):
        said = attempt.feedback
        if not attempt.accepted or said is None or said.error_type != CORRECT:
            continue
        try:
            step = read_reply(attempt.text, attempt.number)
        except StepError:
            continue
        if steps.get(step.number) == step:
            yield step


def _row(line: Line, step: Step, rule: str, fault: str) -> dict[str, Any]:
    previous = [s for s in line.outcome.trajectory.steps if s.number < step.number]
    return {
        "benchmark": line.benchmark,
        "question_id": line.outcome.question_id,
        "rule": rule,
        "fault": fault,
        **as_object(step),
        "previous": [as_object(one) for one in previous],
        "passages_sha256": passages_digest(line.question.passages),
        "method": line.outcome.method,
        "players": dict(line.outcome.players),
        "simulated": line.outcome.simulated,
    }
