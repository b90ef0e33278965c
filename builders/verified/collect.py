"""The first half of a build: from the source's rows to verified shards and rejects."""

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from builders.benchmarks import sources
from builders.synthetic import Spec, parse_spec
from builders.verified import features
from builders.verified.chunks import CHUNK_ROWS, Chunk, Synthetic, shard_schema
from builders.verified.evaluation_sample import PASSAGES
from builders.verified.statistics import InputSource
from builders.verified.teachers import Teachers
from builders.verified.teachers.llm import LLMTeachers
from builders.verified.teachers.published import PublishedTeachers
from builders.work import collecting
from builders.work.executors import Executor, Slurm
from builders.work.ranks import Work
from builders.work.rejects import Rejecting
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, identity
from safe_stepwise.store.names import WORK

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
    evaluation_passages: int = PASSAGES
    """Of each question of the sample: less for a world of short questions."""
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
class Collected(collecting.Collected):
    """The shards of a build, and what its teacher replied."""

    replies: Counter[str] = field(default_factory=Counter)
    """By class."""


def spec_of(benchmark: str, source: str) -> Spec | None:
    """The spec of rows to generate, unless the source is a file or a Hub dataset.

    Raises ``UserError`` for a spec that can't be read.
    """
    if benchmark != "synthetic" or "=" not in source or Path(source).exists():
        return None
    return parse_spec(source)


def source_of(plan: Build) -> InputSource:
    """What the source is, with its digest; ``UserError`` if it cannot be read or is another."""
    spec = spec_of(plan.benchmark, plan.source)
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
    spec = spec_of(plan.benchmark, plan.source)
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
    if spec_of(plan.benchmark, plan.source) is None and not Path(plan.source).exists():
        return plan.limit
    return sum(chunk.size for chunk in jobs(plan))


def collect(plan: Build, done: Collected) -> None:
    """Run all chunks; fills ``done`` as it goes, and ``rejects.jsonl`` in the work folder."""
    (plan.work / "shards").mkdir(parents=True, exist_ok=True)
    rejecting = Rejecting(plan.benchmark, plan.split, plan.keep_rejects)
    work = Work(
        functools.partial(jobs, plan), plan.teacher, plan.work, f"{plan.benchmark} {plan.split}", check=rejecting.check
    )
    executor = Executor(plan.engine, plan.workers, plan.ranks or plan.workers, plan.slurm)
    total = functools.partial(_total, plan)
    for found in collecting.collected(work, executor, total, rejecting, plan.source, done):
        done.replies.update(found.replies)


def questions(plan: Build) -> Iterator[Question]:
    """The questions of a build's source, without the rows that can't be read."""
    for job in jobs(plan):
        yield from (question for _, question in job.questions()[0])


def count(plan: Build) -> int:
    """How many `questions` there are; none is made up to be counted."""
    spec = spec_of(plan.benchmark, plan.source)
    return sum(1 for _ in questions(plan)) if spec is None else _made(plan, spec)
