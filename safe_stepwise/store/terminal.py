"""Makes text from outside safe to keep and print: without credentials and without control characters.

A server's message may hold the key that was sent to it. Ids, messages and keys of files may hold characters that
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
from typing import Any, TextIO, cast
from urllib.parse import quote

_STEERS = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
"""Categories of Unicode: controls (ANSI begins with one), bidi marks, surrogates, line ends."""
_INVISIBLE = re.compile(
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\ufe00-\\ufe0f\\uffa0\\U000e0000-\\U000e0fff]"
)
"""Letters and marks that are not visible."""
MAX_LINE_CHARACTERS = 2_000
"""Characters of a line; longer ones are cut, as an id or a title may have a million."""
_BAR_MOVES = re.compile(r"\r|(?:\n|\x1b\[A)+\Z")
"""What tqdm writes to move the cursor: to the line's start or, alone, down and up."""


def printable(text: str) -> str:
    """Return a text as one line: control characters escaped, cut after `MAX_LINE_CHARACTERS` characters.

    >>> printable("row \\x1b[31mq1\\u202e\\nnext")
    'row \\\\x1b[31mq1\\\\u202e next'
    """
    line = " ".join(text[: MAX_LINE_CHARACTERS + 1].split())
    return _escape_controls(line if len(text) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]}…")


def sanitize(text: object, limit: int | None = None) -> str:
    """Return a text from outside as one `printable` line without credentials, of at most ``limit`` characters.

    >>> sanitize("Bearer abcdefgh12345678\\nis unknown")
    'Bearer [redacted] is unknown'
    """
    line = printable(redact(str(text)))  # in this order, as a key that is cut would not be recognised
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def guard_output() -> None:
    """Make this process print no control characters and none of its credentials, as libraries log servers' messages.

    Line ends stay, and on standard error the movements of progress bars. A character that the stream can't write is
    escaped, too.
    """
    secrets = tuple(credentials().values())
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    sys.stdout = cast(TextIO, _Guarded(sys.stdout, secrets))
    sys.stderr = cast(TextIO, _Guarded(sys.stderr, secrets, _BAR_MOVES))


class _Guarded:
    """A text stream that escapes and redacts what is written to it, except ``moves`` at the start of a text."""

    def __init__(self, stream: TextIO, secrets: Collection[str], moves: re.Pattern[str] | None = None) -> None:
        self._stream, self._secrets, self._moves = stream, secrets, moves

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        start = self._moves.match(text) if self._moves else None
        move = start.group() if start else ""
        coding = self._stream.encoding or "utf-8"
        visible = "\n".join(map(_escape_controls, redact_keys(text[len(move) :], self._secrets).split("\n")))
        self._stream.write(move + visible.encode(coding, "backslashreplace").decode(coding))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)


def _escape_controls(line: str) -> str:
    if line.isascii() and line.isprintable():
        return line
    controls = {char for char in line if unicodedata.category(char) in _STEERS or _INVISIBLE.match(char)}
    return line.translate({ord(char): char.encode("unicode_escape").decode("ascii") for char in controls})


