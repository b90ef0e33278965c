"""SG-FSM: a question is taken apart, searched for, decided upon and summed up by a machine.

Section 3.2 and our decisions: a reply that could not be read is revised, twice at most, and then
the question is withdrawn with a blank; so is one that enters q0 a seventh time.
``sg_fsm1`` ends with the Terminator's answer, else what was found last. ``sg_fsm2`` does the same,
word for word, so that its calls are in the cache, and has all of it checked once more (q6).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from safe_stepwise.engines.client import Client
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
from safe_stepwise.methods.machine import Machine, Move, State, drive
from safe_stepwise.methods.memory import Memory
from safe_stepwise.methods.prompting import Iterating
from safe_stepwise.methods.reading import Reading
from safe_stepwise.records import ANSWERED, Question, Trajectory

_FIRST = (
    DECOMPOSING,
    Asking(SEARCH, ask_searcher, read_find, after_search, frozenset((TERMINATE, DONE))),
    Asking(TERMINATE, ask_terminator, read_decision, after_decision, frozenset((DECOMPOSE, DONE))),
)


def _passed_on(memory: Memory, _: Reading) -> Move[Memory]:
    return Move(SUMMARIZE, memory)


_PASSING_ON = State(DONE, frozenset((SUMMARIZE,)), _passed_on)


def _machine(states: Mapping[str, State[Memory]], end: str) -> Machine[Memory]:
    return Machine(
        states,
        {end: ANSWERED, WITHDRAWN: WITHDREW},
        number=lambda memory: memory.entries,
        answer=lambda memory: memory.best,
        titles=TITLES,
    )


ONE = _machine(states_of(*_FIRST), DONE)
TWO = _machine({**states_of(*_FIRST), DONE: _PASSING_ON, **states_of(SUMMARIZING)}, END)
"""The two stages' machines."""


@dataclass
class SgFsm:
    """A stage of SG-FSM; one model plays all roles."""

    name: str
    title: str
    machine: Machine[Memory]
    prompts: tuple[str, ...] = PROMPTS
    roles: tuple[str, ...] = (GENERATOR,)
    options = Iterating

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Iterating) -> Trajectory:
        """Everything that was done to answer one question."""
        start = Memory.of(question, options)
        return await drive(self.machine, start, clients, question.id, self.name)


SG_FSM1 = SgFsm("sg_fsm1", "SG-FSM1", ONE, PROMPTS[:-1])
SG_FSM2 = SgFsm("sg_fsm2", "SG-FSM2", TWO)
