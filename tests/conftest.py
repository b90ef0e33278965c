"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# A shell starts background jobs with Ctrl-C ignored, and the commands under test would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real benchmark rows, none of which may be copied into the project."""
    named = os.environ.get("SAFE_STEPWISE_REAL_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is no folder (set SAFE_STEPWISE_REAL_DATA)")
    return folder
