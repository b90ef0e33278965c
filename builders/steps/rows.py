"""What a step-level verifier set is made of: labelled steps, and candidates that were refused."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from safe_stepwise.feedback import format_feedback
from safe_stepwise.records import Feedback, Question, Step, StepKind, identity
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.store import boundary
from safe_stepwise.store.names import IDEAL, REFINED, ContextKind, Origin
from safe_stepwise.taxonomy import CORRECT, MISSING_EVIDENCE


def question_key(benchmark: str, question: str) -> str:
    """A question's key over all benchmarks."""
    return f"{benchmark}\0{question}"


@dataclass(frozen=True)
class StepRow:
    """One step as a verifier sees it, and the feedback that a verifier should give.

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
    """The weakness of a verifier that a row of refinement shows (`refinement.family_of`), if that is said."""

    @property
    def incomplete(self) -> bool:
        """Whether it is of the incomplete-evidence setting: a passage was taken away."""
        return self.twin or self.feedback.error_type == MISSING_EVIDENCE

    @property
    def question_key(self) -> str:
        """The key of its question over all benchmarks."""
        return question_key(self.question.benchmark, self.question.id)

    @cached_property
    def id(self) -> str:
        """32 hex digits of what the row says, its teacher and origin aside."""
        q, previous = self.question, [step.text for step in self.previous]
        return identity([q.benchmark, q.id, previous, self.step.text, self.feedback.error_type])[:32]

    @property
    def content(self) -> dict[str, Any]:
        """All fields but the question."""
        return {name: getattr(self, name) for name in _CONTENT}


_CONTENT = tuple(field.name for field in fields(StepRow) if field.name != "question")


def packed(rows: Sequence[StepRow]) -> dict[str, Any]:
    """Rows of few questions as an object for JSON that has each question once."""
    questions = list(dict.fromkeys(row.question for row in rows))
    return {
        "questions": questions,
        "rows": [{"question": questions.index(row.question), **row.content} for row in rows],
    }


def unpacked(content: Mapping[str, Any]) -> Iterator[StepRow]:
    """The rows of what `packed` made, in their order."""
    questions = boundary.read(tuple[Question, ...], content["questions"])
    return (boundary.read(StepRow, {**row, "question": questions[row["question"]]}) for row in content["rows"])


def well_formed(text: str, kind: StepKind, position: int) -> Step | None:
    """A text as a step at a position; None where it breaks the grammar of steps."""
    step = Step(position, " ".join(text.split()), kind)
    try:
        format_step(step)
    except StepError:
        return None
    return step


def check_row(row: StepRow) -> None:
    """Raise ValueError, in one line, for a row that is in no published shape.

    Steps have to be valid and count on from 1; the label has to be of the taxonomy, and ``Correct``
    exactly when the row is ideal (a refined one may be either).
    """
    format_feedback(row.feedback)
    steps = (*row.previous, row.step)
    for step in steps:
        format_step(step)
    numbers = [step.number for step in steps]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"steps are numbered {numbers}")
    label = row.feedback.error_type
    if row.origin != REFINED and (row.origin == IDEAL) != (label == CORRECT):
        raise ValueError(f"origin {row.origin} with the label {label}")


class TrajectoryError(Exception):
    """A trajectory that is not kept; the message is the reason, its kind before the colon."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A candidate that is in no split: a question, or one step of it, and the reason.

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
    def of_question(
        cls, question: Question, reason: str, text: str = "", error_type: str = "", position: int | None = None
    ) -> "Refused":
        """Refuse a question without an ideal trajectory, or one step of it."""
        return cls(question.benchmark, question.id, error_type, position, reason, text)

    @classmethod
    def of_row(cls, row: StepRow, reason: str) -> "Refused":
        """Refuse a whole row."""
        error_type = row.feedback.error_type if row.origin != IDEAL else ""
        return cls.of_question(row.question, " ".join(reason.split()), row.step.text, error_type, row.step.number)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The rows and refusals of one question."""

    rows: tuple[StepRow, ...]
    refused: tuple[Refused, ...]
