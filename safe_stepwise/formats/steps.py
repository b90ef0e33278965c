"""Our own rows, which `safe-stepwise check` reads: a step is a text, or an object with the fields of `ChainStep`.

``{"question": "Where is Oru?", "passages": [{"title": "Oru", "text": "It is in Marn."}],
"steps": ["Oru is in Marn.", {"text": "", "searches": ["Marn"], "known_passages": 1, "label": 1}]}``

Passages have any form that `store.rows` reads; ``references`` may have any of the names given there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from safe_stepwise.formats.chains import Chain, ChainStep, page_of
from safe_stepwise.store import boundary, rows

_FIELDS = ("prediction", "is_right", "model")


def read(row: Mapping[str, Any]) -> Chain:
    """Read a chain from one of our rows; raises ``ValueError`` for a row with a different schema."""
    columns = rows.own_columns(row)
    references = row.get("references") or columns.get("references", columns.get("answer") or [])
    steps = row.get("steps")
    if not isinstance(steps, list):
        raise ValueError("steps is not a list")
    pages = columns.get("passages") or []
    if not isinstance(pages, list):
        raise ValueError("passages is not a list")
    content = {
        "id": columns.get("id", ""),
        "question": columns.get("question"),
        "passages": [*map(page_of, pages)],
        "steps": [{"text": step} if isinstance(step, str) else step for step in steps],
        "references": [references] if isinstance(references, str) else references,
        **{name: row[name] for name in _FIELDS if row.get(name) is not None},
    }
    return boundary.read(Chain, content, "the row", exact=True)


def write(chain: Chain) -> Iterator[dict[str, Any]]:
    """Write a chain as one of our rows; fields without a value are left out."""
    content = {
        "id": chain.id,
        "question": chain.question,
        "references": chain.references,
        "passages": [{"title": page.title, "text": page.text} for page in chain.passages],
        "steps": [*map(_step_object, chain.steps)],
        **{name: getattr(chain, name) for name in _FIELDS},
    }
    yield {name: boundary.plain(value) for name, value in content.items() if value not in ("", (), [], None)}


def describe(chain: Chain) -> dict[str, Any]:
    """Return a chain's row without its steps and passages."""
    (row,) = write(replace(chain, steps=(), passages=()))
    return row


def _step_object(step: ChainStep) -> str | dict[str, Any]:
    values = {name: value for name, value in boundary.plain(step).items() if value not in ("", [], None)}
    return step.text if values.keys() == {"text"} else {"text": step.text, **values}
