"""Wrong values, heads and relations of the right one's sort: those of other questions' facts."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from safe_stepwise.checking.faithfulness.names import fact_of, is_alike, is_same
from safe_stepwise.checking.statements import is_free
from safe_stepwise.checking.step_reading import content_words
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import RELATIONS, is_country, is_nation, same_nation
from safe_stepwise.language.text import as_date, as_number
from safe_stepwise.records import Triple

T = TypeVar("T")
_TRIED = 40
"""Candidates that are looked at for one fact."""
_FILM_SORTS = {
    "directed_by": "person", "written_by": "person", "starred_actors": "person",
    "in_language": "word", "has_genre": "word", "has_tags": "word",
}  # fmt: skip
"""What MetaQA's relations lead to, where two lead to one sort."""
_MUTUAL = frozenset(("spouse", "sibling", "shares border with"))
_MUTUAL_WORDS = re.compile(
    r"\b(?:married|wed|spouse|wife|husband|sibling|brother|sister|cousin|friends?|border\w*"
    r"|adjacent|same|both|share\w*|and|with|opposite|known|called|named|near|between)\b"
)
_LONGEST_NAME = 6


class Pool:
    """The facts of a benchmark's questions; ``graph``: all that is true beside them."""

    def __init__(self, facts: Iterable[Triple], graph: Iterable[Triple] = ()) -> None:
        self._heads: dict[str, dict[str, None]] = defaultdict(dict)
        self._tails: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._relations: dict[str, dict[str, None]] = defaultdict(dict)
        self._known: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for fact in dict.fromkeys(facts):
            self._heads[_way(fact)][fact.head] = None
            self._tails[_way(fact), form_of(fact.tail)][fact.tail] = None
            self._relations[_sort(fact)][fact.relation] = None
            self._keep(fact)
        for fact in graph:
            self._keep(fact)

    def _keep(self, fact: Triple) -> None:
        head, relation, _ = fact_of(fact)
        self._known[head, relation][fact.tail] = None

    def is_known(self, fact: Triple) -> bool:
        """Whether the graph says it, or something that may mean it."""
        head, relation, _ = fact_of(fact)
        return any(means(tail, fact.tail) for tail in self._known.get((head, relation), ()))

    def wrong_tail(self, fact: Triple, seed: str) -> Triple | None:
        """The fact with another's value; None where no other of its sort is surely wrong."""
        if not _tells(fact):
            return None
        found = (
            Triple(fact.head, fact.relation, tail)
            for tail in _drawn(self._tails[_way(fact), form_of(fact.tail)], seed)
            if not means(tail, fact.tail) and not means(tail, fact.head)
        )
        return self._false(found)

    def wrong_head(self, fact: Triple, seed: str) -> Triple | None:
        """The fact of another that has the same relation; None where there is none."""
        if not _tells(fact) or (is_free(fact) and "…" not in fact.relation):
            return None  # the words of a question without a place for it do not tell the head
        found = (
            Triple(head, fact.relation, fact.tail)
            for head in _drawn(self._heads[_way(fact)], seed)
            if not means(head, fact.head) and not means(head, fact.tail)
        )
        return self._false(found)

    def wrong_relation(self, fact: Triple, seed: str) -> Triple | None:
        """The ends joined by another relation, which leads to the same sort; no near-synonym."""
        found = (
            Triple(fact.head, relation, fact.tail)
            for relation in _drawn(self._relations[_sort(fact)], seed)
            if not alike(relation, fact.relation)
        )
        return self._false(t for t in found if _tells(t)) if _tells(fact) else None

    def reversed(self, fact: Triple, _: str) -> Triple | None:
        """The fact with its ends exchanged; None where that may be true, or is no fact at all."""
        form = form_of(fact.tail)
        is_mutual = fact.relation in _MUTUAL or _MUTUAL_WORDS.search(fact.relation.lower())
        if is_free(fact) or form != "name" or not _tells(fact) or is_mutual:
            return None
        return self._false(iter([Triple(fact.tail, fact.relation, fact.head)]))

    def _false(self, found: Iterator[Triple]) -> Triple | None:
        return next((t for t in islice(found, _TRIED) if not self.is_known(t)), None)


def form_of(value: str) -> str:
    """What a value is by its form: a date as exact, a number, a country, a people, or a name.

    >>> [form_of(v) for v in ("3 May 1901", "1901", "12 votes", "Ana Vorr", "a town")]
    ['day', 'year', 'number', 'name', 'words']
    """
    date = as_date(value)
    if date is not None:
        return "day" if date.day else "month" if date.month else "year"
    plain = clean(value)
    if as_number(value) is not None and plain[:1].isdigit():
        return "number"
    if is_nation(plain):
        return "country" if is_country(plain) else "people"
    words = value.split()
    is_name = len(words) <= _LONGEST_NAME and not value[:1].islower() and words[:1] not in _ARTICLES
    return "name" if is_name else "words"


_ARTICLES = (["A"], ["An"], ["The"])


def means(one: str, other: str) -> bool:
    """Whether two values may be one: a name within the other, one date, one nation."""
    dates = as_date(one), as_date(other)
    if dates[0] and dates[1]:
        return dates[0].agrees(dates[1])
    return is_same(one, other) or is_alike(one, other) or same_nation(clean(one), clean(other))


def alike(one: str, other: str) -> bool:
    """Whether two relations may both be meant by one wording, so that neither refutes the other.

    >>> alike("country", "country of citizenship"), alike("director", "composer")
    (True, False)
    >>> alike("was directed by", "is the director of"), alike("father", "mother")
    (True, False)
    """
    if one == other:
        return True
    known, others = RELATIONS.get(one), RELATIONS.get(other)
    if known and others:
        return known.group != "kin" and bool(known.cues & others.cues)
    return bool(content_words(one) & content_words(other))


def _tells(fact: Triple) -> bool:
    """Whether a relation has words of its own: "is" alone says nothing of the sorts it joins."""
    return bool(content_words(fact.relation.replace("_", " ")))


def _way(fact: Triple) -> str:
    """What facts have in common whose ends are of the same sorts: a relation, a question's opening.

    >>> _way(Triple("Oru", "when was … founded", "1901"))
    'when was'
    """
    return " ".join(fact.relation.lower().split()[:2]) if is_free(fact) else fact.relation


def _sort(fact: Triple) -> str:
    """What relations have in common that lead from and to the same sorts."""
    known = RELATIONS.get(fact.relation)
    if known:
        return known.kind if known.kind in ("date", "nation") else f"{known.kind} {known.group}"
    if fact.relation in _FILM_SORTS:
        return _FILM_SORTS[fact.relation]
    if is_free(fact):
        return f"{_way(fact)} {fact.relation.count('…')}"
    return f"free {form_of(fact.tail)}"


def _drawn(values: Iterable[T], seed: str) -> Iterator[T]:
    """Values from a place on that the seed gives, around."""
    found: Sequence[T] = list(values)
    start = choice_for(seed) % len(found) if found else 0
    yield from found[start:]
    yield from found[:start]
