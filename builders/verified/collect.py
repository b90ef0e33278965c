"""Cuts a build's source into chunks to verify, and counts its questions."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from builders.benchmarks import sources
from builders.benchmarks.custom import OwnBenchmark
from builders.synthetic import Spec, parse_spec
from builders.verified.chunks import CHUNK_ROWS, VerificationChunk, shard_schema
from builders.verified.questions import EVALUATION_SIZE, PASSAGES
from builders.verified.teachers import Teachers
from builders.verified.teachers.llm import LLMTeachers
from builders.verified.teachers.published import PublishedTeachers
from builders.work.plans import Plan
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, identity


@dataclass(frozen=True, slots=True)
class Build(Plan):
    """The options of a verification build; ``source`` is a file, ``hub-id@rev``, or a synthetic spec."""

    work_name: ClassVar[str] = "{plan.benchmark}-{plan.split}"
    benchmark: str
    source: str
    split: str
    teacher: Teachers
    evaluation_size: int = EVALUATION_SIZE
    evaluation_passages: int | None = PASSAGES
    """Passages of each question of the sample, fewer for a world of short questions; None: at most `PASSAGES`, or as
    many as are gold."""
    sha256: str | None = None
    min_confidence: float = 0.0
    published: Path | None = None
    own_benchmark: OwnBenchmark | None = None
    """The user's own benchmark, whose name ``benchmark`` is; None for one of `BENCHMARKS`."""

    def __post_init__(self) -> None:
        least, teacher = self.min_confidence, self.teacher
        if not 0 <= least <= 1:
            raise UserError(f"min_confidence {least}: has to lie between 0 and 1")
        is_model = isinstance(teacher, LLMTeachers) and teacher.alone is None
        if least and (is_model or isinstance(teacher, PublishedTeachers)):
            raise UserError(
                f"min_confidence {least}: this teacher's labels have no confidence; "
                "leave it out, or label by annotations"
            )


def spec_of(benchmark: str, source: str) -> Spec | None:
    """Parse a spec of rows to generate; None for a file or Hub dataset; raise ``UserError`` for a bad spec."""
    if benchmark != "synthetic" or "=" not in source or Path(source).exists():
        return None
    return parse_spec(source)


def source_of(plan: Build) -> sources.InputSource:
    """Return name and digest of a build's source; raise ``UserError`` if it can't be read or has another digest."""
    spec = spec_of(plan.benchmark, plan.source)
    if spec is not None:
        source = sources.InputSource(plan.source, identity(spec), synthetic=True)
    else:
        source = sources.InputSource.describe(plan.source, plan.benchmark == "synthetic")
    if plan.sha256 not in (None, source.digest):
        raise UserError(
            f"{plan.source}: its digest is {source.digest}, expected {plan.sha256}; "
            "get the file that was meant, or correct the digest"
        )
    return source


def jobs(plan: Build) -> Iterator[VerificationChunk]:
    """Yield the rows of a build's source in chunks."""
    settings = (plan.work / "shards", plan.teacher, shard_schema(), plan.min_confidence)
    if (spec := spec_of(plan.benchmark, plan.source)) is None:
        for n, rows in sources.in_chunks(sources.read_rows(plan.source, plan.split, plan.limit), CHUNK_ROWS):
            yield VerificationChunk(plan.benchmark, plan.split, n, rows, *settings, own_benchmark=plan.own_benchmark)
        return
    total = min(spec.rows, plan.limit or spec.rows)
    for start in range(0, total, CHUNK_ROWS):
        yield VerificationChunk(plan.benchmark, plan.split, start, (), *settings, spec, min(CHUNK_ROWS, total - start))


def questions(plan: Build) -> Iterator[Question]:
    """Yield the questions of a build's source, without the rows that can't be read."""
    for job in jobs(plan):
        yield from (question for _, question, _ in job.questions()[0])


def count(plan: Build) -> int:
    """Return the number of `questions` of a build's source; synthetic rows are counted without being generated."""
    spec = spec_of(plan.benchmark, plan.source)
    return sum(1 for _ in questions(plan)) if spec is None else min(spec.rows, plan.limit or spec.rows)
