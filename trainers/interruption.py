"""Handle Ctrl-C and SIGTERM in a training run: the first lets the current step end, and prints that at once.

Python handles no signal during a backward pass, which is one long call. So a thread listens on a pipe
that the interpreter's signal handler writes to.
"""

import os
import signal
import sys
import threading
import time
from types import TracebackType
from typing import Any

from tqdm import tqdm

SIGNALS = (signal.SIGINT, signal.SIGTERM)
REPEAT_SECONDS = 0.5
"""Seconds within which a further signal counts as the first one: `timeout` and launchers send it twice."""
STOPPING = "stopping after this step; the checkpoint will be kept; again to stop at once"
STOPPED = "stopped at once; if resumed it goes on from the last complete checkpoint"


class Interruption:
    """A context in which a first signal only sets ``stop_requested``, and a second one ends the process.

    It does nothing outside the main thread, where Python handles no signal, and for a signal that is ignored.
    Where several processes train together, only the one with ``is_reporting`` prints what happens.
    """

    def __init__(self, is_reporting: bool = True) -> None:
        self.stop_requested = False
        self._is_reporting = is_reporting
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            numbers = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
            self._read_end, self._write_end = os.pipe()
            os.set_blocking(self._write_end, False)
            self._previous_fd = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
            self._handlers = {number: signal.signal(number, lambda *_: None) for number in numbers}
            self._listener = threading.Thread(target=self._listen, name="signals", daemon=True)
            self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._previous_fd)
            os.close(self._write_end)  # which ends the listener
            self._listener.join()
            os.close(self._read_end)

    def _listen(self) -> None:
        stopped_at = 0.0
        while received := os.read(self._read_end, 1):
            number = received[0]
            if number in self._handlers and not self.stop_requested:
                self.stop_requested, stopped_at = True, time.monotonic()
                self._report(STOPPING)
            elif number in self._handlers and time.monotonic() - stopped_at >= REPEAT_SECONDS:
                self._report(STOPPED)
                os._exit(128 + number)

    def _report(self, message: str) -> None:
        if self._is_reporting:
            tqdm.write(message, file=sys.stderr)
            sys.stderr.flush()
