"""Builds the `Grounds` by which a question's chains are judged, from a benchmark's annotations or from any graph.

*Gold paths* are the evidence of 2Wiki and the made-up world, and the decomposition of MuSiQue. HotpotQA has no gold
paths: pass people's derivations (R4C), or paths of any graph, to `grounds_of_paths`. A *chain* is the reasoning to
judge. The rules are *paper* (arXiv 2402.11199) and *house*, our own.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from safe_stepwise.graphs.comparisons import is_comparison, is_yes_or_no
from safe_stepwise.graphs.hops import annotated_hops
from safe_stepwise.graphs.knowledge_graph import entity_key
from safe_stepwise.language.text import has_words, normal_name, normal_words, qualifier, without_qualifier
from safe_stepwise.records import Passage, Question, Triple

Rule = Literal["paper", "house"]
Path = tuple[Triple, ...]
Verdict = Literal["faithful", "unfaithful", "unjudgeable"]
Fault = Literal["", "factual", "relation", "reversed", "order", "missing", "unread"]
"""What is wrong with a step, or with a chain as a whole.

factual: its claim is not in the graph; relation: both ends are right, the relation is wrong; reversed: head and tail
are swapped; order: it needs a fact that no earlier step has found (the paper's coherence error); missing: no step
states a needed fact; unread: the text could not be read, or the case not decided.
"""
FAULTS: tuple[Fault, ...] = ("factual", "relation", "reversed", "order", "missing", "unread")


@dataclass(frozen=True, slots=True)
class Grounds:
    """The gold paths, triples, answers and passages by which one question's chains are judged.

    ``paths``: the gold paths, any of which is enough, each in a valid order; ``triples``: all triples of the graph,
    the paths' included, from which retrieval chooses; ``answers``: the accepted answers; ``starts``: the entities that
    the question names.
    """

    question: str
    answers: tuple[str, ...]
    paths: tuple[Path, ...]
    triples: tuple[Triple, ...]
    starts: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    is_branched: bool = False
    """Whether branches may come in any order, as in a comparison."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Reasoning to judge: the text of each step, without number and kind, and the final answer."""

    steps: tuple[str, ...]
    answer: str
    numbers: tuple[int, ...] = ()
    """The steps' numbers (from 1) in their trajectory; empty if they are numbered in order."""
    concluding: tuple[int, ...] = ()
    """The places (from 1) of steps that claim no new fact: conclusions (kind Logical) and plans."""


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """A rule's verdict on a step: its fault, the triples matched to it (paper) or stated (house), the score (0-1)."""

    triples: tuple[Triple, ...] = ()
    fault: Fault = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """The verdict of a rule on one chain; ``path`` judges the steps, not the answer.

    ``first``: the first faulty step (from 1), None if no step is faulty or a fact is missing; ``fault``: the fault of
    that step or of the chain; ``edits``: insertions, deletions and substitutions to the nearest gold path;
    ``distance``: edits divided by the length of the longer path (0-1).
    """

    rule: Rule
    path: Verdict
    is_right: bool
    """Whether the answer is right, as the rule compares answers."""
    steps: tuple[StepVerdict, ...] = field(default=())
    fault: Fault = ""
    first: int | None = None
    edits: int | None = None
    distance: float | None = None
    missing: tuple[Triple, ...] = ()
    """Needed facts that no step states (house rule only)."""


def verdict_row(verdict: ChainVerdict) -> dict[str, Any]:
    """Convert a verdict to JSON, without its rule; triples become lists of three, scores have four digits.

    >>> verdict_row(ChainVerdict("house", "faithful", True, edits=0, distance=0.0))["path"]
    'faithful'
    """

    def round_score(score: float | None) -> float | None:
        return None if score is None else round(score, 4)

    return {
        "path": verdict.path,
        "is_right": verdict.is_right,
        "fault": verdict.fault,
        "first": verdict.first,
        "edits": verdict.edits,
        "distance": round_score(verdict.distance),
        "missing": [list(triple.names) for triple in verdict.missing],
        "steps": [
            {"triples": [[*t.names] for t in step.triples], "fault": step.fault, "score": round_score(step.score)}
            for step in verdict.steps
        ],
    }


def ends_of(path: Iterable[Triple]) -> tuple[str, ...]:
    """Return the entities of a path, each once."""
    return tuple(dict.fromkeys(end for triple in path for end in (triple.head, triple.tail)))


@lru_cache(maxsize=65536)
def is_same(name: str, other_name: str) -> bool:
    """Whether two names mean one entity: by `entity_key`, or one has a description that the other lacks.

    A description is in brackets or follows a comma; two different descriptions mean two entities.

    >>> is_same("Ors Velt", "Ors Velt, 1st Earl of Oru"), is_same("3 May 1901", "May 3, 1901")
    (True, True)
    """
    if entity_key(name) == entity_key(other_name):
        return True
    (bare, description), (other_bare, other_description) = _split_description(name), _split_description(other_name)
    return bool(bare) and bare == other_bare and not (description and other_description)


@lru_cache(maxsize=32768)
def _split_description(name: str) -> tuple[str, str]:
    bare, _, remainder = name.partition(",")
    return normal_name(bare), qualifier(name) or normal_words(remainder)


def holds(text: str, name: str) -> bool:
    """Whether a text has a name, word for word; False for a name without words.

    >>> holds("The Greek Language", "greek"), holds("Brazilian real", "Brazil"), holds("Oru", "?")
    (True, False, False)
    """
    words = normal_words(name)
    return bool(words) and has_words(normal_words(text), words)


def is_alike(answer: str, other_answer: str) -> bool:
    """Whether one of two answers contains the other (the paper's comparison, C.3), or both mean one entity.

    >>> is_alike("Greek", "Greek Language"), is_alike("8 March 1975", "March 8, 1975")
    (True, True)
    """
    if holds(answer, other_answer) or holds(other_answer, answer):
        return True
    if normal_words(answer) and normal_words(other_answer):
        return entity_key(answer) == entity_key(other_answer)
    return bool(answer.strip()) and answer.strip() == other_answer.strip()


@lru_cache(maxsize=65536)
def fact_of(triple: Triple) -> tuple[str, str, str]:
    """Normalise a triple: neither the spelling of its ends nor its passage counts.

    >>> fact_of(Triple("The Dune", "date", "May 3, 1901", 1)) == fact_of(
    ...     Triple("Dune", "date", "3 May 1901"))
    True
    """
    return entity_key(triple.head), triple.relation, entity_key(triple.tail)


_POSSESSIVE = re.compile(r"['’]s?(?!\w)")
_MAX_ORDERS = 120  # all orders of five branches of one fact each, or of three branches of two facts


def grounds_of(question: Question, graph: Iterable[Triple] = ()) -> Grounds:
    """Build grounds from a benchmark's row: its annotated path, its passages, and the triples of ``graph``.

    ``graph``: further triples from which retrieval chooses, such as a label's ``knowledge_graph``. A row without
    annotated hops has no path, and its chains are unjudgeable.

    >>> path = (Triple("Dune Rain", "director", "Ors Velt"), Triple("Ors Velt", "spouse", "Ana"))
    >>> question = Question("q", "b", "train", "Who married Dune Rain's director?", "Ana",
    ...                  evidence=path)
    >>> grounds = grounds_of(question, [Triple("Ana", "place of birth", "Oru")])
    >>> grounds.starts, len(grounds.paths[0]), len(grounds.triples), grounds.is_branched
    (('Dune Rain',), 2, 3, False)
    """
    paths = question.paths or [tuple(triple for hop in annotated_hops(question) for triple in hop.triples)]
    compares = is_comparison(question)
    return grounds_of_paths(question.question, question.accepted, paths, graph, question.passages, compares)


def grounds_of_paths(
    question: str,
    answers: Iterable[str],
    paths: Iterable[Sequence[Triple]],
    triples: Iterable[Triple] = (),
    passages: Iterable[Passage] = (),
    compares: bool = False,
) -> Grounds:
    """Build grounds from gold paths, each in a valid order; ``triples`` are further ones to retrieve.

    ``compares``: whether the question compares entities, so that facts about one may come before or after facts about
    another. A question with the answer yes or no always compares. Branches may also come in any order if a path is not
    a walk that ends at the answer.

    >>> cast = Triple("Dune Rain", "starred_actors", "Ana Vorr")
    >>> grounds_of_paths("what does Ana Vorr act in", ["Dune Rain"], [[cast]]).starts
    ('Ana Vorr',)
    """
    golds = tuple(tuple(path) for path in paths if path)
    answers = tuple(answers)
    compares = compares or all(map(is_yes_or_no, answers))
    facts: dict[tuple[str, str, str], Triple] = {}  # each once, gold ones first
    for triple in (*(triple for path in golds for triple in path), *triples):
        facts.setdefault(fact_of(triple), triple)
    branched = compares or not all(_is_walk_to_answer(path, answers) for path in golds)
    starts = _find_starts(question, answers, golds, branched)
    return Grounds(question, answers, golds, tuple(facts.values()), starts, tuple(passages), branched)


def _find_starts(question: str, answers: Sequence[str], paths: Sequence[Path], branched: bool) -> tuple[str, ...]:
    """Find the paths' entities that the question names, and their roots if it names none or the paths branch.

    The answer is left out, unless it is a root of branches: one of the sides that a question chooses from.
    """
    ends = dict.fromkeys(end for path in paths for end in ends_of(path))
    roots = [t.head for path in paths for t in path if not any(is_same(t.head, earlier.tail) for earlier in path)]
    mentioned = [end for end in ends if _names_entity(question, end)]
    candidates = dict.fromkeys([*mentioned, *(roots if branched or not mentioned else ())])
    sides = roots if branched else ()
    return tuple(end for end in candidates if end in sides or not any(is_same(end, a) for a in answers))


def _names_entity(question: str, name: str) -> bool:
    bare = without_qualifier(name)
    texts = dict.fromkeys((question, _POSSESSIVE.sub("", question)))
    return any(holds(text, form) for text in texts for form in (bare, bare.partition(",")[0]))


def onward(triple: Triple, place: str) -> Iterator[str]:
    """Yield the opposite end of a fact if the entity ``place`` is one of its ends."""
    if is_same(triple.head, place):
        yield triple.tail
    if is_same(triple.tail, place):
        yield triple.head


def ends_like(path: Iterable[Triple], answers: Sequence[str]) -> tuple[str, ...]:
    """Return the entities of a path that are an answer: by key, or else by `is_same`, or else by `is_alike`."""
    ends, keys = ends_of(path), _entity_keys(tuple(answers))
    if exact := tuple(end for end in ends if entity_key(end) in keys):
        return exact  # the usual case, and fast if there are many answers
    for is_like in (is_same, is_alike):
        if alike := tuple(end for end in ends if any(is_like(end, answer) for answer in answers)):
            return alike
    return ()


@lru_cache(maxsize=1024)
def _entity_keys(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(entity_key, names))


def _is_walk_to_answer(path: Path, answers: Sequence[str]) -> bool:
    """Whether a path is a walk that ends at an answer, or a walk without any answer on it."""
    goals = ends_like(path, answers)
    return any(not goals or place in goals for place in walk_ends(path))


def walk_ends(path: Path) -> set[str]:
    """Return the entities where a walk along a path may end; an empty set if it is not a walk.

    In a walk, each fact starts at the entity where the previous fact ended; directions do not count.

    >>> one, two = Triple("Dune", "director", "Ors"), Triple("Ors", "spouse", "Ana")
    >>> walk_ends((one, two)), walk_ends((one, Triple("Ford", "director", "Edo")))
    ({'Ana'}, set())
    """
    places = {path[0].head, path[0].tail}
    for triple in path[1:]:
        places = {end for place in places for end in onward(triple, place)}
    return places


@lru_cache(maxsize=4096)
def orders(path: Path) -> tuple[Path, ...]:
    """Return a branched path's valid orders, the given one first (at most 120): a fact follows those that lead to it.

    >>> one, two = Triple("Dune", "director", "Ors"), Triple("Ford", "director", "Edo")
    >>> len(orders((one, two))), len(orders((one, Triple("Ors", "spouse", "Ana"), two)))
    (2, 3)
    """
    prerequisites = [
        {n for n, earlier in enumerate(path[:place]) if is_same(earlier.tail, triple.head)}
        for place, triple in enumerate(path)
    ]

    def extend(order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(order) == len(path):
            yield order
        for place, needed in enumerate(prerequisites):
            if place not in order and needed <= set(order):
                yield from extend((*order, place))

    numbered = zip(range(_MAX_ORDERS), extend(()), strict=False)
    return tuple(tuple(path[place] for place in order) for _, order in numbered)
