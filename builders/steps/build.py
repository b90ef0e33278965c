"""Builds the step-level verifier set, ``safe-verifier-steps``, from verified questions.

Steps are made chunk by chunk into ``OUTPUT/.work/verifier-steps``. Rows are chosen from all that passed, split by
groups of questions, and written; the dataset then replaces an earlier one as a whole.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

from builders.steps import chunks, configs, leakage, probes, skeletons, statistics
from builders.steps.chunks import NOT_IN_POOL, MadeSteps, Maker, StepChunk
from builders.steps.composition import Candidate, ChosenRows, Composition, available_rows, choose, rank, split_evenly
from builders.steps.earlier_build import EarlierBuild, Matches
from builders.steps.questions import VerifiedSet, open_verified, source_record
from builders.steps.refined import origin_of, read_refined
from builders.steps.rewriting import Rewriter, checkers_of
from builders.steps.rows import Refused, StepRow, question_key
from builders.verified.questions import VerifiedQuestion
from builders.verified.teachers.choice import describe_unreadable
from builders.work import publishing
from builders.work.executors import Standing, results
from builders.work.plans import Plan, libraries
from builders.work.ranks import Work
from safe_stepwise.errors import UserError
from safe_stepwise.methods import generator, verifier
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.records import canonical_json
from safe_stepwise.store import names
from safe_stepwise.store.code import code_digest

TEST_SHARE = 0.1
ROWS_OF_A_QUESTION = 3
"""Rows expected of one question; more can be made, but they are too much alike."""
MIN_POOL = 200
"""The fewest questions of a split that are tried, so that every error type occurs."""


@dataclass(frozen=True, slots=True)
class StepsBuild(Plan):
    """The options of a build; ``verified`` is a folder that `build_verified` or `regenerate` wrote."""

    work_name: ClassVar[str] = "verifier-steps"
    verified: Path
    composition: Composition
    benchmarks: tuple[str, ...] = ()
    """Benchmarks to use; all of the folder if empty."""
    test_share: float = TEST_SHARE
    test_split: str | None = None
    """The benchmarks' split whose questions become the test split, instead of a share."""
    prompt_set: PromptSet = PAPER
    """The prompts that render rows of prompt and completion."""
    pool: int | None = None
    """Questions of a benchmark's split to make steps of; `pool_size` of them if None."""
    refined: Path | None = None
    """A file of `refine_verifier_steps`, whose rows are added."""
    unverifiable: bool = False
    """Use the unverifiable questions instead (an ablation: SAFE v2, Table 5)."""
    earlier: EarlierBuild | None = None
    """Another build, whose rows this one makes again (an ablation: SAFE v2, Table 6)."""
    exact: bool = True
    """Whether fewer rows than the composition's are an error, even if no question could give more."""


