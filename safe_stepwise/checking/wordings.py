"""How a finding of the checker is worded: diagnosis (why, and where the text says so) and guidance.

The wordings stand in ``vocabulary/verdicts.yaml``; which one is taken depends on the step's words,
so that equal steps get equal verdicts and a dataset is not written in one tone.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.statements import asked_of, fill, is_free, pick, state
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Passage

_FIELD = re.compile(r"{(\w+)}")


def word(part: str, code: str, text: str, **values: Any) -> str:
    """One wording of ``diagnosis`` or ``guidance``; those with a value that is None are not taken.

    >>> word("guidance", "conclude", "a step", steps="Step 1")
    'Draw the conclusion that follows from Step 1.'
    """
    given = {name: value for name, value in values.items() if value is not None}
    every = load("verdicts")[part][code]
    options = [option for option in every if given.keys() >= set(_FIELD.findall(option))]
    return fill(pick(options, choice_for(text, part)), **given)


def choice_for(*parts: str) -> int:
    """A number that depends on some texts alone.

    >>> choice_for("a") == choice_for("a") != choice_for("b")
    True
    """
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:4], "big")


def sought(item: Item, passages: Sequence[Passage]) -> str:
    """What an item looks for, as a noun phrase or question that does not give the value away."""
    triple = item.triples[0]
    if item.sentence is not None:
        return item.page(passages).title
    if is_free(triple):
        return asked_of(item.triples).strip(" ?") + "?"
    known = load("statements")["sought"].get(triple.relation)
    return fill(known or f"the {triple.relation} of {{h}}", h=triple.head)


def searched_for(item: Item, passages: Sequence[Passage]) -> str:
    """What to search for to find a fact: subject and relation, without the value."""
    triple = item.triples[0]
    if item.sentence is not None:
        return sought(item, passages)
    if is_free(triple):
        return asked_of(item.triples).strip(" ?")
    return f"{triple.head} {triple.relation}"


def missing(item: Item, passages: Sequence[Passage]) -> str:
    """`sought` as it stands inside a sentence."""
    if item.sentence is not None:
        return f"what the passages say about “{sought(item, passages)}”"
    if is_free(item.triples[0]):
        return f"the answer to “{sought(item, passages)}”"
    return sought(item, passages)


def said(item: Item, passages: Sequence[Passage]) -> str:
    """What a passage says of an item: our statement of it, or its own sentence."""
    if item.sentence is not None:
        sentence = " ".join(item.quoted(passages).split())
        return f"“{sentence.rstrip('.')}”"
    return state(item.triples, 0)


def guide_to(item: Item, passages: Sequence[Passage], text: str, *, again: bool = False) -> str:
    """The action that an item asks for; ``again`` after a step that got it wrong."""
    codes = ("find", "instead")
    if item.sentence is not None:
        codes = ("read", "read_instead")
    elif is_free(item.triples[0]):
        codes = ("ask", "ask_instead")
    what = sought(item, passages)
    return word("guidance", codes[again], text, what=what, passage=item.passage)
