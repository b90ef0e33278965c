"""A cascade of verifiers: who is asked, whose verdict counts, and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import format_feedback, parse_feedback
from safe_stepwise.methods.verifier import request_verdict
from safe_stepwise.open import Opener, check_spec, open_engine
from safe_stepwise.players.cascade import CascadeEngine, read_cascade
from safe_stepwise.records import Feedback, Passage, Question, Step, Usage

PAGES = (Passage("Oru", ("Oru lies on the Vel.",)),)
ASKED = Question("q", "synthetic", "test", "On what does Oru lie?", "the Vel", passages=PAGES)
TRUE = Step(1, "According to Passage 1, Oru lies on the Vel.", "Attribution")
FALSE = Step(1, "According to Passage 1, Oru lies on the Isk.", "Attribution")
VAGUE = Step(1, "According to Passage 1, Oru is fond of music.", "Attribution")


class Told(MockEngine):
    """A verifier that gives one label with one score, and counts its calls."""

    def __init__(self, label: str, score: float | None, name: str = "told") -> None:
        super().__init__(lambda _: "")
        self.name, self.calls = name, list[Request]()
        self.identity = {"engine": "told", "label": label, "score": score}
        self.reply = Completion(
            format_feedback(Feedback(label, "So.", "" if label == "Correct" else "Again.")),
            Usage(10, 4, 2),
            score=score,
        )

    async def generate(self, requests: Any) -> Any:
        self.calls += requests
        return [self.reply for _ in requests]


def judge(engine: Any, step: Step, scored: bool = False) -> Completion:
    (reply,) = asyncio.run(engine.generate([request_verdict(ASKED, (), step, scored=scored)]))
    assert isinstance(reply, Completion)
    return reply


def label_of(reply: Completion) -> str:
    return parse_feedback(reply.text).error_type


@pytest.mark.parametrize(
    ("score", "decides"), [(0.95, True), (0.9, True), (0.89, False), (0.5, False), (0.1, False), (None, False)]
)
def test_the_first_decides_what_it_is_sure_of(score: float | None, decides: bool) -> None:
    first, last = Told("Correct", score), Told("Unsupported", 0.3)
    reply = judge(CascadeEngine([first, last]), TRUE)
    assert label_of(reply) == ("Correct" if decides else "Unsupported")
    assert len(last.calls) == (not decides)
    assert reply.usage == (Usage(10, 4, 2) if decides else Usage(20, 8, 4))
    assert reply.score is (None if decides else 0.3), "as the last tells it"


def test_a_score_is_that_of_the_stage_that_decided() -> None:
    first, last = Told("Correct", 0.97), Told("Unsupported", 0.3)
    assert judge(CascadeEngine([first, last]), TRUE, scored=True).score == 0.97
    assert judge(CascadeEngine([first, last], 0.98), TRUE, scored=True).score == 0.3


def test_the_checker_decides_the_errors_that_it_proves_and_leaves_the_rest() -> None:
    last = Told("Off-topic", None)
    engine = CascadeEngine([open_engine("checker"), last])
    assert label_of(judge(engine, FALSE)) in ("Contradictory", "Unsupported")
    assert not last.calls
    assert [label_of(judge(engine, step)) for step in (VAGUE, TRUE)] == ["Off-topic", "Off-topic"]
    assert len(last.calls) == 2


def test_an_error_is_decided_by_a_low_score_and_nothing_by_an_unreadable_verdict() -> None:
    for score, is_sure in ((0.1, True), (0.11, False), (0.95, False)):
        last = Told("Correct", None)
        judge(CascadeEngine([Told("Redundancy", score), last]), TRUE)
        assert len(last.calls) == (not is_sure)
    prose, last = Told("Correct", 0.99), Told("Off-topic", None)
    prose.reply = Completion('The label "Correct" fits.', score=0.99)
    assert label_of(judge(CascadeEngine([prose, last]), TRUE)) == "Off-topic"


def test_a_time_limit_reaches_every_server() -> None:
    engine: Any = Opener(5.0)("cascade:checker,openai:m@http://a:1/v1,http://b:1/v1")
    assert [server.timeout for server in engine.stages[1].servers] == [5.0, 5.0]


def test_an_error_that_may_pass_is_the_cascades_and_any_other_leaves_it_to_the_next() -> None:
    class Broken(Told):
        is_transient = True

        async def generate(self, requests: Any) -> Any:
            return [EngineError("gone", transient=self.is_transient) for _ in requests]

    (reply,) = asyncio.run(
        CascadeEngine([Broken("Correct", None), Told("Correct", 1)]).generate([request_verdict(ASKED, (), TRUE)])
    )
    assert isinstance(reply, EngineError)
    assert reply.transient
    lasting = Broken("Correct", None)
    lasting.is_transient = False
    assert label_of(judge(CascadeEngine([lasting, Told("Off-topic", 0.2)]), TRUE)) == "Off-topic"
    (refused,) = asyncio.run(CascadeEngine([Told("Correct", 1), Told("Correct", 1)]).generate([Request(())]))
    assert "judges steps alone" in str(refused)


def test_it_is_simulated_if_a_stage_is_and_named_by_its_stages() -> None:
    engine = open_engine("cascade:checker,symbolic:error_rate=0.1,seed=3@0.8")
    assert engine.simulated
    assert engine.name == "cascade:checker,symbolic:error_rate=0.1,seed=3 (simulated)@0.8"
    assert engine.identity["threshold"] == 0.8
    other = open_engine("cascade:checker,symbolic:error_rate=0.1,seed=3@0.7")
    assert other.identity != engine.identity


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cascade:checker", "name two verifiers or more"),
        ("cascade:checker,", "name two verifiers or more"),
        ("cascade:checker,symbolic@0.3", "'symbolic@0.3' names no engine"),
        ("cascade:checker,symbolc", "'symbolc' names no engine; did you mean symbolic"),
        ("cascade:checker,cascade:checker,symbolic", "a cascade in a cascade"),
        ("cascade:checker,symbolic:error=1", "cascade: symbolic:error=1: symbolic:error=1: has no setting 'error'"),
        ("cascade:check,symbolic", "'check' names no engine; did you mean checker"),
    ],
)
def test_a_spec_that_is_none_is_told_in_a_line(spec: str, message: str) -> None:
    for read in (open_engine, check_spec):
        read_spec: Callable[[str], Any] = read
        with pytest.raises(UserError, match=message):
            read_spec(spec)


@given(st.lists(st.sampled_from(["checker", "symbolic:error_rate=0.1,seed=3", "openai:a@http://h/v1?without=seed,schema",
                                 "vllm:org/m@v1+ns/a@v2", "nli:./x"]), min_size=2, max_size=4),
       st.none() | st.sampled_from([0.5, 0.75, 1.0]))  # fmt: skip
def test_specs_keep_their_own_commas_and_marks(specs: list[str], threshold: float | None) -> None:
    setting = ",".join(specs) + ("" if threshold is None else f"@{threshold}")
    assert read_cascade(setting, str) == (specs, 0.9 if threshold is None else threshold)
    assert read_cascade(setting.replace(",", ", "), str) == (specs, 0.9 if threshold is None else threshold)
