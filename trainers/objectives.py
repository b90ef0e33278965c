"""Make TRL's trainers for two objectives: SFT on completions, and KTO on desirable and undesirable completions.

KTO follows Deliberation on Priors, section 3.1, equations 3 and 4. It continues the adapter that SFT made, which is
also its reference.
"""

import heapq
import random
import shutil
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
from trainers.data import Data, TokenizedRow, check_masks, order


@dataclass(frozen=True, slots=True)
class Objective:
    """A training objective: how to make its trainer, its evaluation rows and its measures."""

    trainer: Callable[..., Any]
    """Makes the trainer from a recipe, model, its weights, `trainers.data.Data` and `trainer_arguments`."""
    rows: Callable[..., Any]
    """Makes a `datasets.Dataset` for evaluation from a recipe and held-out examples."""
    measures: Mapping[str, Callable[[Mapping[str, float]], float]]
    """Measures of held-out rows by name, each computed from the figures of the trainer's evaluation."""


def trainer_arguments(recipe: Recipe, work: Path, accumulation: int, gpu: bool, dtype: Any) -> Any:
    """Return the ``trl.KTOConfig`` of a recipe for KTO, else its ``trl.SFTConfig``, with checkpoints in ``work``."""
    import torch
    from trl import KTOConfig, SFTConfig

    reported = [] if recipe.report_to == "none" else [recipe.report_to]
    shared: dict[str, Any] = {
        "output_dir": str(work),
        # The order of the rows covers all epochs, so the trainer sees a single one.
        "num_train_epochs": 1,
        "train_sampling_strategy": "sequential",
        "max_length": None,  # `trainers.data` checks lengths: nothing may be cut
        "per_device_train_batch_size": recipe.device_batch,
        "per_device_eval_batch_size": recipe.device_batch,
        "gradient_accumulation_steps": accumulation,
        "optim": "adamw_torch",
        "learning_rate": recipe.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": recipe.warmup,  # a share of the steps
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
        "save_total_limit": 2,  # the older is complete while the newer is written
        "report_to": reported,
        "project": "safe-stepwise",  # trackio's; it stays local, as no Space is named
        "run_name": recipe.output.resolve().name,
        "disable_tqdm": True,
        "dataloader_pin_memory": gpu,
    }
    if isinstance(recipe, PathRecipe) and recipe.method == "kto":
        # TRL recommends weights of 3 to 4 where one row in four is desirable; the paper has 1 and 1.
        weights = {"desirable_weight": recipe.desirable_weight, "undesirable_weight": recipe.undesirable_weight}
        return KTOConfig(**shared, beta=recipe.beta, **weights)
    return SFTConfig(**shared, padding_free=recipe.padding_free, completion_only_loss=True)


def make_sft_trainer(recipe: Recipe, model: Any, weights: Weights, data: Data, arguments: Any) -> Any:
    """Make TRL's ``SFTTrainer`` over the rows in their order, with an adapter if need be, and check its masks."""
    if arguments.use_cpu:
        models.skip_prompt_logits()
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
        peft_config=models.make_lora_config(recipe) if gets_adapter else None,
    )
    models.train_in_float32(trainer.model)
    check_masks(trainer.train_dataset, trainer.data_collator, [data.train[n] for n in row_order])
    return trainer


def token_rows(examples: Sequence[TokenizedRow]) -> Any:
    """Return rows as a `datasets.Dataset` that is already prepared for the ``SFTTrainer``."""
    from datasets import Dataset

    return Dataset.from_dict(
        {
            "input_ids": [list(example.tokens) for example in examples],
            "labels": [example.labels for example in examples],
            "length": [len(example.tokens) for example in examples],
        }
    )


def make_unpaired_trainer() -> Any:
    """Return a ``KTOTrainer`` class for rows of token ids, whose checkpoints can be resumed from.

    It works around three traits of TRL 1.16:

    - TRL would render and tokenise the rows anew, with the template's own line end after a turn. Ours come as token
      ids, like those of SFT, so nothing is left to prepare.
    - TRL copies a model's adapter as the reference, named ``ref``. A checkpoint then holds both, and Transformers 5.19
      loads only the one in the folder ``ref``, so that a resumed run would begin anew. The reference is made from the
      adapter that the run starts from, so no checkpoint has to hold it.
    - TRL warns that weights of 1 and 1 don't fit three bad rows per good one; they are the paper's.
    """
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
    from trl import KTOTrainer

    class UnpairedTrainer(KTOTrainer):  # type: ignore[misc]
        def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
            return dataset

        def _save_checkpoint(self, model: Any, trial: Any) -> None:
            super()._save_checkpoint(model, trial)
            name = f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
            if self.args.should_save:
                shutil.rmtree(Path(self.args.output_dir) / name / "ref", ignore_errors=True)

    return UnpairedTrainer


