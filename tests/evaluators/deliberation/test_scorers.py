"""Each paper's rule against cases that were reckoned by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.deliberation.scorers import SCORERS, score_rog
from safe_stepwise.scoring import normalize_answer

CASES = json.loads(Path(__file__).with_name("scorer_cases.json").read_text(encoding="utf-8"))
names = st.lists(st.sampled_from(["Ana Brell", "ana brell", "Oru", "The Oru", "Edo", "?"]))


@pytest.mark.parametrize("rule", SCORERS)
@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_a_rule_gives_what_was_reckoned(rule: str, case: dict[str, Any]) -> None:
    hit, first, f1 = case[rule]
    found = SCORERS[rule](case["predicted"], case["gold"])
    assert (found.hit, found.hits_at_1) == (hit, first)
    assert found.f1 == (None if f1 is None else pytest.approx(f1))


@given(names, st.sets(st.sampled_from(["Ana Brell", "Oru", "Edo", "Vel"]), min_size=1))
def test_what_holds_of_every_rule(predicted: list[str], gold: set[str]) -> None:
    for rule in SCORERS.values():
        found = rule(predicted, gold)
        assert found.hits_at_1 <= found.hit <= 1
        assert found == rule(predicted, sorted(gold))
        if not predicted:
            assert (found.hit, found.hits_at_1, found.f1 or 0.0) == (0, 0, 0)
        if rule is not score_rog:
            assert found.f1 is None or found.f1 <= 1
    assert all(r(sorted(gold), gold).hits_at_1 == 1 for r in SCORERS.values())


@given(st.text())
def test_a_normalised_text_stays_as_it_is(text: str) -> None:
    assert normalize_answer(normalize_answer(text)) == normalize_answer(text)
