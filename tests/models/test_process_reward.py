"""A process reward model as a verifier, with a tiny random head, on the CPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.engines.base import Completion, EngineError, Message, Request
from safe_stepwise.engines.weights import Model
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import parse_feedback
from safe_stepwise.methods.verifier import request_verdict
from safe_stepwise.open import open_engine
from safe_stepwise.players.process_reward import ProcessRewardEngine
from safe_stepwise.records import Passage, Question, Step
from scripts import evaluate_verifier

pytest.importorskip("torch", reason="no torch here: `make test-vllm` runs the model tests")

Run = Callable[[Any], Any]
ASKED = Question("q", "b", "", "On what does Oru lie?", "", passages=(Passage("Oru", ("Oru lies on the Vel.",)),))
STEPS = (Step(1, "Oru lies on the Vel.", "Attribution"), Step(2, "So it lies on a river.", "Logical"))


def write_model(folder: Path, model_folder: Path, labels: int = 2, context: int = 256) -> Path:
    """A model of one layer over the tokenizer of a real one, as TRL's trainer publishes a reward model."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForTokenClassification

    torch.manual_seed(3)
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=context, num_labels=labels, initializer_range=0.5,
    )  # fmt: skip
    LlamaForTokenClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("prm"), model_folder)


def test_a_step_is_scored_at_its_end(folder: Path, run: Run) -> None:
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    engine = open_engine(f"prm:{folder}")
    asked = [request_verdict(ASKED, STEPS[:n], step, scored=True) for n, step in enumerate(STEPS)]
    replies = run(engine.generate([*asked, request_verdict(ASKED, (), STEPS[0])]))
    run(engine.close())
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForTokenClassification.from_pretrained(folder)
    # As TRL lays it out: the prompt, then each step with a line break, whose token has the label.
    parts = ["Oru: Oru lies on the Vel.\nOn what does Oru lie?\n", *(f"{step.text}\n" for step in STEPS)]
    ids = [tokenizer(part, add_special_tokens=False)["input_ids"] for part in parts]
    with torch.inference_mode():
        logits = model(torch.tensor([[*chain(*ids)]])).logits[0].softmax(-1)[:, 1]
    expected = [float(logits[len(ids[0]) + len(ids[1]) - 1]), float(logits[-1])]
    assert [reply.score for reply in replies[:2]] == pytest.approx(expected, abs=1e-4)
    assert replies[2].score is None
    for reply, score, label in zip(replies, expected, ("Unsupported", "Logical Fallacy"), strict=False):
        assert parse_feedback(reply.text).error_type == ("Correct" if score >= 0.5 else label)


def test_what_it_cannot_judge_is_an_error_of_its_request(
    folder: Path, model_folder: Path, tmp_path: Path, run: Run
) -> None:
    engine = ProcessRewardEngine(Model(str(folder)))
    long = request_verdict(ASKED, (), Step(1, ("Oru lies on the Vel. " * 80).strip(), "Attribution"))
    replies = run(engine.generate([Request((Message("user", "Hi"),)), long, request_verdict(ASKED, (), STEPS[0])]))
    run(engine.close())
    assert [type(reply) for reply in replies] == [EngineError, EngineError, Completion]
    assert "judges steps alone" in str(replies[0])
    assert "the context holds 256" in str(replies[1])
    three = ProcessRewardEngine(Model(str(write_model(tmp_path, model_folder, labels=3))))
    with pytest.raises(UserError, match="has 3 labels; a reward model of steps has two"):
        run(three.check())


def test_the_command_measures_it(folder: Path, tmp_path: Path) -> None:
    rows = [
        {"id": f"c{n}", "problem": f"Where is Oru{n}?", "steps": [s.text for s in STEPS], "label": 1} for n in range(6)
    ]
    file = tmp_path / "chains.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    evaluate_verifier.main(
        [str(file), "--benchmark", "processbench", "--verifier", f"prm:{folder}", "--scores",
         "--output", str(tmp_path / "out"), "--cache", str(tmp_path / "cache.sqlite")]
    )  # fmt: skip
    (measured,) = json.loads((tmp_path / "out/chain_quality.json").read_text("utf-8"))["calibration"].values()
    assert (measured["steps"], measured["without"]) == (12, 0)
    assert (tmp_path / "out/reliability.png").is_file()
    assert "What the scores are worth" in (tmp_path / "out/chain_quality.md").read_text("utf-8")
