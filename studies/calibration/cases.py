"""Make test cases for judges of chains: a fact stated correctly, or with one error, alone or within its gold path.

The facts come from questions with gold paths: 2Wiki's evidence, MuSiQue's decomposition, R4C's derivations of HotpotQA
(each annotator's is a gold path) and MetaQA's paths. An error exchanges the head, the tail or the relation, or swaps
head and tail. A seed makes the choices.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Literal, TypeVar, get_args

from evaluators.derivations import Derivation
from safe_stepwise.checking import statements
from safe_stepwise.checking.faithfulness.grounds import (
    Chain,
    Grounds,
    Path,
    fact_of,
    grounds_of,
    grounds_of_paths,
    is_alike,
    is_same,
)
from safe_stepwise.checking.statements import is_free
from safe_stepwise.checking.step_reading import content_words
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import RELATIONS, is_country, is_nation, same_nation
from safe_stepwise.language.text import as_date, as_number
from safe_stepwise.records import Question, Triple

ClaimKind = Literal["true", "wrong tail", "wrong head", "wrong relation", "reversed"]
KINDS: tuple[ClaimKind, ...] = get_args(ClaimKind)
WRONG = KINDS[1:]
StepContext = Literal["alone", "in its path"]
SETTINGS: tuple[StepContext, ...] = get_args(StepContext)
T = TypeVar("T")
Wording = Callable[[Sequence[Triple], int], str]
"""A function that states a fact as a clause; the number chooses among its wordings."""
_FILM_WORDINGS = {
    "directed_by": ("{h} was directed by {t}", "{t} directed {h}", "the director of {h} is {t}"),
    "written_by": ("{h} was written by {t}", "{t} wrote {h}", "the writer of {h} is {t}"),
    "starred_actors": ("{t} starred in {h}", "{h} starred {t}", "{t} acted in {h}"),
    "release_year": ("{h} was released in {t}", "{h} came out in {t}"),
    "in_language": ("{h} is in the language {t}", "the language of {h} is {t}"),
    "has_genre": ("the genre of {h} is {t}", "{h} has the genre {t}"),
    "has_tags": ("{h} has the tag {t}", "a tag of {h} is {t}"),
    "has_imdb_rating": ("the IMDb rating of {h} is {t}", "{h} is rated {t} on IMDb"),
    "has_imdb_votes": ("the number of IMDb votes of {h} is {t}", "{h} has {t} votes on IMDb"),
}
"""Wordings of MetaQA's relations, which the language module can read; MetaQA has no passages to word them."""


@dataclass(frozen=True, slots=True)
class CalibrationSource:
    """A question with its gold paths (``grounds``); ``wording`` states its facts in plain sentences."""

    benchmark: str
    id: str
    grounds: Grounds
    wording: Wording

    @property
    def is_reported(self) -> bool:
        """Whether thresholds are reported, not chosen, on this question: the first byte of its id's SHA-256 is odd."""
        return hashlib.sha256(self.id.encode()).digest()[0] % 2 == 1

    def phrase(self, facts: Sequence[Triple], *seeds: str) -> str:
        """State one fact, or the several facts of one hop, as a sentence."""
        clause = self.wording(facts, choice_for(self.id, *seeds)).strip()
        return f"{clause[:1].upper()}{clause[1:].removesuffix('.')}."


def question_source(
    question: Question, graph: Iterable[Triple] = (), derivations: Sequence[Derivation] = ()
) -> CalibrationSource | None:
    """Make a source from ``derivations``, else annotations, with a ``graph`` of facts; None without a gold path."""
    if not derivations:
        grounds = grounds_of(question, graph)
        return CalibrationSource(question.benchmark, question.id, grounds, statements.state) if grounds.paths else None
    paths = [[Triple(*triple) for _, _, triple in facts] for facts in derivations]
    compares = question.kind == "comparison"
    grounds = grounds_of_paths(question.question, question.accepted, paths, graph, question.passages, compares)
    return CalibrationSource(question.benchmark, question.id, grounds, word_plainly) if grounds.paths else None


