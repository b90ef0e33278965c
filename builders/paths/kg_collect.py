"""Cuts a source into chunks; for a chunk it parses each question, searches its paths, and adds negatives."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa

from builders.benchmarks.sources import RowsChunk, canonical_split, in_chunks
from builders.paths import weak
from builders.paths.relation_readers import READERS, GraphFile, check_graph, own_graph, reader_of, with_topic
from builders.paths.weak import NEGATIVES, negatives
from builders.work import plans, shards
from builders.work.rejects import Reject, RowsSummary
from safe_stepwise.commands.values import Count, Name, Share
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.graph_store import GraphStore
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion
from safe_stepwise.store.code import code_digest

TEST_SHARE = 0.2
CHUNK_ROWS = 200
"""Rows of a chunk: part of a shard's identity, so it is not configurable and does not depend on the workers."""
_PATH = pa.list_(pa.string())
SCHEMA = pa.schema(
    {
        "index": pa.int32(),
        **dict.fromkeys(("question_id", "question", "topic", "template"), pa.string()),
        "topics": pa.list_(pa.string()),
        "hops": pa.int32(),
        "answers": pa.int32(),
        "left_out": pa.int32(),  # triples of the question's own graph with a blank name, counted at its first topic
        "candidates": pa.list_(
            pa.struct({"path": _PATH, "f1": pa.float64(), "is_shortest": pa.bool_(), "is_best": pa.bool_()})
        ),
        "gold": pa.list_(_PATH),  # annotated
        "negatives": pa.list_(pa.struct({"path": _PATH, "kind": pa.string(), "of": _PATH})),
    }
)
"""The columns of a shard: a row is a topic entity of a question, whose row in the chunk is ``index``."""


@dataclass(frozen=True, slots=True)
class PathsBuild(plans.Plan):
    """The options of a build of relation paths; ``sources`` are files or ``hub-id@rev``, ``kb`` a graph's file."""

    work_name: ClassVar[str] = "paths-{plan.benchmark}"
    benchmark: Annotated[str, Name(READERS)]
    sources: tuple[str, ...]
    split: Annotated[str, canonical_split]
    kb: Path | None = None
    test_share: Share = TEST_SHARE
    max_hops: Count | None = None
    """The maximum number of relations of a path; None: those that the benchmark's questions need."""
    negatives: Count = NEGATIVES
    """The maximum number of negatives of each hard kind."""

    def __post_init__(self) -> None:
        check_graph(self.benchmark, self.kb)
        if not 0 < self.test_share < 1:
            raise UserError(f"--test-share {self.test_share}: a share lies between 0 and 1")

    @property
    def hops(self) -> int:
        return self.max_hops or reader_of(self.benchmark).HOPS


class Searcher(shards.NoModel):
    """The annotator of searched rows; it asks no model."""

    name = identity = "search"


@dataclass(frozen=True, slots=True)
class PathsChunk(RowsChunk):
    """Rows of a source, with the settings of their search."""

    source: int
    graph: GraphFile | None
    """None if each row has its own graph."""
    max_hops: int
    max_negatives: int
    seed: int

    @property
    def path(self) -> Path:
        code = code_digest(__name__, reader_of(self.benchmark).parse.__module__, "builders.work.shards")
        graph = self.graph.digest if self.graph else None
        settings = [graph, self.max_hops, self.max_negatives, self.seed]
        key = self.digest([code, self.benchmark, self.split, self.start, *settings])
        return self.folder / f"{self.source:03d}-{self.start:09d}-{key[:24]}.arrow"

    def make(self) -> tuple[RowsSummary, pa.RecordBatch]:
        """Read the rows and search their graph; a row that can't be read becomes a reject."""
        rejects: list[Reject] = []
        ids: list[tuple[int, str]] = []
        rows: list[dict[str, Any]] = []
        for index, (question, graph) in self.parsed(self._parse, rejects):
            rows += self._searched(index, question, graph)
            ids.append((index, question.id))
        return RowsSummary(tuple(ids), tuple(rejects)), pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    def _parse(self, content: Mapping[str, Any]) -> tuple[KGQuestion, GraphStore]:
        question = with_topic(reader_of(self.benchmark).parse(content, self.split))
        return question, own_graph(self.benchmark, content) if self.graph is None else self.graph.open()

    def _searched(self, index: int, question: KGQuestion, graph: GraphStore) -> Iterator[dict[str, Any]]:
        """Yield a row for each topic entity of a question."""
        explored = weak.explore_all(graph, question, self.max_hops)
        template = masked(question.question, question.topics)
        for number, (topic, topic_paths) in enumerate(explored.items()):
            key = f"{self.seed}\0{question.id}\0{topic}"
            wrong = negatives(topic, explored, key, self.max_negatives)
            yield {
                "index": index,
                "question_id": question.id,
                "question": question.question,
                "topic": topic,
                "template": template,
                "topics": question.topics,
                "hops": question.hops,
                "answers": len(question.answers),
                "left_out": 0 if number else graph.left_out,
                "candidates": [asdict(candidate) for candidate in topic_paths.candidates],
                "gold": [gold.path for gold in question.gold_paths if gold.topic == topic],
                "negatives": [{"path": n.path, "kind": n.kind, "of": n.source} for n in wrong],
            }


def jobs(plan: PathsBuild, graph: GraphFile | None) -> Iterator[PathsChunk]:
    """Yield the rows of all sources in chunks."""
    reader, settings = reader_of(plan.benchmark), (graph, plan.hops, plan.negatives, plan.seed)
    for number, source in enumerate(plan.sources):
        for n, rows in in_chunks(reader.read_rows(source, plan.split, plan.limit), CHUNK_ROWS):
            yield PathsChunk(plan.benchmark, plan.split, n, rows, plan.work / "shards", number, *settings)
