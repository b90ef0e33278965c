"""Word lists and relation wording as data, so that they can be read and extended without code."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@cache
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


def wording(module: str, name: str, flags: int = 0, **values: str) -> re.Pattern[str]:
    """One wording of ``patterns.yaml`` that a module looks for, as a regular expression; «name» stands for a part."""
    text = "".join(load("patterns")[module][name])
    for placeholder, value in values.items():
        text = text.replace(f"«{placeholder}»", value)
    return re.compile(text, flags)
