"""Refinement: where a verifier errs on steps that a generator really takes (SAFE v1, section 3.3).

The loop runs over training questions. Every step that was tried is judged twice, by the verifier
under test and by the checker; where the two labels differ is a hard case. Cases are clustered by
error pattern, taken from the clusters in turn, relabelled by a teacher, and written as rows with
origin ``refined``. What the checker can't judge teaches nothing: it is counted and left out.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from builders.steps import leakage
from builders.steps.features import check_row
from builders.steps.questions import (
    VerifiedSet,
    evaluation_questions,
    open_verified,
    prepared,
    rows,
    splits_of,
)
from builders.steps.rows import Refused, StepRow
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.engines.base import EngineError
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.methods import generator as generating
from safe_stepwise.methods import verifier as verifying
from safe_stepwise.methods.loop import (
    DEFAULT,
    MALFORMED,
    Limits,
    read_reply,
    run_question,
    tries_at_steps,
)
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import Feedback, Label, Question, Step, Trajectory, canonical_json
from safe_stepwise.store import locks
from safe_stepwise.store.code import code_digest, modules_of
from safe_stepwise.store.codec import feedback_of, question_of, question_row, step_of
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.progress import requests

REFINED, STATISTICS = "refined.jsonl", "refinement.json"
ANNOTATIONS = "annotations"
TRAIN = "train"


@dataclass(frozen=True, slots=True)
class Refinement:
    """What to mine. ``verified`` is a folder that `build_verified` or `regenerate` wrote."""

    verified: Path
    output: Path
    rows: int
    limit: int | None = None
    """Training questions at most, shared out over the benchmarks; all, if not said."""
    benchmarks: tuple[str, ...] = ()
    """All that are there, if none is named."""
    limits: Limits = DEFAULT
    version: str = "v0.1.0"
    seed: int = 0
    at_once: int = 256
    """Questions under way at a time."""


class Pattern(NamedTuple):
    """How a verifier errs: its label, the checker's, and on what kind of step of what plan."""

    verifier: str
    checker: str
    step_kind: str
    plan: str


@dataclass(frozen=True, slots=True)
class Case:
    """A step on which verifier and checker differ; ``found`` is the checker's verdict."""

    question: Question
    previous: tuple[Step, ...]
    step: Step
    found: Feedback
    pattern: Pattern


@dataclass(slots=True)
class Mined:
    """What the trajectories came to."""

    cases: list[Case] = field(default_factory=list)
    questions: Counter[str] = field(default_factory=Counter)
    """What became of them: run, failed, no plan, kept out (of the evaluation sample)."""
    tries: Counter[str] = field(default_factory=Counter)
    """What became of the loop's tries, each different one once."""
    checked: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Steps by the checker's label, the step's kind and the plan's."""

    @property
    def rate(self) -> float:
        """The mining rate: disagreements a step that the checker could judge."""
        return len(self.cases) / self.checked.total() if self.checked else 0.0


@dataclass(frozen=True, slots=True)
class RefinementStatistics:
    """The record of a run, all of it in ``refinement.json``."""

    version: str
    seed: int
    generator: str
    verifier: str
    teacher: str
    simulated: bool
    """Whether generator, verifier or teacher is no model but a script or annotations at play."""
    limits: Limits
    limit: int | None
    questions: dict[str, int]
    tries: dict[str, int]
    checked: int
    disagreements: int
    mining_rate: float
    clusters: list[dict[str, Any]]
    """Largest first. A cluster's mining rate is its share of the steps that the checker gives that
    label, of that kind and plan."""
    wanted: int
    rows: int
    refused: dict[str, int]
    verified: list[dict[str, Any]]
    prompts_sha256: dict[str, str]
    code_sha256: str


def refine(
    plan: Refinement, generator: Client, verifier: Client, teacher: Client | None
) -> RefinementStatistics:
    """Write ``OUTPUT/refined.jsonl`` and ``OUTPUT/refinement.json`` (again, if they are there).

    ``teacher`` None are the annotations: the checker's verdicts. A run that was killed resumes from
    the clients' response cache and ends in the same bytes.

    Raises ``UserError`` for what the user can mend.
    """
    verified = open_verified(plan.verified, plan.version)
    verified.of(plan.benchmarks)
    with locks.exclusive(plan.output):
        mined, made = asyncio.run(_work(plan, verified, generator, verifier, teacher))
        statistics = _statistics(plan, verified, mined, made, (generator, verifier, teacher))
        kept = [one for one in made if isinstance(one, StepRow)]
        write_atomically(plan.output / REFINED, "".join(map(line_of, kept)).encode())
        record = json.dumps(asdict(statistics), indent=2, sort_keys=True, ensure_ascii=False)
        write_atomically(plan.output / STATISTICS, f"{record}\n".encode())
    return statistics


