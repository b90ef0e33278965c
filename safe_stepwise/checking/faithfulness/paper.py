"""The rule of direct evaluation (arXiv 2402.11199, 3.2), with the errors of its print mended.

Each step stands for the triple that retrieval finds for it (Algorithm 1); then come, in this order,
factual errors, the order of the path, and whether it leads to the answer (Algorithm 2). What the
print leaves open is decided so:

- The score that is held against σ is τ̃ (3.2.1's text), not τ (Algorithm 2); ``raw`` takes τ.
- The order, unreachable behind Algorithm 2's ``continue``, is checked. It goes by no direction, as
  inverse triples are accepted (Table 8): the path is a walk that enters each triple by the end at
  which it left the one before. A fact told again is passed over (Table 8, case 1).
- A walk has to come to the answer ("connects the question and answer entities", 3.2.2), the right
  one if it is on the path, else the one given: so a path told backwards is incoherent, and case 2
  of Table 8 lacks its last fact.
- A comparison is no walk, and under Algorithm 2 none could be faithful. Here each of its steps goes
  on from what the question names or from what a step before it found; as in the paper, nothing asks
  whether all branches were told.
- ``path`` leaves apart whether the answer given is right: that of case 3 of Table 8 is not, which
  the paper prints as correct reasoning and Algorithm 2 calls an answer error.

The rule is kept as weak as it is: it takes the triple nearest to a step for what the step says.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise

from rapidfuzz.fuzz import partial_ratio, ratio

from safe_stepwise.checking.faithfulness.chains import (
    Chain,
    ChainVerdict,
    Fault,
    Grounds,
    Path,
    StepVerdict,
    Verdict,
)
from safe_stepwise.checking.faithfulness.grounds import onward
from safe_stepwise.checking.faithfulness.names import fact_of, is_alike, is_same
from safe_stepwise.checking.faithfulness.retrieval import Retrieval, verbalised, words
from safe_stepwise.language.text import words_of
from safe_stepwise.records import Triple

SIGMA = 0.7
"""The paper's threshold σ (3.2.2 and FAITHFULNESS's calibration)."""
_LONGEST = 200
"""Letters of a name that are looked for: no name of a benchmark is longer, and time grows with it."""
_TOP = 10
"""Triples that a step is held against (Algorithm 1's K)."""


def judge(
    grounds: Grounds,
    chain: Chain,
    *,
    retrieval: Retrieval = words,
    sigma: float = SIGMA,
    raw: bool = False,
) -> ChainVerdict:
    """What a chain comes to by Algorithms 1 and 2, without edits, which `judge_chain` adds.

    Each step of the verdict has the triple it was matched to and its score: τ̃, or τ where
    ``raw``. A chain without steps and a question without graph or path are ``unjudgeable``.

    >>> from safe_stepwise.checking.faithfulness.grounds import grounds_of_paths
    >>> path = [Triple("Dune Rain", "director", "Ors Velt"), Triple("Ors Velt", "spouse", "Ana")]
    >>> grounds = grounds_of_paths("Who married Dune Rain's director?", ["Ana"], [path])
    >>> told = ("The director of Dune Rain is Ors Velt.", "Ors Velt's spouse is Ana.")
    >>> judge(grounds, Chain(told, "Ana")).path
    'faithful'
    >>> backwards = judge(grounds, Chain(told[::-1], "Ana"))
    >>> backwards.path, backwards.fault, backwards.first
    ('unfaithful', 'order', 2)
    """
    right = any(is_alike(chain.answer, answer) for answer in grounds.answers)
    if not (chain.steps and grounds.triples and grounds.paths):
        return ChainVerdict("paper", "unjudgeable", right, fault="unread")
    found = _matched(grounds.triples, chain.steps, retrieval, raw)
    steps = tuple(replace(s, fault="factual") if _score(s) < sigma else s for s in found)
    fault: Fault = "factual" if any(step.fault for step in steps) else ""
    if not fault:
        steps, fault = _ordered(grounds, chain.answer, steps)
    first = next((number for number, step in enumerate(steps, 1) if step.fault), None)
    path: Verdict = "unfaithful" if fault else "faithful"
    return ChainVerdict("paper", path, right, steps, fault, first)


def _score(step: StepVerdict) -> float:
    assert step.score is not None
    return step.score


def _matched(
    triples: Sequence[Triple], texts: Sequence[str], retrieval: Retrieval, raw: bool
) -> list[StepVerdict]:
    """The triple of each step (Algorithm 1); of equals the first, which are those of gold."""
    rows = retrieval(texts, [verbalised(triple) for triple in triples])
    found = []
    for text, row in zip(texts, rows, strict=True):
        top = nlargest(_TOP, range(len(triples)), key=row.__getitem__)
        scores = [row[n] if raw else _weighed(row[n], triples[n], text) for n in top]
        best = max(range(len(top)), key=scores.__getitem__)
        found.append(StepVerdict((triples[top[best]],), score=float(scores[best])))
    return found


def _weighed(similarity: float, triple: Triple, text: str) -> float:
    """τ̃ (Eq. 2)."""
    said = words_of(text)
    return (similarity + _presence(triple.head, said) + _presence(triple.tail, said)) / 3


@lru_cache(maxsize=65536)
def _presence(name: str, said: str) -> float:
    """How far a name stands in a text (0-1): what of a longer name is not in it counts against."""
    name = words_of(name)[:_LONGEST]
    if not name or not said:
        return 0.0
    compared = partial_ratio if len(name) <= len(said) else ratio
    return compared(name, said) / 100


def _ordered(
    grounds: Grounds, answer: str, steps: tuple[StepVerdict, ...]
) -> tuple[tuple[StepVerdict, ...], Fault]:
    """The steps with those out of order, and what is wrong with the path, "" if nothing."""
    told: dict[tuple[str, str, str], int] = {}
    for number, step in enumerate(steps):
        told.setdefault(fact_of(step.triples[0]), number)
    numbers = list(told.values())
    path = tuple(steps[number].triples[0] for number in numbers)
    fault: Fault = ""
    if grounds.is_branched:
        place = _stray(path, grounds.starts)
    else:
        goals = _alike(path, grounds.answers) or _alike(path, [answer])
        place = _astray(path, goals)
        led = any(_alike(gold, grounds.answers) for gold in grounds.paths)
        fault = "missing" if led and not goals else ""
    if place is None:
        return steps, fault
    wrong = numbers[place]
    marked = replace(steps[wrong], fault="order")
    return (*steps[:wrong], marked, *steps[wrong + 1 :]), "order"


def _stray(path: Path, starts: Sequence[str]) -> int | None:
    """Where a branched path first tells of what neither the question nor a step before it names."""
    known = list(starts)
    for place, triple in enumerate(path):
        ends = (triple.head, triple.tail)
        if not any(is_same(end, name) for end in ends for name in known):
            return place
        known += ends
    return None


def _alike(path: Path, answers: Sequence[str]) -> tuple[str, ...]:
    """The ends of a path's facts that are one of the answers, else those that are like one."""
    ends = dict.fromkeys(end for t in path for end in (t.head, t.tail))
    found = [
        tuple(end for end in ends if any(alike(end, answer) for answer in answers))
        for alike in (is_same, is_alike)
    ]
    return found[0] or found[1]


def _astray(path: Path, goals: Sequence[str]) -> int | None:
    """Where a path is no walk any more, or the last step of one that comes to no goal."""
    first = path[0]
    # Where the walk may stand, and whether it has come to a goal.
    states = {(end, end in goals) for end in (first.head, first.tail)}
    for place, triple in enumerate(path[1:], 1):
        states = {
            (end, came or end in goals) for name, came in states for end in onward(triple, name)
        }
        if not states:
            return place
    if not goals or any(came for _, came in states):
        return None
    turns = (n for n, (a, b) in enumerate(pairwise(path), 1) if not is_same(a.tail, b.head))
    return next(turns, len(path) - 1)
