"""A verifier trains: rows checked first, killed and resumed to the same adapter, loaded back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from safe_stepwise.engines.base import Completion, Message, Request, Sampling
from safe_stepwise.engines.weights import Model
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import prompt_digest
from tests.models.killing import ROOT, begun, killed, options_of
from tests.models.small_sets import build_steps
from trainers.checkpoints import last_complete
from trainers.config import Filters, VerifierRecipe
from trainers.data import check_masks, read_data, read_train_rows
from trainers.interruption import REPEAT_SECONDS, STOPPED, STOPPING
from trainers.models import find_base
from trainers.run import train

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_steps(tmp_path_factory.mktemp("set"), 30, 40)


@pytest.fixture(scope="module")
def recipe(steps: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> VerifierRecipe:
    return VerifierRecipe(
        base_model=str(base),
        base_model_name="somebody/tiny",
        dataset=str(steps),
        output=tmp_path_factory.mktemp("runs") / "whole",
        filters=Filters(rows=6),
        effective_batch=2,
        device_batch=1,
        learning_rate=5e-3,
        save_steps=2,
        held_out=1,
    )


@pytest.fixture(scope="module")
def whole(recipe: VerifierRecipe) -> Any:
    """The record of a run of six steps that nothing interrupted."""
    return train(recipe)


def test_it_learns_and_says_what_it_did(recipe: VerifierRecipe, whole: Any) -> None:
    losses = [point["loss"] for point in whole["curve"]]
    assert len(losses) == 6
    assert whole["held_out"]["loss_after"] < whole["held_out"]["loss_before"]
    assert whole == json.loads((recipe.output / "training.json").read_text())
    assert whole["run"]["steps"] == 6
    assert whole["dataset"]["rows"] == 6
    assert whole["adapter"]["dtype"] == "float32"
    assert (whole["optimizer"]["name"], whole["optimizer"]["schedule"]) == ("adamw_torch", "cosine")
    assert str(recipe.output.parent) not in json.dumps(whole)  # folders are nobody's business
    written = {path.name for path in recipe.output.iterdir()}
    adapter = {"adapter_model.safetensors", "adapter_config.json"}
    assert written == {*adapter, "training.json", "log.jsonl", ".work"}
    config = json.loads((recipe.output / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "somebody/tiny"
    assert len({name.rpartition(".")[2] for name in config["target_modules"]}) == 7


def test_killed_and_resumed_it_ends_in_the_same_adapter(recipe: VerifierRecipe, whole: Any, tmp_path: Path) -> None:
    halved = replace(recipe, output=tmp_path / "halved")
    work = killed("train_verifier", halved)
    with pytest.raises(UserError, match="add --resume"):
        train(halved)
    with pytest.raises(UserError, match="begun with another seed"):
        train(replace(halved, seed=7), resume=True)
    # The trainer's own search would take this one, which was never finished.
    half = shutil.copytree(work / "checkpoint-2", work / "checkpoint-7")
    (half / "complete.json").unlink()
    (half / "optimizer.pt").write_bytes(b"half")
    resumed = train(halved, resume=True)
    assert 2 <= resumed["run"]["resumed_from_step"] < 7
    assert resumed["curve"] == whole["curve"]
    assert resumed["held_out"] == whole["held_out"]
    assert resumed["adapter"] == whole["adapter"]  # to the last bit
    assert train(halved, resume=True) == resumed  # complete: nothing is done again
    with pytest.raises(UserError, match="was trained with another learning_rate"):
        train(replace(halved, learning_rate=0.5), resume=True)
    fewer = replace(halved, filters=replace(halved.filters, rows=4))
    with pytest.raises(UserError, match=r"was trained with another (dataset|filters)"):
        train(fewer, resume=True)


def test_interrupted_it_ends_its_step_and_keeps_it(recipe: VerifierRecipe, whole: Any, tmp_path: Path) -> None:
    stopped = replace(recipe, output=tmp_path / "stopped", save_steps=50)
    process = begun("train_verifier", stopped)
    log = stopped.output / "log.jsonl"
    while not (log.exists() and '"loss"' in log.read_text()):  # of a step, not of held-out rows
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert [line for line in errors.splitlines() if "stop" in line or "interrupted" in line] == [
        STOPPING,
        "interrupted; --resume goes on",
    ]
    assert not (stopped.output / "training.json").exists()
    last = last_complete(stopped.output / ".work" / "training")
    assert last is not None
    step = int(last.name.removeprefix("checkpoint-"))
    assert 1 <= step < 6
    resumed = train(stopped, resume=True)
    assert resumed["run"]["resumed_from_step"] == step
    assert resumed["adapter"] == whole["adapter"]  # to the last bit
    assert resumed["curve"] == whole["curve"]


def test_asked_again_it_ends_within_a_step(recipe: VerifierRecipe, tmp_path: Path) -> None:
    """A step of 32 passes is not waited for; of the bar the log has but its begin."""
    filters = Filters(rows=32)
    slow = replace(recipe, output=tmp_path / "slow", filters=filters, effective_batch=32)
    process = begun("train_verifier", slow)
    assert process.stderr is not None
    assert "0/2" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == f"{STOPPING}\n"
    time.sleep(2 * REPEAT_SECONDS)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, f"{STOPPED}\n")
    assert last_complete(slow.output / ".work" / "training") is None


def test_two_processes_take_the_same_steps(recipe: VerifierRecipe, whole: Any, tmp_path: Path) -> None:
    """Of what each step is made stays the same; dropout alone is another in another process."""
    shared = replace(recipe, output=tmp_path / "shared")
    # What `accelerate launch` runs on GPUs; it knows no such way for CPUs of one machine.
    launch = ("torch.distributed.run", "--standalone", "--nproc_per_node", "2", "--no-python")
    told = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(
        [sys.executable, "-m", *launch, sys.executable, "-m", "scripts.train_verifier",
         *options_of(shared)],
        cwd=ROOT, env={**os.environ, **told},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    record = json.loads((shared.output / "training.json").read_text())
    assert (record["run"]["devices"], record["run"]["accumulation"]) == (2, 1)
    assert record["run"]["steps"] == whole["run"]["steps"]
    ours, theirs = ([point["loss"] for point in one["curve"]] for one in (record, whole))
    assert ours[0] == pytest.approx(theirs[0], rel=1e-3)  # an adapter begins as nothing
    assert ours == pytest.approx(theirs, rel=0.05)
    held_out = record["held_out"]
    assert held_out["loss_before"] == pytest.approx(whole["held_out"]["loss_before"], rel=1e-3)
    assert held_out["loss_after"] == pytest.approx(whole["held_out"]["loss_after"], rel=0.05)


def test_measuring_before_training_changes_nothing(recipe: VerifierRecipe, whole: Any, tmp_path: Path) -> None:
    """An evaluation makes bitsandbytes repack the weights for a kernel without gradients."""
    alone = train(replace(recipe, output=tmp_path / "alone", held_out=0))
    assert alone["curve"] == whole["curve"]


def test_the_adapter_loads_in_peft_and_in_our_engine(recipe: VerifierRecipe, whole: Any, base: Path, run: Any) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from safe_stepwise.engines.transformers import TransformersEngine

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    tokens = torch.arange(20).unsqueeze(0)
    with torch.inference_mode():
        plain = model(tokens).logits
        adapted = PeftModel.from_pretrained(model, recipe.output)(tokens).logits
    assert (plain - adapted).abs().max() > 0.1

    async def said(adapter: Model | None) -> Completion:
        engine = TransformersEngine(Model(str(base)), adapter)
        turns = (Message("user", "Judge the step."),)
        (completion,) = await engine.generate([Request(turns, Sampling(max_tokens=8))])
        await engine.close()
        assert isinstance(completion, Completion)
        return completion

    assert run(said(Model(str(recipe.output)))).transcript != run(said(None)).transcript


def test_bad_rows_stop_a_run_before_anything_is_written(recipe: VerifierRecipe, steps: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(steps, tmp_path / "safe-verifier-steps")
    file = next((damaged / "data" / "prompt_completion").glob("train-*.parquet"))
    table = pq.read_table(file)
    rows = table.to_pylist()
    empty, cut = rows[1], rows[4]
    empty["completion"][0]["content"] = ""
    cut["completion"][0]["content"] = cut["completion"][0]["content"][:-30]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file)
    bad = replace(recipe, dataset=str(damaged), output=tmp_path / "adapter")
    with pytest.raises(UserError, match="2 rows can't be trained on") as caught:
        train(bad)
    assert f"{empty['id']}: has an empty completion" in str(caught.value)
    assert f"{cut['id']}: has a completion that is no verdict, or is cut short" in str(caught.value)
    assert not bad.output.exists()


def test_long_rows_are_an_error_or_left_out_and_counted(recipe: VerifierRecipe, base: Path) -> None:
    weights, _ = find_base(str(base))
    every = read_data(recipe, weights)
    limit = sorted(len(one.tokens) for one in every.train)[3]
    short = replace(recipe, max_length=limit, held_out=0)
    with pytest.raises(UserError, match=f"more than {limit}.*drop_long: true"):
        read_data(short, weights)
    left = read_data(replace(short, drop_long=True), weights)
    assert len(left.dropped) + len(left.train) == 6
    assert {one.id for one in every.train if len(one.tokens) > limit} == set(left.dropped)


def test_a_mask_that_is_not_the_completions_is_found(recipe: VerifierRecipe, base: Path) -> None:
    import torch

    weights, _ = find_base(str(base))
    examples = read_data(recipe, weights).train

    def collate(rows: Any) -> Any:
        return {"labels": torch.tensor([t for row in rows for t in row["labels"]])}

    held = [{"input_ids": list(one.tokens), "labels": one.labels} for one in examples]
    check_masks(held, collate, examples)
    with pytest.raises(UserError, match="holds 5 rows of 6"):
        check_masks(held[:-1], collate, examples)
    unmasked = [*held[:3], {**held[3], "labels": held[3]["input_ids"]}, *held[4:]]
    with pytest.raises(UserError, match=f"row {examples[3].id}"):
        check_masks(unmasked, collate, examples)
    with pytest.raises(UserError, match="a batch learns other tokens"):
        check_masks(held, lambda rows: {"labels": collate(rows)["labels"][:-1]}, examples)


def test_filters_read_labels_and_origins(recipe: VerifierRecipe, base: Path, steps: Path) -> None:
    from datasets import load_dataset

    weights, _ = find_base(str(base))
    rows = load_dataset(str(steps), "steps", split="train")
    name = {key: rows.features[key].int2str for key in ("error_category", "origin")}
    for filters, kept in [
        (Filters(drop_category="Procedural"), lambda c, o: c != "Procedural"),
        (Filters(origins=("ideal",)), lambda c, o: o == "ideal"),
    ]:
        expected = [
            row["id"]
            for row in rows
            if kept(name["error_category"](row["error_category"]), name["origin"](row["origin"]))
        ]
        found = read_data(replace(recipe, filters=filters, held_out=0), weights).train
        assert 0 < len(found) < len(rows)
        assert [one.id for one in found] == expected


def test_it_learns_twelve_labels(recipe: VerifierRecipe, whole: Any, tmp_path: Path) -> None:
    """A few steps on rows that lack evidence, as on all others, under the prompt that allows it."""
    twelve = replace(
        recipe,
        incomplete_evidence=True,
        output=tmp_path / "twelve",
        filters=Filters(drop_category="Attribution", origins=("injected",), rows=24),
    )
    rows = read_train_rows(twelve)[1]
    assert any("Missing Evidence" in row["completion"][0]["content"] for row in rows)
    assert all("Missing Evidence" in row["prompt"][0]["content"] for row in rows)
    made = train(twelve)
    losses = [point["loss"] for point in made["curve"]]
    assert len(losses) == made["run"]["steps"] > 8
    assert made["held_out"]["loss_after"] < made["held_out"]["loss_before"]
    assert made["recipe"]["incomplete_evidence"] is True
    assert made["prompt_sha256"] == prompt_digest(incomplete_evidence=True)
    assert whole["prompt_sha256"] == prompt_digest()
    assert whole["recipe"]["incomplete_evidence"] is False
