"""A release that mines its own hard cases: train, diagnose, augment, train, with a resume.

The trainer is played: an "adapter" is a script of verdicts that `mock:` reads, which shows that it
is the adapter of the very round that is diagnosed. tests/models trains in earnest.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from builders.steps.build import StepsBuild
from builders.steps.refined import REFINED, STATISTICS, read_refined
from releases.stage import StageResult
from releases.stages import verifier_steps
from releases.stages.training import AdapterStage
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK, STEPS_RECORD
from scripts import regenerate
from tests import sizes
from tests.makers.manifests import left_out, manifest_of, needs
from trainers.config import Recipe

MANIFEST = """\
version: v0.2.0
seed: 4
evaluation_size: 5
builds:
  - {benchmark: synthetic, input: "rows=40,seed=5", split: train}
  - {benchmark: synthetic, input: "rows=12,seed=6", split: validation}
verifier_steps:
  rows: 50
  ideal: 0.4
  refined: 6
  refinement:
    rows: 6
    limit: 20
    generator: symbolic:error_rate=0.3,seed=1
    verifier: mock:{adapter}/verdicts.json
adapter: {recipe: smollm2-cpu}
"""
Log = list[str]


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Where the manifest is read, "trained" stands for {adapter}.
    monkeypatch.chdir(tmp_path)
    write_adapter(tmp_path / "trained", "Correct")
    file = tmp_path / "small.yaml"
    file.write_text(MANIFEST, encoding="utf-8")
    return file


def write_adapter(folder: Path, verdict: str) -> None:
    """A verifier that has one verdict for every step."""
    said = {"error_type": verdict, "diagnosis": "So it is.", "guidance": "Go on."}
    folder.mkdir(parents=True, exist_ok=True)
    script = {"replies": [{"role": "verify", "reply": json.dumps(said)}]}
    (folder / "verdicts.json").write_text(json.dumps(script), encoding="utf-8")


class Dies(KeyboardInterrupt):
    pass


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """What was made anew, in order; `dying` has one of it interrupted."""
    made: Log = []
    build, refine = verifier_steps.build, verifier_steps.refine

    def building(plan: StepsBuild, *rest: Any, **more: Any) -> Any:
        found = build(plan, *rest, **more)
        made.append(f"set of {plan.output.parent.name}")
        return found

    def training(recipe: Recipe, resume: bool, warn: object) -> Mapping[str, Any]:
        record = recipe.output / "learnt.json"
        if resume and record.is_file():
            return {}
        rows = json.loads((Path(recipe.dataset) / STEPS_RECORD).read_bytes())["origins"]
        learnt = sum(of["refined"] for of in rows.values())
        # What has learnt from hard cases has another fault.
        write_adapter(recipe.output, "Off-topic" if learnt else "Correct")
        record.write_text(json.dumps({"refined": learnt}))
        made.append(f"adapter of {recipe.output.parent.name}")
        return {}

    def mining(plan: Any, *clients: Any) -> Any:
        found = refine(plan, *clients)
        made.append(f"cases of {plan.output.parent.name}")
        return found

    def trained(own: AdapterStage) -> StageResult:
        training(own.recipe, True, None)
        return StageResult("trained")

    monkeypatch.setattr(verifier_steps, "build", building)
    monkeypatch.setattr(verifier_steps, "train", training)
    monkeypatch.setattr(verifier_steps, "refine", mining)
    monkeypatch.setattr(AdapterStage, "make", trained)
    monkeypatch.setattr(AdapterStage, "check", lambda _: None)
    return made


def made(manifest: Path, output: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    cache = output.parent / "replies.sqlite"
    said = regenerate.regenerate(manifest, output, cache=cache, workers=1, **options)
    return said, json.loads((output / LOCK).read_text(encoding="utf-8"))


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_one_round_trains_mines_and_trains_anew(manifest: Path, tmp_path: Path, log: Log) -> None:
    output = tmp_path / "out"
    said, lock = made(manifest, output)
    assert log == ["set of round-1", "adapter of round-1", "cases of round-1", "set of out",
                   "adapter of out"]  # fmt: skip
    rows = read_refined(output / "report" / "refinement" / REFINED)
    assert len(rows) == 6
    # The first adapter passes everything, so what it gets wrong are errors that it passes.
    assert {row.family.rpartition(" ")[2] for row in rows} <= {"passed", "names", "compared"}
    assert all(row.feedback.error_type != "Correct" for row in rows)
    assert json.loads((output / "adapter" / "learnt.json").read_bytes()) == {"refined": 6}
    assert lock["counts"]["refinement"] == {"rounds": 1, "rows": 6}
    assert sum(of["refined"] for of in lock["counts"]["verifier-steps"]["origins"].values()) == 6
    assert "refinement, round 1:" in said
    assert "weakness" in said
    # What the rounds lie in is no part of the release.
    assert not (output / ".work").exists()
    assert {"report/refinement/refined.jsonl", f"report/refinement/{STATISTICS}"} <= set(lock["files"])
    card = (output / "datasets/safe-verifier-steps/README.md").read_text(encoding="utf-8")
    assert "They show these weaknesses" in card
    shown = Counter(row.family for row in rows)
    assert all(f"| {name} | " in card for name in shown)
    record = json.loads((output / "datasets/safe-verifier-steps" / STEPS_RECORD).read_bytes())
    families = {one["name"]: one for one in record["refined"]["families"]}
    assert {name: one["given"] for name, one in families.items() if one["given"]} == shown
    assert all(one["given"] >= one["rows"] for one in families.values())
    log.clear()
    again, _ = made(manifest, output)
    assert "complete and unchanged" in again
    assert not log


def test_rounds_go_on_from_each_other(manifest: Path, tmp_path: Path, log: Log) -> None:
    manifest.write_text(MANIFEST.replace("    limit: 20\n", "    limit: 20\n    rounds: 2\n"))
    output = tmp_path / "out"
    _, lock = made(manifest, output)
    assert log[3:6] == ["set of round-2", "adapter of round-2", "cases of round-2"]
    rows = read_refined(output / "report" / "refinement" / REFINED)
    assert len({row.id for row in rows}) == len(rows) == lock["counts"]["refinement"]["rows"] > 6
    # The second adapter rejects everything, which the first never does.
    assert any("doubted" in row.family for row in rows)
    record = json.loads((output / "report" / "refinement" / STATISTICS).read_bytes())
    assert record["simulated"] is True
    assert len(record["rounds"]) == 2
    assert sum(family["rows"] for family in record["families"]) == record["rows"] == len(rows)


@pytest.mark.timeout(1200)  # eleven releases, one after the other
def test_killed_anywhere_it_goes_on_and_makes_nothing_twice(
    manifest: Path, tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed as soon as one of the five things is there, or in the midst of the next."""
    straight = tmp_path / "straight" / "out"
    made(manifest, straight)
    whole = [line for line in log if line != "set of out"]
    targets: list[tuple[Any, str]] = [
        (verifier_steps, "build"),
        (verifier_steps, "train"),
        (verifier_steps, "refine"),
        (verifier_steps, "build"),
        (AdapterStage, "make"),
    ]
    for place in sizes.sample(range(len(targets)), 1):
        module, name = targets[place]
        output = tmp_path / f"killed-{place}" / "out"
        log.clear()
        with monkeypatch.context() as patch:
            patch.setattr(module, name, dying(getattr(module, name), 1 if place == 3 else 0))
            with pytest.raises(Dies):
                made(manifest, output)
        assert not (output / LOCK).exists()
        made(manifest, output)
        # Only the set of the release itself is built again, as of any release: replies are cached.
        assert [line for line in log if line != "set of out"] == whole
        assert log.count("set of out") == 1 + (place > 2)
        assert contents(output) == contents(straight)


