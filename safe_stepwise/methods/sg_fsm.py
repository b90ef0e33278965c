"""SG-FSM: a question is taken apart, searched for, decided upon and summed up by a machine.

Of a question the machine knows how it stands now, the sub-question that it asks, and what was found before (section
3). All of this is pure; `machine.drive` asks.

======  ==========  ==============================================================================
state   role        where it leads
======  ==========  ==============================================================================
q0      decompose   q2, or q1 if it could not be read, or q7 once it was entered too often
q2      search      q4, or q5 if the question was simple, or q3 if it could not be read
q4      terminate   q0 to go on, or q5, or q4r if it could not be read
q6      summarize   the end, or q6r if it could not be read
q1, q3  revise      what q0, q2 lead to; once more; or q7, or back where a redo is left
======  ==========  ==============================================================================

Section 3.2 and our decisions: a reply that could not be read is revised, twice at most, and then the question is
withdrawn with a blank; so is one that enters q0 a seventh time. ``sg_fsm1`` ends with the Terminator's answer, else
what was found last. ``sg_fsm2`` does the same, word for word, so that its calls are in the cache, and has all of it
checked once more (q6). The paper has no state that revises what q4 and q6 say: ``q4r`` and ``q6r`` are ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import reading as reads
from safe_stepwise.methods.machine import UNASKED, Machine, Move, State, drive
from safe_stepwise.methods.prompting import (
    GENERATOR,
    MAX_REPEATED_CHARACTERS,
    MachineOptions,
    answer_fields,
    form_of,
    request_of,
    texts_of,
)
from safe_stepwise.methods.reading import Reading
from safe_stepwise.methods.scene import PromptingScene, SubAnswer
from safe_stepwise.records import ANSWERED, Feedback, Passage, Question, Trajectory

DECOMPOSE, SEARCH, TERMINATE, SUMMARIZE = "q0", "q2", "q4", "q6"
REVISED_IN = {DECOMPOSE: "q1", SEARCH: "q3", TERMINATE: "q4r", SUMMARIZE: "q6r"}
"""Where the reply of a state is put right."""
DONE, WITHDRAWN, END = "q5", "q7", "end"
"""The ends: of SG-FSM1, of a question given up, and of SG-FSM2, whose q6 still asks."""
WITHDREW = "withdrawn"
"""The stop reason of a question that was given up."""
TITLES = {DECOMPOSE: "Decompose", SEARCH: "Search", TERMINATE: "Terminate", SUMMARIZE: "Summarize"}
TITLES |= {**dict.fromkeys(REVISED_IN.values(), "Revise"), DONE: "Done", WITHDRAWN: "Withdraw"}
PROMPTS = tuple(f"sg_fsm/{name}" for name in ("decompose", "search", "revise", "terminate", "summarize"))


@dataclass(frozen=True, slots=True)
class Memory:
    """A question under way.

    ``current`` is the question as it was last rewritten, ``entries`` how often q0 was asked;
    ``rejected`` are the replies to the request at hand that could not be read, ``refused`` the one
    that a redo shows. ``faults`` are finds, or first questions, that a verdict took back, with what
    was said of each; ``avoided`` are those of first questions while another one is searched for.
    """

    question: Question
    options: MachineOptions
    current: str
    entries: int = 0
    is_simple: bool = False
    subquestion: str = ""
    sub_answers: tuple[SubAnswer, ...] = ()
    answer: str = ""
    rejected: tuple[str, ...] = ()
    problem: str = ""
    redone: int = 0
    refused: str = ""
    faults: tuple[tuple[str, Feedback], ...] = ()
    avoided: tuple[tuple[str, Feedback], ...] = ()

    @property
    def best(self) -> str:
        """The answer, else what was found last."""
        return self.answer or (self.sub_answers[-1].answer if self.sub_answers else "")

    @property
    def cited(self) -> list[tuple[int, Passage]]:
        """The passages that something was found in, by number."""
        numbers = sorted({find.passage for find in self.sub_answers})
        return [(number, self.question.passages[number - 1]) for number in numbers]

    @property
    def quoted(self) -> list[str]:
        """The texts that a request quotes beside passages: questions, answers, verdicts."""
        texts = [text for find in self.sub_answers for text in (find.question, find.answer)]
        verdicts = [text for _, verdict in self.faults for text in (verdict.diagnosis, verdict.guidance)]
        return [self.question.question, self.current, self.subquestion, *texts, *verdicts]

    def scene(self, **fields: Any) -> PromptingScene:
        """Build the scene for a simulating player."""
        verdicts = tuple(verdict for _, verdict in self.faults)
        context = (self.question, self.options.evidence, self.current, self.subquestion, self.sub_answers, self.answer)
        return PromptingScene(*context, faults=verdicts, **fields)

    def request(self, prompt: str, **data: Any) -> Request:
        """The request of a prompt file, which shows what was found and the reply that a redo is for."""
        common: dict[str, Any] = {"found": [asdict(find) for find in self.sub_answers], "refused": self.refused}
        return request_of(f"sg_fsm/{prompt}", self.options, self.scene(), **common, **data)

    @property
    def remarks(self) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        """The rejected sub-answers, each with the remarks on it."""
        remarks = []
        for text, verdict in self.faults:
            entries = [("Fault", verdict.error_type), ("Why", verdict.diagnosis), ("Now", verdict.guidance)]
            remarks.append((text, tuple((name, content) for name, content in entries if content.strip())))
        return remarks


def _ask_decomposer(memory: Memory) -> Request | None:
    """Nobody once there were as many iterations as may be."""
    if memory.entries >= memory.options.iterations:
        return None
    memory = replace(memory, subquestion="")
    return memory.request("decompose", question=memory.current, faults=memory.remarks)


def ask_searcher(memory: Memory) -> Request:
    """The request for the answer to a sub-question, and the passage that has it."""
    passages = memory.question.passages
    return memory.request("search", passages=passages, question=memory.subquestion, faults=memory.remarks)


def ask_terminator(memory: Memory) -> Request:
    """The request to go on with a question rewritten, or to answer."""
    return memory.request("terminate", original=memory.question.question, question=memory.current)


def _ask_summarizer(memory: Memory) -> Request:
    memory = replace(memory, answer=memory.best)
    return memory.request("summarize", passages=memory.cited, question=memory.question.question, answer=memory.answer)


def _unreadable(reading: Reading, problem: str) -> Reading:
    return replace(reading, form="unreadable", value={}, problem=problem)


def _read_decomposition(memory: Memory, text: str) -> Reading:
    """Compound questions need a first question."""
    reading = reads.read(text, {"simple": reads.flag, "subquestion": reads.maybe_words}, memory.quoted)
    if reading.is_strict and not reading.value["simple"] and not reading.value["subquestion"]:
        return _unreadable(reading, "subquestion: it is missing")
    return reading


def read_find(memory: Memory, text: str) -> Reading:
    """A reply of the searcher."""
    passages = memory.question.passages
    number = reads.number_of(passages)
    fields: dict[str, reads.FieldReader] = {"answer": reads.words, "passage": number, "question": reads.words}
    if memory.options.evidence:
        fields |= {"sentences": reads.sentences, "evidence": reads.triple}
    reading = reads.read(text, fields, [*texts_of(passages), *memory.quoted])
    value = reading.value
    if reading.is_strict and memory.options.evidence:
        last = len(passages[value["passage"] - 1].sentences) - 1
        if any(number > last for number in value["sentences"]):
            return _unreadable(reading, f"sentences: passage {value['passage']} has none beyond {last}")
    return reading


def read_decision(memory: Memory, text: str) -> Reading:
    """A reply of the terminator."""
    maybe = reads.maybe_words
    reading = reads.read(text, {"continue": reads.flag, "question": maybe, "answer": maybe}, memory.quoted)
    if reading.is_strict and reading.value["continue"] and not reading.value["question"]:
        return _unreadable(reading, "question: it is missing")
    return reading


def _read_summary(memory: Memory, text: str) -> Reading:
    passages, evidence = memory.question.passages, memory.options.evidence
    fields = answer_fields(passages, evidence, "explain" if evidence else "reason")
    return reads.read(text, fields, [*texts_of([page for _, page in memory.cited]), *memory.quoted])


def _after_decomposition(memory: Memory, reading: Reading) -> Move[Memory]:
    """A simple question is searched for as it stands."""
    is_simple = reading.value["simple"]
    subquestion = memory.current if is_simple else reading.value["subquestion"]
    after = replace(memory, is_simple=is_simple, subquestion=subquestion)
    return Move(SEARCH, replace(after, faults=(), avoided=memory.faults))


def after_search(memory: Memory, reading: Reading) -> Move[Memory]:
    """Keep a search's answer under the sub-question asked, however the reply repeats that."""
    value = reading.value
    evidence = (tuple(value.get("sentences", ())), tuple(value.get("evidence", ())))
    find = SubAnswer(memory.subquestion, value["passage"], value["answer"], *evidence)
    return Move(DONE if memory.is_simple else TERMINATE, replace(memory, sub_answers=(*memory.sub_answers, find)))


