"""A fact whose passage is gone: the incomplete-evidence setting (SAFE v2, finding 5)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from builders.steps.rows import StepRow
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.wordings import choice_for, missing, phrase, said, searched_for, word
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.records import Feedback, Passage, Question, Step
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.store.names import INJECTED
from safe_stepwise.taxonomy import MISSING_EVIDENCE

INFORMATION_MISS = "Information Miss"
_CITED = re.compile(r"\bPassage (\d+)")
_WORDINGS_TRIED = 4


def without_evidence(checker: Checker, ideal: Sequence[Step], seed: int, teacher: str) -> list[StepRow]:
    """A row with Missing Evidence for one fact of a trajectory, drawn by question and seed.

    The incomplete-evidence setting (SAFE v2, finding 5): one gold passage is gone, the step is the
    honest one, which says what it can't find, in one of the words in which an Information Miss is
    put, and the guidance comes with a search query. Only a fact whose value no other passage
    mentions counts: else the evidence is not missing. Earlier steps keep what they say, with the
    numbers that passages have once one is gone. Behind it stands its `_twin`, if there is one.
    """
    plan, question = checker.plan, checker.question
    places = [n for n in plan.facts if _is_gone(checker, plan.items[n], plan.items[:n])]
    if not places:
        return []
    choice = choice_for(str(seed), question.id, "missing evidence")
    place = places[choice % len(places)]
    item = plan.items[place]
    assert item.passage is not None
    less, previous = _without(question, ideal[:place], item.passage)
    instead = _instead(question, ideal[:place], previous, seed)
    first: list[StepRow] = []
    for step in _denials(checker, item, place, seed, is_cited=instead is not None):
        (said,) = _without(question, [step], instead)[1]
        feedback = _lacking(checker, item, said.text)
        row = StepRow(less, previous, said, feedback, INJECTED, teacher)
        if twin := _twin(checker, ideal[:place], step, instead, row):
            return [row, twin]
        first = first or [row]
    return first


def _instead(question: Question, ideal: Sequence[Step], previous: Sequence[Step], seed: int) -> int | None:
    """The distractor that is gone where the fact is there; None where there is none.

    One by which earlier steps keep the numbers that they cite in ``previous``, if there is one.
    """
    cited = {int(n) for step in ideal for n in _CITED.findall(step.text)}
    free = [n for n, p in enumerate(question.passages, 1) if not p.is_gold and n not in cited]
    alike = [n for n in free if _without(question, ideal, n)[1] == tuple(previous)]
    drawn = alike or free
    return drawn[choice_for(str(seed), question.id, "twin") % len(drawn)] if drawn else None


def _denials(checker: Checker, item: Item, place: int, seed: int, is_cited: bool) -> Iterator[Step]:
    """Steps that say, each in other words, that the passages do not state an item.

    They may name its passage alone, in whose place another stands for who lacks it.
    """
    what, n = missing(item, checker.question.passages), item.passage if is_cited else None
    for attempt in range(_WORDINGS_TRIED):
        drawn = f"{seed} {checker.question.id} missing evidence {attempt}"
        text = phrase("denial", drawn, half=checker.half, what=what, n=n, k=place or None)
        step = Step(place + 1, " ".join(text.split()), "Attribution")
        try:
            format_step(step)
        except StepError:
            continue
        yield step


def _lacking(checker: Checker, item: Item, text: str) -> Feedback:
    """What is said of a step that rightly denies an item."""
    passages, half = checker.question.passages, checker.half
    what = missing(item, passages)
    return Feedback(
        MISSING_EVIDENCE,
        word("diagnosis", "missing_evidence", text, half=half, what=what),
        word("guidance", "search", text, half=half, what=what),
        searched_for(item, passages),
    )


def _twin(checker: Checker, ideal: Sequence[Step], step: Step, instead: int | None, row: StepRow) -> StepRow | None:
    """The same step where what it denies is there, so that its label is Information Miss.

    As many passages are left as of the row, if ``instead`` a distractor can go. ``step`` is the row's with the numbers
    of all passages, which the checker sees; None where that finds something else.
    """
    verdict, shown, previous = checker.check(ideal, step), checker.question, tuple(ideal)
    if verdict is None or verdict.error_type != INFORMATION_MISS:
        return None
    if instead is not None:
        shown, previous = _without(shown, ideal, instead)
        said = (_renumbered(text, instead) for text in (verdict.diagnosis, verdict.guidance))
        verdict = Feedback(INFORMATION_MISS, *said)
    return StepRow(shown, previous, row.step, verdict, INJECTED, row.teacher, twin=True)


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
    told = [said(other, checker.passages) for other in earlier]
    words = read(Passage("", (" ".join([checker.question.question, *told]),)))
    return first_mention(words, title) is not None


def _without(question: Question, steps: Iterable[Step], gone: int | None) -> tuple[Question, tuple[Step, ...]]:
    """A question without one of its passages, and steps with the numbers that are left."""
    if gone is None:
        return question, tuple(steps)
    left = tuple(p for n, p in enumerate(question.passages, 1) if n != gone)
    renumbered = tuple(replace(step, text=_renumbered(step.text, gone)) for step in steps)
    return replace(question, passages=left), renumbered


def _renumbered(text: str, gone: int) -> str:
    """A text whose citations count without the passage that is gone.

    >>> _renumbered("Passage 2 and Passage 10 name it.", 4)
    'Passage 2 and Passage 9 name it.'
    """

    def less(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"Passage {number - 1 if number > gone else number}"

    return _CITED.sub(less, text)
