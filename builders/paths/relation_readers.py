"""The benchmarks over a knowledge graph, by the name that ``--benchmark`` takes: one line each; and their graphs.

Builds and evaluations open a graph alike, in memory or, if it is large, from SQLite.
"""

import functools
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from builders.benchmarks import BENCHMARKS
from builders.benchmarks.sources import Chunk, RawRow, canonical_split, decode
from builders.paths import metaqa
from builders.paths.freebase import CWQ, WEBQSP
from safe_stepwise.errors import RowError, UserError, at_place, one_of
from safe_stepwise.graphs.sqlite_store import SqliteGraph, build_sqlite
from safe_stepwise.graphs.store import GraphStore, MemoryGraph, NamedTriple, read_triples
from safe_stepwise.records import KGQuestion
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.progress import telling


class Reader(Protocol):
    """What a benchmark's module offers: all that anyone needs to know of it."""

    NAME: str
    LICENSE: str
    """Licence of the data, as a Hub licence id."""
    HOMEPAGE: str
    CITATION: str
    """BibTeX."""
    CAVEAT: str
    """What its paths can't tell; for the card."""
    NEEDS_GRAPH: bool
    """Whether the graph is a file of its own, and not a part of each row."""

    def chunks(self, source: str, split: str, *, size: int, limit: int | None) -> Iterator[Chunk]:
        """The source's rows in order, as `sources.chunks`."""

    def parse(self, row: Mapping[str, Any], split: str) -> KGQuestion:
        """The question of one raw row; RowError with the reason when it is unusable."""

    def triples(self, row: Mapping[str, Any]) -> list[NamedTriple]:
        """The graph that a row brings along, if it does."""


READERS: dict[str, Reader] = {"metaqa": metaqa, "webqsp": WEBQSP, "cwq": CWQ}

_SIZE = 1_000


def reader_of(benchmark: str) -> Reader:
    """The module of a benchmark; ``UserError`` with the nearest name for one that is not known."""
    return READERS[known_benchmark(benchmark)]


def known_benchmark(name: str) -> str:
    """``name`` if it is one of them; else ``UserError`` with the nearest, or with what is done with
    a benchmark of passages.

    >>> known_benchmark("webqsp")
    'webqsp'
    """
    if name in BENCHMARKS and name not in READERS:
        raise UserError(
            f"--benchmark {name}: its questions have passages and no knowledge graph; here are "
            f"{', '.join(READERS)} (for {name}: safe-stepwise build_verified)"
        )
    return one_of(name, READERS, "--benchmark")


def check_graph(benchmark: str, kb: object) -> None:
    """Raise ``UserError`` where a benchmark lacks its graph's file, or needs none."""
    needed = reader_of(benchmark).NEEDS_GRAPH
    if needed and kb is None:
        raise UserError(f"{benchmark}: name the file of its knowledge graph with --kb")
    if not needed and kb is not None:
        raise UserError(f"{benchmark}: each row brings its own graph; leave out --kb")


def own_graph(benchmark: str, row: Mapping[str, Any]) -> MemoryGraph:
    """The graph that a row brings along; RowError with the reason for what is none."""
    try:
        return MemoryGraph(reader_of(benchmark).triples(row))
    except ValueError as error:
        raise RowError(str(error)) from None


def raw_rows(
    benchmark: str, source: str, split: str, limit: int | None = None
) -> Iterator[tuple[RawRow, Mapping[str, Any]]]:
    """The rows of a file or a pinned Hub dataset, in order, with what they hold.

    Raises ``UserError``, with the place, for a row that holds no object.
    """
    for chunk in reader_of(benchmark).chunks(source, canonical_split(split), size=_SIZE, limit=limit):
        for row in chunk.rows:
            with placed(row):
                content = decode(row)
            yield row, content


@contextmanager
def placed(row: RawRow) -> Iterator[None]:
    """Raise ``UserError``, with the place, for a row that can't be read."""
    try:
        yield
    except RowError as error:
        raise UserError(f"{row.location}: {error}; mend the row") from None


def questions(benchmark: str, source: str, split: str, limit: int | None = None) -> Iterator[KGQuestion]:
    """The questions of a file or a pinned Hub dataset, in order; raises as `raw_rows`."""
    for row, content in raw_rows(benchmark, source, split, limit):
        with placed(row):
            question = reader_of(benchmark).parse(content, canonical_split(split))
        yield question


LARGE = 64 * 2**20
"""Bytes of a graph's file from which it is kept on disk: its dictionaries would take some GB."""


@dataclass(frozen=True, slots=True)
class GraphFile:
    """Where the graph is: triples a line, or what `build_sqlite` wrote of them."""

    file: Path
    digest: str
    """SHA-256 of the triples' file."""

    def open(self) -> GraphStore:
        """The graph, read once a process."""
        return _opened(self)


@functools.lru_cache(maxsize=1)
def _opened(graph: GraphFile) -> GraphStore:
    if graph.file.suffix == ".sqlite":
        return SqliteGraph(graph.file)
    return MemoryGraph(read_triples(graph.file))


def graph_of(kb: Path, work: Path) -> tuple[GraphFile, dict[str, Any]]:
    """The graph of a file as it is opened, and its record.

    A large one is put into a SQLite file in the folder ``work``, once. Raises ``UserError`` for a
    file that is no graph.
    """
    try:
        digest = sha256_of(kb)
        large = kb.stat().st_size >= LARGE
    except OSError as error:
        raise UserError(f"{kb}: can't be read: {error.strerror}") from None
    read = Counter[str]()

    def counted() -> Iterator[NamedTriple]:
        for triple in read_triples(kb):
            read["triples"] += 1
            yield triple

    file = GraphFile(kb.absolute(), digest)
    if large:
        file = GraphFile(work.absolute() / f"graph-{digest[:24]}.sqlite", digest)
    with at_place(f"{kb}", ValueError):
        if large and not file.file.exists():
            file.file.parent.mkdir(parents=True, exist_ok=True)
            with telling("graph", "triple", None, lambda: read["triples"], lambda: ""):
                build_sqlite(file.file, counted())
        else:
            deque(counted(), maxlen=0)
        relations = len(file.open().relations)
    return file, {"name": kb.name, "digest": digest, "triples": read["triples"], "relations": relations // 2}
