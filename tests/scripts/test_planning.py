from __future__ import annotations

from pathlib import Path

import pytest

from builders.verified import chunks
from releases.stage import CostEstimate, Speed, read_expectations
from safe_stepwise.errors import UserError
from scripts import regenerate

RELEASES = Path(__file__).parents[2] / "scripts" / "releases"


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    regenerate.main([*arguments, "--dry-run"])
    return capsys.readouterr().out


def test_hours_are_those_of_the_speeds() -> None:
    part = CostEstimate("x", 1, calls=9, prompt=9, computed=3600, reply=7200, trained=36_000)
    assert part.hours(Speed(prompt=1, reply=2, train=10)) == 1 + 1 + 1


def test_the_papers_release_is_foreseen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, str(RELEASES / "paper.yaml"), "--output", str(tmp_path / "out"))
    lines = {line.split("  ")[0]: line.split() for line in said.splitlines() if line}
    assert lines["verify hotpotqa train"][3] == "90,447"
    assert lines["verify hotpotqa train"][4] == f"{90_447 * 8:,}"
    assert "25,300" in lines["verifier set"]
    assert "evaluate safe" in lines
    assert lines["refinement: run the loop"][4] == "6,000"
    assert lines["refinement: relabel"][3] == "848"
    adapter = next(line for name, line in lines.items() if name.startswith("adapter of"))
    assert lines["refinement: train"][2] == adapter[3] == "10,364"
    assert lines["judge"][1] == "9,000"
    assert float(lines["total"][-1]) > 0
    assert "of one GPU" in said
    assert not (tmp_path / "out").exists()


def test_faster_gpus_take_fewer_hours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paper = str(RELEASES / "paper.yaml")
    fast = {name: 10 * value for name, value in read_expectations()["gpu"].items()}
    options = [f"--gpu-{name}={value:.0f}" for name, value in fast.items()]
    slow = told(capsys, paper, "--output", str(tmp_path))
    quick = told(capsys, paper, "--output", str(tmp_path), *options)

    def hours(said: str) -> float:
        total = next(line for line in said.splitlines() if line.startswith("total"))
        return float(total.split()[-1].replace(",", ""))

    assert hours(quick) == pytest.approx(hours(slow) / 10, rel=0.01)


def test_a_release_of_annotations_costs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, str(RELEASES / "demo.yaml"), "--output", str(tmp_path))
    total = next(line for line in said.splitlines() if line.startswith("total"))
    assert total.split()[1:5] == ["0", "0", "0", "0"]
    adapter = next(line for line in said.splitlines() if line.startswith("adapter of"))
    assert "160" in adapter.split()  # what the recipe takes of the set


def test_rows_of_a_spec_are_counted_without_being_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "generate", None)
    file = tmp_path / "release.yaml"
    entry = '{benchmark: synthetic, input: "rows=10000000", split: train, teacher: annotations}'
    file.write_text(f"version: v1.0.0\nseed: 1\nbuilds:\n  - {entry}\n", encoding="utf-8")
    said = told(capsys, str(file), "--output", str(tmp_path / "out"))
    assert "10,000,000" in said


def test_an_input_that_is_not_here_needs_its_rows(tmp_path: Path) -> None:
    file = tmp_path / "release.yaml"
    entry = "{benchmark: musique, input: gone.jsonl, split: train}"
    file.write_text(f"version: v1.0.0\nseed: 1\nbuilds:\n  - {entry}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"builds\[0\]\.input: gone\.jsonl is not here; .*rows"):
        regenerate.main([str(file), "--output", str(tmp_path / "out"), "--dry-run"])


def test_what_is_still_owed_is_told_and_stops_the_real_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = told(capsys, str(RELEASES / "paper.yaml"), "--output", str(tmp_path))
    owed = [line for line in said.splitlines() if line.startswith("still owed: ")]
    assert len(owed) == 7  # six files and a corpus; refined rows are mined on the way
    assert "musique_ans_v1.0_dev.jsonl is not here" in said
    manifest = tmp_path / "release.yaml"
    text = (RELEASES / "demo.yaml").read_text().replace("  rows: 600", "  rows: 600\n  refined: 10")
    manifest.write_text(text)
    with pytest.raises(UserError, match="refined: 10 rows come from no file; name it as refined_f"):
        regenerate.main([str(manifest), "--output", str(tmp_path / "out"), "--skip-training"])
    assert not (tmp_path / "out" / "datasets").exists()
