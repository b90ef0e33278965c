"""Which relations of a graph lead to things of another sort, as far as the graph itself shows it.

That an entity does not stand under a relation shows nothing: a graph is never whole. That hardly
anything stands under two relations does, where both lead to many: people are no years. Hardly, as a
film called "1984" is one entity with the year in a graph that knows entities by their names alone.
"""

from collections.abc import Mapping
from functools import cache
from weakref import WeakKeyDictionary

from safe_stepwise.graphs.store import GraphStore

MOST = 50_000
"""Entities of a graph that are looked at: all of MetaQA's (43,234), of Freebase a sample."""
FEWEST = 100
"""Entities that each of two relations has to lead to before their being apart means something."""
SELDOM = 0.01
"""The share of the smaller of two ranges that may be in both. In MetaQA people share at most .0064
with films, but the three relations that lead to people at least .095 with each other. A film may
have the name of a year (.058), so that of those two nothing is said."""


class Ranges:
    """What the relations of a graph lead to, beside each other.

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> graph = MemoryGraph([(f"film {n}", "by", f"person {n}") for n in range(200)])
    >>> Ranges(graph).are_apart("by", "~by"), Ranges(graph).are_apart("by", "by")
    (True, False)
    """

    def __init__(self, graph: GraphStore) -> None:
        self._ends: Mapping[str, set[int]] = graph.ranges(MOST)
        self.are_apart = cache(self._are_apart)

    def _are_apart(self, one: str, other: str) -> bool:
        """Whether what one relation leads to is nothing that the other could lead to."""
        ends, others = (self._ends.get(relation, set()) for relation in (one, other))
        fewer = min(len(ends), len(others))
        return fewer >= FEWEST and len(ends & others) <= SELDOM * fewer


_KNOWN: WeakKeyDictionary[GraphStore, Ranges] = WeakKeyDictionary()


def ranges_of(graph: GraphStore) -> Ranges:
    """A graph's ranges, which are looked at once."""
    found = _KNOWN.get(graph)
    if found is None:
        found = _KNOWN[graph] = Ranges(graph)
    return found
