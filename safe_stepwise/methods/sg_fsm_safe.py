"""SG-FSM whose edges SAFE's verifier guards: a find goes on where its verdict lets it (no paper).

What a search came to is rendered as an Attribution step and judged in ``g2``; the Terminator's
answer is judged as a Final Answer in ``g4``. Where a verdict leads is `GUARDED`: search again, ask
another question first, stop here, or have everything checked (q6). Whoever is asked again is shown
what was at fault.

A find that keeps failing is searched for at most ``max_retries`` times more, and as many other
first questions are asked in its place where its verdict wants that. Then ``on_exhausted`` is
SAFE's: ``accept`` lets the find pass as it is, ``drop`` asks another first question, and the
seventh of those withdraws. A verdict that can't be read never lets anything pass, not even then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from safe_stepwise import prompts
from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import Client
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.methods.asking import GENERATOR
from safe_stepwise.methods.hops import (
    DECOMPOSE,
    DECOMPOSING,
    DONE,
    END,
    PROMPTS,
    SEARCH,
    SUMMARIZE,
    SUMMARIZING,
    TERMINATE,
    TITLES,
    WITHDRAWN,
    WITHDREW,
    Asking,
    after_decision,
    after_search,
    ask_searcher,
    ask_terminator,
    read_decision,
    read_find,
    states_of,
)
from safe_stepwise.methods.limits import OnExhausted, Search
from safe_stepwise.methods.loop import UNREAD, VERIFIER, VERIFY
from safe_stepwise.methods.machine import Machine, Move, State, drive
from safe_stepwise.methods.memory import Memory
from safe_stepwise.methods.prompt_sets import PromptSet, PromptsName
from safe_stepwise.methods.prompting import Iterating
from safe_stepwise.methods.reading import Reading
from safe_stepwise.methods.scene import Found, Scene
from safe_stepwise.methods.searching import brought, told
from safe_stepwise.methods.taught import as_learnt, taught
from safe_stepwise.methods.verifier import ROLE, verifier_request
from safe_stepwise.records import ANSWERED, Feedback, Passage, Question, Step, Trajectory, VerdictOrder
from safe_stepwise.steps import ANSWER_MARKER, StepError, format_step
from safe_stepwise.taxonomy import CORRECT, DROPPABLE, MISSING_EVIDENCE, Category

FIND, ANSWER = "g2", "g4"
"""The guards behind q2 and q4."""
GUARDED: Mapping[str, str] = {
    **dict.fromkeys(("Contradictory", "Unsupported", "Information Miss"), SEARCH),
    MISSING_EVIDENCE: SEARCH,
    **dict.fromkeys(("Off-topic", "Redundancy", "Inefficiency", "Premature Attribution"), DECOMPOSE),
    "Overthinking": DONE,
    **dict.fromkeys(("Logical Fallacy", "Wrong Conclusion"), SUMMARIZE),
}
"""Where a find leads by the label of its verdict; ``Correct`` is the edge that is guarded."""
_UNREAD = Feedback(
    UNREAD,
    "No verdict on this find could be read, so that it does not count as verified.",
    "Find it once more, and say it as plainly as possible.",
)


@dataclass(frozen=True, slots=True)
class Guarding(Iterating):
    """SG-FSM's options and SAFE's N and rule; with a ``search`` the evidence may be incomplete."""

    max_retries: int = 3
    on_exhausted: OnExhausted = "accept"
    drop_category: Category | None = None
    """As in SAFE's loop (`limits.Limits`), as are the next two, of the verifier alone."""
    prompts: PromptsName | None = None
    verdict_order: VerdictOrder | None = None
    search: Search | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super(Guarding, self).__post_init__()
        if self.max_retries < 0 or self.on_exhausted not in get_args(OnExhausted):
            raise ValueError("max_retries has to be 0 or more, on_exhausted accept or drop")
        if self.drop_category not in (None, *DROPPABLE):
            raise ValueError(f"drop_category is one of {', '.join(DROPPABLE)}")
        _ = self.prompt_set  # raises as it does

    @property
    def prompt_set(self) -> PromptSet:
        """The verifier's prompts."""
        return PromptSet.of(self.prompts, self.verdict_order)


