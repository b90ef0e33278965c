"""What the Space's page does, without the page: typed text to a question, and the loop over it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.synthetic import generate, parse_spec
from safe_stepwise.commands.loop import Loop
from safe_stepwise.commands.reading import examples
from safe_stepwise.commands.trying import answering, html
from safe_stepwise.commands.trying.answering import (
    LIMITS,
    Progress,
    answer_progress,
    players,
    typed_fields,
    typed_question,
)
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import UNREAD, run_question
from safe_stepwise.open import open_engine
from safe_stepwise.records import Attempt, Feedback, Question, Trajectory
from safe_stepwise.taxonomy import ERROR_TYPES
from tests.browsing import BREAKOUTS

PAGES = "# Low Tide\nA film by Ana Brell.\n\nAna Brell was born in Oru."
FACTS = "Low Tide | director | Ana Brell\nAna Brell | place of birth | Oru"


def last(*fields: str, **owner: str) -> Progress:
    async def ended() -> Progress:
        found = [one async for one in answer_progress(typed_question(*fields), players(owner))]
        assert [len(one.attempts) for one in found[:-1]] == [*range(1, len(found))]
        return found[-1]

    return asyncio.run(ended())


@pytest.mark.parametrize("row", examples(), ids=lambda row: row["id"])
def test_the_examples_are_answered(row: dict[str, str]) -> None:
    found = last(*typed_fields(row))
    assert found.record is not None
    assert (found.record["answer"], found.record["verified"]) == (row["answer"], True)
    rejected = [a.feedback.error_type for a in found.attempts if a.feedback and not a.accepted]
    assert rejected
    assert set(rejected) <= {one.name for one in ERROR_TYPES}
    assert list(found.labels) == [a.feedback.error_type for a in found.attempts if a.feedback]
    assert found.record["simulated"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"question": " \n"}, "there is no question"),
        ({"passages": " \n"}, "there are no passages"),
        ({"passages": "# Title alone"}, "there are no passages"),
        ({"passages": "Oru.\n\n" * 21, "facts": ""}, "21 passages: 20 at most"),
        ({"answer": "Tesk"}, "one end of a fact"),
        ({"facts": "Oru | river | Vel"}, "from 2"),
        ({"facts": "a | b | c\n" * 13}, "facts: 13"),
        ({"facts": "Oru | river\n" * 2}, r"fact 1: write head \| relation \| tail"),
        ({"facts": FACTS.replace("Oru", "Marn")}, "fact 2: no passage names both “Ana Brell”"),
        *(({name: "x" * (most + 1)}, f"{most:,} at most") for name, most in LIMITS.items()),
    ],
)
def test_what_is_too_much_or_none_is_told_in_a_line(change: dict[str, str], says: str) -> None:
    fields = {"question": "Where?", "passages": PAGES, "facts": FACTS, "answer": "Oru"}
    typed_question(**fields)
    with pytest.raises(UserError, match=says):
        typed_question(**fields | change)


@given(st.lists(st.text(max_size=300), min_size=4, max_size=4))
def test_whatever_is_typed_makes_a_question_or_a_complaint(fields: list[str]) -> None:
    try:
        found = typed_question(*fields)
    except UserError:
        return
    assert found.question
    assert all(page.text.strip() for page in found.passages)


def test_without_facts_or_a_model_nobody_can_answer() -> None:
    with pytest.raises(UserError, match="this Space has no model"):
        last("Where?", PAGES)


@pytest.mark.parametrize("spec", ["", "vllm:somebody/model", "transformers:/etc", "http://169.254.169.254/"])
def test_the_owner_sets_both_players_to_what_a_page_can_open(spec: str) -> None:
    with pytest.raises(UserError, match=answering.VERIFIER):
        players({answering.GENERATOR: "symbolic", answering.VERIFIER: spec})


def test_nobody_is_told_where_the_owners_server_is(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai", reason="needs openai ([dev])")
    spec = "openai:MODEL@http://127.0.0.1:1/v1"
    owner = {answering.GENERATOR: spec, answering.VERIFIER: spec}
    with pytest.raises(UserError) as told:
        last("Where?", PAGES, **owner)
    assert "127.0.0.1" not in str(told.value)
    assert "127.0.0.1" in capsys.readouterr().err


def test_a_fault_of_ours_ends_one_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Loop, "answer", lambda *_: [][0])
    with pytest.raises(UserError, match="a fault of ours"):
        last("Where was the director of Low Tide born?", PAGES, FACTS)
    assert "IndexError" in capsys.readouterr().err


def test_a_question_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(answering, "SECONDS", 0.0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UserError, match="took longer than 0 s"):
        last("Where was the director of Low Tide born?", PAGES, FACTS)
    assert not list(tmp_path.iterdir())  # what was typed is not kept


def test_every_text_is_escaped() -> None:
    nasty = " ".join(BREAKOUTS)
    said = Feedback("Contradictory", nasty, nasty)
    tried = (
        Attempt(1, f"Step 1: {nasty} (Logical)", said, False),
        Attempt(1, nasty, Feedback(UNREAD, nasty, ""), True),
    )
    end = {"answer": nasty, "doubts": [nasty], "simulated": True}
    for page in (html.render_progress(Progress(tried, (), end)), html.render_error(nasty)):
        for mark in ("<script", "<img", "<svg", "<!--", "\u202e", "\0"):
            assert mark not in page
    assert typed_question(nasty[:400], nasty).question


@pytest.mark.parametrize("title", ["", " ", "?", "(x)", "…"])
@pytest.mark.parametrize("spec", ["symbolic", "symbolic:error_rate=1"])
def test_passages_need_no_title(title: str, spec: str) -> None:
    """Players without a model word steps by titles, where there are any."""

    async def answered(question: Question) -> Trajectory:
        return await run_question(question, Client(open_engine(spec)), Client(open_engine("symbolic")))

    for question, _ in generate(parse_spec("rows=12,seed=5,noise=0.0"), 0, 12, "train"):
        untitled = replace(question, passages=tuple(replace(page, title=title) for page in question.passages))
        assert asyncio.run(answered(untitled)).stop_reason in ("answered", "failed", "max_steps")
