"""Writes and reads a verifier's verdict as JSON, by the same schema.

A verdict is one flat JSON object of strings, which `store.replies` finds in a reply; other keys and verdicts quoted
from the prompt are ignored. The label is compared exactly, after normalising its spelling. Two different verdicts, a
verdict that breaks off and a label outside the setting are errors; nothing is guessed.

A verdict has one of two orders. SAFE's has the label first, then a diagnosis, so that a model has to name the label
before it has written any reason. The other order has the evidence of the step, the value that the step gives,
whether they are the ``same``, ``different`` or (the evidence has no such value) ``absent``, and then the label; its
diagnosis joins the first three. Both orders are always read.

A valid ``Feedback`` (``parse_feedback`` gives back unchanged what ``format_feedback`` writes) has a label
of the taxonomy, a guidance that is not blank unless the label is ``Correct``, a query that is not blank with ``Missing
Evidence`` and none with any other label, and text that UTF-8 can hold.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple, get_args

from safe_stepwise.records import EVIDENCE_FIRST, LABEL_FIRST, Feedback, VerdictOrder
from safe_stepwise.store.packaged import read_yaml
from safe_stepwise.store.replies import ReplyError, plain_key, read_reply
from safe_stepwise.taxonomy import CORRECT, MISSING_EVIDENCE, Category, Comparison, category, labels, normalize_label

COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)

_FIELDS = ("error_type", "diagnosis", "guidance", "query")
_SCHEMA: dict[str, Any] = read_yaml(Path(__file__).with_suffix(".yaml"))
_STEP_SEPARATOR = " Step: "


class FeedbackError(ValueError):
    """A reply without a verdict, or an invalid verdict; the message is the reason."""


def feedback_schema(
    incomplete_evidence: bool = False, dropped: Category | None = None, order: VerdictOrder = LABEL_FIRST
) -> dict[str, Any]:
    """Return the JSON schema of a verdict; with ``incomplete_evidence`` it has ``query`` and ``Missing Evidence``.

    Labels of a ``dropped`` category are left out. The properties come in the ``order`` in which a verdict has them.

    ``query`` is optional in the schema, though ``parse_feedback`` requires it with ``Missing
    Evidence``: guided decoding does not support conditions between fields.

    >>> sorted(feedback_schema(incomplete_evidence=True)["properties"])
    ['diagnosis', 'error_type', 'guidance', 'query']
    """
    required = ["error_type", "diagnosis", "guidance"]
    if order == EVIDENCE_FIRST:
        required = [*Evidence._fields, "error_type", "guidance"]
    chosen = [*required, "query"] if incomplete_evidence else required
    properties = {name: _SCHEMA["properties"][name] for name in chosen}
    properties["error_type"] = {"type": "string", "enum": list(labels(incomplete_evidence, dropped))}
    return {**_SCHEMA, "properties": properties, "required": required}


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
    return f"{evidence.evidence}{_STEP_SEPARATOR}{evidence.claim}. {evidence.comparison.capitalize()}."


def evidence_in(diagnosis: str) -> Evidence | None:
    """Parse a diagnosis that `diagnosis_of` rendered; returns None for any other text.

    >>> evidence_in("Passage 2: Ors was born in Tesk. Step: Ardle. Different.")
    Evidence(evidence='Passage 2: Ors was born in Tesk.', claim='Ardle', comparison='different')
    """
    for comparison in COMPARISONS:
        body = diagnosis.removesuffix(f". {comparison.capitalize()}.")
        evidence, step, claim = body.rpartition(_STEP_SEPARATOR)
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
    _check_verdict(feedback, incomplete_evidence=True)
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
    """Parse the only verdict in a reply; its strings are kept unchanged.

    ``data`` is the text that the request quoted: a verdict in it does not count. A missing guidance is read as empty
    with ``Correct``; a query is left out with any label but ``Missing Evidence``. A label of a ``dropped`` category is
    an error. Raises only FeedbackError, if there is no valid verdict.

    >>> parse_feedback('Sure: {"Error Type": "correct", "diagnosis": "Yes.", "guidance": "",}')
    Feedback(error_type='Correct', diagnosis='Yes.', guidance='', query=None, score=None)
    """
    reply = read_reply(text)
    try:
        verdicts = [_read_verdict(answer) for answer in reply.answers(*_FIELDS, data=data)]
    except ReplyError as error:
        raise FeedbackError(str(error).replace("the answer", "the verdict")) from None
    if not verdicts:
        objects = reply.outermost(lambda value: isinstance(value, dict))
        raise FeedbackError("no JSON object has an error_type" if objects else "no JSON object")
    if any(verdict != verdicts[0] for verdict in verdicts):
        raise FeedbackError("two different verdicts in one reply")
    _check_verdict(verdicts[0], incomplete_evidence)
    label = verdicts[0].error_type
    if reply.takes_back(label == CORRECT, (name for name in labels(incomplete_evidence=True) if name != label)):
        raise FeedbackError("the words around the verdict take it back, or suppose it only")
    if label == CORRECT and not reply.has_outermost(_FIELDS[0]):
        raise FeedbackError("the verdict Correct is part of another object, which may disown it")
    if dropped is not None and category(verdicts[0].error_type) == dropped:
        raise FeedbackError(f"{verdicts[0].error_type} is a label that was not to choose from")
    return verdicts[0]


def _read_verdict(answer: dict[str, object]) -> Feedback:
    """Make the verdict of a decoded object; raises FeedbackError for a wrong type or an unknown label."""
    last_field = "its start"
    for name, value in answer.items():
        if isinstance(value, dict | list) and name in _FIELDS:
            raise FeedbackError(f"{name} is no JSON string but JSON")
        if isinstance(value, dict | list):
            raise FeedbackError(f"the verdict is not flat: malformed or breaks off after {last_field}")
        last_field = name if name in _FIELDS else last_field
        if last_field == name and value is not None and not isinstance(value, str):
            raise FeedbackError(f"{name} is not a string but {str(value)[:40]}")
    label_text = answer["error_type"]
    diagnosis = answer["diagnosis"] if "diagnosis" in answer else _join_diagnosis(answer)
    label = normalize_label(label_text) if isinstance(label_text, str) else None
    if label is None:
        raise FeedbackError(f"unknown label {str(label_text)[:80]!r}")
    if not isinstance(diagnosis, str):
        raise FeedbackError("diagnosis is missing")
    query = str(answer.get("query") or "") if label == MISSING_EVIDENCE else None
    return Feedback(label, diagnosis, str(answer.get("guidance") or ""), query)


def _join_diagnosis(answer: dict[str, object]) -> str | None:
    spelled = {plain_key(name): value for name, value in answer.items()}
    if not any(name in spelled for name in Evidence._fields):
        return None
    evidence, claim, comparison = (spelled.get(name) for name in Evidence._fields)
    word = str(comparison).strip(" .").casefold()
    relation = next((name_ for name_ in COMPARISONS if name_ == word), None)
    if not isinstance(evidence, str) or not isinstance(claim, str) or relation is None:
        raise FeedbackError(f"{', '.join(Evidence._fields)} are not all there, or not as asked for")
    return diagnosis_of(Evidence(evidence, claim, relation))


def _check_verdict(feedback: Feedback, incomplete_evidence: bool) -> None:
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
