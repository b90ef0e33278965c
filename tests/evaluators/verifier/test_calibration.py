"""What a verifier's scores are worth: measured on steps whose true probabilities are known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.verifier.calibration import PROMISES, ScoredStep, expected_error, measure_calibration
from scripts import evaluate_verifier

STEPS = 40_000


def drawn(sharpness: float = 1.0, seed: int = 1) -> list[ScoredStep]:
    """Steps that are right with a drawn probability, of which the verifier tells a sharpened one."""
    chance = np.random.default_rng(seed)
    true = chance.beta(1.2, 0.6, STEPS)
    right = chance.random(STEPS) < true
    clipped = np.clip(true, 1e-6, 1 - 1e-6)
    told = 1 / (1 + np.exp(-sharpness * np.log(clipped / (1 - clipped))))
    rows = zip(told, right, strict=True)
    return [ScoredStep(f"q{n // 4}", float(score), bool(is_right)) for n, (score, is_right) in enumerate(rows)]


def test_true_probabilities_are_calibrated() -> None:
    measured = measure_calibration(drawn())
    assert measured["ece"] < 0.02
    assert measured["temperature"] == pytest.approx(1, abs=0.1)
    assert sum(row["steps"] for row in measured["bins"]) == measured["steps"] == STEPS


@pytest.mark.parametrize("sharpness", [0.4, 2.5])
def test_a_temperature_recovers_the_truth_on_the_other_half(sharpness: float) -> None:
    measured = measure_calibration(drawn(sharpness))
    assert measured["ece"] > 0.05
    assert measured["temperature"] == pytest.approx(sharpness, rel=0.1)
    assert measured["ece_tempered"] < 0.02


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 2.0])
def test_thresholds_keep_their_promise_on_the_other_half(sharpness: float) -> None:
    chosen = measure_calibration(drawn(sharpness, seed=5))["chosen"]
    assert [row["promise"] for row in chosen] == list(PROMISES)
    for row in chosen:
        assert row["precision"]["high"] >= row["promise"] - 0.005
        assert row["accepted"] > 100
    recalls = [row["recall"] for row in chosen]
    assert recalls == sorted(recalls, reverse=True)


def test_by_hand() -> None:
    rows = [("a", 0.95, True), ("b", 0.95, False), ("c", 0.15, False), ("d", None, True)]
    measured = measure_calibration(ScoredStep(*row) for row in rows)
    assert (measured["steps"], measured["without"]) == (3, 1)
    assert measured["ece"] == pytest.approx((2 * 0.45 + 0.15) / 3, abs=1e-6)
    at_nine = next(row for row in measured["thresholds"] if row["accept_above"] == 0.9)
    assert (at_nine["accepted"], at_nine["precision"]["value"], at_nine["recall"]) == (2, 0.5, 1.0)
    # The surer error is found first: one of one, then two of three.
    assert measured["error_average_precision"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-6)


def test_without_scores_nothing_is_measured() -> None:
    assert measure_calibration([ScoredStep("q", None, True)]) == {"steps": 0, "without": 1}
    assert measure_calibration([]) == {"steps": 0, "without": 0}


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.floats(0, 1), st.booleans()), max_size=30))
def test_any_scores_are_measured(rows: list[tuple[str, float | None, bool]]) -> None:
    measured = measure_calibration(ScoredStep(*row) for row in rows)
    assert measured["steps"] + measured["without"] == len(rows)
    json.dumps(measured, allow_nan=False)
    if measured["steps"]:
        assert 0 <= measured["ece"] <= 1


def test_a_perfect_gap_is_one() -> None:
    assert expected_error(np.ones(3), np.zeros(3)) == 1


def test_the_command_writes_what_scores_are_worth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = ["Oru lies on the Vel.", "Oru lies on the Isk."]
    chains = [{"id": f"c{n}", "problem": f"Where is Oru{n}?", "steps": steps, "label": 1} for n in range(8)]
    file = tmp_path / "chains.jsonl"
    file.write_text("\n".join(map(json.dumps, chains)), encoding="utf-8")
    output = tmp_path / "out"
    evaluate_verifier.main(
        [str(file), "--benchmark", "processbench", "--verifier", "checker", "--scores", "--output", str(output),
         "--cache", str(tmp_path / "cache.sqlite")]
    )  # fmt: skip
    assert "tells no probabilities, so its verdicts have no score" in capsys.readouterr().err
    results = json.loads((output / "chain_quality.json").read_text("utf-8"))
    assert list(results["calibration"].values()) == [{"steps": 0, "without": 16}]
    assert "What the scores are worth" not in (output / "chain_quality.md").read_text("utf-8")
