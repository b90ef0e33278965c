"""Published lists as a teacher, from the command line and from a release's manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.verified.lookup import labelled
from releases.making import dry_run
from releases.stage import Speed
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import sha256_of
from scripts import build_verified, build_verifier_steps, regenerate
from tests.makers.manifests import release_of

INPUT = "rows=12,seed=8,noise=0.5"


def arguments(output: Path, teacher: str, *more: str) -> list[str]:
    named = ["--benchmark", "synthetic", "--input", INPUT, "--split", "train"]
    return [*named, "--teacher", teacher, "--output", str(output), *more]


def manifest_of(folder: Path, builds: list[dict[str, Any]], **more: Any) -> Path:
    file = folder / "release.yaml"
    content = {"version": "v0.1.0", "seed": 4, "builds": builds, **more}
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def record(output: Path, name: str) -> dict[str, Any]:
    file = output / "safe-verified-multihop" / "statistics" / f"{name}.json"
    found: dict[str, Any] = json.loads(file.read_bytes())
    return found


def test_the_command_says_what_did_not_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a_wrong.txt"
    file.write_text("Where is Mu?\nWhere is Atlantis?\n", encoding="utf-8")
    output = tmp_path / "out"
    with pytest.raises(UserError, match=r"a_wrong.txt: names no row of .* nothing was published"):
        build_verified.main(arguments(output, f"published:{file}"))
    assert not (output / "safe-verified-multihop").exists()
    build_verified.main(arguments(output, f"published:{file}", "--limit", "12"))
    said = capsys.readouterr().out
    assert f"0 entries have a row here; 2 have none, see {output / 'unmatched.jsonl'}" in said
    assert "no row is named, and all count as sound: are these lists of other questions?" in said
    assert ["verified", "12"] in [line.split() for line in said.splitlines()]
    build_verified.main(arguments(output, f"published:{file}", "--estimate"))
    assert "the published:a_wrong.txt teacher asks no model" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("teacher", "more", "says"),
    [
        ("published:{folder}/none.txt", [], "--teacher: {folder}/none.txt: cannot be read"),
        ("published:{folder}", [], "--teacher: {folder}: cannot be read"),
        ("published:", [], "--teacher 'published:': name the lists"),
        ("published:{folder}/a.txt", ["--min-confidence", "0.5"], "labels have no confidence"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, teacher: str, more: list[str], says: str) -> None:
    (tmp_path / "a.txt").write_text("Where is Mu?\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        build_verified.main(arguments(tmp_path / "out", teacher.format(folder=tmp_path), *more))
    assert says.format(folder=tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lists_write_no_steps(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Where is Mu?\n", encoding="utf-8")
    spec = f"published:{tmp_path}/a.txt"
    options = ["--verified", str(tmp_path), "--rows", "9", "--output", str(tmp_path / "out")]
    with pytest.raises(UserError, match="lists label questions and write no steps"):
        build_verifier_steps.main([*options, "--teacher", spec])
    build = {"benchmark": "synthetic", "input": INPUT, "split": "train"}
    steps = {"rows": 9, "teacher": spec}
    manifest = manifest_of(tmp_path, [build], verifier_steps=steps)
    with pytest.raises(UserError, match=r"verifier_steps\.teacher 'published:.* write no steps"):
        dry_run(release_of(manifest), Speed(1, 1, 1))


def test_a_manifest_names_lists_beside_itself(tmp_path: Path) -> None:
    build = {"benchmark": "synthetic", "input": INPUT, "split": "train", "limit": 12}
    manifest = manifest_of(tmp_path, [{**build, "teacher": "published:lists/a.txt"}])
    with pytest.raises(UserError, match=r"builds\[0\]\.teacher: .*/lists/a\.txt: cannot be read"):
        regenerate.regenerate(manifest, tmp_path / "out")
    (tmp_path / "lists").mkdir()
    file = tmp_path / "lists" / "a.txt"
    file.write_text("Where is Mu?\n", encoding="utf-8")
    said = dry_run(release_of(manifest), Speed(1, 1, 1))
    (row,) = (line for line in said.splitlines() if line.startswith("verify synthetic train "))
    assert row.split()[3:5] == ["12", "0"]
    assert not (tmp_path / "out").exists()
    regenerate.regenerate(manifest, tmp_path / "out")
    made = record(tmp_path / "out" / "datasets", "synthetic-train")
    assert made["teacher"] == "published:a.txt"
    assert made["listed"]["lists"][0]["digest"] == sha256_of(file)
    lock = json.loads((tmp_path / "out" / "release.lock.json").read_bytes())
    assert "datasets/unmatched.jsonl" in lock["files"]
    assert "complete and unchanged" in regenerate.regenerate(manifest, tmp_path / "out")


def test_a_release_of_real_rows_by_their_own_labels(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the lists were made of agrees with all of it, and every row is accounted for."""
    labels = real_data / "musique_published_labels.jsonl"
    rows = [json.loads(line) for line in labels.open(encoding="utf-8")]
    noise = [row["question"] for row in rows if row["unverifiable"]]
    half = len(noise) // 2  # one list has bare lines, the other strings of JSON
    (tmp_path / "a_wrong.txt").write_text("\n".join(noise[:half]), encoding="utf-8")
    (tmp_path / "b_wrong.txt").write_text("\n".join(map(json.dumps, noise[half:])), encoding="utf-8")
    entries = [
        {
            "benchmark": "musique",
            "input": str(real_data / f"musique_{part}.jsonl"),
            "split": split,
            "teacher": "published:a_wrong.txt,b_wrong.txt",
            "published": str(labels),
        }
        for part, split in (("train", "train"), ("dev", "validation"))
    ]
    regenerate.regenerate(manifest_of(tmp_path, entries), tmp_path / "out")
    parts = [record(tmp_path / "out" / "datasets", f"musique-{split}") for split in ("train", "validation")]
    agreed = [part["known"]["agreement"] for part in parts]
    assert [(a["precision"], a["recall"], a["f1"]) for a in agreed] == [(1.0, 1.0, 1.0)] * 2
    assert sum(a["rows"] for a in agreed) == sum(part["rows"] for part in parts) == len(rows)
    assert sum(part["listed"]["rows"] for part in parts) == len(noise)
    assert [part["rejected"] + part["unparsed"] for part in parts] == [0, 0]
    found = {q.id: label for _, those in labelled(tmp_path / "out") for q, label in those}
    assert {row["id"]: row["unverifiable"] for row in rows} == {
        id_: label.unverifiable for id_, label in found.items()
    }
