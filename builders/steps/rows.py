"""What a step-level verifier set is made of: labelled steps, and candidates that were refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from safe_stepwise.records import Feedback, Question, Step, identity
from safe_stepwise.store.names import ContextKind, Origin
from safe_stepwise.taxonomy import MISSING_EVIDENCE


@dataclass(frozen=True)
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
    context: ContextKind = "original"
    borrowed: str | None = None
    """The question of the benchmark whose passage stands among this one's, if there is one."""
    twin: bool = False
    """Whether it is the twin of a row whose evidence is missing."""
    family: str = ""
    """The weakness of a verifier that a row of refinement shows (`weaknesses`), if that is said."""

    @property
    def incomplete(self) -> bool:
        """Whether it is of the incomplete-evidence setting: a passage was taken away."""
        return self.twin or self.feedback.error_type == MISSING_EVIDENCE

    @cached_property
    def id(self) -> str:
        """32 hex digits of what the row says, its teacher and origin aside."""
        q = self.question
        said = [q.benchmark, q.id, [s.text for s in self.previous], self.step.text]
        return identity([*said, self.feedback.error_type])[:32]

    @property
    def content(self) -> dict[str, Any]:
        """All but the question, by the names under which `row_of` reads it from JSON."""
        return {
            "previous": self.previous,
            "step": self.step,
            "feedback": self.feedback,
            "origin": self.origin,
            "teacher": self.teacher,
            "context": self.context,
            "borrowed": self.borrowed,
            "twin": self.twin,
            "family": self.family,
        }


def row_of(question: Question, content: Mapping[str, Any]) -> StepRow:
    """The row of a question with this `StepRow.content`, which may have more keys."""
    return StepRow(
        question,
        tuple(Step(**step) for step in content["previous"]),
        Step(**content["step"]),
        Feedback(**content["feedback"]),
        content["origin"],
        content["teacher"],
        content.get("context", "original"),
        content.get("borrowed"),
        content.get("twin", False),
        content.get("family", ""),
    )


class TrajectoryError(Exception):
    """A trajectory that is not kept; the message is the reason, its kind before the colon."""


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

    @classmethod
    def of(cls, question: Question, reason: str, text: str = "") -> Refused:
        """A question without an ideal trajectory."""
        return cls(question.benchmark, question.id, "", None, reason, text)


@dataclass(frozen=True, slots=True)
class Made:
    """What came of one question."""

    rows: tuple[StepRow, ...]
    refused: tuple[Refused, ...]
