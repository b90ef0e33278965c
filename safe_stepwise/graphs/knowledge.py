"""What a loop over relation paths asks of a graph: paths, what they lead to, constraints.

It knows a graph by a convention (`store.CONVENTIONS`) and so many hops, and nothing of models.

What a graph can decide of a question's constraints (Deliberation on Priors, Table 1) is three-valued throughout: an
entity meets a constraint, fails it, or is left out, since the graph does not know. A fact that is not there is no
proof that it is false, unless the graph has the same sort of fact for the entity: a film of another year than asked
for fails, one without a year does not.

- *type*: the entity is among what the relation leads to anywhere. It fails only if all that it is seen under leads to
  things of another sort (`Ranges`): who directed a film may well have written one that the graph does not have.
  Without a relation of the graph nothing is known.
- *multi_entity*: by the relation where it is one of the graph's, in either direction; else several topics by
  intersection: who is reached by a candidate path of the other topic, too, meets it, and the others fail it, if
  anybody does.
- *explicit_time*, *implicit_time*: the dates that the entity has by the relation, or else by any relation, if all that
  give a date agree; else its name, if it is a date and begins no fact. Where it has none, the last one before it on
  the chain that has some is asked. One that has dates before and after a time, as a term of office from and to, is not
  shown to lie outside of it.
- *ordinal*: first and last by date, most and least by number, or by how many there are where the relation leads to no
  numbers.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from typing import TypeVar
from weakref import WeakKeyDictionary

from safe_stepwise.graphs import store
from safe_stepwise.graphs.store import HOPS, NO_TOPIC, Convention, GraphStore
from safe_stepwise.language.text import as_date
from safe_stepwise.records import Candidate, Comparison, Constraint, ConstraintKind, RelationPath

MAX_ENTITIES = 50_000
"""Entities of a graph that are looked at: all of MetaQA's (43,234), of Freebase a sample."""
MIN_RANGE = 100
"""Entities that each of two relations has to lead to before their being apart means something."""
MAX_SHARED_SHARE = 0.01
"""The share of the smaller of two ranges that may be in both. In MetaQA people share at most .0064
with films, but the three relations that lead to people at least .095 with each other. A film may
have the name of a year (.058), so that of those two nothing is said."""


class Ranges:
    """Which relations of a graph lead to things of another sort, as far as the graph itself shows it.

    That an entity does not stand under a relation shows nothing: a graph is never whole. That hardly anything stands
    under two relations does, where both lead to many: people are no years. Hardly, as a film called "1984" is one
    entity with the year in a graph that knows entities by their names alone.

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> graph = MemoryGraph([(f"film {n}", "by", f"person {n}") for n in range(200)])
    >>> Ranges(graph).are_apart("by", "~by"), Ranges(graph).are_apart("by", "by")
    (True, False)
    """

    def __init__(self, graph: GraphStore) -> None:
        self._ends: Mapping[str, set[int]] = graph.ranges(MAX_ENTITIES)
        self.are_apart = cache(self._are_apart)

    def _are_apart(self, relation: str, other_relation: str) -> bool:
        """Tell whether two relations lead to different sorts of entities."""
        ends, other_ends = (self._ends.get(name, set()) for name in (relation, other_relation))
        fewer = min(len(ends), len(other_ends))
        return fewer >= MIN_RANGE and len(ends & other_ends) <= MAX_SHARED_SHARE * fewer


_RANGES: WeakKeyDictionary[GraphStore, Ranges] = WeakKeyDictionary()


def ranges_of(graph: GraphStore) -> Ranges:
    """A graph's ranges, which are looked at once."""
    ranges = _RANGES.get(graph)
    if ranges is None:
        ranges = _RANGES[graph] = Ranges(graph)
    return ranges


Day = tuple[int, int, int]
"""Year, month, day; what is not said is 0."""
Value = tuple[float, ...]
"""What is put in order."""
T = TypeVar("T")
_ALL_MET, _ALL_FAILED = frozenset((True,)), frozenset((False,))
_ISO = re.compile(r"(-?\d{4})-(\d\d)(?:-(\d\d)(?:T[\d:.]+)?)?(?:Z|[+-]\d\d:\d\d)?")