@dataclass(slots=True)
class CandidatePool:
    """The questions of a build, and the candidates and counts of its finished chunks."""

    plan: StepsBuild
    verified: VerifiedSet
    maker: Maker
    standing: Standing = field(default_factory=lambda: Standing(failed_label="refused"))
    """Progress in questions; each refusal counts as failed."""
    shards: list[Path] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    incomplete: list[Candidate] = field(default_factory=list)
    """Rows for the configs of incomplete evidence."""
    numbers: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Counts by benchmark: questions, passing ones, and those that the evaluation sample excludes."""
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Refusals by error type and reason."""
    refined: Counter[str] = field(default_factory=Counter)
    """Refined rows that were read, by weakness."""
    last_failure: str = ""
    """Why the last request failed."""

    def fill(self) -> None:
        """Run all chunks, collect candidates and counts, write the refusals; raise ``UserError`` if no row passes."""
        plan = self.plan
        (plan.work / "shards").mkdir(parents=True, exist_ok=True)
        near = self.verified.near_evaluation()
        refined: defaultdict[str, list[StepRow]] = defaultdict(list)
        for row in read_refined(plan.refined) if plan.refined else ():
            refined[row.question_key].append(row)
            self.refined[row.family] += 1
        work = Work(lambda: self.chunks(refined), self.maker, plan.work, "verifier steps", "question")
        shards = results(work, plan, self._total, self.standing)
        earlier: set[str] = set()
        with (plan.work / names.REFUSED).open("wb") as file, closing(shards):
            for chunk, shard in shards:
                repeated = _refuse_repeats(chunk, earlier)
                file.writelines(map(self.line, (*shard.summary.refused, *repeated)))
                self.shards.append(shard.path)
                kept_out = {question.id for question, _ in chunk.questions if near(question)}
                self._count(chunk, shard.summary, {refusal.question_id for refusal in repeated}, kept_out)
            unmatched = (row for key, rows in refined.items() if key not in earlier for row in rows)
            file.writelines(self.line(Refused.of_row(row, NOT_IN_POOL)) for row in unmatched)
        self._check_outcome()

    def chunks(self, refined: Mapping[str, list[StepRow]]) -> Iterator[StepChunk]:
        """Yield the chunks; refined rows go into the first chunk that has their question."""
        plan, unused = self.plan, dict(refined)
        for benchmark, split in self.verified.splits(plan.benchmarks):
            content = self.questions(benchmark, split)
            while batch := tuple(islice(content, chunks.CHUNK_QUESTIONS)):
                joining = [row for q, _ in batch for row in unused.pop(question_key(benchmark, q.id), ())]
                folder = plan.work / "shards"
                yield StepChunk(
                    *(benchmark, split, batch, self.maker, plan.seed, folder, tuple(joining), plan.unverifiable)
                )

    def questions(self, benchmark: str, split: str) -> Iterator[VerifiedQuestion]:
        """Yield the questions of a split from which steps are made."""
        plan = self.plan
        ids = plan.earlier.questions.get(benchmark, ()) if plan.earlier else None
        return self.verified.questions(benchmark, split, plan.pool, plan.seed, plan.unverifiable, ids)

    @property
    def record(self) -> dict[str, Any]:
        """Count questions, refusals (by error type, "" for none, and reason up to a colon) and exclusions."""
        refused: dict[str, dict[str, int]] = defaultdict(dict)
        for (error_type, reason), number in sorted(self.refused.items()):
            refused[error_type][reason] = number
        numbers = sorted(self.numbers.items())
        return {
            "trajectories": {name: {key: n[key] for key in ("questions", "passing")} for name, n in numbers},
            "refused": dict(refused),
            "kept_out": {name: {"questions": n["kept out"], "rows": n["rows kept out"]} for name, n in numbers},
        }

    def _total(self) -> int:
        """Return the number of questions from which steps are to be made."""
        plan = self.plan
        if plan.earlier is not None:
            return sum(map(len, plan.earlier.questions.values()))
        sizes = [_questions_in(plan, build) for build in self.verified.select_builds(plan.benchmarks)]
        return sum(min(size, plan.pool or size) for size in sizes)

    def line(self, refusal: Refused) -> bytes:
        """Count a refusal, and return its line of ``refused.jsonl``."""
        reason = refusal.reason.partition(":")[0]
        self.refused[refusal.error_type, reason] += 1
        self.standing.failed += 1
        if reason == names.REQUEST_FAILED:
            self.last_failure = refusal.reason
        # Half a surrogate pair, which a model may have written, becomes its escape.
        return f"{canonical_json(refusal)}\n".encode("utf-8", "backslashreplace")

    def _count(self, chunk: StepChunk, summary: MadeSteps, repeated: set[str], kept_out: set[str]) -> None:
        numbers = self.numbers[chunk.benchmark]
        numbers["questions"] += len(chunk.questions) - len(repeated)
        numbers["passing"] += len(set(summary.passing) - repeated)
        numbers["kept out"] += len(kept_out - repeated)
        for candidate in summary.candidates:
            if candidate.question in repeated:
                continue
            if kept_out & {candidate.question, candidate.borrowed}:
                numbers["rows kept out"] += 1
            else:
                (self.incomplete if candidate.incomplete else self.candidates).append(candidate)

    def shrink(self) -> str:
        """Ask for no more rows than all questions gave, and return why; "" if the plan stays as it is.

        It stays if the number of questions or of a benchmark's rows is fixed, not all questions were tried, or a
        request failed.
        """
        plan, composition = self.plan, self.plan.composition
        sizes = (_questions_in(plan, build) for build in self.verified.select_builds(plan.benchmarks))
        fixed = composition.questions or composition.per_benchmark or plan.earlier or self.last_failure
        if fixed or (plan.pool is not None and any(size > plan.pool for size in sizes)):
            return ""
        available, shortage = available_rows(self.candidates, composition)
        if shortage:
            self.plan = replace(plan, composition=replace(composition, rows=available))
        return shortage

    def _check_outcome(self) -> None:
        plan, finished = self.plan, self.standing.finished
        kept_out = sum(numbers["kept out"] for numbers in self.numbers.values())
        if self.last_failure and not any(numbers["passing"] for numbers in self.numbers.values()):
            raise UserError(
                f"{self.maker.name}: no step could be made of {finished:,} questions, and nothing was "
                f"published; the last: {self.last_failure.rstrip('.')}; mend that and run the same "
                "command again: only what failed is asked"
            )
        if not self.candidates:
            causes = [f"; most often ({n:,}) {reason}" for (_, reason), n in self.refused.most_common(1)]
            causes.append(describe_unreadable(self.maker))
            raise UserError(
                f"{plan.verified}: no row could be made of its {finished:,} "
                f"{'unverifiable' if plan.unverifiable else 'verified'} questions ({kept_out:,} belong to the "
                "evaluation sample, for which build_verified --evaluation-size N takes fewer)"
                f"{''.join(causes)}; all reasons are in {plan.work / names.REFUSED}"
            )


