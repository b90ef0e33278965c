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
    """Return a question's key, which is unique over all benchmarks."""
    return f"{benchmark}\0{question}"


@dataclass(frozen=True)
class StepRow:
    """One step as a verifier sees it, with passages as steps number them, and the feedback that it should get."""

    question: Question
    previous: tuple[Step, ...]
    step: Step
    feedback: Feedback
    origin: Origin
    teacher: str
    context: ContextKind = "original"
    borrowed: str | None = None
    """The id of the question that lent a passage to this one, if there is one."""
    twin: bool = False
    """Whether the row is the twin of a Missing Evidence row: the same words, with the passage present."""
    family: str = ""
    """The weakness of a verifier that a refined row shows (`weaknesses.family_of`); empty if none is recorded."""

    @property
    def incomplete(self) -> bool:
        """Whether the row belongs to the incomplete-evidence set: a Missing Evidence row or its twin."""
        return self.twin or self.feedback.error_type == MISSING_EVIDENCE

    @property
    def question_key(self) -> str:
        """The question's key, which is unique over all benchmarks."""
        return question_key(self.question.benchmark, self.question.id)

    @cached_property
    def id(self) -> str:
        """32 hex digits of the digest of question, steps and label; teacher and origin do not count."""
        q, previous = self.question, [step.text for step in self.previous]
        return identity([q.benchmark, q.id, previous, self.step.text, self.feedback.error_type])[:32]

    @property
    def content(self) -> dict[str, Any]:
        """All fields except the question, by name."""
        return {name: getattr(self, name) for name in _CONTENT}


_CONTENT = tuple(field.name for field in fields(StepRow) if field.name != "question")


def pack_rows(rows: Sequence[StepRow]) -> dict[str, Any]:
    """Return rows as an object for JSON that has each question once."""
    questions = list(dict.fromkeys(row.question for row in rows))
    return {
        "questions": questions,
        "rows": [{"question": questions.index(row.question), **row.content} for row in rows],
    }


def unpack_rows(content: Mapping[str, Any]) -> Iterator[StepRow]:
    """Yield the rows of an object that `pack_rows` made, in order."""
    questions = boundary.read(tuple[Question, ...], content["questions"])
    return (boundary.read(StepRow, {**row, "question": questions[row["question"]]}) for row in content["rows"])


def well_formed(text: str, kind: StepKind, position: int) -> Step | None:
    """Return a text as a step at a position, or None if it breaks the grammar of steps."""
    step = Step(position, " ".join(text.split()), kind)
    try:
        format_step(step)
    except StepError:
        return None
    return step


def check_row(row: StepRow) -> None:
    """Raise ``ValueError`` for a row that could not be published: its steps, numbers, label or origin are wrong."""
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


KEYS = ("step", "diagnosis", "guidance")
"""Keys of a reply with a step."""


@dataclass(frozen=True, slots=True)
class ReplyStep:
    """A step of a reply as written, with the reply's remarks on it, one line each."""

    step: str
    diagnosis: str = ""
    guidance: str = ""


class StepRefused(Exception):
    """Raised when a step or its remarks are refused; ``text`` is the model's reply, if there was one."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(reason)
        self.text = text


class TrajectoryError(Exception):
    """Raised when a trajectory is refused. The message is the reason, with its kind before the colon."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused question, or step with its intended ``error_type``; ``reason`` counts up to its first colon."""

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
        """Return the refusal of a question without an ideal trajectory, or of one step of it."""
        return cls(question.benchmark, question.id, error_type, position, reason, text)

    @classmethod
    def of_row(cls, row: StepRow, reason: str) -> "Refused":
        """Return the refusal of a row."""
        error_type = row.feedback.error_type if row.origin != IDEAL else ""
        return cls.of_question(row.question, " ".join(reason.split()), row.step.text, error_type, row.step.number)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The rows and refusals of one question."""

    rows: tuple[StepRow, ...]
    refused: tuple[Refused, ...]
