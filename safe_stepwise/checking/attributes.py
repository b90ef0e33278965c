"""Reads the attributes that a claim gives: dates, countries, kin and populations, in any words.

A text says "Ana's nationality is Danish" where its passage has "a Danish chemist", or "Dune Rain came out in 1954"
where that has "a 1954 film". They share no predication, but express a relation that `language.grounding` finds.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from safe_stepwise.language.relations import RELATIONS, is_nation
from safe_stepwise.language.senses import Expression, meaning_of
from safe_stepwise.language.syntax import Predication, Word
from safe_stepwise.language.text import as_date

_KIN = ("father", "mother", "spouse", "sibling")
_QUALIFIERS = frozenset(
    "young old elder eld little big half step foster twin first second third eldest youngest".split()
)
"""Words that say more of a sibling than that it is one; some hold in one direction only."""
_VALUE_ROLES = frozenset("in on of is at when from attr obj subj to".split())


def attributes_in(claim: Predication, words: Sequence[Word]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the attributes that a claim may give, as (head, relation, values); ``words`` are those of its text.

    >>> from safe_stepwise.language.syntax import parse
    >>> syntax = parse("Ana Vorr's nationality is Danish.")
    >>> [attribute for claim in syntax.predications for attribute in attributes_in(claim, syntax.words)]
    [('Ana Vorr', 'country of citizenship', ('Danish',))]
    """
    is_qualified = not _QUALIFIERS.isdisjoint(word.lemma for word in words)
    for expression in claim.expressions:
        if (ends := _find_head_and_values(claim, words, expression)) is None:
            continue
        head, values = ends
        if expression.sense == "population" and len(values) == 1:
            place, number = sorted((head, values[0]), key=lambda value: value[:1].isdigit())
            yield place, "population", (number,)
        for relation in _relations_of(expression.sense):
            if all(_is_of_kind(value, relation) for value in values) and not (relation == "sibling" and is_qualified):
                yield head, relation, values


def _find_head_and_values(
    claim: Predication, words: Sequence[Word], expression: Expression
) -> tuple[str, tuple[str, ...]] | None:
    """Return the name that a claim is about and the values that it assigns to it; None if it says anything else."""
    heads, values = list[str](), list[str]()
    for role, argument in claim.arguments:
        word = words[argument.token].text
        value = argument.value or (word if word[:1].isupper() else "")
        end = expression.end_of(role)
        if not value or argument.is_source:
            continue
        if end == "both":
            (values if heads else heads).append(value)
        elif end == "head":
            heads.append(value)
        elif role in _VALUE_ROLES and not (role == "from" and as_date(value)):
            values.append(value)
        else:
            return None
    return (heads[0], tuple(values)) if len(heads) == 1 and values else None


def _is_of_kind(value: str, relation: str) -> bool:
    """Whether a value is of the kind that a relation has: a date, a country, or a name."""
    kind, is_date = RELATIONS[relation].kind, as_date(value) is not None
    return is_date if kind == "date" else not is_date and (kind != "nation" or is_nation(value.lower()))


@lru_cache(maxsize=256)
def _relations_of(sense: str) -> tuple[str, ...]:
    """Return the relations to a date, a country or kin that a sense expresses."""
    return tuple(
        name
        for name in RELATIONS
        if (meaning := meaning_of(name))
        and sense in meaning.senses
        and (meaning.kind in ("date", "nation") or name in _KIN)
    )
