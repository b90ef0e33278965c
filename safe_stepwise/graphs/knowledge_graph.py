"""Holds the local knowledge graph of one question: resolves entities, finds paths.

Nodes are entity keys, edges carry the triples; ``networkx`` finds the paths. Two spellings share a node
when only case, diacritics, articles, honorifics or the writing of a date or number tell them apart; name-alikes ("the
Elder" / "the Younger", "(painter)" / "(footballer)", "II" / "III") never do.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from itertools import chain, pairwise

import networkx as nx

from safe_stepwise.language.text import as_date, as_number, normal_name, present_name, qualifier
from safe_stepwise.records import Triple


@lru_cache(maxsize=16384)
def entity_key(name: str) -> str:
    """Return the key of a name's node, without aliases.

    >>> entity_key("The Élan Bridge") == entity_key("elan bridge")
    True
    >>> entity_key("Ors Velt (painter)") == entity_key("Ors Velt (footballer)")
    False
    """
    if date := as_date(name):
        return f"date:{date.year}-{date.month}-{date.day}"
    if re.fullmatch(r"[\d,. ]+|\w+", name) and (number := as_number(name)) is not None:
        return f"number:{number!r}"
    bare = present_name(normal_name(name)) or name.strip()
    described = qualifier(name)
    return f"{bare} ({described})" if described else bare


class KnowledgeGraph:
    """Triples of one question as a graph.

    Args:
        triples: the edges, in reading order.
        aliases: maps names to other names of the same entity, which may be mapped in turn.

    >>> graph = KnowledgeGraph([Triple("Dune Rain", "director", "Ors Velt"),
    ...                         Triple("Velt", "place of birth", "Oru")], {"Velt": "Ors Velt"})
    >>> [t.relation for t in graph.path("Dune Rain", "Oru")]
    ['director', 'place of birth']
    """

    def __init__(self, triples: Iterable[Triple] = (), aliases: Mapping[str, str] | None = None) -> None:
        self.aliases: Mapping[str, str] = dict(aliases or {})
        self._canonical = _canonical(tuple(self.aliases.items()))
        self._triples = dict.fromkeys(triples)
        self._ends: dict[str, dict[str, list[Triple]]] = {}
        for triple in self._triples:
            head, tail = self.node(triple.head), self.node(triple.tail)
            self._ends.setdefault(head, {}).setdefault(tail, []).append(triple)
            self._ends.setdefault(tail, {})

    @cached_property
    def _undirected(self) -> "nx.Graph[str]":
        return _build_graph((self.node(t.head), self.node(t.tail)) for t in self._triples)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """All triples, in the order in which they were added."""
        return tuple(self._triples)

    def node(self, name: str) -> str:
        """Return the key of the entity that a name means, by the aliases; the graph need not have it."""
        key = entity_key(name)
        return self._canonical.get(key, key)

    def is_same_entity(self, name: str, other_name: str) -> bool:
        """Whether two names mean one entity."""
        return self.node(name) == self.node(other_name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.node(name) in self._ends

    def find(self, head: str, relation: str, tail: str | None = None) -> tuple[Triple, ...]:
        """Return the triples from a head by a relation, to ``tail`` or (None) to anything."""
        ends = self._ends.get(self.node(head), {})
        edges = chain(*ends.values()) if tail is None else ends.get(self.node(tail), ())
        return tuple(triple for triple in edges if triple.relation == relation)

    def path(self, source: str, target: str) -> tuple[Triple, ...] | None:
        """Return the shortest path, by edges in either direction, from the source to the target, or None."""
        try:
            nodes: list[str] = nx.shortest_path(self._undirected, self.node(source), self.node(target))
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return None
        return tuple((self._ends[start].get(end) or self._ends[end][start])[0] for start, end in pairwise(nodes))

    def branches(self, path: Iterable[Triple]) -> tuple[tuple[Triple, ...], ...]:
        """Split a path into a branch for each head that no other triple leads to; branches may share triples."""
        triples = tuple(path)
        reached = {self.node(t.tail) for t in triples}
        heads = dict.fromkeys(self.node(t.head) for t in triples)
        chains = []
        for start in (head for head in heads if head not in reached):
            frontier, chain = {start}, list[Triple]()
            while onward := [t for t in triples if t not in chain and self.node(t.head) in frontier]:
                chain += onward
                frontier |= {self.node(t.tail) for t in onward}
            chains.append(tuple(chain))
        return tuple(chains)


def _build_graph(pairs: Iterable[tuple[str, str]]) -> "nx.Graph[str]":
    """Build a graph of pairs; this is faster than the constructor, which inspects its argument."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_edges_from(pairs)
    return graph


@lru_cache(maxsize=1024)
def _canonical(aliases: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Map the key of each alias to the smallest key of its entity; cached, as several graphs use it."""
    links = _build_graph((entity_key(a), entity_key(b)) for a, b in aliases)
    return {key: min(names) for names in nx.connected_components(links) for key in names}
