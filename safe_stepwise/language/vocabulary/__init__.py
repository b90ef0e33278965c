"""Word lists and relation wording as data, so that they can be read and extended without code."""

from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml


@lru_cache(maxsize=8)
def load(name: str) -> dict[str, Any]:
    """One vocabulary file by its name without ending ("relations", "nations", "words")."""
    text = files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


def word_list(name: str) -> frozenset[str]:
    """One list of ``words.yaml``.

    >>> "county" in word_list("divisions")
    True
    """
    return frozenset(load("words")[name].split())