def after_decision(memory: Memory, reading: Reading) -> Move[Memory]:
    """The question goes on, rewritten, or has its answer."""
    value = reading.value
    current = value["question"] or memory.current
    if value["continue"]:
        return Move(DECOMPOSE, replace(memory, current=current))
    return Move(DONE, replace(memory, current=current, answer=value["answer"] or memory.best))


@dataclass(frozen=True, slots=True)
class Asking:
    """A state that asks, and the one that puts its replies right (section 3.5).

    After ``options.revisions`` tries in vain the question is withdrawn, unless a redo is left.
    """

    name: str
    build_request: Callable[[Memory], Request | None]
    reads: Callable[[Memory, str], Reading]
    after: Callable[[Memory, Reading], Move[Memory]]
    leads_to: tuple[str, ...]

    @property
    def states(self) -> tuple[State[Memory], State[Memory]]:
        """Both of them."""
        reviser = REVISED_IN[self.name]
        edges = frozenset((*self.leads_to, reviser, WITHDRAWN, self.name))
        return (
            State(self.name, edges, self._moved_first, self.build_request, self.reads),
            State(
                reviser,
                edges,
                self._moved,
                self._revising,
                lambda memory, text: replace(self.reads(memory, text), revises=self.name),
            ),
        )

    def _moved_first(self, memory: Memory, reading: Reading) -> Move[Memory]:
        if reading is UNASKED:
            return Move(WITHDRAWN, memory)
        return self._moved(replace(memory, entries=memory.entries + (self.name == DECOMPOSE)), reading)

    def _moved(self, memory: Memory, reading: Reading) -> Move[Memory]:
        if reading.is_strict:
            return self.after(replace(memory, rejected=(), problem="", redone=0, refused=""), reading)
        rejected = (*memory.rejected, reading.text[:MAX_REPEATED_CHARACTERS])
        if len(rejected) <= memory.options.revisions:
            return Move(REVISED_IN[self.name], replace(memory, rejected=rejected, problem=reading.problem))
        if memory.redone < memory.options.redo:
            return Move(self.name, replace(memory, rejected=(), redone=memory.redone + 1, refused=rejected[-1]))
        return Move(WITHDRAWN, memory)

    def _revising(self, memory: Memory) -> Request:
        request = self.build_request(replace(memory, entries=0))
        assert request is not None
        scene = memory.scene(mends=request.role, rejected=memory.rejected)
        data: dict[str, Any] = {"rejected": memory.rejected, "why": memory.problem, "form": form_of(request)}
        return request_of("sg_fsm/revise", memory.options, scene, **data)