def step_of(found: Found, number: int) -> Step:
    """A find as a step: a wording that the checker knows.

    >>> step_of(Found("Where was Ors Velt born?", 2, "Oru"), 1).text
    'According to Passage 2, the answer to “Where was Ors Velt born?” is Oru.'
    """
    asked = found.question.replace("“", '"').replace("”", '"')
    said = f"According to Passage {found.passage}, the answer to “{asked}” is {found.answer}."
    return Step(number, " ".join(said.split()), "Attribution")


def steps_of(memory: Memory) -> tuple[Step, ...]:
    """All that was found, as steps."""
    return tuple(step_of(found, number) for number, found in enumerate(memory.found, 1))


def _answer_of(memory: Memory) -> Step:
    number = len(memory.found) + 1
    return Step(number, f"{ANSWER_MARKER} {' '.join(memory.best.split())}", "Final Answer")


def _all_steps(memory: Memory) -> tuple[Step, ...]:
    return (*steps_of(memory), _answer_of(memory)) if memory.answer else steps_of(memory)


def _unwritten(steps: tuple[Step, ...]) -> str:
    """Why steps do not hold to the grammar; a model may put anything into a sub-question."""
    try:
        for step in steps:
            format_step(step)
    except StepError as error:
        return str(error)
    return ""


def _options(memory: Memory) -> Guarding:
    assert isinstance(memory.options, Guarding)
    return memory.options


# -------------------------------------------------------------------------- what is asked and read


def _request(memory: Memory, previous: tuple[Step, ...], step: Step) -> Request:
    q, options = memory.question, _options(memory)
    is_open, dropped = options.search is not None, options.drop_category
    how = (is_open, dropped, options.prompt_set)
    request = verifier_request(q.question, q.passages, previous, step, *how)
    return replace(request, scene=Scene(q, previous=previous, step=step))


def _ask_about_find(memory: Memory) -> Request:
    *previous, step = steps_of(memory)
    return _request(memory, tuple(previous), step)


def _ask_about_answer(memory: Memory) -> Request:
    return _request(memory, steps_of(memory), _answer_of(memory))


def _verdict(ask: Callable[[Memory], Request]) -> Callable[[Memory, str], Reading]:
    """The reader of a verdict, which counts unless it stands in what was judged."""

    def reads(memory: Memory, text: str) -> Reading:
        options, planted = _options(memory), prompts.data_of(ask(memory))
        try:
            said = parse_feedback(text, options.search is not None, planted, options.drop_category)
        except FeedbackError as error:
            return Reading("unreadable", {}, str(error), text, _UNREAD)
        return Reading("strict", {"verdict": said.error_type}, text=text, feedback=said)

    return reads


def _readable(
    reads: Callable[[Memory, str], Reading], after: Callable[[Memory, Reading], Move[Memory]]
) -> Callable[[Memory, str], Reading]:
    """The reader of a reply that has to come to steps: what no step can say can't be judged."""

    def read(memory: Memory, text: str) -> Reading:
        reading = reads(memory, text)
        why = _unwritten(_all_steps(after(memory, reading).memory)) if reading.is_strict else ""
        return replace(reading, form="unreadable", value={}, why=why) if why else reading

    return read


# ------------------------------------------------------------------------------- where that leads


def _judged(memory: Memory, reading: Reading) -> Move[Memory]:
    """Where a find goes by its verdict."""
    said = reading.feedback or _UNREAD
    if said.error_type == CORRECT:
        return _passed(memory)
    to = GUARDED.get(said.error_type, SEARCH)
    if to == SEARCH:
        return _searched_again(memory, said)
    if to == DECOMPOSE:
        return _asked_anew(memory, said)
    if to == DONE:
        return Move(to, replace(memory, found=memory.found[:-1] or memory.found))
    return Move(to, memory)


def _passed(memory: Memory) -> Move[Memory]:
    to = DONE if memory.is_simple else TERMINATE
    return Move(to, replace(memory, faults=(), avoided=()))


def _searched_again(memory: Memory, said: Feedback) -> Move[Memory]:
    options, found = _options(memory), memory.found[-1]
    if len(memory.faults) >= options.max_retries:
        return _passed(memory) if _is_lenient(options, said) else _asked_anew(memory, said)
    retrieved = _retrieved(memory, said)
    pages = (*memory.question.passages, *retrieved)
    fault = (f"{found.question} {found.answer} (Passage {found.passage})", told(said, retrieved))
    back = replace(
        memory,
        question=replace(memory.question, passages=pages),
        found=memory.found[:-1],
        faults=(*memory.faults, fault),
    )
    return Move(SEARCH, back, retrieved)


