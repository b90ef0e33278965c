"""The rule of direct evaluation (arXiv 2402.11199, 3.2), with the errors of its print mended.

Each step stands for the triple that retrieval finds for it (Algorithm 1); then come, in this order, factual errors,
the order of the path, and whether it leads to the answer (Algorithm 2). What the print leaves open is decided so:

- The score that is held against σ is τ̃ (3.2.1's text), not τ (Algorithm 2); ``raw`` takes τ.
- The order, unreachable behind Algorithm 2's ``continue``, is checked. It goes by no direction, as inverse triples are
  accepted (Table 8): the path is a walk that enters each triple by the end at which it left the one before. A fact
  told again is passed over (Table 8, case 1).
- A walk has to come to the answer ("connects the question and answer entities", 3.2.2), the right one if it is on the
  path, else the one given: so a path told backwards is incoherent, and case 2 of Table 8 lacks its last fact.
- A comparison is no walk, and under Algorithm 2 none could be faithful. Here each of its steps goes on from what the
  question names or from what a step before it found; as in the paper, nothing asks whether all branches were told.
- ``path`` leaves apart whether the answer given is right: that of case 3 of Table 8 is not, which the paper prints as
  correct reasoning and Algorithm 2 calls an answer error.

The rule is kept as weak as it is: it takes the triple nearest to a step for what the step says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise

from rapidfuzz.fuzz import partial_ratio, ratio

from safe_stepwise.checking.faithfulness import grounds as nouns
from safe_stepwise.checking.faithfulness.grounds import Chain, ChainVerdict, Fault, Grounds, Path, StepVerdict
from safe_stepwise.checking.faithfulness.retrieval import Retrieval, verbalised, words
from safe_stepwise.language.text import words_of
from safe_stepwise.records import Triple

SIGMA = 0.7
"""The paper's threshold σ (3.2.2)."""
_LONGEST = 200  # letters of a name that are looked for, more than a benchmark's have: time grows with them
_TOP = 10  # triples that a step is held against (Algorithm 1's K)


def judge(
    grounds: Grounds, chain: Chain, *, retrieval: Retrieval = words, sigma: float = SIGMA, raw: bool = False
) -> ChainVerdict:
    """Judge a chain by Algorithms 1 and 2, without edits, which `judge_chain` adds.

    Each step of the verdict has the triple it was matched to and its score: τ̃, or τ where
    ``raw``; those that are known to conclude (``chain.concluding``) state no triple and are passed
    over. A chain without steps and a question without graph or path are ``unjudgeable``.

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
    right = any(nouns.is_alike(chain.answer, answer) for answer in grounds.answers)
    stating = [n for n in range(len(chain.steps)) if n + 1 not in chain.concluding]
    if not (stating and grounds.triples and grounds.paths):
        return ChainVerdict("paper", "unjudgeable", right, fault="unread")
    matches = _matched(grounds.triples, [chain.steps[n] for n in stating], retrieval, raw)
    steps = [StepVerdict() for _ in chain.steps]
    for n, (triple, score) in zip(stating, matches, strict=True):
        steps[n] = StepVerdict((triple,), "factual" if score < sigma else "", score)
    fault: Fault = "factual" if any(step.fault for step in steps) else ""
    if not fault:
        place, fault = _out_of_order(grounds, chain.answer, steps)
        if place is not None:
            steps[place] = replace(steps[place], fault="order")
    first = next((number for number, step in enumerate(steps, 1) if step.fault), None)
    path: nouns.Verdict = "unfaithful" if fault else "faithful"
    return ChainVerdict("paper", path, right, tuple(steps), fault, first)


def _matched(
    triples: Sequence[Triple], texts: Sequence[str], retrieval: Retrieval, raw: bool
) -> Iterator[tuple[Triple, float]]:
    """The triple of each text (Algorithm 1), with its score; of equals the first."""
    for text, row in zip(texts, retrieval(texts, [*map(verbalised, triples)]), strict=True):
        top = nlargest(_TOP, range(len(triples)), key=row.__getitem__)
        text_words = words_of(text)
        scores = {n: row[n] for n in top}
        if not raw:  # τ̃ (Eq. 2)
            ends = {n: (_presence(triples[n].head, text_words), _presence(triples[n].tail, text_words)) for n in top}
            scores = {n: (row[n] + head + tail) / 3 for n, (head, tail) in ends.items()}
        best = max(top, key=scores.__getitem__)
        yield triples[best], float(scores[best])


@lru_cache(maxsize=65536)
def _presence(name: str, text: str) -> float:
    """How far a name stands in a text (0-1): what of a longer name is not in it counts against."""
    name = words_of(name)[:_LONGEST]
    if not name or not text:
        return 0.0
    compared = partial_ratio if len(name) <= len(text) else ratio
    return compared(name, text) / 100


def _out_of_order(grounds: Grounds, answer: str, steps: Sequence[StepVerdict]) -> tuple[int | None, Fault]:
    """Which step (from 0) breaks the path, None if none, and the path's fault."""
    numbers_by_fact: dict[tuple[str, str, str], int] = {}
    for number, step in enumerate(steps):
        if step.triples:
            numbers_by_fact.setdefault(nouns.fact_of(step.triples[0]), number)
    numbers = list(numbers_by_fact.values())
    path = tuple(steps[number].triples[0] for number in numbers)
    if grounds.is_branched:
        place = _stray(path, grounds.starts)
    else:
        goals = nouns.ends_like(path, grounds.answers) or nouns.ends_like(path, [answer])
        place = _astray(path, goals)
        if place is None and not goals and any(nouns.ends_like(p, grounds.answers) for p in grounds.paths):
            return None, "missing"
    return (None, "") if place is None else (numbers[place], "order")


def _stray(path: Path, starts: Sequence[str]) -> int | None:
    """Return the place of the first triple with no end known from the question or an earlier step; else None."""
    reached = dict.fromkeys(starts)
    for place, triple in enumerate(path):
        ends = (triple.head, triple.tail)
        if not any(nouns.is_same(end, name) for end in ends for name in reached):
            return place
        reached |= dict.fromkeys(ends)
    return None


def _astray(path: Path, goals: Sequence[str]) -> int | None:
    """Return the place where a path stops being a walk, or its last place if it reaches no goal; else None."""
    first = path[0]
    # Where the walk may stand, and whether it has come to a goal.
    states = {(end, end in goals) for end in (first.head, first.tail)}
    for place, triple in enumerate(path[1:], 1):
        states = {(end, at_goal or end in goals) for name, at_goal in states for end in nouns.onward(triple, name)}
        if not states:
            return place
    if not goals or any(at_goal for _, at_goal in states):
        return None
    turns = (n for n, (a, b) in enumerate(pairwise(path), 1) if not nouns.is_same(a.tail, b.head))
    return next(turns, len(path) - 1)
