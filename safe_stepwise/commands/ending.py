"""How every command ends: its exit status, and errors of one line."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

from safe_stepwise.errors import UserError
from safe_stepwise.store.progress import leave
from safe_stepwise.store.terminal import credentials, guard_output, printable, redact_keys

EXIT_STATUS = "exit status: 0 done, 2 something to mend (one line says what), 130 interrupted, 1 a fault of ours"
"""What stands at the end of every command's help."""


def run(main: Callable[[Sequence[str]], None]) -> NoReturn:
    """Run a command and exit: 0 done, 2 a user's mistake (one line), 1 a fault of ours.

    Ctrl-C exits with 130, as in any shell command; so does SIGTERM.
    """
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    guard_output()
    try:
        status = _carry_out(main)
        sys.stdout.flush()
    except OSError:
        if (fault := _output_fault()) is None:
            raise
        status = 1
        if not isinstance(fault, BrokenPipeError):  # else whoever read the output has enough of it
            status = 2
            _say(f"error: the output cannot be written: {fault.strerror}")
    leave(status)


def _carry_out(main: Callable[[Sequence[str]], None]) -> int:
    """Call a command; returns its exit status."""
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.stdout.flush()  # in a file both go to, what was said before stands before
        _say(f"error: {told(str(error))}")
        return 2
    except KeyboardInterrupt:
        _say("interrupted; the same command resumes")
        return 130
    except SystemExit as leaving:
        if not isinstance(leaving.code, int):
            raise
        return leaving.code
    return 0


def _output_fault() -> OSError | None:
    """Why standard output takes no more, if it does not; what is left for it is then dropped."""
    try:
        print(flush=True)
    except OSError as error:
        _drop(1)
        return error
    return None


def _say(line: str) -> None:
    """Print a line to standard error; if that takes no more, drop it, so that the exit status still tells."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _drop(2)


def _drop(descriptor: int) -> None:
    """Let what is left for an output that takes no more go nowhere, or Python ends with status 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def warn(message: str) -> None:
    """Say on the error stream what stops nothing."""
    print("note:", told(message), file=sys.stderr)


def told(message: str) -> str:
    """One line, in which no library has put a key of ours."""
    return printable(redact_keys(message, credentials().values()))


def _as_ctrl_c(number: int, frame: FrameType | None) -> None:
    """What Ctrl-C does just now, which an event loop takes for itself; if it is ignored, stop.

    Once: `timeout` and schedulers send it twice, which would break into the end that it brings.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)
