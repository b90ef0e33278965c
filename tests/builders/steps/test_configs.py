"""What a config of the set takes: one entry of the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builders.steps import configs
from builders.steps.configs import Config, Rendering, write_configs
from builders.steps.rows import StepRow
from safe_stepwise.records import Feedback, Question, Step
from safe_stepwise.store.names import STEP_CONFIGS, STEPS, TEST, TRAIN


def test_a_new_config_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def form(row: StepRow, by: Rendering) -> configs.Row:
        turns = [{"role": "user", "content": row.question.question}]
        return {"id": row.id, "prompt": turns, "label": row.id in by.unseen}

    monkeypatch.setitem(configs.CONFIGS, "asked", Config(lambda parts, _: parts[STEPS], form, ("prompt", "label")))  # type: ignore[arg-type]
    step = Step(1, "Oru lies on the Vel.", "Attribution")
    row = StepRow(
        Question("q", "musique", "train", "Where?", "Vel"), (), step, Feedback("Correct", "", ""), "ideal", "t"
    )
    rows = {name: {TRAIN: [row] if name == STEPS else [], TEST: []} for name in STEP_CONFIGS[True]}
    written = write_configs(rows, tmp_path, Rendering({}, frozenset([row.id])))
    assert written["asked"][TRAIN].rows == 1
    (content,) = pq.read_table(tmp_path / "asked").to_pylist()
    assert content == {"id": row.id, "prompt": [{"role": "user", "content": "Where?"}], "label": True}
