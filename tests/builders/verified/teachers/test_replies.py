from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.verified.teachers.replies import (
    MAX_NAME_CHARS,
    MAX_TRIPLES,
    UnreadableReply,
    read_groups,
    read_path,
    read_triples,
)
from safe_stepwise import prompts
from safe_stepwise.records import TEACHER_TYPES, Triple
from tests.counting import calls

ORU = Triple("Oru", "country", "Marn", None, 0)
VEL = Triple("Vel", "crosses", "Oru", None, 1)
BOTH = [
    {"head": "Oru", "relation": "country", "tail": "Marn", "sentence": 0},
    {"head": "Vel", "relation": "crosses", "tail": "Oru", "sentence": 1},
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"triples": BOTH}),
        json.dumps(BOTH),
        f"```json\n{json.dumps({'triples': BOTH}, indent=2)}\n```",
        f"```\n{json.dumps(BOTH)}",
        json.dumps([["Oru", "country", "Marn", 0], ["Vel", "crosses", "Oru", 1]]),
        f"Here they are:\n{json.dumps({'triples': BOTH})}\nAnything else?",
        json.dumps({"triples": BOTH})[:-2],
        json.dumps({"triples": [*BOTH, {"head": "Vel", "rela": 1}]})[:-9],
        json.dumps({"triples": BOTH}).replace("]", ",]"),
        json.dumps({"facts": BOTH}),
        "<think>{no}</think>" + json.dumps({"triples": BOTH}),
    ],
)
def test_triples_in_every_wrapping(text: str) -> None:
    assert read_triples(text).triples == (ORU, VEL)


def test_other_words_for_the_parts() -> None:
    text = '{"triples": [{"subject": "Oru", "predicate": "located_in", "object": 7}]}'
    assert read_triples(text).triples == (Triple("Oru", "located in", "7"),)


@pytest.mark.parametrize(
    "bad",
    [
        ["Oru", "country"],
        ["Oru", "country", ""],
        ["Oru", "country", None],
        ["Oru", "country", ["Marn"]],
        ["Oru", "country", True],
        {"head": "Oru", "tail": "Marn"},
        {"head": "Oru", "relation": {}, "tail": "Marn"},
        "Oru – country – Marn",
        None,
        3,
        ["Oru", "country", "M" * (MAX_NAME_CHARS + 1)],
    ],
)
def test_what_is_no_triple_is_left_out_and_counted(bad: object) -> None:
    found = read_triples(json.dumps({"triples": [BOTH[0], bad, BOTH[1]]}))
    assert found.triples == (ORU, VEL)
    assert found.left_out == 1


def test_repetition_without_end_is_cut() -> None:
    many = [["Oru", "country", f"Marn {n}"] for n in range(MAX_TRIPLES + 50)]
    found = read_triples(json.dumps(many))
    assert len(found.triples) == MAX_TRIPLES
    assert found.left_out == 50
    assert read_triples(json.dumps(BOTH * 500)).triples == (ORU, VEL)


def test_no_triples_is_an_answer() -> None:
    assert read_triples('{"triples": []}').triples == ()
    assert read_triples("[]").triples == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("Es gibt keine Fakten in diesem Absatz.", "no JSON"),
        ("文章中没有事实。", "no JSON"),
        ('{"triples": [{"head": "Oru', "broken"),
        ("{{{{[[[[", "broken"),
        ("null", "no JSON"),
        ("####ANSWER: Marn", "no JSON"),
    ],
)
def test_unreadable_triples(text: str, reason: str) -> None:
    with pytest.raises(UnreadableReply, match=reason):
        read_triples(text)


# Groups


def test_groups() -> None:
    groups = (("USA", "United States"),)
    assert read_groups('{"groups": [["USA", "United States", "USA"], ["Oru"], [], [1, 2]]}') == groups
    assert read_groups('Groups: [["USA", "United States"], ["Oru", "Or') == groups
    assert read_groups("[]") == ()
    with pytest.raises(UnreadableReply):
        read_groups("None of them.")


