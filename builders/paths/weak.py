"""Weak labels: which relation paths may have been meant, by what they lead to.

Two rules of supervision, neither of which sees a gold path:

- *shortest* (Deliberation on Priors, equation 1): all shortest relation paths from a topic entity
  to each answer. Many lead to an answer by chance, and a few to all the rest of the graph.
- *best*: of all paths up to three relations those of the best execution F1. Where the benchmark
  says how many hops a question has, paths of as many go before all others; where it does not, the
  shorter one of two that tie does (a detour by way of other films often ends where one hop does).
  Of those that still tie (who wrote a film directed it, too) the corpus decides: one that is best
  less than a fifth as often as another, of the questions to train on, is taken for chance. That
  fifth was found on one half of 3,000 MetaQA questions and measured on the other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from safe_stepwise.graphs.store import HOPS, GraphStore, search
from safe_stepwise.records import KGQuestion, RelationPath
from safe_stepwise.scoring import set_f1

RARE = 0.2
"""A path that is best so much less often than another of the best is dropped."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path that leads to an answer: execution F1 over answer sets, and how it was found."""

    path: RelationPath
    f1: float
    shortest: bool
    """Whether it is among the shortest to some answer (equation 1)."""
    tied: bool = False
    """Whether it is among the best, before the corpus is asked."""


@dataclass(frozen=True, slots=True)
class Explored:
    """All that one topic entity of a question leads to."""

    candidates: tuple[Candidate, ...]
    executable: frozenset[RelationPath]
    """Every path that leads anywhere, answers or not."""


def explore(graph: GraphStore, topic: str, answers: frozenset[str], hops: int = 0, most: int = HOPS) -> Explored:
    """The candidates of a topic entity, best first, of paths up to ``most`` relations.

    ``hops`` is the question's own number, 0 where it is unknown. Answers that the graph lacks count as not found.

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> graph = MemoryGraph([("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Oru", "in", "1901")])
    >>> found = explore(graph, "Oru", frozenset(["Ana"])).candidates
    >>> [(c.path, c.f1, c.tied) for c in found]
    [(('by',), 1.0, True), (('by', '~by', 'by'), 1.0, False)]
    """
    start = graph.node(topic)
    if start is None:
        return Explored((), frozenset())
    found = search(graph, start, most)
    nodes = {node for name in answers if (node := graph.node(name)) is not None}
    hits = {path: there for path, ends in found.items() if (there := ends & nodes)}
    distance: dict[int, int] = {}
    for path, there in hits.items():  # shortest first, as the search goes
        for node in there:
            distance.setdefault(node, len(path))
    plain = [
        Candidate(
            path,
            set_f1(len(there), len(found[path]), len(answers)),
            any(distance[node] == len(path) for node in there),
        )
        for path, there in hits.items()
    ]
    return Explored(_with_ties(plain, hops), frozenset(found))


def explore_all(graph: GraphStore, question: KGQuestion, most: int) -> dict[str, Explored]:
    """The topic entities of a question as `explore` finds them, of paths up to ``most`` relations, or its own hops."""
    most = max(most, question.hops)
    return {topic: explore(graph, topic, question.answers, question.hops, most) for topic in question.topics}


def _with_ties(candidates: Sequence[Candidate], hops: int) -> tuple[Candidate, ...]:
    """The candidates, best first, with those that tie for the best marked.

    Of MetaQA's 1-hop questions the best of *all* lengths have precision .56, of their own .87.
    """
    own = [c for c in candidates if len(c.path) == hops] or candidates
    top = max((c.f1 for c in own), default=0.0)
    best = [c for c in own if c.f1 == top]
    least = min((len(c.path) for c in best), default=0)
    tied = {c.path for c in best if len(c.path) == least}
    marked = [Candidate(c.path, c.f1, c.shortest, c.path in tied) for c in candidates]
    return tuple(sorted(marked, key=lambda c: (not c.tied, -c.f1, len(c.path), c.path)))


def popularity(ties: Iterable[tuple[Sequence[RelationPath], int]]) -> dict[RelationPath, float]:
    """How often each path is best, of paths that tie and the number of questions of which they do.

    A question shares its one vote among them.
    """
    found: dict[RelationPath, float] = defaultdict(float)
    for tied, questions in ties:
        for path in tied:
            found[path] += questions / len(tied)
    return dict(found)


def settled(tied: Sequence[RelationPath], popular: Mapping[RelationPath, float]) -> list[RelationPath]:
    """Of the paths that tie those that are not `RARE` beside another, most popular first.

    >>> settled([("by",), ("in", "by")], {("by",): 30, ("in", "by"): 2})
    [('by',)]
    """
    votes = {path: popular.get(path, 0.0) for path in tied}
    most = max(votes.values(), default=0.0)
    kept = [path for path in tied if votes[path] >= RARE * most]
    return sorted(kept, key=lambda path: (-votes[path], path))


class Templates:
    """Gold paths, derived: of each template the path that yields its questions' answers best.

    Of a template's questions (the same words around the topic) only paths of their own number of hops count; of those
    that tie, the one that more questions of other templates have. On MetaQA they agree with the official types of
    question on 2,999 of 3,000. For measuring alone: no weak label looks at them.
    """

    def __init__(self) -> None:
        self._scores: dict[str, dict[RelationPath, float]] = {}
        self.sizes: Counter[str] = Counter()

    def add(self, template: str, hops: int, found: Iterable[tuple[RelationPath, float]]) -> None:
        """Count one question's paths with their F1; one without hops has no gold path."""
        self.sizes[template] += 1
        scores = self._scores.setdefault(template, defaultdict(float))
        for path, f1 in found:
            if len(path) == hops:
                scores[path] += f1

    def gold(self) -> dict[str, RelationPath]:
        """The gold path of each template that has one."""
        top, support = self._tied()
        return {name: max(paths, key=lambda p: (support[p], p)) for name, paths in top.items()}

    def sure(self) -> dict[str, RelationPath]:
        """The same of templates of which all other paths that tie are `RARE` beside it.

        On every fifth of 3,000 MetaQA questions none of these is wrong, and 4% of all are.
        """
        top, support = self._tied()
        kept = {name: settled(paths, support) for name, paths in top.items()}
        return {name: path for name, (path, *others) in kept.items() if not others}

    def _tied(self) -> tuple[dict[str, list[RelationPath]], dict[RelationPath, float]]:
        """By template the paths that yield its answers best, and the questions that each has."""
        top: dict[str, list[RelationPath]] = {}
        for name, scores in self._scores.items():
            most = max(scores.values(), default=0.0)
            if scores:
                top[name] = [path for path, score in scores.items() if score > most - 1e-9]
        return top, popularity((paths, self.sizes[name]) for name, paths in top.items())
