"""What the probe knows of a benchmark: its facts, what joins them, what may stand for what."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from builders.paths.asked import Asked, Fact, fact_of
from safe_stepwise.language.relations import is_nation
from safe_stepwise.language.text import words_of
from safe_stepwise.records import Triple

Side = Literal["head", "tail"]
Sort = Literal["number", "name", "words"]
_SMALL = frozenset("a an and at by de del der di for in la le of on the to von with y".split())
"""Words that names write small."""


class World:
    """The graph of a benchmark: all gold paths, all that verification read, a knowledge base's all.

    ``is_complete``: what it lacks is false. Of a benchmark over text nobody can say so.
    """

    def __init__(self, asked: Sequence[Asked], triples: Iterable[Triple] = (), is_complete: bool = False) -> None:
        self.is_complete = is_complete
        self.facts: set[Fact] = set()
        self.joined: dict[str, list[Triple]] = defaultdict(list)
        self._known: dict[tuple[str, str], set[str]] = defaultdict(set)
        ends: dict[object, dict[str, None]] = defaultdict(dict)
        relations: dict[str, None] = {}
        told = {triple: one.free for one in asked for path in one.paths for triple in path}
        beside = {triple: frozenset[str]() for one in asked for triple in one.facts}
        for triple in {**dict.fromkeys(triples, frozenset[str]()), **beside, **told}:
            self._learn(triple)
        for triple, free in told.items():
            is_free = triple.relation in free
            for side, name in (("head", triple.head), ("tail", triple.tail)):
                ends[side, sort_of(name) if is_free else triple.relation][name] = None
            if not is_free:
                relations[triple.relation] = None
        self._ends = {key: sorted(names) for key, names in ends.items()}
        self.relations = sorted(relations)
        for others in self.joined.values():
            others.sort(key=lambda t: (t.head, t.relation, t.tail))

    def _learn(self, triple: Triple) -> None:
        head, relation, tail = fact_of(triple)
        if (head, relation, tail) in self.facts:
            return
        self.facts.add((head, relation, tail))
        self._known[head, relation].add(tail)
        for end in dict.fromkeys((triple.head, triple.tail)):
            self.joined[end].append(triple)

    def knows(self, triple: Triple) -> bool:
        """Whether it is a fact."""
        return fact_of(triple) in self.facts

    def has_other(self, triple: Triple) -> bool:
        """Whether its head is known to have another value of its relation."""
        head, relation, tail = fact_of(triple)
        return bool(self._known.get((head, relation), set()) - {tail})

    def values(self, relation: str) -> Sequence[str]:
        """The tails of a relation that is not in free words."""
        return self._ends.get(("tail", relation), ())

    def others(self, side: Side, triple: Triple, is_free: bool) -> Sequence[str]:
        """What may stand in place of an end: what does so in other triples of its relation.

        Of a relation in free words: any end of its sort, if it is a name or a number.
        """
        name = triple.head if side == "head" else triple.tail
        if is_free and sort_of(name) == "words":
            return ()
        return self._ends.get((side, sort_of(name) if is_free else triple.relation), ())


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
