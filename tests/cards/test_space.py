"""The metric's Space is a folder made by hand; its header has to be one that the Hub takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import SpaceCard
from huggingface_hub.repocard import REGEX_YAML_BLOCK

import safe_stepwise

SPACE = Path(safe_stepwise.__file__).parents[1] / "evaluators" / "safe_stepwise"
COLORS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


@pytest.fixture
def data() -> dict[str, Any]:
    if not (SPACE / "README.md").is_file():
        pytest.skip("this checkout has no Space folder")
    found: dict[str, Any] = SpaceCard.load(SPACE / "README.md").data.to_dict()
    return found


def test_the_header_is_what_spaces_take(data: dict[str, Any]) -> None:
    """After https://huggingface.co/docs/hub/spaces-config-reference."""
    assert data["title"]
    assert data["sdk"] == "gradio"
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(data["sdk_version"]))
    assert (SPACE / data["app_file"]).is_file()
    assert {data["colorFrom"], data["colorTo"]} <= COLORS
    assert len(data["short_description"]) <= 60
    assert data["license"] == "apache-2.0"
    assert {"evaluate", "metric"} <= set(data["tags"])


def test_nothing_of_it_is_lost_on_the_way(data: dict[str, Any]) -> None:
    found = REGEX_YAML_BLOCK.search((SPACE / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    assert yaml.safe_load(found[2]) == data
