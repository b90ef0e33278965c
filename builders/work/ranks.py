"""Work that is dealt to ranks, which may run anywhere: a rank makes its share of the chunks.

A rank reads the source itself and runs the chunks dealt to it, so nothing but a plan travels. The shards in the work
folder are all that comes of it; whoever builds then finds them stored and only gathers, hence the same bytes for any
engine and any number of ranks. All machines have to share the work folder, the source and this code.

Each attempt has a folder of its own, ``ranks/0001`` and so on: in a used one datatrove would skip
the ranks it calls complete. What went wrong in a rank lies there under ``failures``, as datatrove
itself only logs it. A first failure, or a file ``stop``, ends each rank after its present chunk.
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

from builders.work.shards import Annotator, Job, Shard, process, stored
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import write_atomically

J = TypeVar("J", bound=Job[Any])

ROOT = Path(__file__).parents[2]
"""What has to be on the ranks' path: only ``safe_stepwise`` is installed."""


def nothing(shard: Shard[Any]) -> None:
    """The check of a build that goes on whatever a shard holds."""


@dataclass(frozen=True, slots=True)
class Work(Generic[J]):
    """The chunks of a build and who makes them; picklable, as it goes to the ranks.

    ``jobs`` yields the same chunks at every call; ``check`` raises for a shard that ends the build. The shards and the
    attempts are in ``folder``, and ``home`` is the folder in which relative paths are meant.
    """

    jobs: Callable[[], Iterable[J]]
    annotator: Annotator
    folder: Path
    title: str
    unit: str = "row"
    check: Callable[[Shard[Any]], object] = nothing
    home: Path = field(default_factory=Path.cwd)


class RankError(Exception):
    """A fault of ours in a rank; the message holds its traceback."""


# What is owed


@dataclass(slots=True)
class Survey:
    """All rows of the source, and the chunks that are not settled."""

    rows: int
    owed: dict[int, tuple[Path, int]]
    """By number among the work's jobs: shard and rows."""

    @classmethod
    def of(cls, work: Work[Any]) -> "Survey":
        """Of a source that is read through, which also finds one that is damaged before work is spent on it."""
        rows, owed = 0, {}
        for number, job in enumerate(work.jobs()):
            rows += job.size
            path = job.path
            shard = stored(job, path)
            if shard is not None and shard.summary.settled:
                work.check(shard)
            else:
                owed[number] = (path, job.size)
        return cls(rows, owed)

    def missing(self) -> list[int]:
        """Rows of those without a shard.

        One whose replies failed again is as good as it gets this time.
        """
        folders = {shard.parent for shard, _ in self.owed.values()}
        made = {folder / name for folder in folders for name in os.listdir(folder)}
        return [rows for shard, rows in self.owed.values() if shard not in made]


# What goes wrong


def note(attempt: Path, name: str, error: Exception) -> None:
    """Keep what went wrong, so that it crosses machines; of several the first by name counts."""
    told: list[Any] = ["fault", f"in a rank:\n{''.join(traceback.format_exception(error))}"]
    if isinstance(error, UserError):
        told = ["mistake", str(error)]
    elif isinstance(error, OSError) and error.errno is not None:
        name_ = None if error.filename is None else str(error.filename)
        told = ["system", error.errno, error.strerror or str(error), name_]
    write_atomically(attempt / "failures" / f"{name}.json", json.dumps(told).encode())


def first_failure(attempt: Path) -> Exception | None:
    """The one to report, as the error that it was; None if nothing went wrong."""
    for file in sorted((attempt / "failures").glob("*.json")):
        kind, *told = json.loads(file.read_text(encoding="utf-8"))
        return {"mistake": UserError, "system": OSError, "fault": RankError}[kind](*told)
    return None


# An attempt


def new_attempt(work: Work[Any]) -> Path:
    """An empty folder for it."""
    numbers = [int(path.name) for path in (work.folder / "ranks").glob("[0-9]*")]
    attempt = work.folder.absolute() / "ranks" / f"{max(numbers, default=0) + 1:04d}"
    for name in ("running", "failures"):
        (attempt / name).mkdir(parents=True)
    return attempt


def rank_of(work: Work[Any], found: Survey, attempt: Path) -> Callable[..., None]:
    """What each rank runs, as a step of a datatrove pipeline."""
    return functools.partial(_run, work, tuple(found.owed), attempt)


def python_path() -> str:
    """Where ranks find this code."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def _run(work: Work[Any], numbers: tuple[int, ...], attempt: Path, data: object, rank: int, ranks: int) -> None:
    """One rank, as datatrove calls it, makes each ``ranks``-th of the chunks ``numbers``."""
    running = attempt / "running" / f"{rank:05d}"
    mine = numbers[rank::ranks]
    number = mine[0]
    try:
        try:
            os.chdir(work.home)
        except OSError as error:
            raise UserError(
                f"{work.home}: not on {socket.gethostname()} ({error.strerror}); all machines need the "
                "same files at the same paths"
            ) from None
        running.write_text(f"{socket.gethostname()} {os.getpid()}")
        for number, job in islice(enumerate(work.jobs()), mine[-1] + 1):
            if number in mine:
                if (attempt / "stop").exists() or any((attempt / "failures").iterdir()):
                    return
                work.check(process(job))
    except Exception as error:
        # Noted under the chunk's number, so that the source's first mistake is the one reported.
        note(attempt, f"{number:09d}-{rank:05d}", error)
        raise
    finally:
        work.annotator.close()
        running.unlink(missing_ok=True)
