"""The first half of a build: from the source's rows to verified shards and rejects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from builders import features
from builders.benchmarks import sources
from builders.benchmarks.synthetic import Spec, parse_spec
from builders.shards import CHUNK_ROWS, Job, Reject, Shard, Synthetic, raw_row, run, shard_schema
from builders.statistics import Source
from builders.teachers import Teacher
from safe_stepwise.errors import UserError
from safe_stepwise.records import identity

SPLITS = ("train", "validation")


@dataclass(frozen=True, slots=True)
class Build:
    """What to build. ``source`` is a file, ``hub-id@rev``, or a synthetic benchmark's spec."""

    benchmark: str
    source: str
    split: str
    output: Path
    teacher: Callable[[], Teacher]
    version: str = "v0.1.0"
    seed: int = 0
    limit: int | None = None
    workers: int = 1
    keep_rejects: bool = False
    evaluation_size: int = 1_000
    sha256: str | None = None
    """Digest that the source must have."""
    keep_work: bool = False
    """Leave the shards after success too, for a caller with more builds to do."""

    @property
    def work(self) -> Path:
        """Where unfinished work lies."""
        return self.output / ".work" / f"{self.benchmark}-{self.split}"


@dataclass(slots=True)
class Collected:
    """The shards of a build, with the indices of rows that lost to an earlier row's id."""

    rows: int = 0
    cached: int = 0
    rejected: int = 0
    first_reason: str = ""
    """Why the first rejected row was."""
    finished: list[tuple[Path, frozenset[int]]] = field(default_factory=list)


def _spec(plan: Build) -> Spec | None:
    """The spec of rows to generate, unless the source is a file or a Hub dataset."""
    if plan.benchmark != "synthetic" or "=" not in plan.source or Path(plan.source).exists():
        return None
    return parse_spec(plan.source)


def source_of(plan: Build) -> Source:
    """What the source is, with its digest; ``UserError`` if it cannot be read or is another."""
    spec = _spec(plan)
    if spec is not None:
        source = Source(plan.source, identity(spec), synthetic=True)
    else:
        name = Path(plan.source).name if Path(plan.source).exists() else plan.source
        source = Source(name, sources.digest(plan.source), plan.benchmark == "synthetic")
    if plan.sha256 not in (None, source.digest):
        raise UserError(
            f"{plan.source}: its digest is {source.digest}, expected {plan.sha256}; "
            "get the file that was meant, or correct the digest"
        )
    return source


def _jobs(plan: Build) -> Iterator[Job]:
    schema = shard_schema(features.labeled_features().arrow_schema)
    folder = plan.work / "shards"
    folder.mkdir(exist_ok=True)

    def job(start: int, rows: tuple[sources.RawRow, ...] | Synthetic) -> Job:
        return Job(plan.benchmark, plan.split, start, rows, plan.teacher, schema, folder)

    spec = _spec(plan)
    if spec is None:
        for chunk in sources.chunks(plan.source, plan.split, size=CHUNK_ROWS, limit=plan.limit):
            yield job(chunk.start, chunk.rows)
        return
    total = _synthetic_rows(plan, spec)
    for start in range(0, total, CHUNK_ROWS):
        yield job(start, Synthetic(spec, min(CHUNK_ROWS, total - start)))


def _synthetic_rows(plan: Build, spec: Spec) -> int:
    return spec.rows if plan.limit is None else min(spec.rows, plan.limit)


def _total(plan: Build) -> int | None:
    """Rows that the build will read; None for a Hub dataset, which is not read twice.

    Reading a file through beforehand also finds one that is cut short before work is spent on it.
    """
    spec = _spec(plan)
    if spec is not None:
        return _synthetic_rows(plan, spec)
    if not Path(plan.source).exists():
        return plan.limit
    found = sources.chunks(plan.source, plan.split, size=CHUNK_ROWS, limit=plan.limit)
    return sum(len(chunk.rows) for chunk in found)


def collect(plan: Build, done: Collected) -> None:
    """Run all chunks; fills ``done`` as it goes, and ``rejects.jsonl`` in the work folder."""
    seen: dict[str, str] = {}
    total = _total(plan)
    # Delayed, so that a mistake which shows at once prints its one line and nothing else.
    with (
        (plan.work / "rejects.jsonl").open("wb") as rejects,
        tqdm(total=total, unit="row", desc=f"{plan.benchmark} {plan.split}", delay=1) as bar,
    ):
        results = run(_jobs(plan), workers=plan.workers)
        try:
            for job, shard in results:
                dropped = _duplicates(job, shard, seen)
                found = sorted([*shard.rejects, *dropped], key=lambda reject: reject.index)
                for reject in found:
                    _reject(plan, reject, rejects.write)
                    done.first_reason = done.first_reason or reject.reason
                done.finished.append((shard.path, frozenset(r.index for r in dropped)))
                done.rows += shard.rows
                done.cached += shard.rows if shard.cached else 0
                done.rejected += len(found)
                owed = "?" if total is None else max(total - done.rows, 0)
                bar.set_postfix_str(
                    f"done {done.rows - done.cached} cached {done.cached} "
                    f"failed {done.rejected} owed {owed}",
                    refresh=False,
                )
                bar.update(shard.rows)
        finally:
            results.close()
    if done.rows and done.rejected == done.rows:
        raise UserError(
            f"{plan.source}: none of its {done.rows} rows could be read as {plan.benchmark}; "
            f"the first: {done.first_reason}"
        )


def _duplicates(job: Job, shard: Shard, seen: dict[str, str]) -> list[Reject]:
    """Rows whose id an earlier row had. ``seen`` maps ids to where the first row was."""
    dropped = []
    for index, id_ in shard.ids:
        if id_ in seen:
            location, row = raw_row(job, index)
            reason = f"duplicate id {id_!r}, first at {seen[id_]}"
            dropped.append(Reject(index, location, id_, reason, row))
        elif isinstance(job.rows, Synthetic):
            seen[id_] = f"row {job.start + index + 1}"
        else:
            seen[id_] = job.rows[index].location
    return dropped


def _reject(plan: Build, reject: Reject, write: Callable[[bytes], object]) -> None:
    if not plan.keep_rejects:
        id_ = "" if reject.id is None else f" (id {reject.id})"
        raise UserError(
            f"{reject.location}{id_}: {reject.reason}; mend the row, or run with --on-error keep "
            "to put such rows into rejects.jsonl"
        )
    record = {
        "benchmark": plan.benchmark,
        "split": plan.split,
        "location": reject.location,
        "id": reject.id,
        "reason": reject.reason,
        "row": reject.row,
    }
    line = json.dumps(record, ensure_ascii=False, default=str) + "\n"
    # Half a surrogate pair becomes its JSON escape, which is what a broken row may have held.
    write(line.encode("utf-8", "backslashreplace"))