def _asked_anew(memory: Memory, said: Feedback) -> Move[Memory]:
    """Another first question, those at fault being shown; there are N more of them, too."""
    options = _options(memory)
    if len(memory.avoided) >= options.max_retries and _is_lenient(options, said):
        return _passed(memory)
    faults = (*memory.avoided, (memory.found[-1].question, said))
    return Move(DECOMPOSE, replace(memory, found=memory.found[:-1], faults=faults))


def _is_lenient(options: Guarding, said: Feedback) -> bool:
    """Whether what N tries did not mend passes as it is."""
    return options.on_exhausted == "accept" and said is not _UNREAD


def _retrieved(memory: Memory, said: Feedback) -> tuple[Passage, ...]:
    """The passages that a query brings in and that were not there."""
    search = _options(memory).search
    if search is None or said.error_type != MISSING_EVIDENCE or not said.query:
        return ()
    return brought(search, said.query, memory.question.passages)


def _concluded(memory: Memory, reading: Reading) -> Move[Memory]:
    """An answer passes as it is or has everything checked; so does one on which none is read."""
    said = reading.feedback or _UNREAD
    return Move(DONE if said.error_type in (CORRECT, "Overthinking") else SUMMARIZE, memory)


def _guarded_search(memory: Memory, reading: Reading) -> Move[Memory]:
    return Move(FIND, after_search(memory, reading).memory)


def _guarded_decision(memory: Memory, reading: Reading) -> Move[Memory]:
    to, after, _ = after_decision(memory, reading)
    return Move(ANSWER if to == DONE else to, after)


_SEARCHING = Asking(SEARCH, ask_searcher, _readable(read_find, after_search), _guarded_search, frozenset((FIND,)))
_DECIDING = Asking(
    TERMINATE,
    ask_terminator,
    _readable(read_decision, after_decision),
    _guarded_decision,
    frozenset((DECOMPOSE, ANSWER)),
)
_JUDGING = State(
    FIND, frozenset((*GUARDED.values(), TERMINATE)), _judged, _ask_about_find, _verdict(_ask_about_find), VERIFIER
)
_CONCLUDING = State(
    ANSWER, frozenset((DONE, SUMMARIZE)), _concluded, _ask_about_answer, _verdict(_ask_about_answer), VERIFIER
)
MACHINE = Machine(
    {
        **states_of(DECOMPOSING, _SEARCHING),
        FIND: _JUDGING,
        **states_of(_DECIDING),
        ANSWER: _CONCLUDING,
        **states_of(SUMMARIZING),
    },
    {DONE: ANSWERED, END: ANSWERED, WITHDRAWN: WITHDREW},
    number=lambda memory: memory.entries,
    answer=lambda memory: memory.best,
    titles={**TITLES, FIND: "Judge find", ANSWER: "Judge answer"},
    steps=lambda memory: () if _unwritten(_all_steps(memory)) else _all_steps(memory),
)


@dataclass
class SgFsmSafe:
    """The machine, and who guards it."""

    name: str = "sg_fsm_safe"
    title: str = "SG-FSM + SAFE"
    roles: tuple[str, ...] = (GENERATOR, VERIFIER)
    prompts: tuple[str, ...] = PROMPTS + VERIFY
    options = Guarding
    machine = MACHINE

    def settled(self, options: Guarding, clients: Mapping[str, Client]) -> Guarding:
        """The options with the prompt that the verifier has learnt (see `taught`)."""
        judge = clients[VERIFIER]
        learnt = as_learnt(options, [judge.engine])
        settled: Guarding = taught(learnt, judge.engine, judge.allowance, ROLE)
        return settled

    def prompts_of(self, options: Guarding) -> tuple[str, ...]:
        """The prompts that some options ask by."""
        return PROMPTS + options.prompt_set.verifying

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Guarding) -> Trajectory:
        """Everything that was done to answer one question."""
        start = Memory.of(question, options)
        return await drive(MACHINE, start, clients, question.id, self.name)


SG_FSM_SAFE = SgFsmSafe()
