"""TRL's former rows of stepwise supervision (up to 1.15): ``{"prompt": ..., "completions": [...], "labels": [true]}``.

A neutral step counts as right.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.formats.chains import RIGHT, WRONG, Chain, ChainStep
from safe_stepwise.store import boundary


@dataclass(frozen=True, slots=True)
class _Row:
    prompt: str
    completions: tuple[str, ...]
    labels: tuple[bool, ...]


def read(row: Mapping[str, Any]) -> Chain:
    """Read a chain; raises ``ValueError`` for a row with a different schema."""
    content = boundary.read(_Row, row, "the row")
    if len(content.labels) != len(content.completions):
        raise RowError(f"it has {len(content.labels)} labels of {len(content.completions)} completions")
    pairs = zip(content.completions, content.labels, strict=True)
    return Chain(content.prompt, tuple(ChainStep(t.strip(), label=RIGHT if ok else WRONG) for t, ok in pairs))


def write(chain: Chain) -> Iterator[dict[str, Any]]:
    """Write a chain up to its last labelled step; a chain with a gap before that gives no row."""
    steps = [step for step in chain.steps if step.label is not None]
    if steps and steps == [*chain.steps[: len(steps)]]:
        texts = [step.shown_text for step in steps]
        yield {"prompt": chain.question, "completions": texts, "labels": [step.label != WRONG for step in steps]}
