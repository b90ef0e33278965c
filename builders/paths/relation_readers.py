"""List the benchmarks over a knowledge graph by the names that ``--benchmark`` takes, and read their rows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from builders.benchmarks import BENCHMARKS, Source
from builders.benchmarks.sources import RawRow, SourceChunk, canonical_split, decode
from builders.paths import freebase, metaqa
from safe_stepwise.errors import RowError, UserError, check_choice
from safe_stepwise.graphs.store import MemoryGraph, NamedTriple
from safe_stepwise.records import KGQuestion


class Reader(Source, Protocol):
    """What the module of a benchmark over a graph offers."""

    NEEDS_GRAPH: bool
    """Whether the graph is a separate file, and not a part of each row."""
    HOPS: int
    """The most relations that a path of its questions needs."""
    HAS_GOLD: bool
    """Whether gold paths are annotated, or can be derived from the numbers of hops."""

    def chunks(self, source: str, split: str, *, size: int, limit: int | None) -> Iterator[SourceChunk]:
        """Yield the source's rows in order, as `sources.chunks`."""

    def parse(self, row: Mapping[str, Any], split: str) -> KGQuestion:
        """Parse a raw row; raise RowError with the reason when it is unusable."""

    def triples(self, row: Mapping[str, Any]) -> list[NamedTriple]:
        """Read the graph in a row; empty if the graph is a separate file."""


READERS: dict[str, Reader] = {"metaqa": metaqa, "webqsp": freebase.WEBQSP, "cwq": freebase.CWQ}

_SIZE = 1_000


def reader_of(benchmark: str) -> Reader:
    """Return the module of a benchmark; raise ``UserError`` with the nearest name for an unknown one."""
    return READERS[known_benchmark(benchmark)]


def known_benchmark(name: str) -> str:
    """Return the name of a benchmark over a graph; raise ``UserError``, with what to name instead, for another.

    >>> known_benchmark("webqsp")
    'webqsp'
    """
    if name in BENCHMARKS and name not in READERS:
        raise UserError(
            f"--benchmark {name}: its questions have passages and no knowledge graph; here are "
            f"{', '.join(READERS)} (for {name}: safe-stepwise build_verified)"
        )
    return check_choice(name, READERS, "--benchmark")


def check_graph(benchmark: str, kb: object) -> None:
    """Raise ``UserError`` if a benchmark lacks its graph's file, or needs none."""
    needed = reader_of(benchmark).NEEDS_GRAPH
    if needed and kb is None:
        raise UserError(f"{benchmark}: name the file of its knowledge graph with --kb")
    if not needed and kb is not None:
        raise UserError(f"{benchmark}: each row brings its own graph; leave out --kb")


def own_graph(benchmark: str, row: Mapping[str, Any]) -> MemoryGraph:
    """Read the graph in a row; raise RowError with the reason for a bad one."""
    try:
        return MemoryGraph(reader_of(benchmark).triples(row))
    except ValueError as error:
        raise RowError(str(error)) from None


def raw_rows(benchmark: str, source: str, split: str, limit: int | None = None) -> Iterator[RawRow]:
    """Yield a source's rows in order."""
    for chunk in reader_of(benchmark).chunks(source, canonical_split(split), size=_SIZE, limit=limit):
        yield from chunk.rows


@contextmanager
def locate_errors(row: RawRow) -> Iterator[None]:
    """Turn a RowError into a ``UserError`` with the row's place."""
    try:
        yield
    except RowError as error:
        raise UserError(f"{row.location}: {error}; mend the row") from None


def with_topic(question: KGQuestion) -> KGQuestion:
    """Return a question that a path can start from; raise RowError for another."""
    if not question.topics:
        raise RowError("it has no topic entity: there is nowhere to start from")
    return question


def questions(benchmark: str, source: str, split: str, limit: int | None = None) -> Iterator[KGQuestion]:
    """Yield a source's questions to build from, in order; raise ``UserError``, with the place, for a bad row."""
    for row in raw_rows(benchmark, source, split, limit):
        with locate_errors(row):
            question = with_topic(reader_of(benchmark).parse(decode(row), canonical_split(split)))
        yield question
