"""The measures of verdicts on paths, by hand and against their definitions."""

from __future__ import annotations

from statistics import mean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.paths.command import render_page
from evaluators.paths.quality import OUTCOMES, PAPER, UNREADABLE, JudgedPath, measure_quality
from safe_stepwise.records import FAILED
from safe_stepwise.store.names import CORRUPTIONS
from safe_stepwise.store.published_tables import published


def row(kind: Any, said: str, question: str = "q") -> JudgedPath:
    return JudgedPath("b", question, kind, said)


def test_a_constant_is_balanced_at_a_half() -> None:
    rows = [row(kind, "NO") for kind in CORRUPTIONS]
    found = measure_quality(rows)
    assert found["measures"]["balanced"] == 0.5
    assert found["measures"]["paper_mean"] == 0.75
    assert found["measures"]["accuracy"] == pytest.approx(8 / 9)
    assert measure_quality([row(k, "YES") for k in CORRUPTIONS])["measures"]["balanced"] == 0.5


def test_what_is_unreadable_is_in_no_accuracy() -> None:
    rows = [row("valid", "YES"), row("valid", UNREADABLE), row("reversed", FAILED)]
    found = measure_quality([*rows, row("reversed", "NO")])
    assert found["measures"]["balanced"] == found["measures"]["accuracy"] == 1.0
    assert found["measures"]["least"] == 0.5
    assert found["kinds"]["valid"]["unreadable"] == 1
    assert (found["said"][UNREADABLE], found["said"][FAILED]) == (1, 1)


def test_nothing_to_measure_is_none() -> None:
    found = measure_quality([row("valid", "YES")])
    assert found["measures"]["balanced"] is None
    assert found["measures"]["paper_mean"] is None
    assert found["intervals"]["balanced"] is None
    assert measure_quality([])["rows"] == 0


judged = st.builds(
    JudgedPath, st.sampled_from("ab"), st.sampled_from("pqr"), st.sampled_from(CORRUPTIONS), st.sampled_from(OUTCOMES)
)


@given(st.lists(judged, min_size=1, max_size=60))
def test_measures_are_what_they_are_said_to_be(rows: list[JudgedPath]) -> None:
    found = measure_quality(rows, resamples=50)
    read = [r for r in rows if r.verdict in ("YES", "NO")]

    def share(kinds: Any) -> float | None:
        of = [(r.verdict == "YES") == (r.kind == "valid") for r in read if r.kind in kinds]
        return mean(of) if of else None

    def means(shares: list[float | None]) -> Any:
        return None if None in shares else pytest.approx(mean(s for s in shares if s is not None))

    assert found["measures"]["paper_mean"] == means([share(of) for of in PAPER.values()])
    wrong = [kind for kind in CORRUPTIONS if kind != "valid"]
    assert found["measures"]["balanced"] == means([share(["valid"]), share(wrong)])
    assert found["measures"]["accuracy"] == means([share(CORRUPTIONS)])
    assert measure_quality(rows[::-1], resamples=50) == found
    for name, span in found["intervals"].items():
        assert span is None or 0 <= span[0] <= span[1] <= 1, name


def test_the_papers_means_are_those_of_its_kinds() -> None:
    rows = published().path_judgements
    assert len(rows) == 24
    for one in rows:
        assert one["mean"] == pytest.approx(mean(one["kinds"].values()), abs=0.0051)


def test_a_name_breaks_no_table() -> None:
    found = measure_quality([row("valid", "YES"), row("reversed", "NO")])
    run = {
        "name": "a|b <i>[x](y)",
        "prompt": "zero_shot",
        "simulated": False,
        "max_tokens": 9,
        "rows": 2,
        "questions": 1,
        "said": found["said"],
        "measures": found["measures"],
        "intervals": found["intervals"],
        "kinds": found["kinds"],
        "benchmarks": {"<b>": {"rows": 1, "balanced": None}},
        "tokens": dict.fromkeys(("requests", "prompt", "cached", "completion"), 0),
    }
    probe = {"version": None, "split": "test", "name": "p", "simulated": False}
    text = render_page({"simulated": False, "probe": probe, "runs": [run]})
    assert "<i>" not in text
    assert "<b>" not in text
    assert "imulated" not in text
