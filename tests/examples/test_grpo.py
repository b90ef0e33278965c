"""What the example says of the reward before it trains; `tests/models/test_grpo.py` trains."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples import grpo
from safe_stepwise.errors import UserError
from scripts import build_verified


def test_it_tells_ideal_from_injected_trajectories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build_verified.main(
        f"--benchmark synthetic --input rows=12,seed=1 --split train --teacher annotations "
        f"--output {tmp_path} --workers 1".split()
    )
    capsys.readouterr()
    grpo.main(["--verified", str(tmp_path), "--steps", "0"])
    said = capsys.readouterr().out
    means = re.findall(r"mean reward of \d+ (\w+) trajectories: (\S+)", said)
    assert [name for name, _ in means] == ["ideal", "injected"]
    assert float(means[0][1]) >= 0.95
    assert float(means[1][1]) <= 0.6


def test_without_a_model_there_is_nothing_to_train() -> None:
    with pytest.raises(UserError, match="--model: name one to train"):
        grpo.main(["--verified", "."])
