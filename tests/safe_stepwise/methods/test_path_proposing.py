"""The request for a relation path, its reply, and masked questions."""

from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.methods.path_proposing import TOPIC, completion_of, masked, propose_request, read_path

paths = st.lists(st.text(min_size=1), min_size=1, max_size=4).map(tuple)


@given(paths, paths)
def test_a_path_comes_back_and_a_schema_holds_it_to_those_there_are(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    said = completion_of(one)
    assert read_path(said) == one
    request = propose_request("who?", "Ana", [one])
    assert request.schema is not None
    schema = json.loads(request.schema.text)
    jsonschema.validate(json.loads(said), schema)
    if one != other:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(json.loads(completion_of(other)), schema)


@pytest.mark.parametrize("text", ["", "{}", '{"path": []}', '{"path": "by"}', '{"path": [1]}', "[]"])
def test_what_names_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_path(text)


def test_a_question_can_end_no_place_of_the_prompt() -> None:
    request = propose_request('who "?\nTopic: "x"', "A\nB")
    assert request.messages[1].content.count("\n") == 1


def test_questions_of_one_template_are_masked_alike() -> None:
    asked = {masked(f"who wrote [{topic}] in it", [topic]) for topic in ("It", "a [b]", "1", "who")}
    assert asked == {f"who wrote {TOPIC} in it"}
