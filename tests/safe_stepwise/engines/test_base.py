from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise.engines.base import Engine, Message, Request, Sampling, Schema, request_key
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.records import Question, Triple

ASKED = Request((Message("system", "Be short."), Message("user", "Where is Oru?")), role="extract")
SERVED = OpenAIEngine("a", "http://one/v1")


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("system", "Be short."), Message("user", "Where is Vel?"))},
        {"messages": (Message("user", "Be short."), Message("user", "Where is Oru?"))},
        {"messages": (Message("user", "Be short.Where is Oru?"),)},
        {"sampling": Sampling(temperature=0.1)},
        {"sampling": Sampling(top_p=0.9)},
        {"sampling": Sampling(max_tokens=7)},
        {"sampling": Sampling(seed=1)},
        {"sampling": Sampling(stop=("\n",))},
        {"schema": Schema.of("triples", {"type": "object"})},
    ],
)
def test_everything_that_can_change_the_answer_is_in_the_key(change: dict[str, object]) -> None:
    for engine in (SERVED, echoing()):
        assert request_key(engine, replace(ASKED, **change)) != request_key(engine, ASKED)  # type: ignore[arg-type]


def test_the_schema_is_in_the_key_by_name_and_content() -> None:
    schemas = [Schema.of("a", {}), Schema.of("b", {}), Schema.of("a", {"type": "object"})]
    keys = {request_key(SERVED, replace(ASKED, schema=schema)) for schema in schemas}
    assert len(keys) == 3


def test_who_asks_a_model_is_not_in_the_key() -> None:
    judge = replace(ASKED, role="judge")
    assert request_key(SERVED, judge) == request_key(SERVED, ASKED)


def test_what_a_simulated_engine_goes_by_is_in_the_key() -> None:
    question = Question("q", "musique", "train", "Where is Oru?", "Marn")
    asked = [
        ASKED,
        replace(ASKED, role="judge"),
        replace(ASKED, passage=1),
        replace(ASKED, question=question),
        replace(ASKED, question=replace(question, evidence=(Triple("Oru", "in", "Marn"),))),
    ]
    assert len({request_key(echoing(), one) for one in asked}) == len(asked)
    assert len({request_key(SERVED, one) for one in asked}) == 1


def test_model_and_address_are_in_the_key() -> None:
    engines: list[Engine] = [
        SERVED,
        OpenAIEngine("b", "http://one/v1"),
        OpenAIEngine("a", "http://two/v1"),
        OpenAIEngine("a"),
        echoing(),
        echoing("1"),
    ]
    assert len({request_key(engine, ASKED) for engine in engines}) == len(engines)


TEXT = st.text('ab,"é\ud800', max_size=3)
REQUESTS = st.builds(
    Request,
    st.lists(st.builds(Message, st.sampled_from(["user", "system"]), TEXT), max_size=2).map(tuple),
    st.builds(
        Sampling,
        temperature=st.sampled_from([0.0, 0.5]),
        seed=st.integers(0, 1),
        stop=st.lists(TEXT, max_size=2).map(tuple),
    ),
    st.none() | st.builds(Schema, TEXT, TEXT),
    TEXT,
)


@settings(deadline=None)
@given(REQUESTS, REQUESTS)
def test_two_requests_have_one_key_only_if_they_ask_the_same(one: Request, other: Request) -> None:
    same = replace(one, role="") == replace(other, role="")
    assert (request_key(SERVED, one) == request_key(SERVED, other)) == same
    assert request_key(SERVED, one) == request_key(SERVED, replace(one, role="other"))


def echoing(digest: str = "") -> MockEngine:
    return MockEngine(lambda request: request.messages[-1].content, digest)
