"""What the probe knows: questions with the paths to their answers, a benchmark's facts, what relations mean."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any, Literal

from safe_stepwise.graphs.told import end_key, first_lost, starts_of
from safe_stepwise.language.relations import RELATIONS, is_nation
from safe_stepwise.language.text import words_of
from safe_stepwise.records import Triple
from safe_stepwise.store.boundary import read_yaml

Path = tuple[Triple, ...]
Fact = tuple[str, str, str]
"""A triple as the graph knows it: names and relation as they compare."""
Refuse = Callable[[str, str, str], object]
"""Hears of a benchmark, a question's id and why it is left out."""
Side = Literal["head", "tail"]
Sort = Literal["number", "name", "words"]

_MEANINGS: Mapping[str, Any] = read_yaml(File(__file__).with_name("relations.yaml"))
SYMMETRIC = frozenset(_MEANINGS["symmetric"])
"""Relations that hold as well the other way round."""
_WIDE = frozenset({"place", "nation", "name"})
"""Kinds of values of which one thing may be two."""
_SMALL = frozenset("a an and at by de del der di for in la le of on the to von with y".split())
"""Words that names write small."""


@dataclass(frozen=True, slots=True)
class PathQuestion:
    """A question, what counts as its answer, and its gold paths, the first of which is shown.

    ``start``: what a walk of the graph sets out from; ``facts``: what is known beside the paths; ``free``: relations
    in free words, of which nobody can say which others mean the same; ``needed``: places (from 1) of the shown path's
    triples that no gold path does without.
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
    """The words of what the question may be answered from, where there is any."""
    is_held_out: bool = False
    """Whether it is one that systems are evaluated on, and so belongs to test."""

    @property
    def path(self) -> Path:
        """The gold path that is shown."""
        return self.paths[0]

    @property
    def starts(self) -> frozenset[str]:
        """What a reader may start from on that path."""
        return starts_of(self.question, self.path)

    @property
    def key(self) -> str:
        """What questions that are the same share, whatever their id."""
        return f"{self.benchmark}\0{words_of(self.question)}"

    def is_right(self, path: Sequence[Triple]) -> bool:
        """Whether a path holds a gold one, told in an order that follows from its starts."""
        facts = set(map(fact_of, path))
        return any(
            first_lost(path, starts_of(self.question, gold)) is None
            for gold in self.paths
            if facts.issuperset(map(fact_of, gold))
        )


def fact_of(triple: Triple) -> Fact:
    """A triple as it compares with others.

    >>> fact_of(Triple("The Silent Ford", "Director", "Ana Vorr"))
    ('silent ford', 'director', 'ana vorr')
    """
    return end_key(triple.head), triple.relation.strip().casefold(), end_key(triple.tail)


def bare(triples: Iterable[Triple]) -> Path:
    """Triples without the places they were read at, each once."""
    return tuple(dict.fromkeys(replace(t, passage=None, sentence=None) for t in triples))


class World:
    """The graph of a benchmark: all gold paths, all that verification read, a knowledge base's all.

    ``is_complete``: what it lacks is false. Of a benchmark over text nobody can say so.
    """

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
            self._learn(triple)
        for triple, free in gold.items():
            is_free = triple.relation in free
            for side, name in (("head", triple.head), ("tail", triple.tail)):
                ends[side, sort_of(name) if is_free else triple.relation][name] = None
            if not is_free:
                relations.add(triple.relation)
        self._ends = {key: sorted(names) for key, names in ends.items()}
        self.relations = sorted(relations)
        for others in self.joined.values():
            others.sort(key=lambda t: (t.head, t.relation, t.tail))

    def _learn(self, triple: Triple) -> None:
        head, relation, tail = fact = fact_of(triple)
        if fact in self.facts:
            return
        self.facts.add(fact)
        self._tails[head, relation].add(tail)
        for end in dict.fromkeys((triple.head, triple.tail)):
            self.joined[end].append(triple)

    def knows(self, triple: Triple) -> bool:
        """Whether it is a fact."""
        return fact_of(triple) in self.facts

    def has_other(self, triple: Triple) -> bool:
        """Whether its head is known to have another value of its relation."""
        head, relation, tail = fact_of(triple)
        return bool(self._tails.get((head, relation), set()) - {tail})

    def others(self, side: Side, triple: Triple, is_free: bool) -> Sequence[str]:
        """What may stand in place of an end: what does so in other triples of its relation.

        Of a relation in free words: any end of its sort, if it is a name or a number.
        """
        name = triple.head if side == "head" else triple.tail
        if is_free and sort_of(name) == "words":
            return ()
        return self._ends.get((side, sort_of(name) if is_free else triple.relation), ())

    def excludes(self, old: Triple, new: Triple) -> bool:
        """Whether a triple is false because another of the same ends is true.

        Both differ in their relation. It is, where the graph is all there is; where at most one of the relations
        holds of two things, the head is known to have another value of one that has but one, or values of the one are
        dates and of the other none.
        """
        if self.is_complete or _at_most_one(old.relation, new.relation):
            return True
        relation, other = RELATIONS.get(old.relation), RELATIONS.get(new.relation)
        if relation is None or other is None:
            return False
        if other.functional and self.has_other(new):
            return True
        return relation.kind != other.kind and not {relation.kind, other.kind} <= _WIDE

    def strangeness(self, triple: Triple, relation: str) -> int:
        """How little a relation is like that of a triple: those least like it are told at a glance.

        0 where at most one of both holds; 1 where its values look like the triple's tail; else 2.
        """
        if _at_most_one(triple.relation, relation):
            return 0
        tails = self._ends.get(("tail", relation), ())
        return 1 if tails and sort_of(tails[0]) == sort_of(triple.tail) else 2


def _at_most_one(relation: str, other: str) -> bool:
    return any({relation, other} <= set(group) for group in _MEANINGS["exclusive"])


def sort_of(name: str) -> Sort:
    """What an end looks like; words describe what may be many, as a nation does.

    >>> sort_of("May 4, 1921"), sort_of("Duke of Vel"), sort_of("French pianist"), sort_of("French")
    ('number', 'name', 'words', 'words')
    """
    words = name.split()
    if any(w[:1].islower() and w.strip(",.;") not in _SMALL for w in words):
        return "words"
    if any(c.isdigit() for c in name):
        return "number"
    return "words" if is_nation(words_of(name)) or not name[:1].isupper() else "name"
