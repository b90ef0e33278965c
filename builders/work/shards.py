"""Resumable work: an input is cut into chunks, and each chunk becomes one file, its shard.

A shard's name holds the digest of everything that can change it, so a shard that exists is never made again. A build
that was killed repeats only unfinished chunks. Jobs are picklable, so any executor can run them.
"""

import gc
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, files

_SUMMARY = b"safe_stepwise.shard"
_GC_THRESHOLD = 50_000
"""New objects after which Python collects garbage. A chunk makes tens of thousands of small objects that
live together; collecting at every 700 took a tenth of a build."""
_DIGEST = hashlib.sha256().digest_size
"""Bytes of the digest at the end of a shard."""


class Annotator(Protocol):
    """The source of labels or steps: a benchmark's annotations, or a model behind a client."""

    @property
    def name(self) -> str:
        """The value of the ``teacher`` column: the model and the prompts' digest, nothing private."""

    @property
    def identity(self) -> str:
        """Everything that can change its output, private or not."""

    @property
    def simulated(self) -> bool:
        """Whether a script or annotations answer in a model's place."""

    @property
    def is_cpu_bound(self) -> bool:
        """Whether its work runs on this machine's cores, and does not wait for a server."""

    def check(self) -> None:
        """Raise ``UserError`` if it can't work; called before any work starts."""

    def progress(self) -> str:
        """Return the state of the requests, for the progress bar; empty without requests."""

    def close(self) -> None:
        """Free connections and files; the next use opens them again."""


class NoModel:
    """An `Annotator` without a model: it has nothing to check, to report or to free."""

    simulated = False
    is_cpu_bound = True

    check = close = staticmethod(lambda: None)
    progress = staticmethod(lambda: "")


class Summary(Protocol):
    """What a job reports of its rows: a dataclass of values that JSON can hold."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing, such as a reply that did not come."""


S = TypeVar("S", bound=Summary)
S_co = TypeVar("S_co", bound=Summary, covariant=True)


class Job(Protocol[S_co]):
    """One chunk and everything that its shard depends on."""

    @property
    def path(self) -> Path:
        """The shard's file, named by its place in the input and by the digest of what can change it."""

    @property
    def size(self) -> int:
        """Number of input rows."""

    def make(self) -> tuple[S_co, pa.RecordBatch]:
        """Make the shard's summary and its rows."""

    @property
    def summary_kind(self) -> type[S_co]:
        """The dataclass that the summary's JSON is read into."""


@dataclass(frozen=True, slots=True)
class Shard(Generic[S]):
    """The stored result of one chunk; ``cached`` if an earlier run made it."""

    path: Path
    summary: S
    cached: bool = False


def process(job: Job[S]) -> Shard[S]:
    """Return a chunk's complete shard, read or made; raise ``OSError`` (the disk) and what the job raises."""
    gc.set_threshold(_GC_THRESHOLD)
    path = job.path  # a digest of everything that the job holds: computed once
    shard = read_stored(job, path)
    if shard is None or not shard.summary.is_complete:
        summary, rows = job.make()
        shard = Shard(path, summary)
        _store(shard, rows)
    return shard


def read_stored(job: Job[S], path: Path) -> Shard[S] | None:
    """Read the shard of an earlier run at the job's ``path``; None if it is missing or damaged."""
    try:
        content = _read_content(path)
    except FileNotFoundError:
        return None
    if content is None:
        return None
    with pa.ipc.open_file(content) as reader:
        summary = boundary.read(job.summary_kind, json.loads(reader.schema.metadata[_SUMMARY]))
    return Shard(path, summary, cached=True)


def read_shard(path: Path) -> pa.Table:
    """Read the rows of one shard; raise ``UserError`` if its file is damaged."""
    if (content := _read_content(path)) is None:
        raise UserError(f"{path}: is damaged; run the same command again: it is made anew")
    with pa.ipc.open_file(content) as reader:
        return reader.read_all()


def _read_content(path: Path) -> pa.Buffer | None:
    """Read a shard's bytes; None if they do not match the digest at their end."""
    content = memoryview(path.read_bytes())
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    return pa.py_buffer(body) if hashlib.sha256(body).digest() == digest else None


def _store(shard: Shard[Any], batch: pa.RecordBatch) -> None:
    metadata = {_SUMMARY: json.dumps(boundary.plain(shard.summary), default=str).encode()}
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, batch.schema.with_metadata(metadata), options=options) as writer:
        writer.write_batch(batch.replace_schema_metadata(metadata))
    body = sink.getvalue()
    files.write_parts(shard.path, [body, hashlib.sha256(body).digest()])
