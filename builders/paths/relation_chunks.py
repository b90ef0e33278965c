"""A chunk of a benchmark's questions: parsed, their paths searched, stored with their negatives."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.benchmarks.rows import RowsChunk
from builders.paths.negatives import negatives
from builders.paths.relation_inputs import GraphFile
from builders.paths.relation_readers import reader_of
from builders.paths.weak import Explored, explore
from builders.work.rejects import Reject, RowsRead
from builders.work.shards import NoModel
from safe_stepwise.errors import RowError
from safe_stepwise.graphs.store import GraphStore, MemoryGraph
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion
from safe_stepwise.store.code import code_digest

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


class Searcher(NoModel):
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
        graph = self.graph.digest if self.graph else None
        head = [code_of(self.benchmark), self.benchmark, self.split, self.start, graph]
        key = self.digest([*head, self.max_hops, self.most, self.seed])
        return self.folder / f"{self.source:03d}-{self.start:09d}-{key[:24]}.arrow"

    def make(self) -> tuple[RowsRead, pa.RecordBatch]:
        """Read the rows and search their graph; one that can't be read is among the rejects."""
        rejects: list[Reject] = []
        ids: list[tuple[int, str]] = []
        rows: list[dict[str, Any]] = []
        for index, (question, graph) in self.parsed(self._read, rejects):
            rows += self._explored(index, question, graph)
            ids.append((index, question.id))
        return RowsRead(tuple(ids), tuple(rejects)), pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    def _read(self, content: Mapping[str, Any]) -> tuple[KGQuestion, GraphStore]:
        reader = reader_of(self.benchmark)
        question = reader.parse(content, self.split)
        if self.graph is not None:
            return question, self.graph.open()
        try:
            return question, MemoryGraph(reader.triples(content))
        except ValueError as error:
            raise RowError(str(error)) from None

    def _explored(self, index: int, question: KGQuestion, graph: GraphStore) -> list[dict[str, Any]]:
        """A row for each topic entity."""
        hops, most = question.hops, max(self.max_hops, question.hops)
        explored = {t: explore(graph, t, question.answers, hops, most) for t in question.topics}
        template = masked(question.question, question.topics)
        return [
            {
                "index": index,
                "question_id": question.id,
                "question": question.question,
                "topic": topic,
                "template": template,
                "hops": hops,
                "answers": len(question.answers),
                "candidates": [_columns(c, "path", "f1", "shortest", "tied") for c in own.candidates],
                "negatives": self._negatives(question, topic, explored),
            }
            for topic, own in explored.items()
        ]

    def _negatives(self, question: KGQuestion, topic: str, explored: Mapping[str, Explored]) -> list[dict[str, Any]]:
        key = f"{self.seed}\0{question.id}\0{topic}"
        return [_columns(n, "path", "kind", "of") for n in negatives(topic, explored, key, self.most)]


def _columns(noun: object, *names: str) -> dict[str, Any]:
    return {name: getattr(noun, name) for name in names}


def code_of(benchmark: str) -> str:
    """Digest of the code by which a benchmark's rows become shards."""
    return code_digest(__name__, reader_of(benchmark).parse.__module__, "builders.work.shards")
