"""Runs a command line and ends the process: `run` maps each way a command can end to an exit status.

A user's mistake is printed on one line, without credentials. Every command of `safe-stepwise` and `scripts` ends here.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

from safe_stepwise.errors import UserError
from safe_stepwise.store import progress, terminal

EXIT_STATUS = (
    "exit status: 0 done; 2 an error you can fix (explained in one line); 130 interrupted; 1 a bug in safe-stepwise"
)
"""The end of every command's help."""


def run(main: Callable[[Sequence[str]], None]) -> NoReturn:
    """Run a command and exit: 0 done, 2 a user's mistake (one line), 1 a bug of ours.

    Ctrl-C exits with 130, as in any shell command; so does SIGTERM. Where the output's reader ends first (`head`), the
    status is that of a command which SIGPIPE ends, 141: the work may not be done, and there is no bug.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    terminal.guard_output()
    try:
        status = _status_of(main)
        sys.stdout.flush()
    except OSError:
        if (output_error := _close_output()) is None:
            raise
        status = 128 + signal.SIGPIPE
        if not isinstance(output_error, BrokenPipeError):  # else the reader of the output has read enough (`head`)
            status = 2
            _print_error(f"error: the output cannot be written: {output_error.strerror}")
    progress.leave(status)


def _status_of(main: Callable[[Sequence[str]], None]) -> int:
    """Run a command with the process's arguments and return its exit status; print a user's mistake on one line."""
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.stdout.flush()  # where both streams go to one file, earlier output stands first
        _print_error(f"error: {strip_keys(str(error))}")
        return 2
    except KeyboardInterrupt:
        _print_error("interrupted; the same command resumes")
        return 130
    except SystemExit as request:
        if not isinstance(request.code, int):
            raise
        return request.code
    return 0


def _close_output() -> OSError | None:
    """Print an empty line; return the error of a closed or full standard output, and discard what is unwritten."""
    try:
        print(flush=True)
    except OSError as error:
        _discard_output(1)
        return error
    return None


def _print_error(line: str) -> None:
    """Print a line to standard error; if that is closed, drop the line, so that the exit status stays."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _discard_output(2)


def _discard_output(descriptor: int) -> None:
    """Send the rest of a closed output nowhere; Python would end with status 120 otherwise."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def strip_keys(message: str) -> str:
    """Return a message as one printable line without our credentials, which a library may have included."""
    return terminal.printable(terminal.redact_keys(message, terminal.credentials().values()))


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM as Ctrl-C is handled now (an event loop has its own way), even where Ctrl-C is ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # schedulers send it twice, which would interrupt the clean-up
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)
