"""What is told while training: a bar, a log of every step, the mark of each checkpoint; its end.

Imported when training begins, as it stands on transformers.
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

_LOGGED = ("eval_loss", *LEARNT, "num_tokens")


class Progress(TrainerCallback):  # type: ignore[misc]
    """Writes on the first process only; ``before`` are the seconds that earlier runs took."""

    def __init__(self, log: Path, checkpoints: Path, before: float) -> None:
        self.log, self.checkpoints, self.before = log, checkpoints, before
        self.begun = time.monotonic()
        self.loss: float | None = None
        self.bar: Any = None
        self.earlier = 0

    @property
    def seconds(self) -> float:
        """Of training, what earlier runs did up to their checkpoint included."""
        return self.before + time.monotonic() - self.begun

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock and the bar."""
        self.begun, self.earlier = time.monotonic(), state.global_step
        if state.is_world_process_zero:
            steps = {"total": state.max_steps, "initial": self.earlier, "unit": "step"}
            self.bar = progress.bar(**steps, desc="train")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Move the bar."""
        if self.bar is not None:
            owed = state.max_steps - state.global_step
            loss = "" if self.loss is None else f"loss {self.loss:.4f}, "
            standing = f"{loss}{self.earlier} by an earlier run, {owed} owed"
            self.bar.set_postfix_str(standing, refresh=False)
            self.bar.update(state.global_step - self.bar.n)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Append a line to the log."""
        kept = {key: logs[key] for key in _LOGGED if logs and key in logs}
        if not state.is_world_process_zero or not kept:
            return
        self.loss = kept.get("loss", self.loss)
        line = {"step": state.global_step, **kept, "seconds": round(self.seconds, 3)}
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Mark the checkpoint that was just written, once every process has."""
        from accelerate import PartialState

        PartialState().wait_for_everyone()
        if state.is_world_process_zero:
            folder = self.checkpoints / f"checkpoint-{state.global_step}"
            about = {"step": state.global_step, "seconds": round(self.seconds, 3)}
            mark_complete(folder, about)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Let the bar stand as it is."""
        if self.bar is not None:
            self.bar.close()


class StopWhenAsked(TrainerCallback):  # type: ignore[misc]
    """Ends a training after a step, and keeps it, once any of its processes is asked to stop."""

    def __init__(self, interruption: Interruption) -> None:
        self.interruption = interruption

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """All processes stop after the same step, or those left would wait for the others."""
        from accelerate import PartialState
        from accelerate.utils import gather_object

        asked = [self.interruption.asked]
        if PartialState().num_processes > 1:
            asked = gather_object(asked)
        if any(asked):
            self.interruption.asked = True
            control.should_save = control.should_training_stop = True
