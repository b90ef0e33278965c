"""GRPO runs with the checker as its reward, on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples import grpo
from safe_stepwise.rewards import StepEnvironment
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
    asked = f"--verified {verified} --model {base} --output {tmp_path} --reward {reward}"
    grpo.main([*asked.split(), "--max-tokens", "8", "--generations", "2", "--steps", str(steps)])
    said = capsys.readouterr().out
    assert re.search(r"mean reward of \d+ ideal trajectories: 1.000", said)
    injected = re.search(r"mean reward of \d+ injected trajectories: (\S+)", said)
    assert injected
    assert float(injected[1]) <= 0.6
    assert f"{steps} steps, reward 0.000 at the first" in said  # a random model writes no step
    assert (tmp_path / "model.safetensors").is_file()


def test_the_environment_trains_turn_by_turn(verified: Path, base: Path, tmp_path: Path) -> None:
    """TRL takes it: it finds its tool, resets it with a row's columns, and logs its reward."""
    from datasets import Dataset, load_dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen3_chat_template

    rows = load_dataset(str(verified / "safe-verified-multihop"), "synthetic_labeled", split="train")
    content = "Answer in steps, each by a call of submit_step."
    dataset = [{"prompt": [{"role": "user", "content": content}], **row} for row in rows.select(range(2))]
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.chat_template = qwen3_chat_template
    config = GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=8,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
    )
    trainer = GRPOTrainer(
        str(base),
        args=config,
        train_dataset=Dataset.from_list(dataset),
        processing_class=tokenizer,
        environment_factory=StepEnvironment,
    )
    assert [tool.__name__ for tool in trainer.tools] == ["submit_step"]
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert logged[0]["rewards/StepEnvironment/mean"] == 0.0  # a random model submits no step
