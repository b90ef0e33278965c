"""SmolLM2-135M trained in 4 bits on short rows, then asked through peft and through vLLM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from safe_stepwise.engines.base import Completion, Engine, Message, Request, Sampling
from safe_stepwise.engines.transformers import TransformersEngine
from safe_stepwise.engines.vllm import VLLMEngine
from safe_stepwise.engines.weights import Model
from safe_stepwise.feedback import format_feedback, parse_feedback
from safe_stepwise.records import Feedback
from trainers.config import VerifierRecipe
from trainers.data import tokenize, tokenize_row
from trainers.rows.verifier import VERIFIER
from trainers.run import train

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")
pytest.importorskip("vllm", reason="no vLLM here: `make test-vllm` runs the model tests")

Run = Callable[[Any], Any]
ROWS = 32
AGREEMENT = 0.95
"""Of the next tokens that the 4-bit and the unquantised base choose, both with the adapter."""


def row(number: int) -> dict[str, Any]:
    """A passage of one sentence and a step about it, every second one with another number."""
    town, bridges = ("Oru", "Tem", "Sive", "Rell")[number % 4], 3 + number
    said = bridges + number % 2
    right = Feedback("Correct", f"The passage gives {town} {bridges} bridges.", "")
    wrong = Feedback("Contradictory", f"It has {bridges} bridges.", f"Write {bridges}.")
    asked = f"Passage 1. {town} has {bridges} bridges.\nStep: {town} has {said} bridges [1]."
    verdict = format_feedback(right if said == bridges else wrong)
    return {
        "id": f"row-{number}",
        "prompt": [{"role": "user", "content": f"Judge the step.\n{asked}"}],
        "completion": [{"role": "assistant", "content": verdict}],
    }


@pytest.fixture(scope="module")
def recipe(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> VerifierRecipe:
    folder = tmp_path_factory.mktemp("short")
    rows = folder / "set" / "data" / "prompt_completion"
    rows.mkdir(parents=True)
    for split, numbers in (("train", range(ROWS)), ("test", range(ROWS, ROWS + 4))):
        table = pa.Table.from_pylist([row(number) for number in numbers])
        pq.write_table(table, rows / f"{split}-00000-of-00001.parquet")
    return VerifierRecipe(
        base_model=str(model_folder),
        dataset=str(folder / "set"),
        output=folder / "adapter",
        learning_rate=1e-3,
        warmup=0,
        epochs=1,
        effective_batch=4,
        device_batch=4,
        held_out=4,
    )


@pytest.fixture(scope="module")
def record(recipe: VerifierRecipe) -> Any:
    return train(recipe)


def test_the_loss_falls_on_steps_it_never_saw(record: Any) -> None:
    held_out = record["held_out"]
    print([point["loss"] for point in record["curve"]], held_out)
    assert record["recipe"]["quantization"] == "nf4"
    assert held_out["loss_after"] < held_out["loss_before"] / 2


def test_peft_and_vllm_give_the_same_greedy_verdicts(
    recipe: VerifierRecipe, record: Any, model_folder: Path, run: Run
) -> None:
    """In float32, token for token; in bfloat16 rounding would decide close calls."""
    asked = [
        Request((Message("user", row(number)["prompt"][0]["content"]),), Sampling(max_tokens=80))
        for number in range(ROWS, ROWS + 4)
    ]

    async def said(engine: Engine) -> list[str]:
        completions = await engine.generate(asked)
        await engine.close()
        assert all(isinstance(one, Completion) for one in completions)
        return [one.transcript for one in completions if isinstance(one, Completion)]

    base, adapter = Model(str(model_folder)), Model(str(recipe.output))
    peft = run(said(TransformersEngine(base, adapter)))
    options = {"max_model_len": 512, "enforce_eager": True, "dtype": "float32"}
    assert run(said(VLLMEngine(base, adapter, **options))) == peft
    assert len(set(peft)) > 1
    for text in peft:
        parse_feedback(text)


def test_it_serves_a_16_bit_base_as_the_4_bit_one_it_was_trained_on(
    recipe: VerifierRecipe, record: Any, model_folder: Path
) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    from safe_stepwise.engines.chat import Chat
    from safe_stepwise.engines.weights import find_model

    _, rows = VERIFIER.open(recipe.dataset, "train", recipe.filters)
    examples, _ = tokenize(
        rows[:8], partial(tokenize_row, Chat.load(find_model(Model(str(model_folder)))), VERIFIER.check)
    )
    nf4 = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)
    chosen = []
    for quantization in (nf4, None):
        model = AutoModelForCausalLM.from_pretrained(
            model_folder, dtype=torch.float32, quantization_config=quantization
        )
        adapted = PeftModel.from_pretrained(model, recipe.output).eval()
        with torch.inference_mode():
            chosen += [
                adapted(torch.tensor([example.tokens])).logits[0, example.prompt_length - 1 : -1].argmax(-1)
                for example in examples
            ]
    four, sixteen = torch.cat(chosen[: len(examples)]), torch.cat(chosen[len(examples) :])
    agreed = (four == sixteen).float().mean().item()
    print(f"next tokens alike: {agreed:.4f} of {len(four)}")
    assert agreed >= AGREEMENT
