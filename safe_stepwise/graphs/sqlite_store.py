"""Stores a knowledge graph in one SQLite file, for graphs that memory should not hold (Freebase's 8M).

The file is built streaming: memory holds the names alone. One statement looks up all nodes of a frontier, in the
table's order, which saves most of the search in its tree. Names and tails come back as one JSON text, as fetching a
row takes longer in Python than looking it up.
"""

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import count
from pathlib import Path

from safe_stepwise.errors import UserError
from safe_stepwise.graphs.store import NamedTriple, check_relation, inverse

_FORM = 3  # changes with the tables
_TABLES = """
CREATE TABLE entity (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE relation (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE unsorted (head INTEGER, relation INTEGER, tail INTEGER);
CREATE TABLE edge (
    head INTEGER, relation INTEGER, tail INTEGER, PRIMARY KEY (head, relation, tail)
) WITHOUT ROWID;
"""
_SORT = """
INSERT OR IGNORE INTO edge
SELECT head, 2 * relation AS step, tail FROM unsorted
UNION ALL SELECT tail, 2 * relation + 1, head FROM unsorted ORDER BY 1, 2, 3;
DROP TABLE unsorted;
CREATE INDEX entity_name ON entity (name);
"""
"""Writes both directions: the number of a relation is even forwards, odd backwards."""
_MAPPED = 2**31 - 65536  # bytes of the file that are memory-mapped: SQLite's maximum
_CACHED = 2**16  # KiB of cache for the file after the mapped bytes


def build_sqlite(file: Path, triples: Iterable[NamedTriple]) -> None:
    """Write a graph's file, completely or not at all.

    Raises ``ValueError`` for a relation's name that `check_relation` refuses, ``OSError`` if the disk can't store it.
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
    nodes: dict[str, int] = defaultdict(count().__next__)
    relations: dict[str, int] = defaultdict(count().__next__)
    connection = sqlite3.connect(half, isolation_level=None)
    try:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "page_size = 8192"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute(f"PRAGMA user_version = {_FORM}")
        connection.executescript(_TABLES)
        connection.execute("BEGIN")
        edges = ((nodes[head], relations[relation], nodes[tail]) for head, relation, tail in triples)
        connection.executemany("INSERT INTO unsorted VALUES (?, ?, ?)", edges)
        numbered = ((2 * number, check_relation(name)) for name, number in relations.items())
        steps = (step for n, name in numbered for step in ((n, name), (n + 1, inverse(name))))
        connection.executemany("INSERT INTO relation VALUES (?, ?)", steps)
        connection.executemany("INSERT INTO entity VALUES (?, ?)", ((n, name) for name, n in nodes.items()))
        connection.execute("COMMIT")
        connection.executescript(_SORT)
    finally:
        connection.close()


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
        (names,) = self._db.execute(query, (json.dumps(list(nodes)),)).fetchone()
        return list(json.loads(names))

    def steps(self, nodes: Collection[int]) -> dict[str, set[int]]:
        query = "SELECT relation, json_group_array(tail) FROM json_each(?) CROSS JOIN edge ON head = value GROUP BY 1"
        rows = self._db.execute(query, (json.dumps(sorted(nodes)),))
        return {self._relations[number]: set(json.loads(tails)) for number, tails in rows}

    def follow(self, nodes: Collection[int], relation: str) -> set[int]:
        query = "SELECT json_group_array(tail) FROM json_each(?) CROSS JOIN edge ON head = value AND relation = ?"
        (tails,) = self._db.execute(query, (json.dumps(sorted(nodes)), self._numbers.get(relation))).fetchone()
        return set(json.loads(tails))

    def ranges(self, limit: int) -> dict[str, set[int]]:
        ends_by_relation: dict[str, set[int]] = {}
        query = "SELECT DISTINCT head, relation FROM edge WHERE head < ?"
        for head, number in self._db.execute(query, (limit,)):
            ends_by_relation.setdefault(inverse(self._relations[number]), set()).add(head)
        return ends_by_relation