async def _work(
    plan: Refinement,
    verified: VerifiedSet,
    generator: Client,
    verifier: Client,
    teacher: Client | None,
) -> tuple[Mined, list[StepRow | Refused]]:
    clients = [client for client in (generator, verifier, teacher) if client is not None]
    try:
        for client in clients:
            await client.engine.check()
        mined = await mine(plan, verified, generator, verifier)
        return mined, await relabelled(mined.cases, teacher, plan.rows)
    finally:
        for client in clients:
            await client.engine.close()


# ------------------------------------------------------------------------------------------ mining


async def mine(
    plan: Refinement, verified: VerifiedSet, generator: Client, verifier: Client
) -> Mined:
    """Run the loop over the training questions and compare verdicts; cases in a fixed order."""
    mined = Mined()
    questions = _questions(plan, verified, mined)
    with tqdm(total=_total(plan, verified), unit="question", desc="refinement", delay=1) as bar:
        runs = _trajectories(questions, generator, verifier, plan)
        async with aclosing(runs):
            async for checker, trajectory in runs:
                compare(checker, trajectory, mined)
                bar.update(mined.questions.total() - bar.n)
                bar.set_postfix_str(_progress(mined, [generator, verifier]), refresh=False)
        bar.update(mined.questions.total() - bar.n)
    mined.cases.sort(key=lambda case: _row(case, case.found, "").id)
    return mined


def compare(checker: Checker, trajectory: Trajectory, mined: Mined) -> None:
    """Add to ``mined`` what the checker says of each try of one trajectory."""
    mined.questions["failed" if trajectory.stop_reason == "failed" else "run"] += 1
    seen = set()
    for attempt in tries_at_steps(trajectory):
        said = attempt.feedback
        if said is None or said.error_type == MALFORMED:
            mined.tries["no verdict" if said is None else "no step"] += 1
            continue
        previous = trajectory.steps[: attempt.number - 1]
        step = read_reply(attempt.text, attempt.number)
        if (previous, step) in seen:
            continue
        seen.add((previous, step))
        found = checker.check(previous, step)
        mined.tries["checker abstains" if found is None else "checked"] += 1
        if found is None:
            continue
        pattern = Pattern(said.error_type, found.error_type, step.kind, checker.plan.kind)
        mined.checked[pattern[1:]] += 1
        if found.error_type != said.error_type:
            mined.cases.append(Case(checker.question, previous, step, found, pattern))


def _questions(plan: Refinement, verified: VerifiedSet, mined: Mined) -> Iterator[Checker]:
    """The checkers of training questions that the evaluation knows nothing like."""
    evaluated = list(evaluation_questions(verified))
    index = leakage.Index(map(leakage.document, evaluated))
    known = {(question.benchmark, question.id) for question in evaluated}
    for benchmark, pool in _pools(plan, verified).items():
        for row in rows(verified, benchmark, TRAIN, pool, plan.seed):
            whole = question_of(row, benchmark=benchmark, split=TRAIN)
            if (benchmark, row["id"]) in known or index.near(leakage.document(whole)):
                mined.questions["kept out"] += 1
                continue
            try:
                question, label = prepared(row, benchmark, TRAIN, plan.seed)
                yield _checker(question, label)
            except (PlanError, ValueError):
                mined.questions["no plan"] += 1


def _checker(question: Question, label: Label) -> Checker:
    return Checker(question, label.reasoning_path, label.knowledge_graph)


def _pools(plan: Refinement, verified: VerifiedSet) -> dict[str, int | None]:
    """Benchmarks with training questions, and how many of them to draw."""
    there = dict.fromkeys(build["benchmark"] for build in verified.of(plan.benchmarks))
    names = [name for name in there if TRAIN in splits_of(verified, name)]
    if not names:
        raise UserError(
            f"{plan.verified}: holds no {TRAIN} split, and no other may be trained on; add one "
            f"with python -m scripts.build_verified --split {TRAIN}"
        )
    if plan.limit is None:
        return dict.fromkeys(names)
    each, more = divmod(plan.limit, len(names))
    return {name: each + (number < more) for number, name in enumerate(names)}


