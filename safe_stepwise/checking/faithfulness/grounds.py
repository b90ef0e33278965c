"""What a question gives to judge its chains by: from a benchmark's annotations, or from any graph.

2Wiki's and the made-up world's evidence and MuSiQue's decomposition are gold paths. HotpotQA
annotates none: give people's derivations (R4C), or paths of any graph, to `grounds_of_paths`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from safe_stepwise.graphs.comparisons import is_comparison, is_yes_or_no
from safe_stepwise.graphs.hops import annotated_hops
from safe_stepwise.graphs.knowledge_graph import entity_key
from safe_stepwise.language.text import has_words, normal_name, qualifier, without_qualifier, words_of
from safe_stepwise.records import Passage, Question, Triple

Rule = Literal["paper", "house"]
Path = tuple[Triple, ...]
Verdict = Literal["faithful", "unfaithful", "unjudgeable"]
Fault = Literal["", "factual", "relation", "reversed", "order", "missing", "unread"]
"""What is wrong with a step, or with a chain as a whole.

factual: what it says is not in the graph; relation: its ends are, but joined otherwise; reversed:
head and tail exchanged; order: it rests on what no step before it has found (the paper's coherence
error); missing: a needed fact that no step states; unread: nothing could be read, or not decided.
"""
FAULTS: tuple[Fault, ...] = ("factual", "relation", "reversed", "order", "missing", "unread")


@dataclass(frozen=True, slots=True)
class Grounds:
    """The gold paths, triples, answers and passages by which one question's chains are judged.

    ``paths``: the gold paths, any of which will do, each in an order in which it may be told;
    ``triples``: all that the graph has, the paths' included, which retrieval chooses from;
    ``answers``: those that count as right; ``starts``: entities that the question names.
    """

    question: str
    answers: tuple[str, ...]
    paths: tuple[Path, ...]
    triples: tuple[Triple, ...]
    starts: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    is_branched: bool = False
    """Whether the path's parts may come in any order, as the branches of a comparison do."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Reasoning to judge: what each step says, without number and kind, and the answer given."""

    steps: tuple[str, ...]
    answer: str
    numbers: tuple[int, ...] = ()
    """Of each step in its trajectory, from 1; in order where empty."""
    concluding: tuple[int, ...] = ()
    """The places, from 1, of steps known to conclude and to state nothing new (kind Logical)."""


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """The verdict of a rule on one step.

    ``triples``: what it was matched to (paper) or states (house); ``score``: the paper's, 0-1.
    """

    triples: tuple[Triple, ...] = ()
    fault: Fault = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """The verdict of a rule on one chain; ``path`` leaves the answer out of account.

    ``first``: the first bad step, from 1, None where none is or the whole chain lacks something;
    ``fault``: of that step, or of the chain; ``edits``: insertions, deletions and substitutions to
    the nearest gold path, ``distance`` those over the longer of both (0-1).
    """

    rule: Rule
    path: Verdict
    is_right: bool
    """Whether the answer is, by the rule's own comparison."""
    steps: tuple[StepVerdict, ...] = field(default=())
    fault: Fault = ""
    first: int | None = None
    edits: int | None = None
    distance: float | None = None
    missing: tuple[Triple, ...] = ()
    """Needed facts that no step states (house)."""


def verdict_row(verdict: ChainVerdict) -> dict[str, Any]:
    """A verdict as JSON, without its rule's name; triples are lists of three, scores have four digits.

    >>> verdict_row(ChainVerdict("house", "faithful", True, edits=0, distance=0.0))["path"]
    'faithful'
    """

    def rounded(score: float | None) -> float | None:
        return None if score is None else round(score, 4)

    def plain(triples: tuple[Triple, ...]) -> list[list[str]]:
        return [[triple.head, triple.relation, triple.tail] for triple in triples]

    return {
        "path": verdict.path,
        "is_right": verdict.is_right,
        "fault": verdict.fault,
        "first": verdict.first,
        "edits": verdict.edits,
        "distance": rounded(verdict.distance),
        "missing": plain(verdict.missing),
        "steps": [
            {"triples": plain(step.triples), "fault": step.fault, "score": rounded(step.score)}
            for step in verdict.steps
        ],
    }


