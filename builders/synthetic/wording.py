"""The wording tables: YAML files beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def load(name: str) -> Any:
    """The table in the file ``name``, for instance ``questions.yaml``."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((Path(__file__).parent / name).read_text(encoding="utf-8"), loader)
