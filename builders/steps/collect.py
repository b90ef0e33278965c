"""The first half of a build of the verifier set: from verified questions to candidate rows."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from builders.steps import chunks
from builders.steps.chunks import NOT_IN_POOL, MadeSteps, Maker, StepChunk
from builders.steps.composition import Candidate, Composition, fill
from builders.steps.first import First
from builders.steps.questions import VerifiedSet
from builders.steps.refined import read_refined
from builders.steps.rows import Refused, StepRow, question_key
from builders.verified.questions import VerifiedQuestion
from builders.work.executors import Standing, results
from builders.work.plans import Plan
from builders.work.ranks import Work
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.records import canonical_json
from safe_stepwise.store.names import REFUSED, REQUEST_FAILED

MAX_LENGTH = 8192
"""Tokens of a prompt with its completion."""
TEST_SHARE = 0.1
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
    test_share: float = TEST_SHARE
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
class Pool:
    """The questions of a build, and what its chunks hold, as far as they are done."""

    plan: StepsBuild
    verified: VerifiedSet
    maker: Maker
    standing: Standing = field(default_factory=lambda: Standing(word="refused"))
    """In questions; whatever was refused counts as failed."""
    shards: list[Path] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    incomplete: list[Candidate] = field(default_factory=list)
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

    def fill(self) -> None:
        """Run all chunks; fills itself as it goes, and the work folder's ``refused.jsonl``.

        Raises ``UserError`` where nothing came of the whole work, which is kept.
        """
        plan = self.plan
        (plan.work / "shards").mkdir(parents=True, exist_ok=True)
        near = self.verified.near_evaluation()
        refined: defaultdict[str, list[StepRow]] = defaultdict(list)
        for row in read_refined(plan.refined) if plan.refined else ():
            refined[row.question_key].append(row)
            self.refined[row.family] += 1
        work = Work(lambda: self.chunks(refined), self.maker, plan.work, "verifier steps", "question")
        made = results(work, plan, self._total, self.standing)
        earlier: set[str] = set()
        with (plan.work / REFUSED).open("wb") as lines, closing(made):
            for chunk, shard in made:
                repeated = _repeated(chunk, earlier)
                lines.writelines(map(self._line, (*shard.summary.refused, *repeated)))
                self.shards.append(shard.path)
                kept_out = {question.id for question, _ in chunk.questions if near(question)}
                self._count(chunk, shard.summary, {refusal.question_id for refusal in repeated}, kept_out)
            left = (row for key, rows in refined.items() if key not in earlier for row in rows)
            lines.writelines(self._line(Refused.of_row(row, NOT_IN_POOL)) for row in left)
        self._check_outcome()

    def chunks(self, refined: Mapping[str, list[StepRow]]) -> Iterator[StepChunk]:
        """The chunks; refined rows go with the first that has their question."""
        plan, left = self.plan, dict(refined)
        for benchmark, split in self.verified.splits(plan.benchmarks):
            content = self.questions(benchmark, split)
            while part := tuple(islice(content, chunks.CHUNK_QUESTIONS)):
                joining = [row for q, _ in part for row in left.pop(question_key(benchmark, q.id), ())]
                folder = plan.work / "shards"
                yield StepChunk(
                    *(benchmark, split, part, self.maker, plan.seed, folder, tuple(joining), plan.unverifiable)
                )

    def questions(self, benchmark: str, split: str) -> Iterator[VerifiedQuestion]:
        """The questions of a split that steps are made of."""
        plan = self.plan
        among = plan.first.questions.get(benchmark, ()) if plan.first else None
        return self.verified.questions(benchmark, split, plan.pool, plan.seed, plan.unverifiable, among)

    def pairs(self) -> Iterator[VerifiedQuestion]:
        """All questions that steps are made of, some perhaps in several splits."""
        for place in self.verified.splits(self.plan.benchmarks):
            yield from self.questions(*place)

    def rows(self, ids: frozenset[str] | set[str]) -> Iterator[StepRow]:
        """The rows with these ids, of all shards."""
        for path in self.shards:
            yield from chunks.read_rows(path, ids)

    @property
    def record(self) -> dict[str, Any]:
        """What was seen, refused and kept out, for the record of the build.

        ``trajectories`` counts questions by benchmark, those of the evaluation sample included: ``questions`` seen,
        ``passing`` with an ideal trajectory. ``refused`` is by error type ("" for ideal trajectories and whole
        questions) and reason up to its first colon. ``kept_out`` is what the evaluation sample keeps out.
        """
        refused: dict[str, dict[str, int]] = defaultdict(dict)
        for (error_type, reason), number in sorted(self.refused.items()):
            refused[error_type][reason] = number
        seen, kept_out = sorted(self.seen), sorted(self.kept_questions)
        return {
            "trajectories": {name: {"questions": self.seen[name], "passing": self.passing[name]} for name in seen},
            "refused": dict(refused),
            "kept_out": {
                name: {"questions": self.kept_questions[name], "rows": self.kept_rows[name]} for name in kept_out
            },
        }

    def refuse(self, lost: Iterable[Refused]) -> None:
        """Count rows of a first build that were not made, behind all else that was refused."""
        with (self.plan.work / REFUSED).open("ab") as lines:
            lines.writelines(map(self._line, lost))

    def _total(self) -> int:
        """Questions to make steps of."""
        plan = self.plan
        if plan.first is not None:
            return sum(map(len, plan.first.questions.values()))
        sizes = [_questions_in(plan, build) for build in self.verified.of(plan.benchmarks)]
        return sum(min(size, plan.pool or size) for size in sizes)

    def _line(self, refusal: Refused) -> bytes:
        """Count a refusal; returns its line of ``refused.jsonl``."""
        reason = refusal.reason.partition(":")[0]
        self.refused[refusal.error_type, reason] += 1
        self.standing.failed += 1
        if reason == REQUEST_FAILED:
            self.last_failure = refusal.reason
        # Half a surrogate pair, which a model may have written, becomes its escape.
        return f"{canonical_json(refusal)}\n".encode("utf-8", "backslashreplace")

    def _count(self, chunk: StepChunk, made: MadeSteps, repeated: set[str], kept_out: set[str]) -> None:
        name = chunk.benchmark
        self.seen[name] += len(chunk.questions) - len(repeated)
        self.passing[name] += len(set(made.passing) - repeated)
        self.kept_questions[name] += len(kept_out - repeated)
        for candidate in made.candidates:
            if candidate.question in repeated:
                continue
            if kept_out & {candidate.question, candidate.borrowed}:
                self.kept_rows[name] += 1
            else:
                (self.incomplete if candidate.incomplete else self.candidates).append(candidate)

    def _check_outcome(self) -> None:
        plan, done, kept_out = self.plan, self.standing.done, self.kept_questions.total()
        if self.last_failure and not self.passing.total():
            raise UserError(
                f"{self.maker.name}: no step could be made of {done:,} questions, and nothing was "
                f"published; the last: {self.last_failure.rstrip('.')}; mend that and run the same "
                "command again: only what failed is asked"
            )
        if plan.unverifiable and not done:
            raise UserError(
                f"{plan.verified}: none of its questions was found unverifiable; "
                "give it a build of rows that have some"
            )
        if not self.candidates and kept_out == done:
            raise UserError(
                f"{plan.verified}: all of its {done:,} questions belong to the evaluation sample; "
                "add others, as of --split train, or a smaller --evaluation-size in build_verified"
            )
        if not self.candidates:
            often = [f"; most often ({n:,}) {why}" for (_, why), n in self.refused.most_common(1)]
            raise UserError(
                f"{plan.verified}: no row could be made of its {done:,} questions "
                f"({kept_out:,} belong to the evaluation sample)"
                f"{''.join(often)}; all reasons are in {plan.work / REFUSED}"
            )


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
    sizes: Counter[str] = Counter()
    for build in verified.of(plan.benchmarks):
        sizes[build["benchmark"]] += _questions_in(plan, build)
    room = {name: number * wanted.rows_per_question for name, number in sizes.items()}
    most = max(fill(wanted.rows, room).values())
    return max(LEAST_POOL, math.ceil(most / min(ROWS_OF_A_QUESTION, wanted.rows_per_question)))


def _questions_in(plan: StepsBuild, build: Mapping[str, Any]) -> int:
    """Questions of a build that steps can be made of."""
    return sum(build["unverifiable"].values()) if plan.unverifiable else build["verified"]


def _repeated(chunk: StepChunk, earlier: set[str]) -> list[Refused]:
    """Questions that an earlier split had already; adds the chunk's own to those."""
    repeated = []
    for question, _ in chunk.questions:
        key = question_key(chunk.benchmark, question.id)
        if key in earlier:
            reason = f"a question of an earlier split: {chunk.split} repeats it"
            repeated.append(Refused.of(question, reason))
        earlier.add(key)
    return repeated
