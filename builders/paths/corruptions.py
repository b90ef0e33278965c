"""Corrupted paths, each shown to be wrong before it is kept.

Refused is what may be right: a shuffle that follows all the same, a false triple that the graph has
or the question's passages may state, another question's path that leads to this one's answer. Where
the graph is not complete (benchmarks over text), a triple that it lacks may be true; so a swapped
relation is kept only if it excludes the true one, and relations in free words are neither swapped
nor reversed.
"""

from collections import Counter
from collections.abc import MutableMapping
from typing import NamedTuple

from builders.paths.asked import Path
from builders.paths.drafts import DRAFTS, Scope
from builders.paths.meanings import SYMMETRIC, excludes
from builders.paths.world import sort_of
from safe_stepwise.graphs.told import end_key, first_lost
from safe_stepwise.language.relations import same_nation
from safe_stepwise.language.text import has_words, words_of
from safe_stepwise.records import Triple
from safe_stepwise.store.names import Corruption

NO_DRAFT: dict[Corruption, str] = {
    "factual_head": "no other entity stands in its relations",
    "factual_tail": "no other entity stands in its relations",
    "incoherent": "one triple has no order",
    "misguided_question": "no other question",
    "misguided_walk": "no other walk from its entity",
    "relation_swapped": "no relation of a known meaning",
    "reversed": "no triple",
    "hop_dropped": "no hop that every gold path needs, beside another",
}


class Corrupted(NamedTuple):
    """A path that is shown to be wrong, and the place (from 1) where."""

    path: Path
    position: int


Drawn = MutableMapping[tuple[str, str], int]


def corrupted(kind: Corruption, scope: Scope, drawn: Drawn | None = None) -> Corrupted | str:
    """A corruption of a question's path, or why there is none.

    ``drawn`` counts the drafts that were refused, by kind and reason.
    """
    reason = NO_DRAFT[kind]
    counts: Drawn = Counter[tuple[str, str]]() if drawn is None else drawn
    for path, position in DRAFTS[kind](scope):
        found = doubt(kind, scope, path, position)
        if found is None:
            return Corrupted(path, position)
        reason = found
        counts[kind, reason] = counts.get((kind, reason), 0) + 1
    return reason


def doubt(kind: Corruption, scope: Scope, path: Path, position: int) -> str | None:
    """Why a draft may be right after all; None if it is wrong."""
    asked = scope.asked
    if path == asked.path:
        return "it is the original"
    if asked.is_right(path):
        return "it is another right order" if kind == "incoherent" else "it is a right path"
    if kind == "incoherent":
        return None
    if kind.startswith("misguided"):
        return _doubt_misguided(kind, scope, path)
    if kind == "hop_dropped":
        return None
    triple, old = path[position - 1], asked.path[position - 1]
    if scope.world.knows(triple):
        return "the graph has its false triple"
    if kind == "relation_swapped":
        return None if excludes(scope.world, old, triple) else "both relations may hold"
    if kind == "reversed":
        return _doubt_reversed(scope, old)
    return _doubt_exchanged(scope, old, triple, position)


def _doubt_misguided(kind: Corruption, scope: Scope, path: Path) -> str | None:
    """Another path of true triples is wrong only if it does not lead from here to the answer."""
    asked = scope.asked
    ends = {end_key(end) for triple in path for end in (triple.head, triple.tail)}
    answers = {end_key(answer) for answer in asked.accepted}
    is_from_here = kind == "misguided_walk" or bool(ends & asked.starts)
    if is_from_here and ends & answers:
        return "it leads to the answer"
    if first_lost(path, frozenset((end_key(path[0].head), end_key(path[0].tail)))) is not None:
        # Branches of a comparison: true of their own question, no walk.
        return "it is no walk" if kind == "misguided_walk" else None
    return None


def _doubt_reversed(scope: Scope, old: Triple) -> str | None:
    if old.relation in scope.asked.free:
        return "a relation in free words may hold either way"
    if old.relation in SYMMETRIC:
        return "its relation holds either way"
    return "both ends are one" if end_key(old.head) == end_key(old.tail) else None


def _doubt_exchanged(scope: Scope, old: Triple, new: Triple, position: int) -> str | None:
    """Whether an exchanged end may be the old one by another name, or as true."""
    asked = scope.asked
    is_head = old.head != new.head
    if is_head and old.relation in asked.free and sort_of(old.tail) == "words":
        return "what its tail describes may be many"
    ends = (old.head, new.head) if is_head else (old.tail, new.tail)
    before, after = map(end_key, ends)
    if before == after or has_words(before, after) or has_words(after, before):
        return "its new name is like the old one"
    if same_nation(before, after):
        return "its new name is like the old one"
    if position == len(asked.path) and after in map(end_key, asked.accepted):
        return "it leads to the answer"
    if not scope.world.is_complete and f" {words_of(ends[1])} " in f" {asked.text} ":
        return "the passages name it, and may say so"
    return None
