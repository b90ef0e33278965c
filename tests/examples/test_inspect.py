"""Inspect runs on the evaluation sample with its mock model: gold answers are worth 1."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import load_dataset

from releases.publish.leaderboard import render_tasks
from scripts import build_verified

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    find_spec("inspect_ai") is None, reason="no inspect-ai here: pip install inspect-ai==0.3.285"
)

INSPECT = """
from inspect_ai._cli.main import main
from inspect_ai.model._model import ModelAPI

async def counted(self, text):
    return len(text) // 4  # no tokenizer can be fetched here

ModelAPI.count_text_tokens = counted
main()
"""
"""The command ``inspect``."""


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    build_verified.main(
        f"--benchmark synthetic --input rows=40,seed=1 --split validation --teacher annotations "
        f"--output {folder} --workers 1 --version v0.1.0".split()
    )
    return folder / "safe-verified-multihop"


def saying(answers: dict[str, str]) -> Any:
    """Inspect's mock model, with an answer for each prompt."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def say(messages: Any, *_: Any) -> Any:
        told = ModelOutput.from_content("mockllm/model", answers[messages[-1].text])
        told.usage = ModelUsage()  # else it fetches a tokenizer to count
        return told

    return get_model("mockllm/model", custom_outputs=say)


def evaluated(verified: Path, logs: Path, *, gold: bool) -> dict[str, Any]:
    """The metrics of a run, its model saying each answer, or nothing of use."""
    from inspect_ai import eval as evaluate

    from examples.inspect_multihop import multihop

    asked = multihop("synthetic", str(verified))
    answers = {s.input: s.target[0] if gold else "nobody knows" for s in asked.dataset}
    (log,) = evaluate(asked, model=saying(answers), log_dir=str(logs), display="none")
    assert log.status == "success", log.error
    assert log.results is not None
    assert log.results.total_samples == len(answers) > 10
    return {one.name: one.metrics["mean"].value for one in log.results.scores}


def test_gold_answers_are_worth_one(verified: Path, tmp_path: Path) -> None:
    assert evaluated(verified, tmp_path, gold=True) == {"exact_match": 1.0, "f1": 1.0}
    assert evaluated(verified, tmp_path, gold=False) == {"exact_match": 0.0, "f1": 0.0}


def test_the_command_line_takes_it(verified: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [
            *(sys.executable, "-c", INSPECT, "eval", "examples/inspect_multihop.py"),
            *("--model", "mockllm/model", "--display", "plain", "--log-dir", str(tmp_path)),
            *("-T", "benchmark=synthetic", "-T", f"source={verified}", "-T", "limit=3"),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "exact_match" in ran.stdout


def test_the_tasks_of_eval_yaml_are_what_inspect_demands(verified: Path, tmp_path: Path) -> None:
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai._eval.task.hf import HFTask, _record_to_sample_hf
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.scorer import exact, f1
    from inspect_ai.solver import generate

    content = render_tasks([("synthetic_eval", "test")])
    tasks = [HFTask.model_validate(one) for one in yaml.safe_load(content)["tasks"]]
    assert [task.scorers[0].name for task in tasks] == ["exact", "f1"]
    for task, scorer in zip(tasks, (exact(), f1()), strict=True):
        rows = load_dataset(str(verified), task.config, split=task.split)
        made = [_record_to_sample_hf(row, task.field_spec) for row in rows]
        model = saying({one.input: one.target for one in made})
        asked = Task(dataset=MemoryDataset(made), solver=generate(), scorer=scorer)
        (log,) = evaluate(asked, model=model, log_dir=str(tmp_path), display="none")
        assert log.results is not None
        metrics = log.results.scores[0].metrics
        assert {metrics[name].value for name in ("accuracy", "mean") if name in metrics} == {1.0}
