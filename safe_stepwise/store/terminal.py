"""Makes text from outside safe to keep and print: without credentials and without control characters.

A server's message may repeat the key that was sent to it. Ids, messages and keys in files may have characters that
control the terminal.
"""

import base64
import functools
import json
import os
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, TextIO, cast
from urllib.parse import quote

_CONTROL_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
"""Categories of Unicode: controls (ANSI begins with one), bidi marks, surrogates, line ends."""
_INVISIBLE = re.compile(
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\ufe00-\\ufe0f\\uffa0\\U000e0000-\\U000e0fff]"
)
"""Letters and marks that are not visible."""
MAX_LINE_CHARS = 2_000
"""Maximum characters of a line; a longer line is cut, as an id or a title may have a million."""
_CURSOR_MOVES = re.compile(r"\r|(?:\n|\x1b\[A)+\Z")
"""What tqdm writes to move the cursor: to the line's start or, as a text of its own, down and up."""


def printable(text: str) -> str:
    """Return a text as one line: control characters escaped, cut after `MAX_LINE_CHARS` characters.

    >>> printable("row \\x1b[31mq1\\u202e\\nnext")
    'row \\\\x1b[31mq1\\\\u202e next'
    """
    line = " ".join(text[: MAX_LINE_CHARS + 1].split())
    return _escape_controls(line if len(text) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}…")


def sanitize(text: object, limit: int | None = None) -> str:
    """Return a text from outside as one `printable` line without credentials, of at most ``limit`` characters.

    >>> sanitize("Bearer abcdefgh12345678\\nis unknown")
    'Bearer [redacted] is unknown'
    """
    line = printable(redact(str(text)))  # in this order, as a key that is cut would not be recognised
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def guard_output() -> None:
    """Make this process print no control characters and none of its credentials, as libraries log servers' messages.

    Line ends are kept, as are progress bars' cursor movements on standard error. A character that the stream can't
    write is also escaped.
    """
    secrets = tuple(credentials().values())
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    sys.stdout = cast(TextIO, _Guarded(sys.stdout, secrets))
    sys.stderr = cast(TextIO, _Guarded(sys.stderr, secrets, _CURSOR_MOVES))


class _Guarded:
    """A text stream that escapes and redacts what is written to it, except ``moves`` at the start of a text."""

    def __init__(self, stream: TextIO, secrets: Collection[str], moves: re.Pattern[str] | None = None) -> None:
        self._stream, self._secrets, self._moves = stream, secrets, moves

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        start = self._moves.match(text) if self._moves else None
        moves_written = start.group() if start else ""
        coding = self._stream.encoding or "utf-8"
        visible = "\n".join(map(_escape_controls, redact_keys(text[len(moves_written) :], self._secrets).split("\n")))
        self._stream.write(moves_written + visible.encode(coding, "backslashreplace").decode(coding))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)


def _escape_controls(line: str) -> str:
    if line.isascii() and line.isprintable():
        return line
    controls = {char for char in line if unicodedata.category(char) in _CONTROL_CATEGORIES or _INVISIBLE.match(char)}
    return line.translate({ord(char): char.encode("unicode_escape").decode("ascii") for char in controls})


_LINES = Path(__file__).with_name("keys.tsv").read_text(encoding="utf-8").splitlines()
PATTERNS = tuple((*line.split("\t"),) for line in _LINES if not line.startswith("#"))
"""The name of each kind of key, how it begins, and the pattern of what follows (ASCII)."""

REDACTED = "[redacted]"
_MIN_CHARS = 8
"""A shorter value of a variable (``EMPTY``) is not taken for a credential, as it could be any word."""
_NAME_PARTS = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "_PWD_", "_PAT_")
_KEY = re.compile("|".join(re.escape(start) + suffix for _, start, suffix in PATTERNS), re.ASCII)
_KEY_BY_CONTEXT = re.compile(
    # What follows a scheme of HTTP, precedes the host of an address, or follows a field's name.
    r"(?i:(?<=bearer )\S{8,}|(?<=basic )[\w+/=-]{16,}|(?<=[a-z]://)[^\s/@:]*+:[^\s/@]++(?=@)"
    + r"|(?:(?<=key)|(?<=token)|(?<=secret)|(?<=password))"
    + r"[\"'`]?\s?[:=]\s?[\"'`]?[^\s\"'`,;}\])]{12,})",
    re.ASCII,
)


