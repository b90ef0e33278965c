"""What every command shares: its exit status, and errors of one line."""

from __future__ import annotations

import argparse
import difflib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import NoReturn

from safe_stepwise.errors import UserError


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def run(main: Callable[[Sequence[str]], None]) -> NoReturn:
    """Run a command and exit: 0 done, 2 a user's mistake (one line), 1 a fault of ours.

    Ctrl-C exits with 130, as in any shell command; so does SIGTERM.
    """
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.stdout.flush()  # in a file both go to, what was said before stands before
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted; the same command resumes", file=sys.stderr)
        raise SystemExit(130) from None
    raise SystemExit(0)


def _as_ctrl_c(number: int, frame: FrameType | None) -> None:
    """What Ctrl-C does just now, which an event loop takes for itself; if it is ignored, stop."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)


def one_of(value: str, choices: Iterable[str], what: str) -> str:
    """``value`` if it is a choice, else ``UserError`` with the nearest one.

    >>> one_of("hotpotqa", ["hotpotqa", "musique"], "--benchmark")
    'hotpotqa'
    """
    names = list(choices)
    if value in names:
        return value
    near = difflib.get_close_matches(value.lower(), names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UserError(f"{what} {value!r} is not known; {hint}choose from {', '.join(names)}")


def positive(text: str) -> int:
    """An option's whole number from 1 on (for argparse)."""
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def price(text: str) -> float:
    """An option's amount of money (for argparse)."""
    try:
        amount = float(text)
    except ValueError:
        amount = -1
    if not 0 <= amount < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount from 0 on")
    return amount


def warn(message: str) -> None:
    """Say on the error stream what stops nothing."""
    print(f"note: {message}", file=sys.stderr)


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def table(rows: Sequence[Sequence[object]]) -> str:
    """Rows as aligned text, the first as header; numbers to the right.

    >>> print(table([("split", "rows"), ("train", 2000)]))
    split   rows
    -----  -----
    train  2,000
    """
    texts = [[f"{c:,}" if isinstance(c, int) else str(c) for c in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = [isinstance(c, int | float) for c in rows[-1]]
    lines = [
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in texts
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
