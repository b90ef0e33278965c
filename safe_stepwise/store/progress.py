"""Progress bars, all of the house; one that says in words how the work stands.

On a terminal and in a notebook a bar moves. Elsewhere nobody sees it move, and a log would keep
every move: there it is a line at its begin, one each `LINE_S` and one at its end.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tqdm import tqdm

AFTER_S = 1.0
LINE_S = 30.0
"""Seconds between the lines that a bar is in a log."""


def bar(items: Iterable[Any] | None = None, **told: Any) -> tqdm[Any]:
    """A bar of `tqdm`, by its options: the one way to make any.

    >>> with bar(range(3), desc="three", disable=True) as moving:
    ...     list(moving)
    [0, 1, 2]
    """
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        return tqdm(items, **told)
    return tqdm(items, file=_Lines(sys.stderr), position=0, **told)


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
