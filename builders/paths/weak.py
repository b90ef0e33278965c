"""Label questions weakly: find the relation paths that a question may mean, by the entities that they lead to.

There are two rules, which see no gold path:

- *shortest* (Deliberation on Priors, equation 1): all shortest relation paths from a topic entity to each answer. Many
  lead to an answer by chance, and a few to most of the graph.
- *best*: the paths of up to three relations with the best execution F1. If the benchmark gives a question's number of
  hops, paths of that length go first; elsewhere the shorter of two tied paths does (a detour over other films often
  ends where one hop does). The corpus decides between paths that still tie (a film's writer may also direct it): a
  path that is best less than a fifth as often as another, over the training questions, counts as chance. The fifth was
  chosen on one half of 3,000 MetaQA questions and measured on the other.

Negative paths are those that a proposer should not name: the paper's perturbations, and harder ones. Deliberation on
Priors, section 3.1: *truncation* removes the last hop, *swap* gives a topic entity another's path, *deletion* removes
its path. The last two need a question with several topic entities; MetaQA has none. So there are three kinds for any
graph: *spurious*, a path of equation 1 with a lower F1 than the best; *flipped*, with one direction turned;
*wrong_relation*, with one relation replaced by another of the graph. None has the best F1.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from safe_stepwise.graphs.graph_store import HOPS, GraphStore, inverse, search_paths
from safe_stepwise.records import KGQuestion, RelationPath
from safe_stepwise.scoring import set_f1

RARE = 0.2
"""A path that is best less often than this share of another tied path is dropped."""


@dataclass(frozen=True, slots=True)
class ScoredPath:
    """A path that leads to an answer, with its execution F1 over answer sets."""

    path: RelationPath
    f1: float
    is_shortest: bool
    """Whether it is among the shortest to some answer (equation 1)."""
    is_best: bool = False
    """Whether it is among the best, before the corpus decides."""


@dataclass(frozen=True, slots=True)
class Explored:
    """The paths from one topic entity of a question."""

    candidates: tuple[ScoredPath, ...]
    executable: frozenset[RelationPath]
    """Every path that leads anywhere, answers or not."""


def explore(graph: GraphStore, topic: str, answers: frozenset[str], hops: int = 0, max_hops: int = HOPS) -> Explored:
    """Search the paths from a topic entity, and sort them, best first; ``hops`` are the question's, 0 if unknown."""
    ends_by_path = search_paths(graph, topic, max_hops)
    nodes = {*graph.nodes(answers)}
    hits = {path: reached for path, ends in ends_by_path.items() if (reached := ends & nodes)}
    distance: dict[int, int] = {}
    for path, reached in hits.items():  # shortest first, as the search goes
        for node in reached:
            distance.setdefault(node, len(path))
    plain = [
        ScoredPath(
            path,
            set_f1(len(reached), len(ends_by_path[path]), len(answers)),
            any(distance[node] == len(path) for node in reached),
        )
        for path, reached in hits.items()
    ]
    return Explored(_mark_best(plain, hops), frozenset(ends_by_path))


def explore_all(graph: GraphStore, question: KGQuestion, max_hops: int) -> dict[str, Explored]:
    """Explore each topic entity of a question by paths of up to ``max_hops`` relations, or the question's own hops."""
    max_hops = max(max_hops, question.hops)
    return {topic: explore(graph, topic, question.answers, question.hops, max_hops) for topic in question.topics}


def _mark_best(candidates: Sequence[ScoredPath], hops: int) -> tuple[ScoredPath, ...]:
    """Sort the candidates, best first, and mark those that tie for the best.

    For MetaQA's 1-hop questions the best paths of *all* lengths have precision .56, those of one hop .87.
    """
    candidates_of_hops = [c for c in candidates if len(c.path) == hops] or candidates
    top = max((c.f1 for c in candidates_of_hops), default=0.0)
    best = [c for c in candidates_of_hops if c.f1 == top]
    min_length = min((len(c.path) for c in best), default=0)
    tied = {c.path for c in best if len(c.path) == min_length}
    marked = [replace(c, is_best=c.path in tied) for c in candidates]
    return tuple(sorted(marked, key=lambda c: (not c.is_best, -c.f1, len(c.path), c.path)))


