"""What SG-FSM's machines do in their states (section 3): ask, read, and remember.

Of a question the machine knows how it stands now, the sub-question that it asks, and what was found
before. All of this is pure; `machine.drive` asks.

======  ==========  ==============================================================================
state   role        where it leads
======  ==========  ==============================================================================
q0      decompose   q2, or q1 if it could not be read, or q7 once it was entered too often
q2      search      q4, or q5 if the question was simple, or q3 if it could not be read
q4      terminate   q0 to go on, or q5, or q4r if it could not be read
q6      summarize   the end, or q6r if it could not be read
q1, q3  revise      what q0, q2 lead to; once more; or q7, or back where a redo is left
======  ==========  ==============================================================================

The paper has no state that revises what q4 and q6 say: ``q4r`` and ``q6r`` are ours.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from safe_stepwise.engines.base import Request
from safe_stepwise.methods.asking import SHOWN, answer_fields, form_of, request_of, texts_of
from safe_stepwise.methods.machine import UNASKED, Move, State
from safe_stepwise.methods.memory import Memory, remarks
from safe_stepwise.methods.reading import (
    FieldReader,
    Reading,
    flag,
    maybe_words,
    number_of,
    read,
    sentences,
    triple,
    words,
)
from safe_stepwise.methods.scene import Found
from safe_stepwise.records import Passage

DECOMPOSE, SEARCH, TERMINATE, SUMMARIZE = "q0", "q2", "q4", "q6"
REVISED_IN = {DECOMPOSE: "q1", SEARCH: "q3", TERMINATE: "q4r", SUMMARIZE: "q6r"}
"""Where the reply of a state is put right."""
DONE, WITHDRAWN, END = "q5", "q7", "end"
"""The ends: of SG-FSM1, of a question given up, and of SG-FSM2, whose q6 still asks."""
WITHDREW = "withdrawn"
"""The stop reason of a question that was given up."""
TITLES = {
    "q0": "Decompose",
    "q1": "Revise",
    "q2": "Search",
    "q3": "Revise",
    "q4": "Terminate",
    "q4r": "Revise",
    "q5": "Done",
    "q6": "Summarize",
    "q6r": "Revise",
    "q7": "Withdraw",
}
PROMPTS = tuple(f"sg_fsm/{name}" for name in ("decompose", "search", "revise", "terminate", "summarize"))


def _faults(memory: Memory) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [(text, remarks(said)) for text, said in memory.faults]


# ---------------------------------------------------------------- what is asked


def ask_decomposer(memory: Memory) -> Request | None:
    """Nobody once there were as many iterations as may be."""
    if memory.entries >= memory.options.iterations:
        return None
    memory = replace(memory, subquestion="")
    return request_of(
        "sg_fsm/decompose",
        memory.options,
        memory.scene(),
        question=memory.current,
        faults=_faults(memory),
        refused=memory.refused,
    )


def ask_searcher(memory: Memory) -> Request:
    return request_of(
        "sg_fsm/search",
        memory.options,
        memory.scene(),
        passages=memory.question.passages,
        found=[asdict(one) for one in memory.found],
        question=memory.subquestion,
        faults=_faults(memory),
        refused=memory.refused,
    )


def ask_terminator(memory: Memory) -> Request:
    return request_of(
        "sg_fsm/terminate",
        memory.options,
        memory.scene(),
        original=memory.question.question,
        found=[asdict(one) for one in memory.found],
        question=memory.current,
        refused=memory.refused,
    )


def ask_summarizer(memory: Memory) -> Request:
    memory = replace(memory, answer=memory.best)
    return request_of(
        "sg_fsm/summarize",
        memory.options,
        memory.scene(),
        passages=cited(memory),
        found=[asdict(one) for one in memory.found],
        question=memory.question.question,
        answer=memory.answer,
        refused=memory.refused,
    )


def cited(memory: Memory) -> list[tuple[int, Passage]]:
    """The passages that something was found in, by number."""
    numbers = sorted({one.passage for one in memory.found})
    return [(number, memory.question.passages[number - 1]) for number in numbers]


# ---------------------------------------------------------------- what is read


def read_decomposition(memory: Memory, text: str) -> Reading:
    """Compound questions need a first question."""
    reading = read(text, {"simple": flag, "subquestion": maybe_words}, _questions(memory))
    if reading.is_strict and not reading.value["simple"] and not reading.value["subquestion"]:
        return replace(reading, form="unreadable", value={}, why="subquestion: it is missing")
    return reading


def read_find(memory: Memory, text: str) -> Reading:
    passages = memory.question.passages
    fields: dict[str, FieldReader] = {"answer": words, "passage": number_of(passages), "question": words}
    if memory.options.evidence:
        fields |= {"sentences": sentences, "evidence": triple}
    reading = read(text, fields, [*texts_of(passages), *_questions(memory)])
    value = reading.value
    if reading.is_strict and memory.options.evidence:
        last = len(passages[value["passage"] - 1].sentences) - 1
        if any(number > last for number in value["sentences"]):
            why = f"sentences: passage {value['passage']} has none beyond {last}"
            return replace(reading, form="unreadable", value={}, why=why)
    return reading


def read_decision(memory: Memory, text: str) -> Reading:
    fields: dict[str, FieldReader] = {"continue": flag, "question": maybe_words, "answer": maybe_words}
    reading = read(text, fields, _questions(memory))
    if reading.is_strict and reading.value["continue"] and not reading.value["question"]:
        return replace(reading, form="unreadable", value={}, why="question: it is missing")
    return reading


def read_summary(memory: Memory, text: str) -> Reading:
    passages, evidence = memory.question.passages, memory.options.evidence
    fields = answer_fields(passages, evidence, "explain" if evidence else "reason")
    shown = [page for _, page in cited(memory)]
    return read(text, fields, [*texts_of(shown), *_questions(memory)])


def _questions(memory: Memory) -> list[str]:
    """What else a request quotes: questions, answers, verdicts."""
    found = [text for one in memory.found for text in (one.question, one.answer)]
    said = [text for _, one in memory.faults for text in (one.diagnosis, one.guidance)]
    return [memory.question.question, memory.current, memory.subquestion, *found, *said]


# ---------------------------------------------------------------- where that leads


def after_decomposition(memory: Memory, reading: Reading) -> Move[Memory]:
    """A simple question is searched for as it stands."""
    is_simple = reading.value["simple"]
    asked = memory.current if is_simple else reading.value["subquestion"]
    after = replace(memory, is_simple=is_simple, subquestion=asked)
    return Move(SEARCH, replace(after, faults=(), avoided=memory.faults))


def found_in(memory: Memory, reading: Reading) -> Found:
    """What a search came to; it is the sub-question asked that counts, not how it is repeated."""
    value = reading.value
    return Found(
        memory.subquestion,
        value["passage"],
        value["answer"],
        tuple(value.get("sentences", ())),
        tuple(value.get("evidence", ())),
    )


def after_search(memory: Memory, reading: Reading) -> Move[Memory]:
    found = (*memory.found, found_in(memory, reading))
    to = DONE if memory.is_simple else TERMINATE
    return Move(to, replace(memory, found=found))


def after_decision(memory: Memory, reading: Reading) -> Move[Memory]:
    value = reading.value
    current = value["question"] or memory.current
    if value["continue"]:
        return Move(DECOMPOSE, replace(memory, current=current))
    return Move(DONE, replace(memory, current=current, answer=value["answer"] or memory.best))


def after_summary(memory: Memory, reading: Reading) -> Move[Memory]:
    return Move(END, replace(memory, answer=reading.value["answer"]))


# ---------------------------------------------------------------- states and their revising


@dataclass(frozen=True, slots=True)
class Asking:
    """A state that asks, and the one that puts its replies right (section 3.5).

    After ``options.revisions`` tries in vain the question is withdrawn, unless a redo is left.
    """

    name: str
    ask: Callable[[Memory], Request | None]
    reads: Callable[[Memory, str], Reading]
    after: Callable[[Memory, Reading], Move[Memory]]
    leads_to: frozenset[str]

    @property
    def states(self) -> tuple[State[Memory], State[Memory]]:
        """Both of them."""
        reviser = REVISED_IN[self.name]
        edges = self.leads_to | {reviser, WITHDRAWN, self.name}
        return (
            State(self.name, edges, self._moved_first, self.ask, self.reads),
            State(reviser, edges, self._moved, self._revising, self._reread),
        )

    def _moved_first(self, memory: Memory, reading: Reading) -> Move[Memory]:
        if reading is UNASKED:
            return Move(WITHDRAWN, memory)
        entered = self.name == DECOMPOSE
        return self._moved(replace(memory, entries=memory.entries + entered), reading)

    def _moved(self, memory: Memory, reading: Reading) -> Move[Memory]:
        if reading.is_strict:
            fresh = replace(memory, rejected=(), why="", redone=0, refused="")
            return self.after(fresh, reading)
        rejected = (*memory.rejected, reading.text[:SHOWN])
        if len(rejected) <= memory.options.revisions:
            revised_in = REVISED_IN[self.name]
            return Move(revised_in, replace(memory, rejected=rejected, why=reading.why))
        if memory.redone < memory.options.redo:
            redone = memory.redone + 1
            shown = replace(memory, rejected=(), redone=redone, refused=rejected[-1])
            return Move(self.name, shown)
        return Move(WITHDRAWN, memory)

    def _revising(self, memory: Memory) -> Request:
        asked = self.ask(replace(memory, entries=0))
        assert asked is not None
        return request_of(
            "sg_fsm/revise",
            memory.options,
            memory.scene(mends=asked.role, rejected=memory.rejected),
            rejected=memory.rejected,
            why=memory.why,
            form=form_of(asked),
        )

    def _reread(self, memory: Memory, text: str) -> Reading:
        return replace(self.reads(memory, text), revises=self.name)


DECOMPOSING = Asking(DECOMPOSE, ask_decomposer, read_decomposition, after_decomposition, frozenset((SEARCH,)))
SUMMARIZING = Asking(SUMMARIZE, ask_summarizer, read_summary, after_summary, frozenset((END,)))


def states_of(*several: Asking) -> dict[str, State[Memory]]:
    """Their states by name, in the order given."""
    return {state.name: state for asking in several for state in asking.states}
