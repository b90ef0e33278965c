"""How far people's derivations are from each other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.records import Passage, Question, Step
from studies.calibration.reading import annotator_distances, distance, trajectory_distance, trajectory_sentences

A, B, C = ("Oru", 0), ("Oru", 1), ("Vel", 0)


def independent(one: Sequence[object], other: Sequence[object]) -> int:
    """Edits, by the recursion that defines them."""
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return independent(one[1:], other[1:])
    pairs = ((one[1:], other), (one, other[1:]), (one[1:], other[1:]))
    return 1 + min(independent(*pair) for pair in pairs)


@given(*[st.lists(st.sampled_from([A, B, C]), max_size=5)] * 2)
def test_the_distance_is_the_edits_over_the_longer(one: list[object], other: list[object]) -> None:
    longer = max(len(one), len(other), 1)
    assert distance(one, other) == pytest.approx(independent(one, other) / longer)


def test_people_are_held_against_the_others() -> None:
    first, _, third, all_ = annotator_distances([[(A, C), (A, C), (C, A)]])
    assert (first.mean, first.nearest, first.pairs) == (0.5, 0.0, 2)
    assert (third.mean, third.unordered) == (1.0, 0.0)
    assert all_.mean == pytest.approx(2 / 3, abs=1e-6)


def test_a_sentence_told_twice_counts_once_where_asked() -> None:
    *_, all_ = annotator_distances([[(A, A, C), (A, C)]])
    assert (all_.mean, all_.once) == (pytest.approx(1 / 3, abs=1e-6), 0.0)


def test_trajectories_are_held_against_two_people_at_a_time() -> None:
    people = {"q": [(A, C), (C, A), (A, C)], "untold": [(A,), (B,), (C,)]}
    found = trajectory_distance(people, {"q": (A, C)})
    assert (found.pairs, found.mean, found.nearest) == (6, pytest.approx(1 / 3, abs=1e-6), 0.0)


def test_a_step_stands_for_the_sentence_it_quotes() -> None:
    pages = (Passage("Oru", ("Oru is a town.", "It lies on the river Vel.")), Passage("Vel", ()))
    asked = Question("q", "b", "train", "Where?", "Vel", passages=pages)
    steps = [
        Step(1, "Passage 1 says that Oru lies on the river Vel.", "Attribution"),
        Step(2, "So it is the Vel.", "Logical"),
    ]
    assert trajectory_sentences(asked, steps) == (("Oru", 1),)
    silent = Step(1, "Passage 2 names no town; nor does Passage 9.", "Attribution")
    assert trajectory_sentences(asked, [silent]) == ()
