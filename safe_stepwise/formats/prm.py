"""Rows of process reward models, as Math-Shepherd (arXiv 2312.08935) and OpenRLHF have them.

``{"input": "Where is Oru? Step 1: It is in Marn. ки\\nStep 2: So Marn. ки", "value": ["+", "-"]}``, or with
``label``: the same text with each mark (``ки``) replaced by + or -. A neutral step counts as right.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.formats.chains import RIGHT, WRONG, Chain, ChainStep
from safe_stepwise.store import boundary

MARK = "ки"
"""The end of a step, at which a model predicts whether the step is right."""


@dataclass(frozen=True, slots=True)
class _Row:
    input: str
    value: tuple[str, ...] = ()
    label: str | tuple[str, ...] = ()


def read(row: Mapping[str, Any]) -> Chain:
    """Read a chain; raises ``ValueError`` for a row with a different schema."""
    content = boundary.read(_Row, row, "the row")
    *texts, ending = content.input.split(MARK)
    if not texts or ending.strip():
        raise RowError(f"its input does not end with a step and {MARK}")
    question, first, texts[0] = texts[0].rpartition("Step 1: ")
    if not first:
        raise RowError("its input has no 'Step 1: ' after the question")
    texts[1:] = [re.sub(rf"\A\s*Step {n}: ", "", text) for n, text in enumerate(texts[1:], 2)]
    values = _read_labels(content)
    if len(values) != len(texts):
        raise RowError(f"it has {len(values)} labels of {len(texts)} steps")
    if faulty := next((value for value in values if value not in ("+", "-")), None):
        raise RowError(f"its label {faulty[:20]!r} is neither + nor -")
    pairs = zip(texts, values, strict=True)
    return Chain(question.strip(), tuple(ChainStep(t.strip(), label=RIGHT if v == "+" else WRONG) for t, v in pairs))


def _read_labels(content: _Row) -> list[str]:
    """Return the labels: a list's, or the signs that replace the input's marks in the label."""
    if content.value or not isinstance(content.label, str):
        return [*(content.value or content.label)]
    signs, label = list[str](), content.label.strip()
    for piece in content.input.strip().split(MARK)[:-1]:
        if not label.startswith(piece) or label[len(piece) :][:1] not in ("+", "-"):
            raise RowError(f"its label is not its input with + or - for each {MARK}")
        signs.append(label[len(piece)])
        label = label[len(piece) + 1 :]
    return signs


def write(chain: Chain) -> Iterator[dict[str, Any]]:
    """Write a chain whose steps all have labels (else there is no row); raises ``RowError`` for a text with a mark."""
    texts = [step.shown_text for step in chain.steps]
    if any(MARK in text for text in (chain.question, *texts)) or "Step 1: " in f"{chain.question} {texts[0]}":
        raise RowError(f"its text holds {MARK!r} or 'Step 1: ', which marks a step")
    if all(step.label is not None for step in chain.steps):
        signs = ["-" if step.label == WRONG else "+" for step in chain.steps]
        lines = [f"Step {number}: {text} " for number, text in enumerate(texts, 1)]
        input_text, label = (
            f"{chain.question} " + "\n".join(line + mark for line, mark in zip(lines, marks, strict=True))
            for marks in ([MARK] * len(texts), signs)
        )
        yield {"input": input_text, "value": signs, "label": label}
