"""Loads word lists, wordings and patterns from YAML files, which can be extended without code."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@cache
def load(name: str) -> dict[str, Any]:
    """Load a vocabulary file by its name without ending ("relations", "nations", "words")."""
    text = files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


def word_list(name: str) -> frozenset[str]:
    """Load a list of ``words.yaml``.

    >>> "county" in word_list("divisions")
    True
    """
    return frozenset(load("words")[name].split())


def wording(module: str, name: str, flags: int = 0, **values: str) -> re.Pattern[str]:
    """Compile a pattern of ``patterns.yaml`` by module and name; a value replaces each «placeholder»."""
    text = "".join(load("patterns")[module][name])
    for placeholder, value in values.items():
        text = text.replace(f"«{placeholder}»", value)
    return re.compile(text, flags)
