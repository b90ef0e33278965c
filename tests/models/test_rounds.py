"""A release refines its verifier: really trained, asked where it errs, and trained anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.engines.base import Completion, Request
from safe_stepwise.engines.transformers import TransformersEngine
from scripts import regenerate
from trainers.record import RECORD

pytest.importorskip("trl", reason="no trl here: `make test-vllm` runs the model tests")

RECIPE = """\
base_model: {base}
base_model_name: somebody/tiny
filters: {{rows: 4}}
effective_batch: 2
device_batch: 1
learning_rate: 5.0e-3
epochs: 1
"""
MANIFEST = """\
version: v0.2.0
seed: 4
evaluation_size: 5
builds:
  - {{benchmark: synthetic, input: "rows=30,seed=5", split: train}}
  - {{benchmark: synthetic, input: "rows=10,seed=6", split: validation}}
verifier_steps:
  rows: 40
  refinement:
    rows: 4
    limit: 1
    generator: symbolic:error_rate=0.3,seed=1
    verifier: transformers:{base}+{{adapter}}
adapter: {{recipe: recipe.yaml}}
"""


def test_rounds_with_a_model_that_is_really_trained(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of random numbers gives no verdict, which is a weakness as any other."""
    (tmp_path / "recipe.yaml").write_text(RECIPE.format(base=base), encoding="utf-8")
    file, output = tmp_path / "small.yaml", tmp_path / "out"
    file.write_text(MANIFEST.format(base=base), encoding="utf-8")
    generate, asked = TransformersEngine.generate, list[Request]()

    async def in_short(engine: TransformersEngine, requests: Sequence[Request]) -> Any:
        asked.extend(requests)
        short = [replace(r, sampling=replace(r.sampling, max_tokens=4)) for r in requests]
        said = await generate(engine, short)
        # As a reply that was cut off is asked for again, and then no verdict at all.
        return [Completion(one.transcript, one.usage) for one in said if isinstance(one, Completion)]

    monkeypatch.setattr(TransformersEngine, "generate", in_short)
    said = regenerate.regenerate(file, output, cache=tmp_path / "replies.sqlite", workers=1)
    assert "refinement, round 1" in said
    (found,) = json.loads((output / "report/refinement/refinement.json").read_bytes())["rounds"]
    assert found["verifier"].startswith("transformers:tiny@")
    assert "+adapter@" in found["verifier"]
    assert found["questions"]["run"] == 1
    assert {request.role for request in asked} == {"verify"}
    differ = {one["name"]: one["disagreements"] for one in found["families"]}
    assert differ["no verdict"] == found["disagreements"] == found["checked"] > 0
    final = json.loads((output / "adapter" / RECORD).read_bytes())
    assert final["run"]["steps"] == 2
    assert not (output / ".work").exists()
