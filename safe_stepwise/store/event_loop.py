"""One event loop a process, in its own thread: a client's connections outlive a chunk of work.

And what a loop is for: much work under way at once, though never more than is asked for.
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
    """What a coroutine returns; may be called from any thread but the loop's own."""
    with _LOCK:  # `cache` alone would let two threads start a loop each
        running = asyncio.run_coroutine_threadsafe(coroutine, _loop())
        _RUNNING.add(running)
    try:
        return running.result()
    finally:
        running.cancel()  # of use only when the wait was interrupted
        _RUNNING.discard(running)


def cancel_all() -> None:
    """Make everyone who waits stop waiting, with ``concurrent.futures.CancelledError``."""
    with _LOCK:
        for running in tuple(_RUNNING):
            running.cancel()


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What coroutines return, in their order; the first error or a cancellation ends all others."""
    running = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*running)
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[object]], at_once: int) -> None:
    """Await ``work`` for every item, in their order, for at most ``at_once`` of them at a time.

    No item waits for a slower one, and none is taken before there is room for it. The first error
    (that of ``items``, too) or a cancellation ends all that is under way and is raised.
    """
    if at_once < 1:
        raise ValueError("at_once has to be 1 or more")
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:  # shared: whoever is free takes the next one
            await work(item)

    number = min(at_once, length_hint(items, at_once))
    await all_of(worker() for _ in range(number))


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event loop", daemon=True).start()
    return loop
