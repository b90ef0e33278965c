"""SG-FSM with SAFE's verifier as its guard: a finding or an answer is used only if a verdict accepts it (no paper).

The guard ``g2`` judges a finding as an Attribution step, the guard ``g4`` the Terminator's answer as a Final Answer
step. `GUARDED` says where a rejection leads: search again, ask another sub-question, stop here, or have everything
checked (q6). The next request shows what was wrong.

After a rejection a sub-question is searched again at most ``max_retries`` times, or replaced by at most as many other
sub-questions. Then SAFE's option ``on_exhausted`` decides: ``accept`` accepts the finding as it is, ``drop`` asks
another sub-question (the seventh withdraws the question). An unreadable verdict never accepts anything, not even then.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import Client
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.methods import learnt_prompts, sg_fsm, verifier
from safe_stepwise.methods.limits import Limits, OnExhausted, Search
from safe_stepwise.methods.loop import UNREAD, VERIFIER, VERIFY
from safe_stepwise.methods.machine import Machine, MachineMethod, Move, State
from safe_stepwise.methods.prompt_sets import EvidenceChoice, PromptSet, PromptsName
from safe_stepwise.methods.prompting import GENERATOR, MachineOptions
from safe_stepwise.methods.reading import Reading
from safe_stepwise.methods.scene import SubAnswer
from safe_stepwise.methods.searching import note_vain_search, retrieve_new
from safe_stepwise.methods.sg_fsm import (
    DECOMPOSE,
    DONE,
    END,
    REVISED_IN,
    SEARCH,
    SUMMARIZE,
    TERMINATE,
    WITHDRAWN,
    Memory,
)
from safe_stepwise.records import ANSWERED, Attempt, Feedback, Step, VerdictOrder
from safe_stepwise.steps import ANSWER_MARKER, StepError, format_step
from safe_stepwise.taxonomy import CORRECT, MISSING_EVIDENCE, TAXONOMY, Category

FINDING, ANSWER = "g2", "g4"
"""The guards after q2 and q4."""
_STATES = {"search": SEARCH, "decompose": DECOMPOSE, "stop": DONE, "summarize": SUMMARIZE}
After = Callable[[Memory, Reading], Move[Memory]]
GUARDED: Mapping[str, str] = {entry.name: _STATES[entry.next_state] for entry in TAXONOMY if entry.next_state}
"""The next state after a rejected finding, by the label of the verdict."""
_UNREAD = Feedback(
    UNREAD,
    "No verdict on this find could be read, so that it does not count as verified.",
    "Find it once more, and say it as plainly as possible.",
)


@dataclass(frozen=True, slots=True)
class GuardOptions(MachineOptions):
    """SG-FSM's options with SAFE's (`limits.Limits`); with a ``search``, evidence may be missing and is searched."""

    max_retries: int = 3
    on_exhausted: OnExhausted = "accept"
    drop_category: Category | None = None
    """The error category that the verifier's prompt lacks; it and the next three are as in `limits.Limits`."""
    prompts: PromptsName | None = None
    verdict_order: VerdictOrder | None = None
    verifier_evidence: EvidenceChoice | None = None
    search: Search | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super(GuardOptions, self).__post_init__()
        _ = self.prompt_set  # raises as it does

    @property
    def prompt_set(self) -> PromptSet:
        names = ("max_retries", "on_exhausted", "drop_category", "prompts", "verdict_order", "verifier_evidence")
        return Limits(**{name: getattr(self, name) for name in names}).prompt_set


def step_of(sub_answer: SubAnswer, number: int) -> Step:
    """Word a finding as a step that the checker can read.

    >>> step_of(SubAnswer("Where was Ors Velt born?", 2, "Oru"), 1).text
    'According to Passage 2, the answer to “Where was Ors Velt born?” is Oru.'
    """
    question = sub_answer.question.replace("“", '"').replace("”", '"')
    text = f"According to Passage {sub_answer.passage}, the answer to “{question}” is {sub_answer.answer}."
    return Step(number, " ".join(text.split()), "Attribution")


def sub_answers(attempts: Sequence[Attempt]) -> tuple[SubAnswer, ...]:
    """Return the sub-answers that a machine gave and no verdict rejected, in order; other methods give none."""
    answers: list[SubAnswer] = []
    subquestion = question = ""
    for attempt in attempts:
        reply = strict_fields(attempt)
        if attempt.state == FINDING:
            if _is_rejected(attempt, answers):
                answers.pop()
        elif not reply:
            continue
        elif attempt.state in (DECOMPOSE, REVISED_IN[DECOMPOSE]):
            question = str(reply.get("question", question))
            subquestion = question if reply["simple"] else str(reply["subquestion"])
        elif attempt.state in (SEARCH, REVISED_IN[SEARCH]):
            support = tuple(reply.get("sentences", ())), tuple(reply.get("evidence", ()))
            sub_question = subquestion or str(reply["question"])
            answers.append(SubAnswer(sub_question, reply["passage"], reply["answer"], *support))
        elif attempt.state in (TERMINATE, REVISED_IN[TERMINATE]):
            question = str(reply.get("question") or question)
    return tuple(answers)


