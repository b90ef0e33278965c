"""The path probe of questions over a graph: a shared one (GrailQA), or each question's own (WebQSP, CWQ)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.errors import UserError
from scripts import build_path_probe
from tests.builders.paths.conftest import lines, rows_in
from tests.builders.paths.oracle import leads
from tests.makers import books

COUNT = "its relation path does not give its answers"
SEVERAL = "no relation path, or several, give its answers best"
NOWHERE = "it has no topic entity: there is nowhere to start from"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    kb, dev, rog = books.written(tmp_path_factory.mktemp("books"))
    return {
        "grailqa": ["--benchmark=grailqa", f"--questions={dev}", f"--kb={kb}"],
        "webqsp": ["--benchmark=webqsp", f"--questions={rog}"],
        "cwq": ["--benchmark=cwq", f"--questions={rog}"],
    }


def build(verified: Path, output: Path, options: list[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    build_path_probe.main([f"--verified={verified}", f"--output={output}", *options])
    return rows_in(output), json.loads((output / "safe-path-probe/statistics/path_probe.json").read_bytes())


@pytest.mark.parametrize("benchmark", ["grailqa", "webqsp", "cwq"])
def test_each_wrong_path_is_wrong_and_each_valid_one_right(
    benchmark: str, files: dict[str, list[str]], synthetic: Path, tmp_path: Path
) -> None:
    rows, record = build(synthetic, tmp_path, files[benchmark])
    questions = {line["id"].removeprefix("WebQTest-"): line for line in books.rog()}
    facts = {*books.triples()}
    kinds = Counter(row["kind"] for row in rows)
    assert {row["benchmark"] for row in rows} == {benchmark}
    for row in rows:
        own = questions[row["question_id"].removeprefix("WebQTest-")]
        right = any(leads(row["told"], facts, topic, {*own["answer"]}) for topic in own["q_entity"])
        assert right == (row["kind"] == "valid"), row
        assert row["answer"] in own["answer"]
        if row["kind"] in ("factual_head", "factual_tail", "reversed"):
            assert row["told"][row["position"] - 1] not in facts, row
    # Every question of one hop or two; those of two entities have annotated paths in GrailQA alone.
    met = sum(len(line["q_entity"]) > 1 for line in questions.values())
    assert kinds["valid"] == 8 + 24 + (met if benchmark == "grailqa" else 0)
    assert min(kinds[kind] for kind in ("factual_head", "misguided_question", "misguided_walk", "reversed")) > 10
    assert min(kinds["hop_dropped"], kinds["incoherent"]) > 5
    # What a part of Freebase lacks may be true.
    assert not kinds["relation_swapped"]
    assert record["refused"]["relation_swapped"].keys() == {"both relations may hold"}


@pytest.mark.parametrize(
    ("benchmark", "left_out"), [("grailqa", {COUNT: 8, NOWHERE: 1}), ("webqsp", {COUNT: 7, SEVERAL: 9, NOWHERE: 1})]
)
def test_what_has_no_sure_path_is_left_out(
    benchmark: str, left_out: dict[str, int], files: dict[str, list[str]], synthetic: Path, tmp_path: Path
) -> None:
    """Numbers in both; in WebQSP also two entities, neither of which gives the answers alone, or both as well."""
    _, record = build(synthetic, tmp_path, files[benchmark])
    assert record["left_out"] == {benchmark: left_out}
    (source,) = record["verified"]
    assert source["license"] == ("cc-by-sa-4.0" if benchmark == "grailqa" else "unknown")
    assert len(source["source"]["files"]) == (2 if benchmark == "grailqa" else 1)


def test_an_entity_without_a_name_is_exchanged_for_no_other(
    files: dict[str, list[str]], synthetic: Path, tmp_path: Path
) -> None:
    rows, _ = build(synthetic, tmp_path, files["webqsp"])
    valid = {row["id"]: row["told"] for row in rows if row["kind"] == "valid"}
    for row in rows:
        if row["kind"] in ("factual_head", "factual_tail"):
            pairs = zip(valid[row["pair_id"]], row["told"], strict=True)
            assert all(old == new for before, after in pairs for old, new in zip(before, after, strict=True)
                       if old.startswith("m."))  # fmt: skip


def test_verified_questions_beside_those_over_a_graph(
    files: dict[str, list[str]], synthetic: Path, tmp_path: Path
) -> None:
    rows, record = build(synthetic, tmp_path, [*files["webqsp"], "--benchmark=synthetic", "--limit=9"])
    assert Counter(row["benchmark"] for row in rows if row["kind"] == "valid") == {"synthetic": 9, "webqsp": 9}
    assert [source["benchmark"] for source in record["verified"]][-1] == "webqsp"


@pytest.mark.parametrize(
    ("benchmark", "options", "reason"),
    [
        ("webqsp", ["--kb=kb.txt"], "webqsp: each row brings its own graph"),
        ("webqsp", ["--benchmark=cwq"], "holds no cwq"),
        ("grailqa", [], "grailqa: its knowledge graph is a file; name it"),
    ],
)
def test_mistakes_are_one_line(
    benchmark: str, options: list[str], reason: str, files: dict[str, list[str]], synthetic: Path, tmp_path: Path
) -> None:
    given = [*files[benchmark][:2], *options]
    with pytest.raises(UserError, match=reason):
        build(synthetic, tmp_path, given)


def test_a_row_that_cannot_be_read_is_counted(synthetic: Path, tmp_path: Path) -> None:
    kb, dev, _ = books.written(tmp_path)
    dev.write_text(json.dumps([*books.grailqa(), {"qid": 9, "question": "what?"}]))
    options = ["--benchmark=grailqa", f"--questions={dev}", f"--kb={kb}"]
    hidden = "its answers or its query are hidden"
    with pytest.raises(UserError, match=rf"grailqa_v1\.0_dev\.json\[\d+\] \(id 9\): {hidden}"):
        build(synthetic, tmp_path / "out", options)
    build(synthetic, tmp_path / "out", [*options, "--on-error=keep"])
    rejects = [json.loads(line) for line in lines(tmp_path / "out" / "rejects.jsonl")]
    assert [row["question_id"] for row in rejects if row["reason"].startswith(hidden)] == ["9"]
