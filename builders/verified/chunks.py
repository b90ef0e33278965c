"""Parses and verifies a chunk of a benchmark's rows, and stores them with their labels."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.benchmarks import BENCHMARKS, custom, parse_row
from builders.benchmarks.sources import RowsChunk
from builders.synthetic import Spec, generate
from builders.verified.questions import config_features, question_sha256
from builders.verified.teachers import Teacher, Teachers
from builders.verified.verification import apply_min_confidence, verify
from builders.work.rejects import Reject, RowsSummary
from safe_stepwise.records import NO_NOISE, NOISE_TYPES, Label, Question
from safe_stepwise.store import codec, event_loop, names, published_labels
from safe_stepwise.store.code import code_digest

CHUNK_ROWS = 200
"""Rows of a chunk: part of a shard's identity, so it is not configurable and does not depend on the workers.

It is a multiple of the synthetic benchmark's block (questions about one made-up world), so that a worker makes each
world once.
"""


@dataclass(frozen=True, slots=True)
class VerificationChunk(RowsChunk):
    """Rows of a split (or ``generated`` by a ``spec``); labels below ``min_confidence`` become undecided."""

    teacher: Teachers
    schema: pa.Schema
    min_confidence: float = 0.0
    spec: Spec | None = None
    generated: int = 0
    own_benchmark: custom.OwnBenchmark | None = None

    @property
    def path(self) -> Path:
        code = code_of(self.benchmark, self.teacher.name, self.teacher.__module__, "builders.work.shards")
        head = [code, self.teacher.identity, self.benchmark, self.split, self.start, self.min_confidence]
        identity_parts = [self.spec, self.generated, *([self.own_benchmark] if self.own_benchmark else [])]
        return self.folder / f"{self.start:09d}-{self.digest([*head, *identity_parts])[:24]}.arrow"

    @property
    def size(self) -> int:
        return self.generated or len(self.rows)

    def make(self) -> tuple[RowsSummary, pa.RecordBatch]:
        """Verify the rows; a bad one becomes a `Reject`. An error of the teacher gets the question's id as a note."""
        questions, rejects = self.questions()
        judged = [question for _, question, _ in questions]
        labels, replies = event_loop.wait_for(_verify_all(judged, self.teacher))
        earlier_types: list[str | None] = [None] * len(judged)
        if self.teacher.alone is not None:
            earlier, _ = event_loop.wait_for(_verify_all(judged, self.teacher.alone))
            earlier_types = [apply_min_confidence(label, self.min_confidence).noise_type for label in earlier]
        rows = [
            {
                "index": index,
                "question_sha256": question_sha256(question.question),
                "known_noise": is_noise,
                "unadjudicated": earlier_type,
                **codec.question_row(question),
                **codec.label_row(apply_min_confidence(label, self.min_confidence)),
            }
            for (index, question, is_noise), label, earlier_type in zip(questions, labels, earlier_types, strict=True)
        ]
        ids = tuple((index, question.id) for index, question, _ in questions)
        return RowsSummary(ids, tuple(rejects), dict(replies)), pa.RecordBatch.from_pylist(rows, schema=self.schema)

    def questions(self) -> tuple[list[tuple[int, Question, bool | None]], list[Reject]]:
        """Return the questions with index and whether they are noise (None if not known), and the bad rows."""
        if self.spec is not None:
            generated = generate(self.spec, self.start, self.start + self.generated, self.split)
            return [(n, question, noise not in NO_NOISE) for n, (question, noise) in enumerate(generated)], []
        rejects: list[Reject] = []
        parsed = self.parsed(self._parse, rejects)
        return [(index, question, is_noise) for index, (question, is_noise) in parsed], rejects

    def _parse(self, content: Mapping[str, Any]) -> tuple[Question, bool | None]:
        if self.own_benchmark is not None:
            return self.own_benchmark.parse(content, self.split), None
        question = parse_row(content, self.benchmark, self.split)
        noise_type = content.get("truth") if self.benchmark == "synthetic" else None
        return question, (noise_type not in NO_NOISE if noise_type in NOISE_TYPES else None)

    def location(self, index: int) -> str:
        return f"row {self.start + index + 1}" if self.spec else RowsChunk.location(self, index)


def shard_schema() -> pa.Schema:
    """Return a shard's columns; ``known_noise`` is null if no ground truth says whether the question is noise.

    ``unadjudicated`` is the noise type by annotations only, null if no model was asked about doubtful facts.
    """
    columns = {
        "index": pa.int32(),
        "question_sha256": pa.string(),
        "known_noise": pa.bool_(),
        "unadjudicated": pa.string(),
    }
    return pa.schema([*pa.schema(columns), *config_features(names.VERIFIED, names.LABELED).arrow_schema])


def code_of(benchmark: str, teacher: str, *modules: str) -> str:
    """Return the digest of the code (and ``modules``) by which the named teacher labels a benchmark's rows."""
    prefix = teacher.partition(":")[0]
    kind = prefix if prefix in ("annotations", "adjudicating", published_labels.PUBLISHED) else "llm"
    parse = BENCHMARKS.get(benchmark, custom.OwnBenchmark).parse
    making = (parse, generate) if benchmark == "synthetic" else (parse,)
    names = (function.__module__ for function in making)
    return code_digest(__name__, *names, f"builders.verified.teachers.{kind}", *modules)


async def _verify_all(questions: list[Question], make_teacher: Teachers) -> tuple[list[Label], Counter[str]]:
    """Return the labels of the questions, in order, and the number of the teachers' replies by class."""
    teachers = [make_teacher() for _ in questions]
    labels = await asyncio.gather(*map(_verify, questions, teachers))
    replies = sum((Counter(teacher.replies) for teacher in teachers), Counter[str]())  # without classes that count 0
    return labels, replies


async def _verify(question: Question, teacher: Teacher) -> Label:
    try:
        return await verify(question, teacher)
    except Exception as error:
        error.add_note(f"while verifying question {question.id!r}")
        raise
