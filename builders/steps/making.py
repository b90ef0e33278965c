"""Makes labelled steps of verified questions: ideal ones and injected errors (SAFE v1, 3.3).

The *ideal* steps carry out a question's plan (`check_trajectory`). A *proposal* is a step with an intended error; it
becomes a row only if the checker finds exactly this error (`inject`). A row of missing evidence has a gold passage
removed (`without_evidence`). A *twin* has the words of another row, with other passages and another label.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from builders.steps.contexts import Context, StepSource
from builders.steps.proposals import Injector, Proposal, Wordings
from builders.steps.rows import Refused, StepResult, StepRow, TrajectoryError, well_formed
from builders.work.shards import NoModel
from safe_stepwise.checking import wordings
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import Item, PlanError
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.records import Feedback, Label, Passage, Question, Step
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import StepError, final_answer, format_step
from safe_stepwise.store.boundary import read_yaml
from safe_stepwise.store.names import IDEAL, INJECTED, Origin
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES, MISSING_EVIDENCE

TRIES = 4
"""The most proposals for one error at one position."""


@dataclass(frozen=True, slots=True)
class AnnotationsMaker(NoModel):
    """Makes steps without a model, from the verified reasoning path."""

    seed: int = 0
    style: wordings.WordingStyle = "seen"
    """The wordings that steps are written in; by default, all full ones that are not reserved for tests."""
    name: str = "annotations"

    @property
    def held_back(self) -> "AnnotationsMaker":
        return replace(self, style=wordings.HELD_BACK[self.style])

    @property
    def identity(self) -> str:
        return f"{self.name} {self.seed} {self.style}"

    def make_all(self, questions: Sequence[tuple[Question, Label]]) -> list[StepResult]:
        """Make the steps of each question, in order; neighbours are each other's partners."""
        return self.make_some(questions, range(len(questions)))

    def make_some(self, questions: Sequence[tuple[Question, Label]], positions: Iterable[int]) -> list[StepResult]:

        @lru_cache(maxsize=2)
        def source(position: int) -> StepSource | str:
            try:
                return StepSource.build(*questions[position], self.style)
            except PlanError as error:
                return f"no plan: {error}"

        results = []
        for position in positions:
            question_source, neighbour = source(position), position ^ 1
            partner = source(neighbour) if neighbour < len(questions) else None
            if isinstance(question_source, str):
                results.append(StepResult((), (Refused.of_question(questions[position][0], question_source),)))
            else:
                results.append(self._make_one(question_source, None if isinstance(partner, str) else partner))
        return results

    def _make_one(self, source: StepSource, partner: StepSource | None) -> StepResult:
        try:
            steps = write_trajectory(source.checker, self.seed)
            verdicts = check_trajectory(source.checker, steps)
        except TrajectoryError as error:
            return StepResult((), (Refused.of_question(source.question, str(error)),))
        injector = Injector(source, self.seed, partner)
        rows = [
            StepRow(source.question, tuple(steps[:n]), step, verdict, IDEAL, self.name)
            for n, (step, verdict) in enumerate(zip(steps, verdicts, strict=True))
        ]
        rows += _ideal_elsewhere(injector, steps, self.name)
        injected, refused = inject(injector, steps, self.name)
        rows += [*injected, *without_evidence(source.checker, steps, self.seed, self.name)]
        return StepResult(tuple(rows), tuple(refused))


def check_trajectory(checker: Checker, steps: Sequence[Step]) -> tuple[Feedback, ...]:
    """Return the checker's verdicts on an ideal trajectory, all ``Correct``; raise ``TrajectoryError`` for others."""
    for item in checker.claims.facts:
        if not checker.claims.is_grounded(item):
            raise TrajectoryError(f"a fact that its passage does not state: {item.triples[0]}")
    verdicts = []
    for number, step in enumerate(steps):
        _check_form(step)
        if (verdict := checker.check(steps[:number], step)) is None:
            raise TrajectoryError(f"the checker can't pass a {step.kind} step: step {number + 1}")
        if verdict.error_type != CORRECT:
            raise TrajectoryError(f"the checker finds {verdict.error_type} in a {step.kind} step: {verdict.diagnosis}")
        verdicts.append(verdict)
    _check_answer(checker.question, steps)
    return tuple(verdicts)


def check_without_plan(question: Question, steps: Sequence[Step]) -> None:
    """Raise ``TrajectoryError`` for a bad form or answer: all that can be checked without a plan."""
    for step in steps:
        _check_form(step)
    _check_answer(question, steps)


def _check_form(step: Step) -> None:
    try:
        format_step(step)
    except StepError as error:
        raise TrajectoryError(f"a step breaks the grammar: {error}") from None


def _check_answer(question: Question, steps: Sequence[Step]) -> None:
    if exact_match(final_answer(steps[-1]), question.accepted) < 1:
        raise TrajectoryError("the answer is no exact match")


