"""What a loop over relation paths asks of a graph: paths, what they lead to, constraints.

It knows a graph by a convention (`relation_paths`) and so many hops, and nothing of models.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from safe_stepwise.graphs.constraints import Place, decide
from safe_stepwise.graphs.relation_paths import HOPS, NO_TOPIC, Convention, instances, paths_from
from safe_stepwise.graphs.store import GraphStore
from safe_stepwise.records import Candidate, Constraint, RelationPath

MOST_CHAINS = 5_000
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
        found = paths_from(self.graph, topic, self.hops)
        if self.convention != "no_revisit":
            return found
        return [path for path in found if self.chains(Candidate(topic, path), 1)]

    def ranked(self, candidate: Candidate) -> tuple[str, ...]:
        """What a path leads to, by the number of its instantiations, then by name; found once."""
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

    def chains(self, candidate: Candidate, most: int | None) -> list[tuple[str, ...]]:
        """Its instantiations entity by entity, the first ``most`` of them by name."""
        return instances(self.graph, candidate.topic, candidate.path, self.convention, most)

    def relations(self, pool: Sequence[Candidate]) -> list[str]:
        """The relations of some paths, and those that lead on from what they lead to; sorted."""
        found = {relation for candidate in pool for relation in candidate.path}
        ends = {name for candidate in pool for name in self.ranked(candidate)}
        nodes = [node for name in ends if (node := self.graph.node(name)) is not None]
        return sorted(found | set(self.graph.steps(nodes)))

    def decided(self, constraint: Constraint, candidate: Candidate, pool: Sequence[Candidate]) -> dict[str, bool]:
        """Whether what a path leads to meets a constraint; without what the graph can't tell."""
        constraint = self._spelt(constraint, pool)
        ends = self.ranked(candidate)
        chains = self.chains(candidate, MOST_CHAINS + 1)
        if len(chains) > MOST_CHAINS:
            chains = [(candidate.topic, end) for end in ends]
        others = {
            name
            for other in pool
            if other.topic == constraint.entity != candidate.topic
            for name in self.ranked(other)
        }
        place = Place(self.graph, candidate, ends, tuple(chains), frozenset(others))
        return decide(constraint, place)

    def _spelt(self, constraint: Constraint, pool: Sequence[Candidate]) -> Constraint:
        """The constraint with its entity as the graph has it, if that is a topic but for case."""
        named = constraint.entity
        if not named or self.graph.node(named) is not None:
            return constraint
        meant = {one.topic for one in pool if one.topic.casefold() == named.casefold()}
        return replace(constraint, entity=meant.pop()) if len(meant) == 1 else constraint
