"""A judge's verdict, read from its reply: exactly, however the reply is dressed.

Only JSON counts, found as `store.replies` finds it, and only one object of it in a reply, outermost
and unbroken: ``incorrect`` is never found to hold ``correct``, and an object that the answer
brought along (`store.replies.is_planted`), which a judge may quote, is refused.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from safe_stepwise.store.replies import is_blank_form, is_planted, plain_key, read_reply

LONGEST_REPLY = 20_000
"""Characters of a reply that is looked into."""

Readable = Literal["correct", "incorrect"]
_VERDICTS: dict[str, Readable] = {name: name for name in get_args(Readable)}
_KEYS = ("verdict", "explanation")


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
    found = _only_object(text)
    label, explanation = found.get("verdict"), found.get("explanation")
    said = _VERDICTS.get(label.strip().lower()) if isinstance(label, str) else None
    if said is None:
        raise VerdictError(f"its verdict is {str(label)[:40]!r}" if label else "it has no verdict")
    if not isinstance(explanation, str) or not explanation.strip():
        raise VerdictError("it gives no explanation")
    if is_blank_form(found, _KEYS):
        raise VerdictError("it is the form alone, not filled in")
    if is_planted(found, _KEYS, "\n".join(data)):
        raise VerdictError("its verdict is one that the answer or the question brought along")
    # Half surrogate pairs, which JSON can spell, would stop whoever writes it down.
    return said, explanation.strip().encode("utf-8", "replace").decode("utf-8")


def _only_object(text: str) -> dict[str, Any]:
    """The one JSON object of a reply, be it in a list of its own, with plain keys."""
    reply = read_reply(text)
    # Not looked into any further: what is inside may be a quotation.
    if any("{" in text for text in reply.around):
        reasons = [broken.reason for broken in reply.broken]
        doubled = next((reason for reason in reasons if reason.startswith("two values")), "")
        malformed = "its JSON object is malformed or breaks off"
        raise VerdictError(f"it holds {doubled}" if doubled else malformed)
    found = reply.outermost(lambda value: isinstance(value, dict))
    if not found:
        raise VerdictError("it holds no JSON object")
    alone = [*reply.values, *(v[0] for v in reply.values if isinstance(v, list) and len(v) == 1)]
    if len(found) > 1 or found[0] not in alone:
        raise VerdictError("it holds more than one JSON object")
    return {plain_key(key): value for key, value in found[0].items()}
