"""Runs the process's only event loop, in its own thread, with bounded concurrency.

The loop exists as long as the process, so that a client's connections outlive a chunk of work.
"""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from operator import length_hint
from typing import Any, TypeVar

T = TypeVar("T")
_LOCK = threading.Lock()
_RUNNING: set[Future[Any]] = set()


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the process's event loop and return its result; don't call it in the loop's own thread."""
    with _LOCK:  # `cache` would let two threads start a loop each
        running = asyncio.run_coroutine_threadsafe(coroutine, _loop())
        _RUNNING.add(running)
    try:
        return running.result()
    finally:
        running.cancel()  # has an effect only if the wait was interrupted
        _RUNNING.discard(running)


def cancel_all() -> None:
    """Cancel every running `wait_for`, which then raises ``concurrent.futures.CancelledError``."""
    with _LOCK:
        for running in tuple(_RUNNING):
            running.cancel()


async def gather_all(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently; return their results in order. The first error or a cancellation ends all."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[object]], at_once: int) -> None:
    """Await ``work`` for every item, started in order, for at most ``at_once`` (1 or more) items at a time.

    The next item is read from ``items`` and started when any other ends. The first error (also one raised by
    ``items``) or a cancellation ends all running work and is raised.
    """
    if at_once < 1:
        raise ValueError("at_once has to be 1 or more")
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:  # shared, so that a free worker takes the next item
            await work(item)

    await gather_all(worker() for _ in range(min(at_once, length_hint(items, at_once))))


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event loop", daemon=True).start()
    return loop
