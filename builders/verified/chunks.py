"""A chunk of a benchmark's rows: parsed, verified, and stored with its labels."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.benchmarks import BENCHMARKS, parse_row
from builders.benchmarks.sources import RowsChunk
from builders.synthetic import Spec, generate
from builders.verified.features import config_features, question_sha256
from builders.verified.teachers import Teacher, Teachers
from builders.verified.verification import doubted, verify
from builders.work.rejects import Reject, RowsSummary
from safe_stepwise.records import NOISE_TYPES, Label, Question
from safe_stepwise.store import agreement, codec, event_loop
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.names import LABELED, VERIFIED

CHUNK_ROWS = 200
"""Rows of a chunk. Part of a shard's identity, hence no option and no function of the workers.

A multiple of the synthetic benchmark's block, whose world a worker then makes once.
"""


@dataclass(frozen=True, slots=True)
class Chunk(RowsChunk):
    """Rows of a split and who verifies them; or ``generated`` rows of a ``spec``, which the worker makes itself."""

    teacher: Teachers
    schema: pa.Schema
    min_confidence: float = 0.0
    spec: Spec | None = None
    generated: int = 0

    @property
    def path(self) -> Path:
        """The shard file, named by position and content."""
        code = code_of(self.benchmark, self.teacher.name, self.teacher.__module__, "builders.work.shards")
        head = [code, self.teacher.identity, self.benchmark, self.split, self.start, self.min_confidence]
        return self.folder / f"{self.start:09d}-{self.digest([*head, self.spec, self.generated])[:24]}.arrow"

    @property
    def size(self) -> int:
        """Rows of the source."""
        return self.generated or len(self.rows)

    def make(self) -> tuple[RowsSummary, pa.RecordBatch]:
        """Read and verify the rows.

        Raises what the verifier does wrong, with the row's id as a note. A row that cannot be read is a `Reject`, not
        an error.
        """
        questions, rejects = self._questions()
        verifying = _verify_all([question for _, question, _ in questions], self.teacher)
        labels, replies = event_loop.wait_for(verifying)
        rows = [
            {
                "index": index,
                "question_sha256": question_sha256(question.question),
                "known_noise": is_noise,
                **codec.question_row(question),
                **codec.label_row(doubted(label, self.min_confidence)),
            }
            for (index, question, is_noise), label in zip(questions, labels, strict=True)
        ]
        ids = tuple((index, question.id) for index, question, _ in questions)
        summary = RowsSummary(ids, tuple(rejects), dict(replies))  # asdict breaks a Counter
        return summary, pa.RecordBatch.from_pylist(rows, schema=self.schema)

    def questions(self) -> tuple[list[tuple[int, Question]], list[Reject]]:
        """The questions with their index in the chunk, and the rows that can't be read."""
        read, rejects = self._questions()
        return [(index, question) for index, question, _ in read], rejects

    def _questions(self) -> tuple[list[tuple[int, Question, bool | None]], list[Reject]]:
        """The same, and whether a made-up question is known to be noise, to score with."""
        if self.spec is not None:
            made = generate(self.spec, self.start, self.start + self.generated, self.split)
            return [(n, question, truth not in agreement.SOUND) for n, (question, truth) in enumerate(made)], []
        rejects: list[Reject] = []
        read = self.parsed(self._parse, rejects)
        return [(index, question, truth) for index, (question, truth) in read], rejects

    def _parse(self, content: Mapping[str, Any]) -> tuple[Question, bool | None]:
        question = parse_row(content, self.benchmark, self.split)
        truth = content.get("truth") if self.benchmark == "synthetic" else None
        return question, (truth not in agreement.SOUND if truth in NOISE_TYPES else None)

    def location(self, index: int) -> str:
        """Where a row is in the source."""
        return f"row {self.start + index + 1}" if self.spec else RowsChunk.location(self, index)

    def raw_row(self, index: int) -> Any:
        """A row's content, for the rejects; None for one that is made and not read."""
        return None if self.spec else RowsChunk.raw_row(self, index)


def shard_schema() -> pa.Schema:
    """The columns of a shard: those of ``B_labeled``, and what is not, or not there, published.

    These are the row's index, the hash of its question, and whether it is known to be noise.
    """
    own = {"index": pa.int32(), "question_sha256": pa.string(), "known_noise": pa.bool_()}
    return pa.schema([*pa.schema(own), *config_features(VERIFIED, LABELED).arrow_schema])


def code_of(benchmark: str, teacher: str, *modules: str) -> str:
    """Digest of the code by which a teacher, by name, labels a benchmark's rows.

    ``modules`` are others that had a part in it.
    """
    kind = teacher.partition(":")[0]
    asker = kind if kind in ("annotations", agreement.PUBLISHED) else "llm"
    parsing = generate if benchmark == "synthetic" else BENCHMARKS[benchmark].parse
    by = f"builders.verified.teachers.{asker}"
    return code_digest(__name__, parsing.__module__, by, *modules)


async def _verify_all(questions: list[Question], teachers: Teachers) -> tuple[list[Label], Counter[str]]:
    """Labels in the questions' order, and the teachers' replies by class."""
    ours = [teachers() for _ in questions]
    labels = await asyncio.gather(*map(_verified, questions, ours))
    replies: Counter[str] = Counter()
    for teacher in ours:
        replies.update(teacher.replies)
    return labels, +replies


async def _verified(question: Question, teacher: Teacher) -> Label:
    try:
        return await verify(question, teacher)
    except Exception as error:
        error.add_note(f"while verifying question {question.id!r}")
        raise