def _is_rejected(attempt: Attempt, answers: Sequence[SubAnswer]) -> bool:
    if attempt.feedback and GUARDED.get(attempt.feedback.error_type) == DONE:
        return len(answers) > 1  # a needless sub-answer is dropped if there are others
    return attempt.next_state in (SEARCH, DECOMPOSE) and bool(answers)


def strict_fields(attempt: Attempt) -> Mapping[str, Any]:
    """Return the fields of a strictly read reply; {} for any other."""
    read = attempt.read
    is_strict = isinstance(read, dict) and read.get("form") == "strict"
    return read["value"] if is_strict else {}


def _steps_of(memory: Memory) -> tuple[Step, ...]:
    return tuple(step_of(sub_answer, number) for number, sub_answer in enumerate(memory.sub_answers, 1))


def _answer_of(memory: Memory) -> Step:
    number = len(memory.sub_answers) + 1
    return Step(number, f"{ANSWER_MARKER} {' '.join(memory.best.split())}", "Final Answer")


def _list_steps(memory: Memory) -> tuple[Step, ...]:
    return (*_steps_of(memory), _answer_of(memory)) if memory.answer else _steps_of(memory)


def _grammar_fault(memory: Memory) -> str:
    """Say why the steps break the grammar, as a model may write anything into a sub-question; "" if they do not."""
    try:
        for step in _list_steps(memory):
            format_step(step)
    except StepError as error:
        return str(error)
    return ""


def _make_options(memory: Memory) -> GuardOptions:
    assert isinstance(memory.options, GuardOptions)
    return memory.options


def _build_request(memory: Memory, previous: tuple[Step, ...], step: Step) -> Request:
    q, options = memory.question, _make_options(memory)
    setting = (options.search is not None, options.drop_category, options.prompt_set)
    return verifier.request_verdict(q, previous, step, *setting)


def _ask_about_finding(memory: Memory) -> Request:
    *previous, step = _steps_of(memory)
    return _build_request(memory, tuple(previous), step)


def _ask_about_answer(memory: Memory) -> Request:
    return _build_request(memory, _steps_of(memory), _answer_of(memory))


def _read_verdict(memory: Memory, text: str, build_request: Callable[[Memory], Request]) -> Reading:
    """Read a verdict; one that the reply only copies from the judged text does not count."""
    options, planted = _make_options(memory), prompts.data_of(build_request(memory))
    try:
        verdict = parse_feedback(text, options.search is not None, planted, options.drop_category)
    except FeedbackError as error:
        return Reading("unreadable", {}, str(error), text, _UNREAD)
    return Reading("strict", {"verdict": verdict.error_type}, text=text, feedback=verdict)


def _require_grammar(reads: Callable[[Memory, str], Reading], after: After) -> Callable[[Memory, str], Reading]:
    """Return a reader that also calls a reply unreadable if its text breaks the grammar of steps."""

    def read(memory: Memory, text: str) -> Reading:
        reading = reads(memory, text)
        problem = _grammar_fault(after(memory, reading).memory) if reading.is_strict else ""
        return replace(reading, form="unreadable", value={}, problem=problem) if problem else reading

    return read


def _after_verdict(memory: Memory, reading: Reading) -> Move[Memory]:
    verdict = reading.feedback or _UNREAD
    if verdict.error_type == CORRECT:
        return _accept(memory)
    target = GUARDED.get(verdict.error_type, SEARCH)
    if target == SEARCH:
        return _search_again(memory, verdict)
    if target == DECOMPOSE:
        return _ask_another(memory, verdict)
    kept_answers = memory.sub_answers[:-1] or memory.sub_answers
    return Move(target, replace(memory, sub_answers=kept_answers) if target == DONE else memory)


def _accept(memory: Memory) -> Move[Memory]:
    return Move(DONE if memory.is_simple else TERMINATE, replace(memory, rejections=(), rejected_subquestions=()))


