"""Supervised fine-tuning with TRL's trainer: it learns what completions say, and nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safe_stepwise.engines.chat import Chat
from safe_stepwise.engines.weights import Weights
from trainers import lora, machine
from trainers.config import Recipe
from trainers.data import Data
from trainers.objective import Objective, shared_arguments
from trainers.rows.tokens import Example, check_masks, order


def sft_trainer(recipe: Recipe, model: Any, weights: Weights, data: Data, arguments: Any) -> Any:
    """TRL's ``SFTTrainer`` over the rows in their order, its masks checked.

    ``arguments`` are those of `sft_arguments`; ``model`` gets a new adapter, unless the recipe goes
    on from one that it has, or tunes all weights.
    """
    if arguments.use_cpu:
        machine.score_completions_alone()
    from trl import SFTTrainer

    gets_adapter = recipe.tuning == "lora" and recipe.start is None
    lengths = [len(one.tokens) for one in data.train]
    by_length = recipe.batching == "by_length"
    drawn = order(lengths, recipe.epochs, recipe.effective_batch, recipe.seed, by_length)
    trainer = SFTTrainer(
        model,
        args=arguments,
        train_dataset=dataset(data.train).select(drawn),
        processing_class=Chat.load(weights).tokenizer,
        peft_config=lora.lora_config(recipe) if gets_adapter else None,
    )
    lora.train_in_float32(trainer.model)
    check_masks(trainer.train_dataset, trainer.data_collator, [data.train[n] for n in drawn])
    return trainer


def sft_arguments(recipe: Recipe, work: Path, accumulation: int, gpu: bool, dtype: Any) -> Any:
    """The ``trl.SFTConfig`` of a recipe, with checkpoints in ``work``."""
    from trl import SFTConfig

    return SFTConfig(
        **shared_arguments(recipe, work, accumulation, gpu, dtype),
        padding_free=recipe.padding_free,
        completion_only_loss=True,
    )


def dataset(examples: Sequence[Example]) -> Any:
    """The rows as a `datasets.Dataset`, as the trainer takes them: nothing is left to prepare."""
    from datasets import Dataset

    return Dataset.from_dict(
        {
            "input_ids": [list(one.tokens) for one in examples],
            "labels": [one.labels for one in examples],
            "length": [len(one.tokens) for one in examples],
        }
    )


SFT = Objective(
    arguments=sft_arguments,
    trainer=sft_trainer,
    rows=lambda recipe, examples: dataset(examples),
    measures={"loss": lambda found: found["eval_loss"]},
)
