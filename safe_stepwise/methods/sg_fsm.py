"""SG-FSM: a finite state machine that decomposes a question into sub-questions, searches for each, and sums up.

The memory of the machine (section 3) has the question as last rewritten, the current sub-question, and the *findings*:
sub-questions with their answers and passages. One model plays all roles. The functions here are pure; `machine.drive`
sends the requests.

======  ==========  ==============================================================================
state   role        next states
======  ==========  ==============================================================================
q0      decompose   q2; q1 if the reply is unreadable; q7 if no iteration is left
q2      search      q4; q5 if the question is simple; q3 if the reply is unreadable
q4      terminate   q0 to continue; q5 with the answer; q4r if the reply is unreadable
q6      summarize   the end; q6r if the reply is unreadable
q1, q3  revise      those of q0, q2; itself; q7; or back to q0, q2 if a redo is left
======  ==========  ==============================================================================

Section 3.2 and our decisions: the model may revise an unreadable reply twice; then the question is withdrawn without
an answer (q7), and so it is on entering q0 a seventh time. ``sg_fsm1`` ends with the Terminator's answer, or with that
of the last finding. ``sg_fsm2`` sends the same requests, so that a cache has their replies, and then has everything
checked once more (q6). The paper has no states for revising q4 and q6: we added ``q4r`` and ``q6r``.

With a Terminator that only decides (`DECISIONS`), the Decomposer sees the findings and rewrites the question. Once all
facts are there, it calls what is left simple, such as a comparison: the Searcher answers that, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from safe_stepwise.engines.base import Request
from safe_stepwise.methods import prompting
from safe_stepwise.methods import reading as reads
from safe_stepwise.methods.generator import remarks
from safe_stepwise.methods.machine import UNASKED, Machine, MachineMethod, Move, State
from safe_stepwise.methods.reading import Reading
from safe_stepwise.methods.scene import PromptingScene, SubAnswer
from safe_stepwise.records import ANSWERED, Feedback, Passage, Question

DECOMPOSE, SEARCH, TERMINATE, SUMMARIZE = "q0", "q2", "q4", "q6"
REVISED_IN = {DECOMPOSE: "q1", SEARCH: "q3", TERMINATE: "q4r", SUMMARIZE: "q6r"}
"""The state in which the model revises an unreadable reply of another state."""
DONE, WITHDRAWN, END = "q5", "q7", "end"
"""The ends of SG-FSM1, of a withdrawn question, and of SG-FSM2, which continues after ``DONE``."""
WITHDREW = "withdrawn"
"""The stop reason of a withdrawn question."""
TITLES = {DECOMPOSE: "Decompose", SEARCH: "Search", TERMINATE: "Terminate", SUMMARIZE: "Summarize"}
TITLES |= {**dict.fromkeys(REVISED_IN.values(), "Revise"), DONE: "Done", WITHDRAWN: "Withdraw"}
PROMPTS = tuple(f"sg_fsm/{name}" for name in ("decompose", "search", "revise", "terminate", "summarize"))
INFORMED = "decompose_with_findings"  # the Decomposer's prompt with a Terminator that only decides
Terminator = Literal["decide", "compare"]
DECISIONS: Mapping[Terminator, str] = {"decide": "continue", "compare": "identical"}
"""The Terminator's forms that only decide, each with its reply's field: whether the question can be decomposed further
(section 3.6), and whether the sub-question is the question itself (appendix A.1)."""


@dataclass(frozen=True, slots=True)
class SgFsmOptions(prompting.MachineOptions):
    """The options of SG-FSM without a guard."""

    terminator: Terminator | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """The machine's memory of a question.

    ``current`` is the question as last rewritten, ``entries`` the number of requests in q0, ``sub_answers`` the
    findings. ``unreadable_replies`` are those to the current request, ``problem`` says what is wrong with the last,
    ``redo_count`` how often the request was sent again, ``redo_reply`` is the reply that a redo shows. Where SAFE
    guards the machine, ``rejections`` are the findings or sub-questions that a verdict rejected, with their verdicts,
    and ``rejected_subquestions`` the sub-questions among them while another one is searched for.
    """

    question: Question
    options: prompting.MachineOptions
    current: str
    terminator: Terminator | None = None
    entries: int = 0
    is_simple: bool = False
    subquestion: str = ""
    sub_answers: tuple[SubAnswer, ...] = ()
    answer: str = ""
    unreadable_replies: tuple[str, ...] = ()
    problem: str = ""
    redo_count: int = 0
    redo_reply: str = ""
    rejections: tuple[tuple[str, Feedback], ...] = ()
    rejected_subquestions: tuple[tuple[str, Feedback], ...] = ()

    @property
    def best(self) -> str:
        """The answer, or that of the last finding."""
        return self.answer or (self.sub_answers[-1].answer if self.sub_answers else "")

    @property
    def cited(self) -> list[tuple[int, Passage]]:
        """The passages of the findings, with their numbers from 1, sorted."""
        numbers = sorted({finding.passage for finding in self.sub_answers})
        return [(number, self.question.passages[number - 1]) for number in numbers]

    @property
    def quoted(self) -> list[str]:
        """The texts that a request quotes beside passages: questions, answers, verdicts."""
        texts = [text for finding in self.sub_answers for text in (finding.question, finding.answer)]
        verdicts = [text for _, verdict in self.rejections for text in (verdict.diagnosis, verdict.guidance)]
        return [self.question.question, self.current, self.subquestion, *texts, *verdicts]

    def scene(self, **fields: Any) -> PromptingScene:
        """Build the scene for a symbolic player."""
        verdicts = tuple(verdict for _, verdict in self.rejections)
        context = (self.question, self.options.evidence, self.current, self.subquestion, self.sub_answers, self.answer)
        return PromptingScene(*context, faults=verdicts, **fields)

    def request(self, prompt: str, **data: Any) -> Request:
        """Build the request of a prompt file; it shows the findings, and on a redo the unreadable reply."""
        texts = {"original": self.question.question, "question": self.current, "subquestion": self.subquestion}
        findings = [asdict(finding) for finding in self.sub_answers]
        common: dict[str, Any] = {**texts, "found": findings, "refused": self.redo_reply}
        return prompting.request_of(f"sg_fsm/{prompt}", self.options, self.scene(), **common | data)

    @property
    def remarks(self) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        """The rejected findings or sub-questions, each with the remarks of its verdict by title."""
        return [(text, remarks(verdict)) for text, verdict in self.rejections]


def _ask_decomposer(memory: Memory) -> Request | None:
    if memory.entries >= memory.options.iterations:
        return None
    memory = replace(memory, subquestion="")
    return memory.request(INFORMED if memory.terminator else "decompose", faults=memory.remarks)


def ask_searcher(memory: Memory) -> Request:
    """Build the request for the answer to a sub-question, and the number of its passage."""
    passages = memory.question.passages
    return memory.request("search", passages=passages, question=memory.subquestion, faults=memory.remarks)


def ask_terminator(memory: Memory) -> Request:
    """Build the request for a decision: continue, with a rewritten question where the form has one, or answer."""
    return memory.request(memory.terminator or "terminate")


def _ask_summarizer(memory: Memory) -> Request:
    memory = replace(memory, answer=memory.best)
    return memory.request("summarize", passages=memory.cited, question=memory.question.question, answer=memory.answer)


def _unreadable(reading: Reading, problem: str) -> Reading:
    return replace(reading, form="unreadable", value={}, problem=problem)


def _read_decomposition(memory: Memory, text: str) -> Reading:
    rewritten: dict[str, reads.FieldReader] = {"question": reads.words} if memory.terminator else {}
    reading = reads.read(text, {**rewritten, "simple": reads.flag, "subquestion": reads.maybe_words}, memory.quoted)
    if reading.is_strict and not reading.value["simple"] and not reading.value["subquestion"]:
        return _unreadable(reading, "subquestion: it is missing")
    return reading


def read_finding(memory: Memory, text: str) -> Reading:
    """Read the Searcher's reply."""
    passages = memory.question.passages
    number = reads.number_in(1, len(passages), "passage")
    fields: dict[str, reads.FieldReader] = {"answer": reads.words, "passage": number, "question": reads.words}
    if memory.options.evidence:
        fields |= {"sentences": reads.sentences, "evidence": reads.triple}
    reading = reads.read(text, fields, [*prompting.texts_of(passages), *memory.quoted])
    value = reading.value
    if reading.is_strict and memory.options.evidence:
        last = len(passages[value["passage"] - 1].sentences) - 1
        if any(number > last for number in value["sentences"]):
            return _unreadable(reading, f"sentences: passage {value['passage']} has none beyond {last}")
    return reading


