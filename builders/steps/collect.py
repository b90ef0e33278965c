"""The first half of a build of the verifier set: from verified questions to candidate rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from builders.steps import leakage
from builders.steps.composition import Candidate, Composition
from builders.steps.questions import VerifiedSet, evaluation_questions, rows, splits_of
from builders.steps.refined import read_refined
from builders.steps.rows import Refused, StepRow
from builders.steps.shards import (
    CHUNK_QUESTIONS,
    NOT_IN_POOL,
    Maker,
    StepJob,
    StepShard,
    process,
    refused_row,
    step_job,
)
from builders.work.pool import in_order
from safe_stepwise.errors import UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.store.codec import question_of
from safe_stepwise.store.names import REFUSED, REQUEST_FAILED
from safe_stepwise.store.progress import counts, telling
from safe_stepwise.taxonomy import MISSING_EVIDENCE

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
    refined: Path | None = None
    """Rows that `refine_verifier_steps` wrote, to join those that are made."""
    unverifiable: bool = False
    """Of the questions that could not be verified instead (an ablation: SAFE v2, Table 5)."""

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
    refined: int = 0
    """Rows of refinement that were read."""
    last_failure: str = ""
    """Why the last request failed."""
    kept_questions: Counter[str] = field(default_factory=Counter)
    kept_rows: Counter[str] = field(default_factory=Counter)


def make(plan: StepsBuild, verified: VerifiedSet, maker: Maker, found: Found) -> None:
    """Run all chunks; fills ``found`` as it goes, and the work folder's ``refused.jsonl``."""
    evaluated = list(evaluation_questions(verified))
    ids = {question_key(question.benchmark, question.id) for question in evaluated}
    index = leakage.Index(map(leakage.document, evaluated))
    builds = verified.of(plan.benchmarks)
    there = [_questions_of(plan, build) for build in builds]
    total = sum(min(number, plan.pool or number) for number in there)
    refined = _by_question(plan)
    found.refined = sum(map(len, refined.values()))
    jobs = _jobs(plan, verified, maker, refined)
    results = in_order(
        process, jobs, workers=plan.workers, own_processes=lambda job: job.maker.own_processes
    )
    known: set[str] = set()
    bar = telling(
        "verifier steps",
        "question",
        total,
        lambda: found.done,
        lambda: _standing(found, total, maker),
    )
    with (plan.work / REFUSED).open("wb") as refused, bar:

        def refuse(one: Refused) -> None:
            # Half a surrogate pair, which a model may have written, becomes its escape.
            line = canonical_json(one) + "\n"
            refused.write(line.encode("utf-8", "backslashreplace"))
            reason = one.reason.partition(":")[0]
            found.refused[one.error_type, reason] += 1
            if reason == REQUEST_FAILED:
                found.last_failure = one.reason

        try:
            for job, shard in results:
                again = _again(job, known)
                for one in (*shard.refused, *again):
                    refuse(one)
                out = {r["id"] for r in job.rows if _near(r, job, ids, index)}
                _count(job, shard, out, {one.question_id for one in again}, found)
        finally:
            results.close()
        for rows_left in refined.values():
            for row in rows_left:
                refuse(refused_row(row, NOT_IN_POOL))
    _check_outcome(plan, maker, found)


def _questions_of(plan: StepsBuild, build: Mapping[str, Any]) -> int:
    return sum(build["unverifiable"].values()) if plan.unverifiable else build["verified"]


def _check_outcome(plan: StepsBuild, maker: Maker, found: Found) -> None:
    """Raise ``UserError`` where nothing came of the whole work, which is kept."""
    if found.last_failure and not found.passing.total():
        raise UserError(
            f"{maker.name}: no step could be made of {found.done:,} questions, and nothing was "
            f"published; the last: {found.last_failure.rstrip('.')}; mend that and run the same "
            "command again: only what failed is asked"
        )
    if plan.unverifiable and not found.done:
        raise UserError(
            f"{plan.verified}: none of its questions was found unverifiable; give it a build of "
            "rows that have some"
        )
    if not found.candidates:
        raise UserError(
            f"{plan.verified}: no row could be made of its {found.done:,} questions "
            f"({found.kept_questions.total():,} belong to the evaluation sample)"
            f"{_commonest(found)}; all reasons are in {plan.work / REFUSED}"
        )


def _commonest(found: Found) -> str:
    if not found.refused:
        return ""
    ((_, reason), number), *_ = found.refused.most_common(1)
    return f"; most often ({number:,}) {reason}"


def _standing(found: Found, total: int, maker: Maker) -> str:
    owed, refused = max(total - found.done, 0), found.refused.total()
    stands = counts(found.done - found.cached, found.cached, owed, refused=refused)
    asked = maker.progress()
    return f"{stands}{'; ' if asked else ''}{asked}"


def _by_question(plan: StepsBuild) -> dict[str, list[StepRow]]:
    refined: dict[str, list[StepRow]] = {}
    for row in [] if plan.refined is None else read_refined(plan.refined):
        refined.setdefault(question_key(row.question.benchmark, row.question.id), []).append(row)
    return refined


def _jobs(
    plan: StepsBuild, verified: VerifiedSet, maker: Maker, refined: dict[str, list[StepRow]]
) -> Iterator[StepJob]:
    """The chunks; takes out of ``refined`` what belongs to their questions."""
    folder = plan.work / "shards"
    for benchmark in dict.fromkeys(b["benchmark"] for b in verified.of(plan.benchmarks)):
        for split in splits_of(verified, benchmark):
            content = rows(verified, benchmark, split, plan.pool, plan.seed, plan.unverifiable)
            while chunk := list(islice(content, CHUNK_QUESTIONS)):
                keys = [question_key(benchmark, row["id"]) for row in chunk]
                ours = [row for key in keys for row in refined.pop(key, ())]
                yield step_job(
                    benchmark, split, chunk, maker, plan.seed, folder, ours, plan.unverifiable
                )


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
    question = question_of(row, benchmark=job.benchmark, split=job.split)
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
