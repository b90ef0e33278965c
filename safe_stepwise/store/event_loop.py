"""One event loop a process, in its own thread: a client's connections outlive a chunk of work."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
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


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event loop", daemon=True).start()
    return loop
