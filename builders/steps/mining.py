"""Where a verifier errs: on steps of the loop over training questions, or steps that it accepted elsewhere.

Every step is judged twice, by the verifier under test and by the checker; where the two labels differ is a hard case.
What the checker can't judge teaches nothing: it is counted only. A case whose label only the checker's reading speaks
for is doubted, and becomes no row. Each is of one family (`weaknesses`), and the families take turns.

Accepted steps are those that ``safe-stepwise measure_faithfulness`` lists as unfaithful to the graph
(``accepted_unfaithful.jsonl``). That a step is at fault is its rule's word; what is wrong with it the
checker says here, and where it finds nothing wrong there is no row. Only training questions will do:
evaluate the train split, by the same seed, as steps cite passages by their numbers.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from builders.benchmarks import BENCHMARKS
from builders.steps.contexts import Source
from builders.steps.questions import VerifiedSet
from builders.steps.rows import StepRow, question_key
from builders.steps.weaknesses import family_of
from builders.steps.witness import bears_out
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.commands.values import Count, Known, Version
from safe_stepwise.engines.client import Client, requests
from safe_stepwise.errors import UserError
from safe_stepwise.language.text import words_of
from safe_stepwise.methods.limits import DEFAULT, Limits
from safe_stepwise.methods.loop import MALFORMED, read_reply, run_question, tries_at_steps
from safe_stepwise.records import FAILED, Feedback, Question, Step, StepKind, Trajectory
from safe_stepwise.store import boundary, progress
from safe_stepwise.store.codec import passages_digest
from safe_stepwise.store.event_loop import for_each
from safe_stepwise.store.names import REFINED, TRAIN
from safe_stepwise.store.parsing import parse_json
from safe_stepwise.taxonomy import CORRECT

IDEAL_STEP = "the step is an ideal one"
NO_WITNESS = "no second rule finds"
FOUND_CORRECT = "checker calls them Correct"


@dataclass(frozen=True, slots=True)
class Refinement:
    """What to mine. ``verified`` is a folder that `build_verified` or `regenerate` wrote."""

    verified: Path
    output: Path
    rows: Count
    limit: Count | None = None
    """Training questions at most, shared out over the benchmarks; all, if not said."""
    benchmarks: tuple[Annotated[str, Known(BENCHMARKS)], ...] = ()
    """All that are there, if none is named."""
    limits: Limits = DEFAULT
    version: Version = "v0.1.0"
    seed: int = 0
    at_once: int = 256
    """Questions under way at a time."""
    accepted: Path | None = None
    """Steps that a verifier accepted somewhere else (`AcceptedSteps`): no loop runs."""


class Pattern(NamedTuple):
    """How a verifier errs: its label, the checker's, and on what kind of step of what plan."""

    verifier: str
    checker: str
    step_kind: str
    plan: str


@dataclass(frozen=True, slots=True)
class Case:
    """A step on which verifier and checker differ; ``verdict`` is the checker's."""

    question: Question
    previous: tuple[Step, ...]
    step: Step
    verdict: Feedback
    pattern: Pattern
    family: str
    doubt: str = ""
    """Why its label is not to be trusted (see `doubted`), "" if it is."""

    @property
    def id(self) -> str:
        """Of the row that the checker's verdict would make of it."""
        return self.row(self.verdict, "").id

    def row(self, feedback: Feedback, teacher: str) -> StepRow:
        """The row with somebody's verdict."""
        return StepRow(self.question, self.previous, self.step, feedback, REFINED, teacher, family=self.family)


