"""The teacher of the verifier set that asks a model (SAFE v1, sections 3.1 and 3.3, appendix A.9).

Of each question it asks for a plan and an ideal trajectory, in the words of the question's planner
(`planners`), then for one erroneous step at a time.
Nothing is taken on its word: the graph-based checker has to pass every ideal step, and to find in
an erroneous one exactly the error that was asked for. Diagnosis and guidance are the model's in
either, and checked alike; where those of a sound step fail, its row is refused, and the trajectory
still serves to put errors into. What is not kept is `Refused`, with its reason.

Of ``unverifiable`` questions there is no plan to check by: there the model is asked the same in the
same form and, but for what needs no plan, taken at its word. That is for the ablation that asks
what verification is worth (SAFE v2, Table 5), which no other difference may confound.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from builders.steps import replies
from builders.steps.making import AnnotationsMaker, checked, trusted, without_evidence
from builders.steps.planners import PLANNERS, planner_of
from builders.steps.rows import Refused, StepResult, StepRow, TrajectoryError
from builders.verified.teachers import Teachers
from builders.verified.teachers.llm import LLMTeachers
from safe_stepwise import prompts
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import Plan, PlanError
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.engines.base import Message, Request
from safe_stepwise.engines.client import render_usage
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import PromptsName
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import Feedback, Label, Question, Step, StepKind, identity
from safe_stepwise.steps import format_step
from safe_stepwise.store.event_loop import gather_all, wait_for
from safe_stepwise.store.names import IDEAL, INJECTED
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES, MISSING_EVIDENCE, check_order


@dataclass(frozen=True, slots=True)
class Target:
    """An error to ask for, where, and in a step of which kind."""

    error_type: str
    position: int
    kind: StepKind


def targets(question: str, possible: Iterable[Target], seed: int, number: int) -> list[Target]:
    """Errors of different types to ask for, at most ``number``, drawn by question id and seed.

    A type is drawn first, then one of the places where it can apply, so that over many questions
    all ten types come up alike.
    """
    places: dict[str, list[Target]] = {}
    for target in possible:
        places.setdefault(target.error_type, []).append(target)

    def draw_number(error_type: str) -> int:
        return choice_for(str(seed), question, "error", error_type)

    return [places[t][draw_number(t) % len(places[t])] for t in sorted(places, key=draw_number)[:number]]


def applicable(checker: Checker, steps: Sequence[Step]) -> Iterator[Target]:
    """Every error that can stand in the place of a step of a sound trajectory."""
    facts, last = checker.plan.facts, len(checker.plan.items) - 1
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
    """Every error that a step of its kind can have, where what came before is not known."""
    for position, step in enumerate(steps, 1):
        for name in check_order(step.kind):
            if position > 1 or name not in ("Redundancy", "Overthinking"):
                yield Target(name, position, step.kind)


def follows_plan(checker: Checker, steps: Sequence[Step]) -> bool:
    """Whether each fact of the plan is read by the step of its own number."""
    read_at = checker.established(steps)
    return all(read_at.get(fact) == fact + 1 for fact in checker.plan.facts)


TRAJECTORY = prompts.load("steps/trajectory")
INJECT = prompts.load("steps/inject")
PROMPTS_DIGEST = prompts.digest(TRAJECTORY, *PLANNERS.values(), INJECT)

ERRORS = 4
"""Erroneous steps asked for a question; the paper kept 1.3 of one, and many are refused."""

_LONGEST_TEXT = 1000
_DEFINITIONS = {entry.name: entry.definition for entry in ERROR_TYPES}


@dataclass(frozen=True)
class ModelMaker(replies.ModelAsker):
    """Makes steps with a model; all of a process share one client.

    Its client is that of ``teachers``, should questions be verified in this process, too;
    ``errors`` bounds the erroneous steps of a question. Picklable.
    """

    seed: int = 0
    errors: int = ERRORS
    unverifiable: bool = False

    held_back: ClassVar[None] = None
    """A model's words are its own: none of them can be held back."""
    is_cpu_bound = False
    """Work stays in one process, whose client asks each thing once and keeps the engine busy."""

    @property
    def name(self) -> str:
        """Lands in the ``teacher`` column: the model and the prompts, no address."""
        allowance = self.teachers.allowance.examples_suffix
        return f"{self.teachers.about.name} prompts {PROMPTS_DIGEST[:12]}{allowance}"

    @property
    def identity(self) -> str:
        """Everything that can change a row, the code aside."""
        return identity([self.teachers.about.identity, PROMPTS_DIGEST, self.seed, self.errors, self.unverifiable])

    def progress(self) -> str:
        """Trajectories and erroneous steps that were answered, requests and tokens so far."""
        accounts = self.client.accounts
        replies_by_role = {role: accounts[role].answered + accounts[role].hits for role in accounts}
        return (
            f"trajectories {replies_by_role.get('trajectory', 0)} errors {replies_by_role.get('inject', 0)}; "
            f"{render_usage(self.client.total())}"
        )

    def make_all(self, questions: Sequence[tuple[Question, Label]]) -> list[StepResult]:
        """What comes of each question, in order. Raises ``UserError`` where nothing answers."""
        return wait_for(gather_all(self._make(*pair) for pair in questions))

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
        """What comes of one question; unchecked if no checker is."""
        request = trajectory_request(question, label, checker.plan if checker else None)
        quoted = prompts.data_of(request)
        replied: tuple[replies.ReplyStep, ...] = ()
        try:
            replied = await self.ask_model(request, replies.read_trajectory, quoted)
            steps = replies.as_trajectory(replied)
            if checker is None:
                trusted(question, steps)
            else:
                checked(checker, steps)
        except replies.StepRefused as error:
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
        remarks: replies.ReplyStep,
        quoted: str,
        checker: Checker | None,
    ) -> StepRow | Refused:
        """The row of a sound step, with the model's remarks, for which no other's stand in."""
        accepted = steps[:position]
        try:
            replies.check_sound(question, steps, position, remarks, quoted)
            if checker and replies.gives_away(checker, accepted, remarks.guidance, is_sound=True):
                raise replies.StepRefused(replies.GIVES_AWAY)
        except replies.StepRefused as error:
            text = _excerpt(f"{remarks.diagnosis} {remarks.guidance}")
            return Refused.of_question(question, str(error), text, position=position)
        feedback = Feedback(CORRECT, remarks.diagnosis, remarks.guidance)
        return StepRow(question, tuple(accepted[:-1]), accepted[-1], feedback, IDEAL, self.name)

    async def _injected(
        self, question: Question, steps: Sequence[Step], target: Target, checker: Checker | None
    ) -> StepRow | Refused:
        """The row of a step with the error that was asked for."""
        error_type, position, text = target.error_type, target.position, ""
        ideal, previous = steps[position - 1], tuple(steps[: position - 1])
        request = injection_request(question, steps, target)
        try:
            remarks = await self.ask_model(request, replies.read_injection, prompts.data_of(request))
            text = remarks.step
            step = replies.as_step(remarks.step, position)
            if (step.text, step.kind) == (ideal.text, ideal.kind):
                raise replies.StepRefused("the step is the ideal one")
            if checker is not None:
                replies.check_label(checker, previous, step, error_type)
            replies.check_remarks(remarks, error_type, len(question.passages), position)
            if checker and replies.gives_away(checker, (*previous, step), remarks.guidance, is_sound=False):
                raise replies.StepRefused(replies.GIVES_AWAY)
        except replies.StepRefused as error:
            return Refused.of_question(question, str(error), _excerpt(error.text or text), error_type, position)
        feedback = Feedback(error_type, remarks.diagnosis, remarks.guidance)
        return StepRow(question, previous, step, feedback, INJECTED, self.name)


