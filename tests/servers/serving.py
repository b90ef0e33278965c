"""A server of ours in a thread of its own: what `safe-stepwise serve` and `stand-in` run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safe_stepwise.commands.loop import Loop
from safe_stepwise.commands.serve import Bounds, VerifiedLoop
from safe_stepwise.commands.serving import serve
from safe_stepwise.commands.stand_in import StandIn
from safe_stepwise.records import Question

Started = Callable[[int], None]


@contextmanager
def running(whole: Callable[[Started], Awaitable[None]]) -> Iterator[str]:
    """The address of a server that runs until the context is left."""
    ready, ports = threading.Event(), list[int]()
    loop = asyncio.new_event_loop()

    def started(port: int) -> None:
        ports.append(port)
        ready.set()

    async def until_stopped() -> None:
        with suppress(asyncio.CancelledError):
            await whole(started)

    task = loop.create_task(until_stopped())

    def run() -> None:
        loop.run_until_complete(task)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    assert ports, "it did not start"
    try:
        yield f"http://127.0.0.1:{ports[0]}/v1"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(60)
        assert not thread.is_alive()


@contextmanager
def stand_in(spec: str, questions: list[Question]) -> Iterator[str]:
    """The spec of a stand-in's model."""
    player = StandIn(spec, questions)
    app = player.application(1 << 20)
    with running(lambda started: serve(app, "127.0.0.1", 0, started)) as url:
        yield f"openai:{player.model}@{url}"


@contextmanager
def verified_loop(
    generator: str,
    verifier: str | None,
    cache: Path,
    *,
    bounds: Bounds | None = None,
    method: str = "safe",
    timeout: float = 60.0,
    max_retries: int = 3,
    log: bool = True,
) -> Iterator[str]:
    """The address of a server that answers by the loop."""
    players = {"generator": generator, "verifier": verifier, "method": method}
    settings = Loop(**players, max_retries=max_retries, cache=cache, timeout=timeout)  # type: ignore[arg-type]
    limits = bounds or Bounds()

    async def whole(started: Started) -> None:
        async with settings.opened() as clients:
            loop = VerifiedLoop(settings.answer, clients, limits, log)
            await serve(loop.application(), "127.0.0.1", 0, started)

    with running(whole) as url:
        yield url
