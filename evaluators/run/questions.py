"""Questions without one of their gold passages."""

from dataclasses import replace

from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.records import Question, Triple


def without_drawn_gold(question: Question, seed: int = 0) -> Question:
    """The question without one of its gold passages, if it has any (SAFE v2, finding 5).

    Which one is drawn by its id and the seed: the last would be the end of most chains.
    """
    if not question.gold:
        return question
    drawn = choice_for(str(seed), question.id, "dropped gold") % len(question.gold)
    return without_passage(question, question.gold[drawn][0])


def without_passage(question: Question, number: int) -> Question:
    """A question without one of its passages (from 1); annotations count what is left.

    >>> from safe_stepwise.records import Passage
    >>> pages = (Passage("Oru", ("A town.",), True), Passage("Vel", ("A river.",), True))
    >>> less = without_passage(Question("q", "b", "test", "Where?", "Oru", passages=pages), 1)
    >>> [page.title for page in less.passages]
    ['Vel']
    """
    left = [n for n in range(1, len(question.passages) + 1) if n != number]
    new = {old: at for at, old in enumerate(left, 1)}

    def moved(triple: Triple) -> Triple:
        sentence = None if triple.passage == number else triple.sentence
        return replace(triple, passage=new.get(triple.passage or 0), sentence=sentence)

    return replace(
        question,
        passages=tuple(question.passages[n - 1] for n in left),
        evidence=tuple(map(moved, question.evidence)),
        decomposition=tuple(replace(hop, passage=new.get(hop.passage or 0)) for hop in question.decomposition),
    )