@dataclass(slots=True)
class Mined:
    """What the steps came to; ``seed`` is that of the ideal steps."""

    seed: int = 0
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

    def add(self, checker: Checker, previous: tuple[Step, ...], step: Step, label: str) -> Feedback | None:
        """Count a step to which a verifier gave a label; returns the checker's verdict."""
        verdict = checker.check(previous, step)
        self.tries["checker abstains" if verdict is None else "checked"] += 1
        if verdict is None:
            return None
        pattern = Pattern(label, verdict.error_type, step.kind, checker.plan.kind)
        self.checked[pattern[1:]] += 1
        if verdict.error_type != label:
            question = checker.question
            family = family_of(label, verdict.error_type, step, checker.plan, question)
            doubt = doubted(checker, previous, step, verdict.error_type, self.seed)
            self.cases.append(Case(question, previous, step, verdict, pattern, family, doubt))
        return verdict

    def add_trajectory(self, checker: Checker, trajectory: Trajectory) -> None:
        """Count what the checker says of each try of one trajectory."""
        self.questions[FAILED if trajectory.stop_reason == FAILED else "run"] += 1
        seen = set()
        for attempt in tries_at_steps(trajectory):
            feedback = attempt.feedback
            if feedback is None or feedback.error_type == MALFORMED:
                self.tries["no verdict" if feedback is None else "no step"] += 1
                continue
            previous = trajectory.steps[: attempt.number - 1]
            step = read_reply(attempt.text, attempt.number)
            if (previous, step) not in seen:
                seen.add((previous, step))
                self.add(checker, previous, step, feedback.error_type)


def doubted(checker: Checker, previous: Sequence[Step], step: Step, label: str, seed: int = 0) -> str:
    """Why the checker's label of a generator's step is not to be trusted; "" if nothing is known.

    A step that is one of the ideal ones teaches nothing of generators. Of any other the checker's
    reading is one witness only, and a second one has to agree with it (`witness`).
    """
    words = words_of(step.text)
    if any(words == words_of(ideal.text) for ideal in write_trajectory(checker, seed)):
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
    return [case for turn in rounds for case in turn if case is not None]


async def mine(plan: Refinement, verified: VerifiedSet, generator: Client, verifier: Client) -> Mined:
    """Run the loop over the training questions and compare verdicts; cases in a fixed order.

    Raises ``UserError`` where there are no training questions.
    """
    mined, pools = Mined(plan.seed), _pools(plan, verified)
    if not pools:
        raise UserError(
            f"{plan.verified}: holds no {TRAIN} split, and no other may be trained on; add one "
            f"with safe-stepwise build_verified --split {TRAIN}"
        )
    sizes = {b["benchmark"]: int(b["verified"]) for b in verified.builds if b["split"] == TRAIN}
    total = sum(sizes[name] if pool is None else min(pool, sizes[name]) for name, pool in pools.items())
    with progress.bar(total=total, unit="question", desc="refinement", delay=1) as bar:

        async def run(checker: Checker) -> None:
            mined.add_trajectory(checker, await run_question(checker.question, generator, verifier, plan.limits))
            bar.update(mined.questions.total() - bar.n)
            asked = requests(client.total() for client in (generator, verifier))
            bar.set_postfix_str(f"cases {len(mined.cases)} ({mined.rate:.1%}); {asked}", refresh=False)

        await for_each(_checkers(plan, verified, mined), run, plan.at_once)
        bar.update(mined.questions.total() - bar.n)
    mined.cases.sort(key=lambda case: case.id)
    return mined


def _checkers(
    plan: Refinement, verified: VerifiedSet, mined: Mined, among: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Checker]:
    """The checkers of training questions that the evaluation knows nothing like; counts the others.

    ``among`` are ids by benchmark, of all training questions if not said.
    """
    near = verified.near_evaluation()
    for benchmark, pool in _pools(plan, verified).items():
        ids = None if among is None else among.get(benchmark, ())
        for row in verified.questions(benchmark, TRAIN, pool, plan.seed, among=ids):
            if near(row.question):
                mined.questions["kept out"] += 1
                continue
            try:
                yield Source.of(*row.shown(plan.seed)).checker
            except (PlanError, ValueError):
                mined.questions["no plan"] += 1