def dying(work: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """Does its work, and is killed when it has done it for the time after so many others."""
    left = [calls]

    def worked(*what: Any, **more: Any) -> Any:
        found = work(*what, **more)
        if left[0] == 0:
            raise Dies
        left[0] -= 1
        return found

    return worked


def test_another_manifest_does_not_go_on_with_rounds_that_were_begun(
    manifest: Path, tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(verifier_steps, "refine", dying(verifier_steps.refine, 0))
        with pytest.raises(Dies):
            made(manifest, tmp_path / "out")
    manifest.write_text(MANIFEST.replace("limit: 20", "limit: 15"))
    with pytest.raises(UserError, match=r"refinement: was begun with another manifest; use that"):
        made(manifest, tmp_path / "out")


def test_without_training_there_is_no_refinement_until_a_run_with_it(manifest: Path, tmp_path: Path, log: Log) -> None:
    said, lock = made(manifest, tmp_path / "out", skip_training=True)
    assert log == ["set of out"]
    assert lock["skipped"] == ["adapter", "refinement"]
    assert "refinement, adapter: left out (--skip-training)" in said
    assert "refined" in lock["counts"]["verifier-steps"]["origins"]["train"]
    assert "fewer rows than requested" in said
    made(manifest, tmp_path / "out")
    assert log[1:] == ["set of round-1", "adapter of round-1", "cases of round-1", "set of out",
                       "adapter of out"]  # fmt: skip


def test_what_joins_a_locked_release_is_killed_and_goes_on(
    manifest: Path, tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it has changed by then: the set without refined rows, or an adapter half trained."""
    output = tmp_path / "out"
    made(manifest, output, skip_training=True)
    with monkeypatch.context() as patch:
        patch.setattr(AdapterStage, "make", dying(AdapterStage.make, 0))
        with pytest.raises(Dies):
            made(manifest, output)
    assert not (output / LOCK).exists()  # what is half changed is not to be published
    said, lock = made(manifest, output)
    assert "space: made before" in said
    assert lock["skipped"] == []
    assert log.count("adapter of round-1") == log.count("adapter of out") == 1
    assert not (output / ".work").exists()
    made(manifest, tmp_path / "whole" / "out")
    assert contents(output) == contents(tmp_path / "whole" / "out")


def test_rounds_under_way_outlive_a_run_of_something_else(
    manifest: Path, tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(verifier_steps, "refine", dying(verifier_steps.refine, 0))
        with pytest.raises(Dies):
            made(manifest, output)
    _, lock = made(manifest, output, only=["datasets"])
    assert lock["skipped"] == ["adapter", "refinement", "space", "verifier_steps"]
    made(manifest, output)
    assert log.count("adapter of round-1") == 1
    assert not (output / ".work").exists()


def test_refinement_is_made_with_what_needs_it(manifest: Path) -> None:
    assert needs(manifest)["verifier_steps"] == {"datasets", "refinement"}
    assert set(left_out(manifest, only=["verifier_steps"])) == {"space", "adapter"}
    assert set(left_out(manifest, only=["space"])) == set(needs(manifest)) - {"space"}
    untrained = left_out(manifest, skip_training=True, only=["verifier_steps"])
    assert set(untrained) == {"refinement", "space", "adapter"}


def test_a_round_trains_as_the_release_does_but_on_eleven_labels(
    manifest: Path, tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes: list[Recipe] = []

    def training(recipe: Recipe, **_: Any) -> Mapping[str, Any]:
        recipes.append(recipe)
        raise Dies

    changed = "{recipe: smollm2-cpu, change: {lora_rank: 3, incomplete_evidence: true}}"
    manifest.write_text(MANIFEST.replace("{recipe: smollm2-cpu}", changed))
    monkeypatch.setattr(verifier_steps, "train", training)
    with pytest.raises(Dies):
        made(manifest, tmp_path / "out")
    (recipe,) = recipes
    folder = tmp_path / "out" / ".work" / "refinement" / "round-1"
    assert Path(recipe.dataset) == folder / "set" / "safe-verifier-steps"
    assert recipe.output == folder / "adapter"
    assert (recipe.lora_rank, recipe.incomplete_evidence) == (3, False)


def test_what_roles_are_allowed_holds_in_the_rounds(
    manifest: Path, tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    refine, asked = verifier_steps.refine, []

    def mining(plan: Any, *clients: Any) -> Any:
        asked.extend(client.allowance.plain for client in clients if client)
        return refine(plan, *clients)

    monkeypatch.setattr(verifier_steps, "refine", mining)
    manifest.write_text(f"{MANIFEST}max_tokens: {{verify: 77, judge: 9}}\n")
    made(manifest, tmp_path / "out")
    assert asked == [{"max_tokens": "verify 77"}] * 2


def test_a_dry_run_prices_the_rounds(manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = MANIFEST.replace("symbolic:error_rate=0.3,seed=1", "openai:m@http://127.0.0.1:1/v1")
    teacher = "    teacher: openai:t@http://127.0.0.1:1/v1\n    rounds: 2\n"
    manifest.write_text(asked.replace("    limit: 20\n", f"    limit: 20\n{teacher}"))
    regenerate.main([str(manifest), "--output", str(tmp_path / "out"), "--dry-run"])
    said = capsys.readouterr().out
    lines = {line.split("  ")[0]: line.split() for line in said.splitlines() if line}
    loop, relabel = lines["refinement: run the loop"], lines["refinement: relabel"]
    assert (loop[4], loop[5]) == ("40", f"{40 * 14:,}")
    assert (relabel[2], relabel[3]) == ("12", "12")
    assert lines["refinement: train"][2] == "90"  # 45 rows of train, twice
    assert "still owed" not in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    rows: 6\n", "", r"verifier_steps\.refinement\.rows is not there"),
        ("    rows: 6", "    rows: 0", r"refinement\.rows: has to be a whole number from 1 on"),
        ("    rows: 6", "    rows: 6\n    rounds: 0", "rounds: has to be a whole number from 1 on"),
        ("    limit: 20", "    limits: 20", r"verifier_steps\.refinement\.limits: .*mean limit"),
        ("mock:{adapter}/verdicts.json", "openai:m@http://127.0.0.1:1/v1",
         r"refinement\.verifier: openai:m.* is not what a round trains; write \{adapter\}"),
        ("mock:{adapter}/verdicts.json", "symbolik", r"refinement\.verifier: .*did you mean sym"),
        ("    limit: 20", "    teacher: gpt", r"refinement\.teacher"),
        ("  refined: 6\n", "  refined: 6\n  refined_from: a.jsonl\n", "refined_from has; name one"),
        ("adapter: {recipe: smollm2-cpu}\n", "", "mines with an adapter; add adapter"),
        ("    limit: 20", "    limit: 0", r"refinement\.limit: has to be a whole number from 1 on"),
    ],
)  # fmt: skip
def test_a_bad_entry_names_file_and_key(manifest: Path, old: str, new: str, expected: str) -> None:
    assert old in MANIFEST
    manifest.write_text(MANIFEST.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        manifest_of(manifest)
    assert "small.yaml" in str(caught.value)


def test_how_many_refined_rows_the_set_takes_need_not_be_said(manifest: Path) -> None:
    manifest.write_text(MANIFEST.replace("  refined: 6\n", ""))
    steps = manifest_of(manifest).verifier_steps
    assert steps is not None
    assert steps.composition.refined is None