def _total(plan: Refinement, verified: VerifiedSet) -> int:
    pools = _pools(plan, verified)
    there = {b["benchmark"]: int(b["verified"]) for b in verified.builds if b["split"] == TRAIN}
    return sum(there[n] if pool is None else min(pool, there[n]) for n, pool in pools.items())


async def _trajectories(
    questions: Iterable[Checker], generator: Client, verifier: Client, plan: Refinement
) -> AsyncGenerator[tuple[Checker, Trajectory], None]:
    """Trajectories as they end, some questions at a time, each on its own."""

    async def one(checker: Checker) -> tuple[Checker, Trajectory]:
        return checker, await run_question(checker.question, generator, verifier, plan.limits)

    ended: set[asyncio.Task[tuple[Checker, Trajectory]]] = set()
    under_way: set[asyncio.Task[tuple[Checker, Trajectory]]] = set()
    try:
        for checker in questions:
            under_way.add(asyncio.create_task(one(checker)))
            if len(under_way) >= plan.at_once:
                ended, under_way = await asyncio.wait(
                    under_way, return_when=asyncio.FIRST_COMPLETED
                )
                for task in ended:
                    yield task.result()
        for last in asyncio.as_completed(under_way):
            yield await last
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, *ended, return_exceptions=True)


def _progress(mined: Mined, clients: Sequence[Client]) -> str:
    asked = requests(client.total() for client in clients)
    return f"cases {len(mined.cases)} ({mined.rate:.1%}); {asked}"


# ---------------------------------------------------------------------------------------- teaching


async def relabelled(
    cases: Sequence[Case], teacher: Client | None, wanted: int
) -> list[StepRow | Refused]:
    """Up to ``wanted`` rows, from the patterns in turn, and the cases that gave none."""
    made: list[StepRow | Refused] = []
    left = iter(in_turn(cases))
    missing = wanted
    while missing and (batch := list(islice(left, missing))):
        # A teacher's request fails, is cached and retried on its own, so a batch may be large.
        made += await asyncio.gather(*(_relabel(case, teacher) for case in batch))
        missing = wanted - sum(isinstance(one, StepRow) for one in made)
    return made


def in_turn(cases: Iterable[Case]) -> list[Case]:
    """One case of each pattern, then another of each, and so on: rare ones come soon enough."""
    clusters: dict[Pattern, list[Case]] = {}
    for case in cases:
        clusters.setdefault(case.pattern, []).append(case)
    rounds = zip_longest(*(clusters[pattern] for pattern in sorted(clusters)))
    return [case for one in rounds for case in one if case is not None]


async def _relabel(case: Case, teacher: Client | None) -> StepRow | Refused:
    """The row of a case: with the checker's verdict, or a teacher's that agrees with it."""
    try:
        feedback = case.found if teacher is None else await _verdict(case, teacher)
    except EngineError as error:
        return _refused(case, f"the teacher gave no reply: {error}")
    except FeedbackError as error:
        return _refused(case, f"the teacher's reply cannot be read: {error}")
    if feedback.error_type != case.found.error_type:
        return _refused(case, f"teacher and checker differ: {feedback.error_type}")
    row = _row(case, feedback, teacher_name(teacher))
    try:
        check_row(row)
        line_of(row).encode()
    except ValueError as error:
        return _refused(case, f"not a valid row: {error}")
    return row


async def _verdict(case: Case, teacher: Client) -> Feedback:
    q = case.question
    request = verifying.verifier_request(q.question, q.passages, case.previous, case.step)
    asked = replace(request, scene=Scene(q, previous=case.previous, step=case.step))
    return parse_feedback((await teacher.ask(asked)).text)


def _row(case: Case, feedback: Feedback, teacher: str) -> StepRow:
    return StepRow(case.question, case.previous, case.step, feedback, "refined", teacher)


def _refused(case: Case, reason: str) -> Refused:
    q, label = case.question, case.found.error_type
    return Refused(q.benchmark, q.id, label, case.step.number, reason, case.step.text)


def teacher_name(teacher: Client | None) -> str:
    """What lands in the ``teacher`` column."""
    if teacher is None:
        return ANNOTATIONS
    return f"{teacher.engine.name} prompts {verifying.prompt_digest()[:12]}"


# ----------------------------------------------------------------------------------------- results