@dataclass(frozen=True)
class Place:
    """A path that was followed: where it leads, how, and what candidates of the constraint's
    entity lead to (``other_ends``).
    """

    graph: GraphStore
    candidate: Candidate
    ends: tuple[str, ...]
    chains: tuple[tuple[str, ...], ...]
    other_ends: frozenset[str] = frozenset()

    def graph_relation(self, relation: str) -> str:
        """The relation if the graph has it, else nothing."""
        return relation if relation in self.graph.relations else ""

    def follow_from(self, name: str, relation: str) -> list[str]:
        """Return the names that a relation leads to from an entity."""
        node = self.graph.node(name)
        return [] if node is None else self.graph.names(self.graph.follow([node], relation))

    def leading_to(self, name: str) -> list[str]:
        """The relations that lead to an entity from anywhere."""
        node = self.graph.node(name)
        return [] if node is None else [store.inverse(step) for step in self.graph.steps([node])]


def decide(constraint: Constraint, place: Place) -> dict[str, bool]:
    """Whether each entity that a path leads to meets a constraint; without the undecided.

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> graph = MemoryGraph([("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Vel", "year", "1998")])
    >>> path = Candidate("Ana", ("~by",))
    >>> place = Place(graph, path, ("Oru", "Vel"), (("Ana", "Oru"), ("Ana", "Vel")))
    >>> decide(Constraint("explicit_time", "After 1999.", time="1999", comparison="after"), place)
    {'Vel': False}
    """
    verdicts = _RULES[constraint.kind](constraint, place)
    return {end: verdicts[end] for end in place.ends if end in verdicts}


def _type(constraint: Constraint, place: Place) -> dict[str, bool]:
    relation = place.graph_relation(constraint.relation)
    if not relation:
        return {}
    verdicts, ranges = dict[str, bool](), ranges_of(place.graph)
    for end in place.ends:
        incoming = place.leading_to(end)
        if relation in incoming:
            verdicts[end] = True
        elif incoming and all(ranges.are_apart(relation, relation_in) for relation_in in incoming):
            verdicts[end] = False
    return verdicts


def _entity(constraint: Constraint, place: Place) -> dict[str, bool]:
    node, graph = _node(place, constraint.entity), place.graph
    if node is None or constraint.entity == place.candidate.topic:
        return {}
    relation = place.graph_relation(constraint.relation)
    for towards in (relation, store.inverse(relation)) if relation else ():
        if linked := set(graph.names(graph.follow([node], store.inverse(towards)))):
            return {end: end in linked for end in place.ends if place.follow_from(end, towards)}
    met = place.other_ends & {*place.ends}
    return {end: end in met for end in place.ends} if met else {}


def _node(place: Place, name: str) -> int | None:
    return place.graph.node(name) if name else None


def _implicit(constraint: Constraint, place: Place) -> dict[str, bool]:
    if _node(place, constraint.entity) is None:
        return {}
    days_by_relation = _days_by(place, constraint.entity, place.graph_relation(constraint.relation))
    target = set().union(*days_by_relation.values()) if len(days_by_relation) == 1 else set()
    return _timed(constraint, place, target)


def _timed(constraint: Constraint, place: Place, target: set[Day]) -> dict[str, bool]:
    """Compare dates with those that are meant; several of them are a time from first to last."""
    compare = _COMPARED.get(constraint.comparison or "in")
    if not target or compare is None:
        return {}
    relation = place.graph_relation(constraint.relation)

    def verdicts(name: str) -> frozenset[bool] | None:
        days_by_relation = _days_by(place, name, relation)
        outcomes = frozenset(any(compare(day, target) for day in days) for days in days_by_relation.values())
        if outcomes != _ALL_FAILED or compare is not _is_in:
            return outcomes or None
        # An entity with a date before and one after what is meant is not shown to lie outside of it.
        days = set().union(*_days_by(place, name, "").values())
        surrounds = any(_is_before(day, target) for day in days) and any(_is_after(day, target) for day in days)
        return frozenset() if surrounds else outcomes

    # It meets what one of its chains meets, and fails what all of them fail.
    outcomes_by_end = {end: {*outcomes} for end, outcomes in _speaking(place, verdicts)}
    met = {end: True for end, outcomes in outcomes_by_end.items() if _ALL_MET in outcomes}
    return met | {end: False for end, outcomes in outcomes_by_end.items() if outcomes == {_ALL_FAILED}}


def _speaking(place: Place, evaluate: Callable[[str], T | None]) -> Iterator[tuple[str, list[T | None]]]:
    """Each end with what its chains say: of each the last entity that can, the topic aside."""
    values: dict[str, T | None] = {}
    by_end: dict[str, list[T | None]] = {}
    for chain in place.chains:
        for name in chain[1:]:
            if name not in values:
                values[name] = evaluate(name)
        values_on_chain = (values[name] for name in chain[:0:-1] if values[name] is not None)
        by_end.setdefault(chain[-1], []).append(next(values_on_chain, None))
    yield from by_end.items()


