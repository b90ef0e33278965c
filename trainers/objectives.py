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
    lengths = [len(example.tokens) for example in data.train]
    by_length = recipe.batching == "by_length"
    row_order = order(lengths, recipe.epochs, recipe.effective_batch, recipe.seed, by_length)
    trainer = SFTTrainer(
        model,
        args=arguments,
        train_dataset=token_rows(data.train).select(row_order),
        processing_class=Chat.load(weights).tokenizer,
        peft_config=models.lora_config(recipe) if gets_adapter else None,
    )
    models.train_in_float32(trainer.model)
    check_masks(trainer.train_dataset, trainer.data_collator, [data.train[n] for n in row_order])
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
            "input_ids": [list(example.tokens) for example in examples],
            "labels": [example.labels for example in examples],
            "length": [len(example.tokens) for example in examples],
        }
    )


def kto_trainer(recipe: PathRecipe, model: Any, weights: Weights, data: Data, arguments: Any) -> Any:
    """TRL's ``KTOTrainer`` over the rows, those of a batch being of different prompts; checked.

    ``model`` has the adapter that SFT made; ``arguments`` are those of `kto_arguments`. Raises ``UserError`` for rows
    that are all good or all bad, or too few for one batch.
    """
    if len({example.label for example in data.train}) < 2:
        raise UserError(f"{recipe.dataset}: kto needs rows of both labels; loosen the filters")
    if arguments.use_cpu:
        models.score_completions_alone()
    from trainers.unpaired import UnpairedTrainer

    prompts = [example.tokens[: example.prompt] for example in data.train]
    row_order = order_apart(prompts, recipe.epochs, recipe.device_batch, recipe.seed)
    if not row_order:
        raise UserError(
            f"{recipe.dataset}: has too few prompts for a batch of {recipe.device_batch}; set "
            "device_batch to 2 or more, but to no more than there are prompts"
        )
    trained = [data.train[n] for n in row_order]
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

    completions = [list(example.tokens[example.prompt :]) for example in examples]
    batches = [completions[start : start + batch] for start in range(0, len(completions), batch)]
    return Dataset.from_dict(
        {
            "prompt_ids": [list(example.tokens[: example.prompt]) for example in examples],
            "completion_ids": completions,
            "KL_completion_ids": [completion for rows in batches for completion in (rows[-1], *rows[:-1])],
            "label": [example.label for example in examples],
            "length": [len(example.tokens) for example in examples],
        }
    )


def order_apart(prompts: Sequence[Hashable], epochs: float, batch: int, seed: int) -> list[int]:
    """Row numbers in the order they are trained on, every ``batch`` of them of different prompts.

    An epoch has as many whole batches as there can be: what is left over of one (fewer rows than a
    batch, or more of one prompt than there are batches) differs from epoch to epoch.

    >>> order_apart("aaabbc", 1, 2, seed=0)
    [0, 4, 2, 3, 1, 5]
    """
    row_order: list[int] = []
    for epoch in range(ceil(epochs)):
        batches = _batches(prompts, batch, random.Random(f"{seed}/{epoch}"))
        share = min(1.0, epochs - epoch)
        row_order += chain.from_iterable(batches[: round(share * len(batches))])
    return row_order


def _batches(prompts: Sequence[Hashable], batch: int, generator: random.Random) -> list[list[int]]:
    """Whole batches of an epoch, in any order: those with the most rows left go together first."""
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for number in generator.sample(range(len(prompts)), len(prompts)):
        rows[prompts[number]].append(number)
    groups = [(-len(group), generator.random(), group) for group in rows.values()]
    heapq.heapify(groups)
    batches = []
    while len(groups) >= batch:
        largest = [heapq.heappop(groups) for _ in range(batch)]
        batches.append([group.pop() for _, _, group in largest])
        for _, _, group in largest:
            if group:
                heapq.heappush(groups, (-len(group), generator.random(), group))
    generator.shuffle(batches)
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
        batch_examples = examples[start : start + batch]
        collated = collate([trained[start + n] for n in range(len(batch_examples))])
        if len({example.tokens[: example.prompt] for example in batch_examples}) < len(batch_examples):
            raise UserError(f"row {batch_examples[0].id}: is in a batch with another row of its prompt")
        for number, example in enumerate(batch_examples):
            completion = list(example.tokens[example.prompt :])
            previous = batch_examples[number - 1]
            mismatched = list(previous.tokens[previous.prompt :])
            tokens = list(example.tokens)
            actual = _unpadded(collated, "", number), _unpadded(collated, "KL_", number)
            if actual != ((tokens, completion), (tokens[: example.prompt] + mismatched, mismatched)):
                raise UserError(f"row {example.id}: the trainer changed its tokens or its mask")
            if bool(collated["label"][number]) != example.label:
                raise UserError(f"row {example.id}: the trainer changed its label")


def _unpadded(collated: Mapping[str, Any], kind: str, number: int) -> tuple[list[int], list[int]]:
    """The tokens of a row of a batch, and those of them that are scored."""
    tokens = collated[f"{kind}input_ids"][number].tolist()
    attended = collated[f"{kind}attention_mask"][number].tolist()
    scored = collated[f"{kind}completion_mask"][number].tolist()
    return (
        [token for token, is_attended in zip(tokens, attended, strict=True) if is_attended],
        [token for token, is_scored in zip(tokens, scored, strict=True) if is_scored],
    )


def _rows(recipe: PathRecipe, examples: Sequence[Example]) -> Any:
    """Held-out rows, in batches like those that are trained on. Raises ``UserError`` for too few of them."""
    prompts = [example.tokens[: example.prompt] for example in examples]
    row_order = order_apart(prompts, 1, recipe.device_batch, recipe.seed)
    if len({examples[n].label for n in row_order}) < 2:
        raise UserError(
            f"held_out {recipe.held_out}: makes no batch of {recipe.device_batch} with rows of "
            "both labels; hold out more, or 0"
        )
    return pair_rows([examples[n] for n in row_order], recipe.device_batch)


SFT = Objective(
    arguments=sft_arguments,
    trainer=sft_trainer,
    rows=lambda recipe, examples: token_rows(examples),
    measures={"loss": lambda figures: figures["eval_loss"]},
)

KTO = Objective(
    arguments=kto_arguments,
    trainer=kto_trainer,
    rows=_rows,
    measures={
        "loss": lambda figures: figures["eval_loss"],
        # In nats a completion: how much likelier a right path is than a wrong one.
        "margin": lambda figures: figures["eval_logps/chosen"] - figures["eval_logps/rejected"],
        "kl": lambda figures: figures["eval_kl"],
    },
)
