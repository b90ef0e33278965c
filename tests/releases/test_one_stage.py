"""Whoever adds a stage to releases writes one class and adds one line to the list of stages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from releases import stages
from releases.manifest import Manifest
from releases.stage import CostEstimate, Forecast, Release, Stage, StageResult
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import DATASETS, LOCK, REPORT
from scripts import regenerate

MANIFEST = """\
version: v0.1.0
seed: 4
evaluation_size: 10
builds:
  - {benchmark: synthetic, input: "rows=20,seed=1", split: train}
  - {benchmark: synthetic, input: "rows=20,seed=2", split: validation}
"""


@dataclass(frozen=True)
class Greeting(Stage[Manifest]):
    """A greeting in the report, of a release whose seed is even."""

    @classmethod
    def from_manifest(cls, release: Release[Any]) -> Iterator[Greeting]:
        if release.manifest.seed % 2 == 0:
            yield cls(release, "greeting")

    @property
    def needs(self) -> list[str]:
        return [DATASETS]

    def check(self) -> None:
        if self.release.manifest.version == "v0.0.0":
            raise UserError(f"{self.release.file}: nobody is greeted by v0.0.0")

    def price(self, forecast: Forecast) -> Iterator[CostEstimate]:
        yield CostEstimate("greet", sum(forecast.build_rows), calls=7)

    def make(self) -> StageResult:
        folder = self.release.output / REPORT
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "greeting.md").write_text("Hello.\n")
        return StageResult("greeted", {"greeting": {"words": 1}})


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = ModuleType("releases.stages.greeting")
    module.Greeting = Greeting  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(stages, "STAGES", (*stages.STAGES, "greeting.Greeting"))
    monkeypatch.setattr("releases.making.release_code", lambda: "with a greeting")
    file = tmp_path / "release.yaml"
    file.write_text(MANIFEST, encoding="utf-8")
    return file


def test_it_is_made_locked_priced_and_left_out(
    manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert "space, greeting: left out (--only)" in regenerate.regenerate(manifest, output, only=["datasets"])
    assert "greeted" in regenerate.regenerate(manifest, output, only=["greeting"])
    lock = json.loads((output / LOCK).read_text(encoding="utf-8"))
    assert lock["skipped"] == ["space"]
    assert lock["counts"]["greeting"] == {"words": 1}
    assert "report/greeting.md" in lock["files"]
    assert "complete and unchanged" in regenerate.regenerate(manifest, output, only=["greeting"])
    regenerate.main([str(manifest), "--output", str(output), "--dry-run"])
    priced = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("greet "))
    assert priced.split()[1:3] == ["40", "7"]


def test_it_is_checked_before_anything_is_made(manifest: Path, tmp_path: Path) -> None:
    manifest.write_text(MANIFEST.replace("v0.1.0", "v0.0.0"), encoding="utf-8")
    with pytest.raises(UserError, match=r"nobody is greeted by v0\.0\.0"):
        regenerate.regenerate(manifest, tmp_path / "out")
    assert not (tmp_path / "out").exists()
