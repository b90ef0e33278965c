"""What is learnt from rows: what completions say (SFT), or what to say and what rather not (KTO).

KTO is that of Deliberation on Priors, section 3.1, equations 3 and 4: it goes on from the adapter that SFT made,
which is also what it is held near to (the reference). What TRL 1.16 does otherwise than one would think is in
`trainers.unpaired`.
"""

import heapq
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any

from safe_stepwise.engines.chat import Chat
from safe_stepwise.engines.weights import Weights
from safe_stepwise.errors import UserError
from trainers import models
from trainers.config import PathRecipe, Recipe
from trainers.data import Data, Example, check_masks, order


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


def sft_trainer(recipe: Recipe, model: Any, weights: Weights, data: Data, arguments: Any) -> Any:
    """TRL's ``SFTTrainer`` over the rows in their order, its masks checked.

    ``arguments`` are those of `sft_arguments`; ``model`` gets a new adapter, unless the recipe goes
    on from one that it has, or tunes all weights.
    """
    if arguments.use_cpu:
        models.score_completions_alone()
    from trl import SFTTrainer

    gets_adapter = recipe.tuning == "lora" and recipe.start is None
    lengths = [len(one.tokens) for one in data.train]
    by_length = recipe.batching == "by_length"
    drawn = order(lengths, recipe.epochs, recipe.effective_batch, recipe.seed, by_length)
    trainer = SFTTrainer(
        model,
        args=arguments,
        train_dataset=token_rows(data.train).select(drawn),
        processing_class=Chat.load(weights).tokenizer,
        peft_config=models.lora_config(recipe) if gets_adapter else None,
    )
    models.train_in_float32(trainer.model)
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


def token_rows(examples: Sequence[Example]) -> Any:
    """The rows as a `datasets.Dataset`, as the trainer takes them: nothing is left to prepare."""
    from datasets import Dataset

    return Dataset.from_dict(
        {
            "input_ids": [list(one.tokens) for one in examples],
            "labels": [one.labels for one in examples],
            "length": [len(one.tokens) for one in examples],
        }
    )


def kto_trainer(recipe: PathRecipe, model: Any, weights: Weights, data: Data, arguments: Any) -> Any:
    """TRL's ``KTOTrainer`` over the rows, those of a batch being of different prompts; checked.

    ``model`` has the adapter that SFT made; ``arguments`` are those of `kto_arguments`. Raises ``UserError`` for rows
    that are all good or all bad, or too few for one batch.
    """
    if len({one.label for one in data.train}) < 2:
        raise UserError(f"{recipe.dataset}: kto needs rows of both labels; loosen the filters")
    if arguments.use_cpu:
        models.score_completions_alone()
    from trainers.unpaired import UnpairedTrainer

    drawn = apart([one.tokens[: one.prompt] for one in data.train], recipe.epochs, recipe.device_batch, recipe.seed)
    if not drawn:
        raise UserError(
            f"{recipe.dataset}: has too few prompts for a batch of {recipe.device_batch}; set "
            "device_batch to 2 or more, but to no more than there are prompts"
        )
    trained = [data.train[n] for n in drawn]
    trainer = UnpairedTrainer(
        model,
        args=arguments,
        train_dataset=pair_rows(trained, recipe.device_batch),
        processing_class=Chat.load(weights).tokenizer,
    )
    models.train_in_float32(trainer.model)
    check_batches(trainer.train_dataset, trainer.data_collator, trained, recipe.device_batch)
    return trainer


def kto_arguments(recipe: PathRecipe, work: Path, accumulation: int, gpu: bool, dtype: Any) -> Any:
    """The ``trl.KTOConfig`` of a recipe, with checkpoints in ``work``."""
    from trl import KTOConfig

    return KTOConfig(
        **shared_arguments(recipe, work, accumulation, gpu, dtype),
        beta=recipe.beta,
        # TRL recommends 3 to 4 where one row in four is desirable; the paper has 1 and 1.
        desirable_weight=recipe.desirable_weight,
        undesirable_weight=recipe.undesirable_weight,
    )


def pair_rows(examples: Sequence[Example], batch: int) -> Any:
    """The rows as a `datasets.Dataset`, as the trainer takes them: nothing is left to prepare.

    The KL term is measured on pairs that don't belong together: each prompt with the completion of
    the row before it in its batch, the first one's with that of the last.
    """
    from datasets import Dataset

    said = [list(one.tokens[one.prompt :]) for one in examples]
    batches = [said[start : start + batch] for start in range(0, len(said), batch)]
    return Dataset.from_dict(
        {
            "prompt_ids": [list(one.tokens[: one.prompt]) for one in examples],
            "completion_ids": said,
            "KL_completion_ids": [other for rows in batches for other in (rows[-1], *rows[:-1])],
            "label": [one.label for one in examples],
            "length": [len(one.tokens) for one in examples],
        }
    )


