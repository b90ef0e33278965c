"""Rows of RoG's shape, with two topics, a blank tail and no topic, are built, learnt and answered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts import build_paths, evaluate_deliberation
from trainers.config import PathFilters, PathRecipe
from trainers.run import train

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")
pytestmark = pytest.mark.usefixtures("one_thread")
TWO: dict[str, Any] = {
    "id": "two", "question": "what did Ana and Edo write", "answer": ["Oru"], "a_entity": ["Oru"],
    "q_entity": ["Ana", "Edo"],
    "graph": [["Ana", "wrote", "Oru"], ["Oru", "author", "Edo"], ["Ana", "knows", "Edo"]],
}  # fmt: skip
BLANK = {
    "id": "blank", "question": "where is who made Vel from", "answer": ["Tesk"], "a_entity": ["Tesk"],
    "q_entity": ["Vel"],
    "graph": [["Vel", "made_by", "Pell"], ["Vel", "has_no_value", ""], ["Pell", "from", "Tesk"]],
}  # fmt: skip
NONE = {**TWO, "id": "none", "question": "who is it", "q_entity": []}


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rog")
    build_paths.main(
        ["--benchmark", "webqsp", "--input", str(written(folder, TWO, BLANK, NONE)), "--split", "train",
         "--workers", "1", "--output", str(folder / "out"), "--on-error", "keep", "--test-share", "0.01"]
    )  # fmt: skip
    return folder


def recipe(base: Path, made: Path, output: Path) -> PathRecipe:
    return PathRecipe(
        base_model=str(base),
        dataset=str(made / "out"),
        output=output,
        quantization="none",
        dtype="float32",
        lora_rank=2,
        lora_alpha=4,
        lora_dropout=0.0,
        effective_batch=2,
        device_batch=2,
        batching="random",
    )


def test_a_blank_tail_is_left_out_and_a_row_without_a_topic_kept_apart(made: Path) -> None:
    record = json.loads((made / "out" / "dp-webqsp-paths" / "statistics" / "paths.json").read_text())
    assert (record["rows"], record["rejected"], record["triples_left_out"]) == (3, 1, 1)
    assert record["hops"]["0"]["kto"]["deletion"] == 2
    (reject,) = (made / "out" / "rejects.jsonl").read_text().splitlines()
    assert "no topic" in json.loads(reject)["reason"]


@pytest.mark.parametrize(("labels", "paths"), [("filtered", "single"), ("eq1", "single"), ("eq1", "joint")])
def test_five_steps_of_each_are_learnt(labels: Any, paths: Any, base: Path, made: Path, tmp_path: Path) -> None:
    filters = PathFilters(labels=labels)
    learning = replace(recipe(base, made, tmp_path / "sft"), filters=filters, paths=paths)
    rows = 2 if paths == "joint" else 3
    assert train(replace(learning, epochs=10 / rows))["run"]["steps"] == 5
    filters = PathFilters(labels=labels, negatives=("truncation", "swap", "deletion"))
    preferring = replace(learning, method="kto", start=str(tmp_path / "sft"), output=tmp_path / "kto", filters=filters)
    # Two deletions, two swaps, one truncation; the right ones.
    assert train(replace(preferring, epochs=10 / (rows + 5)))["dataset"]["undesirable_rows"] == 5


def test_what_can_be_answered_is_and_the_rest_has_a_reason(base: Path, made: Path, tmp_path: Path) -> None:
    bad = {**TWO, "id": None}
    file = written(tmp_path, TWO, BLANK, NONE, bad)
    evaluate_deliberation.main(
        ["--benchmark", "webqsp", "--questions", str(file), "--output", str(tmp_path / "out"), "--on-error", "keep",
         "--paths", f"transformers:{base}", "--paths", "oracle", "--cache", str(tmp_path / "replies.sqlite")]
    )  # fmt: skip
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (results["questions"], results["failed"]) == (3, 0)
    assert results["settings"]["max_hops"] == 2
    assert (results["settings"]["rejected"], results["settings"]["triples_left_out"]) == (1, 1)
    random, oracle = results["runs"]
    assert random["paths"]["executable"] == 0.75  # all three, but for the question without a topic
    assert oracle["hits_at_1"] == pytest.approx(2 / 3)
    (reject,) = (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()
    assert "'id'" in json.loads(reject)["reason"]
    lines = map(json.loads, (tmp_path / "out" / "trajectories.jsonl").read_text().splitlines())
    for line in (line for line in lines if line["question_id"] == "none"):
        (attempt,) = line["trajectory"]["attempts"]
        assert "no topic" in attempt["read"]["reason"]
        assert line["trajectory"]["stop_reason"] == "no_paths"