HUGGING_FACE, OPENAI, AWS = "a Hugging Face token", "an OpenAI or Anthropic key", "an AWS key"
PATTERNS: tuple[tuple[str, str, str], ...] = (
    (HUGGING_FACE, "hf_", r"(?:[A-Za-z0-9]{30,}|(?:oauth|jwt)_(?=[\w.-]{0,99}[0-9])[\w.-]{20,})"),
    (HUGGING_FACE, "api_org_", r"[A-Za-z0-9]{30,}"),
    # A digest of digits behind "task-" or "disk-" is no key, though DeepSeek's keys look like one.
    (
        OPENAI,
        "sk-",
        r"(?:(?!(?<=[aeiou]sk-)[0-9A-Fa-f]{32,64}(?![0-9A-Za-z]))[A-Za-z0-9]{32,}"
        r"|(?:proj|svcacct|admin|ant|or)-(?=[\w-]{0,99}[0-9])[\w-]{20,})",
    ),
    (AWS, "AKIA", r"[0-9A-Z]{16}(?![0-9A-Za-z])"),
    (AWS, "ASIA", r"[0-9A-Z]{16}(?![0-9A-Za-z])"),
    *(("a GitHub token", f"gh{kind}_", r"[A-Za-z0-9]{36}") for kind in "pousr"),
    ("a GitHub token", "github_pat_", r"[A-Za-z0-9_]{40,}"),
    ("a GitLab token", "glpat-", r"[\w-]{20}"),
    ("a Google key", "AIza", r"[\w-]{35}"),
    ("a Slack token", "xox", r"[abprs]-[0-9A-Za-z-]{20,}"),
    ("a PyPI token", "pypi-AgE", r"[\w-]{50,}"),
    ("a Groq key", "gsk_", r"[A-Za-z0-9]{40,}"),
    ("an xAI key", "xai-", r"[A-Za-z0-9]{40,}"),
    ("an NVIDIA key", "nvapi-", r"[\w-]{40,}"),
    *(("a Stripe key", f"{kind}_live_", r"[A-Za-z0-9]{20,}") for kind in ("sk", "rk")),
    ("a Stripe key", "whsec_", r"[A-Za-z0-9+/=]{30,}"),
    ("a Replicate token", "r8_", r"[A-Za-z0-9]{37}(?![A-Za-z0-9])"),
    ("a Together key", "tgp_v1_", r"[\w-]{40,}"),
    ("a Weights & Biases key", "wandb_v1_", r"[\w-]{40,}"),
    ("a Slack token", "xapp-", r"[0-9]-[0-9A-Za-z-]{20,}"),
    ("a JSON web token", "eyJ", r"[\w-]{10,300}+\.eyJ[\w-]{10,4000}+\.[\w-]{16,}"),
    *(
        ("a database's password", scheme, r"(?:ql|\+srv|s)?://[^\s/@:\"']{0,64}:[^\s/@\"'{}$<]{4,}@")
        for scheme in ("postgres", "mysql", "mongodb", "redis", "amqp")
    ),
    (
        "a password of netrc",
        "machine ",
        r"[\w-]{1,60}(?:\.[\w-]{1,60}){1,5}\s{1,9}login\s{1,9}\S{1,99}\s{1,9}password\s{1,9}\S{4,}",
    ),
    ("a private key", "-----BEGIN ", r"(?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----"),
)
"""The name of each kind of key, how it begins, and the pattern of what follows (ASCII)."""

REDACTED = "[redacted]"
_SHORTEST = 8
"""Characters of a credential of ours; a shorter value (``EMPTY``) could be any word."""
_NAMES = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "_PWD_", "_PAT_")
_KEY = re.compile("|".join(re.escape(start) + suffix for _, start, suffix in PATTERNS), re.ASCII)
_KEY_BY_PLACE = re.compile(
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
        is_secret = any(word in f"{name.upper()}_" for word in _NAMES)
        if is_secret and value.strip() not in secrets.values():
            secrets[name] = value.strip()
    return {name: value for name, value in secrets.items() if len(value) >= _SHORTEST and not os.path.exists(value)}


def redact(text: str) -> str:
    """Return a text with ``[redacted]`` in place of every credential of ours and all that looks like a key.

    >>> redact("received key Bearer " + "sk-" + "a" * 40)
    'received key Bearer [redacted]'
    >>> redact("the api_key=Gh3kk29dkw9wx is wrong, see http://me:pw@proxy:80/")
    'the api_key[redacted] is wrong, see http://[redacted]@proxy:80/'
    """
    return _KEY_BY_PLACE.sub(REDACTED, redact_keys(text, credentials().values()))


def redact_keys(text: str, secrets: Collection[str]) -> str:
    """Return a text with ``[redacted]`` for ``secrets`` in any spelling, and for what certainly is a key by its form.

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
    coded = {value, value[::-1], json.dumps(value)[1:-1], quote(raw, safe=""), raw.hex()}
    for shift in range(3):
        padded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        inner = padded[-(-8 * shift // 6) : len(padded) - ((len(raw) + shift) % 3 > 0)]
        coded |= {inner, inner.replace("+", "-").replace("/", "_")}
    return frozenset(coded)


@functools.lru_cache(maxsize=8)
def _spellings_pattern(values: tuple[str, ...]) -> re.Pattern[str]:
    """Make the pattern of every spelling of some credentials, each character escaped or not."""
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
