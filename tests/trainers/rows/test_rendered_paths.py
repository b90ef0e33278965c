"""Right paths by Equation 1, and joint replies: rendered from a set that `build_paths` makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from safe_stepwise.methods.path_proposing import joint_request, propose_request, read_joint, read_path
from safe_stepwise.records import Candidate
from scripts import build_paths
from tests.makers import films
from trainers.config import PathFilters
from trainers.rows.base import Row
from trainers.rows.paths import PathRows

TWO = {
    "id": "q1", "question": "what did ana and edo write", "answer": ["Oru"], "q_entity": ["Ana", "Edo", "Pell"],
    "graph": [["Ana", "wrote", "Oru"], ["Oru", "author", "Edo"], ["Edo", "in", "Oru"], ["Oru", "by", "Vel"],
              ["Vel", "knows", "Ana"], ["Pell", "is", "old"]],
}  # fmt: skip
NEGATIVES = ("swap", "deletion")  # no path can be truncated


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cwq")
    (folder / "rows.jsonl").write_text(json.dumps(TWO) + "\n")
    options = ["--benchmark", "cwq", "--input", str(folder / "rows.jsonl"), "--split", "train", "--workers", "1"]
    build_paths.main([*options, "--output", str(folder), "--test-share", "0.01"])
    return folder


@pytest.fixture(scope="module")
def made_of_films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    kb, questions = films.written(folder, 60)
    options = ["--benchmark", "metaqa", "--kb", str(kb), "--input", str(questions), "--split", "train"]
    build_paths.main([*options, "--workers", "1", "--output", str(folder)])
    return folder


def opened(folder: Path, kind: PathRows, **filters: Any) -> list[Row]:
    return kind.open(str(folder), "train", PathFilters(labels=kind.labels, **filters))[1]  # type: ignore[arg-type]


def reply(row: Row) -> str:
    text: str = row["completion"][0]["content"]
    return text


@pytest.mark.parametrize("splits", ["question", "template"])
def test_equation_1_has_every_shortest_path_and_filtered_the_best(splits: str, made_of_films: Path) -> None:
    suffix = "_by_template" if splits == "template" else ""
    file = made_of_films / f"dp-metaqa-paths/data/paths{suffix}/train-00000-of-00001.parquet"
    labelled = pq.read_table(file).to_pylist()
    rows = opened(made_of_films, PathRows("sft", splits, "eq1"))
    assert sorted((row["question_id"], read_path(reply(row))) for row in rows) == sorted(
        (row["question_id"], tuple(row["path"])) for row in labelled if row["shortest"]
    )
    asked = {
        row["question_id"]: propose_request(row["question"], row["topic"]).messages[1].content for row in labelled
    }
    assert all(row["prompt"][1]["content"] == asked[row["question_id"]] for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)
    kind = PathRows("sft", splits, "eq1")
    assert kind.questions(str(made_of_films), "train") == {row["id"]: row["question_id"] for row in rows}


def test_no_path_is_both_right_and_wrong_by_equation_1(made_of_films: Path) -> None:
    rows = opened(made_of_films, PathRows("kto", "question", "eq1"))
    right = {(row["question_id"], reply(row)) for row in rows if row["label"]}
    wrong = {(row["question_id"], reply(row)) for row in rows if not row["label"]}
    assert right
    assert wrong
    assert not right & wrong
    assert "spurious" not in {row["kind"] for row in rows}  # which are shortest paths


def test_swaps_and_deletions_in_either_form(folder: Path) -> None:
    single = opened(folder, PathRows("kto", "question", "eq1"), negatives=NEGATIVES)
    found = {(row["kind"], row["prompt"][1]["content"].splitlines()[1], reply(row)) for row in single}
    assert {kind for kind, _, _ in found} == {"positive", "swap", "deletion"}
    assert ("deletion", 'Topic: "Ana"', '{"path": []}') in found
    joint = opened(folder, PathRows("kto", "question", "eq1", joint=True), negatives=NEGATIVES)
    request = joint_request(TWO["question"], TWO["q_entity"])  # type: ignore[arg-type]
    assert all(row["prompt"][1]["content"] == request.messages[1].content for row in joint)
    ana, edo = Candidate("Ana", ("wrote",)), [Candidate("Edo", (way,)) for way in ("in", "~author")]
    (right,) = [read_joint(reply(row)) for row in joint if row["label"]]
    assert sorted(right, key=str) == [ana, *edo]
    deleted = [read_joint(reply(row)) for row in joint if row["kind"] == "deletion"]
    assert sorted((sorted(paths, key=str) for paths in deleted), key=len) == [[ana], edo]
    swapped = [{*read_joint(reply(row))} for row in joint if row["kind"] == "swap"]
    assert {ana, Candidate("Edo", ("wrote",))} in swapped
    assert {Candidate("Ana", ("in",)), *edo} in swapped


def test_joint_rows_are_one_a_question(folder: Path, made_of_films: Path) -> None:
    for place in (folder, made_of_films):
        rows = opened(place, PathRows("sft", "question", "filtered", joint=True))
        assert len({row["question_id"] for row in rows}) == len(rows) > 0
