"""The two errors of input, and helpers that raise or print them.

`UserError` stops a command, which prints its one line. `RowError` concerns one row, which its reader sets apart.
"""

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any


class UserError(Exception):
    """A user's mistake: one line that says what, where and how to mend it (exit status 2)."""

    def _render_traceback_(self) -> list[str]:
        """Return the text that a notebook (IPython) shows: the line, without a traceback."""
        return [f"error: {self.line}"]

    @property
    def line(self) -> str:
        """The message as one line, with control characters spelled out.

        >>> UserError("a\\x1b[31m\\nb").line
        'a\\\\x1b[31m b'
        """
        escaped = (c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(str(self).split()))
        return "".join(escaped)


class RowError(ValueError):
    """A row cannot be read; the message is the reason, and whoever reads the file adds file, line or row id."""


def check_choice(value: str, choices: Iterable[str], label: str) -> str:
    """Return ``value`` if it is one of the choices; else raise ``UserError`` with ``label`` and the nearest choice.

    >>> check_choice("hotpotqa", ["hotpotqa", "musique"], "--benchmark")
    'hotpotqa'
    """
    names = list(choices)
    if value in names:
        return value
    near = difflib.get_close_matches(value.lower(), names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UserError(f"{label} {value!r} is not known; {hint}choose from {', '.join(names)}")


@contextmanager
def at_place(place: str, error_types: type[Exception] | tuple[type[Exception], ...] = UserError) -> Iterator[None]:
    """Turn an error of these types inside the context into a ``UserError`` with ``place`` before its message."""
    try:
        yield
    except error_types as error:
        raise UserError(f"{place}: {error}") from None


def tell_in_one_line() -> None:
    """Make an uncaught `UserError` print one line, without a traceback; for users' own scripts."""
    if getattr(sys.excepthook, "func", None) is not _print_error:
        sys.excepthook = partial(_print_error, sys.excepthook)


def _print_error(previous: Any, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a `UserError` as one line, and leave other errors to the previous hook."""
    if isinstance(error, UserError):
        print("error:", error.line, file=sys.stderr)
    else:
        previous(kind, error, trace)


_ROOT = Path(__file__).resolve().parents[1]


def checkout() -> Path | None:
    """Return the root of the checkout that holds this package; None in an installed wheel.

    >>> root = checkout()
    >>> root is None or (root / "scripts" / "cli.py").is_file()
    True
    """
    return _ROOT if (_ROOT / "scripts" / "cli.py").is_file() else None


def install_command(extra: str) -> str:
    """Return the pip command that installs an extra, in a checkout or for an installed wheel."""
    package = f".[{extra}]" if checkout() else f"safe-stepwise[{extra}]"
    return f"pip install {'-e ' if checkout() else ''}'{package}'"


def require_modules(feature: str, library: str, extra: str, *modules: str) -> None:
    """Raise ``UserError`` if a module that ``feature`` needs is missing; it names ``library`` and its ``extra``."""
    if any(find_spec(module) is None for module in modules):
        raise UserError(f"{feature} needs {library}: {install_command(extra)}")


def server_hint(model: str) -> str:
    """Return a hint on how to start a server for a model."""
    if checkout():
        return f"start one with `scripts/serve.sh {model}`"
    return f"start one with `vllm serve {model}`, or `safe-stepwise stand-in` to try things out"