def make_kto_trainer(recipe: PathRecipe, model: Any, weights: Weights, data: Data, arguments: Any) -> Any:
    """Make TRL's ``KTOTrainer`` over the rows, a batch's rows having different prompts, and check its batches.

    Raises ``UserError`` for rows that all are desirable or undesirable, or too few for one batch.
    """
    if len({example.label for example in data.train}) < 2:
        raise UserError(f"{recipe.dataset}: kto needs rows of both labels; loosen the filters")
    if arguments.use_cpu:
        models.skip_prompt_logits()
    prompts = [example.tokens[: example.prompt] for example in data.train]
    row_order = order_apart(prompts, recipe.epochs, recipe.device_batch, recipe.seed)
    if not row_order:
        raise UserError(
            f"{recipe.dataset}: has too few prompts for a batch of {recipe.device_batch}; set "
            "device_batch to 2 or more, but to no more than there are prompts"
        )
    trained = [data.train[n] for n in row_order]
    trainer = make_unpaired_trainer()(
        model,
        args=arguments,
        train_dataset=pair_rows(trained, recipe.device_batch),
        processing_class=Chat.load(weights).tokenizer,
    )
    models.train_in_float32(trainer.model)
    check_batches(trainer.train_dataset, trainer.data_collator, trained, recipe.device_batch)
    return trainer


def pair_rows(examples: Sequence[TokenizedRow], batch: int) -> Any:
    """Return rows as a `datasets.Dataset` that is already prepared for the ``KTOTrainer``.

    Mismatched pairs, for the KL term, are each prompt and the completion of the row before it in its batch.
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
    """Return row numbers in the order of training, every ``batch`` of them having different prompts.

    An epoch has as many whole batches as possible; the rows left over differ from epoch to epoch.

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
    """Make the whole batches of an epoch, in random order; prompts with the most rows left are used first."""
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
    examples: Sequence[TokenizedRow],
    batch: int,
) -> None:
    """Raise ``UserError`` with a row's id if the ``KTOTrainer`` changed its tokens, mask, label or batch."""
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


def _unpadded(collated: Mapping[str, Any], prefix: str, number: int) -> tuple[list[int], list[int]]:
    """Return the tokens of one row of a batch without padding, and those that the loss counts."""
    tokens = collated[f"{prefix}input_ids"][number].tolist()
    attended = collated[f"{prefix}attention_mask"][number].tolist()
    scored = collated[f"{prefix}completion_mask"][number].tolist()
    return (
        [token for token, is_attended in zip(tokens, attended, strict=True) if is_attended],
        [token for token, is_scored in zip(tokens, scored, strict=True) if is_scored],
    )


def _held_out_pairs(recipe: PathRecipe, examples: Sequence[TokenizedRow]) -> Any:
    """Return held-out rows in batches like those of training; raise ``UserError`` if they are too few."""
    prompts = [example.tokens[: example.prompt] for example in examples]
    row_order = order_apart(prompts, 1, recipe.device_batch, recipe.seed)
    if len({examples[n].label for n in row_order}) < 2:
        raise UserError(
            f"held_out {recipe.held_out}: makes no batch of {recipe.device_batch} with rows of "
            "both labels; hold out more, or 0"
        )
    return pair_rows([examples[n] for n in row_order], recipe.device_batch)


SFT = Objective(
    trainer=make_sft_trainer,
    rows=lambda recipe, examples: token_rows(examples),
    measures={"loss": lambda figures: figures["eval_loss"]},
)

KTO = Objective(
    trainer=make_kto_trainer,
    rows=_held_out_pairs,
    measures={
        "loss": lambda figures: figures["eval_loss"],
        # In nats a completion: how much likelier a right path is than a wrong one.
        "margin": lambda figures: figures["eval_logps/chosen"] - figures["eval_logps/rejected"],
        "kl": lambda figures: figures["eval_kl"],
    },
)
