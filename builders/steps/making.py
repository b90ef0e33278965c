"""From a verified question to labelled steps: ideal ones, injected errors, missing evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builders.steps.injection import inject
from builders.steps.missing_evidence import without_evidence
from builders.steps.rows import Made, Refused, StepRow
from builders.steps.trajectories import TrajectoryError, checked
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.records import Feedback, Label, Question, Step
from safe_stepwise.store.names import IDEAL


@dataclass(frozen=True, slots=True)
class AnnotationsMaker:
    """Makes steps without a model, from the verified reasoning path."""

    seed: int = 0
    name: str = "annotations"
    simulated: bool = False
    own_processes: bool = True

    @property
    def identity(self) -> str:
        """Everything that can change a row, the code aside."""
        return f"{self.name} {self.seed}"

    def check(self) -> None:
        """Nothing can be wrong: no model is asked."""

    def progress(self) -> str:
        """No requests, so nothing to tell."""
        return ""

    def close(self) -> None:
        """Nothing is open."""

    def make_all(self, questions: Sequence[tuple[Question, Label]]) -> list[Made]:
        """What comes of each question, in order."""
        return [self.make(question, label) for question, label in questions]

    def make(self, question: Question, label: Label) -> Made:
        """The rows of one question; a trajectory that does not pass is refused with its reason."""
        try:
            checker = Checker(question, label.reasoning_path, label.knowledge_graph)
            steps = write_trajectory(checker, self.seed)
            verdicts = checked(checker, steps)
        except (PlanError, TrajectoryError) as error:
            kind = "no plan: " if isinstance(error, PlanError) else ""
            return Made((), (Refused.of(question, f"{kind}{error}"),))
        rows = ideal_rows(question, steps, verdicts, self.name)
        injected, refused = inject(checker, steps, self.seed, self.name)
        missing = without_evidence(checker, steps, self.seed, self.name)
        return Made((*rows, *injected, *missing), tuple(refused))


def ideal_rows(
    question: Question, steps: Sequence[Step], verdicts: Sequence[Feedback], teacher: str
) -> list[StepRow]:
    """One row a step of a trajectory that was passed."""
    return [
        StepRow(question, tuple(steps[:n]), step, verdict, IDEAL, teacher)
        for n, (step, verdict) in enumerate(zip(steps, verdicts, strict=True))
    ]