def _statistics(
    plan: Refinement,
    verified: VerifiedSet,
    mined: Mined,
    made: Sequence[StepRow | Refused],
    clients: tuple[Client, Client, Client | None],
) -> RefinementStatistics:
    generator, verifier, teacher = clients
    kept = [one for one in made if isinstance(one, StepRow)]
    refused = Counter(r.reason.partition(":")[0] for r in made if isinstance(r, Refused))
    return RefinementStatistics(
        version=plan.version,
        seed=plan.seed,
        generator=generator.engine.name,
        verifier=verifier.engine.name,
        teacher=teacher_name(teacher),
        simulated=any(client.engine.simulated for client in clients if client is not None),
        limits=plan.limits,
        limit=plan.limit,
        questions=dict(sorted(mined.questions.items())),
        tries=dict(sorted(mined.tries.items())),
        checked=mined.checked.total(),
        disagreements=len(mined.cases),
        mining_rate=mined.rate,
        clusters=_clusters(mined, kept),
        wanted=plan.rows,
        rows=len(kept),
        refused=dict(sorted(refused.items())),
        verified=[
            {name: build[name] for name in ("benchmark", "split", "digest")}
            for build in verified.of(plan.benchmarks)
            if build["split"] == TRAIN
        ],
        prompts_sha256={
            "generator": generating.prompt_digest(),
            "verifier": verifying.prompt_digest(),
        },
        code_sha256=code_digest(__name__, *modules_of(c.engine for c in clients if c)),
    )


def _clusters(mined: Mined, kept: Sequence[StepRow]) -> list[dict[str, Any]]:
    sizes = Counter(case.pattern for case in mined.cases)
    pattern_of = {_row(case, case.found, "").id: case.pattern for case in mined.cases}
    taken = Counter(pattern_of[row.id] for row in kept)
    return [
        {
            **pattern._asdict(),
            "disagreements": size,
            "checked": mined.checked[pattern[1:]],
            "mining_rate": size / mined.checked[pattern[1:]],
            "rows": taken[pattern],
        }
        for pattern, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    ]


def line_of(row: StepRow) -> str:
    """A row as a line of ``refined.jsonl``: one JSON object, its keys as in `read_refined`."""
    content = {
        "benchmark": row.question.benchmark,
        "split": row.question.split,
        "question": question_row(row.question),
        "previous": [asdict(step) for step in row.previous],
        "step": asdict(row.step),
        "feedback": asdict(row.feedback),
        "origin": row.origin,
        "teacher": row.teacher,
    }
    return canonical_json(content) + "\n"


def read_refined(path: Path) -> list[StepRow]:
    """The rows of a ``refined.jsonl``, one JSON object a line, without blank lines::

        {"benchmark": "musique", "split": "train", "question": {the columns of config musique},
         "previous": [{"number": 1, "text": "According to ...", "kind": "Attribution"}],
         "step": {"number": 2, "text": "...", "kind": "Attribution"},
         "feedback": {"error_type": "Correct", "diagnosis": "...", "guidance": "...",
                      "query": null},
         "origin": "refined", "teacher": "annotations"}

    Raises ``UserError`` for a file that can't be read, with the number of the line.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            break
        try:
            row = _row_of(json.loads(line))
            check_row(row)
        except (ValueError, TypeError, KeyError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise UserError(
                f"{path}, line {number}: is no refined row ({reason}); make the file anew with "
                "python -m scripts.refine_verifier_steps"
            ) from None
        found.append(row)
    return found


def origin_of(file: Path | None, rows: int) -> dict[str, Any] | None:
    """Name, digest and rows of a file from refinement, and whether engines only played models.

    The last is known from the record beside the file; None if there is none.
    """
    if file is None:
        return None
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    try:
        record = json.loads((file.parent / STATISTICS).read_bytes())
        simulated = bool(record["simulated"])
    except (OSError, ValueError, KeyError, TypeError):
        simulated = None
    return {"file": file.name, "sha256": digest, "rows": rows, "simulated": simulated}


def _row_of(content: Mapping[str, Any]) -> StepRow:
    if content["origin"] != "refined":
        raise ValueError(f"origin {content['origin']!r}")
    return StepRow(
        question_of(content["question"], benchmark=content["benchmark"], split=content["split"]),
        tuple(map(step_of, content["previous"])),
        step_of(content["step"]),
        feedback_of(content["feedback"]),
        "refined",
        content["teacher"],
    )
