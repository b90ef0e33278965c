"""The reader of JSON in replies: what stands in one, what is refused, how long it takes."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise.store.replies import MAX_DEPTH, ReplyError, plain_key, read_reply
from tests.counting import calls

ONE, OTHER = '{"label": "a", "why": "x"}', '{"label": "b", "why": "x"}'


@pytest.mark.parametrize(
    ("text", "values", "is_clean"),
    [
        ("", (), False),
        ("prose", (), False),
        ("{}", ({},), True),
        (" [1, -2.5e3, true, null] \n", ([1, -2500.0, True, None],), True),
        ('```json\n{"a": 1}\n```', ({"a": 1},), True),
        ('```\n{"a": 1}', ({"a": 1},), True),
        ('{"a": 1,}', ({"a": 1},), False),
        ('So: {"a": 1}', ({"a": 1},), False),
        ('{"a": 1} {"a": 1}', ({"a": 1}, {"a": 1}), False),
        ('{"a": "line\nbreak"}', ({"a": "line\nbreak"},), True),
        ('{"a": "{\\"b\\": 1}"}', ({"a": '{"b": 1}'},), True),
        ('{as asked}: {"a": 1} {} it {helps}', ({"a": 1}, {}), False),
        ("{'a': 1}", (), False),
        ('[["a", "b"], ["c", "d"], ["e"', (["a", "b"], ["c", "d"]), False),
        ('{"a": {"b": 1}, "c"', ({"b": 1},), False),
        ('{"a": 1, "A": 2}', (), False),
        ('{"a": 1, "A": 1}', ({"a": 1},), True),
        ('{"a": 01}', (), False),
        ('{"a": ' + "9" * 5_000 + "}", (), False),
        (f"<think>{ONE}</think>{OTHER}", ({"label": "b", "why": "x"},), True),
        (f'<think>{{"label": "a</think>{OTHER}', ({"label": "b", "why": "x"},), True),
        (f"It is [</think>{OTHER}", ({"label": "b", "why": "x"},), True),
        (f"<think>No: {{ or [ .</think>{OTHER}", ({"label": "b", "why": "x"},), True),
        ('{"a": "no </think> tag"}', ({"a": "no </think> tag"},), True),
    ],
)
def test_what_stands_in_a_reply(text: str, values: tuple[Any, ...], is_clean: bool) -> None:
    reply = read_reply(text)
    assert reply.values == values
    assert reply.is_clean is is_clean


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", []),
        ('{"why": "x"}', []),
        (ONE, ["a"]),
        (ONE.replace("label", "**Label**"), ["a"]),
        (f"[{ONE}]", ["a"]),
        (f'{{"answer": {ONE}}}', ["a"]),
        (f'{{"answer": {ONE}', ["a"]),
        (f"{ONE} and again {ONE}", ["a", "a"]),
        (f"{ONE} or {OTHER}", ["a", "b"]),
        (f'{{"plan": [1]}} {ONE}', ["a"]),
        (json.dumps({"label": "a", "why": OTHER}), ["a"]),
        ('{"label": "a", "Label": "a"}', ["a"]),
        (f"<think>{OTHER[:-3]}</think>{ONE}", ["a"]),
    ],
)
def test_answers(text: str, labels: list[str]) -> None:
    assert [found["label"] for found in read_reply(text).answers("label", "why")] == labels


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"label": "a", "label": "b"}', "two values for label"),
        ('{"label": "a", "LABEL": "b"}', "two values for label"),
        ('{"note": 1, "note": 2, "label": "a"}', "two values for note"),
        (ONE[:-1], "breaks off after why"),
        (ONE[:-3], "why is no JSON string, or the reply breaks off"),
        ('{"label": "a", "why": x}', "why is no JSON string"),
        ('{"label": "a", "why": "\\x"}', "not JSON"),
        (f'{{"why": "it says "{ONE}"', "malformed or breaks off after why"),
        (f'{{"quoted": {OTHER}, "label": "a"}}', "outside of the answer"),
        (f'{{"quoted": [{OTHER}], "label": "a"}}', "outside of the answer"),
        (f'"label": "b" {ONE}', "outside of the answer"),
        (f'{ONE} "Label" : "b"', "outside of the answer"),
        (f'{ONE} {{"label": "b"', "breaks off after label"),
    ],
)
def test_what_could_only_be_guessed_is_refused(text: str, why: str) -> None:
    with pytest.raises(ReplyError, match=why):
        read_reply(text).answers("label", "why")


@pytest.mark.parametrize("key", ["Error Type", "errorType", "**ERROR-TYPE**", "`error_type`:"])
def test_the_spelling_of_a_key_does_not_matter(key: str) -> None:
    assert plain_key(key) == plain_key("error_type")


def test_another_key_is_another() -> None:
    keys = ["error_type", "not error_type", "!error_type", "type", "错误", "原因"]
    assert len({plain_key(key) for key in keys}) == len(keys)


def test_nesting_has_an_end() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_reply(deep).is_clean
    assert read_reply(f"[{deep}]").broken
    assert read_reply("[" * 50_000 + ONE).values == ({"label": "a", "why": "x"},)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)
PROSE = st.text(alphabet="abc }],:.\n`")


def spelled_twice(value: Any) -> bool:
    """Whether some object has keys that differ in their spelling alone."""
    if isinstance(value, list):
        return any(map(spelled_twice, value))
    if not isinstance(value, dict):
        return False
    doubled = len({plain_key(key) for key in value}) < len(value)
    return doubled or any(map(spelled_twice, value.values()))


@settings(deadline=None)
@given(st.lists(JSON, max_size=3) | st.dictionaries(st.text(max_size=5), JSON), PROSE, PROSE)
def test_json_is_found_whole_whatever_stands_around(value: Any, before: str, after: str) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        found = read_reply(f"{before}{text}{after}")
        if not spelled_twice(value):
            assert found.values == (value,)
            assert not found.broken
            assert read_reply(text).is_clean


PIECES = [*'{}[]"\\,:1\n', '"a"', ONE, OTHER, "</think>", "```", "\ud800"]


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text_is_read(text: str) -> None:
    reply = read_reply(text)
    assert all(isinstance(value, dict | list) for value in reply.values)
    for broken in reply.broken:
        assert "\n" not in broken.reason
        assert broken.reason.encode()
    with suppress(ReplyError):
        assert all("label" in found for found in reply.answers("label", "why"))


@pytest.mark.parametrize(
    "piece",
    [
        *("{", "[", '{"', '{"a":', '{"a":{', '{"a":"', '{"a":1,', '["a",', '{"a":[', "[[1],", '"'),
        *('\\"', '{"\\"', '{"a":"{",', '"a":', '"a" ', "{[", "{[]", "9", "[9", "</think>"),
        *(ONE, ONE[:-1] + ","),
    ],
)
def test_the_work_of_reading_grows_with_the_length(piece: str) -> None:
    """A quadratic search would not end within the suite's timeout; calls are counted besides."""

    def read(length: int) -> None:
        text = (piece * (length // len(piece) + 1))[:length]
        for whole in (text, '{"' + text, '{"label":"a","b":[' + text):
            with suppress(ReplyError):
                read_reply(whole).answers("label")

    read(50_000)
    short, long = calls(lambda: read(2_000)), calls(lambda: read(20_000))
    assert long < 15 * short
