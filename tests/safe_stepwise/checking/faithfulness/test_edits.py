"""Edits between paths, against an independent dynamic programme and the laws of a distance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.checking.faithfulness.grounds import Chain, StepVerdict, grounds_of_paths
from safe_stepwise.checking.faithfulness.judging import (
    count_edits,
    distance_to_gold,
    distance_to_nearest,
    judge_chain,
    path_of,
)
from safe_stepwise.records import Triple

paths = st.lists(st.integers(0, 5), max_size=8)


def aligned(one: Sequence[object], other: Sequence[object]) -> int:
    """Needleman and Wunsch's matrix with costs of 1, written without a look at the module."""
    best = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in range(len(one) + 1):
        for j in range(len(other) + 1):
            ways = [0] if i == j == 0 else []
            if i:
                ways.append(best[i - 1][j] + 1)
            if j:
                ways.append(best[i][j - 1] + 1)
            if i and j:
                ways.append(best[i - 1][j - 1] + (one[i - 1] != other[j - 1]))
            best[i][j] = min(ways)
    return best[-1][-1]


def facts(rng: Random, longest: int = 7) -> list[Triple]:
    named = [f"E{n}" for n in range(4)]
    count = rng.randint(0, longest)
    return [Triple(rng.choice(named), rng.choice("rs"), rng.choice(named)) for _ in range(count)]


def test_a_thousand_random_paths() -> None:
    rng = Random(16)
    counts = []
    for _ in range(1000):
        told, golds = facts(rng), [facts(rng) for _ in range(rng.randint(1, 3))]
        count = min(aligned(told, gold) for gold in golds)
        least = min(
            aligned(told, gold) / (max(len(told), len(gold)) or 1) for gold in golds if aligned(told, gold) == count
        )
        assert distance_to_nearest(told, golds) == (count, pytest.approx(least))
        counts.append(count)
    assert set(counts) >= {0, 1, 2, 3, 4, 5, 6}


@given(paths, paths, paths)
def test_it_is_a_distance(one: list[int], other: list[int], third: list[int]) -> None:
    assert count_edits(one, other) == count_edits(other, one)
    assert (count_edits(one, other) == 0) == (one == other)
    assert count_edits(one, third) <= count_edits(one, other) + count_edits(other, third)
    assert abs(len(one) - len(other)) <= count_edits(one, other) <= max(len(one), len(other))


@given(st.lists(st.sampled_from([-1, -2, 0, 2**61 - 1, "a", ("a",)]), max_size=5), st.data())
def test_equal_hashes_are_not_equal_facts(one: list[object], data: st.DataObject) -> None:
    other = data.draw(st.permutations(one))
    assert count_edits(one, other) == aligned(one, other)


def test_the_minimum_starts_at_infinity() -> None:
    assert distance_to_nearest("ab", ["cd"]) == (2, 1.0)
    assert distance_to_nearest("ab", []) is None


ONE = Triple("Dune Rain", "director", "Ors Velt", 1)
TWO = Triple("Ors Velt", "spouse", "Ana Vorr", 2)
FILM = Triple("Tin Ford", "director", "Edo Marn", 3)
WED = Triple("Edo Marn", "spouse", "Mara Lind", 4)


def test_a_fact_told_again_is_told_once_and_a_faulty_step_tells_none() -> None:
    elsewhere = Triple("The Dune Rain", "director", "Ors Velt")
    assert len(path_of([StepVerdict((ONE,)), StepVerdict((elsewhere,)), StepVerdict((TWO,))])) == 2
    assert path_of([StepVerdict((ONE,), "factual", 0.5)]) != path_of([StepVerdict((ONE,))])
    both = path_of([StepVerdict((ONE,), "factual")])  # states one, and something false besides
    assert len(both) == 2
    assert path_of([StepVerdict((ONE,), "order", 0.9)]) == path_of([StepVerdict((ONE,))])


def test_a_step_that_concludes_costs_nothing() -> None:
    grounds = grounds_of_paths("Who married Dune Rain's director?", ["Ana Vorr"], [[ONE, TWO]])
    steps = [StepVerdict((ONE,)), StepVerdict((TWO,)), StepVerdict()]
    assert distance_to_gold(grounds, steps) == (0, 0.0)


def test_branches_are_told_in_any_order_but_each_in_its_own() -> None:
    path = [ONE, TWO, FILM, WED]
    grounds = grounds_of_paths("Dune Rain or Tin Ford?", ["Dune Rain"], [path], compares=True)
    for told in ([FILM, WED, ONE, TWO], [ONE, FILM, WED, TWO], [FILM, ONE, TWO, WED]):
        assert distance_to_gold(grounds, [StepVerdict((fact,)) for fact in told]) == (0, 0.0)
    assert distance_to_gold(grounds, [StepVerdict((fact,)) for fact in (TWO, ONE, FILM, WED)]) == (2, 0.5)


def test_the_nearest_of_several_gold_paths() -> None:
    other = Triple("Dune Rain", "dedicated to", "Ana Vorr")
    asked = "Who is Dune Rain about?"
    grounds = grounds_of_paths(asked, ["Ana Vorr"], [[ONE, TWO], [other]])
    assert distance_to_gold(grounds, [StepVerdict((other,))]) == (0, 0.0)
    assert distance_to_gold(grounds, [StepVerdict((TWO,))]) == (1, 0.5)


def test_by_both_rules() -> None:
    grounds = grounds_of_paths("Who married Dune Rain's director?", ["Ana Vorr"], [[ONE, TWO]])
    one, two = "The director of Dune Rain is Ors Velt.", "The spouse of Ors Velt is Ana Vorr."
    for rule in ("paper", "house"):
        whole = judge_chain(grounds, Chain((one, two), "Ana Vorr"), rule)
        part = judge_chain(grounds, Chain((one,), "Ana Vorr"), rule)
        assert (whole.edits, whole.distance) == (0, 0.0), rule
        assert (part.edits, part.distance) == (1, 0.5), rule
