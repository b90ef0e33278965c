"""Train a verifier: QLoRA on the step-level verifier set with TRL (SAFE v1, section 4.1 and A.2).

What is published stands in ``OUTPUT``: ``adapter_model.safetensors``, ``adapter_config.json``,
``training.json`` (written last: an output that has it is complete) and ``log.jsonl``. The base
model's vocabulary and template stay as they are, so its tokenizer is the adapter's. Checkpoints are
in ``OUTPUT/.work/training`` and may go once training is over.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import resource
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import safe_stepwise
from safe_stepwise.engines.chat import Chat
from safe_stepwise.engines.weights import Weights, one_line
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import prompt_digest
from trainers import checkpoints
from trainers.base_model import find_base, load_base
from trainers.config import FREE, Recipe
from trainers.plus import Joined, train_rows
from trainers.rows import (
    Example,
    Source,
    check_masks,
    fingerprint,
    open_rows,
    order,
    refuse,
    tokenize,
    too_long,
)

RECORD = "training.json"
LOG = "log.jsonl"
RUN = "run.json"
_LIBRARIES = ("accelerate", "bitsandbytes", "datasets", "peft", "torch", "transformers", "trl")


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of a run, checked. ``longest`` is in tokens; ``dropped`` are ids of long rows."""

    source: Source
    joined: Sequence[Joined]
    sha256: str
    train: Sequence[Example]
    held_out: Sequence[Example]
    longest: int
    limit: int
    dropped: Sequence[str]

    @property
    def completion_tokens(self) -> int:
        """Tokens that are learnt in one epoch."""
        return sum(len(one.tokens) - one.prompt for one in self.train)


def train(
    recipe: Recipe, resume: bool = False, warn: Callable[[str], object] = print
) -> Mapping[str, Any]:
    """Train by a recipe and write the adapter; returns what ``training.json`` says.

    With ``resume`` it goes on from the last complete checkpoint, or begins if there is none; of an
    output that is complete, the record is returned. Under ``accelerate launch`` only the first
    process writes. ``warn`` is told what may matter but stops nothing.

    Raises ``UserError`` for what the user can mend: a missing library, model or dataset, rows that
    can't be trained on, an output that holds another run.
    """
    accumulation = recipe.accumulation(int(os.environ.get("WORLD_SIZE", 1)))
    need_libraries(recipe)
    _quiet()
    first = int(os.environ.get("RANK", 0)) == 0
    if first and (done := _complete(recipe, resume)):
        return done
    weights, origin = find_base(recipe.base_model)
    data = read_data(recipe, weights)
    abouts = (data.source.about, *(one.source.about for one in data.joined))
    digests = {about.get("prompt_sha256", prompt_digest()) for about in abouts}
    if first and digests != {prompt_digest()}:
        warn("the dataset was rendered with other prompts than this version's loop sends")
    identity = _identity(recipe, weights, data)
    with _exclusive(recipe.output) if first else _nothing():
        work = recipe.output / ".work" / "training"
        if first:
            _begin(recipe, work, identity)
        return _train(recipe, weights, origin, data, accumulation, work)


def read_data(recipe: Recipe, weights: Weights) -> Data:
    """The rows as tokens.

    Raises ``UserError`` with the ids of rows that are empty, cut short or too long.
    """
    chat = Chat.load(weights)
    source, rows, joined = train_rows(recipe)
    train_, bad = tokenize(rows, chat)
    held_out: list[Example] = []
    if recipe.held_out:
        _, tests = open_rows(recipe.dataset, "test", recipe.filters)
        held_out, bad_tests = tokenize(tests[: recipe.held_out], chat)
        bad |= bad_tests
    refuse(bad, recipe.dataset, "mend or leave out these rows")
    longest = max(len(one.tokens) for one in (*train_, *held_out))
    context = _context(weights)
    limit = min(recipe.max_length or context, context)
    long = too_long((*train_, *held_out), limit)
    if not recipe.drop_long:
        refuse(long, recipe.dataset, f"set max_length up to {context}, or drop_long: true")
    train_ = [one for one in train_ if one.id not in long]
    held_out = [one for one in held_out if one.id not in long]
    if not train_:
        raise UserError(f"{recipe.dataset}: every row has more than {limit} tokens")
    sha256 = fingerprint(rows)
    return Data(source, joined, sha256, train_, held_out, longest, limit, sorted(long))


