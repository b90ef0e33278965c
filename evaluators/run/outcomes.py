"""What a run of `evaluate_stepwise` wrote down: one outcome a question, generator and method.

``trajectories.jsonl`` holds them, one canonical JSON object a line with the fields of `Outcome`;
``questions.jsonl`` what they were asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from safe_stepwise.errors import UserError
from safe_stepwise.records import (
    Attempt,
    Feedback,
    Passage,
    Step,
    Trajectory,
    Usage,
    canonical_json,
)
from safe_stepwise.store.names import QUESTIONS, TRAJECTORIES

Verdict = Literal["correct", "incorrect", "unscored"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question, answered by one generator under one method, and what the answer is worth."""

    benchmark: str
    generator: str
    """The engine's name, without addresses; so is ``verifier``."""
    verifier: str
    """Empty with ``no_verification``; the generator's with ``self_verification``."""
    method: str
    max_steps: int
    max_retries: int
    question_id: str
    exact_match: float
    f1: float
    verdict: Verdict | None
    """The judge's; None where none was asked for."""
    trajectory: Trajectory
    simulated: bool
    """Whether an engine without a model took part, the judge included."""
    judge: str = ""
    """Why the judge said so."""

    def __post_init__(self) -> None:
        if self.verdict not in (None, *get_args(Verdict)):
            raise ValueError(f"unknown verdict {self.verdict!r}")

    def to_json(self) -> str:
        """The outcome as one line, without the newline."""
        return canonical_json(self)

    @classmethod
    def from_json(cls, line: str) -> Outcome:
        """The outcome that a line holds; ``ValueError`` for a line that is none."""
        try:
            content = json.loads(line)
            return cls(**{**content, "trajectory": trajectory_of(content["trajectory"])})
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"no outcome: {type(error).__name__} {error}") from None


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it was asked, for those who read the outcomes."""

    benchmark: str
    id: str
    question: str
    references: tuple[str, ...]
    passages: tuple[Passage, ...]

    def to_json(self) -> str:
        """The question as one line, without the newline."""
        return canonical_json(self)

    @classmethod
    def from_json(cls, line: str) -> Asked:
        """The question that a line holds; ``ValueError`` for a line that is none."""
        try:
            content = json.loads(line)
            passages = tuple(map(passage_of, content["passages"]))
            references = tuple(content["references"])
            return cls(**{**content, "references": references, "passages": passages})
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"no question: {type(error).__name__} {error}") from None


def trajectory_of(content: Mapping[str, Any]) -> Trajectory:
    """A trajectory from its JSON object."""
    return Trajectory(
        **{
            **content,
            "steps": tuple(Step(**step) for step in content["steps"]),
            "attempts": tuple(_attempt(attempt) for attempt in content["attempts"]),
        }
    )


def passage_of(content: Mapping[str, Any]) -> Passage:
    """A passage from its JSON object."""
    return Passage(**{**content, "sentences": tuple(content["sentences"])})


def read_outcomes(folder: Path) -> Iterator[Outcome]:
    """The outcomes in a run's folder, in their order.

    Raises ``UserError`` for a file that can't be read, with the number of the line.
    """
    return _lines(folder / TRAJECTORIES, Outcome.from_json)


def read_questions(folder: Path) -> Iterator[Asked]:
    """The questions in a run's folder, in their order; raises as `read_outcomes` does."""
    return _lines(folder / QUESTIONS, Asked.from_json)


def _lines(file: Path, read: Callable[[str], T]) -> Iterator[T]:
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield read(line)
                except ValueError as error:
                    reason = " ".join(str(error).split())[:200]
                    raise UserError(
                        f"{file}, line {number}: cannot be read ({reason}); "
                        "make it anew with python -m scripts.evaluate_stepwise"
                    ) from None
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror}); give the --output of "
            "python -m scripts.evaluate_stepwise"
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: is not UTF-8; make it anew") from None


def _attempt(content: Mapping[str, Any]) -> Attempt:
    said = content["feedback"]
    return Attempt(
        **{
            **content,
            "feedback": None if said is None else Feedback(**said),
            "generator_usage": Usage(**content["generator_usage"]),
            "verifier_usage": Usage(**content["verifier_usage"]),
            "retrieved": tuple(map(passage_of, content["retrieved"])),
        }
    )
