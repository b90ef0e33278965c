"""Paths that a proposer should not name: the paper's perturbations, and harder ones.

Deliberation on Priors, section 3.1: *truncation* takes the last hop away, *swap* gives a topic entity the path of
another, *deletion* takes its path away altogether. The last two need a question of several topic entities; MetaQA has
none. Hence, for any graph: *spurious*, a path of equation 1 with a lower F1 than the best; *flipped*, one direction
turned; *wrong_relation*, one relation replaced by another that the graph has there. None has the F1 of the best paths.
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
MOST = 2
"""Of each hard kind that a question's topic entity gets, if not said: near the paper's 1 to 3."""


@dataclass(frozen=True, slots=True)
class Negative:
    """A wrong path, its kind, and the path that it was made of (no wrong one of other topics)."""

    path: RelationPath
    kind: str
    of: RelationPath


def negatives(topic: str, explored: Mapping[str, Explored], key: str, most: int = MOST) -> list[Negative]:
    """The negatives of a topic entity's best paths, each path once, those of the paper first.

    ``explored`` has all topic entities of the question; ``key`` decides which ``most`` of a hard
    kind are drawn where a best path has more.
    """
    own = explored[topic]
    tied = [c.path for c in own.candidates if c.tied]
    right = {c.path for c in own.candidates if c.f1 == own.candidates[0].f1} | set(tied)
    seen: set[tuple[RelationPath, RelationPath]] = set()
    found: list[Negative] = []
    for path in tied:
        for kind in (*PAPER, *HARD):
            made = dict.fromkeys(_made(kind, path, topic, explored))
            new = [one for one in made if one not in right and (path, one) not in seen]
            for one in new if kind in PAPER else drawn(new, key, most):
                seen.add((path, one))
                found.append(Negative(one, kind, path))
    return found


def drawn(paths: Sequence[RelationPath], key: str, most: int) -> list[RelationPath]:
    """``most`` of some paths, by a draw that depends on ``key`` and each path alone."""
    ranked = ((hashlib.blake2b("\0".join((key, *path)).encode(), digest_size=8).digest(), path) for path in paths)
    return [path for _, path in sorted(ranked)[:most]]


def _made(kind: str, path: RelationPath, topic: str, explored: Mapping[str, Explored]) -> Iterator[RelationPath]:
    own = explored[topic]
    others = [e for name, e in explored.items() if name != topic and e.candidates]
    if kind == TRUNCATION and len(path) > 1:
        yield path[:-1]
    elif kind == SWAP:
        yield from (c.path for other in others for c in other.candidates if c.tied)
    elif kind == DELETION and others:
        yield ()
    elif kind == SPURIOUS:
        yield from (c.path for c in own.candidates if c.shortest)
    elif kind == FLIPPED:
        for at, relation in enumerate(path):
            yield (*path[:at], inverse(relation), *path[at + 1 :])
    elif kind == WRONG_RELATION:
        shortest = {c.path for c in own.candidates if c.shortest}
        for near in own.executable - shortest:
            changed = [(new, old) for new, old in zip(near, path, strict=False) if new != old]
            # In one relation, and not in its direction alone.
            if len(near) == len(path) and len(changed) == 1 and changed[0][0] != inverse(changed[0][1]):
                yield near
