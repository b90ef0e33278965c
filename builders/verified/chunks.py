"""A chunk of a benchmark's rows: parsed, verified, and stored with its labels."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.benchmarks import BENCHMARKS, parse_row
from builders.benchmarks.rows import content_of, digest_of, read_rows
from builders.benchmarks.sources import RawRow
from builders.synthetic import Spec, generate
from builders.verified.features import question_sha256
from builders.verified.teachers import Teacher, Teachers
from builders.verified.verification import doubted, verify
from builders.work.rejects import Reject
from safe_stepwise.records import NOISE_TYPES, Label, Question, canonical_json
from safe_stepwise.store import event_loop
from safe_stepwise.store.agreement import SOUND
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.codec import label_row, question_row
from safe_stepwise.store.published import PUBLISHED

CHUNK_ROWS = 200
"""Rows of a chunk. Part of a shard's identity, hence no option and no function of the workers.

A multiple of the synthetic benchmark's block, whose world a worker then makes once.
"""


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Rows that a worker makes itself, ``rows`` of them from the chunk's start on."""

    spec: Spec
    rows: int


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of a chunk; ``ids`` of the kept rows with their index within it.

    ``replies`` counts the teacher's replies by class.
    """

    ids: tuple[tuple[int, str], ...]
    rejects: tuple[Reject, ...]
    replies: Mapping[str, int] = field(default_factory=dict)

    @property
    def settled(self) -> bool:
        """Whether no reply of the teacher is owed any more."""
        return not self.replies.get("failed")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a split and who verifies them, a `work.shards.Job`; ``start`` counts rows from 0."""

    benchmark: str
    split: str
    start: int
    rows: tuple[RawRow, ...] | Synthetic
    teacher: Teachers
    schema: pa.Schema
    folder: Path
    min_confidence: float = 0.0

    @property
    def path(self) -> Path:
        """The shard file, named by position and content."""
        return self.folder / f"{self.start:09d}-{_key(self)[:24]}.arrow"

    @property
    def size(self) -> int:
        """Rows of the source."""
        return self.rows.rows if isinstance(self.rows, Synthetic) else len(self.rows)

    def make(self) -> tuple[Verified, pa.RecordBatch]:
        """Read and verify the rows.

        Raises what the verifier does wrong, with the row's id as a note. A row that cannot be read
        is a `Reject`, not an error.
        """
        questions, rejects = self._read()
        verifying = _verify_all([question for _, question, _ in questions], self.teacher)
        labels, replies = event_loop.wait_for(verifying)
        rows = [
            {
                "index": index,
                "question_sha256": question_sha256(question.question),
                "known_noise": known,
                **question_row(question),
                **label_row(doubted(label, self.min_confidence)),
            }
            for (index, question, known), label in zip(questions, labels, strict=True)
        ]
        ids = tuple((index, question.id) for index, question, _ in questions)
        found = Verified(ids, tuple(rejects), dict(replies))  # asdict breaks a Counter
        return found, pa.RecordBatch.from_pylist(rows, schema=self.schema)

    def read(self, summary: dict[str, Any]) -> Verified:
        """What `make` said, of its JSON."""
        return Verified(
            tuple((index, id_) for index, id_ in summary["ids"]),
            tuple(Reject(**reject) for reject in summary["rejects"]),
            summary["replies"],
        )

    def questions(self) -> tuple[list[tuple[int, Question]], list[Reject]]:
        """The questions with their index in the chunk, and the rows that can't be read."""
        read, rejects = self._read()
        return [(index, question) for index, question, _ in read], rejects

    def _read(self) -> tuple[list[tuple[int, Question, bool | None]], list[Reject]]:
        """The same, and whether a question is known to be noise: of made-up ones; to score with."""
        if isinstance(self.rows, Synthetic):
            made = generate(self.rows.spec, self.start, self.start + self.rows.rows, self.split)
            return [(n, question, truth not in SOUND) for n, (question, truth) in enumerate(made)], []
        rejects: list[Reject] = []
        read = read_rows(self.rows, self._parsed, rejects)
        return [(index, question, truth) for index, (question, truth) in read], rejects

    def _parsed(self, content: Mapping[str, Any]) -> tuple[Question, bool | None]:
        question = parse_row(content, self.benchmark, self.split)
        return question, _truth(content, self.benchmark)

    def location(self, index: int) -> str:
        """Where a row is in the source."""
        if isinstance(self.rows, Synthetic):
            return f"row {self.start + index + 1}"
        return self.rows[index].location

    def raw_row(self, index: int) -> Any:
        """A row's content, for the rejects; None for one that is made and not read."""
        return None if isinstance(self.rows, Synthetic) else content_of(self.rows[index])


def shard_schema(labeled: pa.Schema) -> pa.Schema:
    """The columns of a shard: those of ``B_labeled``, and what is not, or not there, published.

    These are the row's index, the hash of its question, and whether it is known to be noise.
    """
    index, known = pa.field("index", pa.int32()), pa.field("known_noise", pa.bool_())
    return pa.schema([index, pa.field("question_sha256", pa.string()), known, *labeled])


def code_of(benchmark: str, teacher: str, *modules: str) -> str:
    """Digest of the code by which a teacher, by name, labels a benchmark's rows.

    ``modules`` are others that had a part in it.
    """
    kind = teacher.partition(":")[0]
    asker = kind if kind in ("annotations", PUBLISHED) else "llm"
    parsing = generate if benchmark == "synthetic" else BENCHMARKS[benchmark].parse
    by = f"builders.verified.teachers.{asker}"
    return code_digest(__name__, parsing.__module__, by, *modules)


def _key(chunk: Chunk) -> str:
    teacher = chunk.teacher
    by = (teacher.__module__, "builders.work.shards")
    code = code_of(chunk.benchmark, teacher.name, *by)
    head = [code, teacher.identity, chunk.benchmark, chunk.split, chunk.start, chunk.min_confidence]
    if isinstance(chunk.rows, Synthetic):
        return hashlib.sha256(canonical_json([head, chunk.rows]).encode()).hexdigest()
    return digest_of(head, chunk.rows)


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


def _truth(content: Any, benchmark: str) -> bool | None:
    """Whether a made-up row of a file says to be noise."""
    truth = content.get("truth") if benchmark == "synthetic" else None
    return truth not in SOUND if truth in NOISE_TYPES else None
