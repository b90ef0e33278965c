"""Claims with a document, as LLM-AggreFact (arXiv 2404.10774) has them: ``{"doc": ..., "claim": ..., "label": 1}``.

The label is 1 if the document bears the claim out. Each step of a chain is a claim about its known passages; a step
that only searches makes no claim.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from safe_stepwise.formats.chains import RIGHT, WRONG, Chain, ChainStep
from safe_stepwise.records import Passage
from safe_stepwise.store import boundary

QUESTION = "Does the document bear the claim out?"


@dataclass(frozen=True, slots=True)
class _Row:
    doc: str
    claim: str
    label: Literal[0, 1] | None = None


def read(row: Mapping[str, Any]) -> Chain:
    """Read a chain of one step; raises ``ValueError`` for a row with a different schema."""
    content = boundary.read(_Row, row, "the row")
    label = None if content.label is None else RIGHT if content.label else WRONG
    steps = (ChainStep(content.claim.strip(), label=label),)
    return Chain(QUESTION, steps, passages=(Passage("", (content.doc,)),))


def write(chain: Chain) -> Iterator[dict[str, Any]]:
    """Write a row for each labelled step that does not only search."""
    for step in chain.steps:
        if not step.is_search and step.label is not None:
            pages = (f"{page.title}\n{page.text}" if page.title else page.text for page in chain.known_to(step))
            yield {"doc": "\n\n".join(pages), "claim": step.shown_text, "label": int(step.label != WRONG)}
