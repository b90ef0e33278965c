"""Seeded cases: a fact stated rightly, or with one thing exchanged, alone or within its path."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from safe_stepwise.checking.faithfulness.grounds import Chain, Grounds, fact_of, is_alike, is_same
from safe_stepwise.checking.statements import is_free
from safe_stepwise.checking.step_reading import content_words
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import RELATIONS, is_country, is_nation, same_nation
from safe_stepwise.language.text import as_date, as_number
from safe_stepwise.records import Triple
from studies.calibration.sources import Source, hops_of, plainly
from studies.calibration.tables import KINDS, WRONG, Kind, Setting

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

    def exchanged(self, fact: Triple, kind: Kind, seed: str) -> Triple | None:
        """The fact with one thing wrong, as ``kind`` says; None where nothing of its sort is surely wrong."""
        exchanges = islice(self._exchanges(fact, kind, seed), _TRIED) if _tells(fact) else ()
        return next((triple for triple in exchanges if not self.is_known(triple)), None)

    def _exchanges(self, fact: Triple, kind: Kind, seed: str) -> Iterator[Triple]:
        head, relation, tail = fact.head, fact.relation, fact.tail
        if kind == "wrong tail":
            for value in _drawn(self._tails[_way(fact), form_of(tail)], seed):
                if not means(value, tail) and not means(value, head):
                    yield Triple(head, relation, value)
        elif kind == "wrong head" and (not is_free(fact) or "…" in relation):
            # The words of a question without a place for it do not tell the head.
            for name in _drawn(self._heads[_way(fact)], seed):
                if not means(name, head) and not means(name, tail):
                    yield Triple(name, relation, tail)
        elif kind == "wrong relation":  # no near-synonym
            others = (Triple(head, other, tail) for other in _drawn(self._relations[_sort(fact)], seed))
            yield from (triple for triple in others if not alike(triple.relation, relation) and _tells(triple))
        elif kind == "reversed" and not is_free(fact) and form_of(tail) == "name" and not _is_mutual(relation):
            yield Triple(tail, relation, head)


def _is_mutual(relation: str) -> bool:
    return relation in _MUTUAL or _MUTUAL_WORDS.search(relation.lower()) is not None


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


@dataclass(frozen=True, slots=True)
class Case:
    """A chain that is to be judged, and what is true of it.

    ``fact`` is the gold one, ``said`` what the chain states in its place; both the first of the
    path where nothing is wrong.
    """

    source: Source
    setting: Setting
    kind: Kind
    grounds: Grounds
    chain: Chain
    fact: Triple
    said: Triple


def cases_of(sources: Sequence[Source], pool: Pool, seed: int) -> tuple[list[Case], Counter[tuple[Setting, Kind]]]:
    """Every fact of every path alone in each kind; each path whole, and once with each error.

    Which fact of a path an error befalls, and with what, hangs on the seed and the question's id. Beside them stand
    counts, by setting and kind, of the facts for which there was no such error.
    """
    found: list[Case] = []
    not_made: Counter[tuple[Setting, Kind]] = Counter()
    for source in sources:
        for case in (*_alone(source, pool, seed), *_in_paths(source, pool, seed)):
            if isinstance(case, Case):
                found.append(case)
            else:
                not_made[case] += 1
    return found, not_made


def _alone(source: Source, pool: Pool, seed: int) -> Iterator[Case | tuple[Setting, Kind]]:
    hops = [hop for path in source.grounds.paths[:_MOST_PATHS] for hop in hops_of(path)]
    facts = dict.fromkeys(hop[0] for hop in hops if len(hop) == 1)
    for fact in facts:
        grounds = replace(
            source.grounds, answers=(fact.tail,), paths=((fact,),), starts=(fact.head,), is_branched=False
        )
        for kind in KINDS:
            said = _exchanged(pool, fact, kind, f"{seed} {source.id} {fact.head} {fact.relation}")
            if said is None:
                yield ("alone", kind)
                continue
            told = Chain((source.say([said], str(seed), fact.head, fact.relation),), fact.tail)
            yield Case(source, "alone", kind, grounds, told, fact, said)


_MOST_PATHS = 3
"""Gold paths of a question that cases are made of: three annotators, or of a film's two hundred."""


def _in_paths(source: Source, pool: Pool, seed: int) -> Iterator[Case | tuple[Setting, Kind]]:
    for number, path in enumerate(source.grounds.paths[:_MOST_PATHS]):
        hops = hops_of(path)
        marks = (str(seed), str(number))
        right = [source.say(hop, *marks, str(n)) for n, hop in enumerate(hops)]
        answer = source.grounds.answers[0] if source.grounds.answers else ""
        whole = Chain(tuple(right), answer)
        yield Case(source, "in its path", "true", source.grounds, whole, path[0], path[0])
        for kind in WRONG:
            made = _with_error(source, pool, hops, kind, " ".join((*marks, source.id, kind)))
            if made is None:
                yield ("in its path", kind)
                continue
            place, said = made
            sentence = source.say([said], *marks, str(place))
            steps = (*right[:place], sentence, *right[place + 1 :])
            told = Chain(steps, answer)
            fact = hops[place][0]
            yield Case(source, "in its path", kind, source.grounds, told, fact, said)


def against_others(sources: Sequence[Source]) -> tuple[Case, ...]:
    """Each annotator's derivation as a chain where only those of the others are gold.

    Only of questions that people derived an answer to; their paths are alternatives.
    """
    found = []
    for source in sources:
        paths = source.grounds.paths
        for number, path in enumerate(paths if source.wording is plainly else ()):
            others = paths[:number] + paths[number + 1 :]
            grounds = replace(source.grounds, paths=others)
            answer = source.grounds.answers[0] if source.grounds.answers else ""
            told = Chain(tuple(source.say([fact]) for fact in path), answer)
            if others:
                found.append(Case(source, "in its path", "true", grounds, told, path[0], path[0]))
    return tuple(found)


def _with_error(
    source: Source, pool: Pool, hops: Sequence[Sequence[Triple]], kind: Kind, seed: str
) -> tuple[int, Triple] | None:
    """The first hop, from one that the seed gives on, that the error can befall, and what is said.

    An error that is another of the question's own facts is none.
    """
    start = choice_for(seed) % len(hops)
    for place in (*range(start, len(hops)), *range(start)):
        hop = hops[place]
        said = _exchanged(pool, hop[0], kind, seed) if len(hop) == 1 else None
        if said is not None:
            return place, said
    return None


def _exchanged(pool: Pool, fact: Triple, kind: Kind, seed: str) -> Triple | None:
    return fact if kind == "true" else pool.exchanged(fact, kind, f"{seed} {kind}")
