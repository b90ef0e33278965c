"""Corrupts paths, one of each kind, and checks that each corruption is wrong.

A draft is a path and the position (from 1) of its error: the false triple, the first triple that does not follow, the
first triple that differs from the question's path, or the missing hop.

A draft that may be right is refused: a shuffle that still follows, a false triple that the graph has or the question's
passages may state, another question's path that leads to this one's answer. If the graph is not complete (benchmarks
over text), a triple that it lacks may be true. So a swapped relation is accepted only if it excludes the true one, and
relations in free words are neither swapped nor reversed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from builders.paths.world import SYMMETRIC, Path, PathQuestion, Side, World, fact_of, sort_of
from safe_stepwise.graphs.path_order import end_key, ends_in_question, find_unreached
from safe_stepwise.language.relations import same_nation
from safe_stepwise.language.text import has_words, normal_words
from safe_stepwise.records import Triple
from safe_stepwise.store.names import Corruption

Draft = tuple[Path, int]
TRIES = 20
"""The maximum number of drafts of a kind for one question."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The material of drafts: the question, its benchmark's world, and questions that donate paths."""

    question: PathQuestion
    world: World
    donors: Sequence[PathQuestion]
    """Questions of the same benchmark and split, this one included."""
    chance: Random


def corrupt_path(kind: Corruption, scope: Scope) -> Draft | str:
    """Return a corrupted path, or the reason for none."""
    drafts, reason = KINDS[kind]
    for path, position in drafts(scope):
        if (objection := find_objection(kind, scope, path, position)) is None:
            return path, position
        reason = objection
    return reason


def _factual_head(scope: Scope) -> Iterator[Draft]:
    """Yield paths with another head in one triple, so that the triples before it lead elsewhere."""
    path = scope.question.path
    for index, name in _exchanges(scope, "head"):
        yield _with(path, index, replace(path[index], head=name)), index + 1


def _factual_tail(scope: Scope) -> Iterator[Draft]:
    """Yield paths with a tail replaced wherever it occurs; a name of the question or the answer is the last resort."""
    path = scope.question.path
    for index, name in _exchanges(scope, "tail"):
        new = {path[index].tail: name}
        renamed = tuple(Triple(new.get(t.head, t.head), t.relation, new.get(t.tail, t.tail)) for t in path)
        yield renamed, _differs(path, renamed)


def _exchanges(scope: Scope, side: Side) -> Iterator[tuple[int, str]]:
    """Yield indices, each with a name that may replace that side of its triple."""
    question, chance = scope.question, scope.chance
    pools = {n: scope.world.alternatives(side, t, t.relation in question.free) for n, t in enumerate(question.path)}
    indices = [index for index, names in pools.items() if len(names) > 1]
    if side == "tail":
        reserved = set(map(end_key, question.accepted)) | question.starts
        indices = [n for n in indices if end_key(question.path[n].tail) not in reserved] or indices
    for _ in range(TRIES if indices else 0):
        index = chance.choice(indices)
        yield index, chance.choice(pools[index])


def _incoherent(scope: Scope) -> Iterator[Draft]:
    path = scope.question.path
    for _ in range(TRIES if len(path) > 1 else 0):
        shuffled = tuple(scope.chance.sample(path, len(path)))
        yield shuffled, find_unreached(shuffled, scope.question.starts) or 0


def _misguided_question(scope: Scope) -> Iterator[Draft]:
    """Yield gold paths of other questions."""
    for _ in range(TRIES):
        path = scope.chance.choice(scope.donors).path
        yield path, _differs(scope.question.path, path)


def _misguided_walk(scope: Scope) -> Iterator[Draft]:
    """Yield walks of true triples with the start and the length of the gold path."""
    path = scope.question.path
    for _ in range(TRIES):
        if walked := _walk(scope, len(path)):
            yield walked, _differs(path, walked)


def _walk(scope: Scope, length: int) -> Path:
    """Walk along distinct triples; return an empty path if the walk gets stuck."""
    end, walked = scope.question.start, list[Triple]()
    while len(walked) < length:
        steps = [triple for triple in scope.world.joined.get(end, ()) if triple not in walked]
        if not steps:
            return ()
        step = scope.chance.choice(steps)
        walked.append(replace(step, passage=None, sentence=None))
        end = step.tail if step.head == end else step.head
    return tuple(walked)


def _relation_swapped(scope: Scope) -> Iterator[Draft]:
    """Yield paths with another relation in one triple, relations most like the true one first."""
    path, world, chance = scope.question.path, scope.world, scope.chance
    indices = [n for n, triple in enumerate(path) if triple.relation not in scope.question.free]
    for index in chance.sample(indices, len(indices)):
        triple, relations = path[index], chance.sample(world.relations, len(world.relations))
        for relation in sorted(relations, key=partial(world.strangeness, triple)):
            if relation != triple.relation:
                yield _with(path, index, replace(triple, relation=relation)), index + 1


