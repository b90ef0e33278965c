"""Where a verifier errs: the loop runs over training questions, and the checker judges its steps.

Every step that was tried is judged twice, by the verifier under test and by the checker; where the
two labels differ is a hard case. What the checker can't judge teaches nothing: it is counted only.
A case whose label only the checker's reading speaks for is doubted, and becomes no row. Each is of
one family (`weaknesses`), and the families take turns.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from builders.steps.questions import VerifiedSet, near_evaluation, rows, splits_of
from builders.steps.rows import StepRow
from builders.steps.weaknesses import family_of
from builders.steps.witness import bears_out
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.engines.client import Client, requests
from safe_stepwise.errors import UserError
from safe_stepwise.language.text import words_of
from safe_stepwise.methods.limits import DEFAULT, Limits
from safe_stepwise.methods.loop import MALFORMED, read_reply, run_question, tries_at_steps
from safe_stepwise.records import FAILED, Feedback, Question, Step, Trajectory
from safe_stepwise.store import progress
from safe_stepwise.store.event_loop import for_each
from safe_stepwise.store.names import TRAIN

IDEAL_STEP = "the step is an ideal one"
NO_WITNESS = "no second rule finds"


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
    accepted: Path | None = None
    """Steps that a verifier accepted somewhere else (`accepted`): no loop runs."""


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
    last_failure: str
    """Why the last of those that failed did, "" where none did."""
    tries: dict[str, int]
    checked: int
    disagreements: int
    mining_rate: float
    families: list[dict[str, Any]]
    """Every weakness that was looked for: its ``name`` and ``meaning``, the ``disagreements`` that
    are of it, how many of them are ``doubted``, and the ``rows`` that were drawn."""
    clusters: list[dict[str, Any]]
    """Largest first. A cluster's mining rate is its share of the steps that the checker gives that
    label, of that kind and plan; ``doubted`` are those whose label no second rule bears out, or
    whose step is an ideal one."""
    wanted: int
    rows: int
    refused: dict[str, int]
    verified: list[dict[str, Any]]
    prompts_sha256: dict[str, str]
    code_sha256: str
    accepted: dict[str, Any] | None = None
    """The file of accepted steps that was mined in a loop's place: name, digest, steps."""


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
    family: str
    doubt: str = ""
    """Why its label is not to be trusted (see `doubted`), "" if it is."""

    @property
    def id(self) -> str:
        """Of the row that the checker's verdict would make of it."""
        return self.row(self.found, "").id

    def row(self, feedback: Feedback, teacher: str) -> StepRow:
        """The row with somebody's verdict."""
        made = StepRow(self.question, self.previous, self.step, feedback, "refined", teacher)
        return replace(made, family=self.family)


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


async def mine(plan: Refinement, verified: VerifiedSet, generator: Client, verifier: Client) -> Mined:
    """Run the loop over the training questions and compare verdicts; cases in a fixed order."""
    mined = Mined()
    total = _total(plan, verified)
    with progress.bar(total=total, unit="question", desc="refinement", delay=1) as bar:

        async def one(checker: Checker) -> None:
            trajectory = await run_question(checker.question, generator, verifier, plan.limits)
            compare(checker, trajectory, mined, plan.seed)
            bar.update(mined.questions.total() - bar.n)
            bar.set_postfix_str(_progress(mined, [generator, verifier]), refresh=False)

        await for_each(_questions(plan, verified, mined), one, plan.at_once)
        bar.update(mined.questions.total() - bar.n)
    mined.cases.sort(key=lambda case: case.id)
    return mined


def compare(checker: Checker, trajectory: Trajectory, mined: Mined, seed: int = 0) -> None:
    """Add to ``mined`` what the checker says of each try of one trajectory.

    ``seed`` is that of the ideal steps.
    """
    mined.questions[FAILED if trajectory.stop_reason == FAILED else "run"] += 1
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
        hold_against(checker, previous, step, said.error_type, mined, seed)


