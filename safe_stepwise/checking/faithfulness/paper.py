"""Judges a chain by the rule of direct evaluation (arXiv 2402.11199, 3.2), with printing errors corrected.

Retrieval matches each step to a triple (Algorithm 1). Then the rule checks, in this order, factual errors, the order
of the path, and whether the path leads to the answer (Algorithm 2). Where the paper is unclear, we decide:

- The score compared with σ is τ̃ (the text of 3.2.1), not τ (Algorithm 2); ``raw`` takes τ.
- The order is checked, though Algorithm 2's ``continue`` makes it unreachable. Direction does not count, as inverse
  triples are accepted (Table 8): the path is a walk that enters each triple by the end at which it left the one
  before. A repeated fact is skipped (Table 8, case 1).
- A walk must reach the answer ("connects the question and answer entities", 3.2.2): the right answer if it is on the
  path, else the given one. So a path in reverse is incoherent, and case 2 of Table 8 lacks its last fact.
- A comparison is not a walk, so that Algorithm 2 could call none faithful. Here each of its steps continues from an
  entity of the question or of an earlier step; as in the paper, missing branches are not noticed.
- ``path`` ignores whether the given answer is right. In case 3 of Table 8 it is wrong: the paper prints correct
  reasoning, Algorithm 2 calls it an answer error.

The rule stays as weak as it is: it takes the triple nearest to a step for what the step says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise

from rapidfuzz.fuzz import partial_ratio, ratio

from safe_stepwise.checking.faithfulness import grounds as nouns
from safe_stepwise.checking.faithfulness.grounds import Chain, ChainVerdict, Fault, Grounds, Path, StepVerdict
from safe_stepwise.checking.faithfulness.retrieval import Retrieval, verbalise, words
from safe_stepwise.language.text import words_of
from safe_stepwise.records import Triple

SIGMA = 0.7
"""The paper's threshold σ (3.2.2)."""
_MAX_NAME = 200  # characters of a name that are looked for, as time grows with them; no benchmark has more
_TOP_TRIPLES = 10  # triples that a step is compared with (Algorithm 1's K)


def judge(
    grounds: Grounds, chain: Chain, *, retrieval: Retrieval = words, sigma: float = SIGMA, raw: bool = False
) -> ChainVerdict:
    """Judge a chain by Algorithms 1 and 2; `judge_chain` adds the edits.

    Each step of the verdict has the triple it was matched to and the score (0-1): τ̃, or τ if ``raw``. A score below
    ``sigma`` is a factual fault. Steps in ``chain.concluding`` are skipped. A chain without other steps, and a
    question without graph or path, are ``unjudgeable``.

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
    matches = _match_triples(grounds.triples, [chain.steps[n] for n in stating], retrieval, raw)
    steps = [StepVerdict() for _ in chain.steps]
    for n, (triple, score) in zip(stating, matches, strict=True):
        steps[n] = StepVerdict((triple,), "factual" if score < sigma else "", score)
    fault: Fault = "factual" if any(step.fault for step in steps) else ""
    if not fault:
        place, fault = _order_fault(grounds, chain.answer, steps)
        if place is not None:
            steps[place] = replace(steps[place], fault="order")
    first = next((number for number, step in enumerate(steps, 1) if step.fault), None)
    path: nouns.Verdict = "unfaithful" if fault else "faithful"
    return ChainVerdict("paper", path, right, tuple(steps), fault, first)


def _match_triples(
    triples: Sequence[Triple], texts: Sequence[str], retrieval: Retrieval, raw: bool
) -> Iterator[tuple[Triple, float]]:
    """Yield the best triple for each text (Algorithm 1) with its score (0-1); the first of equals."""
    for text, row in zip(texts, retrieval(texts, [*map(verbalise, triples)]), strict=True):
        top = nlargest(_TOP_TRIPLES, range(len(triples)), key=row.__getitem__)
        text_words = words_of(text)
        scores = {n: row[n] for n in top}
        if not raw:  # τ̃ (Eq. 2)
            ends = {n: (_presence(triples[n].head, text_words), _presence(triples[n].tail, text_words)) for n in top}
            scores = {n: (row[n] + head + tail) / 3 for n, (head, tail) in ends.items()}
        best = max(top, key=scores.__getitem__)
        yield triples[best], float(scores[best])


@lru_cache(maxsize=65536)
def _presence(name: str, text: str) -> float:
    """Return how well a text contains a name (0-1); a name longer than the text is compared in full."""
    name = words_of(name)[:_MAX_NAME]
    if not name or not text:
        return 0.0
    compared = partial_ratio if len(name) <= len(text) else ratio
    return compared(name, text) / 100


def _order_fault(grounds: Grounds, answer: str, steps: Sequence[StepVerdict]) -> tuple[int | None, Fault]:
    """Return the step (from 0) that breaks the path, or None, and the path's fault."""
    numbers_by_fact: dict[tuple[str, str, str], int] = {}
    for number, step in enumerate(steps):
        if step.triples:
            numbers_by_fact.setdefault(nouns.fact_of(step.triples[0]), number)
    numbers = list(numbers_by_fact.values())
    path = tuple(steps[number].triples[0] for number in numbers)
    if grounds.is_branched:
        place = _unconnected_place(path, grounds.starts)
    else:
        goals = nouns.ends_like(path, grounds.answers) or nouns.ends_like(path, [answer])
        place = _broken_place(path, goals)
        if place is None and not goals and any(nouns.ends_like(p, grounds.answers) for p in grounds.paths):
            return None, "missing"
    return (None, "") if place is None else (numbers[place], "order")


def _unconnected_place(path: Path, starts: Sequence[str]) -> int | None:
    """Return the place of the first triple with no end known from the question or an earlier step; else None."""
    reached = dict.fromkeys(starts)
    for place, triple in enumerate(path):
        ends = (triple.head, triple.tail)
        if not any(nouns.is_same(end, name) for end in ends for name in reached):
            return place
        reached |= dict.fromkeys(ends)
    return None


def _broken_place(path: Path, goals: Sequence[str]) -> int | None:
    """Return the place where a path stops being a walk, or its last place if it reaches no goal; else None."""
    first = path[0]
    # The entities where the walk may be, each with whether it has passed a goal.
    states = {(end, end in goals) for end in (first.head, first.tail)}
    for place, triple in enumerate(path[1:], 1):
        states = {(end, at_goal or end in goals) for name, at_goal in states for end in nouns.onward(triple, name)}
        if not states:
            return place
    if not goals or any(at_goal for _, at_goal in states):
        return None
    turns = (n for n, (a, b) in enumerate(pairwise(path), 1) if not nouns.is_same(a.tail, b.head))
    return next(turns, len(path) - 1)
