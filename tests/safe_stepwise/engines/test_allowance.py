"""What a user allows a role: how its requests are asked, and that nothing else changes."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from safe_stepwise import prompts
from safe_stepwise.engines.base import AS_PROMPTED, EFFORTS, Allowance, Message, Request, Sampling, request_key
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.methods.generator import FINAL_ROLE, generator_request
from safe_stepwise.methods.generator import ROLE as GENERATE
from safe_stepwise.methods.scene import JUDGE
from safe_stepwise.methods.verifier import ROLE as VERIFY
from safe_stepwise.methods.verifier import verifier_request
from safe_stepwise.metric.judge import JudgeCase, judge_request
from safe_stepwise.records import Passage, Step

SERVED = OpenAIEngine("a", "http://one/v1")
ASKED = Request((Message("system", "Be short."), Message("user", "Where is Oru?")), role="path")
GIVEN = Allowance.by_role({"path": 99, "judge": 7}, {"judge": "low", "path": "high"})


def test_a_role_is_asked_as_it_is_allowed_and_others_as_they_ask() -> None:
    assert GIVEN.apply(ASKED).sampling == Sampling(max_tokens=99, effort="high")
    other = replace(ASKED, role="glean")
    assert GIVEN.apply(other) is other
    assert Allowance.by_role({"path": 99}).apply(ASKED).sampling == Sampling(max_tokens=99)
    assert Allowance.by_role({}, {"path": "low"}).apply(ASKED).sampling == Sampling(effort="low")


def test_only_what_concerns_some_roles_is_theirs() -> None:
    assert GIVEN.restrict(["judge"]) == Allowance.by_role({"judge": 7}, {"judge": "low"})
    assert GIVEN.restrict(["extract"]) == AS_PROMPTED
    assert not AS_PROMPTED
    assert GIVEN
    assert (GIVEN.has_limits("path"), GIVEN.has_limits("extract")) == (True, False)


def test_it_goes_to_workers_and_stands_in_records() -> None:
    assert pickle.loads(pickle.dumps(GIVEN)) == GIVEN
    assert hash(GIVEN) == hash(Allowance.by_role({"judge": 7, "path": 99}, dict(GIVEN.effort)))
    assert GIVEN.plain == {"max_tokens": "judge 7, path 99", "reasoning_effort": "judge low, path high"}
    assert (AS_PROMPTED.plain, AS_PROMPTED.effort_suffix) == ({}, "")


def test_a_request_without_an_effort_has_the_key_that_it_always_had() -> None:
    """Replies that were paid for before there were efforts stay what they are."""
    key = "f05af48c9573adc601d80c41b3242a8cc2126f17ead19685af98c312d759be0d"
    assert request_key(SERVED, ASKED) == key


@pytest.mark.parametrize("effort", EFFORTS)
def test_an_effort_is_part_of_the_key(effort: str) -> None:
    asked = Allowance.by_role({}, {"path": effort}).apply(ASKED)  # type: ignore[dict-item]
    others = [ASKED, replace(ASKED, sampling=Sampling(stop=(effort,)))]
    assert request_key(SERVED, asked) not in [request_key(SERVED, other) for other in others]


def test_limits_are_those_of_the_prompt_files() -> None:
    oru = Passage("Oru", ("Oru lies on the Vel.",))
    step = Step(1, "According to Passage 1, Oru lies on the Vel.", "Attribution")
    asked = [
        generator_request("Where?", [oru], []),
        generator_request("Where?", [oru], [], final=True),
        verifier_request("Where?", [oru], [], step),
        judge_request(JudgeCase("Vel", ("Vel",))),
    ]
    roles = [GENERATE, FINAL_ROLE, VERIFY, JUDGE]
    assert [request.role for request in asked] == roles
    assert [request.sampling.max_tokens for request in asked] == [1024, 1024, 2048, 512]
    assert [prompts.limits()[role] for role in roles] == [1024, 1024, 2048, 512]
