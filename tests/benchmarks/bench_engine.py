"""What our layer costs a call: key, cache, journal, retries and accounts, around a free engine.

    python -m tests.benchmarks.bench_engine
    python -m tests.benchmarks.bench_engine 2000     # calls a measurement (default 20,000)

One core; prompts of the size that verification asks (about 5 KB). Compared with the engine called
directly, with the same number of requests under way.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from safe_stepwise.engines.base import Completion, EngineError, Message, Request
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.records import Usage
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive

IN_FLIGHT = (1, 64, 1024)
WAYS = ("engine alone", "client, no cache", "client, new calls", "client, all stored")
_BODY = "The Vel is a river that crosses Oru, a town in the west of Marn. " * 75
_REPLY = '{"triples": [["Vel", "crosses", "Oru", 0]]}' * 10


class Instant:
    """An engine that answers at once."""

    identity = {"engine": "instant"}  # noqa: RUF012
    name = "instant"
    simulated = False

    async def check(self) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [Completion(_REPLY, Usage(1200, 1000, 100)) for _ in requests]


def request(number: int) -> Request:
    return Request((Message("system", _BODY), Message("user", f"question {number}")), role="x")


async def timed(ask: Callable[[Request], Awaitable[object]], calls: int, in_flight: int) -> float:
    """Calls a second with a fixed number of askers."""
    numbers = iter(range(calls))

    async def asker() -> None:
        for number in numbers:
            await ask(request(number))

    start = time.perf_counter()
    await asyncio.gather(*(asker() for _ in range(in_flight)))
    return calls / (time.perf_counter() - start)


async def measure(way: str, calls: int, in_flight: int, folder: Path) -> float:
    engine = Instant()
    if way == "engine alone":
        return await timed(lambda asked: engine.generate([asked]), calls, in_flight)
    cache = None if way == "client, no cache" else ResponseCache(folder / "c.sqlite")
    client = Client(engine, cache, in_flight=1024)
    if way == "client, all stored":
        await timed(client.complete, calls, in_flight)
        client = Client(engine, ResponseCache(folder / "c.sqlite"), in_flight=1024)
    return await timed(client.complete, calls, in_flight)


def one(way: str, in_flight: int, calls: int) -> None:
    """One measurement in a process of its own, printed as rate and peak memory (MB)."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        rate = asyncio.run(measure(way, calls, in_flight, Path(folder)))
    print(rate, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main(arguments: Sequence[str]) -> None:
    parser = Parser(
        prog="python -m tests.benchmarks.bench_engine",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("calls", nargs="?", type=positive, default=20_000, metavar="CALLS")
    calls = parser.parse_args(arguments).calls
    rows: list[tuple[str, int, int, float, float]] = []
    for in_flight in IN_FLIGHT:
        alone = 0.0
        for way in WAYS:
            command = [sys.executable, "-m", __spec__.name, way, str(in_flight), str(calls)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            rate, megabytes = map(float, done.stdout.split())
            alone = alone or rate
            overhead = 1e6 / rate - 1e6 / alone
            rows.append((way, in_flight, int(rate), round(overhead), round(megabytes)))
    print(text_table([("way", "in flight", "calls/s", "µs a call more", "peak MB"), *rows]))


if __name__ == "__main__":
    if len(sys.argv) == 4:
        one(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        run(main)
