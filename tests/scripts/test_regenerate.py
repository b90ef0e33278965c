from __future__ import annotations

import doctest
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from releases.publish.checks import check_leaks
from releases.publish.folder import read_release
from releases.stages import datasets
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import build_path_probe, cli, demo, regenerate
from tests.makers.manifests import manifest_of

MANIFEST = """\
version: v0.1.0
seed: 4
evaluation_size: 10
builds:
  - benchmark: synthetic
    input: rows=40,seed=1,noise=0.3
    split: train
    teacher: annotations
  - benchmark: synthetic
    input: rows=40,seed=2,noise=0.3
    split: validation
    teacher: annotations
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(MANIFEST, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the manifest makes, to look at."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "small.yaml").write_text(MANIFEST, encoding="utf-8")
    regenerate.regenerate(folder / "small.yaml", folder / "out", workers=1)
    return folder / "out"


@pytest.fixture
def released(first: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return Path(shutil.copytree(first, tmp_path / "out"))


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_a_release_is_made_locked_and_checked(manifest: Path, released: Path, tmp_path: Path) -> None:
    output = released
    made = contents(output)
    lock = json.loads(made[LOCK])
    assert set(lock["files"]) == set(made) - {LOCK}
    assert lock["counts"]["synthetic-train"]["rows"] == 40
    assert lock["version"] == "v0.1.0"
    assert {"python", "datasets", "pyarrow"} <= set(lock["libraries"])
    assert {path.name for path in (output / "datasets").iterdir()} == {"safe-verified-multihop", "safe-noise-labels"}
    assert "complete and unchanged" in regenerate.regenerate(manifest, output, workers=1)
    regenerate.regenerate(manifest, tmp_path / "again", workers=2)
    assert contents(tmp_path / "again") == made


def test_an_engine_changes_nothing_in_a_release(manifest: Path, first: Path, tmp_path: Path) -> None:
    engine = ["--engine", "datatrove-local", "--ranks", "2", "--workers", "2"]
    regenerate.main([str(manifest), "--output", str(tmp_path / "ranks"), *engine])
    assert contents(tmp_path / "ranks") == contents(first)


def test_a_changed_folder_is_found_out(manifest: Path, released: Path) -> None:
    output = released
    card = output / "datasets" / "safe-noise-labels" / "README.md"
    text = card.read_text(encoding="utf-8")
    card.write_text(text + "more", encoding="utf-8")
    with pytest.raises(UserError, match=r"README\.md: differs"):
        regenerate.regenerate(manifest, output, workers=1)
    card.unlink()
    with pytest.raises(UserError, match=r"README\.md: is missing"):
        regenerate.regenerate(manifest, output, workers=1)
    card.write_text(text, encoding="utf-8")
    (card.parent / "extra.txt").write_text("x")
    with pytest.raises(UserError, match=r"extra\.txt: is not part"):
        regenerate.regenerate(manifest, output, workers=1)


def test_an_interrupted_release_goes_on(
    manifest: Path, first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    real = datasets.build

    def stopped(plan: object, cards: object) -> object:
        if plan.split == "validation":  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        return real(plan, cards)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(datasets, "build", stopped)
        with pytest.raises(KeyboardInterrupt):
            regenerate.regenerate(manifest, output, workers=1)
    assert not (output / LOCK).exists()
    shards = {p: p.stat().st_mtime_ns for p in output.rglob("*.arrow")}
    assert shards
    regenerate.regenerate(manifest, output, workers=1)
    assert contents(output) == contents(first)


def test_another_manifest_in_the_same_folder(manifest: Path, released: Path) -> None:
    manifest.write_text(MANIFEST.replace("seed: 4", "seed: 5"), encoding="utf-8")
    with pytest.raises(UserError, match="another manifest"):
        regenerate.regenerate(manifest, released, workers=1)


def test_a_build_that_the_manifest_does_not_name(manifest: Path, released: Path) -> None:
    (released / LOCK).unlink()
    manifest.write_text(MANIFEST.split("  - benchmark")[0] + one_build(), encoding="utf-8")
    with pytest.raises(UserError, match="holds synthetic validation"):
        regenerate.regenerate(manifest, released, workers=1)


def one_build() -> str:
    return "  - benchmark" + MANIFEST.split("  - benchmark")[1]


def test_a_path_probe_is_part_of_a_release_that_names_one(manifest: Path, tmp_path: Path) -> None:
    manifest.write_text(f"{MANIFEST}path_probe: {{limit: 9}}\n", encoding="utf-8")
    output, probe = tmp_path / "out", "datasets/safe-path-probe"
    regenerate.regenerate(manifest, output, workers=1)
    build_path_probe.main(
        ["--verified", str(output / "datasets"), "--output", str(tmp_path / "beside"),
         "--limit", "9", "--seed", "4"]
    )  # fmt: skip
    made = contents(tmp_path / "beside")
    ours = {path.removeprefix("datasets/"): one for path, one in contents(output).items()}
    for path, content in made.items():
        assert ours["path_probe_rejects.jsonl" if path == "rejects.jsonl" else path] == content
    assert not list(output.rglob(".*"))
    lock = json.loads((output / LOCK).read_text(encoding="utf-8"))
    told = json.loads((output / probe / "statistics" / "path_probe.json").read_text())
    assert lock["counts"]["path-probe"] == {"rows": told["rows"], "questions": told["questions"]}
    overview = (output / "README.md").read_text(encoding="utf-8")
    assert f"| path probe | [`{probe}/`]({probe}) | dataset `safe-path-probe` |" in overview
    assert f'load_dataset("{probe}", "path_probe")' in overview
    regenerate.regenerate(manifest, tmp_path / "again", workers=1)
    assert contents(tmp_path / "again") == contents(output)
    names = [artifact.folder for artifact in read_release(output, "somebody").artifacts]
    assert probe in names
    check_leaks(output)
    row = pq.read_table(next((output / probe / "data" / "path_probe").glob("test-*"))).slice(0, 1)
    file = next((output / probe / "data" / "path_probe").glob("train-*"))
    pq.write_table(pa.concat_tables([pq.read_table(file), row]), file)
    with pytest.raises(UserError, match="safe-path-probe: a test question is in train"):
        check_leaks(output)
    (output / LOCK).unlink()
    manifest.write_text(MANIFEST, encoding="utf-8")
    with pytest.raises(UserError, match="holds safe-path-probe, which"):
        regenerate.regenerate(manifest, output, workers=1)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("{limit: 0}", "path_probe.limit: has to be a whole number from 1 on"),
        ("{kb: kb.txt}", "path_probe.kb and path_probe.questions go together"),
        ("{benchmarks: [musique]}", "path_probe.benchmarks 'musique' is not known"),
        ("{derivations: none.jsonl}", "path_probe: .*none.jsonl is not here; bring it"),
        ("{film: kb.txt}", "path_probe.film: no such key; keys: kb"),
    ],
)
def test_a_mistake_in_a_path_probe_is_one_line(manifest: Path, tmp_path: Path, said: str, expected: str) -> None:
    manifest.write_text(f"{MANIFEST}path_probe: {said}\n", encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("seed: 4", "sede: 4", "sede: no such key; did you mean seed"),
        ("    split: train", "    splitt: train", r"builds\[0\]\.splitt"),
        ("seed: 4\n", "", "seed is not there"),
        ("    split: train\n", "", r"builds\[0\]\.split is not there"),
        ("seed: 4", "seed: four", "seed is not a whole number"),
        ("version: v0.1.0", "version: '1'", "vMAJOR.MINOR.PATCH"),
        ("benchmark: synthetic", "benchmark: syntetic", "did you mean synthetic"),
        ("split: train", "split: validation", r"builds\[1\].*again"),
        ("builds:", "builds: [", "not YAML"),
        ("seed: 4", "seed: 4\nseed: 5", "line [0-9]+: the key seed is there twice"),
        ("seed: 4", f"seed: {'[' * 100_000}", "nested more than 100 deep"),
        ("evaluation_size: 10", "evaluation_size: 0", "evaluation_size: has to be a whole number from 1 on"),
        ("split: train", "split: train\n    min_confidence: 2", r"builds\[0\]\.min_confidence"),
        ("split: train", "split: train\n    published: 3", r"builds\[0\]\.published"),
        ("teacher: annotations", "teacher: gpt", r"builds\[0\]\.teacher"),
    ],
)
def test_a_bad_manifest_names_file_and_key(manifest: Path, old: str, new: str, expected: str) -> None:
    manifest.write_text(MANIFEST.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        manifest_of(manifest)
    assert "small.yaml" in str(caught.value) or "version" in old


def test_a_manifest_may_leave_out_the_size_of_the_sample(manifest: Path) -> None:
    manifest.write_text(MANIFEST.replace("evaluation_size: 10\n", ""), encoding="utf-8")
    assert manifest_of(manifest).evaluation_size == 1_000


def test_a_source_has_to_match_its_digest(manifest: Path, tmp_path: Path) -> None:
    text = MANIFEST.replace("    split: train\n", f"    split: train\n    sha256: {'ab' * 32}\n")
    manifest.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="its digest is"):
        regenerate.regenerate(manifest, tmp_path / "out", workers=1)


def test_least_confidence_and_published_labels_travel_to_the_builds(manifest: Path, tmp_path: Path) -> None:
    told = "    split: train\n    min_confidence: 0.5\n    published: labels.jsonl\n"
    manifest.write_text(MANIFEST.replace("    split: train\n", told), encoding="utf-8")
    output = tmp_path / "out"
    with pytest.raises(UserError, match=r"labels\.jsonl: cannot be read"):
        regenerate.regenerate(manifest, output, workers=1)
    assert not output.exists()
    row = {"id": "synthetic-train-1-0", "unverifiable": True}
    (tmp_path / "labels.jsonl").write_text(json.dumps(row), encoding="utf-8")  # beside the manifest
    regenerate.regenerate(manifest, output, workers=1)
    folder = output / "datasets" / "safe-noise-labels" / "statistics"
    train, validation = (
        json.loads((folder / f"synthetic-{split}.json").read_bytes()) for split in ("train", "validation")
    )
    assert (train["min_confidence"], validation["min_confidence"]) == (0.5, 0.0)
    assert (train["known"]["by"], train["known"]["agreement"]["rows"]) == ("labels.jsonl", 1)
    assert (validation["known"]["by"], validation["known"]["agreement"]["rows"]) == ("truth", 40)


def test_the_demo_opens_and_scores(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "MANIFEST", manifest)
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    demo.main(["--output", str(tmp_path / "demo")])
    said = capsys.readouterr().out
    assert "synthetic_eval" in said
    assert "precision" in said
    assert "\nunverifiable" in said
    manifest.write_text(MANIFEST.replace("rows=40", "rows=30"), encoding="utf-8")
    demo.main(["--output", str(tmp_path / "demo")])
    assert "30" in capsys.readouterr().out


@pytest.mark.parametrize("module", [cli, demo])
def test_examples_of_the_scripts(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
