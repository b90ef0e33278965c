"""Steps that a verifier accepted and that are unfaithful to the graph: hard cases found elsewhere.

``scripts.measure_faithfulness`` lists them (``accepted_unfaithful.jsonl``). That a step is at fault
is its rule's word; what is wrong with it the checker says here, as of any refined row, and where it
finds nothing wrong there is no row. Only training questions will do: evaluate the train split, by
the same seed, as steps cite passages by their numbers.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.steps.mining import Mined, Refinement, hold_against
from builders.steps.questions import VerifiedSet, near_evaluation, question_key, rows, splits_of
from builders.verified.questions import VerifiedQuestion
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.errors import UserError
from safe_stepwise.records import Step
from safe_stepwise.store import boundary, progress
from safe_stepwise.store.codec import passages_digest
from safe_stepwise.store.names import TRAIN
from safe_stepwise.store.parsing import parse_json
from safe_stepwise.taxonomy import CORRECT

FOUND_CORRECT = "checker calls them Correct"


@dataclass(frozen=True, slots=True)
class AcceptedStep:
    """One line; ``passages_sha256`` as in `passages_digest`."""

    benchmark: str
    question_id: str
    step: Step
    previous: tuple[Step, ...]
    fault: str
    passages_sha256: str
    players: Mapping[str, str]
    simulated: bool


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

    @property
    def generator(self) -> str:
        """Who wrote them."""
        return self._playing("generator")

    @property
    def verifier(self) -> str:
        """Who accepted them; where none had that role, who wrote them."""
        return self._playing("verifier") or self.generator

    def _playing(self, role: str) -> str:
        names = (step.players.get(role, "") for step in self.steps)
        return ", ".join(dict.fromkeys(filter(None, names)))


def read_accepted(file: Path) -> AcceptedSteps:
    """The steps of a file; raises ``UserError`` for one that can't be read, with the line."""
    mend = "make the file anew with safe-stepwise measure_faithfulness"
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}); {mend}") from None
    found = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(boundary.read(AcceptedStep, _step_of(parse_json(line)), "the step"))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise UserError(f"{file}, line {number}: is no accepted step ({reason}); {mend}") from None
    if not found:
        raise UserError(f"{file}: holds no step; the verifier accepted nothing that is unfaithful")
    return AcceptedSteps(file.name, hashlib.sha256(content).hexdigest(), tuple(found))


def _step_of(content: Mapping[str, Any]) -> AcceptedStep:
    return AcceptedStep(
        content["benchmark"],
        content["question_id"],
        Step(content["number"], content["text"], content["kind"]),
        tuple(Step(**step) for step in content["previous"]),
        content["fault"],
        content["passages_sha256"],
        content["players"],
        content["simulated"],
    )


def mine_accepted(plan: Refinement, verified: VerifiedSet, given: AcceptedSteps) -> Mined:
    """What the checker says of each step; cases in a fixed order.

    Raises ``UserError`` where no step is of a training question.
    """
    mined, by_question = Mined(), dict[str, list[AcceptedStep]]()
    for step in given.steps:
        by_question.setdefault(question_key(step.benchmark, step.question_id), []).append(step)
    near = near_evaluation(verified)
    with progress.bar(total=len(by_question), unit="question", desc="refinement", delay=1) as bar:
        for benchmark in _benchmarks(plan, verified, given):
            ids = [s.question_id for s in given.steps if s.benchmark == benchmark]
            for row in rows(verified, benchmark, TRAIN, None, plan.seed, among=ids):
                steps = by_question.pop(question_key(benchmark, row.question.id), [])
                bar.update()
                if near(row.question):
                    mined.questions["kept out"] += 1
                else:
                    _compare(plan, row, steps, mined)
    if not mined.questions:
        raise UserError(
            f"{given.name}: no step is of a training question of {plan.verified}; evaluate those "
            "with safe-stepwise evaluate_stepwise --split train"
        )
    if by_question:
        mined.questions["not among the training questions"] = len(by_question)
    mined.cases.sort(key=lambda case: case.id)
    return mined


def _benchmarks(plan: Refinement, verified: VerifiedSet, given: AcceptedSteps) -> list[str]:
    there = {build["benchmark"] for build in verified.of(plan.benchmarks)}
    named = dict.fromkeys(step.benchmark for step in given.steps)
    return [name for name in named if name in there and TRAIN in splits_of(verified, name)]


def _compare(plan: Refinement, row: VerifiedQuestion, steps: Sequence[AcceptedStep], mined: Mined) -> None:
    try:
        question, label = row.shown(plan.seed)
        checker = Checker(question, label.reasoning_path, label.knowledge_graph)
    except (PlanError, ValueError):
        mined.questions["no plan"] += 1
        return
    mined.questions["run"] += 1
    seen = set()
    for one in steps:
        if one.passages_sha256 != passages_digest(question.passages):
            mined.tries["of other passages (another --seed)"] += 1
        elif (one.previous, one.step) not in seen:
            seen.add((one.previous, one.step))
            found = hold_against(checker, one.previous, one.step, CORRECT, mined, plan.seed)
            if found is not None and found.error_type == CORRECT:
                mined.tries[FOUND_CORRECT] += 1
