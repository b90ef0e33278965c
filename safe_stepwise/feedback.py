"""A verifier's verdict as JSON: the schema it is asked for, and the reader of what it replies.

A verdict is one flat JSON object of strings. Around it anything may stand (prose, a code fence, an
enclosing object), keys may be spelled in any case, a comma may trail; other keys are passed over.
The label is compared exactly, after normalising its spelling. Three things are refused rather than
guessed at: verdicts that differ, a verdict that breaks off, a label outside the setting.

A valid ``Feedback``, which is what ``format_feedback`` writes and ``parse_feedback`` gives back
unchanged, has a label of the taxonomy, a guidance that is not blank unless the label is
``Correct``, a query that is not blank with ``Missing Evidence`` and none with any other label, and
text that UTF-8 can hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from safe_stepwise.records import Feedback
from safe_stepwise.taxonomy import (
    CORRECT,
    MISSING_EVIDENCE,
    labels,
    normalize_label,
    spelling,
)

_KEYS = {spelling(key): key for key in ("error_type", "diagnosis", "guidance", "query")}

# Possessive throughout, and only flat objects match. A scan ends at the first brace outside its
# strings, so two scans over one character must disagree on which quotes open a string: every
# character is read at most twice, whatever the input.
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_KEY = re.compile(rf"\s*+({_STRING})\s*+:", re.DOTALL)
_VALUE = re.compile(rf"\s*+({_STRING}|-?+[0-9][-+.0-9eE]*+|true|false|null)\s*+", re.DOTALL)
_WRITTEN_KEY = re.compile(r'(?<!\\)"([^"\\\r\n]{1,40}+)"\s*+:')
_CLOSE = re.compile(r"\s*+\}")


class FeedbackError(ValueError):
    """A reply that is no verdict, or a verdict that is not valid; the message is the reason."""


def feedback_schema(incomplete_evidence: bool = False) -> dict[str, Any]:
    """The JSON schema of a verdict; with ``incomplete_evidence`` also ``query`` and its label.

    ``query`` is optional in the schema and required by ``parse_feedback`` with ``Missing
    Evidence``: conditions between fields are beyond what guided decoding understands.

    >>> sorted(feedback_schema(incomplete_evidence=True)["properties"])
    ['diagnosis', 'error_type', 'guidance', 'query']
    """
    properties: dict[str, Any] = {
        "error_type": {"type": "string", "enum": list(labels(incomplete_evidence))},
        "diagnosis": {"type": "string", "description": "Why this label applies to the step."},
        "guidance": {"type": "string", "description": "What the very next step should do."},
    }
    required = list(properties)
    if incomplete_evidence:
        properties["query"] = {
            "type": "string",
            "minLength": 1,
            "description": f"What to search for; only with {MISSING_EVIDENCE}.",
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Feedback",
        "description": "A verifier's verdict on one reasoning step.",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


FEEDBACK_SCHEMA: dict[str, Any] = feedback_schema()


def format_feedback(feedback: Feedback) -> str:
    """The verdict as a JSON object that satisfies ``feedback_schema``.

    Raises FeedbackError for a verdict that is not valid (see the module's docstring).

    >>> format_feedback(Feedback("Correct", "Oru is named.", "Find Oru's river."))
    '{"error_type": "Correct", "diagnosis": "Oru is named.", "guidance": "Find Oru\\'s river."}'
    """
    _check(feedback, incomplete_evidence=True)
    fields = {
        "error_type": feedback.error_type,
        "diagnosis": feedback.diagnosis,
        "guidance": feedback.guidance,
    }
    if feedback.query is not None:
        fields["query"] = feedback.query
    return json.dumps(fields, ensure_ascii=False)


def parse_feedback(text: str, incomplete_evidence: bool = False) -> Feedback:
    """The one verdict that a reply holds; strings are kept as they are.

    A missing guidance is read as empty with ``Correct``; a query is left out with any label but
    ``Missing Evidence``. Raises FeedbackError, and nothing else, where there is no valid verdict.

    >>> parse_feedback('Sure: {"Error Type": "correct", "diagnosis": "Yes.", "guidance": "",}')
    Feedback(error_type='Correct', diagnosis='Yes.', guidance='', query=None)
    >>> parse_feedback('{"error_type": "Incorrect", "diagnosis": "No.", "guidance": "Retry."}')
    Traceback (most recent call last):
    safe_stepwise.feedback.FeedbackError: unknown label 'Incorrect'
    """
    verdicts: list[Feedback] = []
    seen = False
    for found in _objects(text):
        seen = True
        if "error_type" not in found:
            continue
        feedback = _feedback(found)
        if verdicts and feedback != verdicts[0]:
            raise FeedbackError("two different verdicts in one reply")
        verdicts.append(feedback)
    if not verdicts:
        raise FeedbackError("no JSON object has an error_type" if seen else "no JSON object")
    if _labels_given(text) > len(verdicts):
        raise FeedbackError("error_type is given outside of the verdict, too")
    _check(verdicts[0], incomplete_evidence)
    return verdicts[0]


def _labels_given(text: str) -> int:
    """How often a key that means error_type is written, even where the JSON around it is broken.

    Without it, an object that nests ``Correct`` before its own label would be read as correct.
    """
    return sum(_KEYS.get(spelling(key)) == "error_type" for key in _WRITTEN_KEY.findall(text))


def _objects(text: str) -> Iterator[dict[str, object]]:
    """The flat objects in a text, outermost first, with the keys of a verdict only."""
    start = text.find("{")
    while start != -1:
        end, found = _object_at(text, start)
        if end is None:
            end = start + 1
        else:
            yield found
        start = text.find("{", end)


def _object_at(text: str, start: int) -> tuple[int | None, dict[str, object]]:
    """Where the flat object at ``start`` ends and what it holds; None when there is none.

    An object that has shown a key of a verdict and then breaks the rules is refused outright:
    passing over it would let JSON that one of its strings quotes stand in for it.
    """
    found: dict[str, object] = {}
    at = start + 1
    while not (close := _CLOSE.match(text, at)):
        key = _KEY.match(text, at)
        name = None if key is None else _KEYS.get(spelling(key[1]))
        value = None if key is None else _VALUE.match(text, key.end())
        if value is None:
            return _no_object(found, name)
        if name is not None:
            _put(found, name, _decoded(value[1]))
        at = value.end()
        if text.startswith(",", at):
            at += 1
        elif not text.startswith("}", at):
            return _no_object(found, None)
    return close.end(), found


def _no_object(found: dict[str, object], name: str | None) -> tuple[None, dict[str, object]]:
    if name is not None:
        raise FeedbackError(f"{name} is no JSON string, or the reply breaks off in it")
    if found:
        raise FeedbackError(f"the JSON object is malformed or breaks off after {[*found][-1]}")
    return None, {}


def _put(found: dict[str, object], name: str, value: object) -> None:
    if name in found and found[name] != value:
        raise FeedbackError(f"two values for {name} in one object")
    found[name] = value


def _decoded(token: str) -> Any:
    try:
        return json.loads(token, strict=False)  # not strict: models leave newlines unescaped
    except ValueError as error:
        raise FeedbackError(f"not JSON: {token[:40]!r} ({error})") from None


def _feedback(found: dict[str, object]) -> Feedback:
    """The verdict in a decoded object: fields of the right type, a label that exists."""
    for name, value in found.items():
        if value is not None and not isinstance(value, str):
            raise FeedbackError(f"{name} is not a string but {str(value)[:40]}")
    written, diagnosis = found["error_type"], found.get("diagnosis")
    label = normalize_label(written) if isinstance(written, str) else None
    if label is None:
        raise FeedbackError(f"unknown label {str(written)[:80]!r}")
    if not isinstance(diagnosis, str):
        raise FeedbackError("diagnosis is missing")
    query = str(found.get("query") or "") if label == MISSING_EVIDENCE else None
    return Feedback(label, diagnosis, str(found.get("guidance") or ""), query)


def _check(feedback: Feedback, incomplete_evidence: bool) -> None:
    label = feedback.error_type
    if label not in labels(incomplete_evidence=True):
        raise FeedbackError(f"unknown label {label[:80]!r}")
    if label == MISSING_EVIDENCE and not incomplete_evidence:
        raise FeedbackError(f"{label} is a label of the incomplete-evidence setting only")
    if label != CORRECT and not feedback.guidance.strip():
        raise FeedbackError(f"guidance is missing or empty with the label {label}")
    if label == MISSING_EVIDENCE and not (feedback.query or "").strip():
        raise FeedbackError(f"query is missing or empty with the label {label}")
    if label != MISSING_EVIDENCE and feedback.query is not None:
        raise FeedbackError(f"a query does not go with the label {label}")
    try:
        f"{feedback.diagnosis}{feedback.guidance}{feedback.query}".encode()
    except UnicodeEncodeError:
        raise FeedbackError("the text holds half of a surrogate pair") from None
