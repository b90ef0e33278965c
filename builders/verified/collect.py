"""The first half of a build: from the source's rows to verified shards and rejects."""

import functools
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from builders.benchmarks import OTHER_BENCHMARK, sources
from builders.synthetic import Spec, parse_spec
from builders.verified import features
from builders.verified.chunks import CHUNK_ROWS, Chunk, Reject, Synthetic, Verified, shard_schema
from builders.verified.statistics import InputSource
from builders.verified.teachers import Teachers
from builders.verified.teachers.llm import LLMTeachers
from builders.verified.teachers.published import PublishedTeachers
from builders.work.executors import Executor, Slurm, Standing, results
from builders.work.ranks import Work
from builders.work.shards import Shard
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, identity
from safe_stepwise.store.names import REJECTS, WORK

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
    """One of ``executors.EXECUTORS``."""
    ranks: int | None = None
    """Parts of the work, for the other engines; as many as workers if not said."""
    slurm: Slurm = field(default_factory=Slurm)
    keep_rejects: bool = False
    evaluation_size: int = EVALUATION_SIZE
    sha256: str | None = None
    """Digest that the source must have."""
    min_confidence: float = 0.0
    """Noise of which the teacher is less sure is not counted."""
    published: Path | None = None
    """Labels to score ours against; they are never looked up to label."""
    keep_work: bool = False
    """Leave the shards after success too, for a caller with more builds to do."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_confidence <= 1:
            raise UserError(f"min_confidence {self.min_confidence}: has to lie between 0 and 1")
        if self.min_confidence and isinstance(self.teacher, LLMTeachers):
            raise UserError(
                f"min_confidence {self.min_confidence}: {self.teacher.spec} says no confidence, so "
                "it would change nothing; leave it out, or label by annotations"
            )
        if self.min_confidence and isinstance(self.teacher, PublishedTeachers):
            raise UserError(
                f"min_confidence {self.min_confidence}: it would overrule the published labels of "
                f"{self.teacher.name}; leave it out, or label by annotations"
            )

    @property
    def work(self) -> Path:
        """Where unfinished work lies."""
        return self.output / WORK / f"{self.benchmark}-{self.split}"


@dataclass(slots=True)
class Collected:
    """The shards of a build, with the indices of rows that lost to an earlier row's id."""

    standing: Standing = field(default_factory=Standing)
    """``failed`` are the rejected rows."""
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


def source_of(plan: Build) -> InputSource:
    """What the source is, with its digest; ``UserError`` if it cannot be read or is another."""
    spec = _spec(plan)
    if spec is not None:
        source = InputSource(plan.source, identity(spec), synthetic=True)
    else:
        name = Path(plan.source).name if Path(plan.source).exists() else plan.source
        source = InputSource(name, sources.digest(plan.source), plan.benchmark == "synthetic")
    if plan.sha256 not in (None, source.digest):
        raise UserError(
            f"{plan.source}: its digest is {source.digest}, expected {plan.sha256}; "
            "get the file that was meant, or correct the digest"
        )
    return source


def jobs(plan: Build) -> Iterator[Chunk]:
    """The rows of a build's source, chunk by chunk."""
    schema = shard_schema(features.labeled_features().arrow_schema)
    folder = plan.work / "shards"
    for start, rows in _parts(plan):
        yield Chunk(
            *(plan.benchmark, plan.split, start, rows, plan.teacher, schema, folder),
            min_confidence=plan.min_confidence,
        )


def _parts(plan: Build) -> Iterator[tuple[int, tuple[sources.RawRow, ...] | Synthetic]]:
    spec = _spec(plan)
    if spec is None:
        for chunk in sources.chunks(plan.source, plan.split, size=CHUNK_ROWS, limit=plan.limit):
            yield chunk.start, chunk.rows
        return
    total = _made(plan, spec)
    for start in range(0, total, CHUNK_ROWS):
        yield start, Synthetic(spec, min(CHUNK_ROWS, total - start))


def _made(plan: Build, spec: Spec) -> int:
    return spec.rows if plan.limit is None else min(spec.rows, plan.limit)


def _total(plan: Build) -> int | None:
    """Rows that the build will read; None for a Hub dataset, which is not read twice.

    Reading a file through beforehand also finds one that is cut short before work is spent on it.
    """
    if _spec(plan) is None and not Path(plan.source).exists():
        return plan.limit
    return sum(chunk.size for chunk in jobs(plan))


def collect(plan: Build, done: Collected) -> None:
    """Run all chunks; fills ``done`` as it goes, and ``rejects.jsonl`` in the work folder."""
    (plan.work / "shards").mkdir(parents=True, exist_ok=True)
    made, check = functools.partial(jobs, plan), functools.partial(_check, plan)
    work = Work(made, plan.teacher, plan.work, f"{plan.benchmark} {plan.split}", check=check)
    executor = Executor(plan.engine, plan.workers, plan.ranks or plan.workers, plan.slurm)
    seen: dict[str, str] = {}
    found = results(work, executor, functools.partial(_total, plan), done.standing)
    with (plan.work / REJECTS).open("wb") as rejects, closing(found):
        for job, shard in found:
            dropped = _duplicates(job, shard.summary, seen)
            left_out = sorted([*shard.summary.rejects, *dropped], key=lambda reject: reject.index)
            for reject in left_out:
                rejects.write(_line(plan, reject))
                done.first_reason = done.first_reason or reject.reason
            done.finished.append((shard.path, frozenset(reject.index for reject in dropped)))
            done.standing.failed += len(left_out)
            done.replies.update(shard.summary.replies)
    rows = done.standing.done
    if rows and done.standing.failed == rows:
        raise UserError(
            f"{plan.source}: none of its {rows} rows could be read as {plan.benchmark}; "
            f"the first: {done.first_reason}"
        )


def questions(plan: Build) -> Iterator[Question]:
    """The questions of a build's source, without the rows that can't be read."""
    for job in jobs(plan):
        yield from (question for _, question in job.questions()[0])


def count(plan: Build) -> int:
    """How many `questions` there are; none is made up to be counted."""
    spec = _spec(plan)
    return sum(1 for _ in questions(plan)) if spec is None else _made(plan, spec)


def _duplicates(job: Chunk, found: Verified, seen: dict[str, str]) -> list[Reject]:
    """Rows whose id an earlier row had. ``seen`` maps ids to where the first row was."""
    dropped = []
    for index, id_ in found.ids:
        if id_ in seen:
            reason = f"duplicate id {id_!r}, first at {seen[id_]}"
            dropped.append(Reject(index, job.location(index), id_, reason, job.raw_row(index)))
        else:
            seen[id_] = job.location(index)
    return dropped


def _check(plan: Build, shard: Shard[Verified]) -> None:
    """Raise ``UserError`` for a row that ends the build."""
    for reject in shard.summary.rejects:
        _line(plan, reject)


def _line(plan: Build, reject: Reject) -> bytes:
    """A row of ``rejects.jsonl``; ``UserError`` if such rows are not kept."""
    if not plan.keep_rejects:
        id_ = "" if reject.id is None else f" (id {reject.id})"
        mend = f"; mend the row, or run with --on-error keep to put such rows into {REJECTS}"
        is_mended = OTHER_BENCHMARK in reject.reason
        raise UserError(f"{reject.location}{id_}: {reject.reason}{'' if is_mended else mend}")
    told = {name: getattr(reject, name) for name in ("location", "id", "reason", "row")}
    record = {"benchmark": plan.benchmark, "split": plan.split, **told}
    line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    # Half a surrogate pair becomes its JSON escape, which is what a broken row may have held.
    return line.encode("utf-8", "backslashreplace")
