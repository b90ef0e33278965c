"""Tables and thresholds, by judges whose verdicts are known."""

from __future__ import annotations

from typing import Any

from safe_stepwise.checking.faithfulness.grounds import ChainVerdict, StepVerdict
from safe_stepwise.records import canonical_json
from studies.calibration.cases import WRONG, make_cases
from studies.calibration.passing import HOUSE, JudgedCase, build_table, calibrate, choose_threshold, judge_cases
from studies.labels.published import is_held_out
from tests.studies.calibration.test_cases import FILMS, POOL

CASES = make_cases(FILMS, POOL, 0)[0]
PAPER = "paper, words"


def found_by(score: Any) -> list[JudgedCase]:
    """What a judge finds that scores each case as given."""
    rows = iter(CASES)

    def scored(*_: object) -> ChainVerdict:
        return ChainVerdict("paper", "faithful", True, (StepVerdict(score=score(next(rows))),))

    return list(judge_cases(PAPER, CASES, scored))


def test_who_passes_all_is_half_right_and_who_knows_is_right() -> None:
    assert build_table(PAPER, found_by(lambda case: 1.0), "alone").balanced == 0.5
    knows = build_table(PAPER, found_by(lambda case: float(case.kind == "true")), "alone")
    assert knows.balanced == 1.0
    shares = {kind: share.value for kind, share in knows.passed.items()}
    assert shares == {"true": 1.0, **dict.fromkeys(shares.keys() & set(WRONG), 0.0)}


def test_what_cannot_be_judged_does_not_pass() -> None:
    unsure = ChainVerdict("house", "unjudgeable", True)
    table = build_table(HOUSE, judge_cases(HOUSE, CASES, lambda *_: unsure), "alone")
    assert {share.value for share in table.passed.values()} == {0.0}
    assert table.unjudgeable == 1.0
    assert table.sigma is None


def test_the_threshold_lies_between_true_and_false() -> None:
    found = found_by(lambda case: 0.9 if case.kind == "true" else 0.8)
    threshold = choose_threshold(PAPER, found)
    assert threshold is not None
    assert 0.8 < threshold["chosen"] <= 0.9
    assert (threshold["of_chosen"], threshold["of_paper"]) == (1.0, 0.5)


def test_of_equal_thresholds_the_nearest_to_the_papers_is_chosen() -> None:
    threshold = choose_threshold(PAPER, found_by(lambda case: float(case.kind == "true")))
    assert threshold is not None
    assert threshold["chosen"] == 0.7


def test_a_half_without_cases_gives_no_threshold() -> None:
    of_one = [one for one in found_by(lambda case: 1.0) if not is_held_out(one.case.source.question.id)]
    assert choose_threshold(PAPER, of_one) is None


def test_the_papers_rule_repairs_what_it_grades() -> None:
    """The same twice, and the paper's retrieval takes the true triple for reversed ones."""
    measured, again = (calibrate("b", FILMS, ["words"]) for _ in range(2))
    assert canonical_json(measured) == canonical_json(again)
    alone = {table["judge"]: table for table in measured["tables"] if table["setting"] == "alone"}
    assert alone[PAPER]["passed"]["reversed"]["value"] == 1.0
    assert alone[HOUSE]["passed"]["reversed"]["value"] == 0.0
    assert alone[PAPER]["repaired"]["reversed"] == 1.0