def read_decision(memory: Memory, text: str) -> Reading:
    """Read the Terminator's reply; the form that rewrites needs a question to continue."""
    if memory.terminator:
        return reads.read(text, {DECISIONS[memory.terminator]: reads.flag}, memory.quoted)
    maybe = reads.maybe_words
    reading = reads.read(text, {"continue": reads.flag, "question": maybe, "answer": maybe}, memory.quoted)
    if reading.is_strict and reading.value["continue"] and not reading.value["question"]:
        return _unreadable(reading, "question: it is missing")
    return reading


def _read_summary(memory: Memory, text: str) -> Reading:
    passages, evidence = memory.question.passages, memory.options.evidence
    fields = prompting.answer_fields(passages, evidence, "explain" if evidence else "reason")
    return reads.read(text, fields, [*prompting.texts_of([page for _, page in memory.cited]), *memory.quoted])


def _after_decomposition(memory: Memory, reading: Reading) -> Move[Memory]:
    is_simple, current = reading.value["simple"], reading.value.get("question", memory.current)
    subquestion = current if is_simple else reading.value["subquestion"]
    after = replace(memory, current=current, is_simple=is_simple, subquestion=subquestion)
    return Move(SEARCH, replace(after, rejections=(), rejected_subquestions=memory.rejections))


