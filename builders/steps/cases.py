"""Hard cases: steps on which a verifier under test and the checker differ, and how they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from builders.steps.rows import StepRow
from safe_stepwise.records import Feedback, Question, Step


class Pattern(NamedTuple):
    """How a verifier errs: its label, the checker's, and on what kind of step of what plan."""

    verifier: str
    checker: str
    step_kind: str
    plan: str


@dataclass(frozen=True, slots=True)
class Case:
    """A step on which verifier and checker differ; ``found`` is the checker's verdict."""

    question: Question
    previous: tuple[Step, ...]
    step: Step
    found: Feedback
    pattern: Pattern

    @property
    def id(self) -> str:
        """Of the row that the checker's verdict would make of it."""
        return self.row(self.found, "").id

    def row(self, feedback: Feedback, teacher: str) -> StepRow:
        """The row with somebody's verdict."""
        return StepRow(self.question, self.previous, self.step, feedback, "refined", teacher)


def in_turn(cases: Iterable[Case]) -> list[Case]:
    """One case of each pattern, then another of each, and so on: rare ones come soon enough."""
    clusters: dict[Pattern, list[Case]] = {}
    for case in cases:
        clusters.setdefault(case.pattern, []).append(case)
    rounds = zip_longest(*(clusters[pattern] for pattern in sorted(clusters)))
    return [case for one in rounds for case in one if case is not None]
