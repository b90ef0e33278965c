"""ProcessBench (arXiv 2412.06559): steps with the index of the first wrong one, from 0; -1 if there is none.

``{"id": "gsm8k-0", "generator": "Qwen2-7B", "problem": "...", "steps": ["...", "..."], "final_answer_correct": true,
"label": -1}``; steps after the first wrong one have no label.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.formats.chains import RIGHT, WRONG, Chain, ChainStep, StepLabel
from safe_stepwise.store import boundary

_NO_ERROR = -1


@dataclass(frozen=True, slots=True)
class _Row:
    problem: str
    steps: tuple[str, ...]
    id: str = ""
    generator: str = ""
    label: int | None = None
    final_answer_correct: bool | None = None


def read(row: Mapping[str, Any]) -> Chain:
    """Read a chain; raises ``ValueError`` for a row with a different schema."""
    content = boundary.read(_Row, row, "the row")
    first = content.label
    if first is not None and not _NO_ERROR <= first < len(content.steps):
        raise RowError(f"its label is {first}, of {len(content.steps)} steps; write -1 for no wrong one")
    right = 0 if first is None else len(content.steps) if first == _NO_ERROR else first
    labels: list[StepLabel | None] = [*[RIGHT] * right, *([WRONG] if first is not None and first != _NO_ERROR else [])]
    labels += [None] * (len(content.steps) - len(labels))
    steps = tuple(ChainStep(text.strip(), label=label) for text, label in zip(content.steps, labels, strict=True))
    return Chain(content.problem, steps, content.id, is_right=content.final_answer_correct, model=content.generator)


def write(chain: Chain) -> Iterator[dict[str, Any]]:
    """Write a chain in the benchmark's form, if all its steps up to the first wrong one have labels."""
    labels = [step.label for step in chain.steps]
    first = labels.index(WRONG) if WRONG in labels else _NO_ERROR
    if None in (labels if first == _NO_ERROR else labels[:first]):
        return
    row = {
        "id": chain.id,
        "generator": chain.model,
        "problem": chain.question,
        "steps": [step.shown_text for step in chain.steps],
        "label": first,
        "final_answer_correct": chain.is_right,
    }
    yield {name: value for name, value in row.items() if value is not None}
