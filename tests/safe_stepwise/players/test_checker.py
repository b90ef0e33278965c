"""The passage checker as a verifier: without a model, in every place that takes a verifier's spec."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from safe_stepwise.commands.main import carry_out
from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import parse_feedback
from safe_stepwise.methods.verifier import request_verdict
from safe_stepwise.open import open_engine
from safe_stepwise.records import Passage, Question, Step

PAGES = (Passage("Dune Rain", ("Dune Rain is a 1954 film. It was directed by Ors Velt.",)),)
QUESTION = Question("q", "hotpotqa", "", "Who made Dune Rain?", "Ors Velt", passages=PAGES)


def verdict(spec: str, text: str, *previous: str, searches: frozenset[int] = frozenset()) -> tuple[str, str, str]:
    steps = [Step(n, before, "Attribution") for n, before in enumerate(previous, 1)]
    request = request_verdict(QUESTION, steps, Step(len(steps) + 1, text, "Attribution"), searches=searches)
    (reply,) = asyncio.run(open_engine(spec).generate([request]))
    assert isinstance(reply, Completion)
    feedback = parse_feedback(reply.text)
    return feedback.error_type, feedback.diagnosis, feedback.guidance


@pytest.mark.parametrize(
    ("text", "label", "strict"),
    [
        ("Ors Velt directed Dune Rain.", "Correct", "Correct"),
        ("Dune Rain was shown in Marn for years.", "Unsupported", "Unsupported"),
        ("Dune Rain directed Ors Velt.", "Contradictory", "Contradictory"),
        ("Dune Rain is beloved.", "Correct", "Unsupported"),
    ],
)
def test_it_judges_by_the_passages(text: str, label: str, strict: str) -> None:
    assert verdict("checker", text)[0] == label
    assert verdict("checker:strict", text)[0] == strict


def test_a_search_that_was_made_before_is_redundant() -> None:
    texts = ["Search: when was Ors Velt born", "Search: born Ors Velt"]
    label, diagnosis, guidance = verdict("checker", texts[1], texts[0], searches=frozenset((1, 2)))
    assert (label, diagnosis) == ("Redundancy", "an earlier step has searched for it.")
    assert guidance
    assert verdict("checker", "Search: Ors Velt born in Oru", texts[1], searches=frozenset((1, 2)))[0] == "Correct"
    # What was searched for is no evidence, and the word alone makes no search.
    assert verdict("checker", "Ors Velt lives in Marn.", "Search: Ors Velt lives in Marn")[0] == "Unsupported"
    assert verdict("checker", "Search: Dune Rain was directed by Ana Brell")[0] == "Contradictory"


def test_errors_support_no_later_step_and_only_proof_supports_an_answer() -> None:
    claim = "Edo Tarn married Lia Dorn."
    assert [verdict("checker", claim, *[claim] * n)[0] for n in range(3)] == ["Unsupported"] * 3
    undecided = "Dune Rain is beloved."
    assert verdict("checker", undecided)[1].startswith("Not decided")
    request = request_verdict(
        QUESTION, [Step(1, undecided, "Attribution")], Step(2, "####ANSWER: beloved", "Final Answer")
    )
    (reply,) = asyncio.run(open_engine("checker:strict").generate([request]))
    assert isinstance(reply, Completion)
    assert parse_feedback(reply.text).error_type != "Correct"


def test_it_never_looks_at_annotations() -> None:
    request = request_verdict(replace(QUESTION, answer="Ana"), [], Step(1, "Ors Velt directed it.", "Attribution"))
    engine = open_engine("checker")
    assert not engine.simulated
    plain = request_verdict(QUESTION, [], Step(1, "Ors Velt directed it.", "Attribution"))
    assert asyncio.run(engine.generate([request])) == asyncio.run(engine.generate([plain]))


def test_other_roles_and_settings_are_refused() -> None:
    (reply,) = asyncio.run(open_engine("checker").generate([Request((), role="judge")]))
    assert isinstance(reply, EngineError)
    with pytest.raises(UserError, match="write checker or checker:strict"):
        open_engine("checker:mild")


def test_it_verifies_in_the_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = [
        "Step 1: According to Passage 1, Dune Rain directed Ors Velt. (Attribution)",
        "Step 1: According to Passage 1, Dune Rain was directed by Ors Velt. (Attribution)",
        "Step 2: ####ANSWER: Ors Velt (Final Answer)",
    ]
    (script := tmp_path / "replies.json").write_text(json.dumps({"replies": [{"match": "", "reply": replies}]}))
    (pages := tmp_path / "pages.txt").write_text(PAGES[0].text)
    carry_out(
        [
            *("answer", "--question", QUESTION.question, "--passages", str(pages), "--cache", str(tmp_path / "cache")),
            *("--generator", f"mock:{script}", "--verifier", "checker"),
        ]
    )
    out = capsys.readouterr().out
    assert "Contradictory" in out
    assert "Answer: Ors Velt" in out
