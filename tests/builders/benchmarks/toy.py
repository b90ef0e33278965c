"""Toy: which country the birthplace of a work's author is in, or whether two were born in one town.

Source: made here. A row::

    {"number": 3, "toy": "Who ...?", "gold": "Oru", "hops": [["Vel", "author", "Ana Brell"]],
     "pages": {"Vel": "Vel is a novel by Ana Brell."}, "needed": ["Vel"]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.records import Passage, Question, Triple
from safe_stepwise.store import fields

NAME = "toy"
LICENSE = "mit"
HOMEPAGE = "https://example.org/toy"
CITATION = "@misc{toy, title = {Toy}}"
TELLTALE = "toy"
SCORING = "musique"
CAVEAT = "Toy knows nobody but the Brells."
EXPECTED: Mapping[str, Mapping[str, float]] = {
    "verification": {"calls": 2, "prompt": 100, "reply": 10},
    "verifier_steps": {"calls": 5, "prompt": 300, "reply": 30},
}


def parse(row: Mapping[str, Any], split: str) -> Question:
    """The Question of a row; RowError with the reason when it is unusable."""
    pages = fields.require(row, "pages")
    if not isinstance(pages, Mapping):
        raise RowError("pages is no object")
    return Question(
        id=f"toy-{fields.integer(row.get('number'), 'number')}",
        benchmark=NAME,
        split=split,
        question=fields.filled_text(fields.require(row, "toy"), "toy"),
        answer=fields.filled_text(fields.require(row, "gold"), "gold"),
        kind="comparison" if row["gold"] in ("yes", "no") else "chain",
        hops=2,
        passages=tuple(Passage(title, (text,), title in row["needed"]) for title, text in pages.items()),
        evidence=tuple(Triple(*hop) for hop in fields.items(row.get("hops"), "hops")),
    )
