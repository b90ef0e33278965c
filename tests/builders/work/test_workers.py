"""Workers that are only starting when Ctrl-C comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[3]
SLOW = """
import sys, time
if any("spawn_main" in part for part in sys.orig_argv):
    time.sleep(1.5)
"""


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("wait", [0.0, 0.7])
def test_ctrl_c_while_workers_start_ends_in_order(tmp_path: Path, wait: float) -> None:
    """Every process of a terminal gets it, also one that has not read a line of ours yet."""
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    process = subprocess.Popen(
        [*(sys.executable, "-m", "scripts.build_verified", "--benchmark", "synthetic"),
         *("--input", "rows=20000,seed=9", "--split", "train", "--teacher", "annotations"),
         *("--output", str(tmp_path / "out"), "--workers", "2")],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tmp_path)}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not workers(process.pid):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(wait)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    said = [line for line in errors.replace("\r", "\n").splitlines() if line.strip()]
    assert said[-1] == "interrupted; the same command resumes"
    assert "Traceback" not in errors


def workers(parent: int) -> list[psutil.Process]:
    return [
        child for child in psutil.Process(parent).children() if any("spawn_main" in part for part in child.cmdline())
    ]
