"""Judges a chain by the rule of direct evaluation (arXiv 2402.11199, 3.2), with printing errors corrected.

Retrieval matches each step to a triple (Algorithm 1). Then the rule checks, in this order, factual errors, the order
of the path, and whether the path leads to the answer (Algorithm 2). Where the paper is unclear, we decide:

- The score compared with σ is τ̃ (the text of 3.2.1), not τ (Algorithm 2).
- The order is checked, though Algorithm 2's ``continue`` makes it unreachable. Direction does not count, as inverse
  triples are accepted (Table 8): the path is a walk that enters each triple by the end at which it left the previous
  one. A repeated fact is skipped (Table 8, case 1).
- A walk must reach the answer ("connects the question and answer entities", 3.2.2): the right answer if it is on the
  path, else the given one. So a path in reverse is incoherent, and case 2 of Table 8 lacks its last fact.
- A comparison is not a walk, so Algorithm 2 could not call any comparison faithful. Here each of its steps continues
  from an entity of the question or of an earlier step; as in the paper, missing branches are not noticed.
- A step may state several triples, which the paper leaves to future work (footnote 2). If the path is not in order,
  `join_steps` looks for further ones whose score reaches σ and whose ends a step names in full. If they mend the
  path, and such a step names nothing else, the path is faithful; no other verdict changes. The steps of a comparison
  keep one triple each.
- ``path`` ignores whether the given answer is right. In case 3 of Table 8 it is wrong: the paper prints correct
  reasoning, Algorithm 2 calls it an answer error.

The rule keeps its weakness: it assumes that a step says what the nearest triple says.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import nlargest
from itertools import combinations, pairwise, permutations, product

from rapidfuzz.fuzz import partial_ratio, ratio

from safe_stepwise.checking.faithfulness import grounds as nouns
from safe_stepwise.checking.faithfulness.grounds import Chain, ChainVerdict, Fault, Grounds, Path, StepVerdict
from safe_stepwise.checking.faithfulness.retrieval import Retrieval, verbalise, words
from safe_stepwise.graphs.path_order import end_key, find_unreached
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.language.text import normal_words
from safe_stepwise.records import Triple

SIGMA = 0.7
"""The paper's threshold σ (3.2.2)."""
_MAX_NAME_CHARS = 200  # of a name that is looked for, as time grows with them; no benchmark has more
_TOP_TRIPLES = 10  # triples that a step is compared with (Algorithm 1's K)
_MAX_JOINED = 3  # triples of one step
ScoredTriple = tuple[Triple, float]
State = tuple[str | None, bool]
"""The entity where a walk may be (None before it begins), and whether it has passed a goal."""
_Choice = tuple[int, float, tuple[Path, ...]]
"""The number of triples so far, the negated sum of their scores, and the triples of each step."""


def judge(grounds: Grounds, chain: Chain, *, retrieval: Retrieval = words, sigma: float = SIGMA) -> ChainVerdict:
    """Judge a chain by Algorithms 1 and 2; `judge_chain` adds the edits.

    Each step of the verdict has the triples it was matched to and the best score τ̃ (0-1). A score below ``sigma`` is a
    factual fault. Steps in ``chain.concluding`` are skipped. A chain without other steps, and a
    question without graph or path, are ``unjudgeable``.
    """
    answer_is_right = any(nouns.is_alike(chain.answer, answer) for answer in grounds.answers)
    stating = [n for n in range(len(chain.steps)) if n + 1 not in chain.concluding]
    if not (stating and grounds.triples and grounds.paths):
        return ChainVerdict("paper", "unjudgeable", answer_is_right, fault="unread")
    texts = [chain.steps[n] for n in stating]
    ranked = dict(zip(stating, _rank_triples(grounds.triples, texts, retrieval), strict=True))
    steps = [StepVerdict() for _ in chain.steps]
    for n, ((triple, score), *_) in ranked.items():
        steps[n] = StepVerdict((triple,), "factual" if score < sigma else "", score)
    fault: Fault = "factual" if any(step.fault for step in steps) else ""
    if not fault:
        place, fault = _find_order_fault(grounds, chain.answer, ranked)
        if fault and (joined := _mend_path(grounds, chain, ranked, sigma)):
            place, fault = None, ""
            steps = [replace(step, triples=joined.get(n, step.triples)) for n, step in enumerate(steps)]
        if place is not None:
            steps[place] = replace(steps[place], fault="order")
    first = next((number for number, step in enumerate(steps, 1) if step.fault), None)
    verdict: nouns.Verdict = "unfaithful" if fault else "faithful"
    return ChainVerdict("paper", verdict, answer_is_right, tuple(steps), fault, first)


def _rank_triples(
    triples: Sequence[Triple], texts: Sequence[str], retrieval: Retrieval
) -> Iterator[list[ScoredTriple]]:
    """Yield the top triples for each text (Algorithm 1) with their scores (0-1), the best first."""
    for text, row in zip(texts, retrieval(texts, [*map(verbalise, triples)]), strict=True):
        top = nlargest(_TOP_TRIPLES, range(len(triples)), key=row.__getitem__)
        text_words = normal_words(text)
        ends = {n: (_presence(triples[n].head, text_words), _presence(triples[n].tail, text_words)) for n in top}
        scores = {n: (row[n] + head + tail) / 3 for n, (head, tail) in ends.items()}  # τ̃ (Eq. 2)
        yield [(triples[n], float(scores[n])) for n in sorted(top, key=scores.__getitem__, reverse=True)]


