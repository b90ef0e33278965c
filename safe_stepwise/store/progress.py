"""Shows progress bars for all commands, with counts in words, and limits how long a call may take.

On a terminal and in a notebook a bar moves. In a log, a bar prints a line when it begins, every `LINE_S`, and when it
ends. On a terminal, it is drawn every `TICK_S` even if no count changes, and its end is cut to the width.
"""

import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NoReturn, TextIO, TypeVar

from tqdm import tqdm

from safe_stepwise.store.terminal import sanitize

AFTER_S = 1.0
"""Seconds before a bar of `show_progress` appears."""
TICK_S = 1.0
"""Seconds between redraws of a bar on a terminal."""
LINE_S = 30.0
"""Seconds between a bar's lines in a log."""
_COUNTS_FIRST = "{desc}: {n_fmt}/{total_fmt}{postfix} [{elapsed}<{remaining}]{bar}"
"""The format of a bar on a terminal: even if it is narrow, it shows the counts."""


def bar(items: Iterable[Any] | None = None, **options: Any) -> "tqdm[Any]":
    """Make a progress bar over ``items`` with the options of `tqdm`; every bar of the project is made here."""
    if sys.stderr.isatty():
        new_bar = tqdm(items, dynamic_ncols=True, bar_format=_COUNTS_FIRST, **options)
    elif "ipykernel" in sys.modules:
        new_bar = tqdm(items, **options)
    else:
        new_bar = tqdm(items, file=_LogStream(sys.stderr), position=0, **options)
    if not new_bar.disable:
        threading.Thread(target=_redraw, args=(weakref.ref(new_bar), options.get("delay", 0.0)), daemon=True).start()
    return new_bar


def _redraw(bar_ref: "weakref.ref[tqdm[Any]]", delay: float) -> None:
    """Redraw a bar every `TICK_S` until it is closed or gone."""
    time.sleep(delay)
    while (live_bar := bar_ref()) is not None and not live_bar.disable:
        live_bar.refresh()
        del live_bar
        time.sleep(TICK_S)


class _LogStream:
    """A stream for a bar in a log: prints an update as a line every `LINE_S`, and the last update."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._due = 0.0
        self._pending = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._pending = text.strip() or self._pending
        is_over = text == "\n"
        if self._pending and (is_over or time.monotonic() >= self._due):
            self._stream.write(f"{self._pending}\n")
            self._due, self._pending = time.monotonic() + LINE_S, ""
        return len(text)


def counts(finished: int, cached: int, pending: int | str, **extra: int) -> str:
    """Render the numbers of finished items, of those that earlier runs cached, of ``extra`` and of pending items.

    >>> counts(3, 1, 9, failed=2)
    'done 3 cached 1 failed 2 owed 9'
    """
    numbers = {"done": finished, "cached": cached, **extra, "owed": pending}
    return " ".join(f"{name} {number}" for name, number in numbers.items())


def note(text: str) -> None:
    """Print a note to standard error, above the progress bars, without control characters or credentials."""
    tqdm.write(sanitize(f"note: {text}"), file=sys.stderr)


@contextmanager
def show_progress(
    title: str, unit: str, total: int | None, count: Callable[[], int], standing: Callable[[], str] | None = None
) -> Iterator[None]:
    """Show a bar within the context, with the number of finished units (``count``) and the text of ``standing``.

    Without ``standing``, the text is the number of finished and pending units. The bar is updated twice a second and
    at the end. It begins `AFTER_S` late, so that an early mistake of the user prints its one line and nothing else.
    """
    ended = threading.Event()

    def describe() -> str:
        return counts(count(), 0, "?" if total is None else total - count())

    def move() -> None:
        if ended.wait(AFTER_S):
            return
        with bar(total=total, unit=unit, desc=title) as live:
            live.start_t -= AFTER_S
            is_over = False
            while not is_over:
                is_over = ended.wait(0.5)
                live.set_postfix_str((standing or describe)(), refresh=False)
                if not live.update(count() - live.n):
                    live.refresh()

    thread = threading.Thread(target=move, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


_Answer = TypeVar("_Answer")

SILENT_S = 10.0
"""Seconds without an answer after which a line is printed; the next one follows after twice the time."""
SOON_S = 2.0
"""Seconds until the first line if there is no progress bar."""
_CHECK_S = 0.5
_WAITS: set["Wait"] = set()
_abandoned: list[threading.Thread] = []


class WaitedTooLong(Exception):
    """A call did not return in time."""


def call_within(seconds: float, subject: str, call: Callable[[], _Answer]) -> _Answer:
    """Return what ``call`` returns, or raise what it raises; raise ``WaitedTooLong`` after ``seconds``.

    The limit is for the whole call with its retries and pauses; a client's own limit is never exceeded by a server
    that sends a byte a minute. Prints that it waits for ``subject``. The call runs in a thread, which is abandoned
    when time is up; as such a thread can't be stopped, end the process with `leave`.
    """
    answer = Future[_Answer]()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    def describe(waited: int) -> str:
        return f"waiting for {subject} since {waited} s (at most {seconds:,.0f} s)"

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        with Wait(describe, soon=True):
            thread.join(seconds)
    finally:
        if thread.is_alive():
            _abandoned.append(thread)
    if not answer.done():
        raise WaitedTooLong(f"no answer within {seconds:,.0f} s")
    return answer.result()


def leave(status: int) -> NoReturn:
    """End the process; at once if `call_within` abandoned a thread, which Python might wait for."""
    if any(thread.is_alive() for thread in _abandoned):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)


class Wait:
    """A context in which one or more calls wait for an answer; it prints a line if that takes long.

    ``describe`` makes the line from the seconds so far. A thread watches all waits, as loading a model may block the
    event loop. ``soon``: print the first line after `SOON_S`, not `SILENT_S`.
    """

    def __init__(self, describe: Callable[[int], str], *, soon: bool = False) -> None:
        self._describe = describe
        self._waiting = 0
        self._start = 0.0
        self._patience = min(SILENT_S, SOON_S) if soon else SILENT_S

    def restart(self) -> None:
        """Count the seconds from now."""
        self._start = time.monotonic()

    def warn_if_long(self) -> None:
        """Print the line if the wait has lasted long enough."""
        waited = time.monotonic() - self._start
        if self._waiting and waited >= self._patience:
            self._patience = 2 * waited
            tqdm.write(sanitize(self._describe(int(waited))), file=sys.stderr)

    def __enter__(self) -> None:
        _start_watching()
        self._waiting += 1
        if self._waiting == 1:
            self.restart()
            _WAITS.add(self)

    def __exit__(self, *_: object) -> None:
        self._waiting -= 1
        if not self._waiting:
            _WAITS.discard(self)


@functools.cache
def _start_watching() -> None:
    def check_waits() -> None:
        while True:
            time.sleep(_CHECK_S)
            for wait in tuple(_WAITS):
                wait.warn_if_long()

    threading.Thread(target=check_waits, name="waits", daemon=True).start()
