"""A training that is killed at a checkpoint, by the command that began it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from safe_stepwise.store.boundary import plain
from trainers.checkpoints import is_complete
from trainers.config import Recipe

ROOT = Path(__file__).resolve().parents[2]


def killed(command: str, recipe: Recipe) -> Path:
    """The folder of checkpoints of ``safe-stepwise COMMAND``, killed when it had a second."""
    work = recipe.output / ".work" / "training"
    process = begun(command, recipe, errors=subprocess.DEVNULL)
    while not is_complete(work / "checkpoint-2"):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (recipe.output / "training.json").exists()
    return work


def begun(command: str, recipe: Recipe, errors: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """``safe-stepwise COMMAND``, by a recipe's keys as its options."""
    return subprocess.Popen(
        [sys.executable, "-m", f"scripts.{command}", *options_of(recipe)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=errors,
        text=True,
    )


def options_of(recipe: Recipe) -> list[str]:
    """A recipe's keys as options of its command."""
    values = plain(recipe)
    nested = {f"filters.{key}": value for key, value in values.pop("filters").items() if value}
    told = {key: value for key, value in {**values, **nested}.items() if value not in (None, [])}
    return [f"--{key}={','.join(value) if isinstance(value, list) else value}" for key, value in told.items()]
