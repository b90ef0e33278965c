"""Time that 1,000 questions take an engine of 256 slots: ours, the bound, and lock-step rounds.

    python -m tests.benchmarks.bench_loop
    python -m tests.benchmarks.bench_loop 200      # questions (default 1,000)

The loop runs as it is, on the mock engine and on a clock that jumps from event to event. A call
holds a slot for as long as its uncached prompt tokens and its output take. Compared are

- bound: the calls' time over the number of slots, as if they could be packed without a gap, and no
  less than the longest question takes alone, for its calls wait for each other (``later of both``);
- ours: questions advance on their own, by how many are under way;
- lock-step: all questions write a step, all wait, all steps are judged, all wait;
- lock-step, one verdict at a time: the same, judging one step after the other (the authors' code).

Replies are those of the simulated players of ``paper_profile``; lock-step rounds take the same
calls at the same cost, so the comparison is of scheduling alone.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import selectors
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import Latency, MockEngine, PrefixCache
from safe_stepwise.methods.generator import ROLE as GENERATES
from safe_stepwise.methods.loop import run_question
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import Question
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive
from tests.benchmarks.paper_profile import GENERATOR_ERRORS, VERIFIER_ERRORS, player, questions

SLOTS = 256
LATENCY = Latency(base=0.02, prefill=10_000, decode=40)
AT_ONCE = (64, 128, 256, 320, 512, 1000)
STUCK = 40
"""Calls of a question, beyond which it is one that uses up its rounds or nearly so."""
UNBOUNDED = 10**9
Call = tuple[str, float]
"""Who is asked, and the seconds that the call holds a slot."""


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time is that of its next timer: nothing is waited for."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        return self.now


class _Jump(selectors.SelectSelector):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("all wait and nothing is due")
        self._clock.now += max(0.0, timeout)
        return super().select(0)


def seconds(work: Coroutine[Any, Any, object]) -> float:
    """What some work takes by the clock that jumps."""
    clock = Clock()
    try:
        clock.run_until_complete(work)
        return clock.now
    finally:
        clock.close()


@dataclass
class Slotted:
    """An engine with so many slots, which keeps what each question's calls took."""

    engine: MockEngine
    calls: dict[str, list[Call]] = field(default_factory=dict)
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SLOTS))

    def __post_init__(self) -> None:
        self.identity, self.name, self.simulated = self.engine.identity, self.engine.name, True

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        (request,) = requests
        assert isinstance(request.scene, Scene)
        async with self.slots:
            (said,) = await self.engine.generate([request])
        assert isinstance(said, Completion)
        took = self.engine.latency.seconds(said.usage)
        self.calls.setdefault(request.scene.question.id, []).append((request.role, took))
        return [said]

    async def check(self) -> None: ...
    async def close(self) -> None: ...


def slotted() -> Slotted:
    """An engine for both roles, with a cache without end."""
    players = {GENERATES: player(GENERATOR_ERRORS), "verify": player(VERIFIER_ERRORS)}
    mock = MockEngine(
        lambda request: players.get(request.role, players[GENERATES])(request),
        latency=LATENCY,
        cache=PrefixCache(blocks=UNBOUNDED),
    )
    return Slotted(mock)


async def ours(asked: Sequence[Question], engine: Slotted, at_once: int) -> None:
    """The loop as it is, generator and verifier on one engine."""
    generator, verifier = Client(engine, in_flight=at_once), Client(engine, in_flight=at_once)
    waiting = iter(asked)

    async def work() -> None:
        for question in waiting:
            await run_question(question, generator, verifier)

    await asyncio.gather(*(work() for _ in range(at_once)))


async def replayed(chains: Sequence[Sequence[Call]], at_once: int) -> None:
    """The same calls once more, another number of questions under way."""
    slots, waiting = asyncio.Semaphore(SLOTS), iter(chains)

    async def work() -> None:
        for chain in waiting:
            for _, took in chain:
                async with slots:
                    await asyncio.sleep(took)

    await asyncio.gather(*(work() for _ in range(at_once)))


def lock_step(chains: Sequence[Sequence[Call]], one_at_a_time: bool) -> float:
    """Seconds of rounds in which all write, then all are judged."""
    total = 0.0
    left = [iter(chain) for chain in chains]
    following = [next(chain, None) for chain in left]
    while any(following):
        for writes in (True, False):
            due = [n for n, call in enumerate(following) if call and is_writing(call) == writes]
            times = [call[1] for call in following if call and is_writing(call) == writes]
            total += sum(times) if one_at_a_time and not writes else packed(times)
            for n in due:
                following[n] = next(left[n], None)
    return total


def is_writing(call: Call) -> bool:
    return call[0] != "verify"


def packed(times: Sequence[float]) -> float:
    """When the last of some calls ends, each taking the slot that is free first.

    >>> packed([1.0] * SLOTS + [0.5])
    1.5
    """
    ends = [0.0] * SLOTS
    for took in times:
        heapq.heapreplace(ends, ends[0] + took)
    return max(ends)


def compare(number: int) -> Iterator[tuple[str, ...]]:
    """The rows of the table."""
    asked = questions(number)
    engine = slotted()
    as_it_is = seconds(ours(asked, engine, SLOTS))
    chains = [engine.calls[question.id] for question in asked]
    yield "way", "seconds", "over work/slots", "over later of both"
    yield line("the loop itself, 256 at once", chains, as_it_is)
    for at_once in AT_ONCE:
        took = seconds(replayed(chains, at_once))
        yield line(f"its calls, {at_once} at once", chains, took)
    for name, one_at_a_time in (("lock-step", False), ("lock-step, one verdict a time", True)):
        yield line(name, chains, lock_step(chains, one_at_a_time))
    few = [chain for chain in chains if len(chain) <= STUCK]
    yield line(f"256 at once, but {len(chains) - len(few)} stuck ones", few)
    for times in (4, 12):
        yield line(f"256 at once, but those, {times} times as many", few * times)


def line(name: str, chains: Sequence[Sequence[Call]], took: float | None = None) -> tuple[str, ...]:
    """A way's row; without ``took`` that of the loop with as many questions under way as slots."""
    if took is None:
        took = seconds(replayed(chains, SLOTS))
    lengths = [sum(seconds for _, seconds in chain) for chain in chains]
    packed_, longest = sum(lengths) / SLOTS, max(lengths)
    return name, f"{took:.0f}", f"{took / packed_:.2f}", f"{took / max(packed_, longest):.2f}"


def main(arguments: Sequence[str]) -> None:
    parser = Parser(
        prog="python -m tests.benchmarks.bench_loop",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("questions", nargs="?", type=positive, default=1000, metavar="QUESTIONS")
    number = parser.parse_args(arguments).questions
    print(f"{number} questions, {SLOTS} slots, simulated replies and time\n")
    print(text_table(list(compare(number))))


if __name__ == "__main__":
    run(main)