def apart(prompts: Sequence[Hashable], epochs: float, batch: int, seed: int) -> list[int]:
    """Row numbers in the order they are trained on, every ``batch`` of them of different prompts.

    An epoch has as many whole batches as there can be: what is left over of one (fewer rows than a
    batch, or more of one prompt than there are batches) differs from epoch to epoch.

    >>> apart("aaabbc", 1, 2, seed=0)
    [0, 4, 2, 3, 1, 5]
    """
    drawn: list[int] = []
    for epoch in range(ceil(epochs)):
        batches = _batches(prompts, batch, random.Random(f"{seed}/{epoch}"))
        share = min(1.0, epochs - epoch)
        drawn += chain.from_iterable(batches[: round(share * len(batches))])
    return drawn


def _batches(prompts: Sequence[Hashable], batch: int, chance: random.Random) -> list[list[int]]:
    """Whole batches of an epoch, in any order: those with the most rows left go together first."""
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for number in chance.sample(range(len(prompts)), len(prompts)):
        rows[prompts[number]].append(number)
    left = [(-len(own), chance.random(), own) for own in rows.values()]
    heapq.heapify(left)
    batches = []
    while len(left) >= batch:
        taken = [heapq.heappop(left) for _ in range(batch)]
        batches.append([own.pop() for _, _, own in taken])
        for _, _, own in taken:
            if own:
                heapq.heappush(left, (-len(own), chance.random(), own))
    chance.shuffle(batches)
    return batches


def check_batches(
    trained: Sequence[Mapping[str, Any]],
    collate: Callable[[list[Mapping[str, Any]]], Mapping[str, Any]],
    examples: Sequence[Example],
    batch: int,
) -> None:
    """Raise ``UserError`` with the row's id unless the trainer holds each row as it was checked.

    ``trained`` is its dataset as prepared, ``collate`` what makes batches of it. Every batch has to
    pair each prompt with a completion of another prompt's.
    """
    if len(trained) != len(examples):
        raise UserError(f"the trainer holds {len(trained)} rows of {len(examples)}")
    for start in range(0, len(examples), batch):
        ours = examples[start : start + batch]
        made = collate([trained[start + n] for n in range(len(ours))])
        if len({one.tokens[: one.prompt] for one in ours}) < len(ours):
            raise UserError(f"row {ours[0].id}: is in a batch with another row of its prompt")
        for number, one in enumerate(ours):
            said = list(one.tokens[one.prompt :])
            before = ours[number - 1]
            other = list(before.tokens[before.prompt :])
            whole = list(one.tokens)
            held = _unpadded(made, "", number), _unpadded(made, "KL_", number)
            if held != ((whole, said), (whole[: one.prompt] + other, other)):
                raise UserError(f"row {one.id}: the trainer changed its tokens or its mask")
            if bool(made["label"][number]) != one.label:
                raise UserError(f"row {one.id}: the trainer changed its label")


def _unpadded(made: Mapping[str, Any], kind: str, number: int) -> tuple[list[int], list[int]]:
    """The tokens of a row of a batch, and those of them that are scored."""
    tokens = made[f"{kind}input_ids"][number].tolist()
    there = made[f"{kind}attention_mask"][number].tolist()
    scored = made[f"{kind}completion_mask"][number].tolist()
    return (
        [token for token, held in zip(tokens, there, strict=True) if held],
        [token for token, learnt in zip(tokens, scored, strict=True) if learnt],
    )


def _rows(recipe: PathRecipe, examples: Sequence[Example]) -> Any:
    """Held-out rows, in batches like those that are trained on. Raises ``UserError`` for too few of them."""
    prompts = [one.tokens[: one.prompt] for one in examples]
    drawn = apart(prompts, 1, recipe.device_batch, recipe.seed)
    if len({examples[n].label for n in drawn}) < 2:
        raise UserError(
            f"held_out {recipe.held_out}: makes no batch of {recipe.device_batch} with rows of "
            "both labels; hold out more, or 0"
        )
    return pair_rows([examples[n] for n in drawn], recipe.device_batch)


SFT = Objective(
    arguments=sft_arguments,
    trainer=sft_trainer,
    rows=lambda recipe, examples: token_rows(examples),
    measures={"loss": lambda found: found["eval_loss"]},
)

KTO = Objective(
    arguments=kto_arguments,
    trainer=kto_trainer,
    rows=_rows,
    measures={
        "loss": lambda found: found["eval_loss"],
        # In nats a completion: how much likelier a right path is than a wrong one.
        "margin": lambda found: found["eval_logps/chosen"] - found["eval_logps/rejected"],
        "kl": lambda found: found["eval_kl"],
    },
)
