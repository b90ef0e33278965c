"""The demo of relation paths, with a tiny model of random numbers and few rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from builders.synthetic.films import Films
from scripts import demo_paths
from scripts.training import remove_outdated
from trainers.config import PathRecipe, read_recipe
from trainers.record import RECORD

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")


def test_it_trains_and_measures_and_does_nothing_twice(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    for method in ("sft", "kto"):
        name = f"dp-{method}-smollm2-cpu.yaml"
        recipe = yaml.safe_load((demo_paths.RECIPES / name).read_text())
        small = {"base_model": str(base), "held_out": 0, "effective_batch": 4, "device_batch": 4}
        (recipes / name).write_text(yaml.safe_dump({**recipe, **small}))
    monkeypatch.setattr(demo_paths, "RECIPES", recipes)
    monkeypatch.setattr(demo_paths, "Films", lambda: Films(films=60, questions=90))

    def main(*arguments: str) -> dict[str, object]:
        out = tmp_path / "out"
        demo_paths.main(["--output", str(out), "--per-hop", "2", "--kto", *arguments])
        kept = [(out / name / RECORD).stat().st_mtime_ns for name in ("sft", "kto")]
        found = json.loads((out / "quality" / "results.json").read_text())
        return {"kept": kept, "names": [run["name"] for run in found["runs"]], "runs": found}

    first = main("--rows", "12")
    assert first["names"] == ["oracle", "majority", "nearest", "SFT", "KTO"]
    said = capsys.readouterr().out
    assert said.count("made up") == 1
    assert "no result" in said
    assert main("--rows", "12") == first

    out, name = tmp_path / "out", "adapter_model.safetensors"
    asked = {
        "dataset": str(out / "dp-metaqa-paths"),
        "output": str(out / "kto"),
        "splits": "template",
        "filters.rows": "12",
        "start": str(out / "sft"),
    }
    recipe = read_recipe(recipes / "dp-kto-smollm2-cpu.yaml", asked, PathRecipe)
    remove_outdated(recipe)
    assert (out / "kto" / name).is_file()
    shutil.copy(out / "kto" / name, out / "sft" / name)  # another adapter to start from
    remove_outdated(recipe)
    assert not (out / "kto").exists()
