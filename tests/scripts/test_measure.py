"""The command that measures the checker."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.teachers.annotations import AnnotationsTeacher
from cards.datasets import CARDS
from safe_stepwise.errors import UserError
from scripts import measure_checker


def test_the_checker_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = Build("synthetic", "rows=200,seed=4,noise=0.1", "train", AnnotationsTeacher, output=tmp_path)
    build(plan, CARDS)
    measure_checker.main(["--verified", str(tmp_path)])
    said = capsys.readouterr().out
    assert "Premature Attribution" in said
    assert "called wrong: 0" in said


def test_a_folder_without_a_build_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give the --output of build_verified"):
        measure_checker.main(["--verified", str(tmp_path)])