def _pools(plan: Refinement, verified: VerifiedSet) -> dict[str, int | None]:
    """Benchmarks with training questions, and how many of them to draw."""
    benchmarks = [benchmark for benchmark, split in verified.splits(plan.benchmarks) if split == TRAIN]
    if plan.limit is None or not benchmarks:
        return dict.fromkeys(benchmarks)
    each, more = divmod(plan.limit, len(benchmarks))
    return {name: each + (number < more) for number, name in enumerate(benchmarks)}


@dataclass(frozen=True, slots=True)
class AcceptedStep:
    """One line; ``passages_sha256`` as in `passages_digest`."""

    benchmark: str
    question_id: str
    number: int
    text: str
    kind: StepKind
    previous: tuple[Step, ...]
    fault: str
    passages_sha256: str
    players: Mapping[str, str]
    simulated: bool

    @property
    def step(self) -> Step:
        """The step itself."""
        return Step(self.number, self.text, self.kind)


@dataclass(frozen=True, slots=True)
class AcceptedSteps:
    """A file of them."""

    name: str
    sha256: str
    steps: tuple[AcceptedStep, ...]

    @property
    def record(self) -> dict[str, Any]:
        """What it is, for the record."""
        return {"file": self.name, "sha256": self.sha256, "steps": len(self.steps)}

    @property
    def simulated(self) -> bool:
        """Whether no model made a step, or accepted it."""
        return any(step.simulated for step in self.steps)

    def player(self, role: str) -> str:
        """Who had a role: the generator wrote them, the verifier accepted them."""
        named = (step.players.get(role, "") for step in self.steps)
        return ", ".join(dict.fromkeys(filter(None, named)))


def read_accepted(file: Path) -> AcceptedSteps:
    """The steps of a file; raises ``UserError`` for one that can't be read, with the line."""
    mend = "make the file anew with safe-stepwise measure_faithfulness"
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}); {mend}") from None
    steps = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            steps.append(boundary.read(AcceptedStep, parse_json(line), "the step"))
        except ValueError as error:
            raise UserError(f"{file}, line {number}: is no accepted step ({error!s:.200}); {mend}") from None
    if not steps:
        raise UserError(f"{file}: holds no step; the verifier accepted nothing that is unfaithful")
    return AcceptedSteps(file.name, hashlib.sha256(content).hexdigest(), tuple(steps))


def mine_accepted(plan: Refinement, verified: VerifiedSet, accepted: AcceptedSteps) -> Mined:
    """What the checker says of each step; cases in a fixed order.

    Raises ``UserError`` where no step is of a training question.
    """
    mined, by_question, among = Mined(plan.seed), dict[str, list[AcceptedStep]](), dict[str, list[str]]()
    for step in accepted.steps:
        by_question.setdefault(question_key(step.benchmark, step.question_id), []).append(step)
        among.setdefault(step.benchmark, []).append(step.question_id)
    with progress.bar(total=len(by_question), unit="question", desc="refinement", delay=1) as bar:
        for checker in _checkers(replace(plan, limit=None), verified, mined, among):
            mined.questions["run"] += 1
            _compare(checker, by_question[question_key(checker.question.benchmark, checker.question.id)], mined)
            bar.update(mined.questions.total() - bar.n)
    if not mined.questions:
        raise UserError(
            f"{accepted.name}: no step is of a training question of {plan.verified}; evaluate those "
            "with safe-stepwise evaluate_stepwise --split train"
        )
    if strangers := len(by_question) - mined.questions.total():
        mined.questions["not among the training questions"] = strangers
    mined.cases.sort(key=lambda case: case.id)
    return mined


def _compare(checker: Checker, steps: Sequence[AcceptedStep], mined: Mined) -> None:
    seen = set()
    digest = passages_digest(checker.question.passages)
    for accepted in steps:
        if accepted.passages_sha256 != digest:
            mined.tries["of other passages (another --seed)"] += 1
        elif (accepted.previous, accepted.step) not in seen:
            seen.add((accepted.previous, accepted.step))
            verdict = mined.add(checker, accepted.previous, accepted.step, CORRECT)
            if verdict is not None and verdict.error_type == CORRECT:
                mined.tries[FOUND_CORRECT] += 1
