"""The verifier set trains in TRL as it is, and its lengths are those of a real tokenizer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from safe_stepwise.feedback import parse_feedback
from scripts import build_verified, build_verifier_steps
from trainers.config import VerifierRecipe, read_recipe
from trainers.objectives import trainer_arguments

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")

MAX_LENGTH = 4096


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    build_verified.main(
        f"--benchmark synthetic --input rows=30,seed=1 --split train --teacher annotations "
        f"--output {folder} --workers 1".split()
    )
    return folder


@pytest.fixture(scope="module")
def steps(verified: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("steps")
    build_verifier_steps.main(
        f"--verified {verified} --teacher annotations --rows 40 --output {output} --workers 1".split()
    )
    return output / "safe-verifier-steps"


def opened(steps: Path) -> Any:
    return load_dataset(str(steps), "prompt_completion", cache_dir=str(steps.parent / "cache"))


def test_it_trains_without_a_mapping_function(steps: Path, model_folder: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    rows = opened(steps)
    config = SFTConfig(
        output_dir=str(tmp_path),
        max_length=MAX_LENGTH,
        max_steps=2,
        per_device_train_batch_size=1,
        logging_steps=1,
        completion_only_loss=True,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        bf16=False,
    )
    trainer = SFTTrainer(str(model_folder), args=config, train_dataset=rows["train"])
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    trained = list(trainer.train_dataset)
    assert len(trained) == len(rows["train"])
    for row, tokens in zip(rows["train"], trained, strict=True):
        assert len(tokens["input_ids"]) <= MAX_LENGTH
        (learnt,) = trainer.data_collator([tokens])["labels"].tolist()
        start = next(n for n, label in enumerate(learnt) if label != -100)
        assert set(learnt[:start]) == {-100}
        assert learnt[start:] == tokens["input_ids"][start:]
        # The whole completion, its turn's end included, and nothing of the prompt.
        said, end, rest = tokenizer.decode(learnt[start:]).partition("<|im_end|>")
        assert end
        assert not rest.strip()
        (turn,) = row["completion"]
        assert said == turn["content"]
        parse_feedback(said)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 2
    assert all(math.isfinite(loss) and loss > 0 for loss in losses)


@pytest.mark.parametrize("form", ["preference", "kto"])
def test_preferences_train_without_a_mapping_function(form: str, steps: Path, base: Path, tmp_path: Path) -> None:
    import trl

    config, trainer_of = {"preference": (trl.DPOConfig, trl.DPOTrainer), "kto": (trl.KTOConfig, trl.KTOTrainer)}[form]
    rows = load_dataset(str(steps), form, cache_dir=str(steps.parent / "cache"))["train"]
    arguments = config(
        output_dir=str(tmp_path),
        max_length=MAX_LENGTH,
        max_steps=1,
        per_device_train_batch_size=2,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        bf16=False,
    )
    trainer = trainer_of(str(base), args=arguments, train_dataset=rows)
    assert len(trainer.train_dataset) == len(rows) > 1
    trainer.train()
    (loss,) = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert math.isfinite(loss)
    assert loss > 0


def test_the_authors_values_reach_the_trainer(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    recipes = Path(__file__).parents[2] / "trainers" / "recipes"
    where = {"dataset": "steps", "output": str(tmp_path / "out")}

    def given(name: str) -> tuple[float, float]:
        recipe = read_recipe(recipes / f"{name}.yaml", where, VerifierRecipe)
        made = trainer_arguments(recipe, tmp_path, 1, gpu=False, dtype=torch.float32)
        return made.weight_decay, made.max_grad_norm

    assert given("qwen3-8b") == (0.0, 1.0)
    assert given("qwen3-8b-authors") == (0.01, 0.3)
