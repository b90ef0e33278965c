"""A knowledge graph to walk on: one small interface, here in memory, in `sqlite_store` on disk.

Every relation may be followed backwards, as ``~relation``. Entities are numbers of the store, so
that whoever walks handles sets of them; a name is asked for at the start and told at the end.

Relation paths are found from a topic entity, carried out, told entity by entity: by a named convention, as benchmarks
differ in what may be visited again:

- ``no_topic``: no hop leads back to the topic entity. MetaQA's answers are made so (its 3-hop
  questions ask for "other" films): 95.4, 100 and 100% of the answer sets come out exactly.
- ``no_revisit``: no entity is visited twice, which leaves 87% at three hops.
- ``walk``: anything goes, as a plain join of the triples (62% and 53% at two and three hops).
"""

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal, Protocol, get_args

from safe_stepwise.errors import UserError
from safe_stepwise.records import RelationPath
from safe_stepwise.store.files import open_unpacked
from safe_stepwise.store.progress import note

NamedTriple = tuple[str, str, str]
"""Head, relation, tail: their names."""


def read_triples(file: Path) -> Iterator[NamedTriple]:
    """The triples of a file in order, streamed; empty lines are none, blanks around names stay.

    A line is ``head|relation|tail``, or the same with tabs: the first says which of the two parts the names, so that
    the other may stand in them. The file may be gzipped. Raises ``UserError``, with the line, for what is no triple or
    no UTF-8, and for a file that can't be read to its end or has no triples.
    """
    mark = ""
    try:
        with open_unpacked(file) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    text = line.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    raise UserError(f"{file}:{number}: not UTF-8; save the graph as UTF-8") from None
                if not text:
                    continue
                mark = mark or ("\t" if text.count("\t") == 2 else "|")
                fields = text.split(mark)
                if len(fields) != 3 or not all(fields):
                    form = "head|relation|tail" if mark == "|" else "head, relation and tail with tabs between"
                    raise UserError(f"{file}:{number}: {text[:80]!r} is no triple; write {form}, each with a name")
                yield fields[0], fields[1], fields[2]
    except (OSError, EOFError, zlib.error) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{file}: can't be read to its end: {problem}") from None
    if not mark:
        raise UserError(f"{file}: holds no triples; write head|relation|tail, one a line")


BACKWARDS = "~"
"""Stands before the name of a relation that is followed from tail to head."""


class GraphStore(Protocol):
    """The interface of a graph. The same triples give the same names in any store."""

    @property
    def relations(self) -> tuple[str, ...]:
        """All of them in both directions, sorted."""

    def node(self, name: str) -> int | None:
        """The number of the entity with exactly this name; None if the graph has none."""

    def names(self, nodes: Iterable[int]) -> list[str]:
        """The names of entities, in their order."""

    def steps(self, nodes: Collection[int]) -> dict[str, set[int]]:
        """Return the nodes one step away from any of the entities, by relation.

        The sets are the caller's own.
        """

    def follow(self, nodes: Collection[int], relation: str) -> set[int]:
        """Return the nodes one step away from any of the entities by one relation."""

    def ranges(self, limit: int) -> dict[str, set[int]]:
        """Return the nodes that each relation leads to from anywhere, among the first ``limit`` entities."""


def inverse(relation: str) -> str:
    """A relation in the other direction.

    >>> inverse("directed_by"), inverse("~directed_by")
    ('~directed_by', 'directed_by')
    """
    return relation[1:] if relation.startswith(BACKWARDS) else BACKWARDS + relation


def check_relation(relation: str) -> str:
    """A relation of a graph, forwards; raises ``ValueError`` if its name can't be told from one
    that is followed backwards.
    """
    if relation.startswith(BACKWARDS):
        raise ValueError(f"the relation {relation!r} begins with {BACKWARDS!r}, which is ours")
    return relation


