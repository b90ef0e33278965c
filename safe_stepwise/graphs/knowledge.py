"""Answer what Deliberation on Priors asks about a graph: the paths from a topic, their ends, and constraints on ends.

`GraphKnowledge` does so for a graph, a convention (`store.CONVENTIONS`) and a maximum number of hops. The *ends* of a
path are the entities that it leads to; a *chain* is one instance of it, as its entities from topic to end.

`decide` says whether the ends of a path meet a question's constraint (Deliberation on Priors, Table 1): an end meets
it, fails it, or is left out, since the graph does not show it. A missing fact proves nothing, unless the graph has
such a fact for the entity: a film of another year than the question's fails, a film without a year does not.

- *type*: an end meets it if the relation leads to the end from anywhere. It fails only if all relations to it lead to
  entities of another sort (`Ranges`): a director may have written a film that the graph does not have. If the graph
  does not have the relation, nothing is decided.
- *multi_entity*: if the graph has the relation, by it, in either direction. Otherwise an end meets it if a candidate
  path from the constraint's entity (another topic) leads to it too; if any end does, the others fail.
- *explicit_time*, *implicit_time*: by the dates of the end: those of the relation, else of any relation if all that
  give dates agree, else its name if that is a date and begins no fact. An end without dates takes those of the last
  entity before it on its chain that has some. An end with dates before and after the time does not fail. It meets the
  time if these are the first and the last day of a term, such as one of office.
- *ordinal*: first and last by date; most and least by number, or by the count of what the relation leads to.
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
"""Number of entities that `Ranges` looks at: all of MetaQA's (43,234), a sample of Freebase's."""
MIN_RANGE = 100
"""Number of entities that each of two relations must lead to, so that their ranges can count as apart."""
MAX_SHARED_SHARE = 0.01
"""Two ranges are apart if they share at most this share of the smaller one. In MetaQA the relations to people share at
most .0064 with those to films, and at least .095 with each other. Films and years share .058, as some films are named
like a year, so that these two are not apart."""


class Ranges:
    """Tells which relations of a graph lead to different sorts of entities: they share hardly any.

    No graph is complete, so that a single entity which a relation does not lead to shows nothing. Two relations that
    lead to many entities, and to almost none in common, do. (Almost, since a film called "1984" and the year are one
    entity in a graph that knows entities only by their names.)

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> graph = MemoryGraph([(f"film {n}", "by", f"person {n}") for n in range(200)])
    >>> Ranges(graph).are_apart("by", "~by"), Ranges(graph).are_apart("by", "by")
    (True, False)
    """

    def __init__(self, graph: GraphStore) -> None:
        self._ends: Mapping[str, set[int]] = graph.ranges(MAX_ENTITIES)
        self.are_apart = cache(self._are_apart)

    def _are_apart(self, relation: str, other_relation: str) -> bool:
        ends, other_ends = (self._ends.get(name, set()) for name in (relation, other_relation))
        fewer = min(len(ends), len(other_ends))
        return fewer >= MIN_RANGE and len(ends & other_ends) <= MAX_SHARED_SHARE * fewer


_RANGES: WeakKeyDictionary[GraphStore, Ranges] = WeakKeyDictionary()


def ranges_of(graph: GraphStore) -> Ranges:
    """Return a graph's `Ranges`, computed once per graph."""
    if (ranges := _RANGES.get(graph)) is None:
        ranges = _RANGES[graph] = Ranges(graph)
    return ranges


Day = tuple[int, int, int]
"""Year, month, day; an unknown month or day is 0."""
Value = tuple[float, ...]
"""A value that ends are ordered by: a `Day`, or a number as a tuple."""
T = TypeVar("T")
_ALL_MET, _ALL_FAILED = frozenset((True,)), frozenset((False,))
_ISO = re.compile(r"(-?\d{4})-(\d\d)(?:-(\d\d)(?:T[\d:.]+)?)?(?:Z|[+-]\d\d:\d\d)?")


@dataclass(frozen=True)
class FollowedPath:
    """A path in a graph with its ends and chains, and the ends of the candidates from the constraint's entity."""

    graph: GraphStore
    candidate: Candidate
    ends: tuple[str, ...]
    chains: tuple[tuple[str, ...], ...]
    other_ends: frozenset[str] = frozenset()

    def graph_relation(self, relation: str) -> str:
        """Return the relation if the graph has it, else ""."""
        return relation if relation in self.graph.relations else ""

    def follow_from(self, name: str, relation: str) -> list[str]:
        """List the names of the entities that a relation leads to from an entity."""
        node = self.graph.node(name)
        return [] if node is None else self.graph.names(self.graph.follow([node], relation))

    def relations_to(self, name: str) -> list[str]:
        """List the relations that lead to an entity."""
        node = self.graph.node(name)
        return [] if node is None else [store.inverse(step) for step in self.graph.steps([node])]


