"""A stand-in for the makers of step rows: rows that look right, from a path, checked by nobody."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace

from builders.steps.rows import Refused, StepResult, StepRow
from safe_stepwise.records import Feedback, Label, Question, Step, StepKind
from safe_stepwise.taxonomy import ERROR_TYPES, MISSING_EVIDENCE, category

KINDS: dict[str, StepKind] = {
    "Procedural": "Attribution",
    "Attribution": "Attribution",
    "Logical": "Logical",
    "Final Answer": "Final Answer",
}


@dataclass(frozen=True)
class PlausibleMaker:
    """Its steps say what they should of the path they are made from; every third lacks a type.

    No two questions have an erroneous or logical step in common, but for those that are `alike`.
    """

    name: str = "plausible"
    identity: str = "plausible 1"
    simulated: bool = False
    is_cpu_bound: bool = True
    pause: float = 0.0
    broken: str = ""
    held_back: None = None
    alike: str = ""
    """A type whose steps are the same in every question."""

    def check(self) -> None:
        pass

    def progress(self) -> str:
        return ""

    def close(self) -> None:
        pass

    def make_all(self, questions: list[tuple[Question, Label]]) -> list[StepResult]:
        time.sleep(self.pause)
        if os.environ.get("PLAUSIBLE_FAULT"):
            raise ZeroDivisionError
        return [self.make(question, label) for question, label in questions]

    def make(self, question: Question, label: Label) -> StepResult:
        steps = ideal_steps(question, label)
        rows = [
            self.row(question, steps, n, step, Feedback("Correct", "It is so.", "Go on."), "ideal")
            for n, step in enumerate(steps)
        ]
        if self.broken:
            rows.append(replace(rows[0], feedback=Feedback(self.broken, "x", "y")))
            rows.append(rows[0])
        refused = []
        for number, entry in enumerate(ERROR_TYPES):
            last = category(entry.name) == "Final Answer"
            for n in range(len(steps)):
                if last != (n == len(steps) - 1):
                    continue
                if (len(question.id) + ord(question.id[-1]) + number + n) % 3 == 0:
                    reason = f"the checker saw another error: at {n}"
                    refused.append(Refused(question.benchmark, question.id, entry.name, n + 1, reason))
                    continue
                kind = KINDS[entry.category]
                text = f"{entry.name} about {question.id} <{n}> | `x`"
                text = "So it   goes." if entry.name == self.alike else text
                step = Step(n + 1, f"####ANSWER: not {n}" if last else text, kind)
                said = Feedback(entry.name, f"Wrong: {entry.name}.", f"Do step {n + 1} again.")
                rows.append(self.row(question, steps, n, step, said, "injected"))
        rows += self.missing(question, steps)
        return StepResult(tuple(rows), tuple(refused))

    def missing(self, question: Question, steps: tuple[Step, ...]) -> tuple[StepRow, StepRow]:
        gold = question.gold[0][0]
        kept = tuple(p for n, p in enumerate(question.passages, 1) if n != gold)
        feedback = Feedback(MISSING_EVIDENCE, "Not there.", "Search.", "what to look for")
        step = replace(steps[0], text=f"No passage says it of {question.id}.")
        lacks = self.row(replace(question, passages=kept), steps, 0, step, feedback, "injected")
        missed = replace(feedback, error_type="Information Miss", query=None)
        return lacks, replace(lacks, question=question, feedback=missed, twin=True)

    def row(self, question, steps, n, step, feedback, origin):  # type: ignore[no-untyped-def]
        return StepRow(question, steps[:n], step, feedback, origin, self.name)


def ideal_steps(question: Question, label: Label) -> tuple[Step, ...]:
    steps = [
        Step(n, f"According to Passage {t.passage}, {t.head} has {t.relation} {t.tail}.",
             "Attribution")
        for n, t in enumerate(label.reasoning_path, 1)
    ]  # fmt: skip
    steps.append(Step(len(steps) + 1, f"Put together, that settles {question.id}.", "Logical"))
    steps.append(Step(len(steps) + 1, f"####ANSWER: {question.answer}", "Final Answer"))
    return tuple(steps)
