"""How far people's derivations (R4C) are from each other, and ideal trajectories from people.

Two people word one fact in two ways, so that a fact is told apart by the sentence it was read from,
which R4C gives as (title, index from 0), not by its triple. A derivation is the row of its facts'
sentences, one that two facts come from twice; a trajectory that of its Attribution steps, each for
the sentence of the passage it cites that shares most content words with it. The distance of two is
the edits that make one of the other, over the longer of both (arXiv 2402.11199, C.3).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from rapidfuzz.distance import Levenshtein

from evaluators.derivations import Derivation
from safe_stepwise.checking.step_reading import content_words, read_step
from safe_stepwise.records import Question, Step

Place = tuple[str, int]
"""A sentence: title of its passage, index from 0."""


@dataclass(frozen=True, slots=True)
class Distance:
    """Means over questions, each from 0 to 1; ``pairs`` of derivations were compared.

    ``nearest``: to the nearer of two; ``once``: where a sentence counts but the first time;
    ``unordered``: where the order in which facts are told is left out of account.
    """

    who: str
    against: str
    pairs: int
    mean: float
    nearest: float
    once: float
    unordered: float


def distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Edits between two, over the longer (0-1).

    >>> distance("ab", "ba"), distance("abc", "abd"), distance("", "")
    (1.0, 0.3333333333333333, 0.0)
    """
    return Levenshtein.distance(one, other) / max(len(one), len(other), 1)


def sentences_of(derivation: Derivation) -> tuple[Place, ...]:
    """The sentences that a derivation's facts were read from, in its order."""
    return tuple((title, sentence) for title, sentence, _ in derivation)


def sentences_told(question: Question, steps: Iterable[Step]) -> tuple[Place, ...]:
    """The sentences that a trajectory's steps tell, in its order.

    >>> from safe_stepwise.records import Passage
    >>> page = Passage("Oru", ("Oru is a town.", "It lies on the Vel."))
    >>> asked = Question("q", "b", "train", "Where?", "Vel", passages=(page,))
    >>> sentences_told(asked, [Step(1, "As Passage 1 says, Oru lies on the Vel.", "Attribution")])
    (('Oru', 1),)
    """
    told = []
    for step in steps:
        reading = read_step(step.text)
        cited = [n for n in reading.cited if n <= len(question.passages)]
        if step.kind == "Attribution" and cited and question.passages[cited[0] - 1].sentences:
            page = question.passages[cited[0] - 1]
            shared = [len(content_words(s) & reading.words) for s in page.sentences]
            told.append((page.title, shared.index(max(shared))))
    return tuple(told)


def of_people(people: Sequence[Sequence[Sequence[Place]]]) -> list[Distance]:
    """Each annotator against the others, then all pairs; a question a row of ``people``."""
    found = []
    for place in range(max(map(len, people), default=0)):
        rows = [(those[place], _without(those, place)) for those in people if len(those) > place]
        found.append(_mean(f"annotator {place + 1}", "the others", rows))
    every = [(one, _without(those, n)) for those in people for n, one in enumerate(those)]
    return [*found, _mean("people", "each other", every)]


def of_trajectories(people: Mapping[str, Sequence[Sequence[Place]]], told: Mapping[str, Sequence[Place]]) -> Distance:
    """Trajectories, by question id, against people, two at a time, as people are."""
    rows = [
        (told[id_], pair)
        for id_, those in people.items()
        if id_ in told
        for pair in combinations(those, max(1, len(those) - 1))
    ]
    return _mean("ideal trajectories", "people", rows)


def _without(those: Sequence[Sequence[Place]], place: int) -> list[Sequence[Place]]:
    return [other for n, other in enumerate(those) if n != place]


def _mean(who: str, against: str, rows: Sequence[tuple[Sequence[Place], Sequence[Sequence[Place]]]]) -> Distance:
    """``rows``: a derivation, and those it is compared with; a row without any is none."""
    rows = [(one, others) for one, others in rows if others]

    def mean(measure: Callable[[list[float]], float], form: Callable[..., Sequence[Place]]) -> float:
        shares = (measure([distance(form(one), form(o)) for o in others]) for one, others in rows)
        return round(fmean([*shares] or [0.0]), 6)

    return Distance(
        who,
        against,
        sum(len(others) for _, others in rows),
        mean(fmean, tuple),
        mean(min, tuple),
        mean(fmean, lambda places: tuple(dict.fromkeys(places))),
        mean(fmean, sorted),
    )
