"""The first half of a build of relation paths: from sources and a graph to searched shards.

A chunk of a benchmark's questions is parsed, their paths are searched, and both stored with negatives.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa

from builders.benchmarks.sources import RowsChunk, canonical_split
from builders.paths import weak
from builders.paths.negatives import MOST, negatives
from builders.paths.relation_inputs import GraphFile
from builders.paths.relation_readers import READERS, check_graph, own_graph, reader_of
from builders.work import collect as work
from builders.work import plans, shards
from builders.work.rejects import Reject, RejectPolicy, RowsSummary
from safe_stepwise.commands.values import Count, Known, Share
from safe_stepwise.errors import UserError
from safe_stepwise.graphs import store
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion
from safe_stepwise.store.code import code_digest

TEST_SHARE = 0.2
CHUNK_ROWS = 200
"""Rows of a chunk. Part of a shard's identity, hence no option and no function of the workers."""
_PATH = pa.list_(pa.string())
SCHEMA = pa.schema(
    {
        "index": pa.int32(),
        "question_id": pa.string(),
        "question": pa.string(),
        "topic": pa.string(),
        "template": pa.string(),
        "hops": pa.int32(),
        "answers": pa.int32(),
        "candidates": pa.list_(
            pa.struct({"path": _PATH, "f1": pa.float64(), "shortest": pa.bool_(), "tied": pa.bool_()})
        ),
        "negatives": pa.list_(pa.struct({"path": _PATH, "kind": pa.string(), "of": _PATH})),
    }
)
"""A row is a topic entity of a question; ``index`` is its row's in the chunk."""


@dataclass(frozen=True, slots=True)
class PathsBuild(plans.Plan):
    """What to search. Each of ``sources`` is a file or ``hub-id@rev``, ``kb`` the graph's file."""

    work_name: ClassVar[str] = "paths-{plan.benchmark}"
    benchmark: Annotated[str, Known(READERS)]
    sources: tuple[str, ...]
    split: Annotated[str, canonical_split]
    kb: Path | None = None
    test_share: Share = TEST_SHARE
    max_hops: Count = store.HOPS
    negatives: Count = MOST
    """Of each hard kind, at most."""

    def __post_init__(self) -> None:
        check_graph(self.benchmark, self.kb)
        if not 0 < self.test_share < 1:
            raise UserError(f"--test-share {self.test_share}: a share lies between 0 and 1")


class Searcher(shards.NoModel):
    """Who makes the rows: a search, no model."""

    name = identity = "search"


@dataclass(frozen=True, slots=True)
class PathsChunk(RowsChunk):
    """Rows of a source and how they are searched."""

    source: int
    graph: GraphFile | None
    """None where each row brings its own."""
    max_hops: int
    most: int
    seed: int

    @property
    def path(self) -> Path:
        """The shard file, named by position and content."""
        code = code_digest(__name__, reader_of(self.benchmark).parse.__module__, "builders.work.shards")
        graph = self.graph.digest if self.graph else None
        how = [graph, self.max_hops, self.most, self.seed]
        key = self.digest([code, self.benchmark, self.split, self.start, *how])
        return self.folder / f"{self.source:03d}-{self.start:09d}-{key[:24]}.arrow"

    def make(self) -> tuple[RowsSummary, pa.RecordBatch]:
        """Read the rows and search their graph; one that can't be read is among the rejects."""
        rejects: list[Reject] = []
        ids: list[tuple[int, str]] = []
        rows: list[dict[str, Any]] = []
        for index, (question, graph) in self.parsed(self._parse, rejects):
            rows += self._searched(index, question, graph)
            ids.append((index, question.id))
        return RowsSummary(tuple(ids), tuple(rejects)), pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    def _parse(self, content: Mapping[str, Any]) -> tuple[KGQuestion, store.GraphStore]:
        question = reader_of(self.benchmark).parse(content, self.split)
        return question, own_graph(self.benchmark, content) if self.graph is None else self.graph.open()

    def _searched(self, index: int, question: KGQuestion, graph: store.GraphStore) -> Iterator[dict[str, Any]]:
        """A row for each topic entity."""
        explored = weak.explore_all(graph, question, self.max_hops)
        template = masked(question.question, question.topics)
        for topic, own in explored.items():
            key = f"{self.seed}\0{question.id}\0{topic}"
            wrong = negatives(topic, explored, key, self.most)
            yield {
                "index": index,
                "question_id": question.id,
                "question": question.question,
                "topic": topic,
                "template": template,
                "hops": question.hops,
                "answers": len(question.answers),
                "candidates": [_columns(c, "path", "f1", "shortest", "tied") for c in own.candidates],
                "negatives": [_columns(n, "path", "kind", "of") for n in wrong],
            }


def _columns(noun: object, *names: str) -> dict[str, Any]:
    return {name: getattr(noun, name) for name in names}


def jobs(plan: PathsBuild, graph: GraphFile | None) -> Iterator[PathsChunk]:
    """The rows of all sources, chunk by chunk."""
    reader, how = reader_of(plan.benchmark), (graph, plan.max_hops, plan.negatives, plan.seed)
    for number, source in enumerate(plan.sources):
        for part in reader.chunks(source, plan.split, size=CHUNK_ROWS, limit=plan.limit):
            head = (plan.benchmark, plan.split, part.start, part.rows, plan.work / "shards")
            yield PathsChunk(*head, number, *how)


def collect(plan: PathsBuild, graph: GraphFile | None, collected: work.Collected) -> None:
    """Run all chunks; fills ``collected`` as it goes, and ``rejects.jsonl`` in the work folder."""
    policy = RejectPolicy(plan.benchmark, plan.split, plan.keep_rejects)
    work.collect(plan, policy, functools.partial(jobs, plan, graph), Searcher(), plan.sources, collected, "question")
