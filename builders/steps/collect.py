"""The first half of a build of the verifier set: from verified questions to candidate rows."""

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from builders.steps.chunks import CHUNK_QUESTIONS, NOT_IN_POOL, MadeSteps, Maker, StepChunk, refused_row
from builders.steps.composition import Candidate, Composition, fill
from builders.steps.first import First
from builders.steps.questions import VerifiedSet, near_evaluation, question_key, rows, splits_of
from builders.steps.refined import read_refined
from builders.steps.rows import Refused, StepRow
from builders.work.executors import Standing, results
from builders.work.plans import Plan
from builders.work.ranks import Work
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.records import Question, canonical_json
from safe_stepwise.store.names import REFUSED, REQUEST_FAILED

MAX_LENGTH = 8192
"""Tokens of a prompt with its completion."""
ROWS_OF_A_QUESTION = 3
"""Rows for which one question is tried: it gives more, but then they would be too much alike."""
LEAST_POOL = 200
"""Questions of a split that are tried for however few rows, so that every error type occurs."""


@dataclass(frozen=True, slots=True)
class StepsBuild(Plan):
    """What to build. ``verified`` is a folder that `build_verified` or `regenerate` wrote."""

    verified: Path
    composition: Composition
    benchmarks: tuple[str, ...] = ()
    """All that are there, if none is named."""
    test_share: float = 0.1
    test_split: str | None = None
    """The benchmarks' split whose questions make up test, in the place of a share."""
    tokenizer: str | None = None
    max_length: int = MAX_LENGTH
    prompt_set: PromptSet = PAPER
    """What the rows of prompt and completion are rendered by."""
    pool: int | None = None
    """Questions of a benchmark's split to make steps of; `enough` of them, if not said."""
    refined: Path | None = None
    """Rows that `refine_verifier_steps` wrote, to join those that are made."""
    unverifiable: bool = False
    """Of the questions that could not be verified instead (an ablation: SAFE v2, Table 5)."""
    first: First | None = None
    """Another build, whose rows are to be made anew (an ablation: SAFE v2, Table 6)."""

    @property
    def work_name(self) -> str:
        """The folder of unfinished work."""
        return "verifier-steps"


@dataclass(slots=True)
class Found:
    """What the chunks hold, as far as they are done."""

    standing: Standing = field(default_factory=lambda: Standing(word="refused"))
    """In questions; whatever was refused counts as failed."""
    shards: list[Path] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    missing: list[Candidate] = field(default_factory=list)
    """Rows for the configs of incomplete evidence."""
    seen: Counter[str] = field(default_factory=Counter)
    passing: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By error type and reason."""
    refined: Counter[str] = field(default_factory=Counter)
    """Rows of refinement that were read, by the weakness that they show."""
    last_failure: str = ""
    """Why the last request failed."""
    kept_questions: Counter[str] = field(default_factory=Counter)
    kept_rows: Counter[str] = field(default_factory=Counter)


def make(plan: StepsBuild, verified: VerifiedSet, maker: Maker, found: Found) -> None:
    """Run all chunks; fills ``found`` as it goes, and the work folder's ``refused.jsonl``."""
    (plan.work / "shards").mkdir(parents=True, exist_ok=True)
    near = near_evaluation(verified)
    refined = _by_question(plan)
    found.refined = Counter(row.family for rows in refined.values() for row in rows)
    jobs = functools.partial(chunks_of, plan, verified, maker, refined)
    work = Work(jobs, maker, plan.work, "verifier steps", "question")
    total = functools.partial(_total, plan, verified)
    made = results(work, plan, total, found.standing)
    known: set[str] = set()
    with (plan.work / REFUSED).open("wb") as lines, closing(made):
        for chunk, shard in made:
            again = _again(chunk, known)
            for one in (*shard.summary.refused, *again):
                lines.write(_refuse(one, found))
            found.shards.append(shard.path)
            _count(chunk, shard.summary, near, {one.question_id for one in again}, found)
        left = [row for key, rows in refined.items() if key not in known for row in rows]
        for row in left:
            lines.write(_refuse(refused_row(row, NOT_IN_POOL), found))
    _check_outcome(plan, maker, found)


def enough(plan: StepsBuild, verified: VerifiedSet) -> int | None:
    """Questions of each split that give the rows of a plan where it does not say how many.

    All of them (None) where so many questions are wanted, or where refined rows may be of any; of
    those of a first build, all.
    """
    wanted = plan.composition
    if plan.first is not None:
        return None
    if plan.pool or wanted.questions or wanted.per_benchmark or plan.refined:
        return plan.pool
    there: Counter[str] = Counter()
    for build in verified.of(plan.benchmarks):
        there[build["benchmark"]] += _there(plan, build)
    room = {name: number * wanted.rows_per_question for name, number in there.items()}
    most = max(fill(wanted.rows, room).values())
    return max(LEAST_POOL, math.ceil(most / min(ROWS_OF_A_QUESTION, wanted.rows_per_question)))


