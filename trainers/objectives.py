"""Make the trainers of three objectives: TRL's SFT on completions and KTO on good and bad ones, and classification.

KTO follows Deliberation on Priors, section 3.1, equations 3 and 4. It continues the adapter that SFT made, which is
also its reference. Classification is Transformers' own trainer of a head over an encoder.
"""

import heapq
import random
import shutil
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any

from safe_stepwise.engines.chat import Chat
from safe_stepwise.engines.weights import Weights
from safe_stepwise.errors import UserError
from safe_stepwise.players.encoding import LABELS
from safe_stepwise.store.grouping import grouped
from trainers import config, models
from trainers.data import Data, Example, check_masks, training_order


@dataclass(frozen=True, slots=True)
class Objective:
    """A training objective: how to make its trainer, its evaluation rows and its measures."""

    load: Callable[..., Any]
    """Loads the model from its weights, a recipe, the dtype and the device (None: the CPU)."""
    trainer: Callable[..., Any]
    """Makes the trainer from a recipe, model, its weights, `trainers.data.Data` and `trainer_arguments`."""
    rows: Callable[..., Any]
    """Makes a `datasets.Dataset` for evaluation from a recipe and its held-out examples."""
    measures: Mapping[str, Callable[[Mapping[str, float]], float]]
    """Measures of held-out rows by name, each computed from the figures of the trainer's evaluation."""


