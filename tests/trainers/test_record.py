"""What a run is known by: what decides on what is learnt, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from safe_stepwise.store.boundary import plain
from trainers.config import Filters, VerifierRecipe
from trainers.record import TrainingRun
from trainers.rows.verifier import VERIFIER

RECIPE = VerifierRecipe("base", "steps", Path("out"))
WEIGHTS: Any = SimpleNamespace(revision="r" * 40)
DATA: Any = SimpleNamespace(sha256="d" * 64)


def identity_of(recipe: VerifierRecipe, weights: Any, data: Any, start: Any = None) -> dict[str, Any]:
    return TrainingRun(recipe, weights, "a folder", start, data, VERIFIER).identity


def test_whatever_decides_on_what_is_learnt_is_known() -> None:
    known = identity_of(RECIPE, WEIGHTS, DATA)
    assert known["filters"] == {"drop_category": None, "feedback": "full", "origins": [], "rows": None}
    tighter = identity_of(replace(RECIPE, max_grad_norm=0.3), WEIGHTS, DATA)
    assert tighter == {**known, "max_grad_norm": 0.3}


def test_a_shorter_prompt_makes_other_rows() -> None:
    """Whose digest tells the runs apart."""
    cut = replace(RECIPE, filters=Filters(drop_category="Logical", drop_from_prompt=True))
    whole = replace(RECIPE, filters=Filters(drop_category="Logical"))
    assert identity_of(cut, WEIGHTS, DATA) == identity_of(whole, WEIGHTS, DATA)
    other: Any = SimpleNamespace(sha256="e" * 64)
    assert identity_of(cut, WEIGHTS, other) != identity_of(whole, WEIGHTS, DATA)
    assert plain(cut)["filters"]["drop_from_prompt"] is True
    assert cut.filters.dropped_category == "Logical"
    assert whole.filters.dropped_category is None


def test_an_adapter_that_is_gone_on_from_is_known_by_its_content() -> None:
    """Not by where it lies."""
    begun: Any = SimpleNamespace(revision="a" * 64)
    here = identity_of(replace(RECIPE, start="here"), WEIGHTS, DATA, begun)
    assert here == identity_of(replace(RECIPE, start="there"), WEIGHTS, DATA, begun)
    assert here == {**identity_of(RECIPE, WEIGHTS, DATA), "start": "a" * 64}
    named = replace(RECIPE, lora_modules=("q_proj",))
    assert identity_of(named, WEIGHTS, DATA)["lora_modules"] == ["q_proj"]
