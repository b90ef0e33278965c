"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# A shell starts background jobs with Ctrl-C ignored, and the commands under test would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Nor may a test hang on how fast the machine is: an example takes as long as it takes.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real benchmark rows, none of which may be copied into the project."""
    named = os.environ.get("SAFE_STEPWISE_REAL_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is no folder (set SAFE_STEPWISE_REAL_DATA)")
    return folder
