"""From the chunks of a source to its shards, without rows whose id was there before."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from builders.work.executors import Executor, Standing, results
from builders.work.ranks import Work
from builders.work.rejects import Found, Rejecting, Rows, duplicates
from builders.work.shards import Job
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import REJECTS


class RowsJob(Job[Found], Rows, Protocol):
    """A chunk of a source's rows."""


R = TypeVar("R", bound=RowsJob)


@dataclass(slots=True)
class Collected:
    """The shards of a build, with the indices of rows that lost to an earlier row's id."""

    standing: Standing = field(default_factory=Standing)
    """``failed`` are the rejected rows."""
    first_reason: str = ""
    """Why the first rejected row was."""
    finished: list[tuple[Path, frozenset[int]]] = field(default_factory=list)


def collected(
    work: Work[R],
    executor: Executor,
    rows: Callable[[], int | None],
    rejecting: Rejecting,
    source: str,
    done: Collected,
) -> Iterator[Any]:
    """Run all chunks and yield what each says, in order; fills ``done`` as it goes.

    ``rows`` counts those of ``source``, where that can be told beforehand. The rejected ones are in
    the work's ``rejects.jsonl``. Raises as `results`, and ``UserError`` for a row that ends the
    build and for a source of which no row could be read.
    """
    seen: dict[str, str] = {}
    found = results(work, executor, rows, done.standing)
    with (work.folder / REJECTS).open("wb") as rejects, closing(found):
        for job, shard in found:
            dropped = duplicates(job, shard.summary.ids, seen)
            left_out = sorted([*shard.summary.rejects, *dropped], key=lambda reject: reject.index)
            for reject in left_out:
                rejects.write(rejecting.line(reject))
                done.first_reason = done.first_reason or reject.reason
            done.finished.append((shard.path, frozenset(reject.index for reject in dropped)))
            done.standing.failed += len(left_out)
            yield shard.summary
    number = done.standing.done
    if number and done.standing.failed == number:
        raise UserError(
            f"{source}: none of its {number} rows could be read as {rejecting.benchmark}; "
            f"the first: {done.first_reason}"
        )