def after_search(memory: Memory, reading: Reading) -> Move[Memory]:
    """Keep the Searcher's answer as a finding, under our wording of the sub-question, not the reply's."""
    value = reading.value
    evidence = (tuple(value.get("sentences", ())), tuple(value.get("evidence", ())))
    finding = SubAnswer(memory.subquestion, value["passage"], value["answer"], *evidence)
    return Move(DONE if memory.is_simple else TERMINATE, replace(memory, sub_answers=(*memory.sub_answers, finding)))


def after_decision(memory: Memory, reading: Reading) -> Move[Memory]:
    """Go on with the rewritten question, or end with the answer, that of the last finding where the form has none."""
    value = reading.value
    current = value.get("question") or memory.current
    if value.get("continue", not value.get("identical", False)):
        return Move(DECOMPOSE, replace(memory, current=current))
    return Move(DONE, replace(memory, current=current, answer=value.get("answer") or memory.best))


@dataclass(frozen=True, slots=True)
class RevisedState:
    """A state with a request, and the state that revises its unreadable replies (section 3.5).

    After ``options.revisions`` unreadable revisions the question is withdrawn, unless a redo is left. ``leads_to`` are
    the next states after a strict reply.
    """

    name: str
    build_request: Callable[[Memory], Request | None]
    reads: Callable[[Memory, str], Reading]
    after: Callable[[Memory, Reading], Move[Memory]]
    leads_to: tuple[str, ...]

    @property
    def states(self) -> tuple[State[Memory], State[Memory]]:
        reviser = REVISED_IN[self.name]
        edges = frozenset((*self.leads_to, reviser, WITHDRAWN, self.name))
        read = lambda memory, text: replace(self.reads(memory, text), revises=self.name)  # noqa: E731
        first = State(self.name, edges, self._move_first, self.build_request, self.reads)
        return first, State(reviser, edges, self._move, self._ask_reviser, read)

    def _move_first(self, memory: Memory, reading: Reading) -> Move[Memory]:
        if reading is UNASKED:
            return Move(WITHDRAWN, memory)
        return self._move(replace(memory, entries=memory.entries + (self.name == DECOMPOSE)), reading)

    def _move(self, memory: Memory, reading: Reading) -> Move[Memory]:
        if reading.is_strict:
            return self.after(replace(memory, unreadable_replies=(), problem="", redo_count=0, redo_reply=""), reading)
        replies = (*memory.unreadable_replies, reading.text[: prompting.MAX_REPEATED_CHARACTERS])
        if len(replies) <= memory.options.revisions:
            return Move(REVISED_IN[self.name], replace(memory, unreadable_replies=replies, problem=reading.problem))
        if memory.redo_count < memory.options.redo:
            redone = replace(memory, unreadable_replies=(), redo_count=memory.redo_count + 1, redo_reply=replies[-1])
            return Move(self.name, redone)
        return Move(WITHDRAWN, memory)

    def _ask_reviser(self, memory: Memory) -> Request:
        request = self.build_request(replace(memory, entries=0))
        assert request is not None
        scene = memory.scene(mends=request.role, rejected=memory.unreadable_replies)
        form = prompting.form_of(request)
        data: dict[str, Any] = {"rejected": memory.unreadable_replies, "why": memory.problem, "form": form}
        return prompting.request_of("sg_fsm/revise", memory.options, scene, **data)


