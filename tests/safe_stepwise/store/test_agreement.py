from __future__ import annotations

from collections import Counter

import pytest

from safe_stepwise.store import boundary
from safe_stepwise.store.agreement import Bin, Outcome, measure_agreement


def test_precision_and_recall_are_of_all_rows_and_bins_of_those_that_were_judged() -> None:
    seen: Counter[Outcome] = Counter(
        {
            (True, "wrong_answer", 0.95): 3,
            (False, "missing_evidence", 0.6): 1,
            (True, "none", 0.6): 2,
            (False, "none", 1.0): 5,
            (True, "unparsed", 0.0): 1,
        }
    )
    found = measure_agreement(seen)
    assert (found.rows, found.noise, found.found) == (12, 6, 4)
    assert (found.precision, found.recall, found.f1) == (0.75, 0.5, 0.6)
    assert found.calibration == (Bin("0.9 to 1", 3, 3, 5, 5), Bin("0.5 to 0.7", 1, 0, 2, 0))
    assert boundary.read(type(found), found) == found


@pytest.mark.parametrize(
    ("confidence", "name"),
    [
        (1.0, "0.9 to 1"),
        (0.9, "0.9 to 1"),
        (0.89999, "0.7 to 0.9"),
        (0.7, "0.7 to 0.9"),
        (0.5, "0.5 to 0.7"),
        (0.49, "under 0.5"),
        (0.0, "under 0.5"),
        (None, "not said"),
    ],
)
def test_every_confidence_is_in_one_bin(confidence: float | None, name: str) -> None:
    (one,) = measure_agreement({(True, "none", confidence): 1}).calibration
    assert one == Bin(name, 0, 0, 1, 0)


def test_nothing_seen_is_nothing_to_divide_by() -> None:
    found = measure_agreement({})
    assert (found.rows, found.precision, found.recall, found.f1) == (0, 0, 0, 0)
    assert found.calibration == ()
