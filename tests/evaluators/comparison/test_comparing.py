"""Scores, pairing and the better baseline on outcomes small enough to count by hand."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.comparison import comparing
from evaluators.comparison import significance as stats
from evaluators.comparison.scores import Comparison, Difference, Row
from evaluators.comparison.significance import Estimate
from evaluators.outcomes import METRICS, Metric, Outcome
from safe_stepwise.errors import UserError
from tests import sizes
from tests.makers.outcomes import outcome, outcomes

NO, SELF, SAFE = "no_verification", "self_verification", "safe"


def compare(found: list[Outcome], seed: int = 0, resamples: int = 300) -> Comparison:
    return comparing.compare(found, seed, resamples)


def row(comparison: Comparison, method: str) -> Row:
    (found,) = [r for r in comparison.rows if r.system.method == method]
    return found


def value(estimate: Estimate | None) -> float | None:
    return estimate and estimate.value


def difference(
    comparison: Comparison,
    first: str = SAFE,
    second: str = NO,
    benchmark: str | None = "musique",
    metric: Metric = "accuracy",
) -> Difference:
    a, b = row(comparison, first).system, row(comparison, second).system
    found = comparison.difference(a, b, benchmark, metric)
    assert found is not None
    return found


def test_a_mean_of_benchmarks_weighs_them_alike() -> None:
    small = outcomes([1, 0], benchmark="hotpotqa")
    large = outcomes([1, 1, 1, 0, 1, 1, 1, 1, 1, 1], benchmark="musique")
    found = row(compare(small + large), SAFE)
    assert value(found.cells["hotpotqa"].estimates["exact_match"]) == 0.5
    assert value(found.cells["musique"].estimates["f1"]) == 0.9
    assert value(found.average["accuracy"]) == 0.7


def test_measures_are_not_mixed_up() -> None:
    one = replace(outcome("q"), exact_match=0.0, f1=0.4, verdict="correct")
    cell = row(compare([one]), SAFE).cells["musique"]
    assert [value(cell.estimates[metric]) for metric in METRICS] == [0.0, 0.4, 1.0]


def test_unscored_is_neither_right_nor_wrong() -> None:
    found = outcomes([1, 1, 0, 0])
    found[3] = replace(found[3], verdict="unscored")
    cell = row(compare(found), SAFE).cells["musique"]
    assert (cell.questions, cell.scored, cell.unscored, cell.unjudged) == (4, 3, 1, 0)
    assert value(cell.estimates["accuracy"]) == pytest.approx(2 / 3, abs=1e-6)
    assert value(cell.estimates["exact_match"]) == 0.5


def test_without_a_judge_there_is_no_accuracy() -> None:
    found = outcomes([1, 0], NO, verdict=None) + outcomes([1, 1], SAFE, verdict=None)
    comparison = compare(found)
    cell = row(comparison, SAFE).cells["musique"]
    assert (cell.scored, cell.unjudged, cell.estimates["accuracy"]) == (0, 2, None)
    assert row(comparison, SAFE).average["accuracy"] is None
    assert {d.metric for d in comparison.differences} == {"exact_match", "f1"}


def test_failed_questions_are_counted() -> None:
    done = outcome("q0")
    lost = outcome("q1", score=0.0)
    lost = replace(lost, trajectory=replace(lost.trajectory, stop_reason="failed", answer=""))
    cell = row(compare([done, lost]), SAFE).cells["musique"]
    assert (cell.failed, value(cell.estimates["exact_match"])) == (1, 0.5)


def test_only_shared_questions_are_paired() -> None:
    safe = outcomes([1, 1, 0, 1, 1])  # q0 ... q4
    no = outcomes([0, 1, 1], NO)  # q0 ... q2
    safe[1] = replace(safe[1], verdict="unscored")
    comparison = compare(safe + no)
    exact = difference(comparison, metric="exact_match")
    assert (exact.pairs, exact.unpaired, exact.estimate.value) == (3, 2, 0.0)
    judged = difference(comparison)
    assert (judged.pairs, judged.unpaired, judged.estimate.value) == (2, 3, 0.0)
    assert value(row(comparison, SAFE).average["exact_match"]) == 0.8


def test_mcnemar_in_a_benchmark_and_flips_on_average() -> None:
    safe = outcomes([1] * 8 + [0] * 2 + [1] * 5)
    no = outcomes([0] * 8 + [1] * 2 + [1] * 5, NO)
    alike = [replace(o, benchmark="hotpotqa") for o in safe + no if o.question_id > "q5"]
    for others, test in (([], "mcnemar"), (alike, "sign_flip")):
        comparison = compare(safe + no + others, resamples=4_000)
        one = difference(comparison)
        assert (one.test, one.p) == ("mcnemar", pytest.approx(stats.mcnemar(8, 2)))
        average = difference(comparison, benchmark=None)
        assert average.test == test
        assert difference(comparison, metric="f1").test == "sign_flip"
    other = difference(comparison, benchmark="hotpotqa")
    assert average.estimate.value == pytest.approx((one.estimate.value + other.estimate.value) / 2, abs=1e-6)


def test_flips_of_two_alike_benchmarks_are_mcnemar_of_both() -> None:
    safe = outcomes([1] * 5 + [0] + [1] * 4)
    no = outcomes([0] * 5 + [1] + [1] * 4, NO)
    alike = [replace(o, benchmark="hotpotqa") for o in safe + no]
    average = difference(compare(safe + no + alike, resamples=8_000), benchmark=None)
    assert average.test == "sign_flip"
    assert average.p == pytest.approx(stats.mcnemar(10, 2), abs=0.01)


def test_the_average_is_tested_as_it_is_shown() -> None:
    """A large benchmark alone does not decide: the mean of the benchmarks does."""
    safe = outcomes([1] * 40) + outcomes([0] * 4, benchmark="hotpotqa")
    no = outcomes([0] * 20 + [1] * 20, NO) + outcomes([1, 1, 0, 0], NO, benchmark="hotpotqa")
    average = difference(compare(safe + no, resamples=2_000), benchmark=None)
    assert average.estimate.value == 0.0
    assert average.p == 1.0


def test_holm_counts_the_tests_of_a_column() -> None:
    found = outcomes([1] * 12) + outcomes([0] * 12, NO) + outcomes([0] * 6 + [1] * 6, SELF)
    comparison = compare(found)
    p = [d for d in comparison.differences if d.metric == "accuracy" and d.benchmark]
    assert [d.p_holm for d in p] == pytest.approx(stats.holm([d.p for d in p]), rel=1e-5)
    assert difference(comparison).p_holm == pytest.approx(3 * 2 / 2**12, rel=1e-5)


def test_the_better_baseline_is_chosen_by_the_headline() -> None:
    no = [replace(o, exact_match=0.0) for o in outcomes([1, 1, 0, 0], NO)]
    self_ = [replace(o, verdict="incorrect") for o in outcomes([1, 1, 0, 0], SELF)]
    judged = outcomes([1, 1, 1, 0]) + no + self_
    unjudged = [replace(o, verdict=None) for o in judged]
    for found, headline, better in ((judged, "accuracy", NO), (unjudged, "exact_match", SELF)):
        comparison = compare(found)
        reference = comparison.reference_of(row(comparison, SAFE).system)
        assert reference
        assert (comparison.headline, reference.method) == (headline, better)


def test_baselines_are_those_of_the_same_generator() -> None:
    safe = outcomes([1, 1])
    alone = compare(safe + outcomes([0, 0], NO, generator="other"))
    assert alone.differences == ()
    assert alone.reference_of(row(alone, SAFE).system) is None


def test_baselines_of_other_options_are_compared_question_by_question() -> None:
    comparison = compare(outcomes([1, 1]) + outcomes([0, 0], NO, max_steps=13) + outcomes([0, 1], NO, max_retries=1))
    safe = row(comparison, SAFE).system
    better = comparison.reference_of(safe)
    assert better
    assert better.describe(["max_steps", "max_retries"]) == "K=10, N=1"
    found = comparison.difference(safe, better, "musique", "f1")
    assert found
    assert (found.pairs, found.estimate.value) == (2, 0.5)


def test_a_system_that_lacks_a_benchmark_has_no_average() -> None:
    found = outcomes([1, 0]) + outcomes([1, 1], NO) + outcomes([1, 1], NO, benchmark="hotpotqa")
    comparison = compare(found)
    assert row(comparison, SAFE).average["f1"] is None
    assert value(row(comparison, NO).average["f1"]) == 1.0
    assert difference(comparison).estimate.value == -0.5
    assert comparison.reference_of(row(comparison, SAFE).system) is None


def test_two_verifiers_are_two_systems() -> None:
    found = outcomes([1, 1]) + outcomes([0, 0], verifier="another")
    comparison = compare(found)
    assert [r.system.other_players["verifier"] for r in comparison.rows] == ["another", "checker"]
    assert {(d.first.other_players["verifier"], d.second.other_players["verifier"])
            for d in comparison.differences} == {("checker", "another")}  # fmt: skip


def test_identical_methods_do_not_differ() -> None:
    scores = [0.0, 1.0, 0.5, 1.0]
    comparison = compare(outcomes(scores) + outcomes(scores, NO))
    assert {d.p for d in comparison.differences} == {1.0}
    assert {d.estimate for d in comparison.differences} == {Estimate(0.0, 0.0, 0.0)}


def test_simulated_is_passed_on() -> None:
    comparison = compare(outcomes([1, 0]) + outcomes([1, 1], NO, simulated=True))
    assert comparison.simulated
    assert [r.simulated for r in comparison.rows] == [True, False]
    assert all(d.simulated for d in comparison.differences)


def test_no_outcomes_are_no_comparison() -> None:
    with pytest.raises(UserError, match="no outcomes"):
        compare([])


def test_questions_that_share_an_id_are_paired_in_their_order() -> None:
    safe = [outcome("q", SAFE, 1), outcome("q", SAFE, 0)]
    no = [outcome("q", NO, 1), outcome("q", NO, 0)]
    one = difference(compare(safe + no), metric="f1")
    assert (one.pairs, one.estimate) == (2, Estimate(0.0, 0.0, 0.0))


def test_pairing_narrows_the_margin() -> None:
    draws = random.Random(3)
    hard = [draws.random() < 0.5 for _ in range(300)]
    no = [float(not h) for h in hard]
    safe = [1.0 if n or draws.random() < 0.1 else 0.0 for n in no]
    comparison = compare(outcomes(safe) + outcomes(no, NO), resamples=2_000)
    paired = difference(comparison).estimate
    single = row(comparison, SAFE).average["accuracy"]
    assert single is not None
    assert paired.high - paired.low < (single.high - single.low) / 1.5


def test_a_total_is_the_mean_over_who_answers() -> None:
    """Two generators, counted by hand; what one of them lacks is in no total."""
    a = outcomes([1, 1, 1, 0]) + outcomes([0, 0, 1, 0], NO) + outcomes([1, 0, 0, 0], SELF)
    b = outcomes([1, 0, 0, 0], generator="b") + outcomes([0, 0, 0, 0], NO, generator="b")
    comparison = compare(a + b)
    totals = {row.system.method: row for row in comparison.totals}
    assert set(totals) == {NO, SAFE}
    assert {row.system.answering for row in totals.values()} == {"Total average"}
    assert value(totals[SAFE].average["accuracy"]) == (3 / 4 + 1 / 4) / 2
    assert totals[SAFE].cells["musique"].questions == 8
    better = comparison.reference_of(totals[SAFE].system)
    assert better == totals[NO].system
    found = comparison.difference(totals[SAFE].system, better, "musique", "accuracy")
    assert found
    assert (found.test, found.pairs, found.estimate.value) == ("sign_flip", 4, 0.375)
    # The rest is as it is without a second generator.
    alone = compare(a)
    assert alone.totals == ()
    own = row_of(comparison, "model", SAFE)
    assert own == row(alone, SAFE)


def row_of(comparison: Comparison, answering: str, method: str) -> Row:
    (found,) = [r for r in comparison.rows if (r.system.answering, r.system.method) == (answering, method)]
    return found


def test_a_total_is_tested_question_by_question() -> None:
    """Two generators that answer alike are one: no test gains from the second."""
    safe, no = [1] * 9 + [0] * 3, [0] * 8 + [1] + [0] * 3
    one = compare(outcomes(safe) + outcomes(no, NO), resamples=4_000)
    two = compare(
        [*outcomes(safe), *outcomes(no, NO), *outcomes(safe, generator="b"),
         *outcomes(no, NO, generator="b")], resamples=4_000,
    )  # fmt: skip
    (total, baseline) = (next(r for r in two.totals if r.system.method == m) for m in (SAFE, NO))
    found = two.difference(total.system, baseline.system, None, "f1")
    alone = difference(one, benchmark=None, metric="f1")
    assert found
    assert found.estimate == alone.estimate
    assert found.p == alone.p
    assert total.average == row(one, SAFE).average


def test_models_and_players_have_no_total_together() -> None:
    found = outcomes([1, 0]) + outcomes([1, 1], generator="symbolic", simulated=True)
    assert compare(found).totals == ()
    assert len(compare(found + outcomes([0, 1], generator="b", simulated=True)).totals) == 0


def test_conditions_part_systems() -> None:
    whole, less = outcomes([1, 1, 0]), outcomes([0, 1, 0], conditions={"drop_gold": True})
    comparison = compare(whole + less)
    assert [dict(r.system.conditions) for r in comparison.rows] == [{}, {"drop_gold": True}]
    (found,) = [d for d in comparison.differences if d.metric == "f1" and d.benchmark]
    assert (found.pairs, found.estimate.value) == (3, pytest.approx(-1 / 3, abs=1e-6))


SCORES = st.lists(st.floats(0, 1, width=16), min_size=1, max_size=12)


@settings(max_examples=sizes.examples(40), deadline=None)
@given(SCORES, SCORES, SCORES, st.randoms(use_true_random=False))
def test_order_changes_nothing_and_intervals_hold_their_value(
    safe: list[float], no: list[float], other: list[float], draws: random.Random
) -> None:
    found = outcomes(safe) + outcomes(no, NO) + outcomes(other, benchmark="hotpotqa")
    once = compare(found, resamples=50)
    draws.shuffle(found)
    assert compare(found, resamples=50) == once
    estimates = [d.estimate for d in once.differences]
    for r in once.rows:
        estimates += [e for c in r.cells.values() for e in c.estimates.values() if e]
        estimates += [e for e in r.average.values() if e]
    assert estimates
    assert all(e.low <= e.value <= e.high for e in estimates)
    assert all(0 < d.p <= d.p_holm <= 1 for d in once.differences)
    paired = difference(once, metric="f1").estimate.value
    mine = math.fsum(a - b for a, b in zip(safe, no, strict=False)) / min(len(safe), len(no))
    assert paired == pytest.approx(mine, abs=1e-6)


def test_the_seed_decides() -> None:
    found = outcomes([1.0, 0.0, 0.3, 0.7, 0.2, 0.9])
    assert compare(found, seed=1) == compare(found, seed=1)
    assert compare(found, seed=1).rows != compare(found, seed=2).rows
