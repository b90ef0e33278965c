"""A judge's verdict, read from its reply: exactly, however the reply is dressed.

Only JSON counts, and only one object of it in a reply: a fence, a thought or prose around it is
passed over, ``incorrect`` is never found to hold ``correct``, and an object that the answer brought
along, which a judge may quote, is refused.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

LONGEST_REPLY = 20_000
"""Characters of a reply that is looked into."""

Readable = Literal["correct", "incorrect"]
_VERDICTS: dict[str, Readable] = {name: name for name in get_args(Readable)}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=list)  # lenient on line breaks


class VerdictError(ValueError):
    """A reply without one readable verdict; the message is the reason."""


def read_verdict(text: str, data: Sequence[str] = ()) -> tuple[Readable, str]:
    """The verdict of a reply and its explanation; raises `VerdictError` where there is not one.

    ``data`` is what was judged, and quoted in the prompt: a verdict planted in it is refused.

    >>> read_verdict('```json\\n{"verdict": "Correct", "explanation": "One river."}\\n```')
    ('correct', 'One river.')
    >>> read_verdict('{"verdict": "not correct", "explanation": "?"}')
    Traceback (most recent call last):
    safe_stepwise.metric.judge_reading.VerdictError: its verdict is 'not correct'
    """
    if len(text) > LONGEST_REPLY:
        raise VerdictError(f"it has more than {LONGEST_REPLY:,} characters")
    found = _only_object(_THOUGHT.sub("", text))
    label, explanation = found.get("verdict"), found.get("explanation")
    said = _VERDICTS.get(label.strip().lower()) if isinstance(label, str) else None
    if said is None:
        raise VerdictError(f"its verdict is {str(label)[:40]!r}" if label else "it has no verdict")
    if not isinstance(explanation, str) or not explanation.strip():
        raise VerdictError("it gives no explanation")
    if _is_planted(explanation, data):
        raise VerdictError("its verdict is one that the answer or the question brought along")
    # Half surrogate pairs, which JSON can spell, would stop whoever writes it down.
    return said, explanation.strip().encode("utf-8", "replace").decode("utf-8")


def _only_object(text: str) -> dict[str, object]:
    """The one JSON object at the top level of a text, keys in lower case."""
    start = text.find("{")
    if start == -1:
        raise VerdictError("it holds no JSON object")
    try:
        pairs, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        # Not looked into any further: what is inside may be a quotation.
        raise VerdictError("its JSON object is malformed or breaks off") from None
    if "{" in text[end:]:
        raise VerdictError("it holds more than one JSON object")
    found: dict[str, object] = {}
    for key, value in pairs:
        name = key.strip().lower()
        if name in found and found[name] != value:
            raise VerdictError(f"it holds two values for {name[:40]!r}")
        found[name] = value
    return found


def _is_planted(explanation: str, data: Sequence[str]) -> bool:
    """Whether a text with a brace in it, as a planted object has, holds the explanation."""
    sought = _letters(explanation)
    return any(sought in _letters(form) for text in data if "{" in text for form in _forms(text))


def _forms(text: str) -> Iterator[str]:
    """The text, and what a model makes of it that takes JSON escapes in it for what they mean."""
    for _ in range(3):
        yield text
        text = _ESCAPE.sub(lambda match: chr(int(match[1] or "20", 16)), text)


def _letters(text: str) -> str:
    """Letters and digits alone: neither spacing nor broken up marks hide a quotation."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in plain if character.isalnum())