def hold_against(
    checker: Checker, previous: tuple[Step, ...], step: Step, label: str, mined: Mined, seed: int = 0
) -> Feedback | None:
    """Add to ``mined`` a step to which a verifier gave a label; returns the checker's verdict."""
    found = checker.check(previous, step)
    mined.tries["checker abstains" if found is None else "checked"] += 1
    if found is None:
        return None
    pattern = Pattern(label, found.error_type, step.kind, checker.plan.kind)
    mined.checked[pattern[1:]] += 1
    if found.error_type != label:
        question = checker.question
        family = family_of(label, found.error_type, step, checker.plan, question)
        doubt = doubted(checker, previous, step, found.error_type, seed)
        mined.cases.append(Case(question, previous, step, found, pattern, family, doubt))
    return found


def doubted(checker: Checker, previous: Sequence[Step], step: Step, label: str, seed: int = 0) -> str:
    """Why the checker's label of a generator's step is not to be trusted; "" if nothing is known.

    A step that is one of the ideal ones teaches nothing of generators. Of any other the checker's
    reading is one witness only, and a second one has to agree with it (`witness`).
    """
    said = words_of(step.text)
    if any(said == words_of(ideal.text) for ideal in write_trajectory(checker, seed)):
        return IDEAL_STEP
    if not bears_out(label, checker.plan, checker.question, previous, step):
        return f"{NO_WITNESS} {label}"
    return ""


def in_turn(cases: Iterable[Case]) -> list[Case]:
    """One case of each family, then another of each, and so on: rare ones come soon enough.

    Within a family, likewise one of each pattern.
    """
    return _turns(_turns(cases, lambda case: case.pattern), lambda case: case.family)


def _turns(cases: Iterable[Case], key: Callable[[Case], Any]) -> list[Case]:
    clusters: dict[Any, list[Case]] = {}
    for case in cases:
        clusters.setdefault(key(case), []).append(case)
    rounds = zip_longest(*(clusters[name] for name in sorted(clusters)))
    return [case for one in rounds for case in one if case is not None]


def _questions(plan: Refinement, verified: VerifiedSet, mined: Mined) -> Iterator[Checker]:
    """The checkers of training questions that the evaluation knows nothing like."""
    near = near_evaluation(verified)
    for benchmark, pool in _pools(plan, verified).items():
        for row in rows(verified, benchmark, TRAIN, pool, plan.seed):
            if near(row.question):
                mined.questions["kept out"] += 1
                continue
            try:
                question, label = row.shown(plan.seed)
                yield Checker(question, label.reasoning_path, label.knowledge_graph)
            except (PlanError, ValueError):
                mined.questions["no plan"] += 1


def _pools(plan: Refinement, verified: VerifiedSet) -> dict[str, int | None]:
    """Benchmarks with training questions, and how many of them to draw."""
    there = dict.fromkeys(build["benchmark"] for build in verified.of(plan.benchmarks))
    names = [name for name in there if TRAIN in splits_of(verified, name)]
    if not names:
        raise UserError(
            f"{plan.verified}: holds no {TRAIN} split, and no other may be trained on; add one "
            f"with safe-stepwise build_verified --split {TRAIN}"
        )
    if plan.limit is None:
        return dict.fromkeys(names)
    each, more = divmod(plan.limit, len(names))
    return {name: each + (number < more) for number, name in enumerate(names)}


def _total(plan: Refinement, verified: VerifiedSet) -> int:
    pools = _pools(plan, verified)
    there = {b["benchmark"]: int(b["verified"]) for b in verified.builds if b["split"] == TRAIN}
    return sum(there[n] if pool is None else min(pool, there[n]) for n, pool in pools.items())


def _progress(mined: Mined, clients: Sequence[Client]) -> str:
    asked = requests(client.total() for client in clients)
    return f"cases {len(mined.cases)} ({mined.rate:.1%}); {asked}"
