"""Finds further triples that the steps of an unconnected chain state, by dynamic programming.

The paper matches each step to one triple and leaves several to future work (arXiv 2402.11199, footnote 2). Here, each
step keeps its nearest triple, and may get others that it is similar to as well, so that all together make one walk to
a goal: the fewest triples; ties go to the highest sum of scores.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, permutations, product

from safe_stepwise.checking.faithfulness.grounds import Path, fact_of, onward
from safe_stepwise.records import Triple

ScoredTriple = tuple[Triple, float]
MAX_TRIPLES = 3
"""The maximum number of triples of a step."""
State = tuple[str | None, bool]
"""The entity where a walk may be (None before it begins), and whether it has passed a goal."""
_Choice = tuple[int, float, tuple[Path, ...]]
"""The number of triples so far, the negated sum of their scores, and the triples of each step."""


def join_steps(steps: Sequence[Sequence[ScoredTriple]], goals: Collection[str]) -> tuple[Path, ...]:
    """Return the triples of each step that together make a walk to a goal; () if there is no such walk.

    Each step has its candidates, the nearest first. A candidate that is the nearest of a step goes to no other step.
    """
    nearest = {fact_of(candidates[0][0]) for candidates in steps}
    best: dict[State, _Choice] = {(None, False): (0, 0.0, ())}
    for first, *others in steps:
        further = [candidate for candidate in others if fact_of(candidate[0]) not in nearest]
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
    chosen = [(first, *others) for size in range(MAX_TRIPLES) for others in combinations(further, size)]
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
    for end in (path[0].head, path[0].tail) if place is None else onward(path[0], place):
        yield from walk((end, at_goal or end in goals), path[1:], goals)