def word_plainly(facts: Sequence[Triple], _: int) -> str:
    """State a fact whose relation is the words between its ends, as R4C's are.

    >>> word_plainly([Triple("Oru", "lies on", "the Vel")], 0)
    'Oru lies on the Vel'
    """
    return f"{facts[0].head} {facts[0].relation} {facts[0].tail}"


def word_film_fact(facts: Sequence[Triple], choice: int) -> str:
    """State a fact of MetaQA's knowledge base in its own wordings; other relations get the wordings of all benchmarks.

    >>> word_film_fact([Triple("Dune Rain", "directed_by", "Ors Velt")], 1)
    'Ors Velt directed Dune Rain'
    """
    fact = facts[0]
    if fact.relation not in _FILM_WORDINGS:
        return statements.state(facts, choice)
    return statements.fill(statements.pick(_FILM_WORDINGS[fact.relation], choice), h=fact.head, t=fact.tail)


def split_hops(path: Path) -> list[list[Triple]]:
    """Group the facts of a path by hop; a hop that joins several answers has several facts.

    >>> meet, age = Triple("Ana", "where do … and … meet", "Oru"), Triple("Ors", "is", "old")
    >>> [len(hop) for hop in split_hops((meet, Triple("Vel", meet.relation, "Oru"), age))]
    [2, 1]
    """

    def hop_key(index: int) -> object:
        fact = path[index]
        joins = is_free(fact) and fact.relation.count("…") > 1
        return (fact.relation, fact.tail) if joins else index

    return [[path[n] for n in places] for _, places in groupby(range(len(path)), hop_key)]


_MOST_CANDIDATES = 40
"""The most candidates that are tried for one fact."""
_FILM_SORTS = {
    "directed_by": "person", "written_by": "person", "starred_actors": "person",
    "in_language": "word", "has_genre": "word", "has_tags": "word",
}  # fmt: skip
"""The kind of value that MetaQA's relations lead to, where several share one."""
_MUTUAL = frozenset(("spouse", "sibling", "shares border with"))
_MUTUAL_WORDS = re.compile(
    r"\b(?:married|wed|spouse|wife|husband|sibling|brother|sister|cousin|friends?|border\w*"
    r"|adjacent|same|both|share\w*|and|with|opposite|known|called|named|near|between)\b"
)
_LONGEST_NAME = 6
"""Words."""


class ErrorValues:
    """The values that an error can take, from the ``facts`` of a benchmark's questions; ``graph``: more true facts."""

    def __init__(self, facts: Iterable[Triple], graph: Iterable[Triple] = ()) -> None:
        self._heads: dict[str, dict[str, None]] = defaultdict(dict)
        self._tails: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._relations: dict[str, dict[str, None]] = defaultdict(dict)
        self._true_tails: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for fact in dict.fromkeys(facts):
            self._heads[_pattern(fact)][fact.head] = None
            self._tails[_pattern(fact), form_of(fact.tail)][fact.tail] = None
            self._relations[_relation_type(fact)][fact.relation] = None
            self._add_true(fact)
        for fact in graph:
            self._add_true(fact)

    def _add_true(self, fact: Triple) -> None:
        head, relation, _ = fact_of(fact)
        self._true_tails[head, relation][fact.tail] = None

    def is_true(self, fact: Triple) -> bool:
        """Whether the fact is among the true ones, or one of them may mean the same."""
        head, relation, _ = fact_of(fact)
        return any(may_equal(tail, fact.tail) for tail in self._true_tails.get((head, relation), ()))

    def exchange(self, fact: Triple, kind: ClaimKind, seed: str) -> Triple | None:
        """Return the fact with one error of this kind; None if no candidate is surely wrong. The seed chooses one."""
        candidates = islice(self._candidates(fact, kind, seed), _MOST_CANDIDATES) if _has_content(fact) else ()
        return next((triple for triple in candidates if not self.is_true(triple)), None)

    def _candidates(self, fact: Triple, kind: ClaimKind, seed: str) -> Iterator[Triple]:
        head, relation, tail = fact.head, fact.relation, fact.tail
        if kind == "wrong tail":
            for value in _rotate(self._tails[_pattern(fact), form_of(tail)], seed):
                if not may_equal(value, tail) and not may_equal(value, head):
                    yield Triple(head, relation, value)
        elif kind == "wrong head" and (not is_free(fact) or "…" in relation):
            # A free relation states its head only if it has a placeholder for it (…).
            for name in _rotate(self._heads[_pattern(fact)], seed):
                if not may_equal(name, head) and not may_equal(name, tail):
                    yield Triple(name, relation, tail)
        elif kind == "wrong relation":  # no near-synonym
            for name in _rotate(self._relations[_relation_type(fact)], seed):
                if not are_alike(name, relation) and _has_content(Triple(head, name, tail)):
                    yield Triple(head, name, tail)
        elif kind == "reversed" and not is_free(fact) and form_of(tail) == "name":
            is_mutual = relation in _MUTUAL or _MUTUAL_WORDS.search(relation.lower())
            yield from () if is_mutual else (Triple(tail, relation, head),)


