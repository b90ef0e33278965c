"""A knowledge graph in one SQLite file: for graphs that memory should not hold (Freebase's 8M).

Built streaming: memory holds the names alone, the triples are staged on disk and sorted there, so
that the table (``WITHOUT ROWID``, a row a direction) is written from its beginning to its end.
"""

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from safe_stepwise.errors import UserError
from safe_stepwise.graphs.store import checked, inverse
from safe_stepwise.graphs.triples import NamedTriple

_FORM = 1
"""Changes with the tables."""
_TABLES = """
CREATE TABLE entity (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE relation (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE staged (head INTEGER, relation INTEGER, tail INTEGER);
CREATE TABLE edge (
    head INTEGER, relation INTEGER, tail INTEGER, PRIMARY KEY (head, relation, tail)
) WITHOUT ROWID;
"""
_SORTED = """
INSERT OR IGNORE INTO edge
SELECT head, relation, tail FROM staged
UNION ALL SELECT tail, relation + 1, head FROM staged
ORDER BY 1, 2, 3
"""


def build_sqlite(file: Path, triples: Iterable[NamedTriple]) -> None:
    """Write a graph's file, which is never there in part.

    Raises ``ValueError`` for a relation's name that `checked` refuses, ``OSError`` where the disk
    does not take it.
    """
    half = file.with_name(f".{file.name}.half")
    half.unlink(missing_ok=True)
    try:
        _write(half, triples)
        with half.open("rb") as written:
            os.fsync(written.fileno())
        half.replace(file)
    except sqlite3.OperationalError as error:
        raise OSError(f"{file}: {error}") from error
    finally:
        half.unlink(missing_ok=True)


def _write(half: Path, triples: Iterable[NamedTriple]) -> None:
    connection = sqlite3.connect(half, isolation_level=None)
    try:
        for said in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
            connection.execute(f"PRAGMA {said}")
        connection.execute(f"PRAGMA user_version = {_FORM}")
        connection.execute("PRAGMA cache_size = -65536")
        connection.executescript(_TABLES)
        connection.execute("BEGIN")
        nodes: dict[str, int] = {}
        relations: dict[str, int] = {}
        rows = _numbered(triples, nodes, relations)
        connection.executemany("INSERT INTO staged VALUES (?, ?, ?)", rows)
        named = ((number, name) for name, number in nodes.items())
        connection.executemany("INSERT INTO entity VALUES (?, ?)", named)
        del nodes, named
        both = [(n + by, f(name)) for name, n in relations.items() for by, f in _DIRECTIONS]
        connection.executemany("INSERT INTO relation VALUES (?, ?)", both)
        connection.execute("CREATE INDEX entity_name ON entity (name)")
        connection.execute(_SORTED)
        connection.execute("DROP TABLE staged")
        connection.execute("COMMIT")
    finally:
        connection.close()


_DIRECTIONS = ((0, str), (1, inverse))


def _numbered(
    triples: Iterable[NamedTriple], nodes: dict[str, int], relations: dict[str, int]
) -> Iterator[tuple[int, int, int]]:
    """The triples in numbers; fills both dictionaries. Backwards a relation has the odd number."""
    for head, relation, tail in triples:
        if relation not in relations:
            relations[checked(relation)] = 2 * len(relations)
        yield (
            nodes.setdefault(head, len(nodes)),
            relations[relation],
            nodes.setdefault(tail, len(nodes)),
        )


class SqliteGraph:
    """A graph that `build_sqlite` wrote, read only; `store.GraphStore` tells its methods."""

    def __init__(self, file: Path) -> None:
        """Raises ``UserError`` for a file that is no such graph."""
        try:
            self._db = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
            (form,) = self._db.execute("PRAGMA user_version").fetchone()
            self._relations = dict(self._db.execute("SELECT id, name FROM relation"))
        except sqlite3.Error as error:
            raise UserError(f"{file}: is no graph of ours ({error}); build it anew") from None
        if form != _FORM:
            raise UserError(f"{file}: was built by another version; build it anew")
        self._db.execute("PRAGMA mmap_size = 1073741824")
        self._numbers = {name: number for number, name in self._relations.items()}
        self.relations = tuple(sorted(self._numbers))

    def close(self) -> None:
        """Free the file."""
        self._db.close()

    def node(self, name: str) -> int | None:
        """See `GraphStore`."""
        found = self._db.execute("SELECT id FROM entity WHERE name = ?", (name,)).fetchone()
        return None if found is None else int(found[0])

    def names(self, nodes: Iterable[int]) -> list[str]:
        """See `GraphStore`."""
        wanted = list(nodes)
        asked = "SELECT id, name FROM json_each(?) CROSS JOIN entity ON id = value"
        found = dict(self._db.execute(asked, (json.dumps(wanted),)))
        return [found[node] for node in wanted]

    def steps(self, nodes: Collection[int]) -> dict[str, set[int]]:
        """See `GraphStore`."""
        asked = "SELECT relation, tail FROM json_each(?) CROSS JOIN edge ON head = value"
        found: dict[int, set[int]] = {}
        for relation, tail in self._db.execute(asked, (json.dumps(list(nodes)),)):
            found.setdefault(relation, set()).add(tail)
        return {self._relations[number]: ends for number, ends in found.items()}

    def follow(self, nodes: Collection[int], relation: str) -> set[int]:
        """See `GraphStore`."""
        number = self._numbers.get(relation)
        if number is None:
            return set()
        asked = "SELECT tail FROM json_each(?) CROSS JOIN edge ON head = value AND relation = ?"
        found = self._db.execute(asked, (json.dumps(list(nodes)), number))
        return {tail for (tail,) in found}
