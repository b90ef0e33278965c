"""Label questions weakly: find the relation paths that a question may mean, by the entities that they lead to.

There are two rules, neither of which sees a gold path:

- *shortest* (Deliberation on Priors, equation 1): all shortest relation paths from a topic entity to each answer. Many
  lead to an answer by chance, and a few to most of the graph.
- *best*: the paths of up to three relations with the best execution F1. If the benchmark gives a question's number of
  hops, paths of that length go first; elsewhere the shorter of two tied paths does (a detour over other films often
  ends where one hop does). The corpus decides between paths that still tie (a film's writer may also direct it): a
  path that is best less than a fifth as often as another, over the training questions, counts as chance. The fifth was
  chosen on one half of 3,000 MetaQA questions and measured on the other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from safe_stepwise.graphs.store import HOPS, GraphStore, search
from safe_stepwise.records import KGQuestion, RelationPath
from safe_stepwise.scoring import set_f1

RARE = 0.2
"""A path that is best less often than this share of another tied path is dropped."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path that leads to an answer, with its execution F1 over answer sets."""

    path: RelationPath
    f1: float
    shortest: bool
    """Whether it is among the shortest to some answer (equation 1)."""
    tied: bool = False
    """Whether it is among the best, before the corpus decides."""


@dataclass(frozen=True, slots=True)
class Explored:
    """The paths from one topic entity of a question."""

    candidates: tuple[Candidate, ...]
    executable: frozenset[RelationPath]
    """Every path that leads anywhere, answers or not."""


def explore(graph: GraphStore, topic: str, answers: frozenset[str], hops: int = 0, max_hops: int = HOPS) -> Explored:
    """Search the paths from a topic entity, and sort them, best first; ``hops`` are the question's, 0 if unknown.

    >>> from safe_stepwise.graphs.store import MemoryGraph
    >>> graph = MemoryGraph([("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Oru", "in", "1901")])
    >>> found = explore(graph, "Oru", frozenset(["Ana"])).candidates
    >>> [(c.path, c.f1, c.tied) for c in found]
    [(('by',), 1.0, True), (('by', '~by', 'by'), 1.0, False)]
    """
    if (start := graph.node(topic)) is None:
        return Explored((), frozenset())
    ends_by_path = search(graph, start, max_hops)
    nodes = {node for name in answers if (node := graph.node(name)) is not None}
    hits = {path: reached for path, ends in ends_by_path.items() if (reached := ends & nodes)}
    distance: dict[int, int] = {}
    for path, reached in hits.items():  # shortest first, as the search goes
        for node in reached:
            distance.setdefault(node, len(path))
    plain = [
        Candidate(
            path,
            set_f1(len(reached), len(ends_by_path[path]), len(answers)),
            any(distance[node] == len(path) for node in reached),
        )
        for path, reached in hits.items()
    ]
    return Explored(_with_ties(plain, hops), frozenset(ends_by_path))


def explore_all(graph: GraphStore, question: KGQuestion, max_hops: int) -> dict[str, Explored]:
    """Explore each topic entity of a question by paths of up to ``max_hops`` relations, or the question's own hops."""
    max_hops = max(max_hops, question.hops)
    return {topic: explore(graph, topic, question.answers, question.hops, max_hops) for topic in question.topics}


def _with_ties(candidates: Sequence[Candidate], hops: int) -> tuple[Candidate, ...]:
    """Sort the candidates, best first, and mark those that tie for the best.

    For MetaQA's 1-hop questions the best paths of *all* lengths have precision .56, those of one hop .87.
    """
    candidates_of_hops = [c for c in candidates if len(c.path) == hops] or candidates
    top = max((c.f1 for c in candidates_of_hops), default=0.0)
    best = [c for c in candidates_of_hops if c.f1 == top]
    min_length = min((len(c.path) for c in best), default=0)
    tied = {c.path for c in best if len(c.path) == min_length}
    marked = [Candidate(c.path, c.f1, c.shortest, c.path in tied) for c in candidates]
    return tuple(sorted(marked, key=lambda c: (not c.tied, -c.f1, len(c.path), c.path)))


def popularity(ties: Iterable[tuple[Sequence[RelationPath], int]]) -> dict[RelationPath, float]:
    """Count how often each path is best, from tied paths and their questions; each question shares one vote."""
    votes: dict[RelationPath, float] = defaultdict(float)
    for tied, questions in ties:
        for path in tied:
            votes[path] += questions / len(tied)
    return dict(votes)


def drop_rare(tied: Sequence[RelationPath], popular: Mapping[RelationPath, float]) -> list[RelationPath]:
    """Drop tied paths that are `RARE` compared with another, and sort the others, most popular first.

    >>> drop_rare([("by",), ("in", "by")], {("by",): 30, ("in", "by"): 2})
    [('by',)]
    """
    votes = {path: popular.get(path, 0.0) for path in tied}
    max_votes = max(votes.values(), default=0.0)
    popular_paths = [path for path in tied if votes[path] >= RARE * max_votes]
    return sorted(popular_paths, key=lambda path: (-votes[path], path))


class Templates:
    """Derives the gold path of each template: the path of its hops that yields its questions' answers best.

    Between tied paths the questions of other templates decide. On MetaQA they agree with the official question types
    for 2,999 of 3,000 questions. They are for measuring only: no weak label uses them.
    """

    def __init__(self) -> None:
        self._scores: dict[str, dict[RelationPath, float]] = {}
        self.sizes: Counter[str] = Counter()

    def add(self, template: str, hops: int, scored_paths: Iterable[tuple[RelationPath, float]]) -> None:
        """Count one question's paths with their F1; a question without a number of hops has no gold path."""
        self.sizes[template] += 1
        scores = self._scores.setdefault(template, defaultdict(float))
        for path, f1 in scored_paths:
            if len(path) == hops:
                scores[path] += f1

    def gold(self) -> dict[str, RelationPath]:
        top, support = self._tied()
        return {name: max(paths, key=lambda p: (support[p], p)) for name, paths in top.items()}

    def sure(self) -> dict[str, RelationPath]:
        """Return the gold path of each template whose other tied paths are `RARE`.

        On every fifth of 3,000 MetaQA questions none of these is wrong, while 4% of all gold paths are.
        """
        top, support = self._tied()
        survivors = {name: drop_rare(paths, support) for name, paths in top.items()}
        return {name: path for name, (path, *rivals) in survivors.items() if not rivals}

    def _tied(self) -> tuple[dict[str, list[RelationPath]], dict[RelationPath, float]]:
        """Return the best paths of each template, and the number of questions of each path."""
        top: dict[str, list[RelationPath]] = {}
        for name, scores in self._scores.items():
            max_score = max(scores.values(), default=0.0)
            if scores:
                top[name] = [path for path, score in scores.items() if score > max_score - 1e-9]
        return top, popularity((paths, self.sizes[name]) for name, paths in top.items())
