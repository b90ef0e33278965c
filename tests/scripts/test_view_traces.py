"""`view_traces`: where the page goes, and what is refused with one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from safe_stepwise.errors import UserError
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES
from scripts.view_traces import main
from tests.makers.outcomes import outcomes

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "out"
    made.mkdir()
    lines = [one.to_json() for one in outcomes([1.0, 0.0])]
    (made / TRAJECTORIES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return made


def test_the_page_goes_into_the_folder_or_where_it_is_wanted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(folder)])
    assert "2 trajectories, 0.0 MB" in capsys.readouterr().out
    other = folder.parent / "some" / "page.html"
    main([str(folder), "--output", str(other)])
    assert capsys.readouterr().out.splitlines()[-1] == str(other)
    assert other.read_bytes() == (folder / "traces.html").read_bytes()
    assert other.read_bytes().startswith(b"<!doctype html>")
    assert sorted(file.name for file in folder.iterdir()) == ["traces.html", TRAJECTORIES]


def test_what_is_no_evaluation_is_named(folder: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere: no such folder; give the --output"):
        main(["nowhere"])
    with pytest.raises(UserError, match=r"no such folder"):
        main([str(folder / TRAJECTORIES)])
    (folder / TRAJECTORIES).rename(folder / f".{TRAJECTORIES}")
    with pytest.raises(UserError, match=r"no trajectories.jsonl in it; the evaluation has not end"):
        main([str(folder)])
    (folder / f".{TRAJECTORIES}").unlink()
    with pytest.raises(UserError, match=r"no trajectories.jsonl in it; give the --output"):
        main([str(folder)])
    (folder / TRAJECTORIES).write_text("")
    with pytest.raises(UserError, match=r"holds no trajectory"):
        main([str(folder)])


@pytest.mark.parametrize("name", [TRAJECTORIES, QUESTIONS, RESULTS])
def test_the_evaluation_itself_is_not_overwritten(folder: Path, name: str) -> None:
    before = (folder / TRAJECTORIES).read_bytes()
    with pytest.raises(UserError, match="is what the command reads, which would be lost"):
        main([str(folder), "--output", str(folder / "." / name)])
    assert (folder / TRAJECTORIES).read_bytes() == before


def test_a_page_that_cannot_be_written_is_named(folder: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be written .*give the name of a file in it"):
        main([str(folder), "--output", str(folder)])
    with pytest.raises(UserError, match=r"cannot be written .*choose another place"):
        main([str(folder), "--output", str(folder / TRAJECTORIES / "page.html")])


def test_a_wrong_line_is_one_line_and_status_2(folder: Path) -> None:
    with (folder / TRAJECTORIES).open("a") as file:
        file.write('{"benchmark": "musique"\n')
    command = [sys.executable, "-m", "scripts.view_traces", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"error: {folder / TRAJECTORIES}, line 3: cannot be read")
    assert ended.stderr.count("\n") == 1
    assert not (folder / "traces.html").exists()
