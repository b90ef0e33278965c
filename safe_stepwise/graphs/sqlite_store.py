"""Stores a knowledge graph in one SQLite file, for graphs that memory should not hold (Freebase's 8M).

The file is built streaming: memory holds twelve bytes for each triple, and the names until they are written. The table
(``WITHOUT ROWID``) has one row for each entity and relation, with all its tails as packed numbers of four bytes, so
that they are read at once. Rows are sorted before they are written, which takes half as long as sorting in SQLite.

One statement looks up all nodes of a frontier, in the table's order, which saves most of the search in its tree. Names
come back as one text, as fetching a row takes longer in Python than looking it up."""

import json
import os
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from safe_stepwise.errors import UserError
from safe_stepwise.graphs.store import NamedTriple, check_relation, inverse

_FORM = 2  # changes with the tables
_TABLES = """
CREATE TABLE entity (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE relation (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE edge (
    head INTEGER, relation INTEGER, tails BLOB NOT NULL, PRIMARY KEY (head, relation)
) WITHOUT ROWID;
"""
_BLOCK = 100_000  # edges that are turned into rows together, at least
_MAPPED = 2**31 - 65536  # bytes of the file that are memory-mapped: SQLite's maximum
_CACHED = 2**16  # KiB of cache for the file after the mapped bytes


def build_sqlite(file: Path, triples: Iterable[NamedTriple]) -> None:
    """Write a graph's file, completely or not at all.

    Raises ``ValueError`` for a relation's name that `check_relation` refuses and for too many entities (some 16M with
    8,000 relations), ``OSError`` if the disk can't store it.
    """
    half = file.with_name(f".{file.name}.half")
    half.unlink(missing_ok=True)
    try:
        _write(half, triples)
        with half.open("rb") as stream:
            os.fsync(stream.fileno())
        half.replace(file)
    except sqlite3.OperationalError as error:
        raise OSError(f"{file}: {error}") from error
    finally:
        half.unlink(missing_ok=True)


def _write(half: Path, triples: Iterable[NamedTriple]) -> None:
    connection = sqlite3.connect(half, isolation_level=None)
    try:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("PRAGMA page_size = 8192")
        connection.execute(f"PRAGMA user_version = {_FORM}")
        connection.executescript(_TABLES)
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO edge VALUES (?, ?, ?)", _rows(*_numbered(triples, connection)))
        connection.execute("COMMIT")
    finally:
        connection.close()


def _numbered(triples: Iterable[NamedTriple], connection: sqlite3.Connection) -> tuple[int, tuple[Any, Any, Any]]:
    """Write the names; return the number of entities, and heads, relations and tails as arrays of numbers."""
    nodes: dict[str, int] = defaultdict(count().__next__)
    relations: dict[str, int] = defaultdict(count().__next__)
    heads, labels, tails = array("I"), array("I"), array("I")
    for head, relation, tail in triples:
        heads.append(nodes[head])
        labels.append(relations[relation])
        tails.append(nodes[tail])
    directions = [(2 * n + side, f(check_relation(r))) for r, n in relations.items() for side, f in _DIRECTIONS]
    connection.executemany("INSERT INTO relation VALUES (?, ?)", directions)
    numbered_names = ((number, name) for name, number in nodes.items())
    connection.executemany("INSERT INTO entity VALUES (?, ?)", numbered_names)
    connection.execute("CREATE INDEX entity_name ON entity (name)")
    return len(nodes), (heads, labels, tails)


_DIRECTIONS = ((0, str), (1, inverse))  # the number of a relation is even forwards, odd backwards


