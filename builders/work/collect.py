"""From the chunks of a source to its shards, without rows whose id was there before."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from builders.work import plans, ranks, rejects
from builders.work.executors import Standing, results
from builders.work.shards import Annotator, Job, read_shard
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import REJECTS


class RowsJob(Job[rejects.RowsRead], Protocol):
    """A chunk of a source's rows, which it can show."""

    def location(self, index: int) -> str:
        """Where a row is in the source."""

    def raw_row(self, index: int) -> Any:
        """A row's content as far as it can be read."""


R = TypeVar("R", bound=RowsJob)


@dataclass(slots=True)
class Collected:
    """The shards of a build, and what a model replied, if one was asked."""

    standing: Standing = field(default_factory=Standing)
    """``failed`` are the rejected rows."""
    replies: Counter[str] = field(default_factory=Counter)
    """By class."""
    shards: list[tuple[Path, frozenset[int]]] = field(default_factory=list)
    """Each with the indices of its rows that lost to an earlier row's id."""

    def tables(self) -> Iterator[pa.Table]:
        """The rows of each shard, without those whose id was there before."""
        for path, dropped in self.shards:
            table = read_shard(path)
            if dropped:
                kept = [index not in dropped for index in table.column("index").to_pylist()]
                table = table.filter(pa.array(kept, pa.bool_()))
            yield table


def collect(
    plan: plans.Plan,
    rejecting: rejects.Rejecting,
    jobs: Callable[[], Iterable[R]],
    annotator: Annotator,
    sources: Sequence[str],
    collected: Collected,
    unit: str = "row",
) -> None:
    """Run all chunks; fills ``collected`` as it goes, and ``rejects.jsonl`` in the work folder.

    ``sources`` are files, Hub datasets (which are not read twice: how many rows they have is not told), or specs of
    made-up rows. Raises as `results`, and ``UserError`` for a row that ends the build and for sources of which no row
    could be read.
    """
    (plan.work / "shards").mkdir(parents=True, exist_ok=True)
    standing, seen, first_reason = collected.standing, dict[str, str](), ""
    title = f"{rejecting.benchmark} {rejecting.split}"

    def total() -> int | None:
        # Reading a file through beforehand also finds one that is cut short before work is spent on it.
        if any(not Path(source).exists() and "@" in source for source in sources):
            return plan.limit if len(sources) == 1 else None
        return sum(job.size for job in jobs())

    made = results(ranks.Work(jobs, annotator, plan.work, title, unit, rejecting.check), plan, total, standing)
    with (plan.work / REJECTS).open("wb") as lines, closing(made):
        for job, shard in made:
            dropped = _duplicates(job, shard.summary, seen)
            for reject in sorted([*shard.summary.rejects, *dropped], key=lambda reject: reject.index):
                lines.write(rejecting.line(reject))
                first_reason = first_reason or reject.reason
                standing.failed += 1
            collected.shards.append((shard.path, frozenset(reject.index for reject in dropped)))
            collected.replies.update(shard.summary.replies)
    if standing.done and standing.failed == standing.done:
        raise UserError(
            f"{', '.join(sources)}: none of its {standing.done} rows could be read as {rejecting.benchmark}; "
            f"the first: {first_reason}"
        )


def _duplicates(job: RowsJob, read: rejects.RowsRead, seen: dict[str, str]) -> list[rejects.Reject]:
    """Rows of a chunk whose id an earlier row had. ``seen`` maps ids to where the first row was."""
    dropped = []
    for index, id_ in read.ids:
        if id_ in seen:
            reason = f"duplicate id {id_!r}, first at {seen[id_]}"
            dropped.append(rejects.Reject(index, job.location(index), id_, reason, job.raw_row(index)))
        else:
            seen[id_] = job.location(index)
    return dropped
