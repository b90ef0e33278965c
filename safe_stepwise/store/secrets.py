"""Credentials: what they look like, which are ours, and a text without them.

What a server says is data of a stranger, and may hold the key that it was sent. So it passes
`redacted` before it is kept or printed.
"""

import os
import re

HUGGING_FACE, OPENAI, AWS = "a Hugging Face token", "an OpenAI or Anthropic key", "an AWS key"
PATTERNS: tuple[tuple[str, str, str], ...] = (
    (HUGGING_FACE, "hf_", r"(?:[A-Za-z0-9]{30,}|(?:oauth|jwt)_[\w.-]{20,})"),
    (HUGGING_FACE, "api_org_", r"[A-Za-z0-9]{30,}"),
    (OPENAI, "sk-", r"(?:[A-Za-z0-9]{32,}|(?:proj|svcacct|admin|ant)-[\w-]{20,})"),
    (AWS, "AKIA", r"[0-9A-Z]{16}(?![0-9A-Za-z])"),
    (AWS, "ASIA", r"[0-9A-Z]{16}(?![0-9A-Za-z])"),
    *(("a GitHub token", f"gh{kind}_", r"[A-Za-z0-9]{36}") for kind in "pousr"),
    ("a GitHub token", "github_pat_", r"[A-Za-z0-9_]{40,}"),
    ("a GitLab token", "glpat-", r"[\w-]{20}"),
    ("a Google key", "AIza", r"[\w-]{35}"),
    ("a Slack token", "xox", r"[abprs]-[0-9A-Za-z-]{20,}"),
    ("a PyPI token", "pypi-AgE", r"[\w-]{50,}"),
    ("a private key", "-----BEGIN ", r"(?:[A-Z]+ ){0,2}PRIVATE KEY-----"),
)
"""What it is called, how it begins, and the pattern of the rest (ASCII)."""

REDACTED = "[redacted]"
_SHORTEST = 8
"""Characters of a credential of ours; what is shorter (``EMPTY``) could be any word."""
_NAMES = {"KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS"}
_KEY_LIKE = re.compile(
    "|".join(re.escape(start) + rest for _, start, rest in PATTERNS)
    # What stands behind a scheme of HTTP, in an address before its host, behind a field's name.
    + r"|(?i:(?<=bearer )\S{8,}|(?<=basic )[\w+/=-]{16,}|(?<=[a-z]://)[^\s/@:]*+:[^\s/@]++(?=@)"
    + r"|(?:(?<=key)|(?<=token)|(?<=secret)|(?<=password))"
    + r"[\"'`]?\s?[:=]\s?[\"'`]?[^\s\"'`,;}\])]{12,})",
    re.ASCII,
)


def credentials() -> dict[str, str]:
    """Credentials of this process by where they stand: the environment, or the Hub's own file.

    A variable is one if a word of its name says so (``OPENAI_API_KEY``) and its value is no path.
    """
    named = {
        name: value.strip()
        for name, value in os.environ.items()
        if _NAMES & set(name.upper().split("_")) and not value.startswith(("/", "~", "."))
    }
    from huggingface_hub import get_token

    named.setdefault("HF_TOKEN", get_token() or "")
    return {name: value for name, value in named.items() if len(value) >= _SHORTEST}


def redacted(text: str) -> str:
    """A text with ``[redacted]`` for every credential of ours and whatever looks like a key.

    >>> redacted("received key Bearer " + "sk-" + "a" * 40)
    'received key Bearer [redacted]'
    >>> redacted("the api_key=Gh3kk29dkw9wx is wrong, see http://me:pw@proxy:80/")
    'the api_key[redacted] is wrong, see http://[redacted]@proxy:80/'
    """
    for value in sorted(credentials().values(), key=len, reverse=True):
        text = text.replace(value, REDACTED)
    return _KEY_LIKE.sub(REDACTED, text)
