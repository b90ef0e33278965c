"""A release that really trains its generator and its verifier, in parts and at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from releases.publish.folder import read_release
from safe_stepwise.engines.base import Completion, Request
from safe_stepwise.engines.readability import Readability
from safe_stepwise.engines.transformers import TransformersEngine
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import LOCK, TRAINING
from scripts import regenerate

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")

RECIPE = """\
base_model: {base}
base_model_name: somebody/tiny
prompts: compact
verdict_order: evidence_first
tuning: full
quantization: none
dtype: float32
filters: {{rows: 8}}
effective_batch: 2
device_batch: 2
learning_rate: 5.0e-3
gradient_checkpointing: false
epochs: 1
"""
MANIFEST = """\
version: v0.2.0
seed: 4
evaluation_size: 3
evaluation_passages: 4
builds:
  - {benchmark: synthetic, input: "rows=30,seed=5,passages=4,writer=plain", split: train}
  - {benchmark: synthetic, input: "rows=20,seed=6,passages=4,writer=plain", split: validation}
verifier_steps:
  {rows: 50, pool: 30, test_split: validation, prompts: compact, verdict_order: evidence_first}
generator: {recipe: recipe.yaml}
adapter: {recipe: recipe.yaml, verifier: "transformers:{adapter}"}
evaluation:
  generator: transformers:{generator}
  verifier: ["transformers:{adapter}", symbolic, "chance:reject=1.0"]
  methods: [no_verification, self_verification, safe]
  verdict_order: evidence_first
  max_steps: 2
  max_retries: 1
blocks:
  no-twins:
    adapters:
      without:
        recipe: recipe.yaml
        change: {filters.rows: 4, filters.twins: false}
        verifier: transformers:{adapter}
"""


@pytest.fixture(scope="module")
def manifest(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("small")
    (folder / "recipe.yaml").write_text(RECIPE.format(base=base), encoding="utf-8")
    (folder / "small.yaml").write_text(MANIFEST, encoding="utf-8")
    return folder / "small.yaml"


STEP = "Step 1: Nothing is known of it. (Logical)"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of random numbers talks on, and says nothing; a step is put in its mouth, as a run without any ends."""
    generate = TransformersEngine.generate

    async def in_short(engine: TransformersEngine, requests: Sequence[Request]) -> Any:
        asked = [replace(r, sampling=replace(r.sampling, max_tokens=3)) for r in requests]
        said = await generate(engine, asked)
        # As a reply that was cut off is asked for again, and then no verdict at all.
        texts = [
            STEP if request.role == "generate" else one.transcript for request, one in zip(asked, said, strict=True)
        ]
        return [Completion(text, one.usage) for text, one in zip(texts, said, strict=True)]

    monkeypatch.setattr(TransformersEngine, "generate", in_short)
    # Its verdicts can't be read either: that would end the measuring of the adapter.
    monkeypatch.setattr(Readability, "record", lambda *args, **options: None)


def made(manifest: Path, output: Path, *only: str) -> dict[str, Any]:
    cache = manifest.parent / f"{output.name}.sqlite"
    regenerate.regenerate(manifest, output, cache=cache, workers=1, only=only)
    return dict(json.loads((output / LOCK).read_bytes()))


def record(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / TRAINING).read_bytes()))


def test_in_parts_or_at_once_it_learns_the_same_and_says_so(manifest: Path, tmp_path: Path) -> None:
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    made(manifest, parts, "generator")
    assert not (parts / "adapter").exists()
    made(manifest, parts, "evaluation")
    first = made(manifest, parts)
    again = made(manifest, whole)
    for name in (one for one in first["files"] if one.endswith((".parquet", ".safetensors"))):
        assert first["files"][name] == again["files"][name], name
    for folder in ("generator", "adapter", "blocks/no-twins/without/adapter"):
        one, other = record(parts / folder), record(whole / folder)
        assert one["curve"] == other["curve"]  # to the last bit
        weights = f"{folder}/model/model.safetensors"
        assert first["files"][weights] == one["model"]["sha256"] == sha256_of(parts / weights)

    results = json.loads((parts / "report" / "results.json").read_bytes())
    players = [run["players"] for run in results["runs"]]
    assert {one["generator"].partition("@")[0] for one in players} == {"transformers:generator"}
    assert players[2]["verifier"].startswith("transformers:adapter@")
    assert players[-1]["verifier"] == "chance:reject=1.0,seed=0 (simulated)"
    _cards(parts)


def _cards(release: Path) -> None:
    found = read_release(release, "somebody")
    repos = {one.repo for one in found.artifacts if one.kind == "model"}
    assert repos == {"somebody/safe-verifier-tiny", "somebody/safe-generator-tiny"}
    for folder, role in (("adapter", "verifier"), ("generator", "generator")):
        card = ModelCard.load(release / folder / "README.md")
        assert card.data.base_model == "somebody/tiny"
        assert card.data.library_name == "transformers"
        assert card.data.to_dict()["base_model_relation"] == "finetune"
        assert role in (card.data.tags or [])
        assert record(release / folder)["model"]["sha256"] in card.text
        assert "PeftModel" not in card.text