def decide(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    """Map each end of a path to whether it meets a constraint, without those that the graph can't decide.

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> graph = MemoryGraph([("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Vel", "year", "1998")])
    >>> candidate = Candidate("Ana", ("~by",))
    >>> path = FollowedPath(graph, candidate, ("Oru", "Vel"), (("Ana", "Oru"), ("Ana", "Vel")))
    >>> decide(Constraint("explicit_time", "After 1999.", time="1999", comparison="after"), path)
    {'Vel': False}
    """
    verdicts = _RULES[constraint.kind](constraint, path)
    return {end: verdicts[end] for end in path.ends if end in verdicts}


def _decide_type(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    relation = path.graph_relation(constraint.relation)
    if not relation:
        return {}
    verdicts, ranges = dict[str, bool](), ranges_of(path.graph)
    for end in path.ends:
        incoming = path.relations_to(end)
        if relation in incoming:
            verdicts[end] = True
        elif incoming and all(ranges.are_apart(relation, relation_in) for relation_in in incoming):
            verdicts[end] = False
    return verdicts


def _decide_entity(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    """Decide by the constraint's relation to its entity, or by the candidates from that entity."""
    node, graph = _node(path, constraint.entity), path.graph
    if node is None or constraint.entity == path.candidate.topic:
        return {}
    relation = path.graph_relation(constraint.relation)
    for towards in (relation, store.inverse(relation)) if relation else ():
        if linked := set(graph.names(graph.follow([node], store.inverse(towards)))):
            return {end: end in linked for end in path.ends if path.follow_from(end, towards)}
    met = path.other_ends & {*path.ends}
    return {end: end in met for end in path.ends} if met else {}


def _node(path: FollowedPath, name: str) -> int | None:
    return path.graph.node(name) if name else None


def _decide_implicit_time(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    """Decide by the dates of the constraint's entity, if only one of its relations gives some."""
    if _node(path, constraint.entity) is None:
        return {}
    days_by_relation = _days_by(path, constraint.entity, path.graph_relation(constraint.relation))
    target = set().union(*days_by_relation.values()) if len(days_by_relation) == 1 else set()
    return _compare_dates(constraint, path, target)


def _compare_dates(constraint: Constraint, path: FollowedPath, target: set[Day]) -> dict[str, bool]:
    """Compare the dates of the ends with ``target``; several target dates mean the time from the first to the last."""
    compare = _COMPARED.get(constraint.comparison or "in")
    if not target or compare is None:
        return {}
    relation = path.graph_relation(constraint.relation)

    def verdicts(name: str) -> frozenset[bool] | None:
        days_by_relation = _days_by(path, name, relation)
        outcomes = frozenset(any(compare(day, target) for day in days) for days in days_by_relation.values())
        if outcomes != _ALL_FAILED or compare is not _is_in:
            return outcomes or None
        # An entity with a date before and one after what is meant is not shown to lie outside of it.
        all_days = _days_by(path, name, "")
        days = set().union(*all_days.values())
        surrounds = any(_is_before(day, target) for day in days) and any(_is_after(day, target) for day in days)
        return (_ALL_MET if _is_in_term(all_days, target) else frozenset()) if surrounds else outcomes

    # It meets what one of its chains meets, and fails what all of them fail.
    outcomes_by_end = {end: {*outcomes} for end, outcomes in _values_by_end(path, verdicts)}
    met = {end: True for end, outcomes in outcomes_by_end.items() if _ALL_MET in outcomes}
    return met | {end: False for end, outcomes in outcomes_by_end.items() if outcomes == {_ALL_FAILED}}


def _values_by_end(path: FollowedPath, evaluate: Callable[[str], T | None]) -> Iterator[tuple[str, list[T | None]]]:
    """Yield each end with one value per chain: that of the last entity after the topic for which there is one."""
    values: dict[str, T | None] = {}
    by_end: dict[str, list[T | None]] = {}
    for chain in path.chains:
        for name in chain[1:]:
            if name not in values:
                values[name] = evaluate(name)
        values_on_chain = (values[name] for name in chain[:0:-1] if values[name] is not None)
        by_end.setdefault(chain[-1], []).append(next(values_on_chain, None))
    yield from by_end.items()


def _days_by(path: FollowedPath, name: str, relation: str) -> dict[str, set[Day]]:
    """Return the dates of an entity by the relation that gives them; without any, its name if that is a date.

    Relations backwards count only if ``relation`` is one: the director of "1984" has no date from it.
    """
    node = _node(path, name)
    steps = {} if node is None else path.graph.steps([node])
    relations = [relation] if relation else [step for step in steps if not step.startswith(store.BACKWARDS)]
    names_by_relation = {step: path.graph.names(steps.get(step, ())) for step in relations}
    days = {step: {day for name_ in names if (day := _day(name_))} for step, names in names_by_relation.items()}
    is_value = not relation and all(step.startswith(store.BACKWARDS) for step in steps)
    name_day = _day(name) if is_value else None
    return {step: step_days for step, step_days in days.items() if step_days} or ({"": {name_day}} if name_day else {})


def _day(text: str) -> Day | None:
    """Read a date in words or in Freebase's form: ``1998-05-03``, with or without a time of day; None for none."""
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


_LAST_DAYS = {"from": "to", "start_date": "end_date"}
"""The relation to a term's last day by that to its first day; a prefix, as Freebase's, is the same."""


def _is_in_term(days_by_relation: Mapping[str, set[Day]], target: set[Day]) -> bool:
    """Tell whether a time lies between an entity's only first and only last day."""
    for relation, firsts in days_by_relation.items():
        prefix, dot, name = relation.rpartition(".")
        lasts = days_by_relation.get(f"{prefix}{dot}{_LAST_DAYS.get(name)}", set())
        if len(firsts) == len(lasts) == 1 and _is_before(min(firsts), target) and _is_after(min(lasts), target):
            return True
    return False


def _is_before(day: Day, target: set[Day]) -> bool:
    return day < min(target) and not _is_in(day, {min(target)})


def _is_after(day: Day, target: set[Day]) -> bool:
    return day > max(target) and not _is_in(day, {max(target)})


_COMPARED: Mapping[Comparison, Callable[[Day, set[Day]], bool]] = {
    "in": _is_in,
    "before": _is_before,
    "after": _is_after,
}


def _decide_ordinal(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    """Decide that the ends with the extreme value meet the constraint, if the values of all ends are known.

    An end that another known value beats fails in any case, if the constraint has a relation of the graph.
    """
    if not constraint.comparison or constraint.comparison in _COMPARED:
        return {}
    extreme = min if constraint.comparison in ("first", "least") else max
    relation = path.graph_relation(constraint.relation)
    read = _day if constraint.comparison in ("first", "last") else _number
    values = _values(path, relation, read, extreme)
    if not values and relation and read is _number:
        counts = {end: len(path.follow_from(end, relation)) for end in path.ends}
        values = {end: (float(count),) for end, count in counts.items() if count}
    is_whole = len(values) == len(path.ends)
    if not values or not (is_whole or relation):
        return {}
    goes_before = _goes_before(read is _day, extreme is min)
    distinct = set(values.values())
    beaten = {v for v in distinct if any(goes_before(rival, v) for rival in distinct)}
    best = {v for v in distinct if all(rival == v or goes_before(v, rival) for rival in distinct)}
    met = {end: True for end, value in values.items() if value in best and is_whole}
    return met | {end: False for end, value in values.items() if value in beaten}


def _goes_before(is_day: bool, is_least: bool) -> Callable[[Value, Value], bool]:
    """Return a function that says whether a value surely comes before another: a year does not before its own days."""

    def is_less(value: Value, rival: Value) -> bool:
        alike = is_day and all(a == b or not a or not b for a, b in zip(value, rival, strict=True))
        return value < rival and not alike

    return is_less if is_least else lambda value, rival: is_less(rival, value)


def _values(
    path: FollowedPath, relation: str, read: Callable[[str], Value | None], extreme: Callable[[Iterable[Value]], Value]
) -> dict[str, Value]:
    """Return the value by which each end is ordered: the extreme of the values on its chains."""

    def extreme_of(name: str) -> Value | None:
        texts = path.follow_from(name, relation) if relation else [name]
        values = [value for value in map(read, texts) if value is not None]
        return extreme(values) if values else None

    values_by_end = {end: [v for v in texts if v is not None] for end, texts in _values_by_end(path, extreme_of)}
    return {end: extreme(texts) for end, texts in values_by_end.items() if texts}


def _number(text: str) -> Value | None:
    """Read a number that is the whole text; None for a text such as "12 Angry Men"."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return (value,) if isfinite(value) else None


_RULES: Mapping[ConstraintKind, Callable[[Constraint, FollowedPath], dict[str, bool]]] = {
    "type": _decide_type,
    "multi_entity": _decide_entity,
    "explicit_time": lambda constraint, path: _compare_dates(
        constraint, path, {*filter(None, [_day(constraint.time)])}
    ),
    "implicit_time": _decide_implicit_time,
    "ordinal": _decide_ordinal,
}


MAX_CHAINS = 5_000
"""For a path with more chains, constraints are decided by its ends without the entities on the way."""


MAX_LISTED = 200
"""A topic of MetaQA has 119 executable paths at most; of Freebase with four hops, some 100,000."""


class GraphKnowledge:
    """Implements `methods.deliberation.Knowledge` with a graph.

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> films = [("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Vel", "by", "Edo")]
    >>> knowledge = GraphKnowledge(MemoryGraph(films), hops=2)
    >>> knowledge.list_paths("Oru")
    [('by',), ('by', '~by')]
    >>> knowledge.rank_ends(Candidate("Oru", ("by", "~by")))
    ('Vel',)
    >>> knowledge.chains(Candidate("Oru", ("by", "~by")), 9)
    [('Oru', 'Ana', 'Vel')]
    """

    def __init__(self, graph: GraphStore, convention: Convention = NO_TOPIC, hops: int = HOPS) -> None:
        self.graph, self.convention, self.hops = graph, convention, hops
        self._ranked: dict[Candidate, tuple[str, ...]] = {}
        self._listed: dict[tuple[str, RelationPath], list[RelationPath]] = {}

    def list_paths(self, topic: str, path: RelationPath = ()) -> list[RelationPath]:
        """List the paths that go on from a path (itself, too) with an instance, shortest first, then by name.

        They have up to ``hops`` relations. If these are more than `MAX_LISTED`, only as many whole hops are listed as
        are not, but one at least.
        """
        if (topic, path) not in self._listed:
            start = self.graph.node(topic)
            reached = () if start is None else store.search(self.graph, start, self.hops, path, MAX_LISTED)
            paths = sorted(reached, key=lambda path: (len(path), path))
            if self.convention == "no_revisit":  # the search allows revisits; without them some have no instance
                paths = [path for path in paths if self.chains(Candidate(topic, path), 1)]
            self._listed[topic, path] = [*([path] if path else []), *paths]
        return self._listed[topic, path]

    def rank_ends(self, candidate: Candidate) -> tuple[str, ...]:
        """Rank the ends of a path, those with most instances first, then by name; computed once per path."""
        if candidate not in self._ranked:
            times = self._times(candidate)
            self._ranked[candidate] = tuple(sorted(times, key=lambda name: (-times[name], name)))
        return self._ranked[candidate]

    def _times(self, candidate: Candidate) -> Mapping[str, int]:
        if self.convention == "no_revisit":
            return Counter(chain[-1] for chain in self.chains(candidate, None))
        if (start := self.graph.node(candidate.topic)) is None:
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
        """List the first ``limit`` instances of a path by name (None: all), each as its entities from topic to end."""
        return store.instances(self.graph, candidate.topic, candidate.path, self.convention, limit)

    def relations(self, pool: Sequence[Candidate]) -> list[str]:
        """List the relations of the paths and those that leave their ends, sorted."""
        relations = {relation for candidate in pool for relation in candidate.path}
        ends = {name for candidate in pool for name in self.rank_ends(candidate)}
        nodes = [node for name in ends if (node := self.graph.node(name)) is not None]
        return sorted(relations | set(self.graph.steps(nodes)))

    def decide(self, constraint: Constraint, candidate: Candidate, pool: Sequence[Candidate]) -> dict[str, bool]:
        """Map each end of a path to whether it meets a constraint, without the ends that the graph can't decide."""
        constraint = self._spelt(constraint, pool)
        ends = self.rank_ends(candidate)
        chains = self.chains(candidate, MAX_CHAINS + 1)
        if len(chains) > MAX_CHAINS:
            chains = [(candidate.topic, end) for end in ends]
        rivals = (rival for rival in pool if rival.topic == constraint.entity != candidate.topic)
        other_ends = frozenset(name for rival in rivals for name in self.rank_ends(rival))
        return decide(constraint, FollowedPath(self.graph, candidate, ends, tuple(chains), other_ends))

    def _spelt(self, constraint: Constraint, pool: Sequence[Candidate]) -> Constraint:
        """Return the constraint with its entity in the graph's spelling, if that is a topic but for upper case."""
        entity = constraint.entity
        if not entity or self.graph.node(entity) is not None:
            return constraint
        spellings = {member.topic for member in pool if member.topic.casefold() == entity.casefold()}
        return replace(constraint, entity=spellings.pop()) if len(spellings) == 1 else constraint
