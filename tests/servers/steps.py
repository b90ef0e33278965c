"""A model that plays the teacher of steps: it knows good trajectories and errors of all types."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from builders.steps.contexts import StepSource
from builders.steps.making import check_trajectory, inject
from builders.steps.proposals import Injector
from builders.steps.rows import StepRow
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.records import Feedback, Label, Question, Step
from safe_stepwise.steps import format_step

Pair = tuple[Question, Label]
SEEDS = 6
"""Draws of errors, of which each gives one of a type at one of the positions."""
Reply = Callable[["Asked"], str]


class Asked:
    """What a request's last turn asks."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.text: str = body["messages"][-1]["content"]
        self.question: str = json.loads(self.found(r"^Question: (.*)$"))
        self.injects = "\nTarget step: " in self.text

    def found(self, pattern: str) -> str:
        match = re.search(pattern, self.text, re.MULTILINE)
        assert match, pattern
        return match[1]

    @property
    def error_type(self) -> str:
        return self.found(r"^Error: ([A-Za-z -]+)\. ")

    @property
    def position(self) -> int:
        return int(self.found(r"^Write Step (\d+) of kind"))

    @property
    def target(self) -> str:
        said: str = json.loads(self.found(r"^Target step: (.*)$"))
        return said


class Truth:
    """Answers rightly; ``trajectory`` and ``injected`` stand in for its own replies."""

    def __init__(
        self, asked_of: tuple[Pair, ...], trajectory: Reply | None = None, injected: Reply | None = None
    ) -> None:
        self.trajectory, self.injected = trajectory, injected
        self.steps: dict[str, tuple[Step, ...]] = {}
        self.verdicts: dict[str, tuple[Feedback, ...]] = {}
        self.errors: dict[tuple[str, str, int], StepRow] = {}
        self.draws: dict[str, Iterator[Iterable[StepRow]]] = {}
        self.drawing = threading.Lock()
        for question, label in asked_of:
            source = StepSource.build(question, label)
            steps = write_trajectory(source.checker, 0)
            self.steps[question.question] = steps
            self.verdicts[question.question] = check_trajectory(source.checker, steps)
            self.draws[question.question] = _draws(source, steps)

    def _find_error(self, question: str, error_type: str, position: int) -> StepRow | None:
        """The first error of that type and position; only as many are drawn as that takes."""
        with self.drawing:
            for rows in self.draws.get(question, iter(())):
                for row in rows:
                    self.errors.setdefault((question, row.feedback.error_type, row.step.number), row)
                if (question, error_type, position) in self.errors:
                    break
            return self.errors.get((question, error_type, position))

    def __call__(self, body: Mapping[str, Any]) -> str:
        asked = Asked(body)
        if asked.injects:
            return self.injected(asked) if self.injected else self.error(asked)
        return self.trajectory(asked) if self.trajectory else self.ideal(asked)

    def ideal(self, asked: Asked) -> str:
        told = zip(self.steps[asked.question], self.verdicts[asked.question], strict=True)
        steps = [remarked(format_step(s), v.diagnosis, v.guidance) for s, v in told]
        return json.dumps({"plan": ["1: Find what is asked."], "steps": steps})

    def error(self, asked: Asked) -> str:
        row = self._find_error(asked.question, asked.error_type, asked.position)
        if row is None:
            return said(asked.target)
        return said(format_step(row.step), row.feedback.diagnosis, row.feedback.guidance)


def _draws(source: StepSource, steps: tuple[Step, ...]) -> Iterator[list[StepRow]]:
    """The errors of each seed; a model is asked of the question as it is, never with other passages."""
    for seed in range(SEEDS):
        rows = inject(Injector(source, seed), steps, "truth")[0]
        yield [row for row in rows if row.question == source.question]


def careless() -> Truth:
    """Knows no question: writes one step before the answer it is given, and any error asked for."""
    return Truth((), _step_and_answer, _any_error)


def _step_and_answer(asked: Asked) -> str:
    answer = json.loads(asked.found(r"^Answer: (.*)$"))
    first = "Step 1: According to Passage 1, it rains. (Attribution)"
    steps = [
        remarked(first, "Passage 1 says that it rains.", "Submit what follows from that."),
        remarked(f"Step 2: ####ANSWER: {answer} (Final Answer)", "It rests on Step 1.", "All is done."),
    ]
    return json.dumps({"plan": ["1: Find it."], "steps": steps})


def _any_error(asked: Asked) -> str:
    kind = asked.found(r"^Write Step \d+ of kind ([A-Za-z ]+)")
    wrong = "####ANSWER: nobody" if kind == "Final Answer" else "Passage 9 says otherwise"
    return said(f"Step {asked.position}: {wrong} ({kind})")


def said(step: object, diagnosis: str = "It is wrong.", guidance: str = "Read it again.") -> str:
    return json.dumps(remarked(step, diagnosis, guidance))


def remarked(step: object, diagnosis: str, guidance: str) -> dict[str, object]:
    return {"step": step, "diagnosis": diagnosis, "guidance": guidance}