def _rows(entities: int, columns: tuple[Any, Any, Any]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the rows of both directions, sorted and each once; an edge is sorted as one number."""
    heads, labels, tails = (np.frombuffer(column, np.uint32) for column in columns)
    node_bits = max(1, (entities - 1).bit_length())
    label_bits = (2 * int(labels.max(initial=0)) + 1).bit_length()
    if 2 * node_bits + label_bits > 63:
        raise ValueError(f"{entities:,} entities are too many for this store; split the graph")
    keys = np.empty(2 * len(heads), np.int64)
    for direction, (start_nodes, end_nodes) in enumerate(((heads, tails), (tails, heads))):
        half = keys[direction * len(heads) : (direction + 1) * len(heads)]
        half[:] = start_nodes
        half <<= label_bits
        half |= 2 * labels + np.uint32(direction)
        half <<= node_bits
        half |= end_nodes
    keys.sort()
    start = 0
    while start < len(keys):
        last_node = keys[min(start + _BLOCK, len(keys)) - 1] >> node_bits
        stop = int(np.searchsorted(keys, (last_node + 1) << node_bits))
        block = keys[start:stop][_changes(keys[start:stop])]
        run_starts = np.flatnonzero(_changes(block >> node_bits))
        row = block[run_starts] >> node_bits
        tails = (block & (1 << node_bits) - 1).astype(np.uint32).tobytes()
        ends = pairwise([*(4 * run_starts).tolist(), len(tails)])
        nodes, steps = (row >> label_bits).tolist(), (row & (1 << label_bits) - 1).tolist()
        yield from zip(nodes, steps, (tails[begin:end] for begin, end in ends), strict=True)
        start = stop


def _changes(ordered: Any) -> Any:
    """Return a mask of the places where a sorted array has a new value, the first included."""
    return np.append(True, ordered[1:] != ordered[:-1])


class SqliteGraph:
    """A read-only graph that `build_sqlite` wrote; its methods are those of `store.GraphStore`."""

    def __init__(self, file: Path) -> None:
        """Open a file; raises ``UserError`` for anything that `build_sqlite` did not write."""
        try:
            self._db = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
            (form,) = self._db.execute("PRAGMA user_version").fetchone()
            self._relations = dict(self._db.execute("SELECT id, name FROM relation"))
        except sqlite3.Error as error:
            raise UserError(f"{file}: is no graph of ours ({error}); build it anew") from None
        if form != _FORM:
            raise UserError(f"{file}: was built by another version; build it anew")
        self._db.execute(f"PRAGMA mmap_size = {_MAPPED}")
        self._db.execute(f"PRAGMA cache_size = {-_CACHED}")
        self._numbers = {name: number for number, name in self._relations.items()}
        self.relations = tuple(sorted(self._numbers))

    def close(self) -> None:
        self._db.close()

    def node(self, name: str) -> int | None:
        row = self._db.execute("SELECT id FROM entity WHERE name = ?", (name,)).fetchone()
        return None if row is None else int(row[0])

    def names(self, nodes: Iterable[int]) -> list[str]:
        query = "SELECT json_group_array(name) FROM json_each(?) CROSS JOIN entity ON entity.id = value"
        requested = list(nodes)
        ordered = sorted(set(requested))
        (encoded,) = self._db.execute(query, (json.dumps(ordered),)).fetchone()
        names = json.loads(encoded)
        if ordered == requested:
            return list(names)
        name_by_node = dict(zip(ordered, names, strict=True))
        return [name_by_node[node] for node in requested]

    def steps(self, nodes: Collection[int]) -> dict[str, set[int]]:
        query = "SELECT relation, tails FROM json_each(?) CROSS JOIN edge ON head = value"
        packed: dict[int, list[bytes]] = {}
        for relation, tails in self._db.execute(query, (json.dumps(sorted(nodes)),)):
            packed.setdefault(relation, []).append(tails)
        return {self._relations[number]: _unpacked(tails) for number, tails in packed.items()}

    def follow(self, nodes: Collection[int], relation: str) -> set[int]:
        if (number := self._numbers.get(relation)) is None:
            return set()
        query = "SELECT tails FROM json_each(?) CROSS JOIN edge ON head = value AND relation = ?"
        return _unpacked([tails for (tails,) in self._db.execute(query, (json.dumps(sorted(nodes)), number))])

    def ranges(self, limit: int) -> dict[str, set[int]]:
        ends_by_relation: dict[str, set[int]] = {}
        query = "SELECT head, relation FROM edge WHERE head < ?"
        for head, number in self._db.execute(query, (limit,)):
            ends_by_relation.setdefault(inverse(self._relations[number]), set()).add(head)
        return ends_by_relation


def _unpacked(tails: Iterable[bytes]) -> set[int]:
    """Unpack the numbers of several rows, which `_rows` packed in this machine's byte order."""
    return set(memoryview(b"".join(tails)).cast("I"))