def _train(
    recipe: Recipe, weights: Weights, origin: str, data: Data, accumulation: int, work: Path
) -> Mapping[str, Any]:
    import torch
    from accelerate import PartialState
    from transformers import set_seed

    gpu = torch.cuda.is_available()
    dtype = _dtype(recipe.dtype, gpu)
    arguments = _arguments(recipe, work, accumulation, gpu, dtype)
    if not gpu:
        _score_completions_alone()
    processes = PartialState()
    processes.wait_for_everyone()  # the first one has put the work folder in order
    last = checkpoints.last_complete(work)
    # Read now: newer checkpoints will take its place.
    resumed = None if last is None else checkpoints.read_mark(last)["step"]
    set_seed(recipe.seed)
    device = processes.local_process_index if gpu else None
    model = load_base(weights, recipe, dtype, device)
    model.config.use_cache = False
    trainer, progress = _trainer(recipe, model, weights, data, arguments, work, last)
    held_out = _rows(data.held_out) if data.held_out else None
    before = _loss_before(trainer, held_out, work, last)
    set_seed(recipe.seed)  # measuring draws, too
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    seconds = progress.seconds
    after = None if held_out is None else trainer.evaluate(held_out)["eval_loss"]
    record: Mapping[str, Any] = {}
    if processes.is_main_process:
        _save(trainer.model, recipe, weights, work)
        record = {
            **_described(recipe, weights, origin, data),
            "adapter": {
                "sha256": _sha256(recipe.output / "adapter_model.safetensors"),
                "dtype": _adapter_dtype(trainer.model),
            },
            "optimizer": _optimizer(arguments),
            "run": {
                "devices": processes.num_processes,
                "device": torch.cuda.get_device_name() if gpu else f"CPU, {os.cpu_count()} cores",
                "dtype": str(dtype).removeprefix("torch."),
                "accumulation": accumulation,
                "steps": trainer.state.global_step,
                "resumed_from_step": resumed,
                "seconds": round(seconds, 1),
                "seconds_per_step": round(seconds / max(trainer.state.global_step, 1), 3),
                "tokens": sum(trainer.train_dataset.with_format(None)["length"]),
                "peak_memory_bytes": _peak_memory(gpu),
            },
            "held_out": {"rows": len(data.held_out), "loss_before": before, "loss_after": after},
            "curve": _curve(trainer.state.log_history),
            "libraries": _versions(),
        }
        checkpoints.write_json(recipe.output / RECORD, record)
    processes.wait_for_everyone()
    return record


def _trainer(
    recipe: Recipe,
    model: Any,
    weights: Weights,
    data: Data,
    arguments: Any,
    work: Path,
    last: Path | None,
) -> tuple[Any, Any]:
    """TRL's trainer over the rows in their order, its masks checked."""
    from peft import LoraConfig
    from transformers.trainer_callback import PrinterCallback, ProgressCallback
    from trl import SFTTrainer

    from trainers.progress import Progress

    lengths = [len(one.tokens) for one in data.train]
    by_length = recipe.batching == "by_length"
    drawn = order(lengths, recipe.epochs, recipe.effective_batch, recipe.seed, by_length)
    trainer = SFTTrainer(
        model,
        args=arguments,
        train_dataset=_rows(data.train).select(drawn),
        processing_class=Chat.load(weights).tokenizer,
        peft_config=LoraConfig(
            r=recipe.lora_rank,
            lora_alpha=recipe.lora_alpha,
            lora_dropout=recipe.lora_dropout,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        ),
    )
    for weight in trainer.model.parameters():
        if weight.requires_grad:
            # TRL rounds a QLoRA adapter to bfloat16, but loads a checkpoint's as float32: a resumed
            # run would be another. In bfloat16 steps of 1e-4 also vanish beside weights of 0.05.
            weight.data = weight.data.float()
    check_masks(trainer.train_dataset, trainer.data_collator, [data.train[n] for n in drawn])
    before = 0.0 if last is None else float(checkpoints.read_mark(last)["seconds"])
    progress = Progress(recipe.output / LOG, work, before)
    for theirs in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(theirs)
    trainer.add_callback(progress)
    return trainer, progress


def _arguments(recipe: Recipe, work: Path, accumulation: int, gpu: bool, dtype: Any) -> Any:
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