class MemoryGraph:
    """A graph in dictionaries: the fastest, for some millions of triples.

    >>> graph = MemoryGraph([("Dune Rain", "directed_by", "Ana"), ("Oru", "directed_by", "Ana")])
    >>> sorted(graph.names(graph.follow([graph.node("Ana")], "~directed_by")))
    ['Dune Rain', 'Oru']
    """

    def __init__(self, triples: Iterable[NamedTriple]) -> None:
        """Raises ``ValueError`` for a relation's name that `check_relation` refuses."""
        self._nodes: dict[str, int] = {}
        self._edges: list[dict[str, set[int]]] = []
        names: dict[str, tuple[str, str]] = {}
        for head, relation, tail in triples:
            if relation not in names:
                names[relation] = check_relation(relation), inverse(relation)
            forwards, backwards = names[relation]
            start, end = self._number(head), self._number(tail)
            self._edges[start].setdefault(forwards, set()).add(end)
            self._edges[end].setdefault(backwards, set()).add(start)
        self._names = list(self._nodes)
        self.relations = tuple(sorted(name for directions in names.values() for name in directions))

    def _number(self, name: str) -> int:
        number = self._nodes.setdefault(name, len(self._nodes))
        if number == len(self._edges):
            self._edges.append({})
        return number

    def node(self, name: str) -> int | None:
        """See `GraphStore`."""
        return self._nodes.get(name)

    def names(self, nodes: Iterable[int]) -> list[str]:
        """See `GraphStore`."""
        return [self._names[node] for node in nodes]

    def steps(self, nodes: Collection[int]) -> dict[str, set[int]]:
        """See `GraphStore`."""
        ends_by_relation: dict[str, set[int]] = {}
        for node in nodes:
            for relation, ends in self._edges[node].items():
                if relation in ends_by_relation:
                    ends_by_relation[relation] |= ends
                else:
                    ends_by_relation[relation] = set(ends)
        return ends_by_relation

    def follow(self, nodes: Collection[int], relation: str) -> set[int]:
        """See `GraphStore`."""
        reached: set[int] = set()
        for node in nodes:
            reached |= self._edges[node].get(relation, set())
        return reached

    def ranges(self, limit: int) -> dict[str, set[int]]:
        """See `GraphStore`."""
        ends_by_relation: dict[str, set[int]] = {}
        for node, edges in enumerate(self._edges[:limit]):
            for relation in edges:
                ends_by_relation.setdefault(inverse(relation), set()).add(node)
        return ends_by_relation


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
    graph: GraphStore, topic: str, path: RelationPath, convention: Convention = NO_TOPIC, limit: int | None = None
) -> list[tuple[str, ...]]:
    """The chains of entities along a path, sorted by their names; the first ``limit`` of them.

    Those that are met in `MAX_VISITED` steps, that is: of a path with more the rest is left out, which is said.
    """
    start = graph.node(topic)
    if start is None:
        return []
    budget = iter(range(MAX_VISITED))
    chains = list(islice(_chains(graph, (start,), (topic,), path, convention, budget), limit))
    if next(budget, None) is None:
        left_out = f"only the first {len(chains):,} chains of {' > '.join(path)} are told, and entities by them"
        note(f"from {topic!r} {left_out}: {MAX_VISITED:,} were visited")
    return chains


def _chains(
    graph: GraphStore,
    nodes: tuple[int, ...],
    names: tuple[str, ...],
    path: RelationPath,
    convention: Convention,
    budget: Iterator[int],
) -> Iterator[tuple[str, ...]]:
    """The chains that go on from one, by name, so that nobody has to wait for all of them."""
    if not path:
        yield names
        return
    barred: Collection[int] = {NO_TOPIC: nodes[:1], "no_revisit": nodes}.get(convention, ())
    ends = [node for node in graph.follow(nodes[-1:], path[0]) if node not in barred]
    for name, node in sorted(zip(graph.names(ends), ends, strict=True)):
        if next(budget, None) is None:
            return
        yield from _chains(graph, (*nodes, node), (*names, name), path[1:], convention, budget)


MAX_PATHS = 200_000
"""Paths from a topic entity: MetaQA's films have at most some thousands of three relations."""
MAX_REACHED = 5_000_000
"""Entities that a search looks at, each as often as a relation leads to it from another set of them."""
MAX_VISITED = 5_000_000
"""Entities that are visited for the chains of a path, dead ends included."""


def search(graph: GraphStore, topic: int, hops: int = HOPS) -> Reached:
    """All paths of 1 to ``hops`` relations that lead somewhere by ``no_topic``, and where to.

    Breadth first, a frontier of all entities that a path reaches at a time. A hop with which there would be more than
    `MAX_PATHS`, or more than `MAX_REACHED` entities to look at, is left out as a whole, which is said.
    """
    reached: dict[RelationPath, frozenset[int]] = {}
    last: Reached = {(): frozenset((topic,))}
    onwards: dict[frozenset[int], Reached] = {}
    visited = 0
    for hop in range(hops):
        frontier: dict[RelationPath, frozenset[int]] = {}
        for path, nodes in last.items():
            if nodes not in onwards:
                steps = {(relation,): frozenset(ends - {topic}) for relation, ends in graph.steps(nodes).items()}
                onwards[nodes] = {step: ends for step, ends in steps.items() if ends}
                visited += sum(map(len, steps.values()))
            frontier |= {path + step: ends for step, ends in onwards[nodes].items()}
            if len(reached) + len(frontier) > MAX_PATHS or visited > MAX_REACHED:
                _tell_cut(hop, graph.names([topic])[0])
                return reached
        reached |= frontier
        if not frontier:
            break
        last = frontier
    return reached


@cache
def _tell_cut(hop: int, topic: str) -> None:
    """Say that a search ended early, once a topic and hop."""
    excess = f"more than {MAX_PATHS:,} paths, or {MAX_REACHED:,} entities on the way"
    note(f"from {topic!r} paths of up to {hop} relations are searched: {hop + 1} would be {excess}")


def paths_from(graph: GraphStore, topic: str, hops: int = HOPS) -> list[RelationPath]:
    """The paths of `search` from a topic by its name, shortest first, then by name."""
    start = graph.node(topic)
    paths = () if start is None else search(graph, start, hops)
    return sorted(paths, key=lambda path: (len(path), path))
