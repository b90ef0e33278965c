"""Both sides of the benchmark of speed, on one question and a model of random numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from safe_stepwise.engines.weights import Model, find_model
from tests.benchmarks import bench_replay, paper_profile

pytest.importorskip("vllm", reason="no vLLM here: `make test-vllm` runs the model tests")


def test_both_sides_compute_the_same_calls(base: Path, real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFE_STEPWISE_REAL_DATA", str(real_data))
    asked, weights = paper_profile.questions(1), find_model(Model(str(base)))
    (chain,) = bench_replay.scripted(asked).values()
    ours, other = (side(asked, weights) for side in bench_replay.SIDES.values())
    assert ours["calls"] == len(chain)
    assert ours["digest"] == other["digest"]
    # Most of a prompt was in the last one to the same role; the first two were in none.
    assert other["cached"] == 0
    assert 0.6 < ours["cached"] / ours["prompt"] < 1
