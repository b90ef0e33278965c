"""Run a finite-state machine that asks models, described as data: its states, edges and ends.

Each state has a request, a parser of the reply, and a move. A move is a pure function from memory and reading to the
next state and memory. The driver asks the models. It refuses an edge that the state does not declare, so no reply can
take a machine to an unintended state.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from safe_stepwise.engines.base import Completion, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.methods.reading import END, UNREADABLE, Reading, attempt_of, read, reason, wait_for_end, words
from safe_stepwise.records import ANSWERED, Attempt, Passage, Question, Step, Trajectory
from safe_stepwise.taxonomy import CORRECT

M = TypeVar("M")
"""The type of a machine's memory, which is frozen."""
UNASKED = Reading("strict")
"""The reading in a state without a request."""
MAX_MOVES = 10_000
"""The maximum number of moves for one question, far above what a machine needs."""


class MachineError(RuntimeError):
    """A machine breaks its own declaration: a fault of the program, not of a model."""


class Move(NamedTuple, Generic[M]):
    """The target state and memory after a reading; ``retrieved`` are passages that the move adds to the question's."""

    target: str
    memory: M
    retrieved: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class State(Generic[M]):
    """One state. If ``build_request`` returns None, no model is asked and the machine moves with `UNASKED`."""

    name: str
    edges: frozenset[str]
    """The names of the states and ends that the state may lead to."""
    move: Callable[[M, Reading], Move[M]]
    build_request: Callable[[M], Request | None] = lambda _: None
    read: Callable[[M, str], Reading] = lambda _, text: Reading("strict", {}, text=text)
    player: str = "generator"


@dataclass(frozen=True)
class Machine(Generic[M]):
    """A machine: its states by name, which starts in the first, and its ends.

    From a memory, ``number`` returns the number of the current step (from 1), ``answer`` the answer of a question that
    ended with ``answered``, and ``steps`` the accepted steps.
    """

    states: Mapping[str, State[M]]
    ends: Mapping[str, str]
    """The stop reason of each end, by the end's name."""
    number: Callable[[M], int]
    answer: Callable[[M], str] = attrgetter("answer")
    steps: Callable[[M], tuple[Step, ...]] = lambda _: ()
    titles: Mapping[str, str] = field(default_factory=dict)
    """Readable titles of states, by name."""

    def __post_init__(self) -> None:
        names = {*self.states, *self.ends}
        for name, state in self.states.items():
            if name != state.name or name in self.ends or not state.edges <= names:
                raise MachineError(f"state {name} is misnamed, an end, or leads to nowhere")

    @property
    def start(self) -> str:
        return next(iter(self.states))

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All declared edges, by state, and sorted within a state."""
        return [(name, target) for name, state in self.states.items() for target in sorted(state.edges)]


ANSWER_ENDS: Mapping[str, str] = {END: ANSWERED, UNREADABLE: UNREADABLE}
"""The ends of a machine whose last state is that of `answering_state`."""


def answering_state(
    name: str, build_request: Callable[[M], Request | None], list_quoted: Callable[[M], Sequence[str]]
) -> State[M]:
    """Make the state whose strict reply is the answer; ``list_quoted`` lists the texts that its request quotes."""

    def read_answer(memory: M, text: str) -> Reading:
        return read(text, {"answer": words, "explain": reason}, list_quoted(memory), last="answer")

    def take_answer(memory: M, reading: Reading) -> Move[M]:
        if not reading.is_strict:
            return Move(UNREADABLE, memory)
        return Move(END, replace(memory, answer=reading.value["answer"]))  # type: ignore[type-var]

    return State(name, frozenset(ANSWER_ENDS), take_answer, build_request, read_answer)


@dataclass
class _Run(Generic[M]):
    machine: Machine[M]
    memory: M
    state_name: str
    attempts: list[Attempt] = field(default_factory=list)

    async def to_the_end(self, clients: Mapping[str, Client]) -> str:
        for _ in range(MAX_MOVES):
            if self.state_name in self.machine.ends:
                return self.machine.ends[self.state_name]
            await self._move(self.machine.states[self.state_name], clients)
        raise MachineError(f"no end after {MAX_MOVES:,} moves, at {self.state_name}")

    async def _move(self, state: State[M], clients: Mapping[str, Client]) -> None:
        request, replies, reading = state.build_request(self.memory), dict[str, Completion](), UNASKED
        if request is not None:
            reply = replies[state.player] = await clients[state.player].complete(request)
            reading = state.read(self.memory, reply.text).with_reply(reply)
        target, self.memory, retrieved = state.move(self.memory, reading)
        verdict = reading.feedback
        if target not in state.edges:
            raise MachineError(f"{state.name} has no edge to {target}, only to {sorted(state.edges)}")
        attempt = attempt_of(max(1, self.machine.number(self.memory)), state.name, target, reading, replies)
        is_sound = verdict is None or verdict.error_type == CORRECT
        read = attempt.read if request is not None else None
        self.attempts.append(replace(attempt, accepted=attempt.accepted and is_sound, retrieved=retrieved, read=read))
        self.state_name = target


async def drive(
    machine: Machine[M], memory: M, clients: Mapping[str, Client], question_id: str, method: str
) -> Trajectory:
    """Run a machine on a question; a failed request ends it, an undeclared edge raises ``MachineError``."""
    run = _Run(machine, memory, machine.start)
    stop, failure = await wait_for_end(run.to_the_end(clients))
    answer = machine.answer(run.memory) if stop == ANSWERED else ""
    return Trajectory(question_id, method, machine.steps(run.memory), tuple(run.attempts), answer, stop, failure)


def replay(
    machine: Machine[M], memory: M, attempts: Iterable[Attempt]
) -> Iterator[tuple[State[M], Request | None, Attempt]]:
    """Yield an earlier run's attempts with state and request; raises ``MachineError`` for one that does not follow."""
    for attempt in attempts:
        if (state := machine.states.get(attempt.state)) is None:
            raise MachineError(f"there is no state {attempt.state}")
        request = state.build_request(memory)
        reading = UNASKED if request is None else replace(state.read(memory, attempt.text), text=attempt.text)
        target, memory, _ = state.move(memory, reading)
        if target != attempt.next_state or attempt.retrieved:
            raise MachineError(f"{attempt.state} leads to {target}, not to {attempt.next_state} as recorded")
        yield state, request, attempt


@dataclass
class MachineMethod(Generic[M]):
    """A method that drives a machine, whose first memory ``start_memory`` makes from a question and the options."""

    name: str
    title: str
    machine: Machine[M]
    start_memory: Callable[[Question, Any], M]
    prompts: tuple[str, ...]
    options: type[Any]
    roles: tuple[str, ...] = ("generator",)

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Any) -> Trajectory:
        memory = self.start_memory(question, options)
        return await drive(self.machine, memory, clients, question.id, self.name)
