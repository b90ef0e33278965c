"""Text of strangers on a terminal: ids, server messages and keys of files steer nothing there."""

import re
import sys
import unicodedata
from collections.abc import Collection, Iterable
from typing import Any, TextIO, cast

from safe_stepwise.store.secrets import credentials, keyless, redacted

_STEERS = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
"""Categories of Unicode: controls (ANSI begins with one), bidi marks, surrogates, line ends."""
_UNSEEN = re.compile(
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\ufe00-\\ufe0f\\uffa0\\U000e0000-\\U000e0fff]"
)
"""Letters and marks that have no ink."""
LONGEST = 2_000
"""Characters of a line; an id or a title may have a million."""
_OF_A_BAR = re.compile(r"\r|(?:\n|\x1b\[A)+\Z")
"""What tqdm writes to move about: to the line's begin, and alone, down and up."""


def printable(text: str) -> str:
    """A text as one line whose every character is seen: what steers is spelled out.

    Only the first `LONGEST` characters count.

    >>> printable("row \\x1b[31mq1\\u202e\\nnext")
    'row \\\\x1b[31mq1\\\\u202e next'
    """
    line = " ".join(text[: LONGEST + 1].split())
    return _spelled(line if len(text) <= LONGEST else f"{line[:LONGEST]}…")


def shown(text: object) -> str:
    """What a stranger says, as it may be kept or printed: `printable`, and without credentials.

    >>> shown("Bearer abcdefgh12345678\\nis unknown")
    'Bearer [redacted] is unknown'
    """
    return printable(redacted(str(text)))  # in this order: a key that is cut would not be known


def guard_output() -> None:
    """From now on print only what steers no terminal, whoever prints it, this process over.

    Line ends stay, and on standard error the movements of progress bars. A character that the
    stream cannot write is spelled out as well, and our credentials are left out: libraries log what
    servers say.
    """
    ours = tuple(credentials().values())
    sys.stdout = cast(TextIO, _Guarded(sys.stdout, ours))
    sys.stderr = cast(TextIO, _Guarded(sys.stderr, ours, _OF_A_BAR))


class _Guarded:
    """A text stream but for what is written to it; ``kept`` may begin a text."""

    def __init__(self, stream: TextIO, ours: Collection[str], kept: re.Pattern[str] | None = None) -> None:
        self._stream, self._ours, self._kept = stream, ours, kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        begin = self._kept.match(text) if self._kept else None
        own, told = (begin.group(), text[begin.end() :]) if begin else ("", text)
        coding = self._stream.encoding or "utf-8"
        seen = "\n".join(map(_spelled, keyless(told, self._ours).split("\n")))
        self._stream.write(own + seen.encode(coding, "backslashreplace").decode(coding))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)


def _spelled(line: str) -> str:
    if line.isascii() and line.isprintable():
        return line
    return "".join(
        one.encode("unicode_escape").decode("ascii")
        if unicodedata.category(one) in _STEERS or _UNSEEN.match(one)
        else one
        for one in line
    )