def _ideal_elsewhere(injector: Injector, ideal: Sequence[Step], teacher: str) -> list[StepRow]:
    """Make Correct twins of contradictory and unsupported steps: the same words, where the passage has them."""
    rows = []
    facts = [(n, item) for n, item in enumerate(injector.plan.items, 1) if item.triples]
    proposals = [(n, injector.propose_true_value(item, n)) for n, item in facts]
    proposals += [(n, injector.propose_true_addition(item, n)) for n, item in facts[injector.draw(len(facts)) :][:1]]
    for position, proposal in proposals:
        if proposal and proposal.context:
            step = Step(position, " ".join(proposal.text.split()), proposal.kind)
            row = _row(proposal.context, ideal[: position - 1], step, IDEAL, teacher)
            if row is not None and row.feedback.error_type == CORRECT:
                rows.append(row)
    return rows


def inject(injector: Injector, ideal: Sequence[Step], teacher: str) -> tuple[list[StepRow], list[Refused]]:
    """Make rows with one error each that the checker confirms, every type at one position; return refusals, too."""
    rows: list[StepRow] = []
    refused: list[Refused] = []
    for error_type in ERROR_TYPES:
        for position in injector.positions(error_type.name, len(ideal)):
            row, reason, text = None, "", ""
            for proposal in islice(injector.propose(error_type.name, position), TRIES):
                row, fault, text = _confirm(injector, ideal, proposal, error_type.name, position, teacher)
                if row is not None:
                    break
                reason = reason or fault
            if row is not None:
                rows.append(row)
                break
            if reason:
                refused.append(Refused.of_question(injector.question, reason, text, error_type.name, position))
    return rows, refused


def _confirm(
    injector: Injector, ideal: Sequence[Step], proposal: Proposal, error_type: str, position: int, teacher: str
) -> tuple[StepRow | None, str, str]:
    """Return the row of a proposal if it has the error, else None and the reason; and its text."""
    text = " ".join(proposal.text.split())
    if proposal.context is None and text == ideal[position - 1].text:
        return None, "the step is the ideal one", text
    if (step := well_formed(text, proposal.kind, position)) is None:
        return None, "the step breaks the grammar", text
    context = proposal.context or Context(injector.question, injector.source.checker)
    row = _row(context, ideal[: position - 1], step, INJECTED, teacher)
    if row is not None and row.feedback.error_type == error_type:
        return row, "", text
    return None, f"the checker {'abstains' if row is None else f'finds {row.feedback.error_type}'}", text


def _row(context: Context, previous: Sequence[Step], step: Step, origin: Origin, teacher: str) -> StepRow | None:
    """Return the row of a step in a context, with the checker's verdict, or None if it abstains."""
    if (verdict := context.checker.check(previous, step)) is None:
        return None
    content = (context.question, tuple(previous), step, verdict, origin, teacher)
    return StepRow(*content, context.kind, context.borrowed)


UNSEEN: Wordings = read_yaml(Path(__file__).with_name("unseen_injections.yaml"))
"""Wordings of errors by another author, on which the checker was not developed."""


def count_verdicts(
    rows: Iterable[tuple[Question, Label]], seed: int, words: Wordings
) -> tuple[Counter[tuple[str, str | None]], Counter[str | None]]:
    """Count pairs (intended error, checker's label or None), and labels of ideal steps, over the verified rows."""
    pairs: Counter[tuple[str, str | None]] = Counter()
    ideal: Counter[str | None] = Counter()
    for question, label in rows:
        if label.noise_type != "none":
            continue
        try:
            source = StepSource.build(question, label)
        except PlanError:
            continue
        steps = write_trajectory(source.checker, seed)
        labels = [_label(source.checker.check(steps[:number], step)) for number, step in enumerate(steps)]
        ideal.update(labels)
        if set(labels) == {CORRECT}:
            pairs.update(meant_and_found(source, steps, seed, words))
    return pairs, ideal


def meant_and_found(
    source: StepSource, ideal: Sequence[Step], seed: int, words: Wordings
) -> Iterator[tuple[str, str | None]]:
    """Yield each error type and the checker's label (None if it abstains) of its first proposal at each position."""
    injector = Injector(source, seed, words=words)
    for error_type in ERROR_TYPES:
        for position in range(1, len(ideal) + 1):
            proposals = injector.propose(error_type.name, position)
            steps = (well_formed(proposal.text, proposal.kind, position) for proposal in proposals)
            if (step := next(filter(None, steps), None)) is not None:
                yield error_type.name, _label(source.checker.check(ideal[: position - 1], step))


def _label(verdict: Feedback | None) -> str | None:
    return None if verdict is None else verdict.error_type


INFORMATION_MISS = "Information Miss"
_CITED = re.compile(r"\bPassage (\d+)")
_WORDINGS_TRIED = 4


