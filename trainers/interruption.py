"""Ctrl-C and SIGTERM in a training: the first lets the step end and is answered at once.

A backward pass is one call, in which Python handles no signal for as long as it takes. So a thread
listens, which the interpreter wakes from the signal itself.
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
AGAIN_S = 0.5
"""A signal that follows sooner is the same one: `timeout` and launchers send it twice."""
STOPPING = "stopping after this step; the checkpoint will be kept; again to stop at once"
STOPPED = "stopped at once; if resumed it goes on from the last complete checkpoint"


class Interruption:
    """A context in which signals end nothing at once; ``asked`` is whether there was one.

    Another ends the process, with 130 or 143 as a shell has them. Outside of the main thread, where
    Python hears of no signal, and of a signal that is ignored, it does nothing. ``says`` is whether
    this process says so: one of several that train together.
    """

    def __init__(self, says: bool = True) -> None:
        self.asked = False
        self._says = says
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            heard = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
            self._ear, self._mouth = os.pipe()
            os.set_blocking(self._mouth, False)
            self._woken = signal.set_wakeup_fd(self._mouth, warn_on_full_buffer=False)
            self._before = {one: signal.signal(one, lambda *_: None) for one in heard}
            self._listener = threading.Thread(target=self._listen, name="signals", daemon=True)
            self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._woken)
            os.close(self._mouth)  # which ends the listener
            self._listener.join()
            os.close(self._ear)

    def _listen(self) -> None:
        since = 0.0
        while received := os.read(self._ear, 1):
            number = received[0]
            if number in self._before and not self.asked:
                self.asked, since = True, time.monotonic()
                self._say(STOPPING)
            elif number in self._before and time.monotonic() - since >= AGAIN_S:
                self._say(STOPPED)
                os._exit(128 + number)

    def _say(self, line: str) -> None:
        if self._says:
            tqdm.write(line, file=sys.stderr)
            sys.stderr.flush()
