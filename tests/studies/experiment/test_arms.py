"""What an arm is called, and the shares that are told of it."""

from __future__ import annotations

import pytest

from safe_stepwise.errors import UserError
from studies.experiment.experiment import CHANCE, CHECKER, LEARNED, PLAIN, check, find_arm, list_arms
from tests.studies.experiment.made import ADAPTER, CHECKING, DRAWN, results, run


def test_each_is_called_by_who_verifies() -> None:
    weak = "symbolic:error_rate=0.9,seed=9 (simulated)"
    others = (CHECKING, DRAWN, "vllm:other@9", weak)
    found = list_arms(results(run(0.4), run(0.6, ADAPTER), *(run(0.7, one) for one in others)))
    assert [arm.name for arm in found] == [
        *(PLAIN, LEARNED, CHECKER, CHANCE),
        *("SAFE, vllm:other@9", f"SAFE, {weak}"),
    ]
    assert [arm.label for arm in found[:4]] == [
        *(PLAIN, LEARNED),
        *(f"{CHECKER} (simulated)", f"{CHANCE} (simulated)"),
    ]
    assert found[5].label == f"SAFE, {weak}"  # which says it already


def test_shares_are_of_the_tries_that_were_judged() -> None:
    plain, learned = list_arms(results(run(0.4), run(0.6, ADAPTER)))
    assert (plain.rejected, plain.unread) == (None, None)
    assert learned.rejected == (120 + 40 + 40) / 800  # what can't be read rejects
    assert learned.unread == 40 / 800
    assert learned.earned_share == 50 / 200


def test_of_several_the_one_with_these_options_is_taken() -> None:
    found = list_arms(results(run(0.4), *(run(0.6, ADAPTER, max_retries=n) for n in (0, 3))))
    assert find_arm(found, LEARNED, max_retries=3) == found[2]
    assert find_arm(found, LEARNED, max_retries=7) is None


def test_what_lacks_an_arm_is_no_experiment() -> None:
    with pytest.raises(UserError, match=f"^here: has no {LEARNED}; evaluate"):
        check(results(run(0.4)), "here")
