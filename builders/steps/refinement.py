"""Mines the steps of a real generator on which a verifier errs (SAFE v1, section 3.3).

Steps come from the loop over training questions. The verifier under test and the checker each label a step; if their
labels differ, it is a *case*. A step that the checker can't label is only counted. A case whose label no second
witness confirms (`witness`) is doubted, and gives no row. Each case shows one *family* of weaknesses, and the families
take turns. A teacher labels the cases anew, and they are written as rows with origin ``refined`` (`refined`).
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from builders.steps import witness
from builders.steps.contexts import StepSource
from builders.steps.questions import VerifiedSet, open_verified
from builders.steps.refined import REFINED, STATISTICS, line_of, write_refined
from builders.steps.rows import Refused, StepRow, check_row
from builders.steps.weaknesses import by_family, family_of
from safe_stepwise import prompts
from safe_stepwise.checking import writing
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.commands.values import Count, Version
from safe_stepwise.engines.base import EngineError
from safe_stepwise.engines.client import Client, check, render_requests
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.language.text import normal_words
from safe_stepwise.methods import generator as generating
from safe_stepwise.methods import verifier as verifying
from safe_stepwise.methods.learnt_prompts import adopt_learnt_prompts, dropped_category
from safe_stepwise.methods.limits import DEFAULT, Limits
from safe_stepwise.methods.loop import MALFORMED, read_answer, read_reply, run_question, tries_at_steps
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import FAILED, Feedback, Step, Trajectory
from safe_stepwise.store import event_loop, files, names, progress, tables
from safe_stepwise.store.code import code_digest, modules_of
from safe_stepwise.store.grouping import grouped
from safe_stepwise.store.tables import text_table

IDEAL_STEP = "the step is an ideal one"
NO_WITNESS = "no second rule finds"
ANNOTATIONS = "annotations"


@dataclass(frozen=True, slots=True)
class Refinement:
    """The options of a refinement; ``verified`` is a folder that `build_verified` or `regenerate` wrote."""

    verified: Path
    output: Path
    max_rows: Count
    limit: Count | None = None
    """Training questions at most, divided among the benchmarks; all if None."""
    benchmarks: tuple[str, ...] = ()
    """Benchmarks to use; all of the folder if empty."""
    limits: Limits = DEFAULT
    version: Version = "v0.1.0"
    seed: int = 0
    at_once: int = 256
    """Questions under way at a time."""


@dataclass(frozen=True, slots=True)
class HardCase:
    """A step on which verifier and checker differ, as a row with the checker's verdict."""

    row: StepRow
    doubt: str = ""
    """The reason to doubt its label (see `find_doubt`), or ""."""


@dataclass(slots=True)
class MiningResult:
    """The cases and counts of a run; ``seed`` is that of the ideal steps."""

    seed: int = 0
    cases: list[HardCase] = field(default_factory=list)
    questions: Counter[str] = field(default_factory=Counter)
    """Questions by outcome: run, failed, no plan, kept out (by the evaluation sample)."""
    tries: Counter[str] = field(default_factory=Counter)
    """Distinct tries of the loop, by outcome."""

    @property
    def rate(self) -> float:
        """The mining rate: disagreements a step that the checker could judge."""
        return len(self.cases) / max(1, self.tries["checked"])

    def add(self, checker: Checker, previous: tuple[Step, ...], step: Step, label: str) -> None:
        """Count a step with the verifier's label, and add a case if the checker's label differs."""
        verdict = checker.check(previous, step)
        self.tries["checker abstains" if verdict is None else "checked"] += 1
        if verdict is not None and verdict.error_type != label:
            family = family_of(label, verdict.error_type, step, checker.plan, checker.question)
            row = StepRow(checker.question, previous, step, verdict, names.REFINED, ANNOTATIONS, family=family)
            doubt = find_doubt(checker, previous, step, verdict.error_type, self.seed)
            self.cases.append(HardCase(row, doubt))

    def add_trajectory(self, checker: Checker, trajectory: Trajectory) -> None:
        """Count the tries of one trajectory, and add its cases."""
        self.questions[FAILED if trajectory.stop_reason == FAILED else "run"] += 1
        steps = set()
        for attempt in tries_at_steps(trajectory):
            feedback = attempt.feedback
            if feedback is None or feedback.error_type == MALFORMED:
                self.tries["no verdict" if feedback is None else "no step"] += 1
                continue
            previous = trajectory.steps[: attempt.number - 1]
            step = read_answer(attempt.text, attempt.number) or read_reply(attempt.text, attempt.number)
            if (previous, step) not in steps:
                steps.add((previous, step))
                self.add(checker, previous, step, feedback.error_type)