# Paths


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ('{"path": [2, 1], "verdict": "none", "explanation": "x"}', (2, 1)),
        ('{"path": ["2", "T1", "#3"], "verdict": "None", "explanation": "x"}', (2, 1, 3)),
        ('So: {"path": [2], "verdict": "none", "explanation": "x"} Done.', (2,)),
        ('{"verdict": "none", "path": null}', ()),
        ('So {"path": [["Oru", "country", "Marn"]], "verdict": "none"}', (Triple("Oru", "country", "Marn"),)),
        (
            '{"path": [{"head": "Oru", "relation": "country", "tail": "Marn"}], "verdict": "none"}',
            (Triple("Oru", "country", "Marn"),),
        ),
    ],
)
def test_paths(text: str, steps: tuple[object, ...]) -> None:
    path = read_path(text)
    assert path.steps == steps
    assert path.verdict == "none"


def test_a_model_is_asked_for_what_a_teacher_may_say() -> None:
    schema = json.loads(prompts.load("verification/path").schema.text)
    assert tuple(schema["properties"]["verdict"]["enum"]) == TEACHER_TYPES


@pytest.mark.parametrize("verdict", TEACHER_TYPES)
def test_every_verdict(verdict: str) -> None:
    written = verdict.replace("_", " ").title()
    assert read_path(json.dumps({"path": [], "verdict": written})).verdict == verdict


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("The path is complete.", "no JSON"),
        ('{"path": [1], "verdict": "no', "broken"),
        ('{"path": [1]}', "broken"),
        ('{"path": [1], "verdict": "unparsed"}', "unknown verdict"),
        ('{"path": [1], "verdict": "unspecified"}', "unknown verdict"),
        ('{"path": [1], "verdict": "nonesuch"}', "unknown verdict 'nonesuch'"),
        ('{"path": [1], "verdict": null}', "unknown verdict"),
        ('{"path": "1, 2", "verdict": "none"}', "no list"),
        ('{"path": [1.5], "verdict": "none"}', "neither"),
        ('{"path": [true], "verdict": "none"}', "neither"),
        ('{"path": [["Oru"]], "verdict": "none"}', "neither"),
        ('{"path": [1], "verdict": "none"} {"path": [2], "verdict": "none"}', "different"),
    ],
)
def test_unreadable_paths(text: str, reason: str) -> None:
    with pytest.raises(UnreadableReply, match=reason):
        read_path(text)


# Anything


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["triples", "groups", "path", "verdict", "head", "relation", "tail"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
PIECES = st.lists(
    st.sampled_from(
        ['{"triples": [', '["a","b","c"]', "{", "}", "[", "]", '"', "\\", ",", "```json\n",
         '"verdict": "none"', "<|im_end|>", "####ANSWER: x", "\ud800", "\0", "é", "9" * 5000]
    ),
    max_size=12,
)  # fmt: skip


@given(st.text() | JSONISH.map(json.dumps) | PIECES.map("".join))
def test_any_reply_is_read_or_refused(text: str) -> None:
    for read in (read_triples, read_groups, read_path):
        with suppress(UnreadableReply):
            read(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{" * 100_000,
        '{"' * 50_000,
        '{"a": "' * 15_000,
        '["a", ' * 16_000,
        '{"path": [' * 10_000,
        "\\" * 100_000,
        '"\\' * 50_000,
        "```" * 33_000,
        json.dumps([["Oru", "country", "Marn"]] * 4_000),
        "x" * 100_000,
        '{"path": [[' + '"a",' * 25_000,
        "{[" * 50_000,
        "{[]" * 33_000,
        "9" * 100_000,
    ],
)
def test_a_long_reply_takes_work_in_proportion(text: str) -> None:
    """A quadratic search would not end within the suite's timeout; calls are counted besides."""

    def work(given: str) -> int:
        return sum(calls(lambda read=read: _tried(read, given)) for read in READERS)

    for read in READERS:
        _tried(read, text)
    short, long = work(text[:2_000]), work(text[:20_000])
    assert long < 15 * short


READERS: tuple[Callable[[str], object], ...] = (read_triples, read_groups, read_path)


def _tried(read: Callable[[str], object], text: str) -> None:
    with suppress(UnreadableReply):
        read(text)