def ends_of(path: Iterable[Triple]) -> tuple[str, ...]:
    """The entities of a path, each once."""
    return tuple(dict.fromkeys(end for triple in path for end in (triple.head, triple.tail)))


@lru_cache(maxsize=65536)
def is_same(name: str, other_name: str) -> bool:
    """Whether two names mean one: by `entity_key`, or one is the other without what describes it.

    What describes is what stands in brackets or follows a comma; two that are described otherwise are two.

    >>> is_same("Ors Velt", "Ors Velt, 1st Earl of Oru"), is_same("3 May 1901", "May 3, 1901")
    (True, True)
    >>> is_same("Ors Velt (painter)", "Ors Velt (poet)"), is_same("Oru, Kelvia", "Oru, Veld")
    (False, False)
    """
    if entity_key(name) == entity_key(other_name):
        return True
    (bare, description), (other_bare, other_description) = _described(name), _described(other_name)
    return bool(bare) and bare == other_bare and not (description and other_description)


@lru_cache(maxsize=32768)
def _described(name: str) -> tuple[str, str]:
    bare, _, remainder = name.partition(",")
    return normal_name(bare), qualifier(name) or words_of(remainder)


def holds(text: str, name: str) -> bool:
    """Whether a text holds a name, word for word; one without words holds, and is in, nothing.

    >>> holds("The Greek Language", "greek"), holds("Brazilian real", "Brazil"), holds("Oru", "?")
    (True, False, False)
    """
    words = words_of(name)
    return bool(words) and has_words(words_of(text), words)


def is_alike(answer: str, other_answer: str) -> bool:
    """Whether one of two answers holds the other (the paper's comparison, C.3), or they are one.

    >>> is_alike("Greek", "Greek Language"), is_alike("8 March 1975", "March 8, 1975")
    (True, True)
    """
    if holds(answer, other_answer) or holds(other_answer, answer):
        return True
    if words_of(answer) and words_of(other_answer):
        return entity_key(answer) == entity_key(other_answer)
    return bool(answer.strip()) and answer.strip() == other_answer.strip()


@lru_cache(maxsize=65536)
def fact_of(triple: Triple) -> tuple[str, str, str]:
    """Reduce a triple to what it says: equal however its ends are spelled and wherever it was read.

    >>> fact_of(Triple("The Dune", "date", "May 3, 1901", 1)) == fact_of(
    ...     Triple("Dune", "date", "3 May 1901"))
    True
    """
    return entity_key(triple.head), triple.relation, entity_key(triple.tail)


_POSSESSIVE = re.compile(r"['’]s?(?!\w)")
_MAX_ORDERS = 120  # orders of a path that are looked at: all of five branches of one fact, or of three of two


def grounds_of(question: Question, graph: Iterable[Triple] = ()) -> Grounds:
    """Build the grounds of a benchmark's row: its annotated path, its passages, and what ``graph`` adds.

    ``graph``: what else is known of its passages, such as a label's ``knowledge_graph``: what retrieval may also
    choose. A row without annotated hops has no path, and nothing can be judged by it.

    >>> path = (Triple("Dune Rain", "director", "Ors Velt"), Triple("Ors Velt", "spouse", "Ana"))
    >>> asked = Question("q", "b", "train", "Who married Dune Rain's director?", "Ana",
    ...                  evidence=path)
    >>> grounds = grounds_of(asked, [Triple("Ana", "place of birth", "Oru")])
    >>> grounds.starts, len(grounds.paths[0]), len(grounds.triples), grounds.is_branched
    (('Dune Rain',), 2, 3, False)
    """
    path = tuple(triple for hop in annotated_hops(question) for triple in hop.triples)
    return grounds_of_paths(
        question.question,
        question.accepted,
        [path] if path else [],
        graph,
        question.passages,
        compares=is_comparison(question),
    )