def trainer_arguments(recipe: config.Recipe, work: Path, accumulation_steps: int, gpu: bool, dtype: Any) -> Any:
    """Return the arguments of a recipe's trainer, whose checkpoints go to ``work``."""
    import torch
    from transformers import TrainingArguments

    reported = [] if recipe.report_to == "none" else [recipe.report_to]
    shared: dict[str, Any] = {
        "output_dir": str(work),
        # The order of the rows covers all epochs, so the trainer sees only one.
        "num_train_epochs": 1,
        "train_sampling_strategy": "sequential",
        "per_device_train_batch_size": recipe.device_batch,
        "per_device_eval_batch_size": recipe.device_batch,
        "gradient_accumulation_steps": accumulation_steps,
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
    if isinstance(recipe, config.EncoderRecipe):
        return TrainingArguments(**shared)
    from trl import KTOConfig, SFTConfig

    shared["max_length"] = None  # `trainers.data` checks lengths: nothing may be cut
    if isinstance(recipe, config.PathRecipe) and recipe.method == "kto":
        # TRL recommends weights of 3 to 4 where one row in four is desirable; the paper has 1 and 1.
        weights = {"desirable_weight": recipe.desirable_weight, "undesirable_weight": recipe.undesirable_weight}
        return KTOConfig(**shared, beta=recipe.beta, **weights)
    return SFTConfig(**shared, padding_free=recipe.padding_free, completion_only_loss=True)


def make_sft_trainer(recipe: config.Recipe, model: Any, weights: Weights, data: Data, arguments: Any) -> Any:
    """Make TRL's ``SFTTrainer`` over the rows in their order, with an adapter if need be, and check its masks."""
    if arguments.use_cpu:
        models.skip_prompt_logits()
    from trl import SFTTrainer

    gets_adapter = recipe.tuning == "lora" and recipe.start is None
    lengths = [len(example.tokens) for example in data.train]
    by_length = recipe.batching == "by_length"
    row_order = training_order(lengths, recipe.epochs, recipe.effective_batch, recipe.seed, by_length)
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


def token_rows(examples: Sequence[Example]) -> Any:
    """Return examples as a `datasets.Dataset` that is already prepared for the ``SFTTrainer``."""
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

    - TRL would render and tokenise the rows again, with the template's own line end after a turn. Our rows are token
      ids, like those of SFT, so nothing has to be prepared.
    - TRL copies a model's adapter as the reference, named ``ref``. A checkpoint then holds both, and Transformers 5.19
      loads only the one in the folder ``ref``, so that a resumed run would start over. The reference is made from the
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


def make_kto_trainer(recipe: config.PathRecipe, model: Any, weights: Weights, data: Data, arguments: Any) -> Any:
    """Make TRL's ``KTOTrainer`` over batches of different prompts; raise ``UserError`` for one label, or no batch."""
    if len({example.is_desirable for example in data.train}) < 2:
        raise UserError(f"{recipe.dataset}: kto needs rows of both labels; loosen the filters")
    if arguments.use_cpu:
        models.skip_prompt_logits()
    prompts = [example.tokens[: example.prompt_length] for example in data.train]
    row_order = order_apart(prompts, recipe.epochs, recipe.device_batch, recipe.seed)
    if not row_order:
        raise UserError(
            f"{recipe.dataset}: has too few prompts for a batch of {recipe.device_batch}; set "
            "device_batch to 2 or more, but to no more than there are prompts"
        )
    trainer = make_unpaired_trainer()(
        model,
        args=arguments,
        train_dataset=pair_rows([data.train[n] for n in row_order], recipe.device_batch),
        processing_class=Chat.load(weights).tokenizer,
    )
    models.train_in_float32(trainer.model)
    return trainer


def pair_rows(examples: Sequence[Example], batch: int) -> Any:
    """Return examples as a `datasets.Dataset` that is already prepared for the ``KTOTrainer``.

    Mismatched pairs, for the KL term, are each prompt and the completion of the example before it in its batch.
    """
    from datasets import Dataset

    completions = [list(example.tokens[example.prompt_length :]) for example in examples]
    batches = [completions[start : start + batch] for start in range(0, len(completions), batch)]
    return Dataset.from_dict(
        {
            "prompt_ids": [list(example.tokens[: example.prompt_length]) for example in examples],
            "completion_ids": completions,
            "KL_completion_ids": [completion for b in batches for completion in (b[-1], *b[:-1])],
            "label": [example.is_desirable for example in examples],
            "length": [len(example.tokens) for example in examples],
        }
    )


def order_apart(prompts: Sequence[Hashable], epochs: float, batch: int, seed: int) -> list[int]:
    """Return row numbers in the order of training, every ``batch`` of them having different prompts.

    An epoch has as many whole batches as possible; it leaves out the remaining rows, which differ between epochs.
    """
    row_order: list[int] = []
    for epoch in range(ceil(epochs)):
        batches = _make_batches(prompts, batch, random.Random(f"{seed}/{epoch}"))
        share = min(1.0, epochs - epoch)
        row_order += chain.from_iterable(batches[: round(share * len(batches))])
    return row_order


def _make_batches(prompts: Sequence[Hashable], batch: int, generator: random.Random) -> list[list[int]]:
    """Make the whole batches of an epoch, in random order; prompts with the most unused rows come first."""
    rows = grouped(generator.sample(range(len(prompts)), len(prompts)), prompts.__getitem__)
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


def _pair_held_out_rows(recipe: config.PathRecipe, examples: Sequence[Example]) -> Any:
    """Return held-out examples in batches like those of training; raise ``UserError`` if they are too few."""
    prompts = [example.tokens[: example.prompt_length] for example in examples]
    row_order = order_apart(prompts, 1, recipe.device_batch, recipe.seed)
    if len({examples[n].is_desirable for n in row_order}) < 2:
        raise UserError(
            f"held_out {recipe.held_out}: makes no batch of {recipe.device_batch} with rows of "
            "both labels; hold out more, or 0"
        )
    return pair_rows([examples[n] for n in row_order], recipe.device_batch)


def make_encoder_trainer(
    recipe: config.EncoderRecipe, model: Any, weights: Weights, data: Data, arguments: Any
) -> Any:
    """Make Transformers' ``Trainer`` of an encoder over the rows of each view in turn, with accuracy as a measure."""
    from transformers import DataCollatorWithPadding, Trainer

    by_length = recipe.batching == "by_length"
    rows: list[Example] = []
    for view in recipe.views:
        examples = [example for example in data.train if example.view == view]
        if not examples:
            raise UserError(
                f"{recipe.dataset}: gives no row of the view {view}; leave it out of views, or loosen filters"
            )
        lengths = [len(example.tokens) for example in examples]
        order = training_order(lengths, recipe.epochs, recipe.effective_batch, recipe.seed, by_length)
        rows += [examples[n] for n in order]
    trainer = Trainer(
        model,
        args=arguments,
        train_dataset=class_rows(rows),
        data_collator=DataCollatorWithPadding(models.load_tokenizer(weights)),
        compute_metrics=lambda scored: {"accuracy": float((scored.predictions.argmax(-1) == scored.label_ids).mean())},
    )
    # Transformers 5.19 leaves the mean over accumulated batches to the model, whose classification loss takes none.
    trainer.model_accepts_loss_kwargs = False
    return trainer


def class_rows(examples: Sequence[Example]) -> Any:
    """Return examples as a `datasets.Dataset` of pairs of texts, each with the number of its class."""
    from datasets import Dataset

    return Dataset.from_dict(
        {
            "input_ids": [list(example.tokens) for example in examples],
            "token_type_ids": [list(example.types) for example in examples],
            "labels": [example.class_number for example in examples],
            "length": [len(example.tokens) for example in examples],
        }
    )


CLASSIFICATION = Objective(
    load=lambda weights, recipe, dtype, device: models.load_encoder(weights, LABELS),
    trainer=make_encoder_trainer,
    rows=lambda recipe, examples: class_rows(examples),
    measures={"loss": lambda figures: figures["eval_loss"], "accuracy": lambda figures: figures["eval_accuracy"]},
)

SFT = Objective(
    load=models.load_base,
    trainer=make_sft_trainer,
    rows=lambda recipe, examples: token_rows(examples),
    measures={"loss": lambda figures: figures["eval_loss"]},
)

KTO = Objective(
    load=models.load_base,
    trainer=make_kto_trainer,
    rows=_pair_held_out_rows,
    measures={
        "loss": lambda figures: figures["eval_loss"],
        # How much likelier a right path is than a wrong one, in nats per completion.
        "margin": lambda figures: figures["eval_logps/chosen"] - figures["eval_logps/rejected"],
        "kl": lambda figures: figures["eval_kl"],
    },
)