def find_doubt(checker: Checker, previous: Sequence[Step], step: Step, label: str, seed: int = 0) -> str:
    """Return why a label is doubted, or "": the step is an ideal one, or no second witness (`witness`) agrees."""
    words = normal_words(step.text)
    if any(words == normal_words(ideal.text) for ideal in writing.write_trajectory(checker, seed)):
        return IDEAL_STEP
    if not witness.bears_out(label, checker.plan, checker.question, previous, step):
        return f"{NO_WITNESS} {label}"
    return ""


def in_turn(cases: Iterable[HardCase]) -> list[HardCase]:
    """Order cases so that the families take turns, rare ones early."""
    clusters = grouped(cases, lambda case: case.row.family)
    rounds = zip_longest(*(clusters[name] for name in sorted(clusters)))
    return [case for turn in rounds for case in turn if case is not None]


async def mine_cases(options: Refinement, verified: VerifiedSet, generator: Client, verifier: Client) -> MiningResult:
    """Run the loop over training questions, and compare verdicts; raise ``UserError`` without such questions."""
    mined, pools = MiningResult(options.seed), _pools(options, verified)
    if not pools:
        raise UserError(
            f"{options.verified}: holds no {names.TRAIN} split, and no other may be trained on; add one "
            f"with safe-stepwise build_verified --split {names.TRAIN}"
        )
    sizes = {b["benchmark"]: int(b["verified"]) for b in verified.builds if b["split"] == names.TRAIN}
    total = sum(sizes[name] if pool is None else min(pool, sizes[name]) for name, pool in pools.items())
    with progress.bar(total=total, unit="question", desc="refinement", delay=1) as bar:

        async def run(checker: Checker) -> None:
            mined.add_trajectory(checker, await run_question(checker.question, generator, verifier, options.limits))
            bar.update(mined.questions.total() - bar.n)
            request_counts = render_requests(client.total() for client in (generator, verifier))
            bar.set_postfix_str(f"cases {len(mined.cases)} ({mined.rate:.1%}); {request_counts}", refresh=False)

        await event_loop.for_each(_checkers(options, verified, mined), run, options.at_once)
        bar.update(mined.questions.total() - bar.n)
    mined.cases.sort(key=lambda case: case.row.id)
    return mined


def _checkers(options: Refinement, verified: VerifiedSet, mined: MiningResult) -> Iterator[Checker]:
    """Yield checkers of training questions that are unlike all evaluation questions."""
    near = verified.near_evaluation()
    for benchmark, pool in _pools(options, verified).items():
        for row in verified.questions(benchmark, names.TRAIN, pool, options.seed):
            if near(row.question):
                mined.questions["kept out"] += 1
                continue
            try:
                yield StepSource.build(*row.sample(options.seed)).checker
            except (PlanError, ValueError):
                mined.questions["no plan"] += 1


def _pools(options: Refinement, verified: VerifiedSet) -> dict[str, int | None]:
    """Return the number of questions to draw from each benchmark with training questions; None means all."""
    benchmarks = [benchmark for benchmark, split in verified.splits(options.benchmarks) if split == names.TRAIN]
    if options.limit is None or not benchmarks:
        return dict.fromkeys(benchmarks)
    per_benchmark, remainder = divmod(options.limit, len(benchmarks))
    return {name: per_benchmark + (number < remainder) for number, name in enumerate(benchmarks)}


Record = dict[str, Any]
"""The record of a run, as ``refinement.json`` has it."""


def refine(options: Refinement, generator: Client, verifier: Client, teacher: Client | None) -> Record:
    """Write ``OUTPUT/refined.jsonl`` and ``OUTPUT/refinement.json``; raise ``UserError`` for what the user can mend.

    ``teacher`` None are the checker's verdicts. A run that was killed resumes from the clients' response cache, and
    ends in the same bytes.
    """
    verified = open_verified(options.verified, options.version)
    verified.select_builds(options.benchmarks)
    limits = adopt_learnt_prompts(options.limits, [generator.engine, verifier.engine])
    dropped = dropped_category([verifier.engine], limits.drop_category)
    options = replace(options, limits=replace(limits, drop_category=dropped))
    clients = [client for client in (generator, verifier, teacher) if client is not None]

    async def work() -> tuple[MiningResult, list[StepRow | Refused]]:
        try:
            for client in clients:
                await check(client.engine)
            mined = await mine_cases(options, verified, generator, verifier)
            return mined, await _relabel_all(mined.cases, teacher, options.max_rows)
        finally:
            for client in clients:
                await client.engine.close()

    with files.lock_folder(options.output, owned=(REFINED, STATISTICS)):
        mined, results = asyncio.run(work())
        rows = [row for row in results if isinstance(row, StepRow)]
        refused = Counter(r.reason.partition(":")[0] for r in results if isinstance(r, Refused))
        players = {
            "generator": generator.name,
            "verifier": verifier.name,
            "teacher": _name_of(teacher),
            "simulated": any(c.engine.simulated for c in clients),
            "code_sha256": code_digest(__name__, *modules_of(client.engine for client in clients)),
        }
        counts = {**_counts(mined, rows), "refused": dict(sorted(refused.items()))}
        record = {**_record(options, verified), **players, **counts}
        if mined.questions[FAILED]:
            errors = (client.last_error for client in clients if client.last_error)
            record["last_failure"] = next(errors, "no reason given")
        write_refined(options.output, rows, record)
    return record


