"""What a release has beside its datasets, without training (tests/models trains)."""

from __future__ import annotations

import filecmp
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from releases.stage import StageResult
from releases.stages.space import CHECKOUT
from releases.stages.training import AdapterStage
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import regenerate
from tests.makers.manifests import manifest_of

MANIFEST = """
version: v0.2.0
seed: 4
evaluation_size: 30
builds:
  - {benchmark: synthetic, input: "rows=60,seed=5", split: train}
  - {benchmark: synthetic, input: "rows=60,seed=6", split: validation}
verifier_steps: {rows: 40, ideal: 0.5, refined: 0}
adapter: {recipe: smollm2-cpu}
evaluation: {generator: "symbolic:error_rate=0.3", verifier: symbolic, judge: symbolic, limit: 8}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(MANIFEST, encoding="utf-8")
    return file


def made(manifest: Path, output: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    cache = output.parent / "replies.sqlite"
    said = regenerate.regenerate(manifest, output, cache=cache, workers=1, **options)
    return said, json.loads((output / LOCK).read_text(encoding="utf-8"))


def test_a_release_has_its_space_its_report_and_an_overview(manifest: Path, tmp_path: Path) -> None:
    said, lock = made(manifest, tmp_path / "out", skip_training=True)
    folder, space = CHECKOUT / "evaluators/safe_stepwise", tmp_path / "out" / "space"
    same = filecmp.dircmp(folder, space, ignore=["__pycache__"])
    assert not same.left_only + same.diff_files
    package = ["LICENSE", "pyproject.toml", "requirements.txt", "safe_stepwise", "setup.py"]
    assert sorted(same.right_only) == [*package, "traces"]
    assert "adapter: left out (--skip-training)" in said
    assert lock["skipped"] == ["adapter"]
    locked = set(lock["files"])
    assert {"README.md", "space/safe_stepwise.py", "report/results.json"} <= locked
    assert {"report/comparison.md", "report/cost.md", "report/trajectories.jsonl"} <= locked
    assert not [name for name in locked if name.startswith("report/report/")]
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files == locked | {LOCK}
    overview = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "v0.2.0" in overview
    assert " (simulated) |" in overview
    assert "(simulated) (simulated)" not in overview
    again, _ = made(manifest, tmp_path / "out", skip_training=True)
    assert "complete and unchanged" in again


def test_the_same_manifest_gives_the_same_bytes(manifest: Path, tmp_path: Path) -> None:
    _, first = made(manifest, tmp_path / "one" / "out", skip_training=True)
    _, second = made(manifest, tmp_path / "two" / "out", skip_training=True)
    assert first == second


def test_what_was_left_out_is_made_by_the_next_run(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(manifest, tmp_path / "out", skip_training=True)
    asked = []

    def trained(*what: Any) -> StageResult:
        asked.append(what)
        return StageResult("trained")

    monkeypatch.setattr(AdapterStage, "make", trained)
    monkeypatch.setattr(AdapterStage, "check", lambda _: None)
    said, lock = made(manifest, tmp_path / "out")
    assert "trained" in said
    assert len(asked) == 1
    assert lock["skipped"] == []


def test_without_the_libraries_training_is_refused_with_the_way_out(manifest: Path, tmp_path: Path) -> None:
    if find_spec("trl"):
        pytest.skip("trl is here")
    with pytest.raises(UserError, match=r"training needs .*pip install -e '\.\[train\]'"):
        made(manifest, tmp_path / "out")
    assert not (tmp_path / "out").exists()  # it shows before any work is done


def test_the_evaluation_waits_for_the_adapter_it_needs(manifest: Path, tmp_path: Path) -> None:
    text = MANIFEST.replace("verifier: symbolic,", 'verifier: "transformers:base+{adapter}",')
    manifest.write_text(text, encoding="utf-8")
    _, lock = made(manifest, tmp_path / "out", skip_training=True)
    assert lock["skipped"] == ["adapter", "evaluation"]
    assert not (tmp_path / "out" / "report").exists()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("smollm2-cpu", "smollm", r"adapter\.recipe: there is no .*smollm2-cpu"),
        ("recipe: smollm2-cpu", "recipes: x", r"adapter\.recipes: no such key; did you mean recipe"),
        ("{recipe: smollm2-cpu}", "{recipe: smollm2-cpu, verifier: gpt}", r"adapter\.verifier"),
        ("verifier: symbolic,", "verifier: symbol,", r"evaluation\.verifier: .*did you mean"),
        ("limit: 8", "limit: 0", "limit: has to be a whole number from 1 on"),
        ("limit: 8", "methods: [unsafe]", r"evaluation\.methods 'unsafe'.*did you mean safe"),
        ("adapter: {recipe: smollm2-cpu}\n", "", None),
        (
            'adapter: {recipe: smollm2-cpu}\nevaluation: {generator: "symbolic:error_rate=0.3"',
            'evaluation: {generator: "vllm:x+{adapter}"',
            r"\{adapter\} stands for no model of the release",
        ),
    ],
)
def test_a_bad_section_names_file_and_key(manifest: Path, old: str, new: str, expected: str | None) -> None:
    assert old in MANIFEST
    manifest.write_text(MANIFEST.replace(old, new), encoding="utf-8")
    if expected is None:
        assert manifest_of(manifest).adapter is None
        return
    with pytest.raises(UserError, match=expected) as caught:
        manifest_of(manifest)
    assert "small.yaml" in str(caught.value)
