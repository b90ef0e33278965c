"""A release of relation paths with its adapter: trained in stages, killed, resumed, published."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import regenerate
from tests.makers import films
from trainers.checkpoints import is_complete

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")
pytest.importorskip("uvicorn")

from tests.memory.sitecustomize import PYTHONPATH
from tests.servers.hub_server import NAMESPACE, HubServer

ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
base_model: {base}
base_model_name: somebody/tiny
quantization: none
dtype: float32
lora_rank: 4
lora_alpha: 8
lora_dropout: 0
lora_modules: [q_proj, v_proj]
method: {method}
learning_rate: 5.0e-3
epochs: 1
effective_batch: 2
device_batch: 2
batching: random
save_steps: 2
held_out: 4
seed: 7
"""
MANIFEST = """
version: v0.3.0
seed: 4
paths: {benchmark: metaqa, kb: {input: kb.txt}, questions: [{input: questions.jsonl}]}
adapter:
  splits: template
  sft: {recipe: sft.yaml, change: {filters.rows: 12}}
  kto: {recipe: kto.yaml, change: {filters.rows: 16}}
deliberation:
  paths: [nearest, "KTO=transformers:%s+{adapter}", oracle]
  per_hop: 2
"""


def make(manifest: Path, output: Path) -> str:
    """Make the release. What an untrained model runs on with is cut: such questions count as wrong."""
    return regenerate.regenerate(manifest, output, workers=1, keep_failed=True)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def manifest(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manifest")
    films.written(folder, 60)
    for method in ("sft", "kto"):
        text = RECIPE.format(base=base, method=method)
        (folder / f"{method}.yaml").write_text(text, encoding="utf-8")
    (folder / "paths.yaml").write_text(MANIFEST % base, encoding="utf-8")
    return folder / "paths.yaml"


@pytest.fixture(scope="module")
def made(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("made") / "release"
    make(manifest, output)
    return output


def record(folder: Path) -> Any:
    return json.loads((folder / "training.json").read_text())


def test_both_stages_learn_the_split_and_the_card_tells_of_them(made: Path) -> None:
    sft, kto = record(made / "sft"), record(made / "adapter")
    assert (sft["dataset"]["rows"], kto["dataset"]["rows"]) == (12, 16)
    assert kto["start"]["name"] == "sft"
    assert {one["recipe"]["splits"] for one in (sft, kto)} == {"template"}
    assert kto["adapter"]["sha256"] != sft["adapter"]["sha256"]
    assert not list(made.rglob(".work"))
    locked = json.loads((made / LOCK).read_text())["files"]
    assert {"sft/adapter_model.safetensors", "adapter/README.md"} <= set(locked)
    card = (made / "adapter" / "README.md").read_text(encoding="utf-8")
    assert "# dp-metaqa-tiny\n" in card
    for stage in (sft, kto):
        assert f"{stage['curve'][-1]['loss']:.4f}" in card
        assert f"{stage['held_out']['loss_after']:.4f}" in card
    assert f"{kto['held_out']['margin_before']:.4f}" in card
    assert f"{kto['held_out']['margin_after']:.4f}" in card
    assert "| seed | 7 | 7 |" in card
    assert "**Not measured.**" not in card
    for place in ("report", "blocks/free/report"):
        found = json.loads((made / place / "results.json").read_text())
        (own,) = (run for run in found["runs"] if run["name"] == "KTO")
        cells = [own["by_hop"][hop]["hits_at_1"] for hop in own["by_hop"]]
        assert "| **KTO** | " + f"{cells[0]:.3f} \\[" in card
        assert found["settings"]["constrained"] == (place == "report")
        scores = {
            (one.dataset_config, one.metric_value)
            for one in ModelCard(card).data.eval_results
            if one.metric_type == "hits_at_1"
        }
        told = {(f"{hop}-hop", round(own["by_hop"][hop]["hits_at_1"], 4)) for hop in own["by_hop"]}
        assert told <= scores
    overview = (made / "README.md").read_text(encoding="utf-8")
    assert "model `dp-metaqa-tiny`" in overview
    assert str(made.parent) not in card + overview + json.dumps([sft, kto])


def test_killed_in_its_last_stage_it_goes_on_and_ends_in_the_same_adapter(
    manifest: Path, made: Path, tmp_path: Path
) -> None:
    output = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.regenerate", str(manifest), "--output", str(output),
         "--workers", "1"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not is_complete(output / "adapter" / ".work" / "training" / "checkpoint-2"):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (output / LOCK).exists()
    began = (output / "sft" / "training.json").stat().st_mtime_ns
    make(manifest, output)
    assert (output / "sft" / "training.json").stat().st_mtime_ns == began
    assert record(output / "adapter")["run"]["resumed_from_step"] >= 2
    for name in ("sft", "adapter"):
        assert record(output / name)["adapter"] == record(made / name)["adapter"]
    for file in sorted((made / "datasets").rglob("*")):
        if file.is_file():
            assert (output / file.relative_to(made)).read_bytes() == file.read_bytes()
    assert "complete and unchanged" in make(manifest, output)


def test_an_adapter_of_another_recipe_is_not_taken_for_this_one(manifest: Path, made: Path, tmp_path: Path) -> None:
    output = tmp_path / "old"
    shutil.copytree(made, output)
    (output / LOCK).unlink()
    other = manifest.with_name("other.yaml")
    other.write_text((MANIFEST % "x").replace("rows: 16", "rows: 14"), encoding="utf-8")
    with pytest.raises(UserError, match=r"adapter: was trained with another filters ") as caught:
        make(other, output)
    assert "\n" not in str(caught.value)
    shutil.rmtree(output / "sft")
    changed = (MANIFEST % "x").replace("rows: 12", "rows: 10")
    other.write_text(changed, encoding="utf-8")
    with pytest.raises(UserError, match="adapter: was trained with another start "):
        make(other, output)


def test_it_is_published_and_peft_loads_it_back(made: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.publish", str(made), "--namespace", NAMESPACE]
    with HubServer() as hub:
        env = {**hub.env(tmp_path), "PYTHONPATH": PYTHONPATH}
        run = [
            subprocess.run([*command, "--push"], env=env, cwd=ROOT, capture_output=True, text=True) for _ in range(2)
        ]
        repo = hub.repo("model", f"{NAMESPACE}/dp-metaqa-tiny")
        assert run[0].returncode == 0, run[0].stdout + run[0].stderr
        assert " tensors for " in run[0].stdout
        assert repo.tags == {"v0.3.0": repo.head.oid}
        assert len(repo.history(repo.head)) == 2
        assert run[1].stdout.count("nothing to do") == 2
        assert not [name for name in repo.head.files if name.startswith("sft")]
