"""Fixtures of the tests of what the pages show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A reader's folder, in which commands run in this process alone, as on one core.

    What is spared has tests of its own: worker processes, and the laying out of figures, which
    takes as long as drawing them.
    """
    from matplotlib.figure import Figure

    for folder in ("scripts", "examples"):
        (tmp_path / folder).symlink_to(Path(__file__).parents[2] / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAFE_STEPWISE_CACHE", str(tmp_path / "replies.sqlite"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    monkeypatch.setattr(Figure, "set_layout_engine", lambda *_, **__: None)
    return tmp_path
