"""Text of strangers, as it may be kept or printed: without credentials, and steering no terminal.

What a server says is data, and may hold the key that it was sent. Ids, server messages and keys of files may hold
control characters.
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
    return _plainly(line if len(text) <= LONGEST else f"{line[:LONGEST]}…")


def shown(text: object, limit: int | None = None) -> str:
    """What a stranger says, as it may be kept or printed: `printable`, without credentials, cut at a limit.

    >>> shown("Bearer abcdefgh12345678\\nis unknown")
    'Bearer [redacted] is unknown'
    """
    line = printable(redacted(str(text)))  # in this order: a key that is cut would not be known
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def guard_output() -> None:
    """From now on print only what steers no terminal, whoever prints it, this process over.

    Line ends stay, and on standard error the movements of progress bars. A character that the stream cannot write is
    spelled out as well, and our credentials are left out: libraries log what servers say.
    """
    ours = tuple(credentials().values())
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
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
        seen = "\n".join(map(_plainly, keyless(told, self._ours).split("\n")))
        self._stream.write(own + seen.encode(coding, "backslashreplace").decode(coding))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)


def _plainly(line: str) -> str:
    if line.isascii() and line.isprintable():
        return line
    return "".join(
        one.encode("unicode_escape").decode("ascii")
        if unicodedata.category(one) in _STEERS or _UNSEEN.match(one)
        else one
        for one in line
    )


HUGGING_FACE, OPENAI, AWS = "a Hugging Face token", "an OpenAI or Anthropic key", "an AWS key"
PATTERNS: tuple[tuple[str, str, str], ...] = (
    (HUGGING_FACE, "hf_", r"(?:[A-Za-z0-9]{30,}|(?:oauth|jwt)_(?=[\w.-]{0,99}[0-9])[\w.-]{20,})"),
    (HUGGING_FACE, "api_org_", r"[A-Za-z0-9]{30,}"),
    # Digits of a task's or a disk's digest are none, though DeepSeek's keys are of the same.
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
"""What it is called, how it begins, and the pattern of the rest (ASCII)."""

REDACTED = "[redacted]"
_SHORTEST = 8
"""Characters of a credential of ours; what is shorter (``EMPTY``) could be any word."""
_NAMES = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "_PWD_", "_PAT_")
_KEY = re.compile("|".join(re.escape(start) + rest for _, start, rest in PATTERNS), re.ASCII)
_KEY_BY_PLACE = re.compile(
    # What stands behind a scheme of HTTP, in an address before its host, behind a field's name.
    r"(?i:(?<=bearer )\S{8,}|(?<=basic )[\w+/=-]{16,}|(?<=[a-z]://)[^\s/@:]*+:[^\s/@]++(?=@)"
    + r"|(?:(?<=key)|(?<=token)|(?<=secret)|(?<=password))"
    + r"[\"'`]?\s?[:=]\s?[\"'`]?[^\s\"'`,;}\])]{12,})",
    re.ASCII,
)


def credentials() -> dict[str, str]:
    """Credentials of this process by where they stand: the environment, or the Hub's own file.

    A variable is one if its name says so (``OPENAI_API_KEY``) and its value is no file here.
    """
    from huggingface_hub import get_token

    named = {"the Hub's token": get_token() or ""}
    for name, value in os.environ.items():
        is_one = any(word in f"{name.upper()}_" for word in _NAMES)
        if is_one and value.strip() not in named.values():
            named[name] = value.strip()
    long = {name: value for name, value in named.items() if len(value) >= _SHORTEST}
    return {name: value for name, value in long.items() if not os.path.exists(value)}


def redacted(text: str) -> str:
    """A text with ``[redacted]`` for every credential of ours and whatever looks like a key.

    >>> redacted("received key Bearer " + "sk-" + "a" * 40)
    'received key Bearer [redacted]'
    >>> redacted("the api_key=Gh3kk29dkw9wx is wrong, see http://me:pw@proxy:80/")
    'the api_key[redacted] is wrong, see http://[redacted]@proxy:80/'
    """
    return _KEY_BY_PLACE.sub(REDACTED, keyless(text, credentials().values()))


def keyless(text: str, ours: Collection[str]) -> str:
    """A text of a stranger without ``ours``, however spelled, and whatever only a key looks like.

    Unlike `redacted` it leaves alone what a text may well say, as ``Key: Constantinople1453``.

    >>> keyless("Key: Constantinople1453, and dG9wc2VjcmV0MTI= is top%73ecret12", ["topsecret12"])
    'Key: Constantinople1453, and [redacted]I= is [redacted]'
    """
    folded = text.lower()
    found = any(one in folded for value in ours for one in _folded(value))
    # A character may be escaped that need not be, so that no spelling is there as a whole.
    if found or (ours and any(mark in text for mark in ("\\", "%", "&#"))):
        text = _spelled(tuple(sorted(ours, key=len, reverse=True))).sub(REDACTED, text)
    if any(start in text for _, start, _ in PATTERNS):
        text = _KEY.sub(REDACTED, text)
    return text


@functools.lru_cache(maxsize=64)
def spellings(value: str) -> frozenset[str]:
    """How a credential may be written down: as it is, escaped, encoded, backwards.

    In base64 (which Basic auth is) it looks different at each of three places behind what precedes
    it, and its ends depend on its neighbours.
    """
    raw = os.fsencode(value)
    coded = {value, value[::-1], json.dumps(value)[1:-1], quote(raw, safe=""), raw.hex()}
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        inner = whole[-(-8 * shift // 6) : len(whole) - ((len(raw) + shift) % 3 > 0)]
        coded |= {inner, inner.replace("+", "-").replace("/", "_")}
    return frozenset(coded)


@functools.lru_cache(maxsize=64)
def _folded(value: str) -> frozenset[str]:
    return frozenset(map(str.lower, spellings(value)))


@functools.lru_cache(maxsize=8)
def _spelled(values: tuple[str, ...]) -> re.Pattern[str]:
    """Matches every spelling of some credentials, each character escaped or not."""
    found = []
    for value in values:
        found += sorted(map(re.escape, spellings(value)), key=len, reverse=True)
        found.append("".join(_escaped_or_not(character) for character in value))
    return re.compile("|".join(found), re.IGNORECASE)


def _escaped_or_not(character: str) -> str:
    code = ord(character)
    as_percent = "".join(f"%{byte:02x}" for byte in os.fsencode(character))
    as_html = f"&#(?:0*{code}|x0*{code:x});?"
    return rf"(?:\\{{0,4}}(?:{re.escape(character)}|u{code:04x})|{as_percent}|{as_html})"