def grounds_of_paths(
    question: str,
    answers: Iterable[str],
    paths: Iterable[Sequence[Triple]],
    triples: Iterable[Triple] = (),
    passages: Iterable[Passage] = (),
    compares: bool = False,
) -> Grounds:
    """Build grounds from gold paths, each in an order in which it may be told; ``triples`` are further ones.

    ``compares``: whether the question sets entities against each other, so that what is told of
    one may come before or after what is told of another. So it does where the answer is yes or
    no, and parts come in any order wherever a path is no walk that ends at the answer.

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
    branched = compares or not all(_leads(path, answers) for path in golds)
    return Grounds(
        question=question,
        answers=answers,
        paths=golds,
        triples=tuple(facts.values()),
        starts=_starts(question, answers, golds, branched),
        passages=tuple(passages),
        is_branched=branched,
    )


def _starts(question: str, answers: Sequence[str], paths: Sequence[Path], branched: bool) -> tuple[str, ...]:
    """Find the path's entities that the question names; the roots if it names none or the paths branch.

    The answer is none, but where it is one of the sides that a question chooses from: a root.
    """
    ends = dict.fromkeys(end for path in paths for end in ends_of(path))
    roots = [t.head for path in paths for t in path if not any(is_same(t.head, earlier.tail) for earlier in path)]
    mentioned = [end for end in ends if _names(question, end)]
    candidates = dict.fromkeys([*mentioned, *(roots if branched or not mentioned else ())])
    sides = roots if branched else ()
    return tuple(end for end in candidates if end in sides or not any(is_same(end, a) for a in answers))


def _names(question: str, name: str) -> bool:
    bare = without_qualifier(name)
    texts = dict.fromkeys((question, _POSSESSIVE.sub("", question)))
    return any(holds(text, form) for text in texts for form in (bare, bare.partition(",")[0]))


def onward(triple: Triple, place: str) -> Iterator[str]:
    """Yield the other end of a fact that has ``place`` at one of its ends; else nothing."""
    if is_same(triple.head, place):
        yield triple.tail
    if is_same(triple.tail, place):
        yield triple.head


def ends_like(path: Iterable[Triple], answers: Sequence[str]) -> tuple[str, ...]:
    """The entities of a path that are one of the answers, else those that are like one."""
    ends, keys = ends_of(path), _keys(tuple(answers))
    if exact := tuple(end for end in ends if entity_key(end) in keys):
        return exact  # most often, and soon told where a graph has many answers
    alikes = (
        tuple(end for end in ends if any(alike(end, answer) for answer in answers)) for alike in (is_same, is_alike)
    )
    return next(filter(None, alikes), ())


@lru_cache(maxsize=1024)
def _keys(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(entity_key, names))


def _leads(path: Path, answers: Sequence[str]) -> bool:
    """Whether a path is a walk that ends at the answer, if it comes by the answer at all."""
    goals = ends_like(path, answers)
    return any(not goals or place in goals for place in _walked(path))


def is_walk(path: Path) -> bool:
    """Whether each fact starts where the one before it ended, whichever way they are told.

    >>> one, two = Triple("Dune", "director", "Ors"), Triple("Ors", "spouse", "Ana")
    >>> is_walk((one, two)), is_walk((one, Triple("Ford", "director", "Edo")))
    (True, False)
    """
    return bool(_walked(path))


def _walked(path: Path) -> set[str]:
    """Return the places where a walk along a path may end; none if it is no walk."""
    places = {path[0].head, path[0].tail}
    for triple in path[1:]:
        places = {end for place in places for end in onward(triple, place)}
    return places


@lru_cache(maxsize=4096)
def orders(path: Path) -> tuple[Path, ...]:
    """The orders in which a branched path may be told, the given one first (120 at most).

    A fact comes after those of the path, told before it, that it starts from.

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
