"""The examples run as they are told to, without a GPU or a network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from examples import loop_metric, own_benchmark, tiny_verifier
from safe_stepwise.errors import UserError


def test_a_benchmark_of_ones_own_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own_benchmark.main(["--output", str(tmp_path)])
    said = capsys.readouterr().out
    found = dict(re.findall(r"^(own-\d) +(\w+) ", said, re.MULTILINE))
    assert found == {
        "own-1": "none",
        "own-2": "external_knowledge",
        "own-3": "wrong_answer",
        "own-4": "none",
        "own-5": "wrong_answer",
    }
    assert "Ilse Bram – place of birth – Ardle" in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"answer": None}, "row.answer is not a text"),
        ({"facts": [["Oru", "river"]]}, r"row.facts\[0\] is not a list of 3"),
        ({"facts": "Oru"}, "row.facts is not a list"),
        ({"pages": ["Oru lies on the Vel."]}, "row.pages is not an object"),
        ({"pages": {"Oru": "Oru lies on the Vel."}}, "row.pages.Oru is not a list"),
        ({}, "the id own-1 stands in a row before"),
    ],
)
def test_a_row_of_another_form_is_told_by_its_line(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    first = json.loads(own_benchmark.ROWS.read_text(encoding="utf-8").split("\n")[0])
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in (first, {**first, **change})))
    with pytest.raises(UserError, match=rf"rows\.jsonl, line 2: {says}"):
        own_benchmark.main(["--input", str(rows), "--output", str(tmp_path)])


def test_an_output_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file: cannot be written"):
        own_benchmark.main(["--output", str(tmp_path / "file")])


def test_the_loop_is_measured_against_a_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SAFE_STEPWISE_CACHE", str(tmp_path / "replies.sqlite"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    loop_metric.main([])
    said = capsys.readouterr().out
    match = {name: float(value) for name, value in re.findall(r"(\w+): exact_match (\S+),", said)}
    assert match["safe"] == 1.0 > match["no_verification"]
    assert "simulated: True" in said


def test_a_stand_in_that_can_not_be_is_told_of() -> None:
    with pytest.raises(UserError, match="ended with 2"), loop_metric.stand_in("openai:x"):
        pytest.fail("it serves nothing")


def test_a_tiny_verifiers_set_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its training is in tests/models."""
    tiny_verifier.main(["--output", str(tmp_path), "--rows", "0"])
    said = capsys.readouterr().out
    assert "The verifier is asked:" in said
    assert 'It should say: {"error_type": ' in said
