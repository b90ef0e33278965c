"""The nouns: what a question gives to judge its chains by, and what a judged chain comes to."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from safe_stepwise.records import Passage, Triple

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
    """What one question gives to judge its chains by.

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
    """What one step comes to under a rule.

    ``triples``: what it was matched to (paper) or states (house); ``score``: the paper's, 0-1.
    """

    triples: tuple[Triple, ...] = ()
    fault: Fault = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """What a chain comes to under a rule; ``path`` leaves the answer out of account.

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
