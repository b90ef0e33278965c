"""The command that shows the synthetic world's writers and scores them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from safe_stepwise.errors import UserError
from scripts import try_writers


def test_each_writer_is_scored_and_what_is_misread_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "misread.jsonl"
    try_writers.main(["--rows", "60", "--noise", "0.5", "--misread", str(file)])
    said = capsys.readouterr().out
    assert all(f"\n{name} " in said for name in ("plain", "dense"))
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert f"{len(rows)} rows in {file}" in said
    assert all(row["truth"] != row["label"] for row in rows)


def test_samples_are_articles_by_the_one_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    try_writers.main(["--writer", "dense", "--samples", "12"])
    assert len(capsys.readouterr().out.strip().split("\n\n")) == 12


def test_an_unknown_writer_is_refused() -> None:
    with pytest.raises(UserError, match="no synthetic writer 'nobody': choose from"):
        try_writers.main(["--writer", "nobody"])
