"""`evaluate_stepwise` with symbolic players of prompting methods, on real rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evaluators.outcomes import read_outcomes
from safe_stepwise.methods import METHODS
from scripts import evaluate_stepwise

ROWS = 30
REASONS = ("no passage states", "the row's annotations give no plan")


@pytest.mark.parametrize("benchmark", ["2wikimultihopqa", "hotpotqa", "musique"])
def test_clean_players_are_right_where_there_is_a_plan(
    benchmark: str, real_data: Path, tmp_path: Path
) -> None:
    output = tmp_path / "results"
    evaluate_stepwise.main(
        [
            f"--questions={real_data / benchmark}_dev.jsonl",
            f"--benchmark={benchmark}",
            "--passages=all",
            f"--limit={ROWS}",
            *(f"--method={name}" for name in METHODS),
            "--generator=symbolic",
            "--verifier=symbolic",
            f"--output={output}",
            f"--cache={tmp_path / 'cache.sqlite'}",
        ]
    )
    found = list(read_outcomes(output))
    assert Counter(one.method for one in found) == dict.fromkeys(METHODS, ROWS)
    failed = {one.question_id for one in found if one.trajectory.stop_reason == "failed"}
    assert len(failed) < ROWS / 2
    for one in found:
        if one.question_id in failed:
            assert one.trajectory.failure.startswith(REASONS), one.method
        else:
            assert (one.exact_match, one.trajectory.stop_reason) == (1.0, "answered"), one.method
