"""Writes and reads a verifier's verdict as JSON, by one schema.

A verdict is one flat JSON object of strings, which `store.replies` locates in a reply; other keys are ignored, and so
are verdicts quoted from the prompt. The label is compared exactly, after normalising its spelling. Two different
verdicts, a verdict that breaks off and a label outside the setting are errors; nothing is guessed.

A verdict has one of two orders. SAFE's has the label first, then a diagnosis, so that a model has to name the label
before it has written any reason. The other order has the evidence of the step, then the value that the step gives,
then whether they are the ``same``, ``different`` or (the evidence has no such value) ``absent``, and the label after
these; its diagnosis is one text of the three. Both orders are always read.

A valid ``Feedback`` (``parse_feedback`` gives back unchanged what ``format_feedback`` writes) has a label
of the taxonomy, a guidance that is not blank unless the label is ``Correct``, a query that is not blank with ``Missing
Evidence`` and none with any other label, and text that UTF-8 can hold.
"""

import json
from typing import Any, NamedTuple, get_args

from safe_stepwise.records import EVIDENCE_FIRST, LABEL_FIRST, Feedback, VerdictOrder
from safe_stepwise.store.replies import ReplyError, plain_key, read_reply
from safe_stepwise.taxonomy import CORRECT, MISSING_EVIDENCE, Category, Comparison, category, labels, normalize_label

COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)

_FIELDS = ("error_type", "diagnosis", "guidance", "query")
_EVIDENCE: dict[str, Any] = {
    "evidence": {"type": "string", "description": "What the step rests on, by number, quoted."},
    "claim": {"type": "string", "description": "The value that the step gives."},
    "comparison": {"type": "string", "enum": list(COMPARISONS)},
}
"""The fields that replace the diagnosis if the evidence comes first."""
_STEP = " Step: "


class FeedbackError(ValueError):
    """A reply holds no verdict, or a verdict is not valid; the message is the reason."""


