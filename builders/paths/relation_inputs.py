"""Open a knowledge graph for builds and evaluations, in memory or, if it is large, from SQLite."""

import functools
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError, at_place
from safe_stepwise.graphs.sqlite_store import SqliteGraph, build_sqlite
from safe_stepwise.graphs.store import GraphStore, MemoryGraph, NamedTriple, read_triples
from safe_stepwise.store import files, progress

LARGE = 64 * 2**20
"""Bytes of a graph file from which the graph is stored on disk, as its dictionaries would take some GB."""


@dataclass(frozen=True, slots=True)
class GraphFile:
    """The file of a graph: one triple a line, or a database that `build_sqlite` wrote."""

    file: Path
    digest: str
    """SHA-256 of the file of triples."""

    def open(self) -> GraphStore:
        """Open the graph, which a process reads once."""
        return _opened(self)


@functools.lru_cache(maxsize=1)
def _opened(graph: GraphFile) -> GraphStore:
    if graph.file.suffix == ".sqlite":
        return SqliteGraph(graph.file)
    return MemoryGraph(read_triples(graph.file))


def graph_of(kb: Path, work: Path) -> tuple[GraphFile, dict[str, Any]]:
    """Return a file's graph (in ``work`` as SQLite if it is large) and its record; raise ``UserError`` for none."""
    try:
        digest = files.sha256_of(kb)
        is_large = kb.stat().st_size >= LARGE
    except OSError as error:
        raise UserError(f"{kb}: can't be read: {error.strerror}") from None
    read = Counter[str]()

    def count_triples() -> Iterator[NamedTriple]:
        for triple in read_triples(kb):
            read["triples"] += 1
            yield triple

    file = GraphFile(kb.absolute(), digest)
    if is_large:
        file = GraphFile(work.absolute() / f"graph-{digest[:24]}.sqlite", digest)
    with at_place(f"{kb}", ValueError):
        if is_large and not file.file.exists():
            file.file.parent.mkdir(parents=True, exist_ok=True)
            with progress.show_progress("graph", "triple", None, lambda: read["triples"], lambda: ""):
                build_sqlite(file.file, count_triples())
        else:
            deque(count_triples(), maxlen=0)
        relations = len(file.open().relations)
    return file, {"name": kb.name, "digest": digest, "triples": read["triples"], "relations": relations // 2}
