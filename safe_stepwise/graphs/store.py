"""A knowledge graph to walk on: one small interface, here in memory, in `sqlite_store` on disk.

Every relation may be followed backwards, as ``~relation``. Entities are numbers of the store, so
that whoever walks handles sets of them; a name is asked for at the start and told at the end.
"""

import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from safe_stepwise.errors import UserError
from safe_stepwise.store.files import unpacked

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
        with unpacked(file) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    text = line.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    raise UserError(f"{file}:{number}: not UTF-8; save the graph as UTF-8") from None
                if not text:
                    continue
                mark = mark or ("\t" if text.count("\t") == 2 else "|")
                parts = text.split(mark)
                if len(parts) != 3 or not all(parts):
                    form = "head|relation|tail" if mark == "|" else "head, relation and tail with tabs between"
                    raise UserError(f"{file}:{number}: {text[:80]!r} is no triple; write {form}, each with a name")
                yield parts[0], parts[1], parts[2]
    except (OSError, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{file}: can't be read to its end: {said}") from None
    if not mark:
        raise UserError(f"{file}: holds no triples; write head|relation|tail, one a line")


BACKWARDS = "~"
"""Stands before the name of a relation that is followed from tail to head."""


class GraphStore(Protocol):
    """What a graph offers. Same triples, same names: whatever the store."""

    @property
    def relations(self) -> tuple[str, ...]:
        """All of them in both directions, sorted."""

    def node(self, name: str) -> int | None:
        """The number of the entity with exactly this name; None if the graph has none."""

    def names(self, nodes: Iterable[int]) -> list[str]:
        """The names of entities, in their order."""

    def steps(self, nodes: Collection[int]) -> dict[str, set[int]]:
        """What one step from any of the entities leads to, by relation: all of a frontier at once.

        The sets are the caller's own.
        """

    def follow(self, nodes: Collection[int], relation: str) -> set[int]:
        """The same by one relation."""

    def ranges(self, most: int) -> dict[str, set[int]]:
        """What each relation leads to from anywhere, of the first ``most`` entities."""


def inverse(relation: str) -> str:
    """A relation in the other direction.

    >>> inverse("directed_by"), inverse("~directed_by")
    ('~directed_by', 'directed_by')
    """
    return relation[1:] if relation.startswith(BACKWARDS) else BACKWARDS + relation


def checked(relation: str) -> str:
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
        """Raises ``ValueError`` for a relation's name that `checked` refuses."""
        self._nodes: dict[str, int] = {}
        self._edges: list[dict[str, set[int]]] = []
        names: dict[str, tuple[str, str]] = {}
        for head, relation, tail in triples:
            if relation not in names:
                names[relation] = checked(relation), inverse(relation)
            forwards, backwards = names[relation]
            one, other = self._number(head), self._number(tail)
            self._edges[one].setdefault(forwards, set()).add(other)
            self._edges[other].setdefault(backwards, set()).add(one)
        self._names = list(self._nodes)
        self.relations = tuple(sorted(name for both in names.values() for name in both))

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
        found: dict[str, set[int]] = {}
        for node in nodes:
            for relation, ends in self._edges[node].items():
                if relation in found:
                    found[relation] |= ends
                else:
                    found[relation] = set(ends)
        return found

    def follow(self, nodes: Collection[int], relation: str) -> set[int]:
        """See `GraphStore`."""
        found: set[int] = set()
        for node in nodes:
            found |= self._edges[node].get(relation, set())
        return found

    def ranges(self, most: int) -> dict[str, set[int]]:
        """See `GraphStore`."""
        found: dict[str, set[int]] = {}
        for node, edges in enumerate(self._edges[:most]):
            for relation in edges:
                found.setdefault(inverse(relation), set()).add(node)
        return found
