"""The two measuring commands, on made-up and on real questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.teachers.annotations import AnnotationsTeacher
from cards.datasets import CARDS
from safe_stepwise.errors import UserError
from scripts import compare_derivations, measure_checker
from studies.derivations import build_coverage_rows


def test_the_checker_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = Build("synthetic", "rows=200,seed=4,noise=0.1", "train", AnnotationsTeacher, output=tmp_path)
    build(plan, CARDS)
    measure_checker.main(["--verified", str(tmp_path)])
    said = capsys.readouterr().out
    assert "Premature Attribution" in said
    assert "called wrong: 0" in said


def test_a_folder_without_a_build_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give the --output of build_verified"):
        measure_checker.main(["--verified", str(tmp_path)])


@pytest.mark.parametrize("content", [None, "Overthinking: 3", "{"])
def test_wordings_that_are_none(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "words.yaml"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"words\.yaml: no wordings"):
        measure_checker.main(["--verified", str(tmp_path), "--wordings", str(file)])


def test_derivations_of_real_questions(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = build_coverage_rows(real_data)
    assert rows[0][:2] == ("all", 389)
    _, number, passages, triples, _ = rows[2]
    assert int(str(number)) >= 370
    assert float(str(passages)) >= 0.99
    assert float(str(triples)) >= 0.9


def test_a_row_with_too_many_gold_passages_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = [[f"Aa Bb{n}", ["Aa Bb0 was born in Oru."]] for n in range(11)]
    row = {"_id": "x", "question": "Where was Aa Bb0 born?", "answer": "Oru", "type": "bridge"}
    row |= {"supporting_facts": [[title, 0] for title, _ in pages], "context": pages}
    (tmp_path / "hotpotqa_train.jsonl").write_text(json.dumps(row))
    (tmp_path / "hotpotqa_dev.jsonl").write_text(json.dumps({**row, "_id": "y"}))
    derivation = {"id": "x", "derivations": [[["Aa Bb0", 0, ["Aa Bb0", "born in", "Oru"]]]]}
    (tmp_path / "r4c_derivations.jsonl").write_text(json.dumps(derivation))
    compare_derivations.main(["--data", str(tmp_path)])
    said = capsys.readouterr().out
    assert said.startswith("no ideal trajectory: x: no plan: 11 gold passages, at most 10")


@pytest.mark.parametrize("content", [None, "{", '{"id": 1}\n', '{"id": "a", "derivations": [[1]]}\n'])
def test_no_derivations(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "r4c_derivations.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"r4c_derivations\.jsonl"):
        compare_derivations.main(["--data", str(tmp_path)])
