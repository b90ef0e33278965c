"""Text of strangers on a terminal: ids, server messages and keys of files steer nothing there."""

import unicodedata

_STEERS = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
"""Categories of Unicode: controls (ANSI begins with one), bidi marks, surrogates, line ends."""


def printable(text: str) -> str:
    """A text as one line whose every character is seen: what steers is spelled out.

    >>> printable("row \\x1b[31mq1\\u202e\\nnext")
    'row \\\\x1b[31mq1\\\\u202e next'
    """
    line = " ".join(text.split())
    if line.isascii() and line.isprintable():
        return line
    return "".join(
        one.encode("unicode_escape").decode("ascii")
        if unicodedata.category(one) in _STEERS
        else one
        for one in line
    )
