"""Divides work among ranks, which may run on any machine: each rank makes its share of the chunks.

A rank reads the source itself, so only a plan travels. Its result is the shards in the work folder; the build then
reads them, so the bytes are the same for any engine and any number of ranks. All machines have to share the work
folder, the source and this code.

Each attempt has its own folder, ``ranks/0001`` and so on, because datatrove skips ranks that an earlier attempt
completed. Errors of ranks are stored there under ``failures``, as datatrove only logs them. The first failure, or a
file ``stop``, ends each rank after its present chunk.
"""

import functools
import json
import os
import socket
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from builders.work.shards import Annotator, Job, Shard, process, read_stored
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import write_atomically

J = TypeVar("J", bound=Job[Any])

ROOT = Path(__file__).parents[2]
"""The folder that must be on the ranks' path, as only ``safe_stepwise`` is installed."""


def accept(shard: Shard[Any]) -> None:
    """Accept any shard: the check of a build that no row can stop."""


@dataclass(frozen=True, slots=True)
class Work(Generic[J]):
    """The chunks of a build (``jobs`` yields the same at every call) and their annotator; picklable.

    ``check`` raises for a shard that ends the build; relative paths start at ``home``.
    """

    jobs: Callable[[], Iterable[J]]
    annotator: Annotator
    folder: Path
    title: str
    unit: str = "row"
    check: Callable[[Shard[Any]], object] = accept
    home: Path = field(default_factory=Path.cwd)


class RankError(Exception):
    """A fault of this toolkit in a rank; the message holds its traceback."""


@dataclass(slots=True)
class Survey:
    """The number of the source's rows, and the chunks whose shards are not complete."""

    rows: int
    pending: dict[int, tuple[Path, int]]
    """Shard and number of rows, by the job's number."""

    @classmethod
    def read(cls, work: Work[Any]) -> "Survey":
        """Read the whole source, which also detects a damaged one before any work starts."""
        rows, pending = 0, {}
        for number, job in enumerate(work.jobs()):
            rows += job.size
            path = job.path
            shard = read_stored(job, path)
            if shard is not None and shard.summary.is_complete:
                work.check(shard)
            else:
                pending[number] = (path, job.size)
        return cls(rows, pending)

    def missing(self) -> list[int]:
        """Return the row counts of the pending chunks without a shard; one whose replies failed again has a shard."""
        folders = {shard.parent for shard, _ in self.pending.values()}
        files = {folder / name for folder in folders for name in os.listdir(folder)}
        return [rows for shard, rows in self.pending.values() if shard not in files]


def log_error(attempt: Path, name: str, error: Exception) -> None:
    """Store an error of a rank in a file, so that any machine can read it; the first by name is reported."""
    record: list[Any] = ["fault", f"in a rank:\n{''.join(traceback.format_exception(error))}"]
    if isinstance(error, UserError):
        record = ["mistake", str(error)]
    elif isinstance(error, OSError) and error.errno is not None:
        filename = None if error.filename is None else str(error.filename)
        record = ["system", error.errno, error.strerror or str(error), filename]
    write_atomically(attempt / "failures" / f"{name}.json", json.dumps(record).encode())


def first_error(attempt: Path) -> Exception | None:
    """Read the attempt's error to report, as an exception of its kind; None if there was no error."""
    for file in sorted((attempt / "failures").glob("*.json")):
        kind, *arguments = json.loads(file.read_text(encoding="utf-8"))
        return {"mistake": UserError, "system": OSError, "fault": RankError}[kind](*arguments)
    return None


def new_attempt(work: Work[Any]) -> Path:
    """Make an empty folder for the next attempt."""
    numbers = [int(path.name) for path in (work.folder / "ranks").glob("[0-9]*")]
    attempt = work.folder.absolute() / "ranks" / f"{max(numbers, default=0) + 1:04d}"
    for name in ("running", "failures"):
        (attempt / name).mkdir(parents=True)
    return attempt


def rank_step(work: Work[Any], survey: Survey, attempt: Path) -> Callable[..., None]:
    """Return the function that each rank runs, as a step of a datatrove pipeline."""
    return functools.partial(_run, work, tuple(survey.pending), attempt)


def code_path() -> str:
    """Return the ``PYTHONPATH`` by which ranks find this code."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def _run(work: Work[Any], numbers: tuple[int, ...], attempt: Path, data: object, rank: int, ranks: int) -> None:
    """Make one rank's share of the chunks: every ``ranks``-th of ``numbers``; datatrove calls it."""
    running = attempt / "running" / f"{rank:05d}"
    share = numbers[rank::ranks]
    number = share[0]
    try:
        try:
            os.chdir(work.home)
        except OSError as error:
            raise UserError(
                f"{work.home}: not on {socket.gethostname()} ({error.strerror}); all machines need the "
                "same files at the same paths"
            ) from None
        running.write_text(f"{socket.gethostname()} {os.getpid()}")
        for number, job in islice(enumerate(work.jobs()), share[-1] + 1):
            if number in share:
                if (attempt / "stop").exists() or any((attempt / "failures").iterdir()):
                    return
                work.check(process(job))
    except Exception as error:
        # Stored under the chunk's number, so that the first mistake in the source is reported.
        log_error(attempt, f"{number:09d}-{rank:05d}", error)
        raise
    finally:
        work.annotator.close()
        running.unlink(missing_ok=True)