def credentials() -> dict[str, str]:
    """Return this process's credentials by the name of their environment variable, and the Hub's stored token.

    A variable holds a credential if its name says so (``OPENAI_API_KEY``) and its value is not the path of a file.
    """
    from huggingface_hub import get_token

    secrets = {"the Hub's token": get_token() or ""}
    for name, value in os.environ.items():
        is_secret = any(word in f"{name.upper()}_" for word in _NAME_PARTS)
        if is_secret and value.strip() not in secrets.values():
            secrets[name] = value.strip()
    return {name: value for name, value in secrets.items() if len(value) >= _MIN_CHARS and not os.path.exists(value)}


def redact(text: str) -> str:
    """Return a text with ``[redacted]`` for each of this process's credentials and all that looks like a key.

    >>> redact("received key Bearer " + "sk-" + "a" * 40)
    'received key Bearer [redacted]'
    >>> redact("the api_key=Gh3kk29dkw9wx is wrong, see http://me:pw@proxy:80/")
    'the api_key[redacted] is wrong, see http://[redacted]@proxy:80/'
    """
    return _KEY_BY_CONTEXT.sub(REDACTED, redact_keys(text, credentials().values()))


def redact_keys(text: str, secrets: Collection[str]) -> str:
    """Return a text with ``[redacted]`` for ``secrets`` in any spelling, and for what must be a key by its form.

    Unlike `redact` it keeps words that ordinary prose may have, such as ``Key: Constantinople1453``.

    >>> redact_keys("Key: Constantinople1453, and dG9wc2VjcmV0MTI= is top%73ecret12", ["topsecret12"])
    'Key: Constantinople1453, and [redacted]I= is [redacted]'
    """
    folded = text.lower()
    has_secret = any(spelling.lower() in folded for value in secrets for spelling in spellings(value))
    # A single character may be escaped needlessly, and then no spelling matches as a whole.
    if has_secret or (secrets and any(mark in text for mark in ("\\", "%", "&#"))):
        text = _spellings_pattern(tuple(sorted(secrets, key=len, reverse=True))).sub(REDACTED, text)
    if any(start in text for _, start, _ in PATTERNS):
        text = _KEY.sub(REDACTED, text)
    return text


@functools.lru_cache(maxsize=64)
def spellings(value: str) -> frozenset[str]:
    """List how a credential may be spelled: literally, escaped, encoded, backwards.

    In base64 (Basic auth) it has three spellings, by the number of bytes before it, and its ends depend on its
    neighbours.
    """
    raw = os.fsencode(value)
    variants = {value, value[::-1], json.dumps(value)[1:-1], quote(raw, safe=""), raw.hex()}
    for shift in range(3):
        padded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        inner = padded[-(-8 * shift // 6) : len(padded) - ((len(raw) + shift) % 3 > 0)]
        variants |= {inner, inner.replace("+", "-").replace("/", "_")}
    return frozenset(variants)


@functools.lru_cache(maxsize=8)
def _spellings_pattern(values: tuple[str, ...]) -> re.Pattern[str]:
    """Make a pattern of all spellings of some credentials, with each character escaped or not."""
    patterns = []
    for value in values:
        patterns += sorted(map(re.escape, spellings(value)), key=len, reverse=True)
        patterns.append("".join(map(_character_pattern, value)))
    return re.compile("|".join(patterns), re.IGNORECASE)


def _character_pattern(character: str) -> str:
    code = ord(character)
    as_percent = "".join(f"%{byte:02x}" for byte in os.fsencode(character))
    as_html = f"&#(?:0*{code}|x0*{code:x});?"
    return rf"(?:\\{{0,4}}(?:{re.escape(character)}|u{code:04x})|{as_percent}|{as_html})"
