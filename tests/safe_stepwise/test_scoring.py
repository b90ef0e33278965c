"""Scores agree with the official scorers on every recorded case, and gold scores 1.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise.errors import UserError
from safe_stepwise.scoring import Scores, exact_match, f1, normalize_answer, score

BENCHMARKS = ("hotpotqa", "2wikimultihopqa", "musique", "synthetic")
HOTPOT_LIKE = ("hotpotqa", "2wikimultihopqa", "synthetic")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_official_case(real_data: Path) -> None:
    cases = rows(real_data / "official_scorer_cases.jsonl")
    assert {case["dataset"] for case in cases} == set(BENCHMARKS) - {"synthetic"}
    wrong = [
        number
        for number, case in enumerate(cases, 1)
        for args in [(case["prediction"], case["references"], case["dataset"])]
        if abs(exact_match(*args) - case["exact_match"]) > 1e-9 or abs(f1(*args) - case["f1"]) > 1e-9
    ]
    assert len(cases) >= 2_000
    assert wrong == []


@pytest.mark.parametrize("benchmark", BENCHMARKS[:3])
@pytest.mark.parametrize("split", ["train", "dev"])
def test_gold_scores_one(real_data: Path, benchmark: str, split: str) -> None:
    gold = rows(real_data / f"{benchmark}_{split}.jsonl")
    answers = [row["answer"] for row in gold]
    references = [[*row.get("answer_aliases", []), row["answer"]] for row in gold]
    assert score(answers, references, benchmark) == Scores(1.0, 1.0, len(gold))


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("The  Mayor\tof Oru.", "mayor of oru"),
        ("U.S. well-known", "us wellknown"),
        ("An a the", ""),
        ("theatre antler a1", "theatre antler a1"),
        ("1902–1910 “Oru”", "1902–1910 “oru”"),
        ("t.he Vel", "vel"),
        ("", ""),
        ("Île-THE-Vel", "îlethevel"),
    ],
)
def test_normal_form(written: str, normal: str) -> None:
    assert normalize_answer(written) == normal


@pytest.mark.parametrize("benchmark", HOTPOT_LIKE)
@pytest.mark.parametrize(
    ("prediction", "reference"), [("yes it is", "yes"), ("yes", "no"), ("No", "no way"), ("noanswer here", "noanswer")]
)
def test_a_closed_answer_shares_nothing_with_another(benchmark: str, prediction: str, reference: str) -> None:
    assert f1(prediction, [reference], benchmark) == 0.0
    assert exact_match(prediction, [reference], benchmark) == 0.0


def test_musique_has_no_closed_answers() -> None:
    assert f1("yes it is", ["yes"], "musique") == pytest.approx(0.5)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_closed_answers_match_themselves(benchmark: str) -> None:
    assert f1("The Yes!", ["yes"], benchmark) == exact_match("YES.", ["yes"], benchmark) == 1.0


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_texts_of_which_nothing_is_left(benchmark: str) -> None:
    assert exact_match("The.", ["a"], benchmark) == 1.0
    assert f1("The.", ["a"], benchmark) == (1.0 if benchmark == "musique" else 0.0)
    assert f1("", ["Oru"], benchmark) == exact_match("", ["Oru"], benchmark) == 0.0
    assert f1("Oru", ["the"], benchmark) == 0.0


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_tokens_count_as_often_as_they_are_shared(benchmark: str) -> None:
    assert f1("Vel Vel Oru", ["Vel Vel"], benchmark) == pytest.approx(0.8)
    assert f1("Vel Vel Vel", ["Vel Oru"], benchmark) == pytest.approx(0.4)
    assert f1("Oru Vel", ["Vel Oru"], benchmark) == 1.0
    assert exact_match("Oru Vel", ["Vel Oru"], benchmark) == 0.0


def test_the_best_reference_counts_for_each_score_on_its_own() -> None:
    references = ["River Vel", "Vel", "the great River"]
    assert exact_match("Vel", references, "musique") == 1.0
    assert f1("great Vel River", references, "musique") == pytest.approx(0.8)
    assert exact_match("great Vel River", references, "musique") == 0.0


def test_means() -> None:
    result = score(["Oru", "Vel river", "Isk"], [["Oru"], ["Vel"], ["Tamm"]], "hotpotqa")
    assert result.exact_match == pytest.approx(1 / 3)
    assert result.f1 == pytest.approx((1 + 2 / 3) / 3)
    assert result.count == 3


@pytest.mark.parametrize("benchmark", ["", "HotpotQA", "squad", "2wiki"])
def test_an_unknown_benchmark_names_the_known_ones(benchmark: str) -> None:
    for call in (exact_match, f1):
        with pytest.raises(UserError, match="give one of hotpotqa, 2wikimultihopqa, musique"):
            call("Oru", ["Oru"], benchmark)
    with pytest.raises(UserError, match="unknown benchmark"):
        score(["Oru"], [["Oru"]], benchmark)


def test_references_of_the_wrong_shape() -> None:
    for call in (exact_match, f1):
        with pytest.raises(UserError, match="give a list of strings"):
            call("o", "Oru", "musique")
        with pytest.raises(UserError, match="no references"):
            call("o", [], "musique")
    with pytest.raises(UserError, match="give a list of strings"):
        score(["Oru"], ["Oru"], "musique")
    with pytest.raises(UserError, match="2 predictions but 1 lists"):
        score(["Oru", "Vel"], [["Oru"]], "musique")
    with pytest.raises(UserError, match="no predictions"):
        score([], [], "musique")


@settings(deadline=None)
@given(st.text(), st.lists(st.text(), min_size=1), st.sampled_from(BENCHMARKS))
def test_scores_stay_in_range_and_exact_match_implies_f1(
    prediction: str, references: list[str], benchmark: str
) -> None:
    match, overlap = (call(prediction, references, benchmark) for call in (exact_match, f1))
    assert match in (0.0, 1.0)
    assert 0.0 <= overlap <= 1.0
    if match and normalize_answer(prediction):
        assert overlap == 1.0
    assert f1(prediction, [*references, prediction], benchmark) >= overlap
