"""Measures of a verifier against cases done by hand, and what holds for any verdicts."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.verifier.quality import (
    MEASURES,
    ROW_MEASURES,
    UNPARSED,
    JudgedStep,
    TrajectoryVerdicts,
    measure_agreement,
    measure_quality,
)
from safe_stepwise.records import FAILED
from safe_stepwise.taxonomy import labels
from tests import sizes

LABELS = labels()
OUTCOMES = (*LABELS, UNPARSED, FAILED)
C, R, T, W = "Correct", "Redundancy", "Off-topic", "Wrong Conclusion"


def judged(*pairs: tuple[str, str]) -> list[JudgedStep]:
    return [JudgedStep(str(n), "b", f"q{n % 3}", gold, said) for n, (gold, said) in enumerate(pairs)]


def test_labels_by_hand() -> None:
    rows = judged((C, C), (C, C), (C, R), (R, R), (R, T), (W, C), (T, UNPARSED), (T, FAILED))
    found = measure_quality(rows, [])
    m = found["measures"]
    assert m["accuracy"] == 3 / 8
    # Correct 2*2/(3+3); Redundancy 2*1/(2+2); Off-topic 0 of 2 rows; Wrong Conclusion 0 of 1.
    assert m["macro_f1"] == pytest.approx((2 / 3 + 1 / 2 + 0 + 0) / 4)
    # Wrong are 5 rows, called wrong 3, both 2.
    assert m["error_precision"] == pytest.approx(2 / 3)
    assert m["error_recall"] == pytest.approx(2 / 5)
    assert m["error_f1"] == pytest.approx(4 / 8)
    assert m["parse_rate"] == 6 / 7
    assert (found["rows"], found["questions"], found["unparsed"], found["failed"]) == (8, 3, 1, 1)
    assert found["confusion"][T] == {UNPARSED: 1, FAILED: 1}
    assert m["first_error_f1"] is None
    scores = {score.name: (score.hits, score.gold, score.predicted) for score in found["types"]}
    assert scores == {C: (2, 3, 3), R: (1, 2, 2), T: (0, 2, 1), W: (0, 1, 0)}


def test_a_label_that_is_only_said_is_no_part_of_macro_f1() -> None:
    found = measure_quality(judged((C, C), (C, C), (C, R), (R, R)), [])
    assert found["measures"]["macro_f1"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    more = measure_quality(judged((C, C), (C, C), (C, T), (R, R)), [])
    assert more["measures"]["macro_f1"] == pytest.approx((4 / 5 + 1) / 2)
    assert {score.name: score.precision for score in more["types"]}[T] == 0


WALKS = [
    (2, (C, R), True),
    (2, (C, T), True),  # the type does not matter here
    (2, (R, R), False),  # an alarm before the error
    (2, (C, C), False),
    (2, (UNPARSED, R), False),
    (2, (C, UNPARSED), False),
    (3, (C, C, W), True),
    (1, (R, R), True),  # what comes after the first error is never asked about
    (1, (R, UNPARSED), True),
    (None, (C, C), True),
    (None, (C, R), False),
    (None, (C, UNPARSED), False),
    (None, (C, FAILED), False),
    (None, (C,), True),
]


@pytest.mark.parametrize(("error", "said", "right"), WALKS)
def test_the_first_error(error: int | None, said: tuple[str, ...], right: bool) -> None:
    assert TrajectoryVerdicts("b", "q", error, said).is_right is right


def test_processbench_by_hand() -> None:
    walks = [TrajectoryVerdicts("b", f"q{n}", error, said) for n, (error, said, _) in enumerate(WALKS)]
    found = measure_quality(judged((C, C)), walks)
    assert (found["erroneous"], found["correct"]) == (9, 5)
    m = found["measures"]
    assert m["first_error_erroneous"] == pytest.approx(5 / 9)
    assert m["first_error_correct"] == pytest.approx(2 / 5)
    assert m["first_error_f1"] == pytest.approx(2 * (5 / 9) * (2 / 5) / (5 / 9 + 2 / 5))


def test_who_never_flags_has_no_f1() -> None:
    walks = [TrajectoryVerdicts("b", "q", 1, (C,)), TrajectoryVerdicts("b", "q", None, (C,))]
    m = measure_quality(judged((C, C)), walks)["measures"]
    assert m["first_error_correct"] == 1
    assert m["first_error_f1"] == 0
    worse = measure_quality(
        judged((C, C)), [TrajectoryVerdicts("b", "q", 1, (C,)), TrajectoryVerdicts("b", "q", None, (R,))]
    )
    assert worse["measures"]["first_error_f1"] == 0
    one_sided = measure_quality(judged((C, C)), [TrajectoryVerdicts("b", "q", None, (C,))])["measures"]
    assert one_sided["first_error_f1"] is None
    assert one_sided["first_error_erroneous"] is None


def test_who_finds_nothing_wrong_has_no_precision() -> None:
    m = measure_quality(judged((C, C), (R, C)), [])["measures"]
    assert (m["error_precision"], m["error_recall"], m["error_f1"]) == (None, 0, 0)
    sound = measure_quality(judged((C, C)), [])["measures"]
    assert (sound["error_recall"], sound["error_f1"], sound["accuracy"]) == (None, None, 1)


def test_nothing_to_measure() -> None:
    found = measure_quality([], [])
    assert set(found["measures"]) == set(MEASURES)
    assert set(found["measures"].values()) == {None}
    assert set(found["intervals"].values()) == {None}


def test_benchmarks_are_measured_apart() -> None:
    rows = [JudgedStep("1", "a", "q", C, C), JudgedStep("2", "b", "q", C, R), JudgedStep("3", "b", "q", R, R)]
    found = measure_quality(rows, [TrajectoryVerdicts("b", "q", 1, (R,))])
    assert found["questions"] == 2
    assert found["benchmarks"]["a"]["accuracy"] == 1
    assert found["benchmarks"]["b"]["accuracy"] == 0.5
    assert found["benchmarks"]["a"]["first_error_erroneous"] is None
    assert found["benchmarks"]["b"]["first_error_erroneous"] == 1


def test_intervals_are_over_questions() -> None:
    # All rows of a question alike: their number must not make the interval narrower.
    def accuracy(copies: int) -> tuple[float, float] | None:
        rows = [JudgedStep(f"{q} {n}", "b", str(q), C, C if q % 2 else R) for q in range(20) for n in range(copies)]
        return measure_quality(rows, [])["intervals"]["accuracy"]

    once, often = accuracy(1), accuracy(30)
    assert once == often
    assert once is not None
    low, high = once
    assert 0.2 < low < 0.4 < 0.6 < high < 0.8


def test_intervals_depend_on_the_seed_alone() -> None:
    rows = judged(*[(C, random.Random(n).choice((C, R))) for n in range(60)])
    rows = [replace(row, question=str(n % 17)) for n, row in enumerate(rows)]
    assert measure_quality(rows, [])["intervals"] == measure_quality(rows, [])["intervals"]
    assert measure_quality(rows, [])["intervals"] != measure_quality(rows, [], seed=1)["intervals"]


def test_an_unknown_label_is_refused() -> None:
    with pytest.raises(ValueError, match="Fine"):
        measure_quality(judged((C, "Fine")), [])


def test_agreement_by_hand() -> None:
    one = judged((C, C), (C, C), (C, R), (R, R), (R, UNPARSED), (R, R))
    other = judged((C, C), (C, R), (C, R), (R, C), (R, UNPARSED), (R, FAILED))
    # Read by both: 4 rows, 2 equal; one says C twice and R twice, the other as well.
    assert measure_agreement(one, other) == {"rows": 4, "left_out": 2, "share": 0.5, "kappa": 0.0}
    assert measure_agreement(one, one) == {"rows": 5, "left_out": 1, "share": 1.0, "kappa": 1.0}
    assert measure_agreement(one[:2], one[:2]) == {"rows": 2, "left_out": 0, "share": 1.0, "kappa": None}
    assert measure_agreement(one, []) == {"rows": 0, "left_out": 0, "share": None, "kappa": None}


ROWS = st.lists(
    st.builds(
        JudgedStep,
        id=st.uuids().map(str),
        benchmark=st.sampled_from("ab"),
        question=st.sampled_from("12345"),
        gold=st.sampled_from(LABELS),
        verdict=st.sampled_from(OUTCOMES),
    ),
    max_size=40,
)
WALKED = st.lists(
    st.builds(
        lambda question, said, wrong: TrajectoryVerdicts("a", question, len(said) if wrong else None, said),
        question=st.sampled_from("12345"),
        said=st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=4).map(tuple),
        wrong=st.booleans(),
    ),
    max_size=20,
)


@settings(max_examples=sizes.examples(60), deadline=None)
@given(ROWS, WALKED, st.randoms(use_true_random=False))
def test_any_verdicts(rows: list[JudgedStep], walks: list[TrajectoryVerdicts], chance: random.Random) -> None:
    found = measure_quality(rows, walks, resamples=40)
    for name, value in found["measures"].items():
        assert value is None or 0 <= value <= 1, name
        span = found["intervals"][name]
        assert (span is None) or 0 <= span[0] <= span[1] <= 1
        if value is not None:
            assert span is not None
    assert sum(n for row in found["confusion"].values() for n in row.values()) == len(rows)
    mixed, turned = list(rows), list(walks)
    chance.shuffle(mixed)
    chance.shuffle(turned)
    assert measure_quality(mixed, turned, resamples=40) == found


@settings(max_examples=sizes.examples(60), deadline=None)
@given(ROWS.filter(bool), st.data())
def test_an_unreadable_reply_never_helps(rows: list[JudgedStep], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    lost = [*rows[:place], replace(rows[place], verdict=UNPARSED), *rows[place + 1 :]]
    before, after = (measure_quality(r, [], resamples=0)["measures"] for r in (rows, lost))
    for name in ("accuracy", "error_recall"):
        assert (after[name] or 0) <= (before[name] or 0)


@settings(max_examples=sizes.examples(60), deadline=None)
@given(ROWS, ROWS)
def test_agreement_is_mutual_and_bounded(one: list[JudgedStep], other: list[JudgedStep]) -> None:
    other = [replace(row, id=mate.id) for row, mate in zip(other, one, strict=False)]
    found = measure_agreement(one, other)
    assert found == measure_agreement(other, one)
    assert found["rows"] + found["left_out"] == len(other)
    assert found["share"] is None or 0 <= found["share"] <= 1
    assert found["kappa"] is None or -1 <= found["kappa"] <= 1


def test_rows_are_measured_by_wording_where_they_say_it() -> None:
    rows = [
        JudgedStep("1", "b", "q1", "Correct", "Correct", "seen"),
        JudgedStep("2", "b", "q1", "Redundancy", "Redundancy", "seen"),
        JudgedStep("3", "b", "q2", "Redundancy", "Correct", "unseen"),
        JudgedStep("4", "b", "q3", "Redundancy", "Redundancy"),
    ]
    found = measure_quality(rows, [TrajectoryVerdicts("b", "q1", None, ("Correct",))], resamples=0)["wordings"]
    assert [*found] == ["seen", "unseen"]
    assert (found["seen"]["rows"], found["seen"]["accuracy"]) == (2, 1.0)
    assert (found["unseen"]["rows"], found["unseen"]["accuracy"]) == (1, 0.0)
    assert found["unseen"]["error_recall"] == 0.0
    assert set(found["seen"]) == {"rows", *ROW_MEASURES}
    assert measure_quality(rows[3:], [], resamples=0)["wordings"] == {}
