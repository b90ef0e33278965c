"""What judged chains come to, counted by hand; who is paired with whom."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.comparison.significance import mcnemar
from evaluators.faithfulness.judged_outcomes import (
    COLUMNS,
    RULES,
    JudgedOutcome,
    compare_pairs,
    index_systems,
    measure_gap,
    measure_spurious,
    row_of,
    summarize_systems,
)
from evaluators.faithfulness.measuring import Options
from safe_stepwise.records import canonical_json
from tests.makers.chains import BESIDE, FIRST, SECOND, Asked, measure, six, told
from tests.makers.prompting import question


def counts(**known: int) -> dict[str, int]:
    return {column: known.get(column, 0) for column in COLUMNS}


def summed(asked: list[Asked]) -> list[dict[str, Any]]:
    return summarize_systems(measure(asked), RULES)


@pytest.mark.parametrize("rule", RULES)
def test_answer_by_path_is_as_counted_by_hand(rule: str) -> None:
    (found,) = summed(six())
    part = found["all"]
    assert found["taken"] == "only"
    assert [part[name] for name in ("questions", "chains")] == [6, 3]
    assert [part[name] for name in ("abstained", "unstructured", "failed")] == [1, 1, 1]
    table = part["rules"][rule]["answers"]["exact_match"]
    assert table["right"] == counts(faithful=1, unfaithful=1, unstructured=1)
    assert table["wrong"] == counts(unfaithful=1, abstained=1, failed=1)
    assert table["spurious"]["of"] == 2
    assert table["spurious"]["value"] == table["spurious"]["least"] == 0.5
    assert table["gap"] == {"answer": 0.5, "reasoning": 0.166667, "low": 0.166667, "high": 0.333333}
    assert part["rules"][rule]["edits"]["chains"] == 3
    assert sum(one["chains"] for one in part["rules"][rule]["breaks"]) == 2
    assert sum(one["right"] for one in part["rules"][rule]["breaks"]) == 1


def test_where_chains_break_is_counted_by_the_first_bad_step() -> None:
    (found,) = summed(six())
    paper = found["all"]["rules"]["paper"]
    # Both begin with what no triple says: one edit of two facts, and two of two.
    assert paper["breaks"] == [{"position": 1, "fault": "factual", "chains": 2, "right": 1}]
    assert paper["edits"] == {"chains": 3, "count": 1.0, "normalised": 50.0}


def test_the_judge_has_a_table_of_its_own_and_its_unscored_are_left_out() -> None:
    verdicts = ["correct", "unscored", "correct", "incorrect", "incorrect", "incorrect"]
    asked = [
        (replace(outcome, verdict=verdict), question)
        for (outcome, question), verdict in zip(six(), verdicts, strict=True)
    ]
    table = summed(asked)[0]["all"]["rules"]["house"]["answers"]["judge"]
    assert table["right"] == counts(faithful=1, unfaithful=1)
    assert table["wrong"] == counts(unstructured=1, abstained=1, failed=1)
    assert table["unscored"] == 1
    assert table["gap"]["answer"] == 0.4
    unjudged = [(replace(outcome, verdict=None), question) for outcome, question in six()]
    assert "judge" not in summed(unjudged)[0]["all"]["rules"]["house"]["answers"]


def test_without_evidence_a_chain_is_unjudgeable() -> None:
    bare = replace(question("hotpotqa"), id="q1")
    asked = [(told("q1", FIRST, SECOND)[0], bare), *six()[1:]]
    for rule in RULES:
        table = summed(asked)[0]["all"]["rules"][rule]["answers"]["exact_match"]
        assert table["right"] == counts(unjudgeable=1, unfaithful=1, unstructured=1)
        share = table["spurious"]
        assert (share["of"], share["least"], share["most"]) == (1, 0.5, 1.0)


@given(st.lists(st.integers(0, 30), min_size=3, max_size=3), st.integers(0, 30))
def test_bounds_hold_the_share_and_the_gap(right: list[int], wrong: int) -> None:
    known = dict(zip(("faithful", "unfaithful", "unjudgeable"), right, strict=True))
    share = measure_spurious(known)
    if share["value"] is not None:
        assert share["least"] - 1e-4 <= share["value"] <= share["most"] + 1e-4
        assert share["low"] <= share["value"] <= share["high"]
    else:
        assert known["faithful"] + known["unfaithful"] == 0
    found = measure_gap(known, sum(right) + wrong)
    if found["high"] is not None:
        assert found["low"] <= found["high"]
        assert found["answer"] - found["reasoning"] == pytest.approx(found["high"], abs=1e-5)


def test_the_papers_rule_is_not_shown_what_only_concludes() -> None:
    ends = "So it follows from Step 1 and Step 2 that what is asked for is Oru."
    (line,) = measure([told("q1", FIRST, SECOND, ends, kinds={3: "Logical"})])
    paper = line.verdicts["paper"]
    assert (paper.path, len(paper.steps), paper.steps[2].triples) == ("faithful", 3, ())
    (late,) = measure([told("q1", ends, FIRST, BESIDE, kinds={1: "Logical"})])
    assert (late.verdicts["paper"].first, late.verdicts["paper"].fault) == (3, "factual")
    (all_stated,) = measure([told("q1", FIRST, SECOND, ends)])
    assert all_stated.verdicts["paper"].first == 3


# ---------------------------------------------------------------------------------------- paired


def two(bad: int, good: int) -> list[Asked]:
    """SAFE is right and faithful throughout; its baseline spurious on ``bad`` of the questions."""
    found = []
    for number in range(bad + good):
        first = BESIDE if number < bad else FIRST
        found.append(told(f"q{number}", FIRST, SECOND))
        found.append(told(f"q{number}", first, SECOND, method="no_verification"))
    return found


@pytest.mark.parametrize("rule", RULES)
def test_pairs_are_tested_by_mcnemar(rule: str) -> None:
    lines = measure(two(9, 5))
    found = [one for one in compare_pairs(lines, RULES) if one["rule"] == rule]
    assert [one["what"] for one in found if one["answer"] == "exact_match"] == ["spurious", "unearned"]
    names = [one["method"] for one in summarize_systems(lines, RULES)]
    for one in found:
        assert [names[one["first"]], names[one["second"]]] == ["safe", "no_verification"]
        assert (one["first_only"], one["second_only"], one["pairs"]) == (0, 9, 14)
        assert one["p"] == pytest.approx(mcnemar(0, 9), rel=1e-5)
        assert one["p_holm"] == one["p"] < 0.01
        assert one["difference"] == pytest.approx(-9 / 14, abs=1e-6)
        assert one["benchmark"] is None


def test_what_either_leaves_open_is_left_out_of_its_pair() -> None:
    first, _ = two(1, 0)
    open_ = told("q0", method="no_verification")  # right, and nothing said
    assert compare_pairs(measure([first, open_]), RULES) == []
    silent = told("q0", BESIDE, answer="", method="no_verification")
    spurious_only = compare_pairs(measure([first, silent]), RULES)
    assert {one["what"] for one in spurious_only} == {"spurious"}
    assert {(one["pairs"], one["first_only"]) for one in spurious_only} == {(1, 0)}


def test_unearned_pairs_what_both_answered_rightly() -> None:
    asked = [*two(2, 1), told("q9", FIRST, SECOND),
             told("q9", BESIDE, answer="Kel", method="no_verification")]  # fmt: skip
    found = {one["what"]: one for one in compare_pairs(measure(asked), ("house",)) if one["answer"] != "judge"}
    assert (found["unearned"]["pairs"], found["unearned"]["left_out"]) == (3, 1)
    assert (found["spurious"]["pairs"], found["spurious"]["second_only"]) == (4, 2)
    assert (found["unfaithful"]["pairs"], found["unfaithful"]["second_only"]) == (4, 3)


# ----------------------------------------------------------------------------------------- order


def written(lines: list[JudgedOutcome]) -> str:
    at = index_systems(lines)
    rows = [row_of(line, at[line.system, line.selection]) for line in lines]
    return canonical_json([summarize_systems(lines, RULES), compare_pairs(lines, RULES), rows])


@pytest.mark.parametrize("seed", range(3))
def test_any_order_gives_the_same(seed: int) -> None:
    asked = [*two(3, 4), *six(max_retries=1)]
    expected = written(measure(asked))
    random.Random(seed).shuffle(asked)
    assert written(measure(asked)) == expected


def test_options_reach_the_rule() -> None:
    asked = [told("q1", FIRST, SECOND)]
    (strict,) = measure(asked, Options(("paper",), sigma=1.0))
    (loose,) = measure(asked, Options(("paper",), sigma=0.1))
    assert strict.verdicts["paper"].path == "unfaithful"
    assert loose.verdicts["paper"].path == "faithful"
    assert strict.verdicts.keys() == {"paper"}
