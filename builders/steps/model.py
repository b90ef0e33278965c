"""Make the rows of the verifier set with a model (SAFE v1, sections 3.1 and 3.3, appendix A.9).

The model first writes a plan and an ideal trajectory for each question, instructed by the question's planner, then one
erroneous step per request. The graph-based checker has to pass every ideal step, and to find
exactly the requested error in an erroneous one. Diagnosis and guidance are also the model's, and are checked alike. If
those of a sound step fail, its row is refused; the trajectory still serves to inject errors. Each refusal is recorded
as `Refused`, with its reason.

``unverifiable`` questions have no plan to check by. The model gets the same requests for them, and its replies are
accepted after the checks that need no plan. They serve the ablation on what verification is worth (SAFE v2, Table 5),
in which nothing else may differ.

SAFE v1 (appendix A.9, Figures 15-17) has a planner for each benchmark, which names the kinds of plan in it. Ours has a
planner for each structure, whatever the benchmark: a chain of facts, a comparison of two values, or sets that are
compared or intersect. The structure is that of the verified path's plan, so the checker and the model agree on it.
The paper's planners are an option (``planners``); the checker judges what either of them leads to.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal, get_args

from builders.steps import replies
from builders.steps.making import AnnotationsMaker, check_trajectory, check_without_plan, without_evidence
from builders.steps.remarks import (
    REVEALS,
    check_remarks,
    check_remarks_on_sound_step,
    check_verdict,
    reveals_later_result,
)
from builders.steps.rows import Refused, ReplyStep, StepRefused, StepResult, StepRow, TrajectoryError
from builders.verified.teachers import Teachers
from builders.verified.teachers.llm import LLMTeachers
from safe_stepwise import prompts
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import Plan, PlanError
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.engines.base import Message, Request
from safe_stepwise.engines.client import render_usage
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.comparisons import is_comparison
from safe_stepwise.language.text import normal_name
from safe_stepwise.methods.prompt_sets import PromptsName
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import Feedback, Label, PlannerChoice, Question, Step, StepKind, identity
from safe_stepwise.steps import format_step
from safe_stepwise.store import event_loop, names
from safe_stepwise.store.grouping import grouped
from safe_stepwise.taxonomy import CORRECT, ENTRIES, MISSING_EVIDENCE, check_order


@dataclass(frozen=True, slots=True)
class Target:
    """An error to request: its type, the position and the kind of its step."""

    error_type: str
    position: int
    kind: StepKind


def targets(question: str, possible: Iterable[Target], seed: int, number: int) -> list[Target]:
    """Choose at most ``number`` errors to request, by question id and seed: first types, then a position of each."""
    places = grouped(possible, lambda target: target.error_type)

    def draw_number(error_type: str) -> int:
        return choice_for(str(seed), question, "error", error_type)

    return [places[t][draw_number(t) % len(places[t])] for t in sorted(places, key=draw_number)[:number]]


def applicable(checker: Checker, steps: Sequence[Step]) -> Iterator[Target]:
    """Yield every error that can replace a step of a sound trajectory."""
    facts, last = checker.plan.fact_places, len(checker.plan.items) - 1
    for position, step in enumerate(steps, 1):
        before = checker.established(steps[: position - 1])
        new = checker.established(steps[:position]).keys() - before.keys()
        is_answered = last in before
        all_read = checker.plan.kind == "sequential" and all(fact in before for fact in facts)
        if is_answered or all_read:
            yield Target("Overthinking", position, "Attribution")
        if is_answered:
            yield Target("Overthinking", position, "Logical")
        if step.kind == "Final Answer":
            yield Target("Wrong Conclusion", position, step.kind)
        elif step.kind == "Logical" and not is_answered:
            yield Target("Inefficiency", position, step.kind)
            yield Target("Logical Fallacy", position, step.kind)
        elif step.kind == "Attribution" and not is_answered and not all_read:
            fitting = {"Off-topic", "Inefficiency"}
            if before.keys() & set(facts):
                fitting.add("Redundancy")
            if new:
                fitting |= {"Contradictory", "Unsupported", "Information Miss"}
            if any(new & set(checker.plan.items[fact].uses) for fact in facts):
                fitting.add("Premature Attribution")
            for name in check_order(step.kind):
                if name in fitting:
                    yield Target(name, position, step.kind)


def imaginable(steps: Sequence[Step]) -> Iterator[Target]:
    """Yield every error that a step of its kind can have, if the plan is not known."""
    for position, step in enumerate(steps, 1):
        for name in check_order(step.kind):
            if position > 1 or name not in ("Redundancy", "Overthinking"):
                yield Target(name, position, step.kind)


def follows_plan(checker: Checker, steps: Sequence[Step]) -> bool:
    """Whether each fact of the plan is read by the step of the same number."""
    read_at = checker.established(steps)
    return all(read_at.get(fact) == fact + 1 for fact in checker.plan.fact_places)


TRAJECTORY = prompts.load("steps/trajectory")
INJECT = prompts.load("steps/inject")
Planner = Literal["chain", "comparison", "set"]
PLANNERS = {name: prompts.load(f"steps/plan_{name}") for name in get_args(Planner)}
BENCHMARK_PLANNERS = {n: prompts.load(f"steps/plan_{n}") for n in ("2wikimultihopqa", "hotpotqa", "musique")}
_PROMPTS = (TRAJECTORY, *PLANNERS.values(), INJECT)
PROMPTS_DIGESTS: Mapping[PlannerChoice, str] = {
    "structure": prompts.digest(*_PROMPTS),
    "benchmark": prompts.digest(*_PROMPTS, *BENCHMARK_PLANNERS.values()),
}

ERRORS = 4
"""Erroneous steps requested per question; many are refused, and the paper has 1.3 per question in the end."""

_MAX_TEXT_CHARS = 1000


@dataclass(frozen=True)
class ModelMaker(replies.ModelAsker):
    """Makes steps with a model, by the client of ``teachers``; ``errors`` is the most of a question. Picklable."""

    seed: int = 0
    errors: int = ERRORS
    unverifiable: bool = False
    planners: PlannerChoice = "structure"

    held_back: ClassVar[None] = None
    """None, as no wording of a model can be held back for a test."""
    is_cpu_bound = False

    @property
    def name(self) -> str:
        return self.teachers.name_with(PROMPTS_DIGESTS[self.planners])

    @property
    def identity(self) -> str:
        digest = PROMPTS_DIGESTS[self.planners]
        return identity([self.teachers.engine.identity, digest, self.seed, self.errors, self.unverifiable])

    def progress(self) -> str:
        """Render the trajectories and erroneous steps received, requests and tokens so far."""
        accounts = self.client.accounts
        replies_by_role = {role: accounts[role].answered + accounts[role].hits for role in accounts}
        return (
            f"trajectories {replies_by_role.get('trajectory', 0)} errors {replies_by_role.get('inject', 0)}; "
            f"{render_usage(self.client.total())}"
        )

    def make_all(self, questions: Sequence[tuple[Question, Label]]) -> list[StepResult]:
        """Make the rows of each question, in order; raise ``UserError`` if the engine does not answer."""
        return event_loop.wait_for(event_loop.gather_all(self._make(*pair) for pair in questions))

    async def _make(self, question: Question, label: Label) -> StepResult:
        checker = None
        if not self.unverifiable:
            try:
                checker = Checker(question, label.reasoning_path, label.knowledge_graph)
            except PlanError as error:
                return StepResult((), (Refused.of_question(question, f"no plan: {error}"),))
        try:
            return await self._rows(question, label, checker)
        except Exception as error:
            error.add_note(f"while making steps of question {question.id!r}")
            raise

    async def _rows(self, question: Question, label: Label, checker: Checker | None) -> StepResult:
        """Make the rows of a question; without a checker they are not checked."""
        request = trajectory_request(question, label, checker.plan if checker else None, self.planners)
        quoted = prompts.data_of(request)
        replied: tuple[ReplyStep, ...] = ()
        try:
            replied = await self.ask_model(request, replies.read_trajectory, quoted)
            steps = replies.as_trajectory(replied)
            if checker is None:
                check_without_plan(question, steps)
            else:
                check_trajectory(checker, steps)
        except StepRefused as error:
            return StepResult((), (Refused.of_question(question, str(error), _excerpt(error.text)),))
        except TrajectoryError as error:
            text = _excerpt(" ".join(reply.step for reply in replied))
            return StepResult((), (Refused.of_question(question, str(error), text),))
        results: list[StepRow | Refused] = [
            self._ideal(question, steps, position, remarks, quoted, checker)
            for position, remarks in enumerate(replied, 1)
        ]
        possible = applicable(checker, steps) if checker else imaginable(steps)
        chosen = targets(question.id, possible, self.seed, self.errors)
        results += await asyncio.gather(*(self._injected(question, steps, target, checker) for target in chosen))
        if checker is not None and follows_plan(checker, steps):
            results += without_evidence(checker, steps, self.seed, self.name)
        elif checker is not None:
            reason = "the trajectory has another order than the plan"
            results.append(Refused.of_question(question, reason, error_type=MISSING_EVIDENCE))
        rows = tuple(result for result in results if isinstance(result, StepRow))
        return StepResult(rows, tuple(result for result in results if isinstance(result, Refused)))

    def _ideal(
        self,
        question: Question,
        steps: Sequence[Step],
        position: int,
        remarks: ReplyStep,
        quoted: str,
        checker: Checker | None,
    ) -> StepRow | Refused:
        """Return the row of a sound step with the model's remarks, or the reason to refuse it."""
        accepted = steps[:position]
        try:
            check_remarks_on_sound_step(question, steps, position, remarks, quoted)
            if checker and reveals_later_result(checker, accepted, remarks.guidance, is_sound=True):
                raise StepRefused(REVEALS)
        except StepRefused as error:
            text = _excerpt(f"{remarks.diagnosis} {remarks.guidance}")
            return Refused.of_question(question, str(error), text, position=position)
        feedback = Feedback(CORRECT, remarks.diagnosis, remarks.guidance)
        return StepRow(question, tuple(accepted[:-1]), accepted[-1], feedback, names.IDEAL, self.name)

    async def _injected(
        self, question: Question, steps: Sequence[Step], target: Target, checker: Checker | None
    ) -> StepRow | Refused:
        """Request a step with an error; return its row, or the reason to refuse it."""
        error_type, position, text = target.error_type, target.position, ""
        ideal, previous = steps[position - 1], tuple(steps[: position - 1])
        request = injection_request(question, steps, target)
        try:
            remarks = await self.ask_model(request, replies.read_step_reply, prompts.data_of(request))
            text = remarks.step
            step = replies.as_step(remarks.step, position)
            if (step.text, step.kind) == (ideal.text, ideal.kind):
                raise StepRefused("the step is the ideal one")
            if checker is None:
                check_remarks(remarks, error_type, len(question.passages), position)
            else:
                check_verdict(checker, previous, step, error_type, remarks, len(question.passages))
        except StepRefused as error:
            return Refused.of_question(question, str(error), _excerpt(error.text or text), error_type, position)
        feedback = Feedback(error_type, remarks.diagnosis, remarks.guidance)
        return StepRow(question, previous, step, feedback, names.INJECTED, self.name)


