"""Callbacks of a training: a bar, a log of every step, the mark of each checkpoint, and stopping on request.

The module is imported when training begins, as it needs transformers.
"""

import json
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from safe_stepwise.store import progress
from trainers.checkpoints import mark_complete
from trainers.interruption import Interruption
from trainers.record import LEARNT

_LOGGED_KEYS = ("eval_loss", *LEARNT, "num_tokens")


class Progress(TrainerCallback):  # type: ignore[misc]
    """Reports progress, on the first process only; ``seconds_before`` are those that earlier runs took."""

    def __init__(self, log: Path, checkpoints: Path, seconds_before: float) -> None:
        self.log, self.checkpoints, self.seconds_before = log, checkpoints, seconds_before
        self.started_at = time.monotonic()
        self.loss: float | None = None
        self.bar: Any = None
        self.earlier_steps = 0

    @property
    def seconds(self) -> float:
        """The seconds of training, with those of earlier runs up to their checkpoint."""
        return self.seconds_before + time.monotonic() - self.started_at

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock and the bar."""
        self.started_at, self.earlier_steps = time.monotonic(), state.global_step
        if state.is_world_process_zero:
            steps = {"total": state.max_steps, "initial": self.earlier_steps, "unit": "step"}
            self.bar = progress.bar(**steps, desc="train")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Move the bar."""
        if self.bar is not None:
            pending = state.max_steps - state.global_step
            loss = "" if self.loss is None else f"loss {self.loss:.4f}, "
            status = f"{loss}{self.earlier_steps} by an earlier run, {pending} owed"
            self.bar.set_postfix_str(status, refresh=False)
            self.bar.update(state.global_step - self.bar.n)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Append a line to the log."""
        figures = {key: logs[key] for key in _LOGGED_KEYS if logs and key in logs}
        if not state.is_world_process_zero or not figures:
            return
        self.loss = figures.get("loss", self.loss)
        line = {"step": state.global_step, **figures, "seconds": round(self.seconds, 3)}
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Mark the checkpoint as complete, once every process has written its files."""
        from accelerate import PartialState

        PartialState().wait_for_everyone()
        if state.is_world_process_zero:
            folder = self.checkpoints / f"checkpoint-{state.global_step}"
            mark = {"step": state.global_step, "seconds": round(self.seconds, 3)}
            mark_complete(folder, mark)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()


class StopOnRequest(TrainerCallback):  # type: ignore[misc]
    """Ends a training after a step, with a checkpoint, once any of its processes is to stop."""

    def __init__(self, interruption: Interruption) -> None:
        self.interruption = interruption

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop all processes after the same step; otherwise the remaining ones would wait for the others."""
        from accelerate import PartialState
        from accelerate.utils import gather_object

        requests = [self.interruption.stop_requested]
        if PartialState().num_processes > 1:
            requests = gather_object(requests)
        if any(requests):
            self.interruption.stop_requested = True
            control.should_save = control.should_training_stop = True
