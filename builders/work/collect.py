"""Collects the shards of a source's chunks, and drops rows whose id an earlier row has."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa

from builders.work import plans, ranks, rejects
from builders.work.executors import Standing, results
from builders.work.shards import Annotator, Job, read_shard
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import REJECTS


class RowsJob(Job[rejects.RowsSummary], Protocol):
    """A chunk of a source, which can say where each of its rows is."""

    def location(self, index: int) -> str:
        """Return the location of a row in the source."""


R = TypeVar("R", bound=RowsJob)


@dataclass(slots=True)
class Collected:
    """The shards of a build, and the number of a model's replies by class."""

    standing: Standing = field(default_factory=Standing)
    """``failed`` are the rejected rows."""
    replies: Counter[str] = field(default_factory=Counter)
    shards: list[tuple[Path, frozenset[int]]] = field(default_factory=list)
    """Each shard with the indices of its rows whose id an earlier row has."""

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows of each shard, without those whose id an earlier row has."""
        for path, dropped in self.shards:
            table = read_shard(path)
            if dropped:
                mask = [index not in dropped for index in table.column("index").to_pylist()]
                table = table.filter(pa.array(mask, pa.bool_()))
            yield table


def collect(
    plan: plans.Plan,
    policy: rejects.RejectPolicy,
    jobs: Callable[[], Iterable[R]],
    annotator: Annotator,
    sources: Sequence[str],
    collected: Collected,
    unit: str = "row",
) -> None:
    """Run all chunks, add their shards to ``collected``, and write ``rejects.jsonl`` into the work folder.

    Hub datasets among ``sources`` are not counted beforehand. Raises as `results`, and ``UserError`` for a row that
    ends the build, and if no row could be read.
    """
    (plan.work / "shards").mkdir(parents=True, exist_ok=True)
    standing, locations, first_reason = collected.standing, dict[str, str](), ""
    title = f"{policy.benchmark} {policy.split}"

    def total() -> int | None:
        # Reading a file through beforehand also finds one that is cut short before work is spent on it.
        if any(not Path(source).exists() and "@" in source for source in sources):
            return plan.limit if len(sources) == 1 else None
        return sum(job.size for job in jobs())

    shards = results(ranks.Work(jobs, annotator, plan.work, title, unit, policy.check), plan, total, standing)
    with (plan.work / REJECTS).open("wb") as file, closing(shards):
        for job, shard in shards:
            dropped = _find_duplicates(job, shard.summary, locations)
            for reject in sorted([*shard.summary.rejects, *dropped], key=lambda reject: reject.index):
                file.write(policy.line(reject))
                first_reason = first_reason or reject.reason
                standing.failed += 1
            collected.shards.append((shard.path, frozenset(reject.index for reject in dropped)))
            collected.replies.update(shard.summary.replies)
    if standing.finished and standing.failed == standing.finished:
        raise UserError(
            f"{', '.join(sources)}: none of its {standing.finished} rows could be read as {policy.benchmark}; "
            f"the first: {first_reason}"
        )


def _find_duplicates(job: RowsJob, summary: rejects.RowsSummary, locations: dict[str, str]) -> list[rejects.Reject]:
    """Return rejects for a chunk's rows whose id an earlier row has; ``locations`` has the first row of each id."""
    dropped = []
    for index, id_ in summary.ids:
        if id_ in locations:
            reason = f"duplicate id {id_!r}, first at {locations[id_]}"
            dropped.append(rejects.Reject(index, job.location(index), id_, reason, None))
        else:
            locations[id_] = job.location(index)
    return dropped
