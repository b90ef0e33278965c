"""The two ways an input can be wrong: one stops the command, one concerns a single row."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A user's mistake: one line that says what, where and how to mend it (exit status 2)."""


class RowError(ValueError):
    """One row cannot be read: the reason. The reader adds file, line or row id."""


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
