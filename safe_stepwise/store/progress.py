"""Progress bars, all of the house; one that says in words how the work stands.

On a terminal and in a notebook a bar moves. Elsewhere nobody sees it move, and a log would keep every move: there it
is a line at its begin, one each `LINE_S` and one at its end. On a terminal it is drawn once a `TICK_S` though nothing
moves, and fits the width: how many failed, and how many are owed, is never cut.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn, TextIO, TypeVar

from tqdm import tqdm

from safe_stepwise.store.terminal import shown

AFTER_S = 1.0
TICK_S = 1.0
LINE_S = 30.0
"""Seconds between the lines that a bar is in a log."""


def bar(items: Iterable[Any] | None = None, **told: Any) -> tqdm[Any]:
    """A bar of `tqdm`, by its options: the one way to make any.

    >>> with bar(range(3), desc="three", disable=True) as moving:
    ...     list(moving)
    [0, 1, 2]
    """
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        made = _Bar(items, dynamic_ncols=sys.stderr.isatty(), **told)
    else:
        made = _Bar(items, file=_Lines(sys.stderr), position=0, **told)
    if not made.disable:
        moves = (weakref.ref(made), told.get("delay", 0.0))
        threading.Thread(target=_tick, args=moves, daemon=True).start()
    return made


def _tick(bar_of: weakref.ref[tqdm[Any]], delay: float) -> None:
    """Draw a bar anew until it is closed or gone."""
    time.sleep(delay)
    while True:
        shown = bar_of()
        if shown is None or shown.disable:
            return
        shown.refresh()
        del shown
        time.sleep(TICK_S)


class _Bar(tqdm):  # type: ignore[type-arg]
    """A bar whose line fits the terminal."""

    @staticmethod
    def format_meter(*told: Any, **named: Any) -> str:
        """What the line says; tqdm's own where there is room for all of it."""
        whole = str(tqdm.format_meter(*told, **(named | {"ncols": None})))
        width = named.get("ncols")
        if width is None or len(whole) <= width:
            return str(tqdm.format_meter(*told, **named))
        title, standing = str(named.get("prefix") or ""), str(named.get("postfix") or "")
        return fitted(title, named["n"], named["total"], standing, width)


def fitted(title: str, number: float, total: float | None, standing: str, width: int) -> str:
    """A bar's line in ``width`` columns: what is told least goes first, failed and owed never.

    >>> fitted("build", 3, 9, "done 2 cached 1 failed 1 owed 6; requests: done 40", 60)
    'build: 3/9, done 2 cached 1 failed 1 owed 6; requests: done…'
    >>> fitted("a long title", 3, 9, "done 2 cached 1 failed 1 owed 6; requests: done 40", 30)
    'a long…: 3/9, failed 1 owed 6'
    """
    moved = f"{number:g}/{total:g}" if total else f"{number:g}"
    whose, (first, _, rest) = title.rstrip(": "), standing.partition("; ")
    head = f"{whose}: {moved}" if whose else moved
    if len(line := f"{head}, {first}") <= width:
        return _cut(f"{line}; {rest}", width) if rest and len(line) < width else line
    told = " ".join(f"{name} {count}" for name, count in _NEVER_CUT.findall(first))
    tail = f": {moved}, {told}" if told else f": {moved}, {first}"
    return _cut(f"{_cut(whose, max(1, width - len(tail)))}{tail}", width)


_NEVER_CUT = re.compile(r"\b(failed|owed) (\S+)")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


class _Lines:
    """A stream that a bar takes for a terminal: of what is written over itself few become lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._due = 0.0
        self._owed = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._owed = text.strip() or self._owed
        is_over = text == "\n"
        if self._owed and (is_over or time.monotonic() >= self._due):
            self._stream.write(f"{self._owed}\n")
            self._due, self._owed = time.monotonic() + LINE_S, ""
        return len(text)


def counts(done: int, cached: int, owed: int | str, **others: int) -> str:
    """How work stands: what this run did, what an earlier one had, ``others``, what is to come.

    >>> counts(3, 1, 9, failed=2)
    'done 3 cached 1 failed 2 owed 9'
    """
    said = {"done": done, "cached": cached, **others, "owed": owed}
    return " ".join(f"{name} {number}" for name, number in said.items())


def note(text: str) -> None:
    """Print a note to standard error, above the progress bars, so that hostile text in it does no harm."""
    tqdm.write(shown(f"note: {text}"), file=sys.stderr)


@contextmanager
def telling(
    title: str, unit: str, total: int | None, done: Callable[[], int], standing: Callable[[], str]
) -> Iterator[None]:
    """Show how many are ``done`` and what ``standing`` says, twice a second and at the end.

    It begins late, so that a mistake which shows at once prints its one line and nothing else.
    """
    over = threading.Event()

    def tell() -> None:
        if over.wait(AFTER_S):
            return
        with bar(total=total, unit=unit, desc=title) as shown:
            shown.start_t -= AFTER_S
            is_over = False
            while not is_over:
                is_over = over.wait(0.5)
                shown.set_postfix_str(standing(), refresh=False)
                if not shown.update(done() - shown.n):
                    shown.refresh()

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


_Answer = TypeVar("_Answer")

SILENT_S = 10.0
"""Seconds without an answer that are worth a line; the next comes after twice as many."""
SOON_S = 2.0
"""The same where no bar moves meanwhile."""
_LOOK_S = 0.5
_WAITS: set[Wait] = set()
_left: list[threading.Thread] = []


class WaitedTooLong(Exception):
    """Nothing came of it in time."""


def within(seconds: float, what: str, call: Callable[[], _Answer]) -> _Answer:
    """What ``call`` returns, or raises, if it does so in time; ``what`` it waits for is said.

    The limit is on all of it, retries and pauses included, whatever the call is stuck in (a server that sends a byte a
    minute stops no clock of a client). It is made by a thread, which is left behind when time is up: so end with
    `leave`, as such a thread can't be stopped. Raises ``WaitedTooLong``.

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
        self._patience = min(SILENT_S, SOON_S) if soon else SILENT_S

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
