"""A fact whose passage is gone: the incomplete-evidence setting (SAFE v2, finding 5)."""

import re
from collections.abc import Sequence
from dataclasses import replace

from builders.steps.rows import StepRow
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.phrases import choice_for
from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.wordings import missing, said, searched_for, word
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.records import Feedback, Passage, Step
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.store.names import INJECTED
from safe_stepwise.taxonomy import MISSING_EVIDENCE


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
    text = " ".join(f"None of the passages states {what}.".split())
    step = Step(place + 1, text, "Attribution")
    try:
        format_step(step)
    except StepError:
        return []
    feedback = Feedback(
        MISSING_EVIDENCE,
        word("diagnosis", "missing_evidence", text, unseen=checker.unseen, what=what),
        word("guidance", "search", text, unseen=checker.unseen, what=what),
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
    told = [said(other, checker.passages) for other in earlier]
    words = read(Passage("", (" ".join([checker.question.question, *told]),)))
    return first_mention(words, title) is not None


def _renumbered(step: Step, gone: int) -> Step:
    """A step whose citations count without the passage that is gone."""

    def less(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"Passage {number - 1 if number > gone else number}"

    return replace(step, text=re.sub(r"\bPassage (\d+)", less, step.text))
