"""List the benchmarks over a knowledge graph by the names that ``--benchmark`` takes, and read their rows."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from builders.benchmarks import Source
from builders.benchmarks.sources import RawRow, canonical_split, decode
from builders.paths import freebase, grailqa, metaqa
from safe_stepwise.errors import RowError, UserError, at_place, check_choice
from safe_stepwise.graphs.graph_store import GraphStore, NamedTriple, read_triples
from safe_stepwise.records import KGQuestion
from safe_stepwise.store import files


class Reader(Source, Protocol):
    """What the module of a benchmark over a graph offers."""

    NEEDS_GRAPH: bool
    """Whether the graph is a separate file, and not a part of each row."""
    HOPS: int
    """The maximum number of relations that a path of its questions needs."""
    HAS_GOLD: bool
    """Whether gold paths are annotated, or can be derived from the numbers of hops."""

    def read_rows(self, source: str, split: str, limit: int | None = None) -> Iterator[RawRow]:
        """Yield the source's rows in order, as `sources.read_rows`."""

    def parse(self, row: Mapping[str, Any], split: str) -> KGQuestion:
        """Parse a raw row; raise RowError with the reason when it is unusable."""

    def triples(self, row: Mapping[str, Any]) -> list[NamedTriple]:
        """Read the graph in a row; empty if the graph is a separate file."""


READERS: dict[str, Reader] = {"metaqa": metaqa, "webqsp": freebase.WEBQSP, "cwq": freebase.CWQ, "grailqa": grailqa}


def reader_of(benchmark: str) -> Reader:
    """Return the module of a benchmark; raise ``UserError`` with the nearest name for an unknown one."""
    return READERS[check_choice(benchmark, READERS, "--benchmark")]


def check_graph(benchmark: str, kb: object) -> None:
    """Raise ``UserError`` if a benchmark lacks its graph's file, or needs none."""
    needed = reader_of(benchmark).NEEDS_GRAPH
    if needed and kb is None:
        raise UserError(f"{benchmark}: its knowledge graph is a file; name it (--kb)")
    if not needed and kb is not None:
        raise UserError(f"{benchmark}: each row brings its own graph; name no file of one (--kb)")


@dataclass(frozen=True, slots=True)
class GraphFile:
    """The file of a graph, one triple a line."""

    file: Path
    digest: str
    """Its SHA-256."""

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a graph from a file; raise ``UserError``, with the line, for a bad one."""
        try:
            graph = cls(file.absolute(), files.sha256_of(file))
        except OSError as error:
            raise UserError(f"{file}: can't be read: {error.strerror}") from None
        graph.open()
        return graph

    def open(self) -> GraphStore:
        """Open the graph, which a process reads once."""
        return _open_graph(self)

    @property
    def description(self) -> dict[str, Any]:
        """The file and its numbers of triples and relations, for the record of a build."""
        graph = self.open()
        sizes = {"triples": graph.triples, "relations": len(graph.relations) // 2}
        return {"name": self.file.name, "digest": self.digest, **sizes}


@functools.lru_cache(maxsize=1)
def _open_graph(graph: GraphFile) -> GraphStore:
    with at_place(f"{graph.file}", ValueError):
        return GraphStore(read_triples(graph.file))


def own_graph(benchmark: str, row: Mapping[str, Any]) -> GraphStore:
    """Read the graph in a row; raise RowError with the reason for a bad one."""
    try:
        return GraphStore(reader_of(benchmark).triples(row))
    except ValueError as error:
        raise RowError(str(error)) from None


def with_topic(question: KGQuestion) -> KGQuestion:
    """Return a question that a path can start from; raise RowError for another."""
    if not question.topics:
        raise RowError("it has no topic entity: there is nowhere to start from")
    return question


def questions(benchmark: str, source: str, split: str, limit: int | None = None) -> Iterator[KGQuestion]:
    """Yield a source's questions to build from, in order; raise ``UserError``, with the place, for a bad row."""
    reader, split = reader_of(benchmark), canonical_split(split)
    for row in reader.read_rows(source, split, limit):
        with at_place(row.location, RowError):
            question = with_topic(reader.parse(decode(row), split))
        yield question
