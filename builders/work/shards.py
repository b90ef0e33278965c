"""Resumable work: an input is cut into chunks, and each chunk becomes one file, its shard.

A shard's name has the digest of all that can change it, so one that exists is never made twice: whoever is killed and
started again repeats only unfinished chunks. Jobs are picklable, so any executor can run them.
"""

import gc
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary
from safe_stepwise.store.files import write_parts

_SUMMARY = b"safe_stepwise.shard"
_SELDOM = 50_000
"""New objects after which Python looks for what only holds itself. A chunk is tens of thousands of
small ones that live together: looking through them at every 700 took a tenth of a build."""
_DIGEST = hashlib.sha256().digest_size
"""Bytes of the digest that ends a shard."""


class Annotator(Protocol):
    """Who gives labels or steps: a benchmark's annotations, or a model behind a client."""

    @property
    def name(self) -> str:
        """Lands in the ``teacher`` column: model and prompts' digest, nothing private."""

    @property
    def identity(self) -> str:
        """Everything that can change what it says, private or not."""

    @property
    def simulated(self) -> bool:
        """Whether it comes from a script or annotations where a model is meant to answer."""

    @property
    def own_processes(self) -> bool:
        """Whether the work is ours, to be spread over processes, and not a server's to wait for."""

    def check(self) -> None:
        """Raise ``UserError`` if it can't work, before any work is spent."""

    def progress(self) -> str:
        """How the requests stand, for the progress bar; empty without requests."""

    def close(self) -> None:
        """Free connections and files; the next use opens them again."""


class NoModel:
    """An `Annotator` that asks nobody: nothing to check, to tell or to free."""

    simulated = False
    own_processes = True

    @staticmethod
    def check() -> None:
        """Nothing that could be missing."""

    @staticmethod
    def progress() -> str:
        """No requests."""
        return ""

    @staticmethod
    def close() -> None:
        """Nothing to free."""


class Summary(Protocol):
    """What a job says of its rows: a dataclass of what JSON can hold."""

    @property
    def settled(self) -> bool:
        """Whether nothing is owed any more, such as a reply that did not come."""


S = TypeVar("S", bound=Summary)
S_co = TypeVar("S_co", bound=Summary, covariant=True)


class Job(Protocol[S_co]):
    """One chunk and all that its shard depends on."""

    @property
    def path(self) -> Path:
        """The shard's file, named by its place in the input and by all that can change it."""

    @property
    def size(self) -> int:
        """Rows of the input."""

    def make(self) -> tuple[S_co, pa.RecordBatch]:
        """The shard's summary and its rows."""

    @property
    def summary_kind(self) -> type[S_co]:
        """What is read back from the summary's JSON."""


@dataclass(frozen=True, slots=True)
class Shard(Generic[S]):
    """What came of one chunk; ``cached`` if an earlier run made it."""

    path: Path
    summary: S
    cached: bool = False


def process(job: Job[S]) -> Shard[S]:
    """Make one chunk's shard and store it, or find it stored.

    The file appears under its name only when complete. One that is not settled is made again.

    Raises ``OSError`` (the disk) and whatever the job raises.
    """
    gc.set_threshold(_SELDOM)
    path = job.path  # a digest of all that the job holds: taken once
    shard = stored(job, path)
    if shard is None or not shard.summary.settled:
        summary, rows = job.make()
        shard = Shard(path, summary)
        _store(shard, rows)
    return shard


def stored(job: Job[S], path: Path) -> Shard[S] | None:
    """The shard of an earlier run, at the job's ``path``.

    One that is not as it was written (a broken disk) is to be made again.
    """
    try:
        content = _content(path)
    except FileNotFoundError:
        return None
    if content is None:
        return None
    with pa.ipc.open_file(content) as reader:
        summary = boundary.read(job.summary_kind, json.loads(reader.schema.metadata[_SUMMARY]))
    return Shard(path, summary, cached=True)


def read_shard(path: Path) -> pa.Table:
    """The rows of one shard; ``UserError`` if it is no longer as it was written."""
    content = _content(path)
    if content is None:
        raise UserError(f"{path}: is damaged; run the same command again: it is made anew")
    with pa.ipc.open_file(content) as reader:
        return reader.read_all()


def _content(path: Path) -> pa.Buffer | None:
    """A shard's bytes if they are those that were written, else None."""
    whole = memoryview(path.read_bytes())
    body, digest = whole[:-_DIGEST], whole[-_DIGEST:]
    return pa.py_buffer(body) if hashlib.sha256(body).digest() == digest else None


def _store(shard: Shard[Any], batch: pa.RecordBatch) -> None:
    metadata = {_SUMMARY: json.dumps(asdict(shard.summary), default=str).encode()}
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, batch.schema.with_metadata(metadata), options=options) as writer:
        writer.write_batch(batch.replace_schema_metadata(metadata))
    body = sink.getvalue()
    write_parts(shard.path, [body, hashlib.sha256(body).digest()])