def feedback_schema(
    incomplete_evidence: bool = False, dropped: Category | None = None, order: VerdictOrder = LABEL_FIRST
) -> dict[str, Any]:
    """Return the JSON schema of a verdict; with ``incomplete_evidence`` it has ``query`` and ``Missing Evidence``.

    Labels of a ``dropped`` category are left out. The properties come in the ``order`` in which a verdict has them.

    ``query`` is optional in the schema, though ``parse_feedback`` requires it with ``Missing
    Evidence``: guided decoding supports no conditions between fields.

    >>> sorted(feedback_schema(incomplete_evidence=True)["properties"])
    ['diagnosis', 'error_type', 'guidance', 'query']
    """
    label = {"type": "string", "enum": list(labels(incomplete_evidence, dropped))}
    diagnosis = {"type": "string", "description": "Why this label applies to the step."}
    first = _EVIDENCE if order == EVIDENCE_FIRST else {}
    properties: dict[str, Any] = {
        **first,
        "error_type": label,
        **({} if first else {"diagnosis": diagnosis}),
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


class Evidence(NamedTuple):
    """The evidence of a step, the value it claims, and how the two compare."""

    evidence: str
    claim: str
    comparison: Comparison


def diagnosis_of(evidence: Evidence) -> str:
    """Render evidence as the text of a diagnosis.

    >>> diagnosis_of(Evidence("Passage 2: Ors was born in Tesk.", "Ardle", "different"))
    'Passage 2: Ors was born in Tesk. Step: Ardle. Different.'
    """
    return f"{evidence.evidence}{_STEP}{evidence.claim}. {evidence.comparison.capitalize()}."


def evidence_in(diagnosis: str) -> Evidence | None:
    """Parse a diagnosis that `diagnosis_of` rendered; returns None for any other.

    >>> evidence_in("Passage 2: Ors was born in Tesk. Step: Ardle. Different.")
    Evidence(evidence='Passage 2: Ors was born in Tesk.', claim='Ardle', comparison='different')
    """
    for comparison in COMPARISONS:
        body = diagnosis.removesuffix(f". {comparison.capitalize()}.")
        evidence, step, claim = body.rpartition(_STEP)
        if step and body != diagnosis:
            return Evidence(evidence, claim, comparison)
    return None


def format_feedback(feedback: Feedback, order: VerdictOrder = LABEL_FIRST) -> str:
    """Write a verdict as a JSON object that satisfies the ``feedback_schema`` of an order.

    Raises FeedbackError for a verdict that is not valid (see the module's docstring), and, where the
    evidence comes first, for a diagnosis that `diagnosis_of` did not write.

    >>> format_feedback(Feedback("Correct", "Oru is named.", "Find Oru's river."))
    '{"error_type": "Correct", "diagnosis": "Oru is named.", "guidance": "Find Oru\\'s river."}'
    """
    _check(feedback, incomplete_evidence=True)
    names = _FIELDS if feedback.query is not None else _FIELDS[:-1]
    fields = {name: getattr(feedback, name) for name in names}
    if order == EVIDENCE_FIRST:
        evidence = evidence_in(fields.pop("diagnosis"))
        if evidence is None:
            raise FeedbackError("the diagnosis does not begin with evidence")
        fields = {**evidence._asdict(), **fields}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(fields, ensure_ascii=False)


def parse_feedback(
    text: str, incomplete_evidence: bool = False, data: str = "", dropped: Category | None = None
) -> Feedback:
    """Parse the one verdict in a reply; its strings are kept as they are.

    ``data`` is the text that the request quoted: a verdict in it does not count. A missing guidance is read as empty
    with ``Correct``; a query is left out with any label but ``Missing Evidence``. A label of a ``dropped`` category is
    an error. Raises FeedbackError, and nothing else, where there is no valid verdict.

    >>> parse_feedback('Sure: {"Error Type": "correct", "diagnosis": "Yes.", "guidance": "",}')
    Feedback(error_type='Correct', diagnosis='Yes.', guidance='', query=None, score=None)
    >>> parse_feedback('{"error_type": "Incorrect", "diagnosis": "No.", "guidance": "Retry."}')
    Traceback (most recent call last):
    safe_stepwise.feedback.FeedbackError: unknown label 'Incorrect'
    """
    reply = read_reply(text)
    try:
        verdicts = [_feedback(answer) for answer in reply.answers(*_FIELDS, data=data)]
    except ReplyError as error:
        raise FeedbackError(str(error).replace("the answer", "the verdict")) from None
    if not verdicts:
        objects = reply.outermost(lambda value: isinstance(value, dict))
        raise FeedbackError("no JSON object has an error_type" if objects else "no JSON object")
    if any(verdict != verdicts[0] for verdict in verdicts):
        raise FeedbackError("two different verdicts in one reply")
    _check(verdicts[0], incomplete_evidence)
    label = verdicts[0].error_type
    if reply.takes_back(label == CORRECT, (name for name in labels(incomplete_evidence=True) if name != label)):
        raise FeedbackError("the words around the verdict take it back, or suppose it only")
    if label == CORRECT and not reply.has_outermost(_FIELDS[0]):
        raise FeedbackError("the verdict Correct is part of another object, which may disown it")
    if dropped is not None and category(verdicts[0].error_type) == dropped:
        raise FeedbackError(f"{verdicts[0].error_type} is a label that was not to choose from")
    return verdicts[0]


def _feedback(answer: dict[str, object]) -> Feedback:
    """Make the verdict of a decoded object; raises FeedbackError for a field of another type and an unknown label."""
    last = "its start"
    for name, value in answer.items():
        if isinstance(value, dict | list) and name in _FIELDS:
            raise FeedbackError(f"{name} is no JSON string but JSON")
        if isinstance(value, dict | list):
            raise FeedbackError(f"the verdict is not flat: malformed or breaks off after {last}")
        last = name if name in _FIELDS else last
        if last == name and value is not None and not isinstance(value, str):
            raise FeedbackError(f"{name} is not a string but {str(value)[:40]}")
    label_text = answer["error_type"]
    diagnosis = answer["diagnosis"] if "diagnosis" in answer else _diagnosis(answer)
    label = normalize_label(label_text) if isinstance(label_text, str) else None
    if label is None:
        raise FeedbackError(f"unknown label {str(label_text)[:80]!r}")
    if not isinstance(diagnosis, str):
        raise FeedbackError("diagnosis is missing")
    query = str(answer.get("query") or "") if label == MISSING_EVIDENCE else None
    return Feedback(label, diagnosis, str(answer.get("guidance") or ""), query)


def _diagnosis(answer: dict[str, object]) -> str | None:
    spelled = {plain_key(name): value for name, value in answer.items()}
    if not any(name in spelled for name in _EVIDENCE):
        return None
    evidence, claim, comparison = (spelled.get(name) for name in _EVIDENCE)
    word = str(comparison).strip(" .").casefold()
    relation = next((name_ for name_ in COMPARISONS if name_ == word), None)
    if not isinstance(evidence, str) or not isinstance(claim, str) or relation is None:
        raise FeedbackError(f"{', '.join(_EVIDENCE)} are not all there, or not as asked for")
    return diagnosis_of(Evidence(evidence, claim, relation))


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