def _there(plan: StepsBuild, build: Mapping[str, Any]) -> int:
    """Questions of a build that steps can be made of."""
    return sum(build["unverifiable"].values()) if plan.unverifiable else build["verified"]


def _total(plan: StepsBuild, verified: VerifiedSet) -> int:
    """Questions to make steps of."""
    if plan.first is not None:
        return sum(map(len, plan.first.questions.values()))
    there = [_there(plan, build) for build in verified.of(plan.benchmarks)]
    return sum(min(number, plan.pool or number) for number in there)


def _refuse(one: Refused, found: Found) -> bytes:
    """Count a refusal; returns its line of ``refused.jsonl``."""
    reason = one.reason.partition(":")[0]
    found.refused[one.error_type, reason] += 1
    found.standing.failed += 1
    if reason == REQUEST_FAILED:
        found.last_failure = one.reason
    # Half a surrogate pair, which a model may have written, becomes its escape.
    return f"{canonical_json(one)}\n".encode("utf-8", "backslashreplace")


def refuse_lost(plan: StepsBuild, lost: Iterable[Refused], found: Found) -> None:
    """Count rows of a first build that were not made, behind all else that was refused."""
    with (plan.work / REFUSED).open("ab") as lines:
        lines.writelines(_refuse(one, found) for one in lost)


def _check_outcome(plan: StepsBuild, maker: Maker, found: Found) -> None:
    """Raise ``UserError`` where nothing came of the whole work, which is kept."""
    done = found.standing.done
    if found.last_failure and not found.passing.total():
        raise UserError(
            f"{maker.name}: no step could be made of {done:,} questions, and nothing was "
            f"published; the last: {found.last_failure.rstrip('.')}; mend that and run the same "
            "command again: only what failed is asked"
        )
    if plan.unverifiable and not done:
        raise UserError(
            f"{plan.verified}: none of its questions was found unverifiable; give it a build of rows that have some"
        )
    if not found.candidates:
        if found.kept_questions.total() == done:
            raise UserError(
                f"{plan.verified}: all of its {done:,} questions belong to the evaluation sample; "
                "add others, as of --split train, or a smaller --evaluation-size in build_verified"
            )
        often = [f"; most often ({n:,}) {why}" for (_, why), n in found.refused.most_common(1)]
        raise UserError(
            f"{plan.verified}: no row could be made of its {done:,} questions "
            f"({found.kept_questions.total():,} belong to the evaluation sample)"
            f"{''.join(often)}; all reasons are in {plan.work / REFUSED}"
        )


def _by_question(plan: StepsBuild) -> dict[str, list[StepRow]]:
    refined: defaultdict[str, list[StepRow]] = defaultdict(list)
    for row in read_refined(plan.refined) if plan.refined else ():
        refined[question_key(row.question.benchmark, row.question.id)].append(row)
    return refined


def chunks_of(
    plan: StepsBuild, verified: VerifiedSet, maker: Maker, refined: Mapping[str, list[StepRow]]
) -> Iterator[StepChunk]:
    """The chunks; refined rows go with the first that has their question."""
    folder, left = plan.work / "shards", dict(refined)
    for benchmark in dict.fromkeys(b["benchmark"] for b in verified.of(plan.benchmarks)):
        for split in splits_of(verified, benchmark):
            among = plan.first.questions.get(benchmark, ()) if plan.first else None
            content = rows(verified, benchmark, split, plan.pool, plan.seed, plan.unverifiable, among)
            while part := tuple(islice(content, CHUNK_QUESTIONS)):
                keys = [question_key(benchmark, row.question.id) for row in part]
                ours = tuple(row for key in keys for row in left.pop(key, ()))
                yield StepChunk(benchmark, split, part, maker, plan.seed, folder, ours, plan.unverifiable)


def _again(chunk: StepChunk, known: set[str]) -> list[Refused]:
    """Questions that an earlier split had already."""
    again = []
    for question, _ in chunk.rows:
        key = question_key(chunk.benchmark, question.id)
        if key in known:
            reason = f"a question of an earlier split: {chunk.split} repeats it"
            again.append(Refused(chunk.benchmark, question.id, "", None, reason))
        known.add(key)
    return again


def _count(chunk: StepChunk, made: MadeSteps, near: Callable[[Question], bool], again: set[str], found: Found) -> None:
    name = chunk.benchmark
    kept_out = {question.id for question, _ in chunk.rows if near(question)}
    found.seen[name] += len(chunk.rows) - len(again)
    found.passing[name] += len(set(made.passing) - again)
    found.kept_questions[name] += len(kept_out - again)
    for candidate in made.candidates:
        if candidate.question in again:
            continue
        if kept_out & {candidate.question, candidate.borrowed}:
            found.kept_rows[name] += 1
        elif candidate.incomplete:
            found.missing.append(candidate)
        else:
            found.candidates.append(candidate)