def _score_completions_alone() -> None:
    """Spare a CPU the vocabulary's scores of every prompt token, as TRL spares a GPU.

    TRL 1.16 leaves masked tokens out of its fused head only where Triton runs; the loss is the
    same either way. Without this switch of its own (another TRL), training is only slower.
    """
    from trl.trainer import utils

    if hasattr(utils, "_use_triton"):
        utils._use_triton = lambda device: True


def _rows(examples: Sequence[Example]) -> Any:
    from datasets import Dataset

    return Dataset.from_dict(
        {
            "input_ids": [list(one.tokens) for one in examples],
            "labels": [one.labels for one in examples],
            "length": [len(one.tokens) for one in examples],
        }
    )


def _loss_before(trainer: Any, held_out: Any, work: Path, last: Path | None) -> float | None:
    """The untrained model's loss on the held-out rows, of the run that began with it."""
    if held_out is None:
        return None
    noted = work / "held_out.json"
    if last is None:
        loss = trainer.evaluate(held_out)["eval_loss"]
        if trainer.is_world_process_zero():
            checkpoints.write_json(noted, {"loss": loss})
        return float(loss)
    return float(checkpoints.read_json(noted)["loss"])


def _save(model: Any, recipe: Recipe, weights: Weights, work: Path) -> None:
    """Put the adapter into the output, file by file, with the base model's public name in it."""
    config = model.peft_config["default"]
    config.base_model_name_or_path = recipe.base_model_name or weights.name
    config.revision = weights.commit if recipe.base_model_name is None else None
    config.target_modules = sorted(config.target_modules)  # a set; sorted, the same bytes each time
    staged = work / "adapter"
    # The vocabulary is not trained, and looking whether it grew would ask the Hub.
    model.save_pretrained(str(staged), save_embedding_layers=False)
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        half = recipe.output / f".{name}.{os.getpid()}"
        shutil.copyfile(staged / name, half)  # safetensors writes files that others can't read
        os.replace(half, recipe.output / name)
    shutil.rmtree(staged)


def _described(recipe: Recipe, weights: Weights, origin: str, data: Data) -> dict[str, Any]:
    """What was trained on what; names of folders without the way to them."""
    plain = recipe.plain()
    for key in ("dataset", "base_model", "output"):
        if Path(plain[key]).expanduser().is_dir():
            plain[key] = Path(plain[key]).resolve().name
    plain["plus"] = [one.source.name for one in data.joined]
    about = data.source.about
    return {
        "recipe": plain,
        "base_model": {
            "name": recipe.base_model_name or weights.name,
            "revision": weights.revision,
            "on_hub": weights.on_hub,
            "source": origin,
        },
        "dataset": {
            "name": data.source.name,
            "revision": data.source.revision,
            "sha256": data.sha256,
            "rows": len(data.train),
            "dropped_as_long": list(data.dropped),
            "plus": [_joined(one, data.train) for one in data.joined],
            **{key: about.get(key) for key in ("version", "teacher", "simulated")},
        },
        "prompt_sha256": prompt_digest(),
        "tokens": {
            "longest": data.longest,
            "limit": data.limit,
            "prompt": sum(one.prompt for one in data.train),
            "completion": data.completion_tokens,
        },
    }


def _joined(one: Joined, train: Sequence[Example]) -> dict[str, Any]:
    """What a set of ``plus`` is; ``rows`` are those learnt, ``sha256`` is of long ones too."""
    about = one.source.about
    return {
        "name": one.source.name,
        "revision": one.source.revision,
        "rows": sum(example.id in one.ids for example in train),
        "sha256": one.sha256,
        "unverifiable": bool(about.get("unverifiable")),
        **{key: about.get(key) for key in ("teacher", "simulated")},
    }


def _adapter_dtype(model: Any) -> str:
    (one,) = {str(weight.dtype) for weight in model.parameters() if weight.requires_grad}
    return one.removeprefix("torch.")


def _optimizer(arguments: Any) -> dict[str, Any]:
    """What steps are made with, beside what the recipe says; clipping is of the gradient's norm."""
    return {
        "name": str(arguments.optim.value),
        "betas": [arguments.adam_beta1, arguments.adam_beta2],
        "epsilon": arguments.adam_epsilon,
        "clipping": arguments.max_grad_norm,
        "schedule": str(arguments.lr_scheduler_type.value),
    }