def pool_size(plan: StepsBuild, verified: VerifiedSet) -> int | None:
    """Return how many questions of each split suffice for a plan's rows; None if the plan needs all or sets it."""
    composition = plan.composition
    if plan.earlier is not None:
        return None
    if plan.pool or composition.questions or composition.per_benchmark or plan.refined:
        return plan.pool
    sizes: Counter[str] = Counter()
    for build in verified.select_builds(plan.benchmarks):
        sizes[build["benchmark"]] += _questions_in(plan, build)
    room = {name: number * composition.rows_per_question for name, number in sizes.items()}
    largest = max(split_evenly(composition.rows, room).values())
    return max(MIN_POOL, math.ceil(largest / min(ROWS_OF_A_QUESTION, composition.rows_per_question)))


def _questions_in(plan: StepsBuild, build: Mapping[str, Any]) -> int:
    """Return the number of a build's questions from which steps can be made."""
    return sum(build["unverifiable"].values()) if plan.unverifiable else build["verified"]


def _refuse_repeats(chunk: StepChunk, earlier: set[str]) -> list[Refused]:
    """Return refusals of the questions that an earlier split has; add the chunk's questions to ``earlier``."""
    repeated = []
    for question, _ in chunk.questions:
        key = question_key(chunk.benchmark, question.id)
        if key in earlier:
            reason = f"a question of an earlier split: {chunk.split} repeats it"
            repeated.append(Refused.of_question(question, reason))
        earlier.add(key)
    return repeated


LIBRARIES = ("matplotlib", "scikit-learn")
"""Packages for the card's pictures and the probes."""
DATASET = publishing.Dataset(names.VERIFIER_STEPS, names.STEPS_RECORD, configs.config_features, names.REFUSED)
_OF_THE_PLAN = ("version", "seed", "unverifiable", "composition", "test_share", "test_split", "pool")


def build(
    plan: StepsBuild,
    maker: Maker,
    card: publishing.SingleCard,
    warn: Callable[[str], object] = print,
    rewriter: Rewriter | None = None,
) -> statistics.Record:
    """Build or replace ``OUTPUT/safe-verifier-steps`` and ``OUTPUT/refused.jsonl``; return the record.

    After a kill the same call resumes, and ends in the same bytes. ``warn`` is called with concerns that stop nothing;
    a ``rewriter`` rewords the chosen rows if possible. Raises ``UserError`` for what the user can mend.
    """
    if not 0 < plan.test_share < 1:
        raise UserError(f"--test-share {plan.test_share}: a share lies between 0 and 1")
    verified = open_verified(plan.verified, plan.version)
    plan = replace(plan, pool=pool_size(plan, verified))
    pool = CandidatePool(plan, verified, maker)
    players = [player for player in (maker, rewriter) if player is not None]

    def make_rows(folder: Path) -> tuple[statistics.Record, bytes]:
        for player in players:
            player.check()
        pool.fill()
        if not plan.exact and (shortage := pool.shrink()):
            warn(f"{plan.composition.rows:,} rows were asked for, but {shortage}; more questions give more")
        return _write(pool, folder, rewriter), (plan.work / names.REFUSED).read_bytes()

    try:
        record = DATASET.build(plan, card, lambda: f"{pool.standing.finished} questions done", make_rows)
    finally:
        for player in players:
            player.close()
    for concern in statistics.concerns(record):
        warn(concern)
    return record


