"""Relation paths over a graph: found from a topic entity, carried out, told entity by entity.

A path is carried out by a named convention, as benchmarks differ in what may be visited again:

- ``no_topic``: no hop leads back to the topic entity. MetaQA's answers are made so (its 3-hop
  questions ask for "other" films): 95.4, 100 and 100% of the answer sets come out exactly.
- ``no_revisit``: no entity is visited twice, which leaves 87% at three hops.
- ``walk``: anything goes, as a plain join of the triples (62% and 53% at two and three hops).
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Literal, get_args

from safe_stepwise.graphs.store import GraphStore
from safe_stepwise.records import RelationPath

Convention = Literal["no_topic", "no_revisit", "walk"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
NO_TOPIC: Convention = "no_topic"
HOPS = 3
"""How far a search goes, if not said: MetaQA's longest questions."""

Reached = Mapping[RelationPath, frozenset[int]]
"""What each executable path leads to."""


def execute(graph: GraphStore, topic: str, path: RelationPath, convention: Convention = NO_TOPIC) -> frozenset[str]:
    """The names of what a path leads to; empty for a topic or a relation that is not there.

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> graph = MemoryGraph([("Oru", "by", "Ana"), ("Vel", "by", "Ana")])
    >>> [sorted(execute(graph, "Oru", ("by", "~by"), c)) for c in ("no_topic", "walk")]
    [['Vel'], ['Oru', 'Vel']]
    """
    start = graph.node(topic)
    if start is None:
        return frozenset()
    if convention == "no_revisit":
        return frozenset(chain[-1] for chain in instances(graph, topic, path, convention))
    nodes = {start}
    for relation in path:
        nodes = graph.follow(nodes, relation)
        if convention == NO_TOPIC:
            nodes.discard(start)
    return frozenset(graph.names(sorted(nodes)))


def instances(
    graph: GraphStore, topic: str, path: RelationPath, convention: Convention = NO_TOPIC, most: int | None = None
) -> list[tuple[str, ...]]:
    """The chains of entities along a path, sorted by their names; the first ``most`` of them."""
    start = graph.node(topic)
    if start is None:
        return []
    return list(islice(_chains(graph, (start,), (topic,), path, convention), most))


def _chains(
    graph: GraphStore, nodes: tuple[int, ...], names: tuple[str, ...], path: RelationPath, convention: Convention
) -> Iterator[tuple[str, ...]]:
    """The chains that go on from one, by name, so that nobody has to wait for all of them."""
    if not path:
        yield names
        return
    barred: Collection[int] = {NO_TOPIC: nodes[:1], "no_revisit": nodes}.get(convention, ())
    ends = [node for node in graph.follow(nodes[-1:], path[0]) if node not in barred]
    for name, node in sorted(zip(graph.names(ends), ends, strict=True)):
        yield from _chains(graph, (*nodes, node), (*names, name), path[1:], convention)


def search(graph: GraphStore, topic: int, hops: int = HOPS) -> Reached:
    """All paths of 1 to ``hops`` relations that lead somewhere by ``no_topic``, and where to.

    Breadth first, a frontier of all entities that a path reaches at a time.
    """
    found: dict[RelationPath, frozenset[int]] = {}
    last: dict[RelationPath, Collection[int]] = {(): (topic,)}
    for _ in range(hops):
        frontier: dict[RelationPath, Collection[int]] = {}
        for path, nodes in last.items():
            for relation, ends in graph.steps(nodes).items():
                ends.discard(topic)
                if ends:
                    frontier[*path, relation] = found[*path, relation] = frozenset(ends)
        last = frontier
    return found


def paths_from(graph: GraphStore, topic: str, hops: int = HOPS) -> list[RelationPath]:
    """The paths of `search` from a topic by its name, shortest first, then by name."""
    start = graph.node(topic)
    found = () if start is None else search(graph, start, hops)
    return sorted(found, key=lambda path: (len(path), path))
