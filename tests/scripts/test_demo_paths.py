"""What the demo of relation paths makes and measures; its training is in ``tests/models``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builders.synthetic.films import Films, write_films
from evaluators.deliberation.options import BASELINES
from safe_stepwise.errors import UserError
from safe_stepwise.methods.path_proposing import TOPIC
from scripts.demo_paths import build_paths_set, evaluate_paths, main


@pytest.mark.parametrize("alone", ["--kb", "--questions"])
def test_a_graph_and_its_questions_are_named_together(alone: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="go together"):
        main([alone, str(tmp_path / "file"), "--output", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_it_measures_questions_of_templates_that_train_has_not(tmp_path: Path) -> None:
    kb, questions = write_films(Films(films=120, questions=240), tmp_path / "films")
    dataset = build_paths_set(kb, questions, tmp_path)
    said = evaluate_paths(kb, questions, dataset, BASELINES, 5, tmp_path / "quality")
    found = json.loads((tmp_path / "quality" / "results.json").read_text())
    runs = {run["name"]: run for run in found["runs"]}
    assert all(name in said for name in BASELINES)
    assert [of["questions"] for of in runs["oracle"]["by_hop"].values()] == [5, 5, 5]
    assert runs["oracle"]["hits_at_1"] == 1
    assert max(runs["majority"]["hits_at_1"], runs["nearest"]["hits_at_1"]) < 1
    train, test = (
        {row["template"] for file in (dataset / "data" / "paths_by_template").glob(f"{split}-*")
         for row in pq.read_table(file).to_pylist()}
        for split in ("train", "test")
    )  # fmt: skip
    put = [json.loads(line) for line in (tmp_path / "quality" / "questions.jsonl").open()]
    assert not train & test
    assert {re.sub(r"\[.*\]", TOPIC, one["question"]) for one in put} <= test
