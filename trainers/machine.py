"""The machine that trains: what it computes in, what it held, which libraries it has."""

import os
import platform
import resource
import sys
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import safe_stepwise
from safe_stepwise.errors import UserError
from trainers.config import Recipe

_LIBRARIES = ("accelerate", "bitsandbytes", "datasets", "peft", "torch", "transformers", "trl")


def need_libraries(recipe: Recipe) -> None:
    """Raise ``UserError`` naming what training by a recipe lacks, and how to get it."""
    wanted = ["torch", "transformers", "trl", "peft", "accelerate"]
    wanted += ["bitsandbytes"] if recipe.quantization == "nf4" else []
    missing = [name for name in wanted if find_spec(name) is None]
    if missing:
        raise UserError(f"training needs {', '.join(missing)}: pip install -e '.[train]'")
    if recipe.report_to != "none" and find_spec(recipe.report_to) is None:
        raise UserError(f"report_to {recipe.report_to}: pip install {recipe.report_to}")


def quiet_libraries() -> None:
    """Their own bars and hints would tear ours."""
    import logging as python_logging

    from datasets.utils.logging import disable_progress_bar
    from transformers.utils import logging

    disable_progress_bar()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    python_logging.getLogger("bitsandbytes").setLevel(python_logging.ERROR)


def compute_dtype(wanted: str, gpu: bool) -> Any:
    """The torch dtype that a recipe's ``dtype`` means here."""
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


def device_name(gpu: bool) -> str:
    """The GPU's name, or how many cores the CPU has."""
    import torch

    return str(torch.cuda.get_device_name()) if gpu else f"CPU, {os.cpu_count()} cores"


def peak_memory(gpu: bool) -> int:
    """Bytes that this process held at most: on the GPU, or resident."""
    import torch

    if gpu:
        return int(torch.cuda.max_memory_allocated())
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def score_completions_alone() -> None:
    """Spare a CPU the vocabulary's scores of every prompt token, as TRL spares a GPU.

    TRL 1.16 leaves masked tokens out of its fused head only where Triton runs; the loss is the
    same either way. Without this switch of its own (another TRL), training is only slower. To be
    called before a trainer's module takes what is replaced.
    """
    from trl.trainer import utils

    if hasattr(utils, "_use_triton"):
        utils._use_triton = lambda device: True


def free_gpu() -> None:
    """Give back what a training held, which may be followed by an engine or another training."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def versions() -> dict[str, str]:
    """Of Python, of ours, and of the libraries that are there."""
    found = {name: version(name) for name in _LIBRARIES if find_spec(name)}
    own = {"python": platform.python_version(), "safe-stepwise": safe_stepwise.__version__}
    return own | found
