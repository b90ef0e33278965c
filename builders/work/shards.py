"""Resumable work: an input is cut into chunks of a fixed size, each chunk becomes one shard file.

A shard's name is the digest of all that can change it, so a shard that exists is never made twice:
whoever is killed and started again repeats only unfinished chunks. `process_chunk` is a plain
function of one picklable argument, so any executor can run it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import builders
import safe_stepwise
from builders.benchmarks import parse_row
from builders.benchmarks.sources import RawRow, decode
from builders.synthetic import Spec, generate
from builders.verified.features import question_sha256
from builders.verified.teachers import Teacher, Teachers
from builders.verified.verification import verify
from builders.work.pool import in_order
from safe_stepwise.errors import RowError
from safe_stepwise.records import Label, Question, canonical_json
from safe_stepwise.store import event_loop
from safe_stepwise.store.codec import label_row, question_row
from safe_stepwise.store.files import write_atomically

CHUNK_ROWS = 200
"""Rows of a chunk. Part of a shard's identity, hence no option and no function of the workers.

A multiple of the synthetic benchmark's block, whose world a worker then makes once.
"""

_SUMMARY = b"safe_stepwise.shard"


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Rows that a worker makes itself, ``rows`` of them from the chunk's start on."""

    spec: Spec
    rows: int


@dataclass(frozen=True, slots=True)
class Job:
    """One chunk and all that its shard depends on; ``start`` counts rows from 0."""

    benchmark: str
    split: str
    start: int
    rows: tuple[RawRow, ...] | Synthetic
    teacher: Teachers
    schema: pa.Schema
    folder: Path

    @property
    def path(self) -> Path:
        """The shard file, named by position and content."""
        return self.folder / f"{self.start:09d}-{_key(self)[:24]}.arrow"


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that is in no split: where it was, why, and the row itself as far as it was read."""

    index: int
    location: str
    id: str | None
    reason: str
    row: Any


@dataclass(frozen=True, slots=True)
class Shard:
    """What came of one chunk; ``ids`` of the kept rows with their index within the chunk.

    ``replies`` counts the teacher's replies by class.
    """

    path: Path
    rows: int
    ids: tuple[tuple[int, str], ...]
    rejects: tuple[Reject, ...]
    replies: Mapping[str, int] = field(default_factory=dict)
    cached: bool = False

    @property
    def settled(self) -> bool:
        """Whether no reply of the teacher is owed any more."""
        return not self.replies.get("failed")


def process_chunk(job: Job) -> Shard:
    """Read, verify and store one chunk, or find it stored.

    A stored chunk in which a teacher's request failed is verified again: that reply is still owed.

    The shard is an Arrow file with the columns of ``job.schema`` and its own summary in the
    metadata; it appears under its name only when complete.

    Raises ``OSError`` (the disk), ``UserError`` (the source), and whatever the verifier does
    wrong, with the row's id as a note. A row that cannot be read is a `Reject`, not an error.
    """
    path = job.path
    shard = stored(path)
    if shard is not None and shard.settled:
        return shard
    questions, rejects = read_questions(job)
    verifying = _verify_all([question for _, question in questions], job.teacher)
    labels, replies = event_loop.wait_for(verifying)
    rows = [
        {
            "index": index,
            "question_sha256": question_sha256(question.question),
            **question_row(question),
            **label_row(label),
        }
        for (index, question), label in zip(questions, labels, strict=True)
    ]
    shard = Shard(
        path=path,
        rows=len(questions) + len(rejects),
        ids=tuple((index, question.id) for index, question in questions),
        rejects=tuple(rejects),
        replies=dict(replies),  # asdict breaks a Counter
    )
    _store(shard, pa.RecordBatch.from_pylist(rows, schema=job.schema))
    return shard


def shard_schema(labeled: pa.Schema) -> pa.Schema:
    """The columns of a shard: those of ``B_labeled``, the row's index and its question's hash."""
    extra = [pa.field("index", pa.int32()), pa.field("question_sha256", pa.string())]
    return pa.schema([*extra, *labeled])


def read_shard(path: Path) -> pa.Table:
    """The rows of one shard."""
    with pa.ipc.open_file(path) as reader:
        return reader.read_all()


def run(jobs: Iterable[Job], *, workers: int) -> Generator[tuple[Job, Shard], None, None]:
    """`process_chunk` over all jobs, results in the order of the jobs, for any ``workers`` >= 1.

    Jobs are drawn only a few ahead of the results, which bounds the memory. Finished shards stay
    when the consumer stops or an error ends the run.
    """
    return in_order(
        process_chunk, jobs, workers=workers, own_processes=lambda job: job.teacher.own_processes
    )


def raw_row(job: Job, index: int) -> tuple[str, Any]:
    """Location and content of a row of a chunk, for the rejects."""
    if isinstance(job.rows, Synthetic):
        return f"row {job.start + index + 1}", None
    row = job.rows[index]
    try:
        return row.location, decode(row)
    except RowError:
        return row.location, _as_text(row.payload)


@functools.cache
def code_digest() -> str:
    """SHA-256 of every source file that can change a label, and of the package's version."""
    digest = hashlib.sha256(safe_stepwise.__version__.encode())
    for package in (safe_stepwise, builders):
        root = Path(str(package.__file__)).parent
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"\0{root.name}/{file.relative_to(root).as_posix()}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _key(job: Job) -> str:
    head = [code_digest(), job.teacher.identity, job.benchmark, job.split, job.start]
    digest = hashlib.sha256(canonical_json(head).encode())
    if isinstance(job.rows, Synthetic):
        digest.update(canonical_json(job.rows).encode())
    else:
        for row in job.rows:
            digest.update(row.location.encode() + b"\0")
            digest.update(_as_bytes(row.payload) + b"\0")
    return digest.hexdigest()


