"""GRPO runs with the checker as its reward, on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples import grpo
from scripts import build_verified

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    build_verified.main(
        f"--benchmark synthetic --input rows=12,seed=1,passages=4,writer=plain --split train "
        f"--teacher annotations --output {folder} --workers 1".split()
    )
    return folder


@pytest.mark.parametrize(("reward", "steps"), [("trajectory", 20), ("step", 3)])
def test_it_trains_on_either_reward(
    reward: str, steps: int, verified: Path, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"--verified {verified} --model {base} --output {tmp_path} --reward {reward} --cpu"
    grpo.main([*asked.split(), "--max-tokens", "8", "--generations", "2", "--steps", str(steps)])
    said = capsys.readouterr().out
    assert re.search(r"mean reward of \d+ ideal trajectories: 1.000", said)
    injected = re.search(r"mean reward of \d+ injected trajectories: (\S+)", said)
    assert injected
    assert float(injected[1]) <= 0.6
    assert f"{steps} steps, reward 0.000 at the first" in said  # a random model writes no step
    assert (tmp_path / "model.safetensors").is_file()
