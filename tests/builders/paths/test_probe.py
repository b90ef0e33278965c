"""The path probe of made-up and of real rows, against an oracle that shares no code with it."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from safe_stepwise.errors import UserError
from safe_stepwise.store.names import CORRUPTIONS
from scripts import build_path_probe
from tests.builders.paths.conftest import lines, rows_in
from tests.builders.paths.oracle import is_right, leads

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def built(synthetic: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("probe")
    build_path_probe.main(["--verified", str(synthetic), "--output", str(output)])
    return output


def shape(rows: Rows) -> None:
    """What holds of any probe."""
    valid = {row["id"]: row for row in rows if row["kind"] == "valid"}
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        pair = valid[row["pair_id"]]
        same = ("benchmark", "question_id", "question", "answer", "split")
        assert all(row[name] == pair[name] for name in same)
        assert (row["label"] == 1) == (row["kind"] == "valid") == (row["position"] is None)
        assert row["told"] != pair["told"] or row is pair
        if row["position"] is not None:
            assert 1 <= row["position"] <= len(pair["told"]) + 1
    splits = defaultdict(set)
    for row in rows:
        splits[row["benchmark"], row["question"].casefold()].add(row["split"])
    assert {len(of) for of in splits.values()} == {1}
    kinds = Counter((row["pair_id"], row["kind"]) for row in rows)
    assert set(kinds.values()) == {1}


def test_a_probe_of_made_up_questions(built: Path) -> None:
    rows = rows_in(built)
    shape(rows)
    assert {row["kind"] for row in rows} == set(CORRUPTIONS)
    assert {row["split"] for row in rows} == {"train", "validation", "test"}
    golds = {row["question_id"]: row["told"] for row in rows if row["kind"] == "valid"}
    for row in rows:
        right = is_right(row["question"], row["told"], [golds[row["question_id"]]])
        assert right == (row["kind"] == "valid"), row


def test_every_negative_of_real_rows_is_refuted(real: Path, real_data: Path) -> None:
    rows = rows_in(real)
    shape(rows)
    names = {"2wikimultihopqa", "musique", "hotpotqa", "metaqa"}
    assert {row["benchmark"] for row in rows} == names
    golds = raw_paths(real_data)
    for row in rows:
        if row["benchmark"] == "musique" and row["kind"] == "valid":
            golds[row["question_id"]] = [row["told"]]
    text = [row for row in rows if row["benchmark"] != "metaqa"]
    for row in text:
        right = is_right(row["question"], row["told"], golds[row["question_id"]])
        assert right == (row["kind"] == "valid"), row
        assert right == (row["told"] in golds[row["question_id"]]), row
    assert len(text) > 600


def test_every_negative_of_metaqa_is_refuted(real: Path, real_data: Path, film_questions: Path) -> None:
    raw = gzip.decompress((real_data / "metaqa_kb.txt.gz").read_bytes()).decode()
    facts = {tuple(line.split("|")) for line in raw.splitlines()}
    asked = {row["id"]: row for row in map(json.loads, lines(film_questions))}
    rows = [row for row in rows_in(real) if row["benchmark"] == "metaqa"]
    assert len(rows) > 500
    for row in rows:
        own = asked[row["question_id"]]
        topic = own["question"].partition("[")[2].partition("]")[0]
        answers = set(own["answers"])
        is_long = len(row["told"]) == own["hop"]
        right = is_long and leads(row["told"], facts, topic, answers)
        assert right == (row["kind"] == "valid"), row
        assert row["answer"] in answers


def raw_paths(folder: Path) -> dict[str, list[tuple[tuple[str, str, str], ...]]]:
    """The gold paths that the files give, by question."""
    golds = {}
    for line in lines(folder / "2wikimultihopqa_dev.jsonl"):
        row = json.loads(line)
        golds[row["_id"]] = [tuple(dict.fromkeys(map(tuple, row["evidences"])))]
    for line in lines(folder / "r4c_derivations.jsonl"):
        row = json.loads(line)
        told = [tuple(dict.fromkeys(tuple(t) for _, _, t in one)) for one in row["derivations"]]
        golds[row["id"]] = sorted(told, key=len)
    return golds


def test_the_same_bytes_twice(built: Path, synthetic: Path, tmp_path: Path) -> None:
    build_path_probe.main(["--verified", str(synthetic), "--output", str(tmp_path)])
    assert contents(tmp_path) == contents(built)
    build_path_probe.main(["--verified", str(synthetic), "--output", str(tmp_path), "--seed", "1"])
    assert contents(tmp_path) != contents(built)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


def test_it_loads_with_its_prompts(built: Path) -> None:
    folder = str(built / "safe-path-probe")
    rows = load_dataset(folder, split="test")
    asked = load_dataset(folder, "prompt_completion", split="test")
    assert rows["id"] == asked["id"]
    assert rows.features["label"].names == ["invalid", "valid"]
    for row, prompt in zip(rows, asked, strict=True):
        said = json.loads(prompt["completion"][0]["content"])["verdict"]
        assert said == ("YES" if row["label"] else "NO")
        assert json.dumps(row["question"], ensure_ascii=False) in prompt["prompt"][1]["content"]


def test_what_is_refused_is_counted(built: Path) -> None:
    record = json.loads((built / "safe-path-probe/statistics/path_probe.json").read_bytes())
    rejects = [json.loads(line) for line in lines(built / "rejects.jsonl")]
    told = Counter((row["corruption"], row["reason"]) for row in rejects if row["corruption"])
    counted = {(k, r): n for k, of in record["refused"].items() for r, n in of.items()}
    assert told == counted
    left = sum(n for of in record["left_out"].values() for n in of.values())
    assert left == sum(not row["corruption"] for row in rejects)
    assert record["rows"] == len(rows_in(built))
    made = record["rows"] - record["questions"] + sum(told.values())
    assert made == record["questions"] * (len(CORRUPTIONS) - 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kb", "kb.txt"], "--kb and --questions go together"),
        (["--benchmark", "squad"], "holds no squad"),
        (["--derivations", "none.jsonl"], "none.jsonl: not found"),
        (["--version", "v9.9.9"], "is version v0.1.0"),
    ],
)
def test_mistakes_are_one_line(synthetic: Path, tmp_path: Path, options: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        build_path_probe.main(["--verified", str(synthetic), "--output", str(tmp_path), *options])


def test_a_knowledge_base_that_is_none(synthetic: Path, tmp_path: Path) -> None:
    (tmp_path / "kb.txt").write_text("a|b|c\nno triple\n")
    (tmp_path / "q.jsonl").write_text('{"id": "1"}\n')
    files = ["--kb", str(tmp_path / "kb.txt"), "--questions", str(tmp_path / "q.jsonl")]
    where = ["--verified", str(synthetic), "--output", str(tmp_path / "out")]
    with pytest.raises(UserError, match=r"kb\.txt, line 2: is no triple \('no triple'\); write head"):
        build_path_probe.main([*where, *files])
    (tmp_path / "kb.txt").write_text("a|b|c\n")
    with pytest.raises(UserError, match=r"q\.jsonl:1 \(id 1\): missing field 'question'; mend the row"):
        build_path_probe.main([*where, *files])
