from __future__ import annotations

import ast
import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise.engines import base
from safe_stepwise.engines.base import Completion, Engine, Message, Request, Sampling, Schema, request_key
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.records import Usage

ASKED = Request((Message("system", "Be short."), Message("user", "Where is Oru?")), role="extract")
SERVED = OpenAIEngine("a", "http://one/v1")
OLD_KEY = "f05af48c9573adc601d80c41b3242a8cc2126f17ead19685af98c312d759be0d"
"""Of `ASKED` to `SERVED`, as it was before requests had choices."""


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("system", "Be short."), Message("user", "Where is Vel?"))},
        {"messages": (Message("user", "Be short."), Message("user", "Where is Oru?"))},
        {"messages": (Message("user", "Be short.Where is Oru?"),)},
        {"sampling": Sampling(temperature=0.1)},
        {"sampling": Sampling(top_p=0.9)},
        {"sampling": Sampling(repetition_penalty=1.1)},
        {"sampling": Sampling(max_tokens=7)},
        {"sampling": Sampling(seed=1)},
        {"sampling": Sampling(stop=("\n",))},
        {"schema": Schema.from_dict("triples", {"type": "object"})},
        {"choices": ("Oru", "Vel")},
    ],
)
def test_everything_that_can_change_the_answer_is_in_the_key(change: dict[str, object]) -> None:
    for engine in (SERVED, echoing()):
        assert request_key(engine, replace(ASKED, **change)) != request_key(engine, ASKED)  # type: ignore[arg-type]


def test_the_schema_is_in_the_key_by_name_and_content() -> None:
    schemas = [Schema.from_dict("a", {}), Schema.from_dict("b", {}), Schema.from_dict("a", {"type": "object"})]
    keys = {request_key(SERVED, replace(ASKED, schema=schema)) for schema in schemas}
    assert len(keys) == 3


def test_choices_are_in_the_key_one_by_one_and_only_where_there_are_any() -> None:
    listed = [("a", "b"), ("b", "a"), ("a",), ("ab",), ("a, b",)]
    keys = {request_key(SERVED, replace(ASKED, choices=choices)) for choices in listed}
    assert len(keys) == 5
    # What a cache held before there were choices it still holds.
    assert request_key(SERVED, ASKED) == OLD_KEY


def test_who_asks_a_model_is_not_in_the_key() -> None:
    judge = replace(ASKED, role="judge")
    assert request_key(SERVED, judge) == request_key(SERVED, ASKED)


class Sealed:
    """A scene that none may open."""

    def __init__(self, *key: object) -> None:
        self.key = list(key)

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"an engine looked at the scene's {name}")


class Secret(Sealed):
    """One of which not even the key is an engine's business."""

    def __init__(self) -> None:
        pass


def test_what_a_simulated_engine_goes_by_is_in_the_key() -> None:
    asked = [
        ASKED,
        replace(ASKED, role="judge"),
        *(replace(ASKED, scene=Sealed(*key)) for key in ((1,), (2,), (2, "Marn"))),
    ]
    assert len({request_key(echoing(), one) for one in asked}) == len(asked)
    assert len({request_key(SERVED, replace(one, scene=Secret())) for one in asked}) == 1


def test_engines_hand_a_scene_on_unopened() -> None:
    asked = replace(ASKED, scene=Sealed("q"))
    scripted = MockEngine(lambda request: request.messages[-1].content)
    (said,) = asyncio.run(Client(scripted).complete_all([asked]))
    assert said == Completion("Where is Oru?", Usage(10, 0, 4))
    assert replace(ASKED, scene=Secret()) == ASKED  # nor do those who compare or print requests
    assert repr(replace(ASKED, scene=Secret())) == repr(ASKED)


def test_no_engine_file_speaks_of_scenes() -> None:
    """Nor of a question, a step or a verdict; ``base`` alone names the scene, for its key."""
    nouns = {"Question", "Step", "Feedback", "Scene"}
    for file in sorted(Path(base.__file__).parent.glob("*.py")):
        nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
        read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        if file.name != "base.py":
            assert not (read & {"scene"} | names & nouns), file.name
        froms = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        upper = r"safe_stepwise\.(methods|checking|metric|players|prompts|open)\b"
        assert not [name for name in froms if re.match(upper, name)], file.name


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
