"""Sources that the rules are calibrated on: questions with gold paths, and how their facts are worded.

2Wiki's evidence, MuSiQue's decomposition, R4C's derivations of HotpotQA (each annotator's is a gold
path) and MetaQA's paths all become a `CalibrationSource`.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from evaluators.derivations import Derivation
from safe_stepwise.checking import statements
from safe_stepwise.checking.faithfulness.grounds import Grounds, Path, grounds_of, grounds_of_paths
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.records import Question, Triple

Wording = Callable[[Sequence[Triple], int], str]
"""A function that states a fact as a clause; the number chooses among its wordings."""
_FILM_WORDINGS = {
    "directed_by": ("{h} was directed by {t}", "{t} directed {h}", "the director of {h} is {t}"),
    "written_by": ("{h} was written by {t}", "{t} wrote {h}", "the writer of {h} is {t}"),
    "starred_actors": ("{t} starred in {h}", "{h} starred {t}", "{t} acted in {h}"),
    "release_year": ("{h} was released in {t}", "{h} came out in {t}"),
    "in_language": ("{h} is in the language {t}", "the language of {h} is {t}"),
    "has_genre": ("the genre of {h} is {t}", "{h} has the genre {t}"),
    "has_tags": ("{h} has the tag {t}", "a tag of {h} is {t}"),
    "has_imdb_rating": ("the IMDb rating of {h} is {t}", "{h} is rated {t} on IMDb"),
    "has_imdb_votes": ("the number of IMDb votes of {h} is {t}", "{h} has {t} votes on IMDb"),
}
"""Wordings of MetaQA's relations, which the language module can read; MetaQA has no passages to word them."""


@dataclass(frozen=True, slots=True)
class CalibrationSource:
    """A question with its gold paths (``grounds``); ``wording`` states its facts in plain sentences."""

    benchmark: str
    id: str
    grounds: Grounds
    wording: Wording

    @property
    def is_reported(self) -> bool:
        """Whether thresholds are reported, not chosen, on this question: the first byte of its id's SHA-256 is odd."""
        return hashlib.sha256(self.id.encode()).digest()[0] % 2 == 1

    def phrase(self, facts: Sequence[Triple], *seeds: str) -> str:
        """State one fact, or the several facts of one hop, as a sentence."""
        clause = self.wording(facts, choice_for(self.id, *seeds)).strip()
        return f"{clause[:1].upper()}{clause[1:].removesuffix('.')}."


def question_source(
    question: Question, graph: Iterable[Triple] = (), derivations: Sequence[Derivation] = ()
) -> CalibrationSource | None:
    """Make a source from ``derivations``, else annotations, with a ``graph`` of facts; None without a gold path."""
    if not derivations:
        grounds = grounds_of(question, graph)
        return CalibrationSource(question.benchmark, question.id, grounds, statements.state) if grounds.paths else None
    paths = [[Triple(*triple) for _, _, triple in facts] for facts in derivations]
    compares = question.kind == "comparison"
    grounds = grounds_of_paths(question.question, question.accepted, paths, graph, question.passages, compares)
    return CalibrationSource(question.benchmark, question.id, grounds, word_plainly) if grounds.paths else None


def word_plainly(facts: Sequence[Triple], _: int) -> str:
    """State a fact whose relation is the words between its ends, as R4C's are.

    >>> word_plainly([Triple("Oru", "lies on", "the Vel")], 0)
    'Oru lies on the Vel'
    """
    return f"{facts[0].head} {facts[0].relation} {facts[0].tail}"


def word_film_fact(facts: Sequence[Triple], choice: int) -> str:
    """State a fact of MetaQA's knowledge base in its own wordings; other relations get the wordings of all benchmarks.

    >>> word_film_fact([Triple("Dune Rain", "directed_by", "Ors Velt")], 1)
    'Ors Velt directed Dune Rain'
    """
    fact = facts[0]
    if fact.relation not in _FILM_WORDINGS:
        return statements.state(facts, choice)
    return statements.fill(statements.pick(_FILM_WORDINGS[fact.relation], choice), h=fact.head, t=fact.tail)


def split_hops(path: Path) -> list[list[Triple]]:
    """Group the facts of a path by hop; a hop that joins several answers has several facts.

    >>> meet, age = Triple("Ana", "where do … and … meet", "Oru"), Triple("Ors", "is", "old")
    >>> [len(hop) for hop in split_hops((meet, Triple("Vel", meet.relation, "Oru"), age))]
    [2, 1]
    """

    def hop_key(index: int) -> object:
        fact = path[index]
        joins = statements.is_free(fact) and fact.relation.count("…") > 1
        return (fact.relation, fact.tail) if joins else index

    return [[path[n] for n in places] for _, places in groupby(range(len(path)), hop_key)]
