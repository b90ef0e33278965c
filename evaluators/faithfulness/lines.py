"""The judged outcome (a line): its rows in files, and the accepted unfaithful steps that verifiers can learn from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from evaluators.comparison.systems import System
from evaluators.faithfulness.responses import Kind
from evaluators.outcomes import Outcome
from safe_stepwise.checking.faithfulness.grounds import ChainVerdict, Rule, Verdict, verdict_row
from safe_stepwise.methods.loop import read_reply, tries_at_steps
from safe_stepwise.records import Question, Step, Trajectory, as_object
from safe_stepwise.steps import StepError
from safe_stepwise.store.codec import passages_digest
from safe_stepwise.taxonomy import CORRECT

RULES: tuple[Rule, ...] = ("house", "paper")
Verdicts = Mapping[Rule, ChainVerdict]
Pair = tuple[Outcome, Question]
"""An outcome with its question, annotations included."""
AnswerBy = Literal["exact_match", "judge", "rule"]
ANSWERS: tuple[AnswerBy, ...] = get_args(AnswerBy)
COLUMNS = (*get_args(Verdict), *(kind for kind in get_args(Kind) if kind != "chain"))
"""Results of a question under a rule: a verdict on its chain, or why there is none."""


@dataclass(frozen=True, slots=True)
class Line:
    """One judged outcome; README.md describes its row.

    ``taken``: how a vote counts (majority, best of n); ``steps``: numbers and texts of the chain;
    ``verdicts``, and the attempts that they judge (``samples``) of a vote, are by rule.
    """

    outcome: Outcome
    question: Question
    system: System
    taken: str
    response: Kind
    steps: tuple[tuple[int, str], ...] = ()
    verdicts: Verdicts = field(default_factory=dict)
    samples: Mapping[Rule, int] = field(default_factory=dict)

    @property
    def benchmark(self) -> str:
        return self.outcome.benchmark

    @property
    def is_exact(self) -> bool:
        return self.outcome.exact_match == 1


def column_of(line: Line, rule: Rule) -> str:
    """Return one of `COLUMNS` for a line; without evidence it is unjudgeable."""
    if line.response != "chain":
        return line.response
    verdict = line.verdicts.get(rule)
    return verdict.path if verdict else "unjudgeable"


def is_right(line: Line, rule: Rule, measure: AnswerBy) -> bool | None:
    """Return whether an answer is right by a measure; None without a verdict."""
    if measure == "exact_match":
        return line.is_exact
    if measure == "judge":
        return {"correct": True, "incorrect": False}.get(line.outcome.verdict or "")
    verdict = line.verdicts.get(rule)
    # A rule needs a chain to compare an answer; without one, exact match decides.
    return verdict.is_right if verdict else line.is_exact


def is_grounded(question: Question) -> bool:
    """Return whether a question has evidence to judge chains by."""
    return bool(question.evidence or question.decomposition)


def places(lines: Sequence[Line]) -> dict[tuple[System, str], int]:
    """Return the place of each system and way of counting it among `systems`."""
    keys = dict.fromkeys((line.system, line.taken) for line in lines)
    return {key: place for place, key in enumerate(keys)}


def row_of(line: Line, system: int) -> dict[str, Any]:
    """Return a row of ``faithfulness.jsonl``; ``system`` is the place among the systems."""
    return {
        "system": system,
        "benchmark": line.benchmark,
        "question_id": line.outcome.question_id,
        "answer": line.outcome.trajectory.answer,
        "exact_match": line.is_exact,
        "judge": line.outcome.verdict,
        "response": line.response,
        "steps": [{"number": number, "text": text} for number, text in line.steps],
        "rules": {
            rule: verdict_row(verdict) | ({"sample": line.samples[rule]} if rule in line.samples else {})
            for rule, verdict in line.verdicts.items()
        },
    }


def accepted_unfaithful(lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Yield rows of the unfaithful steps that a verifier accepted, in the order of the lines.

    ``accepted_unfaithful.jsonl`` has a line a step, which ``scripts.refine_verifier_steps --accepted`` mines;
    ``passages_sha256`` is that of the passages' titles and texts, as the steps cite them by number::

        {"benchmark": "musique", "question_id": "q1", "rule": "house", "fault": "factual",
         "number": 2, "kind": "Attribution", "text": "According to Passage 3, ...",
         "previous": [{"number": 1, "text": "...", "kind": "Attribution"}], "passages_sha256": "...",
         "method": "safe", "players": {"generator": "g", "verifier": "v"}, "simulated": true}

    Faults are the house's where that rule was measured, else the paper's. Steps of SAFE's loop alone are listed, as
    only there each step has a verdict of its own.
    """
    for line in lines:
        rule = next((rule for rule in RULES if rule in line.verdicts), None)
        if rule is None or line.response != "chain":
            continue
        accepted_by_number = {step.number: step for step in accepted_steps(line.outcome.trajectory)}
        for (number, _), verdict in zip(line.steps, line.verdicts[rule].steps, strict=False):
            if verdict.fault and verdict.fault != "unread" and number in accepted_by_number:
                yield _row(line, accepted_by_number[number], rule, verdict.fault)


def accepted_steps(trajectory: Trajectory) -> Iterator[Step]:
    """Yield the steps that a verifier called Correct."""
    steps = {step.number: step for step in trajectory.steps}
    for attempt in tries_at_steps(trajectory):
        feedback = attempt.feedback
        if not attempt.accepted or feedback is None or feedback.error_type != CORRECT:
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
        "previous": [as_object(step_) for step_ in previous],
        "passages_sha256": passages_digest(line.question.passages),
        "method": line.outcome.method,
        "players": dict(line.outcome.players),
        "simulated": line.outcome.simulated,
    }