def read_questions(job: Job) -> tuple[list[tuple[int, Question]], list[Reject]]:
    """The questions of a chunk with their index in it, and the rows that can't be read."""
    if isinstance(job.rows, Synthetic):
        stop = job.start + job.rows.rows
        made = generate(job.rows.spec, job.start, stop, job.split)
        return list(enumerate(question for question, _ in made)), []
    questions: list[tuple[int, Question]] = []
    rejects: list[Reject] = []
    for index, raw in enumerate(job.rows):
        content: Any = None
        try:
            content = decode(raw)
            questions.append((index, parse_row(content, job.benchmark, job.split)))
        except RowError as error:
            row = _as_text(raw.payload) if content is None else content
            rejects.append(Reject(index, raw.location, _id_of(content), str(error), row))
    return questions, rejects


async def _verify_all(
    questions: list[Question], teachers: Teachers
) -> tuple[list[Label], Counter[str]]:
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


def _store(shard: Shard, batch: pa.RecordBatch) -> None:
    summary = asdict(replace(shard, path=Path(shard.path.name)))
    summary["path"] = shard.path.name
    metadata = {_SUMMARY: json.dumps(summary, default=str).encode()}
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    schema = batch.schema.with_metadata(metadata)
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        writer.write_batch(batch.replace_schema_metadata(metadata))
    write_atomically(shard.path, sink.getvalue())


def stored(path: Path) -> Shard | None:
    """The shard of an earlier run. One that cannot be read (a broken disk) is made again."""
    try:
        with pa.ipc.open_file(path) as reader:
            summary = json.loads(reader.schema.metadata[_SUMMARY])
    except (FileNotFoundError, pa.ArrowInvalid):
        return None
    return Shard(
        path=path,
        rows=summary["rows"],
        ids=tuple((index, id_) for index, id_ in summary["ids"]),
        rejects=tuple(Reject(**reject) for reject in summary["rejects"]),
        replies=summary["replies"],
        cached=True,
    )


def _id_of(content: Any) -> str | None:
    """The id a broken row claims to have, under either of the benchmarks' names for it."""
    if isinstance(content, Mapping):
        for key in ("id", "_id"):
            if isinstance(content.get(key), str):
                return str(content[key])
    return None


def _as_text(payload: Any) -> Any:
    return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else payload


def _as_bytes(payload: Any) -> bytes:
    if isinstance(payload, bytes):
        return payload
    text = payload if isinstance(payload, str) else canonical_json(payload)
    return text.encode("utf-8", "surrogatepass")
