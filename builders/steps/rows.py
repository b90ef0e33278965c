"""What a step-level verifier set is made of: labelled steps, and candidates that were refused."""

from __future__ import annotations

from dataclasses import dataclass

from safe_stepwise.records import Feedback, Question, Step, identity
from safe_stepwise.store.names import Origin


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step as a verifier sees it, and what a verifier should say of it.

    ``question`` holds the passages in the order and number in which steps cite them. ``previous``
    are the accepted steps before it; its position is ``step.number``.
    """

    question: Question
    previous: tuple[Step, ...]
    step: Step
    feedback: Feedback
    origin: Origin
    teacher: str

    @property
    def id(self) -> str:
        """32 hex digits of what the row says, its teacher and origin aside."""
        q = self.question
        said = [q.benchmark, q.id, [s.text for s in self.previous], self.step.text]
        return identity([*said, self.feedback.error_type])[:32]


@dataclass(frozen=True, slots=True)
class Refused:
    """A candidate that is in no split: a question, or one step of it, and why.

    ``error_type`` is what it was meant to have ("" for an ideal trajectory); ``reason`` begins
    with one of a few fixed clauses, so that it can be counted up to its first colon.
    """

    benchmark: str
    question_id: str
    error_type: str
    position: int | None
    reason: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """What came of one question."""

    rows: tuple[StepRow, ...]
    refused: tuple[Refused, ...]
