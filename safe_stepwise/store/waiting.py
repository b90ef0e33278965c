"""Waiting for others: never without a word, never without an end."""

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, TypeVar

from tqdm import tqdm

from safe_stepwise.store.terminal import shown

_Answer = TypeVar("_Answer")

AFTER_S = 10.0
"""Seconds without an answer that are worth a line; the next comes after twice as many."""
SOON_S = 2.0
"""The same where no bar moves meanwhile."""
_LOOK_S = 0.5
_WAITS: set["Wait"] = set()
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

    def told(waited: int) -> str:
        return f"waiting for {what} since {waited} s (at most {seconds:,.0f} s)"

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        with Wait(told, soon=True):
            thread.join(seconds)
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


class Wait:
    """A context of one or many who wait; ``told`` makes the line of the seconds that it takes.

    A thread looks after all of them, as loading a model may block the event loop.
    """

    def __init__(self, told: Callable[[int], str], *, soon: bool = False) -> None:
        self._told = told
        self._waiting = 0
        self._heard = 0.0
        self._patience = min(AFTER_S, SOON_S) if soon else AFTER_S

    def heard(self) -> None:
        """Something was answered: the wait begins anew."""
        self._heard = time.monotonic()

    def tell_if_long(self) -> None:
        """Say that nothing was heard, if that is so."""
        waited = time.monotonic() - self._heard
        if self._waiting and waited >= self._patience:
            self._patience = 2 * waited
            tqdm.write(shown(self._told(int(waited))), file=sys.stderr)

    def __enter__(self) -> None:
        _watch()
        self._waiting += 1
        if self._waiting == 1:
            self.heard()
            _WAITS.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._waiting -= 1
        if not self._waiting:
            _WAITS.discard(self)


@functools.cache
def _watch() -> None:
    def look() -> None:
        while True:
            time.sleep(_LOOK_S)
            for wait in tuple(_WAITS):
                wait.tell_if_long()

    threading.Thread(target=look, name="waits", daemon=True).start()
