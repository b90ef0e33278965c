"""The examples run as they are told to, without a GPU or a network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from datasets import load_dataset

from examples import loop_metric
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import VERIFIED
from scripts import verify


def test_a_benchmark_of_ones_own_is_verified(tmp_path: Path) -> None:
    verify.main(["examples/own_benchmark.jsonl", "--output", str(tmp_path), "--workers=1"])
    rows = load_dataset(str(tmp_path / VERIFIED), "own_benchmark_labeled", split="validation")
    names = rows.features["noise_type"]
    assert {row["id"]: names.int2str(row["noise_type"]) for row in rows} == {
        "own-1": "none",
        "own-2": "external_knowledge",
        "own-3": "wrong_answer",
        "own-4": "none",
        "own-5": "wrong_answer",
    }
    assert "Ilse Bram – place of birth – Ardle" in rows[1]["explanation"]


def test_the_loop_is_measured_against_a_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SAFE_STEPWISE_CACHE", str(tmp_path / "replies.sqlite"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    loop_metric.main([])
    said = capsys.readouterr().out
    match = {name: float(value) for name, value in re.findall(r"(\w+): exact_match (\S+),", said)}
    assert match["safe"] == 1.0 > match["no_verification"]
    assert "simulated: True" in said


def test_a_stand_in_that_can_not_be_is_told_of() -> None:
    with pytest.raises(UserError, match="ended with 2"), loop_metric.stand_in("openai:x"):
        pytest.fail("it serves nothing")
