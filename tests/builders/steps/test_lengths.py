from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from builders.steps.configs import check_lengths
from builders.steps.rows import StepRow
from safe_stepwise.errors import UserError
from safe_stepwise.records import Feedback, Passage, Question, Step

SAID = Feedback("Correct", "Passage 1 says so.", "Go on.")


def row(number: int, length: int = 100) -> StepRow:
    question = Question(f"q{number}", "synthetic", "train", "Who?", "x",
                        passages=(Passage("Oru", ("é" * length,), True),))  # fmt: skip
    return StepRow(question, (), Step(1, f"Text {number}.", "Logical"), SAID, "ideal", "t")


def test_bytes_bound_what_fits() -> None:
    found = check_lengths([row(1), row(2)], 8192, None)
    assert found["method"] == "bytes"
    assert found["tokenizer"] is None
    assert 200 < found["longest"] <= 8192


def test_lengths_are_estimated_where_bytes_do_not_fit() -> None:
    found = check_lengths([row(1, 4000)], 8192, None)
    assert found["method"] == "estimate"
    assert found["longest"] <= 8192


def test_rows_that_are_too_long_are_named_ten_at_most() -> None:
    rows = [row(n, 20_000) for n in range(14)]
    with pytest.raises(UserError, match="and 4 more") as caught:
        check_lengths([row(99), *rows], 8192, None)
    named = sorted(r.id for r in rows)[:10]
    assert all(id_ in str(caught.value) for id_ in named)
    assert row(99).id not in str(caught.value)


class Words:
    """A tokenizer of words, with a chat template that adds one word to a turn."""

    chat_template = "yes"

    def apply_chat_template(self, turns: Any, tokenize: bool) -> str:
        assert not tokenize
        return " ".join(f"<{turn['role']}> {turn['content']}" for turn in turns)

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[str]]:
        return {"input_ids": text.split()}


def test_a_tokenizer_counts_prompt_and_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(AutoTokenizer=SimpleNamespace(from_pretrained=lambda name: Words()))
    monkeypatch.setitem(sys.modules, "transformers", module)
    found = check_lengths([row(1)], 8192, "words")
    assert (found["method"], found["tokenizer"]) == ("tokens", "words")
    with pytest.raises(UserError, match="counted"):
        check_lengths([row(1)], found["longest"] - 1, "words")
    assert check_lengths([row(1)], found["longest"], "words")["longest"] == found["longest"]


def test_without_transformers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[train\]'"):
        check_lengths([row(1)], 8192, "words")


def test_a_tokenizer_that_cannot_be_loaded_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise OSError("no such repository\nsee the manual")

    module = SimpleNamespace(AutoTokenizer=SimpleNamespace(from_pretrained=fail))
    monkeypatch.setitem(sys.modules, "transformers", module)
    with pytest.raises(UserError, match=r"cannot be loaded \(no such repository\)"):
        check_lengths([row(1)], 8192, "words")