@lru_cache(maxsize=65536)
def _presence(name: str, text: str) -> float:
    """Return how well a text contains a name (0-1); a name longer than the text is compared in full."""
    name = normal_words(name)[:_MAX_NAME_CHARS]
    if not name or not text:
        return 0.0
    compared = partial_ratio if len(name) <= len(text) else ratio
    return compared(name, text) / 100


def _find_order_fault(
    grounds: Grounds, answer: str, ranked: Mapping[int, Sequence[ScoredTriple]]
) -> tuple[int | None, Fault]:
    """Return the step (from 0) that breaks the path of the nearest triples, or None, and the path's fault."""
    numbers = _numbers_of_facts(ranked)
    path = tuple(ranked[number][0][0] for number in numbers)
    if grounds.is_branched:
        unreached = find_unreached(path, frozenset(map(end_key, grounds.starts)))
        place = None if unreached is None else unreached - 1
    else:
        goals = nouns.ends_like(path, grounds.answers) or nouns.ends_like(path, [answer])
        place = _find_broken_place(path, goals)
        if place is None and not goals and any(nouns.ends_like(p, grounds.answers) for p in grounds.paths):
            return None, "missing"
    return (None, "") if place is None else (numbers[place], "order")


def _mend_path(
    grounds: Grounds, chain: Chain, ranked: Mapping[int, Sequence[ScoredTriple]], sigma: float
) -> dict[int, Path]:
    """Return the triples of each step, by its number (from 0), that make a walk to the answer; {} if none do."""
    if grounds.is_branched:
        return {}
    numbers = _numbers_of_facts(ranked)

    def is_named(triple: Triple, step: str) -> bool:
        return nouns.holds(step, triple.head) and nouns.holds(step, triple.tail)

    named = [
        [first, *((t, score) for t, score in further if score >= sigma and is_named(t, chain.steps[number]))]
        for number, (first, *further) in ((number, ranked[number]) for number in numbers)
    ]
    triples = tuple(triple for pairs in named for triple, _ in pairs)
    goals = nouns.ends_like(triples, grounds.answers) or nouns.ends_like(triples, [chain.answer])
    joined = dict(zip(numbers, join_steps(named, goals), strict=False))
    ends_by_step = {n: nouns.ends_of(path) for n, path in joined.items() if len(path) > 1}
    names = ((name, ends) for n, ends in ends_by_step.items() for name in names_in_text(chain.steps[n]))
    return {} if any(not any(nouns.is_alike(name, end) for end in ends) for name, ends in names) else joined


def _numbers_of_facts(ranked: Mapping[int, Sequence[ScoredTriple]]) -> list[int]:
    """Return the numbers of the steps, without those whose nearest triple is that of an earlier step."""
    return sorted({nouns.fact_of(ranked[number][0][0]): number for number in sorted(ranked, reverse=True)}.values())


def _find_broken_place(path: Path, goals: Sequence[str]) -> int | None:
    """Return the place where a path stops being a walk, or its last place if it reaches no goal, or None."""
    states: set[State] = {(None, False)}
    for place, triple in enumerate(path):
        states = {state for earlier in states for state in walk(earlier, (triple,), goals)}
        if not states:
            return place
    if not goals or any(at_goal for _, at_goal in states):
        return None
    turns = (n for n, (a, b) in enumerate(pairwise(path), 1) if not nouns.is_same(a.tail, b.head))
    return next(turns, len(path) - 1)


def join_steps(steps: Sequence[Sequence[ScoredTriple]], goals: Collection[str]) -> tuple[Path, ...]:
    """Return the triples of each step that together make a walk to a goal; () if there is no such walk.

    The walk has the fewest triples; ties go to the highest sum of scores (dynamic programming). Each step has its
    candidates, the nearest first. A candidate that is the nearest of a step goes to no other step.
    """
    nearest = {nouns.fact_of(candidates[0][0]) for candidates in steps}
    best: dict[State, _Choice] = {(None, False): (0, 0.0, ())}
    for first, *others in steps:
        further = [candidate for candidate in others if nouns.fact_of(candidate[0]) not in nearest]
        best_after: dict[State, _Choice] = {}
        for (state, (count, cost, paths)), (path, score) in product(best.items(), _orders_with(first, further)):
            choice = (count + len(path), cost - score, (*paths, path))
            for state_after in walk(state, path, goals):
                if state_after not in best_after or choice[:2] < best_after[state_after][:2]:
                    best_after[state_after] = choice
        best = best_after
    ends = (choice for (_, at_goal), choice in best.items() if at_goal)
    return min(ends, key=lambda choice: choice[:2], default=(0, 0.0, ()))[2]


def _orders_with(first: ScoredTriple, further: Sequence[ScoredTriple]) -> list[tuple[Path, float]]:
    """List the orders of a step's nearest triple with up to two others, each with the sum of scores."""
    chosen = [(first, *others) for size in range(_MAX_JOINED) for others in combinations(further, size)]
    return [
        (tuple(triple for triple, _ in order), sum(score for _, score in order))
        for candidates in chosen
        for order in permutations(candidates)
    ]


def walk(state: State, path: Path, goals: Collection[str]) -> Iterator[State]:
    """Yield where a walk may be after the triples of a path."""
    if not path:
        yield state
        return
    place, at_goal = state
    for end in (path[0].head, path[0].tail) if place is None else nouns.onward(path[0], place):
        yield from walk((end, at_goal or end in goals), path[1:], goals)
