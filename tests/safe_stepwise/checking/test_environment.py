"""The environment that rewards turns: what it accepts, what each turn pays, and that a retry costs."""

from __future__ import annotations

import inspect
from statistics import fmean
from typing import Any

import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.rewards import StepEnvironment, trajectory_reward
from tests.safe_stepwise.checking.test_rewards import UNREAD, told


def test_ideal_steps_pay_at_every_turn_and_as_a_trajectory() -> None:
    environment = StepEnvironment()
    for group in told()[:20]:
        environment.reset(prompt=[{"role": "user", "content": "?"}], **group.row)
        steps = group.ideal[0].splitlines()
        assert {environment.submit_step(step) for step in steps} == {"accepted"}
        assert environment.turn_rewards == [1.0] * len(steps)
        columns = {name: [value] for name, value in group.row.items()}
        assert [environment.get_reward()] == trajectory_reward([""], [group.ideal[0]], **columns) == [1.0]


def test_a_wrong_step_is_rejected_and_written_anew_at_a_cost() -> None:
    environment = StepEnvironment()
    rejected = []
    for group in told()[:20]:
        for wrong in group.injected:
            environment.reset(**group.row)
            rejected.append(any(environment.submit_step(step) != "accepted" for step in wrong.splitlines()))
            assert (environment.get_reward() or 0) < 0.5
    assert fmean(rejected) > 0.95  # the checker may abstain
    steps = group.ideal[0].splitlines()
    environment.reset(**group.row)
    assert environment.submit_step("I think that it is Oru.").startswith("rejected: it is not of the form")
    assert {environment.submit_step(step) for step in steps} == {"accepted"}
    assert environment.turn_rewards == [0.0, *[1.0] * len(steps)]
    assert environment.get_reward() == pytest.approx((1 + len(steps) / (len(steps) + 1)) / 2)
    assert environment.submit_step(steps[0]) == "rejected: no question is open: its answer was given already"


def test_answers_cannot_be_tried_until_one_is_accepted() -> None:
    environment = StepEnvironment()
    for group in told()[:20]:
        *steps, answer = group.ideal[0].splitlines()
        environment.reset(**group.row)
        assert {environment.submit_step(step) for step in steps} == {"accepted"}
        wrong = f"Step {len(steps) + 1}: ####ANSWER: Nobody Else (Final Answer)"
        assert environment.submit_step(wrong) == "rejected: Wrong Conclusion"
        assert environment.submit_step(answer).startswith("rejected: no question is open")
        assert (environment.get_reward() or 0) <= 0.25


def test_a_step_said_again_pays_nothing_over_the_passages_alone() -> None:
    environment = StepEnvironment()
    row = {"question": "Where was Ors Velt born?", "answer": "Oru", "passages": ["Ors Velt was born in Oru."]}
    environment.reset(**row)
    remarks = [environment.submit_step(f"Step {n}: Ors Velt was born in Oru. (Attribution)") for n in (1, 2, 2)]
    assert remarks == ["accepted", *2 * ["rejected: Redundancy"]]
    assert environment.turn_rewards == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "submitted",
    [
        None,
        3,
        b"Step 1: Ors Velt was born in Oru. (Attribution)",
        "",
        "Step 1: Ors Velt was born in Oru.\nStep 2*****: x (Attribution)",
        f"Step 1: {'Ors Velt was born in Oru. ' * 1000}(Attribution)",
    ],
)
def test_what_is_no_step_costs_a_turn(submitted: Any) -> None:
    environment = StepEnvironment()
    assert environment.submit_step("Step 1: Oru is old. (Attribution)").startswith("rejected: no question is open")
    environment.reset(question="Where was Ors Velt born?", answer="Oru", passages=["Ors Velt was born in Oru."])
    assert environment.submit_step(submitted).startswith("rejected: it is not of the form")
    step = "<think>Hm.</think>\nStep 1: Ors Velt was born in Oru. (Attribution)"
    assert environment.submit_step(step) == "accepted"
    assert environment.turn_rewards == [0.0, 1.0]


def test_what_cannot_be_read_is_accepted_and_pays_nothing() -> None:
    environment = StepEnvironment()
    environment.reset(**told()[0].row)
    assert environment.get_reward() == 0
    assert environment.submit_step(UNREAD) == "accepted"
    assert (environment.turn_rewards, environment.get_reward()) == ([0.0], 0.0)


def test_a_row_without_a_plan_has_no_reward_and_one_without_columns_is_refused() -> None:
    environment = StepEnvironment()
    environment.reset(**{**told()[0].row, "reasoning_path": [], "evidence": [], "decomposition": []})
    assert environment.submit_step(UNREAD) == "accepted"
    assert environment.get_reward() is None
    with pytest.raises(UserError, match="passages"):
        environment.reset(question="Where?", answer="Oru")


def test_the_tool_of_the_environment_is_described_to_a_model() -> None:
    public = [name for name, _ in inspect.getmembers(StepEnvironment, inspect.isfunction) if name[0] != "_"]
    assert public == ["get_reward", "reset", "submit_step"]
    assert "Args:\n" in (StepEnvironment.submit_step.__doc__ or "")
