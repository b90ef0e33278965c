"""A release with controls and blocks: every system by its players, killed and resumed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.run.options import Options
from releases.stages import evaluation
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import regenerate
from tests.makers.manifests import left_out, manifest_of, needs
from trainers.config import EncoderRecipe

SMALL = Path(__file__).parents[2] / "scripts" / "releases" / "small.yaml"
WRITER, JUDGE = "symbolic:error_rate=0.4,seed=1", "symbolic:error_rate=0.2,seed=2"
MANIFEST = f"""
version: v0.1.0
seed: 4
evaluation_size: 12
evaluation_passages: 4
builds:
  - {{benchmark: synthetic, input: "rows=40,seed=5,passages=4,writer=plain", split: train}}
  - {{benchmark: synthetic, input: "rows=30,seed=6,passages=4,writer=plain", split: validation}}
verifier_steps:
  {{rows: 60, pool: 30, test_split: validation, prompts: compact, verdict_order: evidence_first}}
evaluation:
  generator: {WRITER}
  verifier: ["{JUDGE}", symbolic, "chance:reject=0.4"]
  methods: [no_verification, safe]
  verdict_order: evidence_first
blocks:
  self-verification:
    evaluation:
      generator: {WRITER}
      verifier: "{JUDGE}"
      methods: [no_verification, self_verification, safe]
      limit: 6
      max_retries: 1
  retries:
    evaluation:
      generator: {WRITER}
      verifier: ["{JUDGE}", "chance:reject=0.4"]
      methods: [safe]
      max_retries: [0, 3]
"""


def made(folder: Path, **options: Any) -> Path:
    (folder / "release.yaml").write_text(MANIFEST, encoding="utf-8")
    how = {"cache": folder / "replies.sqlite", "workers": 1, **options}
    regenerate.regenerate(folder / "release.yaml", folder / "out", **how)
    return folder / "out"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("whole"))


def results(release: Path, place: str = "report") -> dict[str, Any]:
    return dict(json.loads((release / place / "results.json").read_bytes()))


def lock(release: Path) -> dict[str, Any]:
    return dict(json.loads((release / LOCK).read_bytes()))


def test_every_system_is_there(release: Path) -> None:
    runs = results(release)["runs"]
    assert [run["method"] for run in runs] == ["no_verification", *["safe"] * 3]
    _, learned, checker, chance = (run["players"].get("verifier") for run in runs)
    assert learned == f"{JUDGE} (simulated)"
    assert checker.startswith("symbolic:error_rate=0.0")
    assert chance == "chance:reject=0.4,seed=0 (simulated)"
    assert all(run["simulated"] for run in runs)
    assert {run["options"]["verdict_order"] for run in runs} == {"evidence_first"}
    asked = results(release, "blocks/self-verification/report")["runs"]
    assert [run["method"] for run in asked] == ["no_verification", "self_verification", "safe"]


def test_it_was_asked_with_the_world_s_own_passages(release: Path) -> None:
    lines = (release / "report" / "questions.jsonl").read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    assert len(asked) == 12
    assert {len(one["passages"]) for one in asked} == {4}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("at", [0, 1])
def test_killed_between_any_two_evaluations_it_ends_in_the_same(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    evaluated, calls = evaluation.run_evaluation, list[Path]()

    def killed(options: Options, *given: Any) -> str:
        calls.append(options.output)
        if len(calls) > at + 1:
            raise KeyboardInterrupt
        return evaluated(options, *given)

    monkeypatch.setattr(evaluation, "run_evaluation", killed)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path)
    assert not (tmp_path / "out" / LOCK).exists()
    monkeypatch.undo()
    assert lock(made(tmp_path)) == lock(release)
    assert not list((tmp_path / "out").rglob(".work"))


def test_the_small_manifest_can_be_read_and_made_in_parts() -> None:
    manifest = manifest_of(SMALL)
    of = needs(SMALL)
    assert of["evaluation"] == {"datasets", "adapter", "generator"}
    assert of["generator"] == {"datasets", "verifier_steps"}
    assert of["verdict-order"] == {"datasets", "generator"}
    assert of["data"] == {"datasets", "verifier_steps", "generator"}
    main = left_out(SMALL, only=["evaluation"])
    assert set(main) == {"space", *manifest.blocks}
    assert set(left_out(SMALL, skip_training=True)) == {*("generator", "adapter", "evaluation"), *manifest.blocks}


@pytest.mark.parametrize("name", ["real-small", "made-up-small"])
def test_the_small_verifiers_are_encoders_that_stand_beside_probes(name: str) -> None:
    manifest = manifest_of(SMALL.with_name(f"{name}.yaml"))
    assert manifest.adapter is not None
    assert manifest.adapter.recipe_type() is EncoderRecipe
    assert manifest.adapter.verifier == "encoder:{adapter}"
    recipe = manifest.adapter.read(EncoderRecipe, dataset="-", output="-")
    assert recipe.views == ("sentence", "claim", "step")


def test_the_order_of_verdicts_is_measured_on_the_same_rows_by_one_recipe() -> None:
    """All but what a verdict begins with is as in the small release, half as many rows."""
    files = (SMALL, SMALL.with_name("small-order.yaml"))
    small, order = (manifest_of(file) for file in files)
    assert (order.builds, order.generator) == (small.builds, small.generator)
    assert (order.seed, order.verifier_steps) == (small.seed, small.verifier_steps)
    (block,) = order.blocks.values()
    (other,) = block.adapters.values()
    assert order.adapter is not None
    assert order.verifier_steps is not None
    assert other.recipe == order.adapter.recipe
    assert other.change == {**order.adapter.change, "verdict_order": "label_first"}
    assert block.verifier_steps == replace(order.verifier_steps, verdict_order="label_first")
    assert block.evaluation == order.evaluation


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{generator}", "{generators}", "{generators} stands for nothing; write {adapter}"),
        ("generator: {recipe: small-generator}", "", "{generator} stands for no model of the release; add generator"),
        ("small-generator}", "small}", "generator.recipe: there is no"),
        ("small-generator}", "small-generator, change: {filters.x: 1}}", "generator.change"),
        ("test_split: validation", "test_split: test", "verifier_steps.test_split"),
        ("test_split: validation", "test_split: validation\n  test_share: .2", "say one of them"),
        ("prompts: compact", "prompts: short", "verifier_steps.prompts is not one of paper"),
        ("verdict_order: evidence_first\ngen", "verdict_order: last\ngen", "verdict_order is not one of label_first"),
        ("evaluation_passages: 4", "evaluation_passages: 0", "evaluation_passages: has to be a whole number"),
        ("verdict_order: evidence_first  # as", "verdict_order: last  # as", "evaluation.verdict"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_with_its_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = SMALL.read_text("utf-8")
    assert old in text
    file = tmp_path / "small.yaml"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError) as raised:
        manifest_of(file)
    assert said in str(raised.value)