def resolve_maker(
    teachers: Teachers,
    seed: int = 0,
    *,
    unverifiable: bool = False,
    prompts: PromptsName = "paper",
    planners: PlannerChoice = "structure",
) -> AnnotationsMaker | ModelMaker:
    """Return a teacher's maker of steps, a brief one for compact ``prompts``; raise ``UserError`` if there is none."""
    model = teachers if isinstance(teachers, LLMTeachers) else None
    spec = model.spec if model else "annotations"
    symbolic = spec.partition(":")[0] == "symbolic"
    if unverifiable and (symbolic or model is None):
        raise UserError(
            f"--teacher {spec}: an unverifiable question has no path to write steps of; name a "
            "model, as openai:MODEL@http://HOST:8000/v1"
        )
    if model is None and planners != "structure":
        raise UserError("--planners benchmark: it instructs a model; leave it out, or name a model as --teacher")
    if model is None:
        return AnnotationsMaker(seed, "brief" if prompts == "compact" else "seen")
    if symbolic:
        raise UserError(f"--teacher {spec!r}: it writes no steps; use annotations, which needs no model either")
    return ModelMaker(model, seed, unverifiable=unverifiable, planners=planners)


def _excerpt(text: str) -> str:
    return replies.safe_line(text)[:_MAX_TEXT_CHARS]