def states_of(*askings: Asking) -> dict[str, State[Memory]]:
    """Their states by name, in the order given."""
    return {state.name: state for asking in askings for state in asking.states}


DECOMPOSING = Asking(DECOMPOSE, _ask_decomposer, _read_decomposition, _after_decomposition, (SEARCH,))
SUMMARIZING = Asking(
    SUMMARIZE,
    _ask_summarizer,
    _read_summary,
    lambda memory, reading: Move(END, replace(memory, answer=reading.value["answer"])),
    (END,),
)
_FIRST = states_of(
    DECOMPOSING,
    Asking(SEARCH, ask_searcher, read_find, after_search, (TERMINATE, DONE)),
    Asking(TERMINATE, ask_terminator, read_decision, after_decision, (DECOMPOSE, DONE)),
)
_PASSING_ON: State[Memory] = State(DONE, frozenset((SUMMARIZE,)), lambda memory, _: Move(SUMMARIZE, memory))


def _machine(states: Mapping[str, State[Memory]], end: str) -> Machine[Memory]:
    ends = {end: ANSWERED, WITHDRAWN: WITHDREW}
    return Machine(states, ends, lambda memory: memory.entries, lambda memory: memory.best, titles=TITLES)


SINGLE_TURN = _machine(_FIRST, DONE)
TWO = _machine({**_FIRST, DONE: _PASSING_ON, **states_of(SUMMARIZING)}, END)
"""The two stages' machines."""


@dataclass
class SgFsm:
    """A stage of SG-FSM; one model plays all roles."""

    name: str
    title: str
    machine: Machine[Memory]
    prompts: tuple[str, ...] = PROMPTS
    roles: tuple[str, ...] = (GENERATOR,)
    options: type[MachineOptions] = MachineOptions

    async def answer(self, question: Question, clients: Mapping[str, Client], options: MachineOptions) -> Trajectory:
        """Answer one question and return its trajectory."""
        return await drive(self.machine, Memory(question, options, question.question), clients, question.id, self.name)


SG_FSM1 = SgFsm("sg_fsm1", "SG-FSM1", SINGLE_TURN, PROMPTS[:-1])
SG_FSM2 = SgFsm("sg_fsm2", "SG-FSM2", TWO)