def _name_of(teacher: Client | None) -> str:
    """Return the value of the ``teacher`` column."""
    return ANNOTATIONS if teacher is None else f"{teacher.name} prompts {verifying.prompt_digest()[:12]}"


def summary(options: Refinement, record: Record) -> str:
    """Render the counts of a refinement and its files, for the terminal."""
    families = [family for family in record["families"] if family["disagreements"]]
    families.sort(key=lambda family: (-family["disagreements"], family["name"]))
    numbers = ("name", "disagreements", "doubted", "rows")
    text = tables.fill(
        Path(__file__).parent,
        "refinement.jinja",
        record=record,
        families=text_table([("weakness", "differ", "doubted", "rows"), *([f[n] for n in numbers] for f in families)]),
        counts=[*record["questions"].items(), *record["tries"].items()],
        rows_file=options.output / REFINED,
        record_file=options.output / STATISTICS,
    )
    return text.rstrip()


async def _relabel_all(cases: Sequence[HardCase], teacher: Client | None, max_rows: int) -> list[StepRow | Refused]:
    """Return up to ``max_rows`` rows, from the families in turn, and the cases that gave none."""
    # What is doubted takes no family's turn, and no teacher is asked: it could not help.
    results: list[StepRow | Refused] = [Refused.of_row(case.row, case.doubt) for case in cases if case.doubt]
    pending = iter(in_turn(case for case in cases if not case.doubt))
    missing = max_rows
    while missing and (batch := list(islice(pending, missing))):
        # A teacher's request fails, is cached and retried on its own, so a batch may be large.
        results += await asyncio.gather(*(_relabel(case.row, teacher) for case in batch))
        missing = max_rows - sum(isinstance(row, StepRow) for row in results)
    return results


async def _relabel(row: StepRow, teacher: Client | None) -> StepRow | Refused:
    """Label the row of a case by the checker's verdict, or by a teacher's that agrees with it."""
    try:
        feedback = row.feedback if teacher is None else await _verdict(row, teacher)
    except EngineError as error:
        return Refused.of_row(row, f"the teacher gave no reply: {error}")
    except FeedbackError as error:
        return Refused.of_row(row, f"the teacher's reply cannot be read: {error}")
    if feedback.error_type != row.feedback.error_type:
        return Refused.of_row(row, f"teacher and checker differ: {feedback.error_type}")
    relabelled = replace(row, feedback=feedback, teacher=_name_of(teacher))
    try:
        check_row(relabelled)
        line_of(relabelled).encode()
    except ValueError as error:
        return Refused.of_row(row, f"not a valid row: {error}")
    return relabelled


async def _verdict(row: StepRow, teacher: Client) -> Feedback:
    request = verifying.verifier_request(row.question.question, row.question.passages, row.previous, row.step)
    scene = Scene(row.question, previous=row.previous, step=row.step)
    async with teacher.reading(replace(request, scene=scene, in_full=True)) as reply:
        return parse_feedback(reply.text, data=prompts.data_of(request))


def _record(options: Refinement, verified: VerifiedSet) -> Record:
    prompt_set, dropped = options.limits.prompt_set, options.limits.drop_category
    return {
        "version": options.version,
        "seed": options.seed,
        "limits": options.limits,
        "limit": options.limit,
        "wanted": options.max_rows,
        "last_failure": "",
        "verified": [
            {name: build[name] for name in ("benchmark", "split", "digest")}
            for build in verified.select_builds(options.benchmarks)
            if build["split"] == names.TRAIN
        ],
        "prompts_sha256": {
            "generator": generating.prompt_digest(prompt_set),
            "verifier": verifying.prompt_digest(dropped=dropped, prompt_set=prompt_set),
        },
    }


def _counts(mined: MiningResult, rows: Sequence[StepRow]) -> Record:
    """Count the questions, the steps, and the cases by weakness."""
    families = {
        "disagreements": Counter(case.row.family for case in mined.cases),
        "doubted": Counter(case.row.family for case in mined.cases if case.doubt),
        "rows": Counter(row.family for row in rows),
    }
    return {
        "questions": dict(sorted(mined.questions.items())),
        "tries": dict(sorted(mined.tries.items())),
        "checked": mined.tries["checked"],
        "disagreements": len(mined.cases),
        "mining_rate": mined.rate,
        "families": by_family(families),
        "rows": len(rows),
    }
