"""A finite-state machine that asks models, as data: its states, their edges, its ends.

For each state: what is asked there, how the reply is read, and where that leads. A move is pure: it makes the next
state and the next memory from the memory and the reading, and asks nobody. The driver does all else, and refuses an
edge that its state does not declare: no reply, whatever it says, can take a machine where it was not meant to go.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from safe_stepwise.engines.base import Completion, EngineError, Request, collect_thoughts
from safe_stepwise.methods.reading import Reading
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Passage, Step, Trajectory
from safe_stepwise.taxonomy import CORRECT

M = TypeVar("M")
"""A machine's memory: frozen, so that whoever holds one knows what it will always say."""
UNASKED = Reading("strict")
"""What a state reads that asks nobody."""
MAX_MOVES = 10_000
"""Of one question; a machine has to bound itself well below that."""


class MachineError(RuntimeError):
    """A machine does what it says it never does: a fault of ours, whatever a model said."""


class Move(NamedTuple, Generic[M]):
    """The target state and memory after a reading; ``retrieved`` are passages that it brought in."""

    target: str
    memory: M
    retrieved: tuple[Passage, ...] = ()


class Replier(Protocol):
    """The part of a client that the driver needs."""

    async def complete(self, request: Request) -> Completion:
        """The completion of one request; raises ``EngineError`` when every try failed."""


@dataclass(frozen=True, slots=True)
class State(Generic[M]):
    """One state. Where ``build_request`` makes no request, nobody is asked and the machine moves on."""

    name: str
    edges: frozenset[str]
    """Where it may lead."""
    move: Callable[[M, Reading], Move[M]]
    build_request: Callable[[M], Request | None] = lambda _: None
    read: Callable[[M, str], Reading] = lambda _, text: Reading("strict", {}, text=text)
    player: str = "generator"


@dataclass(frozen=True)
class Machine(Generic[M]):
    """States by name, of which the first one starts, and how each end is called.

    ``number``: the step that a memory is at, from 1. ``answer``: what a memory comes to
    that ended with the stop reason ``answered``; ``steps``: those that it accepted.
    """

    states: Mapping[str, State[M]]
    ends: Mapping[str, str]
    """Stop reasons by the name of the state that ends it."""
    number: Callable[[M], int]
    answer: Callable[[M], str]
    steps: Callable[[M], tuple[Step, ...]] = lambda _: ()
    titles: Mapping[str, str] = field(default_factory=dict)
    """What a state is called for a reader, where its name does not say it."""

    def __post_init__(self) -> None:
        names = {*self.states, *self.ends}
        for name, state in self.states.items():
            if name != state.name or name in self.ends or not state.edges <= names:
                raise MachineError(f"state {name} is misnamed, an end, or leads to nowhere")

    @property
    def start(self) -> str:
        """The state that a question starts in."""
        return next(iter(self.states))

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All edges that it declares, state by state, those of a state by the alphabet."""
        return [(name, target) for name, state in self.states.items() for target in sorted(state.edges)]


@dataclass
class _Run(Generic[M]):
    machine: Machine[M]
    memory: M
    state_name: str
    attempts: list[Attempt] = field(default_factory=list)

    async def to_the_end(self, clients: Mapping[str, Replier]) -> str:
        for _ in range(MAX_MOVES):
            if self.state_name in self.machine.ends:
                return self.machine.ends[self.state_name]
            await self._move(self.machine.states[self.state_name], clients)
        raise MachineError(f"no end after {MAX_MOVES:,} moves, at {self.state_name}")

    async def _move(self, state: State[M], clients: Mapping[str, Replier]) -> None:
        request, replies, reading = state.build_request(self.memory), dict[str, Completion](), UNASKED
        if request is not None:
            reply = replies[state.player] = await clients[state.player].complete(request)
            reading = state.read(self.memory, reply.text).with_reply(reply)
        target, self.memory, retrieved = state.move(self.memory, reading)
        verdict = reading.feedback
        if target not in state.edges:
            raise MachineError(f"{state.name} has no edge to {target}, only to {sorted(state.edges)}")
        self.attempts.append(
            Attempt(
                max(1, self.machine.number(self.memory)),
                reading.text,
                verdict,
                accepted=reading.is_strict and (verdict is None or verdict.error_type == CORRECT),
                usage={role: reply.usage for role, reply in replies.items()},
                retrieved=retrieved,
                state=state.name,
                read=reading.plain if request is not None else None,
                next_state=target,
                thoughts=collect_thoughts(replies),
            )
        )
        self.state_name = target


async def drive(
    machine: Machine[M], memory: M, clients: Mapping[str, Replier], question_id: str, method: str
) -> Trajectory:
    """Everything that a machine did to answer one question, a move an attempt.

    One that asked nobody has no usage. A request that fails for good ends it: ``failed``. Raises
    `MachineError` for an edge that is not declared.
    """
    run, failure = _Run(machine, memory, machine.start), ""
    try:
        stop = await run.to_the_end(clients)
    except EngineError as error:
        stop, failure = FAILED, str(error)
    return Trajectory(
        question_id=question_id,
        method=method,
        steps=machine.steps(run.memory),
        attempts=tuple(run.attempts),
        answer=machine.answer(run.memory) if stop == ANSWERED else "",
        stop_reason=stop,
        failure=failure,
    )
