"""All weights tuned: a model that engines load as it is, killed and resumed to the same one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.engines.base import Completion, Message, Request, Sampling
from safe_stepwise.engines.transformers import TransformersEngine
from safe_stepwise.engines.weights import Model
from safe_stepwise.methods.learnt_prompts import adopt_learnt_prompts
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.prompt_sets import PromptSet
from tests.evaluators.verifier.step_rows import row, step, write_set
from tests.models.killing import killed
from trainers.config import GeneratorRecipe
from trainers.run import train

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")

Run = Callable[[Any], Any]


@pytest.fixture(scope="module")
def recipe(base: Path, tmp_path_factory: pytest.TempPathFactory) -> GeneratorRecipe:
    import torch

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("full")
    said = [step(1, f"According to Passage 1, Oru has {n} bridges.") for n in range(8)]
    rows = [row(f"r{n}", [text], question=f"q{n}") for n, text in enumerate(said)]
    return GeneratorRecipe(
        base_model=str(base),
        dataset=str(write_set(folder / "set", train=rows, test=rows[:1])),
        output=folder / "run",
        prompts="compact",
        tuning="full",
        quantization="none",
        dtype="float32",
        learning_rate=5e-3,
        epochs=2,
        effective_batch=2,
        device_batch=2,
        gradient_checkpointing=False,
        save_steps=2,
        held_out=1,
    )


@pytest.fixture(scope="module")
def whole(recipe: GeneratorRecipe) -> Any:
    return train(recipe)


def test_it_is_kept_as_a_model(recipe: GeneratorRecipe, whole: Any) -> None:
    assert whole["held_out"]["loss_after"] < whole["held_out"]["loss_before"]
    assert whole["prompts"] == {"role": "generator", "prompts": "compact"}
    assert "adapter" not in whole
    assert whole["model"]["dtype"] == "bfloat16"  # as the base is kept; trained in float32
    written = {path.name for path in recipe.output.iterdir()}
    assert written == {"model", "training.json", "log.jsonl", ".work"}


def test_an_engine_loads_it_and_knows_its_prompts(recipe: GeneratorRecipe, whole: Any, run: Run) -> None:
    engine = TransformersEngine(Model(str(recipe.output / "model")))
    asked = Request((Message("user", "Step 1?"),), Sampling(max_tokens=3), role="generate")
    (reply,) = run(engine.generate([asked]))
    assert isinstance(reply, Completion)
    assert adopt_learnt_prompts(Limits(), [engine]).prompt_set == PromptSet("compact")
    run(engine.close())


def test_killed_and_resumed_it_ends_in_the_same_model(recipe: GeneratorRecipe, whole: Any, tmp_path: Path) -> None:
    halved = replace(recipe, output=tmp_path / "halved")
    killed("train_generator", halved)
    resumed = train(halved, resume=True)
    assert resumed["run"]["resumed_from_step"] >= 2
    assert resumed["curve"] == whole["curve"]
    assert resumed["model"] == whole["model"]  # to the last bit