def _write(pool: CandidatePool, folder: Path, rewriter: Rewriter | None) -> statistics.Record:
    """Choose, split and write the rows; return the record."""
    plan, maker = pool.plan, pool.maker
    chosen, matches = _choose(pool)
    picked = _read_chosen(pool, chosen.ids)
    test, groups = _split(plan, [row for row in picked if row.id in chosen.ids])
    reworded = _in_held_back_words(pool, [row for row in picked if row.question_key in test])
    chosen_rows = configs.by_config([reworded.get(row.id, row) for row in picked])
    rewording = None
    if rewriter is not None:
        pairs = (pair for place in pool.verified.splits(plan.benchmarks) for pair in pool.questions(*place))
        checkers = checkers_of(pairs, plan.seed, chosen_rows[names.STEPS])
        chosen_rows[names.STEPS], rewording = rewriter.reword(chosen_rows[names.STEPS], checkers)
    rows, overlap = configs.without_copies({name: configs.by_split(r, test) for name, r in chosen_rows.items()})
    steps = rows[names.STEPS]
    train, test_rows = ([row for group in rows.values() for row in group[split]] for split in configs.SPLITS)
    new = skeletons.find_unseen(test_rows, train)
    questions = {row.question_key for split_rows in steps.values() for row in split_rows}
    sizes = [number for group in groups if (number := sum(key in questions for key in group))]
    moved = {key for group in groups for key in group} - test
    right = configs.right_steps([*steps[names.TRAIN], *steps[names.TEST]])
    rendering = configs.Rendering(right, new, plan.prompt_set, plan.seed)
    families = Counter(row.family for group in steps.values() for row in group if row.origin == names.REFINED)
    return {
        **{name: getattr(plan, name) for name in _OF_THE_PLAN},
        "teacher": maker.name if rewriter is None else rewriter.name,
        "simulated": maker.simulated or (rewriter is not None and rewriter.simulated),
        # Where the refined rows come from, if any was given.
        "refined": origin_of(plan.refined, pool.refined, families),
        "rewording": rewording,
        "rows_of": plan.earlier and matches and plan.earlier.describe_matches(matches, moved),
        "missing_evidence": {split: len(split_rows) for split, split_rows in rows[names.MISSING].items()},
        "missing_evidence_twins": {split: len(split_rows) for split, split_rows in rows[names.MISSING_TWINS].items()},
        # What tells the rows of the two without passages.
        "missing_evidence_probe": probes.run_probes([*train, *test_rows], [probes.MISSED])[0],
        # Test rows by config, then `names.WORDINGS`.
        "wordings": {
            name: {w: sum((row.id in new) == (w == names.UNSEEN) for row in group[names.TEST]) for w in names.WORDINGS}
            for name, group in rows.items()
        },
        # Rows by config that were removed from test, as their step is in train verbatim.
        "overlap": overlap,
        "shortfalls": chosen.shortfalls,
        # Groups of questions that may not be parted, as far as they have rows.
        "groups": {"groups": len(sizes), "largest": max(sizes, default=0)},
        "verified": [*map(source_record, pool.verified.select_builds(plan.benchmarks))],
        "files": configs.write_configs(rows, folder, rendering),
        # What of `methods.prompt_sets.PromptSet` is not the paper's.
        "prompts": plan.prompt_set.plain,
        "prompt_sha256": verifier.prompt_digest(prompt_set=plan.prompt_set),
        "missing_evidence_prompt_sha256": verifier.prompt_digest(True, prompt_set=plan.prompt_set),
        "generator_prompt_sha256": generator.prompt_digest(plan.prompt_set),
        "libraries": libraries(*LIBRARIES),
        "code_sha256": code_digest(__name__, maker.__module__),
        **statistics.chosen_rows(steps),
        **pool.record,
    }


def _choose(pool: CandidatePool) -> tuple[ChosenRows, Matches | None]:
    """Choose the rows of a set; rows of an earlier build that could not be made are refused, not replaced."""
    plan = pool.plan
    if plan.earlier is None:
        return choose(pool.candidates, plan.composition, plan.seed), None
    matches = plan.earlier.match(pool.candidates, plan.seed)
    with (plan.work / names.REFUSED).open("ab") as lines:
        lines.writelines(map(pool.line, matches.refused))
    if not matches.ids:
        raise UserError(
            f"{plan.output}: not one row of {plan.earlier.name} could be made by this teacher; all "
            f"reasons are in {plan.work / names.REFUSED}"
        )
    return ChosenRows(matches.ids), matches


