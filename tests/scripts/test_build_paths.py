"""`scripts.build_paths`: what it makes, from what, and that nothing changes a byte of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from builders.paths.weak import KINDS
from safe_stepwise.errors import UserError
from safe_stepwise.methods.path_proposing import propose_request, read_path
from safe_stepwise.store.names import paths_set
from scripts import build_paths
from tests.makers import films


def command(kb: Path, asked: Path, output: Path, *more: str) -> Path:
    build_paths.main(
        ["--benchmark", "metaqa", "--kb", str(kb), "--input", str(asked), "--split", "train",
         "--output", str(output), "--workers", "1", *more]
    )  # fmt: skip
    return output / paths_set("metaqa")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paths")
    return command(*films.written(folder, 450), folder / "out")


def rows(dataset: Path, config: str, split: str) -> list[dict[str, Any]]:
    return load_dataset(str(dataset), config, split=split).to_list()


def record(dataset: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((dataset / "statistics" / "paths.json").read_text())
    return found


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_the_weak_labels_find_what_was_asked(made: Path) -> None:
    found = [row for split in ("train", "test") for row in rows(made, "paths", split)]
    meant = {words.format("[topic]").replace("[[topic]]", "[topic]"): list(path)
             for words, path in films.ASKED.items()}  # fmt: skip
    gold = [row for row in found if row["gold"]]
    assert len({row["question_id"] for row in found}) == len(gold) == 450
    assert all(row["path"] == meant[row["template"]] for row in gold)
    assert all(row["f1"] == 1 for row in gold)
    assert sum(row["best"] for row in gold) / len(gold) > 0.98
    assert all(row["shortest"] and not row["best"] for row in found if row["spurious"])
    audit = record(made)["hops"]
    for hops in ("1", "2", "3"):
        of = [row for row in found if row["hops"] == int(hops)]
        best, right = [r for r in of if r["best"]], [r for r in of if r["gold"]]
        said = audit[hops]["rules"]["best"]
        assert said["precision"] == sum(r["gold"] for r in best) / len(best)
        assert said["recall"] == sum(r["best"] for r in right) / len(right)


def test_a_row_is_what_the_loop_would_ask(made: Path) -> None:
    known = {(r["question_id"], tuple(r["path"])): r for r in rows(made, "paths", "train")}
    for row in rows(made, "prompt_completion", "train"):
        path = read_path(row["completion"][0]["content"])
        about = known[row["question_id"], path]
        assert about["best"]
        asked = propose_request(about["question"], about["topic"]).messages
        assert row["prompt"] == [{"role": t.role, "content": t.content} for t in asked]


def test_neither_questions_nor_templates_are_on_both_sides(made: Path) -> None:
    for config, key in (("paths", "question"), ("paths_by_template", "template")):
        one, other = ({row[key] for row in rows(made, config, s)} for s in ("train", "test"))
        assert one
        assert other
        assert not one & other
    for config in ("prompt_completion", "kto"):
        for way in ("", "_by_template"):
            sides = [
                {(row["question_id"], config) for row in rows(made, config + way, split)}
                for split in ("train", "test")
            ]
            assert not sides[0] & sides[1]


def test_rows_of_kto_say_what_is_wrong_and_have_strangers_for_neighbours(made: Path) -> None:
    found = rows(made, "kto", "train")
    kinds = [KINDS[row["kind"]] for row in found]
    assert {"positive", "truncation", "spurious", "flipped", "wrong_relation"} == set(kinds)
    assert [row["label"] for row in found] == [kind == "positive" for kind in kinds]
    asked = [row["question_id"] for row in found]
    assert not any(a == b for a, b in pairwise(asked))
    right = {(r["question_id"], r["completion"][0]["content"]) for r in found if r["label"]}
    wrong = {(r["question_id"], r["completion"][0]["content"]) for r in found if not r["label"]}
    assert not right & wrong


@pytest.mark.parametrize(
    "more", [["--workers", "2"], ["--engine", "datatrove-local", "--workers", "2", "--ranks", "3"]]
)
def test_same_bytes_for_any_engine_and_workers(more: Sequence[str], made: Path, tmp_path: Path) -> None:
    folder = made.parents[1]
    again = command(folder / "kb.txt", folder / "questions.jsonl", tmp_path, *more)
    assert contents(again) == contents(made)


def test_rows_that_cannot_be_read_stop_the_build_or_are_kept(tmp_path: Path) -> None:
    kb, asked = films.written(tmp_path, 30)
    lines = asked.read_text().splitlines()
    asked.write_text("\n".join([*lines, '{"id": "bad", "question": "no topic"}', lines[0]]) + "\n")
    with pytest.raises(UserError, match=r"questions.jsonl:31 \(id bad\): the question has no"):
        command(kb, asked, tmp_path / "out")
    dataset = command(kb, asked, tmp_path / "out", "--on-error", "keep")
    left = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").open()]
    assert [row["reason"].partition(" ")[0] for row in left] == ["the", "duplicate"]
    about = record(dataset)
    assert (about["rows"], about["rejected"]) == (32, 2)
    assert sum(audit["topics"] for audit in about["hops"].values()) == 30


def test_questions_that_bring_their_graph_and_have_several_topics(tmp_path: Path) -> None:
    row = {
        "id": "q1", "question": "what did ana and edo write", "answer": ["Oru"],
        "q_entity": ["Ana", "Edo"], "a_entity": ["Oru"],
        "graph": [["Ana", "wrote", "Oru"], ["Oru", "author", "Edo"], ["Edo", "in", "Oru"],
                  ["Ana", "knows", "Edo"]],
    }  # fmt: skip
    lost = {**row, "id": "q2", "answer": ["Vel"]}
    file = tmp_path / "cwq.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in (row, lost)))
    build_paths.main(
        ["--benchmark", "cwq", "--input", str(file), "--split", "train", "--workers", "1",
         "--output", str(tmp_path / "out"), "--test-share", "0.01"]
    )  # fmt: skip
    dataset = tmp_path / "out" / paths_set("cwq")
    found = rows(dataset, "kto", "train")
    kinds = {KINDS[r["kind"]]: r["completion"][0]["content"] for r in found}
    assert {"positive", "swap", "deletion", "flipped"} <= set(kinds)
    assert kinds["deletion"] == '{"path": []}'
    audit = record(dataset)["hops"]["0"]
    assert (audit["topics"], audit["no_path"], audit["gold"]) == (4, 2, 0)
    assert "unknown" in (dataset / "README.md").read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"--kb": None}, "its knowledge graph is a file; name it"),
        ({"--kb": "missing.txt"}, "missing.txt: can't be read"),
        ({"--benchmark": "metaq"}, "did you mean metaqa"),
        ({"--test-share": "1"}, "a share lies between 0 and 1"),
        ({"--split": "half"}, "no split 'half'"),
        ({"--input": "missing.jsonl"}, "no such file"),
    ],
)
def test_a_users_mistake_is_one_line(change: dict[str, str | None], said: str, tmp_path: Path) -> None:
    kb, asked = films.written(tmp_path, 3)
    options: dict[str, str | None] = {
        "--benchmark": "metaqa", "--kb": str(kb), "--input": str(asked), "--split": "train",
        "--output": str(tmp_path / "out"), **change,
    }  # fmt: skip
    given = [part for name, value in options.items() if value for part in (name, value)]
    with pytest.raises(UserError, match=said):
        build_paths.main(given)


def test_a_graph_whose_relations_look_backward_is_refused(tmp_path: Path) -> None:
    kb, asked = films.written(tmp_path, 3)
    kb.write_text("a|~by|b\n")
    with pytest.raises(UserError, match=r"kb.txt: the relation '~by' begins with"):
        command(kb, asked, tmp_path / "out")
