"""Answers what Deliberation on Priors asks about a graph: the paths from a topic, their ends, and constraints on ends.

`GraphKnowledge` does so for a graph and a maximum number of hops. The *ends* of a path are the entities that it leads
to; a *chain* is one instance of it, as its entities from topic to end.

`decide` says whether the ends of a path meet a question's constraint (Deliberation on Priors, Table 1): an end meets
it, fails it, or is left out, since the graph does not show it. A missing fact proves nothing, unless the graph has
such a fact for the entity: a film of another year than the question's fails, a film without a year does not.

- *type*: an end meets it if the relation leads to the end from anywhere. No end fails it: a director may have written
  a film that the graph does not have.
- *multi_entity*: if the graph has the relation, by it, in either direction. Otherwise an end meets it if a candidate
  path from the constraint's entity (another topic) leads to it; if one leads to any end, the other ends fail.
- *explicit_time*, *implicit_time*: by the dates of the end: those of the relation; else those of any relation, if
  all that give dates agree; else its name if that is a date and begins no fact. An end without dates takes those of
  the last entity before it on its chain that has some. An end with dates before and after the time does not fail. It
  meets the time if these are the first and the last day of a term, such as one of office.
- *ordinal*: first and last by date; most and least by number, or by the count of what the relation leads to.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeVar

from safe_stepwise.graphs import graph_store
from safe_stepwise.graphs.graph_store import HOPS, GraphStore
from safe_stepwise.language.text import as_date
from safe_stepwise.records import Candidate, Comparison, Constraint, RelationPath

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

    def follow(self, name: str, relation: str) -> list[str]:
        """List the names of the entities that a relation leads to from an entity."""
        return self.graph.names(self.graph.follow(self.graph.nodes([name]), relation))

    def graph_relation(self, relation: str) -> str:
        """Return the relation if the graph has it, else ""."""
        return relation if relation in self.graph.relations else ""


def decide(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    """Map each end of a path to whether it meets a constraint, without those that the graph can't decide.

    >>> from safe_stepwise.graphs.graph_store import GraphStore
    >>> graph = GraphStore([("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Vel", "year", "1998")])
    >>> candidate = Candidate("Ana", ("~by",))
    >>> path = FollowedPath(graph, candidate, ("Oru", "Vel"), (("Ana", "Oru"), ("Ana", "Vel")))
    >>> decide(Constraint("explicit_time", "After 1999.", time="1999", comparison="after"), path)
    {'Vel': False}
    """
    verdicts = _RULES[constraint.kind](constraint, path) if constraint.kind in _RULES else {}  # an induced kind
    return {end: verdicts[end] for end in path.ends if end in verdicts}


def _decide_type(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    backwards = graph_store.inverse(constraint.relation)
    return {end: True for end in path.ends if path.follow(end, backwards)}


def _decide_entity(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    """Decide by the constraint's relation to its entity, or by the candidates from that entity."""
    entity = constraint.entity
    if entity not in path.graph or entity == path.candidate.topic:
        return {}
    for towards in (constraint.relation, graph_store.inverse(constraint.relation)):
        if linked := path.follow(entity, graph_store.inverse(towards)):
            return {end: end in linked for end in path.ends if path.follow(end, towards)}
    met = path.other_ends & {*path.ends}
    return {end: end in met for end in path.ends} if met else {}


