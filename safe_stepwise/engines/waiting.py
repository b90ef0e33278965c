"""What is said while nothing is heard, as a hang without a word looks like work."""

import functools
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from tqdm import tqdm

from safe_stepwise.store.secrets import redacted
from safe_stepwise.store.terminal import printable

AFTER_S = 10.0
"""Seconds without a reply that are worth a line; the next comes after twice as many."""
_LOOK_S = 0.5
_WAITS: set["Wait"] = set()


class Wait:
    """A context of one or many who wait; ``told`` makes the line of the seconds that it takes.

    A thread looks after all of them, as loading a model may block the event loop.
    """

    def __init__(self, told: Callable[[int], str]) -> None:
        self._told = told
        self._waiting = 0
        self._heard = 0.0
        self._patience = AFTER_S

    def heard(self) -> None:
        """Something was answered: the wait begins anew."""
        self._heard = time.monotonic()

    def tell_if_long(self) -> None:
        """Say that nothing was heard, if that is so."""
        waited = time.monotonic() - self._heard
        if self._waiting and waited >= self._patience:
            self._patience = 2 * waited
            tqdm.write(printable(redacted(self._told(int(waited)))), file=sys.stderr)

    def __enter__(self) -> None:
        _watch()
        self._waiting += 1
        if self._waiting == 1:
            self.heard()
            _WAITS.add(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
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
