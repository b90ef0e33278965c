"""In which order KTO sees its rows: none beside another of its prompt."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.objectives import order_apart

PROMPTS = st.lists(st.integers(0, 6), max_size=40)


@given(PROMPTS, st.integers(2, 5), st.integers(0, 3))
def test_a_batch_has_no_prompt_twice(prompts: list[int], batch: int, seed: int) -> None:
    drawn = order_apart(prompts, 2, batch, seed)
    assert len(drawn) % batch == 0
    for start in range(0, len(drawn), batch):
        assert len({prompts[n] for n in drawn[start : start + batch]}) == batch
    # Of two epochs no row is seen more than twice, and as many batches are made as there can be.
    assert max(Counter(drawn).values(), default=0) <= 2
    most = 0
    while batch * (most + 1) <= sum(min(n, most + 1) for n in Counter(prompts).values()):
        most += 1
    assert len(drawn) == 2 * most * batch


def test_epochs_differ_and_a_part_of_one_is_a_part() -> None:
    prompts = [n // 4 for n in range(80)]
    whole = order_apart(prompts, 2, 4, seed=1)
    assert Counter(whole[:80]) == Counter(whole[80:]) == Counter(range(80))
    assert whole[:80] != whole[80:]
    assert order_apart(prompts, 0.5, 4, seed=1) == whole[:40]
    assert order_apart(prompts, 1, 4, seed=2) != whole[:80] == order_apart(prompts, 1, 4, seed=1)


@pytest.mark.parametrize("prompts", [[], [1], [1, 1, 1]])
def test_where_no_batch_can_be_made_none_is(prompts: list[int]) -> None:
    assert order_apart(prompts, 1, 2, seed=0) == []
