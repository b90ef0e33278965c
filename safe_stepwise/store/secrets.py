"""Credentials: what they look like, which are ours, and a text without them.

What a server says is data of a stranger, and may hold the key that it was sent. So it passes
`redacted` before it is kept or printed.
"""

import base64
import functools
import json
import os
import re
from collections.abc import Collection
from urllib.parse import quote

HUGGING_FACE, OPENAI, AWS = "a Hugging Face token", "an OpenAI or Anthropic key", "an AWS key"
PATTERNS: tuple[tuple[str, str, str], ...] = (
    (HUGGING_FACE, "hf_", r"(?:[A-Za-z0-9]{30,}|(?:oauth|jwt)_[\w.-]{20,})"),
    (HUGGING_FACE, "api_org_", r"[A-Za-z0-9]{30,}"),
    (OPENAI, "sk-", r"(?:[A-Za-z0-9]{32,}|(?:proj|svcacct|admin|ant|or)-[\w-]{20,})"),
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
