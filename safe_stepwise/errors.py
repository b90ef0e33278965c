"""The two ways an input can be wrong: one stops the command, one concerns a single row."""

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any


class UserError(Exception):
    """A user's mistake: one line that says what, where and how to mend it (exit status 2)."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it (IPython asks for it): the line, and no traceback."""
        return [f"error: {self.line}"]

    @property
    def line(self) -> str:
        """The one line, in which nothing steers a terminal.

        >>> UserError("a\\x1b[31m\\nb").line
        'a\\\\x1b[31m b'
        """
        escaped = (c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(str(self).split()))
        return "".join(escaped)


class RowError(ValueError):
    """One row cannot be read: the reason. The reader adds file, line or row id."""


def one_of(value: str, choices: Iterable[str], label: str) -> str:
    """``value`` if it is a choice, else ``UserError`` with the nearest one.

    >>> one_of("hotpotqa", ["hotpotqa", "musique"], "--benchmark")
    'hotpotqa'
    """
    names = list(choices)
    if value in names:
        return value
    near = difflib.get_close_matches(value.lower(), names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UserError(f"{label} {value!r} is not known; {hint}choose from {', '.join(names)}")


@contextmanager
def at_place(place: str, kinds: type[Exception] | tuple[type[Exception], ...] = UserError) -> Iterator[None]:
    """Raise ``UserError`` with a place in front for one within, or for other ``kinds`` of error."""
    try:
        yield
    except kinds as error:
        raise UserError(f"{place}: {error}") from None


def tell_in_one_line() -> None:
    """Make Python end at a `UserError` with its line alone, as commands do.

    For those who call us from a script of their own: whatever hook there is keeps all others.
    """
    if isinstance(sys.excepthook, _Hook):
        return
    sys.excepthook = _Hook(sys.excepthook)


class _Hook:
    def __init__(self, previous: Any) -> None:
        self._previous = previous

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, UserError):
            print("error:", error.line, file=sys.stderr)
        else:
            self._previous(kind, error, trace)


_ABOVE = Path(__file__).resolve().parents[1]


def checkout() -> Path | None:
    """The root of the checkout that this package is imported from; None in a wheel.

    >>> root = checkout()
    >>> root is None or (root / "scripts" / "cli.py").is_file()
    True
    """
    return _ABOVE if (_ABOVE / "scripts" / "cli.py").is_file() else None


def install(extra: str) -> str:
    """The command that installs an extra here."""
    package = f".[{extra}]" if checkout() else f"safe-stepwise[{extra}]"
    return f"pip install {'-e ' if checkout() else ''}'{package}'"


def start_server(model: str) -> str:
    """How a server for a model is started here."""
    if checkout():
        return f"start one with `scripts/serve.sh {model}`"
    return f"start one with `vllm serve {model}`, or `safe-stepwise stand-in` to try things out"
