"""Runs a finite-state machine that asks models, described as data: its states, edges and ends.

Each state has a request, a parser of the reply, and a move. A move is pure: it maps memory and reading to the next
state and memory. The driver asks the models, and refuses an edge that the state does not declare, so that no reply can
take a machine to an unintended state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.methods.reading import Reading, attempt_of
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Passage, Question, Step, Trajectory
from safe_stepwise.taxonomy import CORRECT

M = TypeVar("M")
"""The type of a machine's memory, which is frozen."""
UNASKED = Reading("strict")
"""The reading of a state that asks nobody."""
MAX_MOVES = 10_000
"""Maximum moves for one question; a machine must end well before."""


class MachineError(RuntimeError):
    """A machine breaks its own declaration: a fault of the program, not of a model."""


class Move(NamedTuple, Generic[M]):
    """The target state and memory after a reading; ``retrieved`` are passages that it brought in."""

    target: str
    memory: M
    retrieved: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class State(Generic[M]):
    """One state. If ``build_request`` returns None, nobody is asked and the machine moves on."""

    name: str
    edges: frozenset[str]
    """The names of the states and ends that it may lead to."""
    move: Callable[[M, Reading], Move[M]]
    build_request: Callable[[M], Request | None] = lambda _: None
    read: Callable[[M, str], Reading] = lambda _, text: Reading("strict", {}, text=text)
    player: str = "generator"


@dataclass(frozen=True)
class Machine(Generic[M]):
    """A machine: its states by name, the first of which starts, and its ends.

    From a memory, ``number`` returns the current step (from 1), ``answer`` the answer of a question that ended with
    ``answered``, and ``steps`` the accepted steps.
    """

    states: Mapping[str, State[M]]
    ends: Mapping[str, str]
    """Stop reasons by the name of the state that ends it."""
    number: Callable[[M], int]
    answer: Callable[[M], str]
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
    """Run a machine on one question and return its trajectory, with one attempt for each move.

    An attempt that asked nobody has no usage. A request that fails for good ends the question with ``failed``. Raises
    ``MachineError`` for an undeclared edge.
    """
    run, failure = _Run(machine, memory, machine.start), ""
    try:
        stop = await run.to_the_end(clients)
    except EngineError as error:
        stop, failure = FAILED, str(error)
    answer = machine.answer(run.memory) if stop == ANSWERED else ""
    return Trajectory(question_id, method, machine.steps(run.memory), tuple(run.attempts), answer, stop, failure)


@dataclass
class MachineMethod(Generic[M]):
    """A method that drives a machine; ``remember`` makes its first memory of a question and the options."""

    name: str
    title: str
    machine: Machine[M]
    remember: Callable[[Question, Any], M]
    prompts: tuple[str, ...]
    options: type[Any]
    roles: tuple[str, ...] = ("generator",)

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Any) -> Trajectory:
        """Answer one question and return its trajectory."""
        return await drive(self.machine, self.remember(question, options), clients, question.id, self.name)