def _decide_implicit_time(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    """Decide by the dates of the constraint's entity, if only one of its relations gives some."""
    days_by_relation = _find_days(path, constraint.entity, path.graph_relation(constraint.relation))
    target = set().union(*days_by_relation.values()) if len(days_by_relation) == 1 else set()
    return _compare_dates(constraint, path, target)


def _compare_dates(constraint: Constraint, path: FollowedPath, target: set[Day]) -> dict[str, bool]:
    """Compare the dates of the ends with ``target``; several target dates mean the time from the first to the last."""
    compare = _TIME_COMPARISONS.get(constraint.comparison or "in")
    if not target or compare is None:
        return {}
    relation = path.graph_relation(constraint.relation)

    def verdicts(name: str) -> frozenset[bool] | None:
        days_by_relation = _find_days(path, name, relation)
        outcomes = frozenset(any(compare(day, target) for day in days) for days in days_by_relation.values())
        if outcomes != _ALL_FAILED or compare is not _is_in:
            return outcomes or None
        # Dates both before and after the time do not show that the entity lies outside of it.
        all_days = _find_days(path, name, "")
        days = set().union(*all_days.values())
        surrounds = any(_is_before(day, target) for day in days) and any(_is_after(day, target) for day in days)
        return (_ALL_MET if _is_in_term(all_days, target) else frozenset()) if surrounds else outcomes

    # An end meets the constraint if one of its chains does, and fails it if all of them do.
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


def _find_days(path: FollowedPath, name: str, relation: str) -> dict[str, set[Day]]:
    """Return an entity's dates by relation, else its name if a date; backwards only by ``relation`` itself."""
    steps = path.graph.steps(path.graph.nodes([name]))
    relations = [relation] if relation else [step for step in steps if not step.startswith(graph_store.BACKWARDS)]
    days = {step: {day for end in path.follow(name, step) if (day := _read_day(end))} for step in relations}
    is_value = not relation and all(step.startswith(graph_store.BACKWARDS) for step in steps)
    name_day = _read_day(name) if is_value else None
    return {step: step_days for step, step_days in days.items() if step_days} or ({"": {name_day}} if name_day else {})


def _read_day(text: str) -> Day | None:
    """Read a date in words or in Freebase's form (``1998-05-03``, perhaps with a time of day); None for other text."""
    if iso := _ISO.fullmatch(text):
        year, month, day = (int(number or 0) for number in iso.groups())
        return (year, month, day) if year and month <= 12 and day <= 31 else None
    date = as_date(text) if text else None
    return (date.year, date.month, date.day) if date and date.year else None


def _is_in(day: Value, target: Collection[Value]) -> bool:
    """Whether a day lies within a time, as precisely as the less precise of the two."""
    earliest, latest = min(target), max(target)
    if earliest == latest:
        return all(a == b or not a or not b for a, b in zip(day, earliest, strict=True))
    return earliest <= day <= latest or _is_in(day, {earliest}) or _is_in(day, {latest})


_LAST_DAYS = {"from": "to", "start_date": "end_date"}
"""Maps the relation of a term's first day to that of its last day; Freebase puts the same prefix before both."""


def _is_in_term(days_by_relation: Mapping[str, set[Day]], target: set[Day]) -> bool:
    """Whether a time lies between an entity's only first and only last day."""
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


_TIME_COMPARISONS: Mapping[Comparison, Callable[[Day, set[Day]], bool]] = {
    "in": _is_in,
    "before": _is_before,
    "after": _is_after,
}


def _decide_ordinal(constraint: Constraint, path: FollowedPath) -> dict[str, bool]:
    """Decide which ends have the extreme value; by the constraint's relation, an end that another beats fails."""
    if not constraint.comparison or constraint.comparison in _TIME_COMPARISONS:
        return {}
    extreme = min if constraint.comparison in ("first", "least") else max
    relation = path.graph_relation(constraint.relation)
    read = _read_day if constraint.comparison in ("first", "last") else _read_number
    values = _find_values(path, relation, read, extreme)
    if not values and relation and read is _read_number:
        counts = {end: len(path.follow(end, relation)) for end in path.ends}
        values = {end: (float(count),) for end, count in counts.items() if count}
    is_complete = len(values) == len(path.ends)
    if not values or not (is_complete or relation):
        return {}
    best = extreme(values.values())
    # A year may be before or after a day in it.
    rivals = [end for end, value in values.items() if value == best or (read is _read_day and _is_in(value, {best}))]
    is_clear = is_complete and all(values[end] == best for end in rivals)
    return {end: end in rivals for end in values if is_clear or end not in rivals}


def _find_values(
    path: FollowedPath, relation: str, read: Callable[[str], Value | None], extreme: Callable[[Iterable[Value]], Value]
) -> dict[str, Value]:
    """Return the value by which each end is ordered: the extreme of the values on its chains."""

    def extreme_of(name: str) -> Value | None:
        texts = path.follow(name, relation) if relation else [name]
        values = [value for value in map(read, texts) if value is not None]
        return extreme(values) if values else None

    values_by_end = {end: [v for v in texts if v is not None] for end, texts in _values_by_end(path, extreme_of)}
    return {end: extreme(texts) for end, texts in values_by_end.items() if texts}


def _read_number(text: str) -> Value | None:
    """Read a number that is the whole text; None for a text such as "12 Angry Men"."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return (value,) if isfinite(value) else None


_RULES: Mapping[str, Callable[[Constraint, FollowedPath], dict[str, bool]]] = {
    "type": _decide_type,
    "multi_entity": _decide_entity,
    "explicit_time": lambda constraint, path: _compare_dates(
        constraint, path, {*filter(None, [_read_day(constraint.time)])}
    ),
    "implicit_time": _decide_implicit_time,
    "ordinal": _decide_ordinal,
}


MAX_CHAINS = 5_000
"""For a path with more chains, constraints are decided by its ends without the entities on the way."""
MAX_LISTED = 200
"""Number of paths after which no further hop is listed: in MetaQA a topic has up to 119, in Freebase some 100,000."""


class GraphKnowledge:
    """Implements `methods.deliberation.Knowledge` with a graph.

    >>> from safe_stepwise.graphs.graph_store import GraphStore
    >>> films = [("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Vel", "by", "Edo")]
    >>> knowledge = GraphKnowledge(GraphStore(films), hops=2)
    >>> knowledge.list_paths("Oru")
    [('by',), ('by', '~by')]
    >>> knowledge.rank_ends(Candidate("Oru", ("by", "~by")))
    ('Vel',)
    """

    def __init__(self, graph: GraphStore, hops: int = HOPS) -> None:
        self.graph, self.hops = graph, hops
        self._ranked: dict[Candidate, tuple[str, ...]] = {}
        self._listed: dict[tuple[str, RelationPath], list[RelationPath]] = {}

    def list_paths(self, topic: str, path: RelationPath = ()) -> list[RelationPath]:
        """List a path and those that continue it and have an instance, shortest first, then by name.

        They have up to ``hops`` relations. A further hop is left out as a whole if it would exceed `MAX_LISTED` paths;
        the first is always listed.
        """
        if (topic, path) not in self._listed:
            reached = graph_store.search_paths(self.graph, topic, self.hops, path, MAX_LISTED)
            paths = sorted(reached, key=lambda path: (len(path), path))
            self._listed[topic, path] = [*([path] if path else []), *paths]
        return self._listed[topic, path]

    def rank_ends(self, candidate: Candidate) -> tuple[str, ...]:
        """Rank the ends of a path, those with most instances first, then by name; computed once per path."""
        if candidate not in self._ranked:
            counts = self._count_instances(candidate)
            self._ranked[candidate] = tuple(sorted(counts, key=lambda name: (-counts[name], name)))
        return self._ranked[candidate]

    def _count_instances(self, candidate: Candidate) -> Mapping[str, int]:
        """Count the instances of a path by the end that they lead to."""
        start = {*self.graph.nodes([candidate.topic])}
        counts = dict.fromkeys(start, 1)
        for relation in candidate.path:
            onwards: dict[int, int] = {}
            for node, count in counts.items():
                for end in self.graph.follow([node], relation):
                    if end not in start:
                        onwards[end] = onwards.get(end, 0) + count
            counts = onwards
        return dict(zip(self.graph.names(counts), counts.values(), strict=True))

    def chains(self, candidate: Candidate, limit: int) -> list[tuple[str, ...]]:
        """List the first ``limit`` instances of a path by name, each as its entities from topic to end."""
        return list(graph_store.instances(self.graph, candidate.topic, candidate.path, limit))

    def relations(self, pool: Sequence[Candidate]) -> list[str]:
        """List the relations in the candidates' paths and those that lead on from their ends, sorted."""
        relations = {relation for candidate in pool for relation in candidate.path}
        ends = {name for candidate in pool for name in self.rank_ends(candidate)}
        return sorted(relations | set(self.graph.steps(self.graph.nodes(ends))))

    def decide(self, constraint: Constraint, candidate: Candidate, pool: Sequence[Candidate]) -> dict[str, bool]:
        """Map each end of a path to whether it meets a constraint, without the ends that the graph can't decide."""
        constraint = self._adopt_spelling(constraint, pool)
        ends = self.rank_ends(candidate)
        chains = self.chains(candidate, MAX_CHAINS + 1)
        if len(chains) > MAX_CHAINS:
            chains = [(candidate.topic, end) for end in ends]
        rivals = (rival for rival in pool if rival.topic == constraint.entity != candidate.topic)
        other_ends = frozenset(name for rival in rivals for name in self.rank_ends(rival))
        return decide(constraint, FollowedPath(self.graph, candidate, ends, tuple(chains), other_ends))

    def _adopt_spelling(self, constraint: Constraint, pool: Sequence[Candidate]) -> Constraint:
        """Return the constraint with its entity in the graph's spelling, if a topic differs from it only in case."""
        entity = constraint.entity
        if not entity or entity in self.graph:
            return constraint
        spellings = {member.topic for member in pool if member.topic.casefold() == entity.casefold()}
        return replace(constraint, entity=spellings.pop()) if len(spellings) == 1 else constraint