def _read_chosen(pool: CandidatePool, chosen: frozenset[str]) -> list[StepRow]:
    """Read the chosen rows, and the rows of incomplete evidence of their questions, in random order."""
    questions = {(c.benchmark, c.question) for c in pool.candidates if c.id in chosen}
    incomplete = {c.id for c in pool.incomplete if (c.benchmark, c.question) in questions}
    rows: dict[str, StepRow] = {}
    for row in chain.from_iterable(chunks.read_rows(path, chosen | incomplete) for path in pool.shards):
        rows.setdefault(row.id, row)
    return [rows[id_] for id_ in sorted(rows, key=lambda id_: rank(pool.plan.seed, id_))]


def _in_held_back_words(pool: CandidatePool, rows: Sequence[StepRow]) -> dict[str, StepRow]:
    """Return half of the rows by id in held-back wordings, to test whether a verifier knows wordings alone."""
    held_back = pool.maker.held_back
    if held_back is None:
        return {}
    rows_by_question: dict[str, list[StepRow]] = defaultdict(list)
    for row in rows:
        salt = row.question_key if row.incomplete else row.id  # a row and its twin have the same words
        if row.origin != names.REFINED and rank(pool.plan.seed, f"words {salt}")[0] % 2:
            rows_by_question[row.question_key].append(row)
    reworded = {}
    for chunk in pool.chunks({}):
        if not any(question_key(chunk.benchmark, question.id) in rows_by_question for question, _ in chunk.questions):
            continue
        pairs, _ = chunk.pairs()
        positions = [n for n, (q, _) in enumerate(pairs) if question_key(q.benchmark, q.id) in rows_by_question]
        for result in held_back.make_some(pairs, positions):
            new = {_kind(row): row for row in result.rows}
            for key in {row.question_key for row in result.rows}:
                reworded.update({row.id: new[_kind(row)] for row in rows_by_question[key] if _kind(row) in new})
    return reworded


def _kind(row: StepRow) -> tuple[str, str, str, bool, int, int]:
    """Return a row's key within its question, whatever its wording; altered contexts differ in their sentences."""
    sentences = sum(len(page.sentences) for page in row.question.passages)
    return (row.feedback.error_type, row.origin, row.context, row.twin, row.step.number, sentences)


def _split(plan: StepsBuild, steps: Sequence[StepRow]) -> tuple[set[str], list[list[str]]]:
    """Return the keys of the test questions, and the groups of questions that have to stay in one split."""
    sizes = Counter(row.question_key for row in steps)
    # Changed questions come first, so that the original passages have the last word.
    questions = {row.question_key: row.question for row in sorted(steps, key=lambda row: row.context == "original")}
    documents = {key: leakage.document(question) for key, question in questions.items()}
    links = {(question_key(row.question.benchmark, row.borrowed), row.question_key) for row in steps if row.borrowed}
    groups = leakage.groups(documents, links)
    groups.sort(key=lambda group: rank(plan.seed, group[0]))
    if plan.earlier is not None:
        return {key for group in groups if plan.earlier.test_keys.issuperset(group) for key in group}, groups
    if plan.test_split is not None:
        split_questions = {key for key, question in questions.items() if question.split == plan.test_split}
        if not split_questions or len(split_questions) == len(questions):
            splits = ", ".join(sorted({question.split for question in questions.values()}))
            raise UserError(
                f"--test-split {plan.test_split}: the chosen rows are of questions of {splits} alone; "
                "name another split, or verify more of this one than its evaluation sample takes (--evaluation-size N)"
            )
        return {key for group in groups if not split_questions.isdisjoint(group) for key in group}, groups
    # Benchmark by benchmark, so that the test split has its share of each.
    test: set[str] = set()
    for benchmark in {question.benchmark for question in questions.values()}:
        alike = [group for group in groups if questions[group[0]].benchmark == benchmark]
        size = round(plan.test_share * sum(sizes[key] for group in alike for key in group))
        test.update(key for number in leakage.held_out(alike, sizes, size) for key in alike[number])
    return test, groups
