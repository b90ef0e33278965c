"""Drafts of corrupted paths, a kind each, in the order of a draw; `corruptions` checks them.

A draft is a path and the place (from 1) of what is wrong in it: the false triple, the first that
does not follow, the first of another path that is not the question's, the hop that is gone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from builders.paths.asked import Asked, Path
from builders.paths.meanings import strangeness
from builders.paths.world import Side, World
from safe_stepwise.graphs.told import end_key, first_lost
from safe_stepwise.records import Triple
from safe_stepwise.store.names import Corruption

Draft = tuple[Path, int]
TRIES = 20
"""Drafts of a kind that are looked at for one question."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What drafts are made from: the question, its benchmark's world, the paths of others."""

    asked: Asked
    world: World
    donors: Sequence[Asked]
    """Questions of its benchmark and split, itself among them."""
    chance: Random


def _factual_head(scope: Scope) -> Iterator[Draft]:
    """Another head in one triple: what went before leads elsewhere."""
    path = scope.asked.path
    for place, name in _exchanges(scope, "head"):
        yield _with(path, place, replace(path[place], head=name)), place + 1


def _factual_tail(scope: Scope) -> Iterator[Draft]:
    """Another tail, wherever the path names it, so that all still joins: only knowledge tells.

    What the question names and the answer are exchanged only where there is nothing else.
    """
    path = scope.asked.path
    for place, name in _exchanges(scope, "tail"):
        told = tuple(_renamed(triple, path[place].tail, name) for triple in path)
        yield told, _differs(path, told)


def _exchanges(scope: Scope, side: Side) -> Iterator[tuple[int, str]]:
    """Places (from 0), each with names that may stand on a side of its triple."""
    asked, chance = scope.asked, scope.chance
    pools = {n: scope.world.others(side, t, t.relation in asked.free) for n, t in enumerate(asked.path)}
    places = [place for place, names in pools.items() if len(names) > 1]
    if side == "tail":
        shown = {end_key(answer) for answer in asked.accepted} | asked.starts
        places = [n for n in places if end_key(asked.path[n].tail) not in shown] or places
    for _ in range(TRIES if places else 0):
        place = chance.choice(places)
        yield place, chance.choice(pools[place])


def _incoherent(scope: Scope) -> Iterator[Draft]:
    path = scope.asked.path
    for _ in range(TRIES if len(path) > 1 else 0):
        told = tuple(scope.chance.sample(path, len(path)))
        yield told, first_lost(told, scope.asked.starts) or 0


def _misguided_question(scope: Scope) -> Iterator[Draft]:
    """The gold path of another question."""
    for _ in range(TRIES):
        other = scope.chance.choice(scope.donors).path
        yield other, _differs(scope.asked.path, other)


def _misguided_walk(scope: Scope) -> Iterator[Draft]:
    """A walk of true triples from where the gold path starts, of as many."""
    path = scope.asked.path
    for _ in range(TRIES):
        walked = _walk(scope, len(path))
        if walked:
            yield walked, _differs(path, walked)


def _walk(scope: Scope, length: int) -> Path:
    """Triples from an end to an end, none twice; nothing where the walk comes to no further one."""
    at, walked = scope.asked.start, list[Triple]()
    while len(walked) < length:
        ways = [triple for triple in scope.world.joined.get(at, ()) if triple not in walked]
        if not ways:
            return ()
        step = scope.chance.choice(ways)
        walked.append(replace(step, passage=None, sentence=None))
        at = step.tail if step.head == at else step.head
    return tuple(walked)


def _relation_swapped(scope: Scope) -> Iterator[Draft]:
    """Another relation in one triple, of those most like the true one first."""
    path, chance = scope.asked.path, scope.chance
    places = [n for n, triple in enumerate(path) if triple.relation not in scope.asked.free]
    for place in chance.sample(places, len(places)):
        one, drawn = path[place], chance.sample(scope.world.relations, len(scope.world.relations))
        drawn.sort(key=lambda relation: strangeness(scope.world, one, relation))
        for relation in drawn:
            if relation != one.relation:
                yield _with(path, place, replace(path[place], relation=relation)), place + 1


def _reversed(scope: Scope) -> Iterator[Draft]:
    path = scope.asked.path
    for place in scope.chance.sample(range(len(path)), len(path)):
        one = path[place]
        yield _with(path, place, Triple(one.tail, one.relation, one.head)), place + 1


def _hop_dropped(scope: Scope) -> Iterator[Draft]:
    path, needed = scope.asked.path, scope.asked.needed
    for place in scope.chance.sample(needed, len(needed)) if len(path) > 1 else ():
        yield (*path[: place - 1], *path[place:]), place


DRAFTS: Mapping[Corruption, Callable[[Scope], Iterator[Draft]]] = {
    "factual_head": _factual_head,
    "factual_tail": _factual_tail,
    "incoherent": _incoherent,
    "misguided_question": _misguided_question,
    "misguided_walk": _misguided_walk,
    "relation_swapped": _relation_swapped,
    "reversed": _reversed,
    "hop_dropped": _hop_dropped,
}


def _with(path: Path, place: int, triple: Triple) -> Path:
    return (*path[:place], triple, *path[place + 1 :])


def _renamed(triple: Triple, old: str, new: str) -> Triple:
    """A triple with another name for one of its ends."""
    ends = [new if end == old else end for end in (triple.head, triple.tail)]
    return Triple(ends[0], triple.relation, ends[1])


def _differs(one: Path, other: Path) -> int:
    """The first place (from 1) at which a path has another triple."""
    alike = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(alike, 1) if a != b), min(len(one), len(other)) + 1)