def popularity(ties: Iterable[tuple[Sequence[RelationPath], int]]) -> dict[RelationPath, float]:
    """Count how often each path is best, from tied paths and their questions; each question shares one vote."""
    votes: dict[RelationPath, float] = defaultdict(float)
    for tied, questions in ties:
        for path in tied:
            votes[path] += questions / len(tied)
    return dict(votes)


def drop_rare(tied: Sequence[RelationPath], popular: Mapping[RelationPath, float]) -> list[RelationPath]:
    """Drop tied paths that are `RARE` compared with another, and sort the others, most popular first."""
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


TRUNCATION, SWAP, DELETION = PAPER = ("truncation", "swap", "deletion")
SPURIOUS, FLIPPED, WRONG_RELATION = HARD = ("spurious", "flipped", "wrong_relation")
POSITIVE = "positive"
KINDS = (POSITIVE, *PAPER, *HARD)
NEGATIVES = 2
"""Default number of negatives of each hard kind for a topic entity: near the paper's 1 to 3."""


@dataclass(frozen=True, slots=True)
class Negative:
    """A wrong path, its kind, and the best path (``source``) that it was made from."""

    path: RelationPath
    kind: str
    source: RelationPath


def negatives(topic: str, explored: Mapping[str, Explored], key: str, limit: int = NEGATIVES) -> list[Negative]:
    """Make the negatives of a topic entity's best paths; ``key`` decides which ``limit`` of a hard kind are drawn."""
    topic_paths = explored[topic]
    tied = [c.path for c in topic_paths.candidates if c.is_best]
    right = {c.path for c in topic_paths.candidates if c.f1 == topic_paths.candidates[0].f1} | set(tied)
    pairs: set[tuple[RelationPath, RelationPath]] = set()
    results: list[Negative] = []
    for path in tied:
        for kind in (*PAPER, *HARD):
            wrong = dict.fromkeys(_perturb(kind, path, topic, explored))
            new = [candidate for candidate in wrong if candidate not in right and (path, candidate) not in pairs]
            for candidate in new if kind in PAPER else sample_paths(new, key, limit):
                pairs.add((path, candidate))
                results.append(Negative(candidate, kind, path))
    return results


def sample_paths(paths: Sequence[RelationPath], key: str, limit: int) -> list[RelationPath]:
    """Draw ``limit`` paths; the draw depends only on ``key`` and each path."""
    ranked = ((hashlib.blake2b("\0".join((key, *path)).encode(), digest_size=8).digest(), path) for path in paths)
    return [path for _, path in sorted(ranked)[:limit]]


def _perturb(kind: str, path: RelationPath, topic: str, explored: Mapping[str, Explored]) -> Iterator[RelationPath]:
    topic_paths = explored[topic]
    other_topics = [e for name, e in explored.items() if name != topic and e.candidates]
    if kind == TRUNCATION and len(path) > 1:
        yield path[:-1]
    elif kind == SWAP:
        yield from (c.path for rival in other_topics for c in rival.candidates if c.is_best)
    elif kind == DELETION and other_topics:
        yield ()
    elif kind == SPURIOUS:
        yield from (c.path for c in topic_paths.candidates if c.is_shortest)
    elif kind == FLIPPED:
        for position, relation in enumerate(path):
            yield (*path[:position], inverse(relation), *path[position + 1 :])
    elif kind == WRONG_RELATION:
        for near in topic_paths.executable - {c.path for c in topic_paths.candidates if c.is_shortest}:
            changed = [(new, old) for new, old in zip(near, path, strict=False) if new != old]
            # The change is in one relation, and not only in its direction.
            if len(near) == len(path) and len(changed) == 1 and changed[0][0] != inverse(changed[0][1]):
                yield near
