"""A row's traits are the bands of its overlap with the passages, and the manner of its step."""

from __future__ import annotations

import pytest

from builders.steps.overlap import BANDS, LIMITS, WEIGHTS, keep_limits, traits
from builders.steps.rows import StepRow
from safe_stepwise.records import Feedback, Passage, Question, Step, StepKind

PAGE = Passage("Oru", ("Oru is a town in Kelvia, by the river Lom, and was built of stone.",))
ASKED = Question("q", "b", "train", "Where is Oru?", "Kelvia", passages=(PAGE,))


def bands_of(text: str, kind: StepKind = "Attribution") -> dict[str, int]:
    """The band of each measure, from 0."""
    row = StepRow(ASKED, (), Step(1, text, kind), Feedback("Correct", "So.", ""), "ideal", "hand")
    names = [name for name, bounds in BANDS.items() for _ in range(len(bounds) + 1)]
    places = [band for bounds in BANDS.values() for band in range(len(bounds) + 1)]
    return {names[trait]: places[trait] for trait in traits(row)}


def test_an_attribution_has_a_band_of_every_measure_but_calculation() -> None:
    bands = bands_of("According to Passage 1, Oru lies in Kelvia.")
    assert set(bands) == BANDS.keys() - {"calculation"}
    assert (bands["opening"], bands["quotation"], bands["sentences"], bands["long run"]) == (1, 0, 0, 0)
    copied = bands_of("Passage 1 says: “Oru is a town in Kelvia, by the river Lom.” It was J. Velt who said so.")
    assert (copied["opening"], copied["quotation"], copied["sentences"], copied["long run"]) == (0, 1, 1, 1)
    assert copied["copied words"] > bands["copied words"]


def test_a_deduction_calculates_or_does_not() -> None:
    assert bands_of("1901 (Step 1) is 12 years before 1913 (Step 2).", "Logical") == {"calculation": 1}
    assert bands_of("From Step 1, the answer is 1901.", "Logical") == {"calculation": 0}
    assert bands_of("####ANSWER: 12 years", "Final Answer") == {}


@pytest.mark.parametrize("share", [0.05, 0.3, 0.95])
def test_shares_are_moved_into_their_limits_and_still_sum_to_one(share: float) -> None:
    numbers = iter(range(1000))
    traits_by_name = {name: [next(numbers) for _ in range(len(bounds) + 1)] for name, bounds in BANDS.items()}
    shares: dict[int, float] = {}
    for own in traits_by_name.values():
        shares |= dict.fromkeys(own[:-1], (1 - share) / (len(own) - 1)) | {own[-1]: share}
    kept = keep_limits(shares)
    for name, own in traits_by_name.items():
        assert sum(kept[trait] for trait in own) == pytest.approx(1)
        assert (set(own) <= WEIGHTS.keys()) == (name in LIMITS)
        if name in LIMITS:
            assert LIMITS[name][0] <= kept[own[1]] <= LIMITS[name][1]
        if name not in LIMITS:
            assert [kept[trait] for trait in own] == [shares[trait] for trait in own]
