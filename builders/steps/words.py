"""The words of ``words.yaml``, explained there."""

from pathlib import Path
from typing import Any

import yaml

WORDS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))
FAMILIES: dict[str, str] = WORDS["families"]
"""Every weakness of verifiers by its name, and what a verifier with it does."""


def words(name: str) -> frozenset[str]:
    """One of its lists of words."""
    return frozenset(WORDS[name].split())
