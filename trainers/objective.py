"""What an objective is to a run, and what the trainers of all objectives are told alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainers.config import Recipe


@dataclass(frozen=True, slots=True)
class Objective:
    """What is learnt from rows: all that a run has to know of it."""

    arguments: Callable[..., Any]
    """The trainer's, of a recipe, folder of checkpoints, passes a step, GPU or not, and dtype."""
    trainer: Callable[..., Any]
    """The trainer, of a recipe, model, its weights, `trainers.data.Data` and arguments."""
    rows: Callable[..., Any]
    """Rows to be measured, of a recipe and examples, as the trainer takes them."""
    measures: Mapping[str, Callable[[Mapping[str, float]], float]]
    """By name, what is kept of the trainer's figures on held-out rows."""


def shared_arguments(recipe: Recipe, work: Path, accumulation: int, gpu: bool, dtype: Any) -> dict[str, Any]:
    """What every trainer is told of a recipe, with checkpoints in ``work``."""
    import torch

    reported = [] if recipe.report_to == "none" else [recipe.report_to]
    return {
        "output_dir": str(work),
        # The rows come in an order that holds every epoch, so to the trainer it is one.
        "num_train_epochs": 1,
        "train_sampling_strategy": "sequential",
        "max_length": None,  # lengths are checked: nothing may be cut
        "per_device_train_batch_size": recipe.device_batch,
        "per_device_eval_batch_size": recipe.device_batch,
        "gradient_accumulation_steps": accumulation,
        "optim": "adamw_torch",
        "learning_rate": recipe.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": recipe.warmup,  # below 1 it is a share
        "weight_decay": recipe.weight_decay,
        "max_grad_norm": recipe.max_grad_norm,
        "gradient_checkpointing": recipe.gradient_checkpointing,
        "bf16": dtype == torch.bfloat16,
        "use_cpu": not gpu,
        "seed": recipe.seed,
        "data_seed": recipe.seed,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": recipe.save_steps,
        "save_total_limit": 2,  # the older is whole while the newer is written
        "report_to": reported,
        "project": "safe-stepwise",  # trackio's; on this machine, as no Space is named
        "run_name": recipe.output.resolve().name,
        "disable_tqdm": True,
        "dataloader_pin_memory": gpu,
    }
