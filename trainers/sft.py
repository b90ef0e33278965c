"""Supervised fine-tuning with TRL's trainer: it learns what completions say, and nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safe_stepwise.engines.chat import Chat
from safe_stepwise.engines.weights import Weights
from trainers import lora
from trainers.config import Recipe
from trainers.data import Data
from trainers.rows.tokens import Example, check_masks, order


def sft_trainer(recipe: Recipe, model: Any, weights: Weights, data: Data, arguments: Any) -> Any:
    """TRL's ``SFTTrainer`` over the rows in their order, its masks checked.

    ``arguments`` are those of `sft_arguments`; ``model`` gets a new adapter.
    """
    if arguments.use_cpu:
        _score_completions_alone()  # before the trainer's module takes what is replaced
    from trl import SFTTrainer

    lengths = [len(one.tokens) for one in data.train]
    by_length = recipe.batching == "by_length"
    drawn = order(lengths, recipe.epochs, recipe.effective_batch, recipe.seed, by_length)
    trainer = SFTTrainer(
        model,
        args=arguments,
        train_dataset=dataset(data.train).select(drawn),
        processing_class=Chat.load(weights).tokenizer,
        peft_config=lora.lora_config(recipe),
    )
    lora.train_in_float32(trainer.model)
    check_masks(trainer.train_dataset, trainer.data_collator, [data.train[n] for n in drawn])
    return trainer


def sft_arguments(recipe: Recipe, work: Path, accumulation: int, gpu: bool, dtype: Any) -> Any:
    """The ``trl.SFTConfig`` of a recipe, with checkpoints in ``work``."""
    import torch
    from trl import SFTConfig

    reported = [] if recipe.report_to == "none" else [recipe.report_to]
    return SFTConfig(
        output_dir=str(work),
        # The rows come in an order that holds every epoch, so to the trainer it is one.
        num_train_epochs=1,
        train_sampling_strategy="sequential",
        max_length=None,  # lengths are checked: nothing may be cut
        per_device_train_batch_size=recipe.device_batch,
        per_device_eval_batch_size=recipe.device_batch,
        gradient_accumulation_steps=accumulation,
        padding_free=recipe.padding_free,
        completion_only_loss=True,
        optim="adamw_torch",
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=recipe.warmup,  # below 1 it is a share
        weight_decay=recipe.weight_decay,
        max_grad_norm=recipe.max_grad_norm,
        gradient_checkpointing=recipe.gradient_checkpointing,
        bf16=dtype == torch.bfloat16,
        use_cpu=not gpu,
        seed=recipe.seed,
        data_seed=recipe.seed,
        logging_steps=1,
        save_strategy="steps",
        save_steps=recipe.save_steps,
        save_total_limit=2,  # the older is whole while the newer is written
        report_to=reported,
        project="safe-stepwise",  # trackio's; on this machine, as no Space is named
        run_name=recipe.output.resolve().name,
        disable_tqdm=True,
        dataloader_pin_memory=gpu,
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


def _score_completions_alone() -> None:
    """Spare a CPU the vocabulary's scores of every prompt token, as TRL spares a GPU.

    TRL 1.16 leaves masked tokens out of its fused head only where Triton runs; the loss is the
    same either way. Without this switch of its own (another TRL), training is only slower.
    """
    from trl.trainer import utils

    if hasattr(utils, "_use_triton"):
        utils._use_triton = lambda device: True
