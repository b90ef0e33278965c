from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.composition import Composition
from safe_stepwise.errors import UserError
from scripts import regenerate
from scripts.manifest import read_manifest
from scripts.regenerate import LOCK
from tests.makers.plausible import PlausibleMaker

RELEASES = Path(__file__).parents[2] / "scripts" / "releases"
MANIFEST = """\
version: v0.1.0
seed: 4
evaluation_size: 3
builds:
  - benchmark: synthetic
    input: rows=40,seed=1,noise=0.1
    split: train
  - benchmark: synthetic
    input: rows=20,seed=2,noise=0.1
    split: validation
verifier_steps:
  rows: 60
  questions: 20
  ideal: 0.5
  refined: 0
  per_benchmark:
    synthetic: {rows: 60, questions: 20}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(MANIFEST, encoding="utf-8")
    return file


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_steps_are_built_after_the_builds_and_locked(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regenerate, "known_maker", lambda *_: PlausibleMaker())
    said = regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    assert "safe-verifier-steps" in said
    lock = json.loads((tmp_path / "out" / LOCK).read_text(encoding="utf-8"))
    counts = lock["counts"]["verifier-steps"]
    assert (counts["rows"], counts["questions"]) == (60, 20)
    name = "datasets/safe-verifier-steps/statistics/verifier_steps.json"
    assert name in lock["files"]
    assert not (tmp_path / "out" / "datasets" / ".work").exists()
    assert "complete and unchanged" in regenerate.regenerate(manifest, tmp_path / "out")
    regenerate.regenerate(manifest, tmp_path / "again", workers=2)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_steps_that_the_manifest_does_not_name(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regenerate, "known_maker", lambda *_: PlausibleMaker())
    regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    (tmp_path / "out" / LOCK).unlink()
    manifest.write_text(MANIFEST.partition("verifier_steps:")[0], encoding="utf-8")
    with pytest.raises(UserError, match="holds safe-verifier-steps"):
        regenerate.regenerate(manifest, tmp_path / "out", workers=1)


def test_the_papers_composition_is_a_manifest() -> None:
    manifest = read_manifest(RELEASES / "paper.yaml")
    assert manifest.version == "v1.0.0"
    assert manifest.evaluation_size == 1_000
    assert len(manifest.builds) == 6
    assert manifest.verifier_steps is not None
    assert manifest.verifier_steps.composition == Composition(
        rows=11_515,
        questions=5_060,
        ideal=0.339,
        refined=848,
        per_benchmark={
            "2wikimultihopqa": (5_476, 2_292),
            "hotpotqa": (3_063, 1_330),
            "musique": (2_976, 1_438),
        },
    )


def test_the_demo_has_steps() -> None:
    steps = read_manifest(RELEASES / "demo.yaml").verifier_steps
    assert steps is not None
    assert steps.teacher == "annotations"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  rows: 60\n", "", r"verifier_steps\.rows: is missing"),
        ("  rows: 60\n", "  row: 60\n", r"key verifier_steps\.row: .*did you mean rows"),
        ("ideal: 0.5", "ideal: half", r"verifier_steps\.ideal: has to be of type float"),
        ("ideal: 0.5", "ideal: 5", "between 0 and 1"),
        ("questions: 20\n  ideal", "questions: 19\n  ideal", "per_benchmark sums to"),
        ("    synthetic: {", "    musique: {", r"per_benchmark 'musique' is not known"),
        (
            "{rows: 60, questions: 20}",
            "{rows: 60}",
            r"per_benchmark\.synthetic\.questions: is miss",
        ),
        ("  refined: 0", "  teacher: gpt", r"verifier_steps\.teacher"),
        ("  refined: 0", "  pool: 0", "pool have to be 1 or more"),
        ("  refined: 0", "  test_share: 1.0", r"test_share: a share lies between"),
    ],
)
def test_a_bad_entry_names_file_and_key(manifest: Path, old: str, new: str, expected: str) -> None:
    assert old in MANIFEST
    manifest.write_text(MANIFEST.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        read_manifest(manifest)
    assert "small.yaml" in str(caught.value)
