"""Makes negative paths, which a proposer should not name: the paper's perturbations, and harder ones.

Deliberation on Priors, section 3.1: *truncation* removes the last hop, *swap* gives a topic entity another's path,
*deletion* removes its path. The last two need a question with several topic entities; MetaQA has none. So there are
three kinds for any graph: *spurious*, a path of equation 1 with a lower F1 than the best; *flipped*, with one
direction turned; *wrong_relation*, with one relation replaced by another of the graph. None has the best F1.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from builders.paths.weak import Explored
from safe_stepwise.graphs.store import inverse
from safe_stepwise.records import RelationPath

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
    tied = [c.path for c in topic_paths.candidates if c.tied]
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
        yield from (c.path for rival in other_topics for c in rival.candidates if c.tied)
    elif kind == DELETION and other_topics:
        yield ()
    elif kind == SPURIOUS:
        yield from (c.path for c in topic_paths.candidates if c.shortest)
    elif kind == FLIPPED:
        for position, relation in enumerate(path):
            yield (*path[:position], inverse(relation), *path[position + 1 :])
    elif kind == WRONG_RELATION:
        for near in topic_paths.executable - {c.path for c in topic_paths.candidates if c.shortest}:
            changed = [(new, old) for new, old in zip(near, path, strict=False) if new != old]
            # The change is in one relation, and not only in its direction.
            if len(near) == len(path) and len(changed) == 1 and changed[0][0] != inverse(changed[0][1]):
                yield near
