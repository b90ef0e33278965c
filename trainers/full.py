"""A model of which all weights were tuned: kept in a folder of its own, as any model is.

Its record stands beside the folder, so that the digest of the model is that of its weights alone.
"""

import shutil
from pathlib import Path
from typing import Any

from safe_stepwise.engines.weights import Weights
from safe_stepwise.store.files import whole_folder
from safe_stepwise.store.names import TUNED
from trainers.config import Recipe

MODEL = TUNED
MODEL_WEIGHTS = f"{MODEL}/model.safetensors"


def is_full(output: Path) -> bool:
    """Whether an output holds a model rather than an adapter."""
    return (output / MODEL).is_dir()


def save(model: Any, recipe: Recipe, weights: Weights, work: Path) -> None:
    """Put the model into the output, in the base's own precision, with the base's tokenizer.

    `transformers` and vLLM take the folder as it is.
    """
    import torch
    from transformers import AutoConfig, AutoTokenizer

    where = {"revision": weights.commit, "trust_remote_code": False}
    dtype = AutoConfig.from_pretrained(weights.place, **where).dtype
    folder = recipe.output / MODEL
    shutil.rmtree(folder, ignore_errors=True)
    model.config.use_cache = True
    with whole_folder(folder) as half:
        model.to(dtype or torch.float32).save_pretrained(str(half))
        AutoTokenizer.from_pretrained(weights.place, **where).save_pretrained(half)
