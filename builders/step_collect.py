"""The first half of a build of the verifier set: from verified questions to candidate rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from builders import features, leakage
from builders.composition import Candidate, Composition
from builders.pool import in_order
from builders.step_questions import VerifiedSet, evaluation_questions, rows, splits_of
from builders.step_rows import Refused
from builders.step_shards import CHUNK_QUESTIONS, Maker, StepJob, StepShard, process, step_job
from safe_stepwise.errors import UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.taxonomy import MISSING_EVIDENCE

REFUSED = "refused.jsonl"
MAX_LENGTH = 8192
"""Tokens of a prompt with its completion."""


@dataclass(frozen=True, slots=True)
class StepsBuild:
    """What to build. ``verified`` is a folder that `build_verified` or `regenerate` wrote."""

    verified: Path
    output: Path
    composition: Composition
    benchmarks: tuple[str, ...] = ()
    """All that are there, if none is named."""
    test_share: float = 0.1
    version: str = "v0.1.0"
    seed: int = 0
    workers: int = 1
    tokenizer: str | None = None
    max_length: int = MAX_LENGTH
    pool: int | None = None
    """Questions of a benchmark's split to make steps of; all, if not said."""

    @property
    def work(self) -> Path:
        """Where unfinished work lies."""
        return self.output / ".work" / "verifier-steps"


@dataclass(slots=True)
class Found:
    """What the chunks hold, as far as they are done."""

    done: int = 0
    cached: int = 0
    shards: list[Path] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    missing: list[Candidate] = field(default_factory=list)
    """Rows for the config of incomplete evidence."""
    seen: Counter[str] = field(default_factory=Counter)
    passing: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    kept_questions: Counter[str] = field(default_factory=Counter)
    kept_rows: Counter[str] = field(default_factory=Counter)


def make(plan: StepsBuild, verified: VerifiedSet, maker: Maker, found: Found) -> None:
    """Run all chunks; fills ``found`` as it goes, and the work folder's ``refused.jsonl``."""
    evaluated = list(evaluation_questions(verified))
    ids = {question_key(question.benchmark, question.id) for question in evaluated}
    index = leakage.Index(map(leakage.document, evaluated))
    builds = verified.of(plan.benchmarks)
    total = sum(min(b["verified"], plan.pool or b["verified"]) for b in builds)
    jobs = _jobs(plan, verified, maker)
    results = in_order(
        process, jobs, workers=plan.workers, own_processes=lambda job: job.maker.own_processes
    )
    known: set[str] = set()
    with (
        (plan.work / REFUSED).open("wb") as refused,
        tqdm(total=total, unit="question", desc="verifier steps", delay=1) as bar,
    ):
        try:
            for job, shard in results:
                again = _again(job, known)
                for one in (*shard.refused, *again):
                    # Half a surrogate pair, which a model may have written, becomes its escape.
                    line = canonical_json(one) + "\n"
                    refused.write(line.encode("utf-8", "backslashreplace"))
                    found.refused[one.error_type, one.reason.partition(":")[0]] += 1
                out = {r["id"] for r in job.rows if _near(r, job, ids, index)}
                _count(job, shard, out, {one.question_id for one in again}, found)
                bar.update(len(job.rows))
                owed = max(total - found.done, 0)
                bar.set_postfix_str(
                    f"done {found.done - found.cached} cached {found.cached} "
                    f"refused {found.refused.total()} owed {owed}"
                )
        finally:
            results.close()
    if not found.candidates:
        raise UserError(
            f"{plan.verified}: no row could be made of its {found.done:,} questions "
            f"({found.kept_questions.total():,} belong to the evaluation sample)"
        )


def _jobs(plan: StepsBuild, verified: VerifiedSet, maker: Maker) -> Iterator[StepJob]:
    for benchmark in dict.fromkeys(b["benchmark"] for b in verified.of(plan.benchmarks)):
        for split in splits_of(verified, benchmark):
            content = rows(verified, benchmark, split, plan.pool, plan.seed)
            while chunk := list(islice(content, CHUNK_QUESTIONS)):
                yield step_job(benchmark, split, chunk, maker, plan.seed, plan.work / "shards")


def _again(job: StepJob, known: set[str]) -> list[Refused]:
    """Questions that an earlier split had already."""
    again = []
    for row in job.rows:
        key = question_key(job.benchmark, row["id"])
        if key in known:
            reason = f"a question of an earlier split: {job.split} repeats it"
            again.append(Refused(job.benchmark, row["id"], "", None, reason))
        known.add(key)
    return again


def _near(row: Mapping[str, Any], job: StepJob, evaluated: set[str], index: leakage.Index) -> bool:
    if not evaluated:
        return False
    if question_key(job.benchmark, row["id"]) in evaluated:
        return True
    question = features.row_to_question(row, job.benchmark, job.split)
    return index.near(leakage.document(question))


def _count(
    job: StepJob, shard: StepShard, kept_out: set[str], again: set[str], found: Found
) -> None:
    name = job.benchmark
    found.shards.append(shard.path)
    found.done += len(job.rows)
    found.cached += len(job.rows) if shard.cached else 0
    found.seen[name] += len(job.rows) - len(again)
    found.passing[name] += len(set(shard.passing) - again)
    found.kept_questions[name] += len(kept_out - again)
    for candidate in shard.candidates:
        if candidate.question in again:
            continue
        if candidate.question in kept_out:
            found.kept_rows[name] += 1
        elif candidate.error_type == MISSING_EVIDENCE:
            found.missing.append(candidate)
        else:
            found.candidates.append(candidate)


def question_key(benchmark: str, question: str) -> str:
    """A question's key over all benchmarks."""
    return f"{benchmark}\0{question}"
