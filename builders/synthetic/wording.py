"""How questions are worded: the YAML file beside this one, explained there."""

from pathlib import Path
from typing import Any

import yaml


def load(name: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((Path(__file__).parent / name).read_text(encoding="utf-8"), loader)


_QUESTIONS: dict[str, Any] = load("questions.yaml")
PHRASES: dict[str, str] = _QUESTIONS["phrases"]
ASKED: dict[str, list[str]] = _QUESTIONS["asked"]
ASKED_FREELY: dict[str, list[str]] = _QUESTIONS["asked_freely"]
COMPARED: list[dict[str, Any]] = _QUESTIONS["compared"]
SAME: list[dict[str, Any]] = _QUESTIONS["same"]
INFERENCES: dict[tuple[str, ...], str] = {tuple(each["path"]): each["question"] for each in _QUESTIONS["inferences"]}
BRIDGED_SAME: list[str] = _QUESTIONS["bridged_same"]
BRIDGED: dict[str, dict[str, list[str]]] = _QUESTIONS["bridged"]
BY: dict[str, str] = _QUESTIONS["by"]
SHARED: dict[str, list[str]] = _QUESTIONS["shared"]
