"""`audit_labels` from a build to scores, and scores on the cards of a release."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluators.audit.rows import draw
from evaluators.audit.score import questions_for
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import audit_labels, regenerate
from tests.evaluators.audit.made import exported, said
from tests.makers.manifests import manifest_of
from tests.scripts.test_manifest import MANIFEST, contents

ROOT = Path(__file__).parents[2]
AUDITS = "audits:\n  - {of: labels, file: labels.json}\n  - {of: steps, file: steps.json}\n"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    (folder / "small.yaml").write_text(MANIFEST, encoding="utf-8")
    regenerate.regenerate(folder / "small.yaml", folder / "out", workers=1)
    for of in ("labels", "steps"):
        files = [str(judged(folder, of, who, wrong)) for who, wrong in (("ann", 3), ("bob", 4))]
        audit_labels.main(["score", *files, "--output", str(folder / f"{of}.json")])
    return folder


def judged(folder: Path, of: Any, reviewer: str, wrong: int) -> Path:
    """An export in which one in so many rows is wrong, and all else as good as it can be."""
    made = draw(folder / "out", of, 24, 1)
    lines = []
    for place, row in enumerate(made.rows):
        answers = {a.name: next(iter(a.answers)) for a in questions_for(of, row.stratum)}
        answers.pop("instead", None)
        if place % wrong == 0:
            answers["label"] = "wrong"
        line = said(row.key[1], reviewer, of, benchmark=row.key[0], stratum=[*row.stratum])
        lines.append({**line, "sample": made.sha256, "sha256": row.sha256, **answers})
    return exported(folder / f"{of}-{reviewer}.jsonl", lines)


def card(release: Path, name: str) -> str:
    return (release / "datasets" / name / "README.md").read_text(encoding="utf-8")


def test_a_page_is_written_and_said(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "some" / "page.html"
    command = ["sample", "--of", "steps", "--input", str(release / "out"), "--rows", "12"]
    audit_labels.main([*command, "--seed", "5", "--output", str(page)])
    said = capsys.readouterr().out
    assert said.splitlines()[-2:] == ["12 rows; open the page in a browser:", str(page)]
    assert "synthetic, Correct, ideal" in said
    text = page.read_text(encoding="utf-8")
    assert "The step neither reads a fact nor derives one" in text  # what Inefficiency means
    assert draw(release / "out", "steps", 12, 5).sha256 in text


def test_scores_are_told(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit_labels.main(["score", *(str(release / f"labels-{who}.jsonl") for who in ("ann", "bob"))])
    text = capsys.readouterr().out
    assert text.startswith("24 rows of labels judged, 48 judgements by ann, bob\n")
    found = json.loads((release / "labels.json").read_bytes())
    right = found["rates"]["label"]["right"]
    # Of 24, one in 3 is wrong to ann, one in 4 to bob: both or neither of 2 and 12.
    assert (right["rows"], right["hits"]) == (24, 12)
    assert f"label           right        24  0.500  {right['low']:.3f} to {right['high']:.3f}" in text
    pair = next(p for p in found["agreement"] if p["question"] == "label")
    # Equal 14/24, by chance (16 x 18 + 8 x 6) / 576.
    assert pair["kappa"] == round((14 / 24 - 7 / 12) / (1 - 7 / 12), 4) == 0.0
    assert "rows to look at (12; --output FILE" in text


def test_cards_tell_what_a_manifest_names(release: Path, tmp_path: Path) -> None:
    for name in ("safe-verified-multihop", "safe-noise-labels", "safe-verifier-steps"):
        assert "Human audit" not in card(release / "out", name)
    manifest = release / "audited.yaml"
    manifest.write_text(MANIFEST + AUDITS, encoding="utf-8")
    said = regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    assert "audit of labels: 24 rows, all of this release" in said
    scores = json.loads((release / "labels.json").read_bytes())
    for name in ("safe-verified-multihop", "safe-noise-labels"):
        text = card(tmp_path / "out", name)
        assert "2 reviewers judged 24 rows (48 judgements)" in text
        right = scores["rates"]["label"]["right"]
        low, high = right["low"], right["high"]
        assert f"| the label | right | 12 | 24 | 0.500 | {low:.3f} to {high:.3f} |" in text
        assert "| 1 and 2 | the label | 24 | 0.583 | 0.000 |" in text
        assert "| 1 and 2 | the explanation | 24 | 1.000 | - |" in text
        assert "ann" not in text.partition("## Human audit")[2].partition("##")[0].split()
        assert "but for the audit below" not in text  # known by the truth: nothing to take back
        assert f"sample `{scores['sample']}`" in text
    text = card(tmp_path / "out", "safe-verifier-steps")
    assert "| the guidance | good | 24 | 24 | 1.000 |" in text
    assert "labelled an error, but the label is wrong" in text
    assert "passages lack evidence" not in text
    assert "were not graded by people" not in text
    assert "were not graded by people" in card(release / "out", "safe-verifier-steps")
    lock = json.loads((tmp_path / "out" / LOCK).read_bytes())
    assert set(lock["counts"]["audit-steps"]) == {"sha256"}
    same = {name for name, data in contents(tmp_path / "out").items() if "/data/" in name}
    assert same
    assert all(contents(release / "out")[n] == contents(tmp_path / "out")[n] for n in same)


def test_an_audit_of_other_rows_is_refused(release: Path, tmp_path: Path) -> None:
    manifest = release / "other.yaml"
    manifest.write_text((MANIFEST + AUDITS).replace("seed=1", "seed=7"), encoding="utf-8")
    match = r"labels\.json: \d+ of the 24 rows that were judged are not, or not like that, in"
    with pytest.raises(UserError, match=match):
        regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    assert not (tmp_path / "out" / LOCK).exists()


@pytest.mark.parametrize(
    ("audits", "expected"),
    [
        ("audits: labels.json", r"audits is not a list"),
        ("audits: [labels.json]", r"audits\[0\] is not an object"),
        ("audits: [{of: labels}]", r"audits\[0\]\.file is not there"),
        ("audits: [{of: label, file: a.json}]", r"audits\[0\]\.of is not one of labels, steps"),
        ("audits: [{of: steps, file: a, by: ann}]", r"audits\[0\]\.by: no such key; keys: of, file"),
        ("audits: [{of: steps, file: a}, {of: steps, file: b}]", r"audits\[1\]: steps again"),
    ],
)
def test_a_bad_entry_names_file_and_key(tmp_path: Path, audits: str, expected: str) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(f"{MANIFEST}{audits}\n", encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        manifest_of(file)
    assert "small.yaml" in str(caught.value)


def test_an_audit_of_steps_needs_steps(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    without = MANIFEST.partition("verifier_steps:")[0]
    file.write_text(f"{without}audits: [{{of: steps, file: a.json}}]\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"audits\[0\]: judges the verifier set; add verifier_steps"):
        manifest_of(file)


def test_a_file_that_is_not_there_is_named_before_any_work(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(MANIFEST + AUDITS, encoding="utf-8")
    for make in (
        lambda: regenerate.regenerate(file, tmp_path / "out", workers=1),
        lambda: regenerate.main([str(file), "--output", str(tmp_path / "out"), "--dry-run"]),
    ):
        with pytest.raises(UserError, match=r"labels\.json: cannot be read \(No such file"):
            make()
    assert not (tmp_path / "out" / "datasets").exists()


def test_a_mistake_is_one_line_and_status_2(tmp_path: Path) -> None:
    file = exported(tmp_path / "a.jsonl", [said("q1"), said("q2", label="maybe")])
    command = [sys.executable, "-m", "scripts.audit_labels", "score", str(file)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"error: {file}, line 2: is no judgement (label is not one of")
    assert ended.stderr.count("\n") == 1
    with pytest.raises(UserError, match=r"invalid choice: 'words'.*sample --help"):
        audit_labels.main(["sample", "--of", "words", "--input", ".", "--output", "a.html"])
