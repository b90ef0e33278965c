"""From a verified question to labelled steps: ideal ones and injected errors (SAFE v1, 3.3)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from builders.steps.contexts import Context, Source
from builders.steps.missing_evidence import without_evidence
from builders.steps.proposals import Injector, Proposal
from builders.steps.rows import Made, Refused, StepRow, TrajectoryError
from builders.steps.trajectories import checked
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.wordings import HELD_BACK, Half
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.records import Feedback, Label, Question, Step
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.store.names import IDEAL, INJECTED
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES

TRIES = 4
"""Wordings and values tried for one error at one position before it is given up."""


@dataclass(frozen=True, slots=True)
class AnnotationsMaker:
    """Makes steps without a model, from the verified reasoning path."""

    seed: int = 0
    half: Half = "seen"
    """Of the grammar that words steps: all but what is held back for tests, in full or briefly."""
    name: str = "annotations"
    simulated: bool = False
    own_processes: bool = True

    @property
    def held_back(self) -> "AnnotationsMaker":
        """The same with the words that are held back for tests."""
        return replace(self, half=HELD_BACK[self.half])

    @property
    def identity(self) -> str:
        """Everything that can change a row, the code aside."""
        return f"{self.name} {self.seed} {self.half}"

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

    def make_some(self, questions: Sequence[tuple[Question, Label]], places: Iterable[int]) -> list[Made]:
        """What comes of those at some places."""

        @lru_cache(maxsize=2)
        def source(place: int) -> Source | str:
            return _source(*questions[place], self.half)

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


def _source(question: Question, label: Label, half: Half) -> Source | str:
    """What contexts are made of, or why there is no plan."""
    try:
        return Source.of(question, label, half)
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


def ideal_rows(question: Question, steps: Sequence[Step], verdicts: Sequence[Feedback], teacher: str) -> list[StepRow]:
    """One row a step of a trajectory that was passed."""
    return [
        StepRow(question, tuple(steps[:n]), step, verdict, IDEAL, teacher)
        for n, (step, verdict) in enumerate(zip(steps, verdicts, strict=True))
    ]


def inject(injector: Injector, ideal: Sequence[Step], teacher: str) -> tuple[list[StepRow], list[Refused]]:
    """Rows with one error each, for every type at one of the positions where it can stand.

    ``ideal`` is a trajectory that the checker passes. What `proposals` gives in the place of one of
    its steps is kept only if the checker finds exactly the error that was meant in it, which also
    settles that no type comes before it in the order of checks; else it is refused, with what the
    checker says instead. Diagnosis and guidance are the checker's, who says where the text stands
    against the step.
    """
    rows: list[StepRow] = []
    refused: list[Refused] = []
    home, q = injector.source.context, injector.question
    for error_type in ERROR_TYPES:
        for position in injector.positions(error_type.name, len(ideal)):
            proposals = injector.propose(error_type.name, position)
            made = _confirmed(home, ideal, proposals, error_type.name, position)
            previous = tuple(ideal[: position - 1])
            if isinstance(made, _Confirmed):
                rows.append(made.row(previous, teacher))
                break
            if made.reason:
                where = (q.benchmark, q.id, error_type.name, position)
                refused.append(Refused(*where, made.reason, made.text))
    return rows, refused


def well_formed(proposal: Proposal, position: int) -> Step | None:
    """A proposal as a step; None where it breaks the grammar of steps."""
    step = Step(position, " ".join(proposal.text.split()), proposal.kind)
    try:
        format_step(step)
    except StepError:
        return None
    return step


@dataclass(frozen=True, slots=True)
class _Confirmed:
    """A step with the error that was meant, and where it has it."""

    context: Context
    step: Step
    feedback: Feedback

    def row(self, previous: tuple[Step, ...], teacher: str) -> StepRow:
        here = self.context
        made = (here.question, previous, self.step, self.feedback, INJECTED, teacher)
        return StepRow(*made, here.kind, here.borrowed)


@dataclass(frozen=True, slots=True)
class _NotTaken:
    """Why no proposal was taken, "" where there was none, and the last one's text."""

    reason: str
    text: str


def _confirmed(
    home: Context, ideal: Sequence[Step], proposals: Iterator[Proposal], error_type: str, position: int
) -> _Confirmed | _NotTaken:
    reason, text = "", ""
    for proposal in islice(proposals, TRIES):
        text = " ".join(proposal.text.split())
        step = well_formed(proposal, position)
        context = proposal.context or home
        if proposal.context is None and text == ideal[position - 1].text:
            reason = reason or "the step is the ideal one"
        elif step is None:
            reason = reason or "the step breaks the grammar"
        else:
            feedback = context.checker.check(ideal[: position - 1], step)
            if feedback is not None and feedback.error_type == error_type:
                return _Confirmed(context, step, feedback)
            found = "abstains" if feedback is None else f"finds {feedback.error_type}"
            reason = reason or f"the checker {found}"
    return _NotTaken(reason, text)
