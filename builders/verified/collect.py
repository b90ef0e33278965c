"""The first half of a build: from the source's rows to verified shards and rejects."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from builders.benchmarks import OTHER_BENCHMARK, sources
from builders.synthetic import Spec, parse_spec
from builders.verified import features
from builders.verified.statistics import Source
from builders.verified.teachers import Teachers
from builders.work.executors import Engine, Slurm, Work, prepare
from builders.work.shards import (
    CHUNK_ROWS,
    Job,
    Reject,
    Shard,
    Synthetic,
    process_chunk,
    raw_row,
    read_questions,
    run,
    shard_schema,
    stored,
)
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, identity
from safe_stepwise.store.names import REJECTS, TRAIN, VALIDATION
from safe_stepwise.store.progress import counts, telling

SPLITS = (TRAIN, VALIDATION)
EVALUATION_SIZE = 1_000


@dataclass(frozen=True, slots=True)
class Build:
    """What to build. ``source`` is a file, ``hub-id@rev``, or a synthetic benchmark's spec."""

    benchmark: str
    source: str
    split: str
    output: Path
    teacher: Teachers
    version: str = "v0.1.0"
    seed: int = 0
    limit: int | None = None
    workers: int = 1
    engine: str = "local"
    """One of ``executors.ENGINES``."""
    ranks: int | None = None
    """Parts of the work, for the other engines; as many as workers if not said."""
    slurm: Slurm = field(default_factory=Slurm)
    keep_rejects: bool = False
    evaluation_size: int = EVALUATION_SIZE
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
    replies: Counter[str] = field(default_factory=Counter)
    """The teacher's replies by class."""
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
    (plan.work / "shards").mkdir(exist_ok=True)
    total = _total(plan) if plan.engine == "local" else _prepare(plan)
    title = f"{plan.benchmark} {plan.split}"
    bar = telling(title, "row", total, lambda: done.rows, lambda: _standing(plan, done, total))
    with (plan.work / REJECTS).open("wb") as rejects, bar:
        jobs = _jobs(plan)
        results = run(jobs, workers=plan.workers) if plan.engine == "local" else _gather(jobs)
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
                done.replies.update(shard.replies)
        finally:
            results.close()
    if done.rows and done.rejected == done.rows:
        raise UserError(
            f"{plan.source}: none of its {done.rows} rows could be read as {plan.benchmark}; "
            f"the first: {done.first_reason}"
        )


def _prepare(plan: Build) -> int:
    """Have the shards made elsewhere; returns the number of rows."""
    title = f"{plan.benchmark} {plan.split}"
    jobs, process = functools.partial(_jobs, plan), functools.partial(_process, plan)
    engine = Engine(plan.engine, plan.ranks or plan.workers, plan.workers, plan.slurm)
    work = Work(jobs, process, plan.teacher.close, plan.work, title, Path.cwd())
    return prepare(work, engine)


def _process(plan: Build, job: Job) -> None:
    """`process_chunk` in a rank; a row that ends the build ends it there."""
    shard = process_chunk(job)
    if shard.rejects and not plan.keep_rejects:
        raise _cannot_go_on(shard.rejects[0])


def _gather(jobs: Iterable[Job]) -> Generator[tuple[Job, Shard], None, None]:
    """Chunks with the shards that ranks have made, even where a teacher's reply failed again."""
    for job in jobs:
        yield job, stored(job.path) or process_chunk(job)


def _standing(plan: Build, done: Collected, total: int | None) -> str:
    owed = "?" if total is None else max(total - done.rows, 0)
    stands = counts(done.rows - done.cached, done.cached, owed, failed=done.rejected)
    asked = plan.teacher.progress()
    return f"{stands}{'; ' if asked else ''}{asked}"


def questions(plan: Build) -> Iterator[Question]:
    """The questions of a build's source, without the rows that can't be read."""
    for job in _jobs(plan):
        yield from (question for _, question in read_questions(job)[0])


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
        raise _cannot_go_on(reject)
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


def _cannot_go_on(reject: Reject) -> UserError:
    id_ = "" if reject.id is None else f" (id {reject.id})"
    mend = f"mend the row, or run with --on-error keep to put such rows into {REJECTS}"
    is_mended = OTHER_BENCHMARK in reject.reason
    return UserError(f"{reject.location}{id_}: {reject.reason}{'' if is_mended else f'; {mend}'}")