def _search_again(memory: Memory, verdict: Feedback) -> Move[Memory]:
    options, finding, question = _make_options(memory), memory.sub_answers[-1], memory.question
    if len(memory.rejections) >= options.max_retries:
        return _accept(memory) if _is_lenient(options, verdict) else _ask_another(memory, verdict)
    searches = options.search if verdict.error_type == MISSING_EVIDENCE and verdict.query else None
    retrieved = retrieve_new(searches, verdict.query or "", question.passages) if searches else ()
    sentence = f"{finding.question} {finding.answer} (Passage {finding.passage})"
    rejections = (*memory.rejections, (sentence, note_vain_search(verdict, retrieved)))
    question = replace(question, passages=(*question.passages, *retrieved))
    back = replace(memory, question=question, sub_answers=memory.sub_answers[:-1], rejections=rejections)
    return Move(SEARCH, back, retrieved)


def _ask_another(memory: Memory, verdict: Feedback) -> Move[Memory]:
    """Ask another sub-question, showing the rejected ones; at most N times, then `_is_lenient` decides."""
    options = _make_options(memory)
    if len(memory.rejected_subquestions) >= options.max_retries and _is_lenient(options, verdict):
        return _accept(memory)
    rejections = (*memory.rejected_subquestions, (memory.sub_answers[-1].question, verdict))
    return Move(DECOMPOSE, replace(memory, sub_answers=memory.sub_answers[:-1], rejections=rejections))


def _is_lenient(options: GuardOptions, verdict: Feedback) -> bool:
    return options.on_exhausted == "accept" and verdict is not _UNREAD


def _conclude(memory: Memory, reading: Reading) -> Move[Memory]:
    """End with the answer if its verdict allows it; otherwise, or without a readable verdict, check everything."""
    label = (reading.feedback or _UNREAD).error_type
    return Move(DONE if label == CORRECT or GUARDED.get(label) == DONE else SUMMARIZE, memory)


def _guard_decision(memory: Memory, reading: Reading) -> Move[Memory]:
    target, after, _ = sg_fsm.after_decision(memory, reading)
    return Move(ANSWER if target == DONE else target, after)


def _guard_finding(memory: Memory, reading: Reading) -> Move[Memory]:
    return sg_fsm.after_search(memory, reading)._replace(target=FINDING)


_read_finding = _require_grammar(sg_fsm.read_finding, sg_fsm.after_search)
_read_decision = _require_grammar(sg_fsm.read_decision, sg_fsm.after_decision)
_SEARCHING = sg_fsm.RevisedState(SEARCH, sg_fsm.ask_searcher, _read_finding, _guard_finding, (FINDING,))
_TO_ANSWER = (DECOMPOSE, ANSWER)
_DECIDING = sg_fsm.RevisedState(TERMINATE, sg_fsm.ask_terminator, _read_decision, _guard_decision, _TO_ANSWER)


def _guard(name: str, edges: Iterable[str], after: After, build_request: Callable[[Memory], Request]) -> State[Memory]:
    read = partial(_read_verdict, build_request=build_request)
    return State(name, frozenset(edges), after, build_request, read, VERIFIER)


MACHINE = Machine(
    {
        **sg_fsm.states_of(sg_fsm.DECOMPOSING, _SEARCHING),
        FINDING: _guard(FINDING, (*GUARDED.values(), TERMINATE), _after_verdict, _ask_about_finding),
        **sg_fsm.states_of(_DECIDING),
        ANSWER: _guard(ANSWER, (DONE, SUMMARIZE), _conclude, _ask_about_answer),
        **sg_fsm.states_of(sg_fsm.SUMMARIZING),
    },
    {DONE: ANSWERED, END: ANSWERED, WITHDRAWN: sg_fsm.WITHDREW},
    number=lambda memory: memory.entries,
    answer=lambda memory: memory.best,
    titles={**sg_fsm.TITLES, FINDING: "Judge find", ANSWER: "Judge answer"},
    steps=lambda memory: () if _grammar_fault(memory) else _list_steps(memory),
)


class SgFsmSafe(MachineMethod[Memory]):
    """The method: SG-FSM's machine, guarded by a verifier."""

    def resolve_options(self, options: GuardOptions, clients: Mapping[str, Client]) -> GuardOptions:
        """Return the options with the prompt that the verifier was trained with (`learnt_prompts`)."""
        judge = clients[VERIFIER]
        resolved: GuardOptions = learnt_prompts.adopt_learnt_prompts(options, [judge.engine], judge)
        return resolved

    def prompts_of(self, options: GuardOptions) -> tuple[str, ...]:
        """Return the names of the prompt files that these options use."""
        return sg_fsm.PROMPTS + options.prompt_set.verifying


SG_FSM_SAFE = SgFsmSafe(
    "sg_fsm_safe", "SG-FSM + SAFE", MACHINE, sg_fsm.start, sg_fsm.PROMPTS + VERIFY, GuardOptions, (GENERATOR, VERIFIER)
)
