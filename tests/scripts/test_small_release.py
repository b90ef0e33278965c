"""A release as one experiment: every arm by players, killed and resumed, and reported."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.steps.probes import classify
from evaluators.run.options import Options
from releases.making import file_digests
from releases.stages import evaluation
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import regenerate, report_experiment
from studies.experiment.experiment import (
    CHANCE,
    CHECKER,
    LEARNED,
    PLAIN,
    Arm,
    find_arm,
    list_arms,
    read_experiment,
    references,
)
from studies.experiment.experiment import gain as gain_of
from tests.makers.manifests import left_out, manifest_of, needs

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
  verifier: ["{JUDGE}", symbolic, "chance:reject={{rate}}"]
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
      verifier: ["{JUDGE}", "chance:reject={{rate}}"]
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


def share_rejected(release: Path, verifier: str) -> float:
    """Of the steps that it judged; one that came again in the same words is one."""
    verdicts: dict[tuple[str, int, str], bool] = {}
    for line in (release / "report" / "trajectories.jsonl").read_text("utf-8").splitlines():
        outcome = json.loads(line)
        if outcome["players"].get("verifier") == verifier:
            for one in outcome["trajectory"]["attempts"]:
                if one["feedback"] and one["feedback"]["error_type"] != "Malformed":
                    key = (outcome["question_id"], one["number"], one["text"])
                    verdicts[key] = one["feedback"]["error_type"] != "Correct"
    assert len(verdicts) >= 12
    return sum(verdicts.values()) / len(verdicts)


def test_every_arm_is_there_and_chance_rejects_as_the_first_does(release: Path) -> None:
    found = list_arms(results(release))
    assert [arm.name for arm in found] == [*("no verification", LEARNED, CHECKER, CHANCE)]
    asked = results(release, "blocks/self-verification/report")
    assert [arm.name for arm in list_arms(asked)] == ["no verification", "self-verification", LEARNED]
    by_name = {arm.name: arm for arm in found}
    learned, chance = by_name[LEARNED], by_name[CHANCE]
    said = chance.run["players"]["verifier"]
    share = share_rejected(release, learned.run["players"]["verifier"])
    assert said == f"chance:reject={share:.3f},seed=0 (simulated)"
    assert all(arm.run["simulated"] for arm in found)
    assert {arm.run["options"]["verdict_order"] for arm in found} == {"evidence_first"}


def difference(of: dict[str, Any], one: Arm, other: Arm) -> dict[str, Any]:
    """What ``results.json`` says of two systems."""
    keys = [(a.run["method"], a.run["players"], a.run["options"]) for a in (one, other)]
    for found in of["comparison"]["differences"]:
        sides = [(s["method"], s["players"], s["options"]) for s in (found["first"], found["second"])]
        if found["metric"] == "exact_match" and found["benchmark"] and sides in (keys, keys[::-1]):
            return {**found, "sign": 1 if sides == keys else -1}
    raise AssertionError("untested")


def test_gains_are_those_of_the_evaluation_itself(release: Path) -> None:
    found = read_experiment(release, lock(release), classify)
    by_name = {arm.name: arm for arm in found.main.arms}
    for one, other in ((LEARNED, PLAIN), (PLAIN, LEARNED), (CHECKER, PLAIN), (LEARNED, CHANCE)):
        pair = by_name[one], by_name[other]
        gain = gain_of(found.gains[""], *pair)
        assert gain is not None
        known = difference(results(release), *pair)
        ends = sorted(known["sign"] * known["estimate"][end] for end in ("low", "high"))
        assert gain.p == pytest.approx(known["p"])
        assert [gain.estimate.value, gain.estimate.low, gain.estimate.high] == pytest.approx(
            [known["sign"] * known["estimate"]["value"], *ends], abs=2e-6
        )
        plain = pair[1].em.value
        assert gain.estimate.value == pytest.approx(pair[0].em.value - plain, abs=2e-6)


def test_a_block_without_them_is_set_against_the_main_evaluation(release: Path) -> None:
    """`retries` ran no generator alone; `self-verification` asked half of the questions."""
    found = read_experiment(release, lock(release), classify)
    main = {arm.name: arm for arm in found.main.arms}
    (swept,), (own,) = found.blocks["retries"], found.blocks["self-verification"]
    none = find_arm(swept.arms, LEARNED, max_retries=0)
    assert none is not None
    gain = gain_of(found.gains["blocks/retries"], none, main[PLAIN])
    assert gain is not None
    assert gain.estimate.value == pytest.approx(none.em.value - main[PLAIN].em.value, abs=2e-6)
    assert [arm.run["options"]["max_retries"] for arm in references(own, found.main)] == [1, 1]
    assert len({(d.first, d.second) for d in found.gains["blocks/self-verification"].differences}) == 3


def test_it_was_asked_with_the_world_s_own_passages(release: Path) -> None:
    lines = (release / "report" / "questions.jsonl").read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    assert len(asked) == 12
    assert {len(one["passages"]) for one in asked} == {4}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_killed_between_any_two_evaluations_it_ends_in_the_same(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Of the four: what chance needs, the main table, what it needs again, the retries."""
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