def form_of(value: str) -> str:
    """Classify a value by its form: a date by its precision, a number, a country, a people, a name, or words.

    >>> [form_of(v) for v in ("3 May 1901", "1901", "12 votes", "Ana Vorr", "a town")]
    ['day', 'year', 'number', 'name', 'words']
    """
    if (date := as_date(value)) is not None:
        return "day" if date.day else "month" if date.month else "year"
    plain = clean(value)
    if as_number(value) is not None and plain[:1].isdigit():
        return "number"
    if is_nation(plain):
        return "country" if is_country(plain) else "people"
    words = value.split()
    has_article = words[:1] in (["A"], ["An"], ["The"])
    return "words" if len(words) > _LONGEST_NAME or value[:1].islower() or has_article else "name"


def may_equal(value: str, candidate: str) -> bool:
    """Whether two values may be the same: a name within the other, one date, one nation."""
    dates = as_date(value), as_date(candidate)
    if dates[0] and dates[1]:
        return dates[0].agrees(dates[1])
    return is_same(value, candidate) or is_alike(value, candidate) or same_nation(clean(value), clean(candidate))


def are_alike(relation: str, candidate: str) -> bool:
    """Whether one wording may mean both relations, so that neither refutes the other.

    >>> are_alike("country", "country of citizenship"), are_alike("director", "composer")
    (True, False)
    >>> are_alike("was directed by", "is the director of"), are_alike("father", "mother")
    (True, False)
    """
    if relation == candidate:
        return True
    entry, candidate_entry = RELATIONS.get(relation), RELATIONS.get(candidate)
    if entry and candidate_entry:
        return entry.group != "kin" and bool(entry.cues & candidate_entry.cues)
    return bool(content_words(relation) & content_words(candidate))


def _has_content(fact: Triple) -> bool:
    """Whether a relation has content words: "is" alone says nothing about the ends it joins."""
    return bool(content_words(fact.relation.replace("_", " ")))


def _pattern(fact: Triple) -> str:
    """Return the key that facts with ends of the same kinds share: a relation, or a question's opening.

    >>> _pattern(Triple("Oru", "when was … founded", "1901"))
    'when was'
    """
    return " ".join(fact.relation.lower().split()[:2]) if is_free(fact) else fact.relation


def _relation_type(fact: Triple) -> str:
    if entry := RELATIONS.get(fact.relation):
        return entry.kind if entry.kind in ("date", "nation") else f"{entry.kind} {entry.group}"
    if fact.relation in _FILM_SORTS:
        return _FILM_SORTS[fact.relation]
    if is_free(fact):
        return f"{_pattern(fact)} {fact.relation.count('…')}"
    return f"free {form_of(fact.tail)}"


def _rotate(values: Iterable[T], seed: str) -> Iterator[T]:
    sequence: Sequence[T] = list(values)
    start = choice_for(seed) % len(sequence) if sequence else 0
    yield from sequence[start:]
    yield from sequence[:start]


