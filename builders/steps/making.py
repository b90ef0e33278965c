"""From a verified question to labelled steps: ideal ones, injected errors, missing evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from builders.steps.contexts import Source
from builders.steps.injection import inject
from builders.steps.missing_evidence import without_evidence
from builders.steps.proposals import Injector
from builders.steps.rows import Made, Refused, StepRow
from builders.steps.trajectories import TrajectoryError, checked
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.records import Feedback, Label, Question, Step
from safe_stepwise.store.names import IDEAL
from safe_stepwise.taxonomy import CORRECT


@dataclass(frozen=True, slots=True)
class AnnotationsMaker:
    """Makes steps without a model, from the verified reasoning path."""

    seed: int = 0
    unseen: bool = False
    """Whether steps are worded by the half of the grammar that is held back for tests."""
    name: str = "annotations"
    simulated: bool = False
    own_processes: bool = True

    @property
    def held_back(self) -> "AnnotationsMaker":
        """The same with the words that are held back for tests."""
        return replace(self, unseen=True)

    @property
    def identity(self) -> str:
        """Everything that can change a row, the code aside."""
        return f"{self.name} {self.seed} {self.unseen}"

    def check(self) -> None:
        """Nothing can be wrong: no model is asked."""

    def progress(self) -> str:
        """No requests, so nothing to tell."""
        return ""

    def close(self) -> None:
        """Nothing is open."""

    def make_all(self, questions: Sequence[tuple[Question, Label]]) -> list[Made]:
        """What comes of each question, in order; neighbours are each other's partners."""
        return self.make_some(questions, range(len(questions)))

    def make_some(
        self, questions: Sequence[tuple[Question, Label]], places: Iterable[int]
    ) -> list[Made]:
        """What comes of those at some places."""

        @lru_cache(maxsize=2)
        def source(place: int) -> Source | str:
            return _source(*questions[place], self.unseen)

        made = []
        for place in places:
            own, other = source(place), place ^ 1
            partner = source(other) if other < len(questions) else None
            partner = None if isinstance(partner, str) else partner
            made.append(self._made(questions[place][0], own, partner))
        return made

    def make(self, question: Question, label: Label) -> Made:
        """The rows of one question; a trajectory that does not pass is refused with its reason."""
        return self.make_all([(question, label)])[0]

    def _made(self, question: Question, source: Source | str, partner: Source | None) -> Made:
        if isinstance(source, str):
            return Made((), (Refused.of(question, source),))
        try:
            steps = write_trajectory(source.checker, self.seed)
            verdicts = checked(source.checker, steps)
        except TrajectoryError as error:
            return Made((), (Refused.of(question, str(error)),))
        injector = Injector(source, self.seed, partner)
        rows = ideal_rows(question, steps, verdicts, self.name)
        rows += ideal_elsewhere(injector, steps, self.name)
        injected, refused = inject(injector, steps, self.name)
        rows += [*injected, *without_evidence(source.checker, steps, self.seed, self.name)]
        return Made(tuple(rows), tuple(refused))


def _source(question: Question, label: Label, unseen: bool) -> Source | str:
    """What contexts are made of, or why there is no plan."""
    try:
        return Source.of(question, label, unseen)
    except PlanError as error:
        return f"no plan: {error}"


def ideal_elsewhere(injector: Injector, ideal: Sequence[Step], teacher: str) -> list[StepRow]:
    """The facts that nothing builds on, with another value, where the passage gives that one.

    They are the twins of contradictory steps: the same words, and right.
    """
    rows = []
    for position, item in enumerate(injector.plan.items, 1):
        found = injector.otherwise_right(item, position) if item.triples else None
        if found is None:
            continue
        step = Step(position, " ".join(found.text.split()), found.kind)
        context, previous = found.context, tuple(ideal[: position - 1])
        verdict = context.checker.check(previous, step) if context else None
        if context and verdict and verdict.error_type == CORRECT:
            made = (context.question, previous, step, verdict, IDEAL, teacher)
            rows.append(StepRow(*made, context.kind))
    return rows


def ideal_rows(
    question: Question, steps: Sequence[Step], verdicts: Sequence[Feedback], teacher: str
) -> list[StepRow]:
    """One row a step of a trajectory that was passed."""
    return [
        StepRow(question, tuple(steps[:n]), step, verdict, IDEAL, teacher)
        for n, (step, verdict) in enumerate(zip(steps, verdicts, strict=True))
    ]
