"""What the pages show runs: one page after the other, in one folder, as a reader would."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.docs.commands import ROOT, Fence, fences, python, read, run

PAGES = ["verify.md", "steps-and-training.md", "evaluate.md", "releases.md"]
"""In this order: a page uses what those before it made."""
FENCES = [(page, fence) for page in PAGES for fence in fences(ROOT / "docs" / page)]
NEEDY = [(page, fence) for page, fence in FENCES if fence.needs]


def test_every_page_with_fences_is_here() -> None:
    shown = {file.name for file in (ROOT / "docs").glob("*.md") if fences(file)}
    elsewhere = {"papers.md", "results.md"}  # results.md is a report
    assert shown - elsewhere == {*PAGES}
    assert len(FENCES) >= 20
    assert len(NEEDY) <= 14


@pytest.mark.timeout(1800)
def test_what_is_shown_runs(reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _, fence in FENCES:
        if fence.needs:
            continue
        if fence.language == "python":
            python(fence.text, reader)
        for command in fence.commands if fence.language == "bash" else ():
            run(command)
            made = re.search(r"--output (\S+)", command)
            assert made is None or "--dry-run" in command or Path(made[1]).exists(), command
    capsys.readouterr()


@pytest.mark.parametrize(("page", "fence"), NEEDY, ids=[f"{page}: {fence.needs}" for page, fence in NEEDY])
def test_what_needs_more_can_be_read(page: str, fence: Fence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if fence.language == "python":
        compile(fence.text, page, "exec")
        return
    for command in fence.commands:
        read(command)
    assert not os.listdir(tmp_path)


def test_a_command_that_is_wrong_is_seen() -> None:
    with pytest.raises(ValueError, match="--colour"):
        read("safe-stepwise view_traces build/results --colour red")
    with pytest.raises(ValueError, match="--rows"):
        read("safe-stepwise audit_labels sample --of labels --input x --rows x --output y")


@pytest.mark.parametrize("file", ["CONTRIBUTING.md", *(f"docs/{page}" for page in PAGES)])
def test_the_files_that_are_named_exist(file: str) -> None:
    """Those of the repository that a page names in code, as in `tests/test_house.py`."""
    text = (ROOT / file).read_text("utf-8")
    folders = "builders|cards|docs|evaluators|releases|safe_stepwise|scripts|tests|trainers"
    named = set(re.findall(rf"`((?:{folders})/[\w./-]*)", text))
    named -= {name for name in named if "NAME" in name}
    assert {name for name in named if not (ROOT / name).exists()} == set()