def _days_by(place: Place, name: str, relation: str) -> dict[str, set[Day]]:
    """The dates of an entity by the relations that give some; without any its name, if it is one.

    Nothing is read backwards unless asked for: the director of "1984" has no date by that.
    """
    node = _node(place, name)
    steps = {} if node is None else place.graph.steps([node])
    relations = [relation] if relation else [step for step in steps if not step.startswith(store.BACKWARDS)]
    names_by_relation = {step: place.graph.names(steps.get(step, ())) for step in relations}
    days = {step: {day for name_ in names if (day := _day(name_))} for step, names in names_by_relation.items()}
    is_value = not relation and all(step.startswith(store.BACKWARDS) for step in steps)
    name_day = _day(name) if is_value else None
    return {step: step_days for step, step_days in days.items() if step_days} or ({"": {name_day}} if name_day else {})


def _day(text: str) -> Day | None:
    """A date in words, or as Freebase writes it: ``1998-05-03``, with a time of day or without."""
    if iso := _ISO.fullmatch(text):
        year, month, day = (int(number or 0) for number in iso.groups())
        return (year, month, day) if year and month <= 12 and day <= 31 else None
    date = as_date(text) if text else None
    return (date.year, date.month, date.day) if date and date.year else None


def _is_in(day: Day, target: set[Day]) -> bool:
    """Tell whether a day lies within a time, as precisely as the less precise of the two."""
    earliest, latest = min(target), max(target)
    if earliest == latest:
        return all(a == b or not a or not b for a, b in zip(day, earliest, strict=True))
    return earliest <= day <= latest or _is_in(day, {earliest}) or _is_in(day, {latest})


def _is_before(day: Day, target: set[Day]) -> bool:
    return day < min(target) and not _is_in(day, {min(target)})


def _is_after(day: Day, target: set[Day]) -> bool:
    return day > max(target) and not _is_in(day, {max(target)})


_COMPARED: Mapping[Comparison, Callable[[Day, set[Day]], bool]] = {
    "in": _is_in,
    "before": _is_before,
    "after": _is_after,
}


def _ordinal(constraint: Constraint, place: Place) -> dict[str, bool]:
    """The ends whose value is the extreme meet it; undecided while another's value is unknown.

    What is beaten by a known value fails in any case, if there is a relation to go by.
    """
    if not constraint.comparison or constraint.comparison in _COMPARED:
        return {}
    extreme = min if constraint.comparison in ("first", "least") else max
    relation = place.graph_relation(constraint.relation)
    read = _day if constraint.comparison in ("first", "last") else _number
    values = _values(place, relation, read, extreme)
    if not values and relation and read is _number:
        counts = {end: len(place.follow_from(end, relation)) for end in place.ends}
        values = {end: (float(count),) for end, count in counts.items() if count}
    is_whole = len(values) == len(place.ends)
    if not values or not (is_whole or relation):
        return {}
    goes_before = _goes_before(read is _day, extreme is min)
    distinct = set(values.values())
    beaten = {v for v in distinct if any(goes_before(rival, v) for rival in distinct)}
    best = {v for v in distinct if all(rival == v or goes_before(v, rival) for rival in distinct)}
    met = {end: True for end, value in values.items() if value in best and is_whole}
    return met | {end: False for end, value in values.items() if value in beaten}


def _goes_before(is_day: bool, is_least: bool) -> Callable[[Value, Value], bool]:
    """Whether one value is surely nearer to the extreme than another: no year is, to its days."""

    def is_less(value: Value, rival: Value) -> bool:
        alike = is_day and all(a == b or not a or not b for a, b in zip(value, rival, strict=True))
        return value < rival and not alike

    return is_less if is_least else lambda value, rival: is_less(rival, value)


def _values(
    place: Place, relation: str, read: Callable[[str], Value | None], extreme: Callable[[Iterable[Value]], Value]
) -> dict[str, Value]:
    """Return the value by which each end is ordered: the extreme of what its chains give."""

    def extreme_of(name: str) -> Value | None:
        texts = place.follow_from(name, relation) if relation else [name]
        values = [value for value in map(read, texts) if value is not None]
        return extreme(values) if values else None

    values_by_end = {end: [v for v in texts if v is not None] for end, texts in _speaking(place, extreme_of)}
    return {end: extreme(texts) for end, texts in values_by_end.items() if texts}