def without_evidence(checker: Checker, ideal: Sequence[Step], seed: int, teacher: str) -> list[StepRow]:
    """Make a Missing Evidence row for one fact of a trajectory, drawn by question and seed, and its `_twin`.

    One gold passage is removed (SAFE v2, finding 5), and no other may mention the fact's value. The step says what it
    can't find, in the words of an Information Miss, and the guidance has a search query.
    """
    plan, question = checker.plan, checker.question
    indices = [n for n in plan.fact_places if _is_gone(checker, plan.items[n], plan.items[:n])]
    if not indices:
        return []
    index = indices[wordings.choice_for(str(seed), question.id, "missing evidence") % len(indices)]
    item = plan.items[index]
    assert item.passage_number is not None
    reduced, previous = _drop_passage(question, ideal[:index], item.passage_number)
    instead = _instead(question, ideal[:index], previous, seed)
    first: list[StepRow] = []
    for step in _denials(checker, item, index, seed, is_cited=instead is not None):
        (denial,) = _drop_passage(question, [step], instead)[1]
        row = StepRow(reduced, previous, denial, _lacking(checker, item, denial.text), INJECTED, teacher)
        if twin := _twin(checker, ideal[:index], step, instead, row):
            return [row, twin]
        first = first or [row]
    return first


def _instead(question: Question, ideal: Sequence[Step], previous: Sequence[Step], seed: int) -> int | None:
    """Return the distractor to remove from the twin, if possible one that leaves the citations in ``previous``."""
    cited = {int(n) for step in ideal for n in _CITED.findall(step.text)}
    free = [n for n, p in enumerate(question.passages, 1) if not p.is_gold and n not in cited]
    options = [n for n in free if _drop_passage(question, ideal, n)[1] == tuple(previous)] or free
    return options[wordings.choice_for(str(seed), question.id, "twin") % len(options)] if options else None


def _denials(checker: Checker, item: Item, index: int, seed: int, is_cited: bool) -> Iterator[Step]:
    """Yield steps that deny an item, each in other words, and name its passage only if ``is_cited``."""
    evidence, number = wordings.missing(item, checker.question.passages), item.passage_number if is_cited else None
    for attempt in range(_WORDINGS_TRIED):
        seed_text = f"{seed} {checker.question.id} missing evidence {attempt}"
        text = wordings.phrase("denial", seed_text, style=checker.style, what=evidence, n=number, k=index or None)
        if step := well_formed(text, "Attribution", index + 1):
            yield step


def _lacking(checker: Checker, item: Item, text: str) -> Feedback:
    """Return the feedback on a step that rightly denies an item."""
    passages, style = checker.question.passages, checker.style
    evidence = wordings.missing(item, passages)
    return Feedback(
        MISSING_EVIDENCE,
        wordings.render("diagnosis", "missing_evidence", text, style=style, what=evidence),
        wordings.render("guidance", "search", text, style=style, what=evidence),
        wordings.search_query(item, passages),
    )


def _twin(checker: Checker, ideal: Sequence[Step], step: Step, instead: int | None, row: StepRow) -> StepRow | None:
    """Make a row's twin, with the denied passage and without ``instead``; None unless it is an Information Miss."""
    verdict, reduced, previous = checker.check(ideal, step), checker.question, tuple(ideal)
    if verdict is None or verdict.error_type != INFORMATION_MISS:
        return None
    if instead is not None:
        reduced, previous = _drop_passage(reduced, ideal, instead)
        diagnosis, guidance = (_renumber(text, instead) for text in (verdict.diagnosis, verdict.guidance))
        verdict = Feedback(INFORMATION_MISS, diagnosis, guidance)
    return StepRow(reduced, previous, row.step, verdict, INJECTED, row.teacher, twin=True)


def _is_gone(checker: Checker, item: Item, earlier: Sequence[Item]) -> bool:
    """Whether no other passage states a fact, and no earlier step read its passage."""
    if any(fact.passage_number == item.passage_number for fact in earlier):
        return False
    if item.sentence is not None and not _is_askable(checker, item, earlier):
        return False
    value = checker.claims.value_of(item)
    other_pages = [p for n, p in enumerate(checker.passages, 1) if n != item.passage_number]
    return all(first_mention(read(page), value) is None for page in other_pages)


def _is_askable(checker: Checker, item: Item, earlier: Sequence[Item]) -> bool:
    """Whether the question or earlier facts name a passage's subject, so that a step can ask for it."""
    assert item.passage_number is not None
    title = checker.passages[item.passage_number - 1].title
    statements = [wordings.state_item(fact, checker.passages) for fact in earlier]
    return first_mention(read(Passage("", (" ".join([checker.question.question, *statements]),))), title) is not None


def _drop_passage(question: Question, steps: Iterable[Step], removed: int | None) -> tuple[Question, tuple[Step, ...]]:
    """Remove a passage from a question, and renumber the passages in its steps."""
    if removed is None:
        return question, tuple(steps)
    remaining = tuple(p for n, p in enumerate(question.passages, 1) if n != removed)
    renumbered = tuple(replace(step, text=_renumber(step.text, removed)) for step in steps)
    return replace(question, passages=remaining), renumbered


def _renumber(text: str, removed: int) -> str:
    """Renumber the citations of a text after a passage was removed.

    >>> _renumber("Passage 2 and Passage 10 name it.", 4)
    'Passage 2 and Passage 9 name it.'
    """

    def shift(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"Passage {number - 1 if number > removed else number}"

    return _CITED.sub(shift, text)