@dataclass(frozen=True, slots=True)
class ChainCase:
    """A chain with its gold ``fact``, and the ``claim`` in its place; both are the path's first fact if it is true."""

    source: CalibrationSource
    setting: StepContext
    kind: ClaimKind
    grounds: Grounds
    chain: Chain
    fact: Triple
    claim: Triple


Impossible = tuple[StepContext, ClaimKind]
"""The setting and kind of a case that could not be made, as no such error of the fact is surely wrong."""


def make_cases(
    sources: Sequence[CalibrationSource], error_values: ErrorValues, seed: int
) -> tuple[list[ChainCase], Counter[Impossible]]:
    """Make the cases: every fact alone in each kind; each path without an error, and once with each error.

    The seed and the question's id choose which fact is exchanged, and what replaces it. Also returns the number of
    cases that could not be made.
    """
    cases: list[ChainCase] = []
    impossible: Counter[Impossible] = Counter()
    for source in sources:
        for case in (*_cases_alone(source, error_values, seed), *_cases_in_paths(source, error_values, seed)):
            if isinstance(case, ChainCase):
                cases.append(case)
            else:
                impossible[case] += 1
    return cases, impossible


def _cases_alone(source: CalibrationSource, error_values: ErrorValues, seed: int) -> Iterator[ChainCase | Impossible]:
    hops = [hop for path in source.grounds.paths[:_MOST_PATHS] for hop in split_hops(path)]
    for fact in dict.fromkeys(hop[0] for hop in hops if len(hop) == 1):
        grounds = replace(
            source.grounds, answers=(fact.tail,), paths=((fact,),), starts=(fact.head,), is_branched=False
        )
        for kind in KINDS:
            claim = _exchange(error_values, fact, kind, f"{seed} {source.id} {fact.head} {fact.relation}")
            if claim is None:
                yield ("alone", kind)
                continue
            chain = Chain((source.phrase([claim], str(seed), fact.head, fact.relation),), fact.tail)
            yield ChainCase(source, "alone", kind, grounds, chain, fact, claim)


_MOST_PATHS = 3
"""The most gold paths of a question that cases are made of: R4C has three annotators, a film two hundred paths."""


def _cases_in_paths(
    source: CalibrationSource, error_values: ErrorValues, seed: int
) -> Iterator[ChainCase | Impossible]:
    for number, path in enumerate(source.grounds.paths[:_MOST_PATHS]):
        hops = split_hops(path)
        marks = (str(seed), str(number))
        sentences = [source.phrase(hop, *marks, str(n)) for n, hop in enumerate(hops)]
        answer = source.grounds.answers[0] if source.grounds.answers else ""
        gold_chain = Chain(tuple(sentences), answer)
        yield ChainCase(source, "in its path", "true", source.grounds, gold_chain, path[0], path[0])
        for kind in WRONG:
            error = _inject_error(source, error_values, hops, kind, " ".join((*marks, source.id, kind)))
            if error is None:
                yield ("in its path", kind)
                continue
            index, claim = error
            sentence = source.phrase([claim], *marks, str(index))
            chain = Chain((*sentences[:index], sentence, *sentences[index + 1 :]), answer)
            yield ChainCase(source, "in its path", kind, source.grounds, chain, hops[index][0], claim)


def _inject_error(
    source: CalibrationSource, error_values: ErrorValues, hops: Sequence[Sequence[Triple]], kind: ClaimKind, seed: str
) -> tuple[int, Triple] | None:
    """Return a hop's index in which this error is possible, and the wrong claim; the seed gives the first hop."""
    start = choice_for(seed) % len(hops)
    for index in (*range(start, len(hops)), *range(start)):
        hop = hops[index]
        claim = _exchange(error_values, hop[0], kind, seed) if len(hop) == 1 else None
        if claim is not None:
            return index, claim
    return None


def _exchange(error_values: ErrorValues, fact: Triple, kind: ClaimKind, seed: str) -> Triple | None:
    return fact if kind == "true" else error_values.exchange(fact, kind, f"{seed} {kind}")