def states_of(*pairs: RevisedState) -> dict[str, State[Memory]]:
    """Return the states and their revisers by name, in order."""
    return {state.name: state for pair in pairs for state in pair.states}


DECOMPOSING = RevisedState(DECOMPOSE, _ask_decomposer, _read_decomposition, _after_decomposition, (SEARCH,))
SUMMARIZING = RevisedState(
    SUMMARIZE,
    _ask_summarizer,
    _read_summary,
    lambda memory, reading: Move(END, replace(memory, answer=reading.value["answer"])),
    (END,),
)
_FIRST = states_of(
    DECOMPOSING,
    RevisedState(SEARCH, ask_searcher, read_finding, after_search, (TERMINATE, DONE)),
    RevisedState(TERMINATE, ask_terminator, read_decision, after_decision, (DECOMPOSE, DONE)),
)
_TO_SUMMARY: State[Memory] = State(DONE, frozenset((SUMMARIZE,)), lambda memory, _: Move(SUMMARIZE, memory))


def _machine(states: Mapping[str, State[Memory]], end: str) -> Machine[Memory]:
    ends = {end: ANSWERED, WITHDRAWN: WITHDREW}
    return Machine(states, ends, lambda memory: memory.entries, lambda memory: memory.best, titles=TITLES)


SINGLE_TURN = _machine(_FIRST, DONE)
TWO = _machine({**_FIRST, DONE: _TO_SUMMARY, **states_of(SUMMARIZING)}, END)
"""The machines of SG-FSM1 and SG-FSM2."""


def start(question: Question, options: prompting.MachineOptions) -> Memory:
    """Return the memory with which a machine starts on a question."""
    return Memory(question, options, question.question, getattr(options, "terminator", None))


class SgFsm(MachineMethod[Memory]):
    """The method without a guard."""

    def prompts_of(self, options: SgFsmOptions) -> tuple[str, ...]:
        """Return the names of the prompt files that these options use."""
        form = options.terminator
        variants = {"sg_fsm/decompose": f"sg_fsm/{INFORMED}", "sg_fsm/terminate": f"sg_fsm/{form}"} if form else {}
        return tuple(variants.get(name, name) for name in self.prompts)


SG_FSM1 = SgFsm("sg_fsm1", "SG-FSM1", SINGLE_TURN, start, PROMPTS[:-1], SgFsmOptions)
SG_FSM2 = SgFsm("sg_fsm2", "SG-FSM2", TWO, start, PROMPTS, SgFsmOptions)
