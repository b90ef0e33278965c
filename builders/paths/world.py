"""Hold the probe's knowledge: questions with gold paths, a benchmark's facts, and the meaning of relations."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any, Literal

from safe_stepwise.graphs.path_order import end_key, find_unreached, starts_of
from safe_stepwise.language.relations import RELATIONS, is_nation
from safe_stepwise.language.text import normal_words
from safe_stepwise.records import Triple
from safe_stepwise.store.boundary import read_yaml

Path = tuple[Triple, ...]
Fact = tuple[str, str, str]
"""A triple with its names and relation in the form in which they compare."""
Refuse = Callable[[str, str, str], object]
"""Takes a benchmark, a question's id and the reason why it is left out."""
Side = Literal["head", "tail"]
Sort = Literal["number", "name", "words"]

COMPLETE = ("metaqa", "synthetic")
"""Benchmarks whose graph states every true fact: what it lacks is false."""
_MEANINGS: Mapping[str, Any] = read_yaml(File(__file__).with_name("relations.yaml"))
SYMMETRIC = frozenset(_MEANINGS["symmetric"])
"""Relations that hold in both directions."""
_WIDE = frozenset({"place", "nation", "name"})
"""Kinds of values that may overlap, as a place may be a nation."""
_NAMELESS = re.compile(r"[mg]\.\w+")
"""Freebase's id of an entity without a name: no reader can tell it from another."""
_SMALL = frozenset("a an and at by de del der di for in la le of on the to von with y".split())
"""Lower-case words of names."""


@dataclass(frozen=True, slots=True)
class PathQuestion:
    """A question, its accepted answers, and its gold paths, the first of which the probe shows.

    ``start`` is the first entity of a walk; ``facts`` are known beside the paths; ``free`` relations are free words;
    ``needed`` are the places (from 1) of triples that are in every gold path; ``topics`` are annotated entities.
    """

    benchmark: str
    id: str
    question: str
    answer: str
    accepted: tuple[str, ...]
    paths: tuple[Path, ...]
    start: str
    needed: tuple[int, ...]
    facts: Path = ()
    free: frozenset[str] = frozenset()
    text: str = ""
    """The words of the passages that answer the question, if there are any."""
    is_held_out: bool = False
    """Whether it is an evaluation question, and so belongs to test."""
    topics: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The gold path that the probe shows."""
        return self.paths[0]

    @property
    def starts(self) -> frozenset[str]:
        """Names from which a reader may start on that path."""
        return starts_of(self.question, self.path)

    @property
    def key(self) -> str:
        """The key that equal questions share, whatever their ids."""
        return f"{self.benchmark}\0{normal_words(self.question)}"

    def is_right(self, path: Sequence[Triple]) -> bool:
        """Whether a path contains a gold one, in an order that follows from its starts."""
        facts = set(map(fact_of, path))
        return any(
            find_unreached(path, starts_of(self.question, gold)) is None
            for gold in self.paths
            if facts.issuperset(map(fact_of, gold))
        )


def fact_of(triple: Triple) -> Fact:
    """Normalise a triple for comparison with others.

    >>> fact_of(Triple("The Silent Ford", "Director", "Ana Vorr"))
    ('silent ford', 'director', 'ana vorr')
    """
    return end_key(triple.head), triple.relation.strip().casefold(), end_key(triple.tail)


def bare(triples: Iterable[Triple]) -> Path:
    """Drop the places of triples, and repeated triples."""
    return tuple(dict.fromkeys(replace(t, passage=None, sentence=None) for t in triples))


class World:
    """The graph of a benchmark; if it ``is_complete``, unlike that of a text, a triple that it lacks is false."""

    def __init__(
        self, questions: Sequence[PathQuestion], triples: Iterable[Triple] = (), is_complete: bool = False
    ) -> None:
        self.is_complete = is_complete
        self.facts: set[Fact] = set()
        self.joined: dict[str, list[Triple]] = defaultdict(list)
        self._tails: dict[tuple[str, str], set[str]] = defaultdict(set)
        ends: dict[object, dict[str, None]] = defaultdict(dict)
        relations = set[str]()
        gold = {triple: question.free for question in questions for path in question.paths for triple in path}
        beside = (triple for question in questions for triple in question.facts)
        for triple in dict.fromkeys([*triples, *beside, *gold]):
            head, relation, tail = fact = fact_of(triple)
            if fact in self.facts:
                continue
            self.facts.add(fact)
            self._tails[head, relation].add(tail)
            for end in dict.fromkeys((triple.head, triple.tail)):
                self.joined[end].append(triple)
        for triple, free in gold.items():
            is_free = triple.relation in free
            for side, name in (("head", triple.head), ("tail", triple.tail)):
                ends[side, sort_of(name) if is_free else triple.relation][name] = None
            if not is_free:
                relations.add(triple.relation)
        self._ends = {key: sorted(names) for key, names in ends.items()}
        self.relations = sorted(relations)
        for neighbours in self.joined.values():
            neighbours.sort(key=lambda t: (t.head, t.relation, t.tail))

    def alternatives(self, side: Side, triple: Triple, is_free: bool) -> Sequence[str]:
        """Return names that may replace an end: those with its relation or, if that is in free words, of its sort."""
        name = triple.head if side == "head" else triple.tail
        if (is_free and sort_of(name) == "words") or _NAMELESS.fullmatch(name):
            return ()
        return self._ends.get((side, sort_of(name) if is_free else triple.relation), ())

    def excludes(self, old: Triple, new: Triple) -> bool:
        """Whether ``new`` is false because ``old``, which differs only in its relation, is true.

        That is so if the graph is complete; if at most one of both relations holds between two entities; if the new
        relation has one value and the head has another one; or if the kinds of values exclude each other.
        """
        if self.is_complete or _at_most_one(old.relation, new.relation):
            return True
        relation, new_relation = RELATIONS.get(old.relation), RELATIONS.get(new.relation)
        if relation is None or new_relation is None:
            return False
        head, name, tail = fact_of(new)
        if new_relation.functional and self._tails.get((head, name), set()) - {tail}:
            return True
        return relation.kind != new_relation.kind and not {relation.kind, new_relation.kind} <= _WIDE

    def strangeness(self, triple: Triple, relation: str) -> int:
        """Rank unlike relations: 0 if at most one of both holds, 1 if its values look like the triple's tail, or 2."""
        if _at_most_one(triple.relation, relation):
            return 0
        tails = self._ends.get(("tail", relation), ())
        return 1 if tails and sort_of(tails[0]) == sort_of(triple.tail) else 2


def _at_most_one(relation: str, rival: str) -> bool:
    return any({relation, rival} <= set(group) for group in _MEANINGS["exclusive"])


def sort_of(name: str) -> Sort:
    """Return the sort of an end: a number, a name, or words, which may describe many entities, as a nation does.

    >>> sort_of("May 4, 1921"), sort_of("Duke of Vel"), sort_of("French pianist"), sort_of("French")
    ('number', 'name', 'words', 'words')
    """
    if any(w[:1].islower() and w.strip(",.;") not in _SMALL for w in name.split()):
        return "words"
    if any(c.isdigit() for c in name):
        return "number"
    return "words" if is_nation(normal_words(name)) or not name[:1].isupper() else "name"