def _number(text: str) -> Value | None:
    """A number that is the whole text, which the name of "12 Angry Men" is not."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return (value,) if isfinite(value) else None


_RULES: Mapping[ConstraintKind, Callable[[Constraint, Place], dict[str, bool]]] = {
    "type": _type,
    "multi_entity": _entity,
    "explicit_time": lambda constraint, place: _timed(constraint, place, {*filter(None, [_day(constraint.time)])}),
    "implicit_time": _implicit,
    "ordinal": _ordinal,
}


MAX_CHAINS = 5_000
"""Of a path with more of them a constraint is decided by what it leads to alone."""


class GraphKnowledge:
    """A graph as `methods.deliberation.Knowledge`.

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> films = [("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Vel", "by", "Edo")]
    >>> knowledge = GraphKnowledge(MemoryGraph(films), hops=2)
    >>> knowledge.executable("Oru")
    [('by',), ('by', '~by')]
    >>> knowledge.ranked(Candidate("Oru", ("by", "~by")))
    ('Vel',)
    >>> knowledge.chains(Candidate("Oru", ("by", "~by")), 9)
    [('Oru', 'Ana', 'Vel')]
    """

    def __init__(self, graph: GraphStore, convention: Convention = NO_TOPIC, hops: int = HOPS) -> None:
        self.graph, self.convention, self.hops = graph, convention, hops
        self._ranked: dict[Candidate, tuple[str, ...]] = {}

    def executable(self, topic: str) -> list[RelationPath]:
        """All paths up to its hops that lead somewhere from a topic, shortest first, then by name.

        They are found by ``no_topic``; where no entity may be visited twice, some lead nowhere.
        """
        paths = store.paths_from(self.graph, topic, self.hops)
        if self.convention != "no_revisit":
            return paths
        return [path for path in paths if self.chains(Candidate(topic, path), 1)]

    def ranked(self, candidate: Candidate) -> tuple[str, ...]:
        """Rank what a path leads to by the number of its instantiations, then by name; computed once."""
        if candidate not in self._ranked:
            times = self._times(candidate)
            self._ranked[candidate] = tuple(sorted(times, key=lambda name: (-times[name], name)))
        return self._ranked[candidate]

    def _times(self, candidate: Candidate) -> Mapping[str, int]:
        """How many instantiations end in each entity."""
        if self.convention == "no_revisit":
            return Counter(chain[-1] for chain in self.chains(candidate, None))
        start = self.graph.node(candidate.topic)
        if start is None:
            return {}
        times = {start: 1}
        for relation in candidate.path:
            onwards: dict[int, int] = {}
            for node, count in times.items():
                for end in self.graph.follow([node], relation):
                    if end != start or self.convention != NO_TOPIC:
                        onwards[end] = onwards.get(end, 0) + count
            times = onwards
        return dict(zip(self.graph.names(times), times.values(), strict=True))

    def chains(self, candidate: Candidate, limit: int | None) -> list[tuple[str, ...]]:
        """Its instantiations entity by entity, the first ``limit`` of them by name."""
        return store.instances(self.graph, candidate.topic, candidate.path, self.convention, limit)

    def relations(self, pool: Sequence[Candidate]) -> list[str]:
        """The relations of some paths, and those that lead on from what they lead to; sorted."""
        relations = {relation for candidate in pool for relation in candidate.path}
        ends = {name for candidate in pool for name in self.ranked(candidate)}
        nodes = [node for name in ends if (node := self.graph.node(name)) is not None]
        return sorted(relations | set(self.graph.steps(nodes)))

    def decided(self, constraint: Constraint, candidate: Candidate, pool: Sequence[Candidate]) -> dict[str, bool]:
        """Tell for each end of a path whether it meets a constraint; ends that the graph can't decide are left out."""
        constraint = self._spelt(constraint, pool)
        ends = self.ranked(candidate)
        chains = self.chains(candidate, MAX_CHAINS + 1)
        if len(chains) > MAX_CHAINS:
            chains = [(candidate.topic, end) for end in ends]
        other_ends = {
            name
            for rival in pool
            if rival.topic == constraint.entity != candidate.topic
            for name in self.ranked(rival)
        }
        return decide(constraint, Place(self.graph, candidate, ends, tuple(chains), frozenset(other_ends)))

    def _spelt(self, constraint: Constraint, pool: Sequence[Candidate]) -> Constraint:
        """The constraint with its entity as the graph has it, if that is a topic but for case."""
        entity = constraint.entity
        if not entity or self.graph.node(entity) is not None:
            return constraint
        spellings = {member.topic for member in pool if member.topic.casefold() == entity.casefold()}
        return replace(constraint, entity=spellings.pop()) if len(spellings) == 1 else constraint