def _curve(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    kept = ("step", "loss", "mean_token_accuracy", "learning_rate", "grad_norm")
    return [{key: one[key] for key in kept if key in one} for one in history if "loss" in one]


def _identity(recipe: Recipe, weights: Weights, data: Data) -> dict[str, Any]:
    """All that decides on what is learnt."""
    decisive = {key: value for key, value in recipe.plain().items() if key not in FREE}
    where = ("base_model", "dataset", "plus")  # by content, as a folder may have moved
    kept = {key: value for key, value in decisive.items() if key not in where}
    return kept | {"base_model": weights.revision, "dataset": data.sha256}


def _complete(recipe: Recipe, resume: bool) -> Mapping[str, Any] | None:
    """The record of an output that is complete, if it is to be resumed.

    Raises ``UserError`` for an output that is not empty otherwise.
    """
    if resume:
        record = recipe.output / RECORD
        return checkpoints.read_json(record) if record.is_file() else None
    try:
        is_empty = not recipe.output.exists() or not any(recipe.output.iterdir())
    except NotADirectoryError:
        raise UserError(f"{recipe.output}: is a file; choose another --output") from None
    if not is_empty:
        raise UserError(
            f"{recipe.output}: is not empty; add --resume to go on with what was begun there, or "
            "choose another --output"
        )
    return None


def _begin(recipe: Recipe, work: Path, identity: Mapping[str, Any]) -> None:
    """Note what the run is, or compare with what was noted; remove half checkpoints."""
    work.mkdir(parents=True, exist_ok=True)
    noted = work / RUN
    if noted.is_file():
        before = checkpoints.read_json(noted)
        for key in sorted({*before, *identity}):
            if before.get(key) != identity.get(key):
                raise UserError(
                    f"{recipe.output}: was begun with another {key} ({before.get(key)}, now "
                    f"{identity.get(key)}); use that one, or choose another --output"
                )
    checkpoints.clear(work, checkpoints.last_complete(work))
    checkpoints.write_json(noted, identity)


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Create the folder and hold it against other runs until the end, even a violent one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot write ({error.strerror}); choose another --output"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UserError(f"{folder}: another run is writing here; wait for it") from None
    finally:
        os.close(handle)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def need_libraries(recipe: Recipe) -> None:
    """Raise ``UserError`` naming what training by a recipe lacks, and how to get it."""
    wanted = ["torch", "transformers", "trl", "peft", "accelerate"]
    wanted += ["bitsandbytes"] if recipe.quantization == "nf4" else []
    missing = [name for name in wanted if find_spec(name) is None]
    if missing:
        raise UserError(f"training needs {', '.join(missing)}: pip install -e '.[train]'")
    if recipe.report_to != "none" and find_spec(recipe.report_to) is None:
        raise UserError(f"report_to {recipe.report_to}: pip install {recipe.report_to}")


def _context(weights: Weights) -> int:
    """The most tokens that a model reads."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(
            weights.place, revision=weights.commit, trust_remote_code=False
        )
    except Exception as error:  # what a broken config makes the library raise
        raise UserError(f"{weights}: cannot be loaded ({one_line(error)})") from None
    return int(config.get_text_config().max_position_embeddings)


def _dtype(wanted: str, gpu: bool) -> Any:
    import torch

    if wanted != "auto":
        return getattr(torch, wanted)
    if gpu:
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        # Without one of these a CPU computes in float32, and converts to and fro on the way.
        asked = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
        fast = any(getattr(torch.cpu, name, bool)() for name in asked)
    return torch.bfloat16 if fast else torch.float32


def _peak_memory(gpu: bool) -> int:
    """Bytes that this process held at most: on the GPU, or resident."""
    import torch

    if gpu:
        return int(torch.cuda.max_memory_allocated())
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _quiet() -> None:
    """The libraries' own bars and hints would tear ours."""
    import logging as python_logging

    from datasets.utils.logging import disable_progress_bar
    from transformers.utils import logging

    disable_progress_bar()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    python_logging.getLogger("bitsandbytes").setLevel(python_logging.ERROR)


def _versions() -> dict[str, str]:
    found = {name: version(name) for name in _LIBRARIES if find_spec(name)}
    own = {"python": platform.python_version(), "safe-stepwise": safe_stepwise.__version__}
    return own | found


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
