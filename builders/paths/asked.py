"""The noun of the probe: a question with the paths that lead to its answer."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from safe_stepwise.graphs.told import end_key, first_lost, starts_of
from safe_stepwise.language.text import words_of
from safe_stepwise.records import Triple

Path = tuple[Triple, ...]
Fact = tuple[str, str, str]
"""A triple as the graph knows it: names and relation as they compare."""
Refuse = Callable[[str, str, str], object]
"""Told of a benchmark, a question's id and why it is left out."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what counts as its answer, and its gold paths, the first of which is shown.

    ``start``: what a walk of the graph sets out from; ``facts``: what is known beside the paths;
    ``free``: relations in free words, of which nobody can say which others mean the same;
    ``needed``: places (from 1) of the shown path's triples that no gold path does without.
    """

    benchmark: str
    id: str
    question: str
    answer: str
    accepted: tuple[str, ...]
    paths: tuple[Path, ...]
    start: str
    needed: tuple[int, ...]
    facts: Path = ()
    free: frozenset[str] = frozenset()
    text: str = ""
    """The words of what the question may be answered from, where there is any."""
    is_held_out: bool = False
    """Whether it is one that systems are evaluated on, and so belongs to test."""

    @property
    def path(self) -> Path:
        """The gold path that is shown."""
        return self.paths[0]

    @property
    def starts(self) -> frozenset[str]:
        """What a reader may start from on that path."""
        return starts_of(self.question, self.path)

    @property
    def key(self) -> str:
        """What questions that are the same share, whatever their id."""
        return f"{self.benchmark}\0{words_of(self.question)}"

    def is_right(self, path: Sequence[Triple]) -> bool:
        """Whether a path holds a gold one, told in an order that follows from its starts."""
        told = {fact_of(triple) for triple in path}
        return any(
            first_lost(path, starts_of(self.question, gold)) is None
            for gold in self.paths
            if {fact_of(triple) for triple in gold} <= told
        )


def fact_of(triple: Triple) -> Fact:
    """A triple as it compares with others.

    >>> fact_of(Triple("The Silent Ford", "Director", "Ana Vorr"))
    ('silent ford', 'director', 'ana vorr')
    """
    return end_key(triple.head), triple.relation.strip().casefold(), end_key(triple.tail)


def bare(triples: Iterable[Triple]) -> Path:
    """Triples without the places they were read at, each once."""
    return tuple(dict.fromkeys(replace(t, passage=None, sentence=None) for t in triples))
