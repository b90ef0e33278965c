"""Define the callbacks that the trainer calls: progress bar, log, marks of checkpoints, and stopping on request.

This module is imported when training begins, as it needs transformers.
"""

import json
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from safe_stepwise.store import progress
from trainers.checkpoints import mark_complete
from trainers.interruption import Interruption
from trainers.record import CURVE_FIELDS

_LOGGED_KEYS = ("eval_loss", *CURVE_FIELDS, "num_tokens")


class Progress(TrainerCallback):  # type: ignore[misc]
    """Shows a bar, logs steps and marks checkpoints, on the first process; earlier runs took ``seconds_before``."""

    def __init__(self, log: Path, checkpoints: Path, seconds_before: float) -> None:
        self.log, self.checkpoints, self.seconds_before = log, checkpoints, seconds_before
        self.started_at = time.monotonic()
        self.loss: float | None = None
        self.bar: Any = None
        self.earlier_steps = 0

    @property
    def seconds(self) -> float:
        """The seconds of training, including those of earlier runs up to their checkpoint."""
        return self.seconds_before + time.monotonic() - self.started_at

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.started_at, self.earlier_steps = time.monotonic(), state.global_step
        if state.is_world_process_zero:
            steps = {"total": state.max_steps, "initial": self.earlier_steps, "unit": "step"}
            self.bar = progress.bar(**steps, desc="train")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.bar is not None:
            pending = state.max_steps - state.global_step
            loss = "" if self.loss is None else f"loss {self.loss:.4f}, "
            status = f"{loss}{self.earlier_steps} by an earlier run, {pending} owed"
            self.bar.set_postfix_str(status, refresh=False)
            self.bar.update(state.global_step - self.bar.n)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Append the figures of a step to the log, as a JSON object on one line."""
        figures = {key: logs[key] for key in _LOGGED_KEYS if logs and key in logs}
        if not state.is_world_process_zero or not figures:
            return
        self.loss = figures.get("loss", self.loss)
        entry = {"step": state.global_step, **figures, "seconds": round(self.seconds, 3)}
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Mark the checkpoint as complete, once every process has written its files."""
        from accelerate import PartialState

        PartialState().wait_for_everyone()
        if state.is_world_process_zero:
            folder = self.checkpoints / f"checkpoint-{state.global_step}"
            mark_complete(folder, {"step": state.global_step, "seconds": round(self.seconds, 3)})

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.bar is not None:
            self.bar.close()


class StopOnRequest(TrainerCallback):  # type: ignore[misc]
    """Ends a training run after the current step, with a checkpoint, once one of its processes was asked to stop."""

    def __init__(self, interruption: Interruption) -> None:
        self.interruption = interruption

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop all processes after the same step; otherwise some would wait for those that stopped."""
        from accelerate import PartialState
        from accelerate.utils import gather_object

        requests = [self.interruption.stop_requested]
        if PartialState().num_processes > 1:
            requests = gather_object(requests)
        if any(requests):
            self.interruption.stop_requested = True
            control.should_save = control.should_training_stop = True