def planner_of(question: Question, plan: Plan | None) -> Planner:
    """Choose the planner of a question; without a plan the row alone decides."""
    if plan is None:
        return "comparison" if is_comparison(question) else "chain"
    if plan.kind == "set comparison" or _meets(plan, question):
        return "set"
    return "chain" if plan.kind == "sequential" else "comparison"


def _meets(plan: Plan, question: Question) -> bool:
    """Whether several facts join the answer to entities of their own; questions that refer to "#1" are chains."""
    facts = [set(map(normal_name, plan.items[index].ends)) for index in plan.fact_places]
    answers = set(map(normal_name, question.accepted))
    if plan.kind != "sequential" or any("#" in hop.question for hop in question.decomposition) or len(facts) < 2:
        return False
    distinct_ends = [ends - answers for ends in facts]
    is_disjoint = all(not a & b for a, b in combinations(distinct_ends, 2))
    return is_disjoint and all(distinct_ends) and all(ends & answers for ends in facts)


def trajectory_request(
    question: Question, label: Label, plan: Plan | None, planners: PlannerChoice = "structure"
) -> Request:
    """Return the request for a plan and its steps; the ``plan`` of the path, or the benchmark, decides who instructs.

    A benchmark that the paper has no planner for, and a question of MuSiQue without a decomposition, go by structure.
    """
    system, user = TRAJECTORY.messages(
        passages=question.gold,
        question=question.question,
        answer=question.answer,
        # An incomplete path also has triples that no passage states.
        path=[triple for triple in label.reasoning_path if triple.passage is not None],
    )
    planner = PLANNERS[planner_of(question, plan)]
    if planners == "benchmark" and (question.benchmark != "musique" or question.decomposition):
        planner = BENCHMARK_PLANNERS.get(question.benchmark, planner)
    instructions = Message("system", f"{system.content}\n\n{planner.system}")
    sub_questions = planner.render_user(decomposition=question.decomposition)
    material = Message("user", f"{user.content}\n\n{sub_questions}".rstrip())
    return TRAJECTORY.request((instructions, material), Scene(question))


def injection_request(question: Question, steps: Sequence[Step], target: Target) -> Request:
    """Return the request for one erroneous step; it shows all passages, as distractors can mislead."""
    before = check_order(target.kind)
    messages = INJECT.messages(
        passages=question.passages,
        question=question.question,
        steps=[format_step(step) for step in steps],
        error_type=target.error_type,
        definition=ENTRIES[target.error_type].definition,
        earlier=before[: before.index(target.error_type)],
        target=format_step(steps[target.position - 1]),
        position=target.position,
        kind=target.kind,
    )
    return INJECT.request(messages, Scene(question))
