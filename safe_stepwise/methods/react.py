"""ReAct: a model thinks, acts (Search, Lookup, Finish) and observes in turns (Yao et al., 2022; SG-FSM, appendix A.3).

An observation is what an action retrieves from the question's passages (`SearchSession`); the model never writes one.
If it continues after its action, the engine stops it; a reply that continues all the same gets a remark instead of an
observation. The method is a machine (`methods.machine`) with one state, ``act``.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from safe_stepwise.engines.base import Request
from safe_stepwise.methods.machine import Machine, MachineMethod, Move, State
from safe_stepwise.methods.prompting import PromptingOptions, answer_fields, request_of
from safe_stepwise.methods.ranking import plain, rank, terms
from safe_stepwise.methods.reading import Form, Reading, read, reason
from safe_stepwise.methods.reading import words as read_words
from safe_stepwise.methods.scene import PromptingScene
from safe_stepwise.records import ANSWERED, Passage, Question
from safe_stepwise.store.replies import is_copied

MAX_TITLES = 5
"""The maximum number of titles that an observation lists if no passage matches a search."""


@dataclass(frozen=True, slots=True)
class SearchSession:
    """The passages to search, and how far the model has read them."""

    passages: tuple[Passage, ...]
    evidence: bool = False
    """Whether sentences are shown with their numbers, from 0."""
    current: int = 0
    """The number (from 1) of the passage that was retrieved last; 0 before the first search."""
    lookup_query: str = ""
    """The query of the last lookup in the current passage."""
    matches_read: int = 0
    """How many of the sentences that match ``lookup_query`` were returned."""

    def search(self, query: str) -> tuple[str, "SearchSession"]:
        """Retrieve the passage with that title, or else the one that shares most words with the query.

        >>> oru = Passage("Oru (town)", ("Oru lies on the Vel.", "Marn is near."))
        >>> session = SearchSession((Passage("Vel", ("A river.",)), oru))
        >>> session.search("oru")[0]
        'Passage 2, Oru (town): Oru lies on the Vel. Marn is near.'
        >>> session.search("Isk")[0]
        'No passage is about that. There are: Vel; Oru (town).'
        """
        ranked = rank(query, [page.title for page in self.passages], [page.text for page in self.passages])
        number = self._find_title(query) or (ranked[0] + 1 if ranked else 0)
        if not number:
            titles = "; ".join(page.title for page in self.passages[:MAX_TITLES])
            ellipsis = "; ..." if len(self.passages) > MAX_TITLES else ""
            return f"No passage is about that. There are: {titles}{ellipsis}.", self
        page = self.passages[number - 1]
        observation = f"Passage {number}, {page.title}: {self._render(range(len(page.sentences)), page)}"
        return observation, replace(self, current=number, lookup_query="", matches_read=0)

    def look_up(self, query: str) -> tuple[str, "SearchSession"]:
        """Return the next sentence of the current passage that has all words of the query."""
        if not self.current:
            return "No passage was brought yet: search for one first.", self
        page, query_terms = self.passages[self.current - 1], terms(query)
        matches = [n for n, text in enumerate(page.sentences) if query_terms and query_terms <= terms(text)]
        offset = self.matches_read if query_terms == terms(self.lookup_query) else 0
        if offset >= len(matches):
            noun = "more of these words" if matches else "sentence with these words"
            return f"Passage {self.current} has no {noun}.", self
        observation = f"{offset + 1} of {len(matches)}: {self._render(matches[offset : offset + 1], page)}"
        return observation, replace(self, lookup_query=query, matches_read=offset + 1)

    def _render(self, numbers: Sequence[int], page: Passage) -> str:
        texts = [(n, page.sentences[n].strip()) for n in numbers]
        return " ".join(f"[{n}] {text}" if self.evidence else text for n, text in texts)

    def _find_title(self, query: str) -> int:
        """Return the number of the passage with that title, perhaps without its part in brackets; 0 if none has it."""
        sought_title = plain(query)
        titles = [(n, page.title) for n, page in enumerate(self.passages, 1)]
        for form in (plain, lambda title: plain(title.partition(" (")[0])):
            if numbers := [n for n, title in titles if sought_title and form(title) == sought_title]:
                # Titles may repeat: a second search retrieves the next passage.
                later = [n for n in numbers if n > self.current]
                return later[0] if self.current in numbers and later else numbers[0]
        return 0


ACT, END, UNFINISHED = "act", "end", "unfinished"
"""The machine's state and its two ends; ``unfinished`` is also the stop reason if no turns are left."""
SEARCH, LOOKUP, FINISH = "Search", "Lookup", "Finish"
_STOP = ("\nObservation", "\nobservation")
_LABEL_END = r"[ \t]*+[0-9]*+[ \t*_]*+:[ \t*_]*+"
"""The rest of a label such as ``Action 2:``. Patterns are possessive: no run of spaces is looked at twice."""
_ACTION = re.compile(rf"^[ \t*_>#-]*+action{_LABEL_END}(search|lookup|finish)[ \t]*+\[", re.IGNORECASE | re.MULTILINE)
_LABEL = re.compile(rf"^[ \t*_>#-]*+(?:observation|thought|action){_LABEL_END}", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(rf"^[\s*_>#-]*+thought{_LABEL_END}", re.IGNORECASE)
_REJECTION = "No action could be read in the reply: {why}. Write one thought and one action alone."


@dataclass(frozen=True, slots=True)
class TurnOptions(PromptingOptions):
    """Options of ReAct; ``max_steps`` is the maximum number of turns, of which the last has to finish."""

    max_steps: int = 10

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise ValueError("max_steps has to be 1 or more")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: thought, action and observation, or the ``rejected`` reply with a remark as its observation."""

    thought: str
    action: str
    observation: str
    rejected: str = ""


@dataclass(frozen=True, slots=True)
class ReactMemory:
    """The machine's memory of a question: the state of the search, the turns so far, and the answer."""

    question: Question
    options: TurnOptions
    session: SearchSession
    turns: tuple[Turn, ...] = ()
    answer: str = ""


def read_turn(text: str, memory: ReactMemory) -> Reading:
    """Read a reply's action, argument and thought; strict if nothing follows, unreadable if it is copied."""
    if (action := _ACTION.search(text)) is None:
        return Reading("unreadable", {}, "no line opens with Action: and Search, Lookup or Finish")
    tail = text[action.end() :]
    next_label = _LABEL.search(tail)
    body = tail[: next_label.start()] if next_label else tail
    name = next(n for n in (SEARCH, LOOKUP, FINISH) if n.lower() == action[1].lower())
    is_json = name == FINISH and memory.options.evidence
    line, _, further_lines = (body, "", "") if is_json else body.partition("\n")
    argument, bracket, line_end = line.rpartition("]")
    if not bracket:
        return Reading("unreadable", {}, "the action has no closing bracket")
    if is_copied({"Action": f"{name}[{argument}]"}, _quoted_texts(memory)):
        return Reading("unreadable", {}, "the action is one that was quoted to you")
    thought = reason(_THOUGHT.sub("", text[: action.start()]), salvaging=True)
    fields = {"action": name, "argument": argument.strip(), "thought": thought}
    labelled = tail[next_label.start() :] if next_label else ""
    has_trailing_text = bool(f"{line_end}{further_lines}".strip("` \t\r\n*_.") or labelled.strip())
    return _read_argument(fields, memory, "something stands behind the action" if has_trailing_text else "")


def _quoted_texts(memory: ReactMemory) -> list[str]:
    return [*(turn.observation for turn in memory.turns), memory.question.question]


def _read_argument(turn_fields: dict[str, str], memory: ReactMemory, problem: str) -> Reading:
    """Read the action's argument, which is JSON if an answer with evidence was requested."""
    form: Form = "salvaged" if problem else "strict"
    if turn_fields["action"] != FINISH or not memory.options.evidence:
        try:
            value = turn_fields | {"argument": read_words(turn_fields["argument"], salvaging=False)}
        except ValueError as error:
            return Reading("unreadable", {}, f"what stands in the brackets: {error}")
        answer = {"answer": value["argument"]} if turn_fields["action"] == FINISH else {}
        return Reading(form, value | answer, problem)
    fields = answer_fields(memory.question.passages, evidence=True)
    del fields["explain"]
    argument = read(turn_fields["argument"], fields, _quoted_texts(memory))
    if not argument.value:
        return argument
    form = form if argument.is_strict else argument.form
    return Reading(form, {**turn_fields, "argument": "", **argument.value}, argument.problem or problem)


def _build_request(memory: ReactMemory) -> Request:
    turns = tuple((turn.action, turn.observation) for turn in memory.turns)
    request = request_of(
        "react/react",
        memory.options,
        PromptingScene(memory.question, memory.options.evidence, turns=turns),
        question=memory.question.question,
        turns=[asdict(turn) for turn in memory.turns],
        is_last=len(memory.turns) + 1 >= memory.options.max_steps,
    )
    return replace(request, sampling=replace(request.sampling, stop=_STOP))


def _move(memory: ReactMemory, reading: Reading) -> Move[ReactMemory]:
    fields, session = reading.value, memory.session
    if reading.is_strict and fields["action"] == FINISH:
        turn = Turn(fields["thought"], f"{FINISH}[{json.dumps(fields['answer'])}]", "")
        return Move(END, replace(memory, turns=(*memory.turns, turn), answer=fields["answer"]))
    if reading.is_strict:
        retrieve = session.search if fields["action"] == SEARCH else session.look_up
        observation, session = retrieve(fields["argument"])
        turn = Turn(fields["thought"], f"{fields['action']}[{fields['argument']}]", observation)
    else:
        turn = Turn("", "", _REJECTION.format(why=reading.problem), rejected=reason(reading.text, salvaging=True))
    memory = replace(memory, turns=(*memory.turns, turn), session=session)
    return Move(ACT if len(memory.turns) < memory.options.max_steps else UNFINISHED, memory)


MACHINE = Machine(
    {ACT: State(ACT, frozenset((ACT, END, UNFINISHED)), _move, _build_request, lambda m, text: read_turn(text, m))},
    {END: ANSWERED, UNFINISHED: UNFINISHED},
    number=lambda memory: len(memory.turns),
)


def _start(question: Question, options: TurnOptions) -> ReactMemory:
    return ReactMemory(question, options, SearchSession(question.passages, options.evidence))


REACT = MachineMethod("react", "ReAct", MACHINE, _start, ("react/react",), TurnOptions)