def test_the_report_tells_the_run_s_numbers_and_what_does_not_hold(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("one", "two"):
        report_experiment.main([str(release), "--output", str(tmp_path / folder)])
    page = (tmp_path / "one" / "results.md").read_text("utf-8")
    assert str(tmp_path / "two" / "results.md") in capsys.readouterr().out
    names = {file.name for file in (tmp_path / "one" / "results").iterdir()}
    assert names == {"arms.png", "retries.png", LOCK}
    assert json.loads((tmp_path / "one" / "results" / LOCK).read_bytes()) == lock(release)
    for name in ("results.md", *(f"results/{name}" for name in names)):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert "> **Simulated**" in page
    for arm in list_arms(results(release)):
        assert f"| {arm.name} (simulated) | {100 * arm.em.value:.1f} " in page
    claimed = [line for line in page.splitlines() if line.startswith("| SAFE with the learned")]
    chance = find_arm(list_arms(results(release)), CHANCE)
    learned = find_arm(list_arms(results(release)), LEARNED)
    assert chance is not None
    assert learned is not None
    tested = gain_of(read_experiment(release, lock(release), classify).gains[""], learned, chance)
    assert tested is not None
    assert claimed[1].endswith("| holds |") == (tested.p < 0.05)
    assert "| – | not measured |" in page  # no verifier was measured on steps
    assert f"| {LEARNED} (simulated) | 0 | " in page
    assert "`blocks/self-verification`, 6 of synthetic, max_retries=1:" in page


def relock(folder: Path) -> None:
    """As if the files that are there had been made so."""
    (folder / LOCK).write_text(json.dumps({**lock(folder), "files": file_digests(folder)}))


def test_a_folder_that_is_no_experiment_is_refused(release: Path, tmp_path: Path) -> None:
    def refused(folder: Path, why: str) -> None:
        with pytest.raises(UserError, match=why):
            report_experiment.main([str(folder), "--output", str(tmp_path / "docs")])
        assert not (tmp_path / "docs").exists()

    refused(tmp_path / "none", "is no folder")
    refused(tmp_path, "is not complete")
    other = Path(shutil.copytree(release, tmp_path / "other"))
    whole = (other / "report" / "results.json").read_bytes()
    (other / "report" / "results.json").write_bytes(whole[: len(whole) // 2])
    refused(other, r"results\.json: differs, says release\.lock\.json")
    shutil.rmtree(other / "report")
    refused(other, "is missing, says")
    relock(other)
    refused(other, "nothing was evaluated")
    shutil.copytree(other / "blocks" / "retries" / "report", other / "report")
    relock(other)
    refused(other, "has no no verification; evaluate no_verification")
    (other / LOCK).write_text("{}")
    refused(other, "not a lock that safe-stepwise regenerate wrote")


def test_what_lies_beside_the_blocks_is_none(release: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(release, tmp_path / "other"))
    (other / "blocks" / "notes.txt").write_text("mine")
    assert {*read_experiment(other, lock(other), classify).blocks} == {"retries", "self-verification"}


def test_the_claims_are_measured_again_on_fresh_questions_of_the_same_models(release: Path, tmp_path: Path) -> None:
    fresh = Path(shutil.copytree(release, tmp_path / "fresh"))
    asked = [str(release), "--fresh", str(fresh), "--output", str(tmp_path / "docs")]
    report_experiment.main(asked)
    page = (tmp_path / "docs" / "results.md").read_text("utf-8")
    assert "| claim | found |  | on fresh questions |  |" in page
    assert "## Results by verifier, on fresh questions (simulated)" in page
    for line in (line for line in page.splitlines() if line.startswith("| SAFE with the learned")):
        cells = line.split(" | ")
        assert cells[1:3] == [cells[3], cells[4].removesuffix(" |")]
    file = fresh / "report" / "results.json"
    file.write_text(file.read_text("utf-8").replace("seed=2 (simulated)", "seed=4 (simulated)"))
    for outcomes in (fresh / "report").glob("trajectories.jsonl"):
        said = outcomes.read_text("utf-8")
        outcomes.write_text(said.replace("seed=2 (simulated)", "seed=4 (simulated)"))
    relock(fresh)
    with pytest.raises(UserError, match=r"its verifier is symbolic:.*seed=4 .*, where .*seed=2 "):
        report_experiment.main(asked)


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
    assert other.changes == {**order.adapter.changes, "verdict_order": "label_first"}
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
        (
            '[*learned, "chance:reject={rate}"]',
            '["chance:reject={rate}", *learned]',
            "blocks.retries.evaluation.verifier: {rate} is the rate of the first verifier",
        ),
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
