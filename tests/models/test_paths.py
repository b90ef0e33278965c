"""Relation paths are learnt: by SFT, then by KTO from its adapter, which is the reference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.errors import UserError
from tests.models.killing import killed
from tests.trainers.paths_sets import write_set
from trainers import models, objectives
from trainers.config import PathFilters, PathRecipe
from trainers.data import Example, read_data
from trainers.models import find_base, load_base
from trainers.run import train

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("paths"))


@pytest.fixture(scope="module")
def recipe(paths: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> PathRecipe:
    return PathRecipe(
        base_model=str(base),
        base_model_name="somebody/tiny",
        dataset=str(paths),
        output=tmp_path_factory.mktemp("runs") / "sft",
        quantization="none",
        dtype="float32",
        lora_rank=4,
        lora_alpha=8,
        lora_dropout=0.1,
        lora_modules=("q_proj", "k_proj", "v_proj", "o_proj"),
        learning_rate=5e-3,
        effective_batch=2,
        device_batch=2,
        batching="random",
        save_steps=2,
        held_out=4,
        epochs=2,
    )


@pytest.fixture(scope="module")
def sft(recipe: PathRecipe) -> Any:
    return train(recipe)


@pytest.fixture(scope="module")
def preferring(recipe: PathRecipe, sft: Any) -> PathRecipe:
    """What goes on by KTO from the adapter of SFT."""
    return replace(recipe, method="kto", start=str(recipe.output), output=recipe.output.parent / "kto")


@pytest.fixture(scope="module")
def whole(preferring: PathRecipe) -> Any:
    """The record of a run that nothing interrupted."""
    return train(preferring)


def test_sft_learns_the_paths_on_the_modules_named(recipe: PathRecipe, sft: Any) -> None:
    assert sft["dataset"]["rows"] == 8
    assert sft["run"]["rows_seen"] == 16
    assert sft["held_out"]["loss_after"] < sft["held_out"]["loss_before"]
    config = json.loads((recipe.output / "adapter_config.json").read_text())
    assert config["target_modules"] == ["k_proj", "o_proj", "q_proj", "v_proj"]
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (4, 8, 0.1)


def test_kto_grows_the_margin_of_its_rewards_and_says_what_it_began_with(
    preferring: PathRecipe, whole: Any, sft: Any
) -> None:
    held_out = whole["held_out"]
    # What a few rows teach a random model need not hold for rows that it did not see.
    assert held_out["margin_after"] != held_out["margin_before"]
    assert held_out["kl_before"] == 0  # it begins as its reference
    assert whole["curve"][0]["kl"] == 0
    # Batches of one kind alone have no margin.
    margins = [row["rewards/margins"] for row in whole["curve"] if "rewards/margins" in row]
    assert margins[-1] > max(0, margins[0])
    assert whole["start"]["name"] == "sft"
    assert whole["dataset"]["undesirable_rows"] < whole["dataset"]["rows"]
    assert whole["adapter"]["sha256"] != sft["adapter"]["sha256"]
    written = {path.name for path in preferring.output.iterdir()}
    assert {"adapter_model.safetensors", "adapter_config.json", "training.json"} <= written
    assert "ref" not in written


def test_the_reference_is_the_adapter_of_sft(preferring: PathRecipe, whole: Any) -> None:
    """Not the base model: whose scores the rewards would then be measured from."""
    for quantization in ("none", "nf4"):
        trainer = _trainer(replace(preferring, quantization=quantization))
        weights = dict(trainer.model.named_parameters())
        learning = {name: one for name, one in weights.items() if one.requires_grad}
        assert learning
        stored = _stored(Path(str(preferring.start)))
        for name, one in learning.items():
            assert one.dtype.is_floating_point
            assert one.equal(weights[name.replace(".default.", ".ref.")])  # to the last bit
            assert one.equal(stored[name.replace(".default.", ".")])
        assert not any(one.requires_grad for name, one in weights.items() if ".ref." in name)


def test_every_prompt_meets_the_completion_of_another(preferring: PathRecipe, whole: Any) -> None:
    trainer = _trainer(preferring)
    rows = trainer.train_dataset
    said = {}
    for row in rows:
        said.setdefault(tuple(row["prompt_ids"]), set()).add(tuple(row["completion_ids"]))
    for start in range(0, len(rows), 2):
        one, other = rows[start], rows[start + 1]
        assert one["prompt_ids"] != other["prompt_ids"]
        assert one["KL_completion_ids"] == other["completion_ids"]
        assert other["KL_completion_ids"] == one["completion_ids"]
    assert trainer.args.train_sampling_strategy == "sequential"
    assert (trainer.args.beta, trainer.args.desirable_weight) == (0.1, 1.0)
    weights, _ = find_base(preferring.base_model)
    examples = read_data(preferring, weights).train
    by_text = {(one.tokens[: one.prompt_length], one.tokens[one.prompt_length :]): one for one in examples}
    trained = [by_text[tuple(row["prompt_ids"]), tuple(row["completion_ids"])] for row in rows]
    for start in range(0, len(trained), 2):
        check_batch(trainer.data_collator([rows[start], rows[start + 1]]), trained[start : start + 2])


def test_killed_and_resumed_it_ends_in_the_same_adapter(preferring: PathRecipe, whole: Any, tmp_path: Path) -> None:
    """Transformers would load the reference of a checkpoint, and leave what was learnt."""
    halved = replace(preferring, output=tmp_path / "halved")
    killed("train_paths", halved)
    resumed = train(halved, resume=True)
    assert resumed["run"]["resumed_from_step"] >= 2
    assert resumed["curve"] == whole["curve"]
    assert resumed["held_out"] == whole["held_out"]
    assert resumed["adapter"] == whole["adapter"]  # to the last bit
    (halved.output / "training.json").unlink()
    with pytest.raises(UserError, match="begun with another beta"):
        train(replace(halved, beta=0.2), resume=True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"lora_rank": 8}, "has r 4; set lora_rank to it"),
        ({"lora_modules": ("q_proj",)}, "is on k_proj, o_proj, q_proj, v_proj"),
        ({"start": "no-such-adapter"}, "no-such-adapter"),
        ({"filters": PathFilters(negatives=("swap",))}, "no swap in it, only truncation"),
        ({"held_out": 1}, "held_out 1: makes no batch of 2 with rows of both labels"),
        ({"device_batch": 16, "effective_batch": 16}, "too few prompts for a batch of 16"),
    ],
)
def test_what_does_not_fit_is_one_line(
    preferring: PathRecipe, whole: Any, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    with pytest.raises(UserError, match=told) as caught:
        train(replace(preferring, output=tmp_path / "out", **change))
    assert "\n" not in str(caught.value)


def check_batch(collated: Mapping[str, Any], examples: Sequence[Example]) -> None:
    """The trainer's batch has the tokens, mask and label of each row, and the completion of the row before it."""
    for number, example in enumerate(examples):
        completion, previous = list(example.tokens[example.prompt_length :]), examples[number - 1]
        mismatched, tokens = list(previous.tokens[previous.prompt_length :]), list(example.tokens)
        assert unpadded(collated, "", number) == (tokens, completion)
        assert unpadded(collated, "KL_", number) == (tokens[: example.prompt_length] + mismatched, mismatched)
        assert bool(collated["label"][number]) == example.is_desirable


def unpadded(collated: Mapping[str, Any], prefix: str, number: int) -> tuple[list[int], list[int]]:
    """The tokens of one row of a batch without padding, and those that the loss counts."""
    tokens, attended, scored = (
        collated[f"{prefix}{name}"][number].tolist() for name in ("input_ids", "attention_mask", "completion_mask")
    )
    return (
        [token for token, is_attended in zip(tokens, attended, strict=True) if is_attended],
        [token for token, is_scored in zip(tokens, scored, strict=True) if is_scored],
    )


def _trainer(recipe: PathRecipe) -> Any:
    import torch

    weights, _ = find_base(recipe.base_model)
    start = models.find_start(recipe, weights)
    assert start is not None
    dtype = models.compute_dtype(recipe.dtype, gpu=False)
    model = models.load_adapter(load_base(weights, recipe, dtype, None), start)
    arguments = objectives.trainer_arguments(recipe, recipe.output / "unused", 1, False, torch.float32)
    trainer = objectives.make_kto_trainer(recipe, model, weights, read_data(recipe, weights), arguments)
    models.restore_adapter(trainer.model, start)
    return trainer


def _stored(adapter: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(adapter / "adapter_model.safetensors")
