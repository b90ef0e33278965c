"""What the training demo says of margins, and when it trains anew; the training itself is slow."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.verifier.command import MEASURES, render_margins
from safe_stepwise.errors import UserError
from scripts import build_verified, build_verifier_steps
from scripts.demo_train import RECIPE, main
from scripts.training import remove_outdated
from trainers.config import VerifierRecipe, read_recipe
from trainers.rows.base import fingerprint
from trainers.rows.verifier import VERIFIER


def test_it_says_what_to_run_first(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run `make demo` first"):
        main(["--demo", str(tmp_path), "--output", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_margins_are_of_what_both_measured() -> None:
    def verifier(role: str, value: float | None) -> dict[str, Any]:
        return {"name": role, "simulated": False, "measures": {**dict.fromkeys(MEASURES), MEASURES[0]: value}}

    better, unknown = render_margins({"verifiers": [verifier("a", 0.5), verifier("b", 0.75), verifier("c", None)]})
    assert better.endswith(f"b: {MEASURES[0]} -0.250")
    assert unknown.endswith("c: ")


def test_an_adapter_of_other_rows_or_another_recipe_is_stale(tmp_path: Path) -> None:
    build_verified.main(
        f"--benchmark synthetic --input rows=20,seed=1 --split train --teacher annotations "
        f"--output {tmp_path} --workers 1".split()
    )
    build_verifier_steps.main(
        f"--verified {tmp_path} --teacher annotations --rows 12 --output {tmp_path} --workers 1".split()
    )
    steps, output = tmp_path / "safe-verifier-steps", tmp_path / "adapter"
    recipe = read_recipe(RECIPE, {"dataset": str(steps), "output": str(output)}, VerifierRecipe)
    record = {
        "recipe": {**recipe.plain(), "dataset": steps.name},
        "dataset": {"sha256": fingerprint(VERIFIER.open(str(steps), "train", recipe.filters)[1])},
    }

    def stays(told: dict[str, Any], asked: Any = recipe) -> bool:
        output.mkdir(exist_ok=True)
        (output / "training.json").write_text(json.dumps(told))
        remove_outdated(asked)
        return output.exists()

    assert stays(record)
    assert not stays({**record, "dataset": {"sha256": "0"}})
    assert not stays(record, replace(recipe, learning_rate=2e-3))
