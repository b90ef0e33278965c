"""From a verified question to labelled steps: ideal ones, injected errors, missing evidence."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from builders.steps.contexts import Source
from builders.steps.injection import inject
from builders.steps.proposals import Injector
from builders.steps.rows import Made, Refused, StepRow
from builders.steps.trajectories import TrajectoryError, checked
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import Item, PlanError
from safe_stepwise.checking.wordings import choice_for, missing, searched_for, word
from safe_stepwise.checking.wordings import said as told_in
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.records import Feedback, Label, Passage, Question, Step
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.store.names import IDEAL, INJECTED
from safe_stepwise.taxonomy import CORRECT, MISSING_EVIDENCE


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
        return [self.make(*questions[n], partner=_partner(questions, n)) for n in places]

    def make(self, question: Question, label: Label, partner: Source | None = None) -> Made:
        """The rows of one question; a trajectory that does not pass is refused with its reason."""
        try:
            source = Source.of(question, label, self.unseen)
            steps = write_trajectory(source.checker, self.seed)
            verdicts = checked(source.checker, steps)
        except (PlanError, TrajectoryError) as error:
            kind = "no plan: " if isinstance(error, PlanError) else ""
            return Made((), (Refused.of(question, f"{kind}{error}"),))
        injector = Injector(source, self.seed, partner)
        rows = ideal_rows(question, steps, verdicts, self.name)
        rows += ideal_elsewhere(injector, steps, self.name)
        injected, refused = inject(injector, steps, self.name)
        rows += [*injected, *without_evidence(source.checker, steps, self.seed, self.name)]
        return Made(tuple(rows), tuple(refused))


def _partner(questions: Sequence[tuple[Question, Label]], number: int) -> Source | None:
    """The other of two neighbours, if there is one that a plan can be made for."""
    other = number ^ 1
    if other >= len(questions):
        return None
    try:
        return Source.of(*questions[other])
    except PlanError:
        return None


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


def without_evidence(
    checker: Checker, ideal: Sequence[Step], seed: int, teacher: str
) -> list[StepRow]:
    """A row with Missing Evidence for one fact of a trajectory, drawn by question and seed.

    The incomplete-evidence setting (SAFE v2, finding 5): one gold passage is gone, the step is the
    honest one, which says what it can't find, and the guidance comes with a search query. Only a
    fact whose value no other passage mentions counts: else the evidence is not missing.
    Earlier steps keep what they say, with the numbers that passages have once one is gone.
    """
    plan, question = checker.plan, checker.question
    places = [n for n in plan.facts if _is_gone(checker, plan.items[n], plan.items[:n])]
    if not places:
        return []
    choice = choice_for(str(seed), question.id, "missing evidence")
    place = places[choice % len(places)]
    item = plan.items[place]
    assert item.passage is not None
    what = missing(item, question.passages)
    said = " ".join(f"None of the passages states {what}.".split())
    step = Step(place + 1, said, "Attribution")
    try:
        format_step(step)
    except StepError:
        return []
    feedback = Feedback(
        MISSING_EVIDENCE,
        word("diagnosis", "missing_evidence", said, what=what),
        word("guidance", "search", said, what=what),
        searched_for(item, question.passages),
    )
    left = tuple(p for n, p in enumerate(question.passages, 1) if n != item.passage)
    previous = tuple(_renumbered(step, item.passage) for step in ideal[:place])
    less = replace(question, passages=left)
    return [StepRow(less, previous, step, feedback, INJECTED, teacher)]


def _is_gone(checker: Checker, item: Item, earlier: Sequence[Item]) -> bool:
    """Whether nothing states a fact once its passage is removed, nor was it read before."""
    if any(other.passage == item.passage for other in earlier):
        return False
    if item.sentence is not None and not _known(checker, item, earlier):
        return False
    value = checker.claims.value_of(item)
    others = [p for n, p in enumerate(checker.passages, 1) if n != item.passage]
    return all(first_mention(read(page), value) is None for page in others)


def _known(checker: Checker, item: Item, earlier: Sequence[Item]) -> bool:
    """Whether question or earlier facts name what a passage is about, so that it can be asked."""
    assert item.passage is not None
    title = checker.passages[item.passage - 1].title
    told = [told_in(other, checker.passages) for other in earlier]
    words = read(Passage("", (" ".join([checker.question.question, *told]),)))
    return first_mention(words, title) is not None


def _renumbered(step: Step, gone: int) -> Step:
    """A step whose citations count without the passage that is gone."""

    def less(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"Passage {number - 1 if number > gone else number}"

    return replace(step, text=re.sub(r"\bPassage (\d+)", less, step.text))