def _reverse_relation(scope: Scope) -> Iterator[Draft]:
    path = scope.question.path
    for index in scope.chance.sample(range(len(path)), len(path)):
        triple = path[index]
        yield _with(path, index, Triple(triple.tail, triple.relation, triple.head)), index + 1


def _hop_dropped(scope: Scope) -> Iterator[Draft]:
    path, needed = scope.question.path, scope.question.needed
    for position in scope.chance.sample(needed, len(needed)) if len(path) > 1 else ():
        yield (*path[: position - 1], *path[position:]), position


KINDS: Mapping[Corruption, tuple[Callable[[Scope], Iterator[Draft]], str]] = {
    "factual_head": (_factual_head, "no other entity stands in its relations"),
    "factual_tail": (_factual_tail, "no other entity stands in its relations"),
    "incoherent": (_incoherent, "one triple has no order"),
    "misguided_question": (_misguided_question, "no other question"),
    "misguided_walk": (_misguided_walk, "no other walk from its entity"),
    "relation_swapped": (_relation_swapped, "no relation of a known meaning"),
    "reversed": (_reverse_relation, "no triple"),
    "hop_dropped": (_hop_dropped, "no hop that every gold path needs, beside another"),
}
"""The function that makes each kind's drafts, in random order, and the reason if there is no draft."""


def _with(path: Path, index: int, triple: Triple) -> Path:
    return (*path[:index], triple, *path[index + 1 :])


def _differs(path: Path, variant: Path) -> int:
    """Return the first position (from 1) at which two paths differ."""
    alike = zip(path, variant, strict=False)
    return next((n for n, (a, b) in enumerate(alike, 1) if a != b), min(len(path), len(variant)) + 1)


def find_objection(kind: Corruption, scope: Scope, path: Path, position: int) -> str | None:
    """Return the reason why a draft may be right; None if it is surely wrong."""
    question = scope.question
    if path == question.path:
        return "it is the original"
    if question.is_right(path):
        return "it is another right order" if kind == "incoherent" else "it is a right path"
    if kind == "hop_dropped" and _leads_to_answer(question, path):
        return "it leads to the answer"
    if kind in ("incoherent", "hop_dropped"):
        return None
    if kind.startswith("misguided"):
        return _object_misguided(kind, question, path)
    triple, old = path[position - 1], question.path[position - 1]
    if fact_of(triple) in scope.world.facts:
        return "the graph has its false triple"
    if kind == "relation_swapped":
        return None if scope.world.excludes(old, triple) else "both relations may hold"
    if kind == "reversed":
        return _object_reversed(question, old)
    return _object_exchanged(scope, old, triple, position)


def _object_misguided(kind: Corruption, question: PathQuestion, path: Path) -> str | None:
    """Return the reason why a path of true triples may be right: it leads from the question to the answer."""
    starts, answers = _starts_and_answers(question, path)
    if answers and (kind == "misguided_walk" or starts):
        return "it leads to the answer"
    if find_unreached(path, frozenset((end_key(path[0].head), end_key(path[0].tail)))) is not None:
        # Branches of a comparison belong to their own question and are no walk.
        return "it is no walk" if kind == "misguided_walk" else None
    return None


def _starts_and_answers(question: PathQuestion, path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys of a path's ends where a reader may start (topics, or named in the question), and of answers."""
    ends = {end_key(end) for triple in path for end in (triple.head, triple.tail)}
    answers = frozenset(ends.intersection(map(end_key, question.accepted)))
    others = ends_in_question(question.question, path) | ends.intersection(map(end_key, question.topics))
    return (question.starts & ends) | (others - answers), answers


def _leads_to_answer(question: PathQuestion, path: Path) -> bool:
    """Whether all of a path can be followed, in its order, from where a reader may start, and has an answer."""
    starts, answers = _starts_and_answers(question, path)
    return bool(answers) and find_unreached(path, starts - answers) is None


def _object_reversed(question: PathQuestion, old: Triple) -> str | None:
    if old.relation in question.free:
        return "a relation in free words may hold either way"
    if old.relation in SYMMETRIC:
        return "its relation holds either way"
    return "both ends are one" if end_key(old.head) == end_key(old.tail) else None


def _object_exchanged(scope: Scope, old: Triple, new: Triple, position: int) -> str | None:
    """Return the reason why an exchanged end may be right: it is another name of the old one, or as true."""
    question = scope.question
    is_head = old.head != new.head
    if is_head and old.relation in question.free and sort_of(old.tail) == "words":
        return "what its tail describes may be many"
    ends = (old.head, new.head) if is_head else (old.tail, new.tail)
    before, after = map(end_key, ends)
    if before == after or has_words(before, after) or has_words(after, before) or same_nation(before, after):
        return "its new name is like the old one"
    if position == len(question.path) and after in map(end_key, question.accepted):
        return "it leads to the answer"
    if not scope.world.is_complete and f" {normal_words(ends[1])} " in f" {question.text} ":
        return "the passages name it, and may say so"
    return None
