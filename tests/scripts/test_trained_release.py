"""A release of its own generator and verifier; only training and the models' replies are played."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from releases.publish.folder import read_release
from safe_stepwise import open as opening
from safe_stepwise.engines.weights import find_model, read_models
from safe_stepwise.players.symbolic import ChanceEngine, SymbolicEngine
from safe_stepwise.store.boundary import plain
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import LOCK, TRAINING
from scripts import regenerate
from tests.cards.records import training
from trainers.config import GeneratorRecipe, Recipe

MANIFEST = """
version: v0.2.0
seed: 4
evaluation_size: 12
evaluation_passages: 4
builds:
  - {benchmark: synthetic, input: "rows=40,seed=5,passages=4,writer=plain", split: train}
  - {benchmark: synthetic, input: "rows=30,seed=6,passages=4,writer=plain", split: validation}
verifier_steps:
  {rows: 60, pool: 30, test_split: validation, prompts: compact, verdict_order: evidence_first}
generator: {recipe: small-generator}
adapter: {recipe: small-verifier, verifier: "transformers:{adapter}"}
evaluation:
  generator: transformers:{generator}
  verifier: ["transformers:{adapter}", symbolic, "chance:reject=0.4"]
  methods: [no_verification, self_verification, safe]
  verdict_order: evidence_first
blocks:
  no-twins:
    adapters:
      without:
        recipe: small-verifier
        change: {filters.twins: false}
        verifier: transformers:{adapter}
    evaluation:
      {generator: "transformers:{generator}", verifier: "transformers:{adapter}", methods: [safe]}
"""
COMPACT = {"prompts": "compact", "verdict_order": "evidence_first"}


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Recipe]:
    """The recipes that were trained, in their order."""
    recipes: list[Recipe] = []

    def train(recipe: Recipe, **_: Any) -> dict[str, Any]:
        recipes.append(recipe)
        folder, told = recipe.output / "model", dict(COMPACT)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_text(f"{len(recipes)}")
        if isinstance(recipe, GeneratorRecipe):
            told = {"role": "generator", **told}
        sha256 = sha256_of(folder / "model.safetensors")
        changes = {"dataset.version": "v0.2.0", "recipe.filters": plain(recipe)["filters"]}
        record = training(**changes)
        del record["adapter"]
        record |= {"model": {"sha256": sha256, "dtype": "bfloat16"}, "prompts": told}
        (recipe.output / TRAINING).write_text(json.dumps(record))
        return record

    def opened(models: str) -> Any:
        """Who is asked in a model's place, and passes for one."""
        weights = find_model(read_models(models)[0])
        plays = json.loads((weights.folder.parent / TRAINING).read_bytes())["prompts"]
        engine: Any = ChanceEngine(0.3, 1)
        if "role" in plays:
            engine = opening.open_engine("symbolic:error_rate=0.4,seed=1")
        assert isinstance(engine, ChanceEngine | SymbolicEngine)
        engine.simulated, engine.weights = False, weights  # type: ignore[misc, union-attr]
        engine.name = f"transformers:{weights}"
        engine.identity = {"engine": "transformers", "model": weights.revision, "seed": 1}
        return engine

    kind = opening.EngineKind("transformers:MODEL", opened, read_models)
    monkeypatch.setattr(opening, "KINDS", {**opening.KINDS, "transformers": kind})
    for name in ("need_libraries", "find_base"):
        monkeypatch.setattr(f"releases.stages.training.{name}", lambda _: None)
    monkeypatch.setattr("releases.stages.training.train", train)
    monkeypatch.setattr("releases.stages.training.license_of_base", lambda _: None)
    return recipes


def record(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / TRAINING).read_bytes()))


def test_models_are_trained_locked_asked_and_told_of(trained: list[Recipe], tmp_path: Path) -> None:
    file, output = tmp_path / "small.yaml", tmp_path / "out"
    file.write_text(MANIFEST, encoding="utf-8")
    how: dict[str, Any] = {"cache": tmp_path / "replies.sqlite", "workers": 1}
    regenerate.regenerate(file, output, only=["generator"], **how)
    assert [recipe.output for recipe in trained] == [output / "generator"]
    regenerate.regenerate(file, output, **how)
    without = output / "blocks" / "no-twins" / "without" / "adapter"
    folders = [output / "generator", output / "adapter", without]
    assert [recipe.output for recipe in trained] == folders
    assert [plain(recipe)["filters"].get("twins") for recipe in trained] == [None, True, False]
    files = json.loads((output / LOCK).read_bytes())["files"]
    for folder in folders:
        weights = (folder / "model" / "model.safetensors").relative_to(output).as_posix()
        assert files[weights] == record(folder)["model"]["sha256"]

    results = json.loads((output / "report" / "results.json").read_bytes())
    players = [run["players"] for run in results["runs"]]
    assert {one["generator"].partition("@")[0] for one in players} == {"transformers:generator"}
    assert players[2]["verifier"].partition("@")[0] == "transformers:adapter"
    assert {run["options"]["prompts"] for run in results["runs"]} == {"compact"}
    assert players[-1]["verifier"].startswith("chance:reject=0.")
    _cards(output, folders)
    overview = (output / "README.md").read_text("utf-8")
    assert "| generator | [`generator/`](generator) | model `safe-generator-Qwen3-8B`" in overview
    assert 'from_pretrained("adapter/model"' in overview


def _cards(release: Path, folders: list[Path]) -> None:
    found = read_release(release, "somebody")
    repos = {one.repo for one in found.artifacts if one.kind == "model"}
    assert repos == {"somebody/safe-verifier-Qwen3-8B", "somebody/safe-generator-Qwen3-8B"}
    for folder, role in zip(folders, ("generator", "verifier", "verifier"), strict=True):
        card = ModelCard.load(folder / "README.md")
        assert card.data.base_model == "Qwen/Qwen3-8B"
        assert card.data.library_name == "transformers"
        assert card.data.to_dict()["base_model_relation"] == "finetune"
        assert role in (card.data.tags or [])
        assert record(folder)["model"]["sha256"] in card.text
        assert "PeftModel" not in card.text
        assert ("## Quality" in card.text) == (role == "verifier")
    own, ablated = ((f / "README.md").read_text("utf-8") for f in folders[1:])
    assert "| this model |" in own
    assert "## In the loop\n" in own
    assert "twins = False" in ablated
    assert "twins" not in own
