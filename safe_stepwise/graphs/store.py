"""Store a knowledge graph, follow relation paths in it, and search for them.

`GraphStore` is the interface; `MemoryGraph` is here, a store on disk in `sqlite_store`. A relation path can follow a
relation backwards, as ``~relation``. Entities (nodes) are numbers of the store; names are converted at both ends.

From a topic entity, `search` finds paths, and `instances` the chains of entities along a path. Benchmarks differ in
which entities a path may visit again, so each takes a convention:

- ``no_topic``: no hop leads back to the topic entity. MetaQA's answers are made so (its 3-hop questions ask for
  "other" films): this gives 95.4, 100 and 100% of its answer sets (at one, two, three hops) exactly.
- ``no_revisit``: no entity is visited twice; gives 87% at three hops.
- ``walk``: any entity may be visited again, as in a plain join of triples; gives 62% and 53% at two and three hops.
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
"""The names of head, relation and tail."""


def read_triples(file: Path) -> Iterator[NamedTriple]:
    """Yield the triples of a file, perhaps gzipped, in order; skips empty lines and keeps blanks around names.

    A line is ``head|relation|tail``, or has tabs instead: the first line decides for the file, so that names may
    contain the other separator. Raises ``UserError``, with the line's number, for a line that is no triple or not
    UTF-8, and for a file that can't be read to its end or has no triples.
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
"""The prefix of a relation that is followed from tail to head."""


class GraphStore(Protocol):
    """The interface of a graph. The same triples give the same names in any store."""

    @property
    def relations(self) -> tuple[str, ...]:
        """All relations in both directions (``by`` and ``~by``), sorted."""

    def node(self, name: str) -> int | None:
        """Return the number of the entity with exactly this name; None if the graph has none."""

    def names(self, nodes: Iterable[int]) -> list[str]:
        """Return the names of entities, in the order of ``nodes``."""

    def steps(self, nodes: Collection[int]) -> dict[str, set[int]]:
        """Return the nodes one step away from any of the entities, by relation; the sets are the caller's own."""

    def follow(self, nodes: Collection[int], relation: str) -> set[int]:
        """Return the nodes one step away from any of the entities by one relation."""

    def ranges(self, limit: int) -> dict[str, set[int]]:
        """Return the nodes that each relation leads to from anywhere, among the first ``limit`` entities."""


def inverse(relation: str) -> str:
    """Return a relation in the other direction.

    >>> inverse("directed_by"), inverse("~directed_by")
    ('~directed_by', 'directed_by')
    """
    return relation[1:] if relation.startswith(BACKWARDS) else BACKWARDS + relation


def check_relation(relation: str) -> str:
    """Return a relation's name unchanged; raise ``ValueError`` if it looks like a relation backwards."""
    if relation.startswith(BACKWARDS):
        raise ValueError(f"the relation {relation!r} begins with {BACKWARDS!r}, which is ours")
    return relation


class MemoryGraph:
    """A graph in dictionaries: the fastest store, for up to some millions of triples.

    >>> graph = MemoryGraph([("Dune Rain", "directed_by", "Ana"), ("Oru", "directed_by", "Ana")])
    >>> sorted(graph.names(graph.follow([graph.node("Ana")], "~directed_by")))
    ['Dune Rain', 'Oru']
    """

    def __init__(self, triples: Iterable[NamedTriple]) -> None:
        """Store the triples, without the ``left_out`` with an empty name; raise ``ValueError`` as `check_relation`."""
        self._nodes: dict[str, int] = {}
        self._edges: list[dict[str, set[int]]] = []
        self.left_out = 0
        names: dict[str, tuple[str, str]] = {}
        for head, relation, tail in triples:
            if not (head and relation and tail):
                self.left_out += 1
                continue
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
        return self._nodes.get(name)

    def names(self, nodes: Iterable[int]) -> list[str]:
        return [self._names[node] for node in nodes]

    def steps(self, nodes: Collection[int]) -> dict[str, set[int]]:
        ends_by_relation: dict[str, set[int]] = {}
        for node in nodes:
            for relation, ends in self._edges[node].items():
                if relation in ends_by_relation:
                    ends_by_relation[relation] |= ends
                else:
                    ends_by_relation[relation] = set(ends)
        return ends_by_relation

    def follow(self, nodes: Collection[int], relation: str) -> set[int]:
        reached: set[int] = set()
        for node in nodes:
            reached |= self._edges[node].get(relation, set())
        return reached

    def ranges(self, limit: int) -> dict[str, set[int]]:
        ends_by_relation: dict[str, set[int]] = {}
        for node, edges in enumerate(self._edges[:limit]):
            for relation in edges:
                ends_by_relation.setdefault(inverse(relation), set()).add(node)
        return ends_by_relation


Convention = Literal["no_topic", "no_revisit", "walk"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
NO_TOPIC: Convention = "no_topic"
HOPS = 3
"""Default maximum length of a path in relations, as MetaQA's longest questions need."""

Reached = Mapping[RelationPath, frozenset[int]]
"""The ends of each path that has any."""


def instances(
    graph: GraphStore, topic: str, path: RelationPath, convention: Convention = NO_TOPIC, limit: int | None = None
) -> list[tuple[str, ...]]:
    """List the chains of entities along a path, sorted by name; the first ``limit`` of them (None: all).

    The search ends after `MAX_VISITED` visits and prints a note about the chains that it leaves out.
    """
    if (start := graph.node(topic)) is None:
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
    """Yield the chains that continue one along a path, sorted by name; each visit takes one from ``budget``."""
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
"""Maximum number of paths that a search finds: MetaQA's films have some thousands of three relations at most."""
MAX_REACHED = 5_000_000
"""Maximum number of entities that a search visits; an entity counts each time that a relation leads to it."""
MAX_VISITED = 5_000_000
"""Maximum number of visits while listing the chains of a path, dead ends included."""


def search(
    graph: GraphStore, topic: int, hops: int = HOPS, path: RelationPath = (), limit: int | None = None
) -> Reached:
    """Find all paths of up to ``hops`` relations that go on from ``path``, with their ends by ``no_topic``.

    Searches breadth first. A hop that would exceed `MAX_PATHS` or `MAX_REACHED` is left out as a whole, with a note;
    with a ``limit``, one that would exceed that number of paths, but for the first.
    """
    reached: dict[RelationPath, frozenset[int]] = {}
    ends = frozenset((topic,))
    for relation in path:
        ends = frozenset(graph.follow(ends, relation) - {topic})
    last: Reached = {path: ends}
    onwards: dict[frozenset[int], Reached] = {}
    visited = 0
    for hop in range(len(path), hops):
        frontier: dict[RelationPath, frozenset[int]] = {}
        for prefix, nodes in last.items():
            if nodes not in onwards:
                steps = {(relation,): frozenset(ends - {topic}) for relation, ends in graph.steps(nodes).items()}
                onwards[nodes] = {step: ends for step, ends in steps.items() if ends}
                visited += sum(map(len, steps.values()))
            frontier |= {prefix + step: ends for step, ends in onwards[nodes].items()}
            if limit is not None and reached and len(reached) + len(frontier) > limit:
                return reached
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
    """Print a note that a search ended early, once per topic and hop."""
    excess = f"more than {MAX_PATHS:,} paths, or {MAX_REACHED:,} entities on the way"
    note(f"from {topic!r} paths of up to {hop} relations are searched: {hop + 1} would be {excess}")
