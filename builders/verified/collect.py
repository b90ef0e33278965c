"""The first half of a build: from the source's rows to verified shards and rejects."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from builders.benchmarks import sources
from builders.benchmarks.sources import InputSource
from builders.synthetic import Spec, parse_spec
from builders.verified.chunks import CHUNK_ROWS, Chunk, shard_schema
from builders.verified.questions import EVALUATION_SIZE, PASSAGES
from builders.verified.teachers import Teachers
from builders.verified.teachers.llm import LLMTeachers
from builders.verified.teachers.published import PublishedTeachers
from builders.work import collect as work
from builders.work.plans import Plan
from builders.work.rejects import RejectPolicy
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, identity


@dataclass(frozen=True, slots=True)
class Build(Plan):
    """What to verify. ``source`` is a file, ``hub-id@rev``, or a synthetic benchmark's spec."""

    work_name: ClassVar[str] = "{plan.benchmark}-{plan.split}"
    benchmark: str
    source: str
    split: str
    teacher: Teachers
    evaluation_size: int = EVALUATION_SIZE
    evaluation_passages: int = PASSAGES
    """Of each question of the sample: less for a world of short questions."""
    sha256: str | None = None
    """Digest that the source must have."""
    min_confidence: float = 0.0
    """Noise of which the teacher is less sure is not counted."""
    published: Path | None = None
    """Labels to score ours against; they are never looked up to label."""

    def __post_init__(self) -> None:
        least, teacher = self.min_confidence, self.teacher
        if not 0 <= least <= 1:
            raise UserError(f"min_confidence {least}: has to lie between 0 and 1")
        if least and isinstance(teacher, LLMTeachers):
            raise UserError(
                f"min_confidence {least}: {teacher.spec} says no confidence, so "
                "it would change nothing; leave it out, or label by annotations"
            )
        if least and isinstance(teacher, PublishedTeachers):
            raise UserError(
                f"min_confidence {least}: it would overrule the published labels of "
                f"{teacher.name}; leave it out, or label by annotations"
            )


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
        source = InputSource.describe(plan.source, plan.benchmark == "synthetic")
    if plan.sha256 not in (None, source.digest):
        raise UserError(
            f"{plan.source}: its digest is {source.digest}, expected {plan.sha256}; "
            "get the file that was meant, or correct the digest"
        )
    return source


def jobs(plan: Build) -> Iterator[Chunk]:
    """The rows of a build's source, chunk by chunk."""
    schema = shard_schema()
    teacher, least, folder = plan.teacher, plan.min_confidence, plan.work / "shards"
    spec = spec_of(plan.benchmark, plan.source)
    if spec is None:
        for part in sources.chunks(plan.source, plan.split, size=CHUNK_ROWS, limit=plan.limit):
            yield Chunk(plan.benchmark, plan.split, part.start, part.rows, folder, teacher, schema, least)
        return
    total = _generated(plan, spec)
    for start in range(0, total, CHUNK_ROWS):
        size = min(CHUNK_ROWS, total - start)
        yield Chunk(plan.benchmark, plan.split, start, (), folder, teacher, schema, least, spec, size)


def _generated(plan: Build, spec: Spec) -> int:
    return spec.rows if plan.limit is None else min(spec.rows, plan.limit)


def collect(plan: Build, collected: work.Collected) -> None:
    """Run all chunks; fills ``collected`` as it goes, and ``rejects.jsonl`` in the work folder."""
    policy = RejectPolicy(plan.benchmark, plan.split, plan.keep_rejects)
    work.collect(plan, policy, functools.partial(jobs, plan), plan.teacher, [plan.source], collected)


def questions(plan: Build) -> Iterator[Question]:
    """The questions of a build's source, without the rows that can't be read."""
    for job in jobs(plan):
        yield from (question for _, question in job.questions()[0])


def count(plan: Build) -> int:
    """How many `questions` there are; none is made up to be counted."""
    spec = spec_of(plan.benchmark, plan.source)
    return sum(1 for _ in questions(plan)) if spec is None else _generated(plan, spec)
