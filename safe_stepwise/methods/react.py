"""Thought, action and observation in turn (ReAct, Yao et al., 2022; SG-FSM, appendix A.3).

The environment is real: what a model observes is what its action brings from the question's
passages (`library`). A model never writes an observation: where it goes on behind its action, the
engine stops it, and a reply that goes on all the same is told so and takes none. A machine of one
state, ``act``.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import Client
from safe_stepwise.methods.asking import GENERATOR, answer_fields, request_of
from safe_stepwise.methods.library import Library
from safe_stepwise.methods.machine import Machine, Move, State, drive
from safe_stepwise.methods.prompting import Prompting
from safe_stepwise.methods.reading import Form, Reading, read, reason, words
from safe_stepwise.methods.scene import AskedScene
from safe_stepwise.records import ANSWERED, Question, Trajectory
from safe_stepwise.store.planted import is_copied

ACT, END, UNFINISHED = "act", "end", "unfinished"
"""Its state and its two ends, the latter of which is a stop reason, too."""
SEARCH, LOOKUP, FINISH = "Search", "Lookup", "Finish"
_STOP = ("\nObservation", "\nobservation")
_HEAD = r"[ \t]*+[0-9]*+[ \t*_]*+:[ \t*_]*+"
# Possessive throughout: no run of spaces is looked at twice.
_ACTION = re.compile(rf"^[ \t*_>#-]*+action{_HEAD}(search|lookup|finish)[ \t]*+\[", re.IGNORECASE | re.MULTILINE)
_GOES_ON = re.compile(rf"^[ \t*_>#-]*+(?:observation|thought|action){_HEAD}", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(rf"^[\s*_>#-]*+thought{_HEAD}", re.IGNORECASE)
_TOLD = "No action could be read in the reply: {why}. Write one thought and one action alone."


@dataclass(frozen=True, slots=True)
class Turns(Prompting):
    """``max_steps``: turns, the last of which can but finish."""

    max_steps: int = 10

    def __post_init__(self) -> None:
        super(Turns, self).__post_init__()
        if self.max_steps < 1:
            raise ValueError("max_steps has to be 1 or more")


@dataclass(frozen=True, slots=True)
class Turn:
    """What was thought, done and observed; ``rejected`` where nothing could be read."""

    thought: str
    action: str
    observation: str
    rejected: str = ""


@dataclass(frozen=True, slots=True)
class Doing:
    """A question under way."""

    question: Question
    options: Turns
    library: Library
    turns: tuple[Turn, ...] = ()
    answer: str = ""


def read_turn(text: str, doing: Doing) -> Reading:
    """The one action of a reply, its argument, and the thought before it.

    Strict where nothing stands behind the action; an action that stands in an observation is none,
    and none is one that a reasoning model but weighed, before ``</think>``.
    """
    text = text.rpartition("</think>")[2]
    first = _ACTION.search(text)
    if first is None:
        return Reading("unreadable", {}, "no line opens with Action: and Search, Lookup or Finish")
    rest = text[first.end() :]
    further = _GOES_ON.search(rest)
    body = rest[: further.start()] if further else rest
    name = next(n for n in (SEARCH, LOOKUP, FINISH) if n.lower() == first[1].lower())
    is_json = name == FINISH and doing.options.evidence
    line, _, below = (body, "", "") if is_json else body.partition("\n")
    argument, closing, behind = line.rpartition("]")
    if not closing:
        return Reading("unreadable", {}, "the action has no closing bracket")
    if is_copied({"Action": f"{name}[{argument}]"}, _quoted(doing)):
        return Reading("unreadable", {}, "the action is one that was quoted to you")
    thought = reason(_THOUGHT.sub("", text[: first.start()]), True)
    said = {"action": name, "argument": argument.strip(), "thought": thought}
    after = rest[further.start() :] if further else ""
    is_more = f"{behind}{below}".strip("` \t\r\n*_.") or after.strip()
    return _argument_read(said, doing, "something stands behind the action" if is_more else "")


def _quoted(doing: Doing) -> list[str]:
    return [*(turn.observation for turn in doing.turns), doing.question.question]


def _argument_read(said: dict[str, str], doing: Doing, why: str) -> Reading:
    form: Form = "salvaged" if why else "strict"
    if said["action"] != FINISH or not doing.options.evidence:
        try:
            value = said | {"argument": words(said["argument"], False)}
        except ValueError as error:
            return Reading("unreadable", {}, f"what stands in the brackets: {error}")
        answer = {"answer": value["argument"]} if said["action"] == FINISH else {}
        return Reading(form, value | answer, why)
    fields = answer_fields(doing.question.passages, True)
    del fields["explain"]
    found = read(said["argument"], fields, _quoted(doing))
    if not found.value:
        return found
    form = form if found.is_strict else found.form
    return Reading(form, {**said, "argument": "", **found.value}, found.why or why)


def _asked(doing: Doing) -> Request:
    is_last = len(doing.turns) + 1 >= doing.options.max_steps
    turns = tuple((turn.action, turn.observation) for turn in doing.turns)
    request = request_of(
        "react/react",
        doing.options,
        AskedScene(doing.question, doing.options.evidence, turns=turns),
        question=doing.question.question,
        turns=[asdict(turn) for turn in doing.turns],
        is_last=is_last,
    )
    return replace(request, sampling=replace(request.sampling, stop=_STOP))


def _moved(doing: Doing, reading: Reading) -> Move[Doing]:
    said, library = reading.value, doing.library
    if reading.is_strict and said["action"] == FINISH:
        turn = Turn(said["thought"], f"{FINISH}[{json.dumps(said['answer'])}]", "")
        return Move(END, replace(doing, turns=(*doing.turns, turn), answer=said["answer"]))
    if reading.is_strict:
        look = library.search if said["action"] == SEARCH else library.look_up
        observed, library = look(said["argument"])
        turn = Turn(said["thought"], f"{said['action']}[{said['argument']}]", observed)
    else:
        turn = Turn("", "", _TOLD.format(why=reading.why), reason(reading.text, True))
    doing = replace(doing, turns=(*doing.turns, turn), library=library)
    return Move(ACT if len(doing.turns) < doing.options.max_steps else UNFINISHED, doing)


MACHINE = Machine(
    {ACT: State(ACT, frozenset((ACT, END, UNFINISHED)), _moved, _asked, lambda doing, text: read_turn(text, doing))},
    {END: ANSWERED, UNFINISHED: UNFINISHED},
    number=lambda doing: len(doing.turns),
    answer=lambda doing: doing.answer,
)


@dataclass
class React:
    """A model that looks things up in the passages."""

    name: str = "react"
    title: str = "ReAct"
    roles: tuple[str, ...] = (GENERATOR,)
    prompts: tuple[str, ...] = ("react/react",)
    options = Turns
    machine = MACHINE

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Turns) -> Trajectory:
        """Everything that was done to answer one question."""
        start = Doing(question, options, Library(question.passages, options.evidence))
        return await drive(MACHINE, start, clients, question.id, self.name)


REACT = React()