def resolve_maker(
    teachers: Teachers, seed: int = 0, *, unverifiable: bool = False, prompts: PromptsName = "paper"
) -> AnnotationsMaker | ModelMaker:
    """The maker of steps that goes with teachers of benchmarks, brief for compact ``prompts``.

    Raises ``UserError`` if there is none: ``unverifiable`` questions want a model, which is taken at its word, and a
    symbolic one writes no steps.
    """
    model = teachers if isinstance(teachers, LLMTeachers) else None
    spec = model.spec if model else "annotations"
    symbolic = spec.partition(":")[0] == "symbolic"
    if unverifiable and (symbolic or model is None):
        raise UserError(
            f"--teacher {spec}: an unverifiable question has no path to write steps of; name a "
            "model, as openai:MODEL@http://HOST:8000/v1"
        )
    if model is None:
        return AnnotationsMaker(seed, "brief" if prompts == "compact" else "seen")
    if symbolic:
        raise UserError(f"--teacher {spec!r}: it writes no steps; use annotations, which needs no model either")
    return ModelMaker(model, seed, unverifiable=unverifiable)


def _excerpt(text: str) -> str:
    return replies.one_line(text)[:_LONGEST_TEXT]


def trajectory_request(question: Question, label: Label, plan: Plan | None) -> Request:
    """What is asked for a plan and its steps: gold passages in the numbering that steps cite.

    ``plan`` is that of the question's path, if it has one; it says which planner is to be asked.
    """
    system, user = TRAJECTORY.messages(
        passages=question.gold,
        question=question.question,
        answer=question.answer,
        # Of a path that breaks off, only what a passage states can be read there.
        path=[triple for triple in label.reasoning_path if triple.passage is not None],
    )
    planner = PLANNERS[planner_of(question, plan)]
    instructions = Message("system", f"{system.content}\n\n{planner.system}")
    return TRAJECTORY.request((instructions, user), Scene(question))


def injection_request(question: Question, steps: Sequence[Step], target: Target) -> Request:
    """What is asked for one erroneous step; all passages, as distractors are what misleads."""
    before = check_order(target.kind)
    messages = INJECT.messages(
        passages=question.passages,
        question=question.question,
        steps=[format_step(step) for step in steps],
        error_type=target.error_type,
        definition=_DEFINITIONS[target.error_type],
        earlier=before[: before.index(target.error_type)],
        target=format_step(steps[target.position - 1]),
        position=target.position,
        kind=target.kind,
    )
    return INJECT.request(messages, Scene(question))
