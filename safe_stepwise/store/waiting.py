"""Waiting for others: never without a word, never without an end."""

import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar

_Answer = TypeVar("_Answer")

SAID_AFTER = 10.0
"""Seconds of waiting after which it is said for what."""
_left: list[threading.Thread] = []


class WaitedTooLong(Exception):
    """Nothing came of it in time."""


def within(seconds: float, what: str, call: Callable[[], _Answer]) -> _Answer:
    """What ``call`` returns, or raises, if it does so in time; ``what`` it waits for is said.

    The limit is on all of it, retries and pauses included, whatever the call is stuck in (a server
    that sends a byte a minute stops no clock of a client). It is made by a thread, which is left
    behind when time is up: so end with `leave`, as such a thread can't be stopped.

    Raises ``WaitedTooLong``.

    >>> within(5, "a sum", lambda: 1 + 1)
    2
    """
    answer: list[_Answer] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(call())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join(min(seconds, SAID_AFTER))
        if thread.is_alive() and seconds > SAID_AFTER:
            print(f"waiting for {what} (at most {seconds:,.0f} s)", file=sys.stderr, flush=True)
            thread.join(seconds - SAID_AFTER)
    finally:
        if thread.is_alive():
            _left.append(thread)
    if failure:
        raise failure[0]
    if not answer:
        raise WaitedTooLong(f"no answer within {seconds:,.0f} s")
    return answer[0]


def leave(status: int) -> NoReturn:
    """End the process; at once if a thread was left behind, which Python would wait for."""
    if any(thread.is_alive() for thread in _left):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)
