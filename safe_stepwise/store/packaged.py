"""Reads the YAML files that come with the code: prompts, word lists, patterns, help texts, printed tables."""

import re
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

# libyaml where there is one: every command reads dozens of files
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(file: Path | Traversable) -> Any:
    """Read a YAML file of our own; ``safe_stepwise.store.boundary`` reads users' files and names their faults."""
    return yaml.load(file.read_bytes(), _LOADER)


def read_patterns(file: Path, **pieces: str) -> dict[str, str]:
    """Read a YAML file of regular expressions by name: a text, or a list of its parts; ⟨name⟩ is an earlier one.

    ``pieces`` are further ones, which the file may name.
    """
    patterns = dict(pieces)
    for name, content in read_yaml(file).items():
        text = content if isinstance(content, str) else "".join(content)
        patterns[name] = re.sub(r"⟨(\w+)⟩", lambda match: patterns[match[1]], text)
    return patterns
