"""Blocks of a manifest: read strictly, priced one by one, made alone, and kept when others are."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.run.options import Options
from releases.manifest import OWN_SET
from releases.stages import evaluation
from releases.stages.training import AdapterStage
from safe_stepwise.engines.weights import Model, find_adapter
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import plain
from safe_stepwise.store.names import LOCK, STEPS_RECORD
from scripts import evaluate_stepwise, regenerate
from tests.cards.records import config, training
from tests.makers.manifests import left_out, manifest_of, needs, release_of
from trainers.config import Recipe

BUILDS = """
version: v0.2.0
seed: 4
evaluation_size: 20
builds:
  - {benchmark: synthetic, input: "rows=60,seed=5", split: train}
  - {benchmark: synthetic, input: "rows=60,seed=6", split: validation}
"""
SWEEPS = f"""{BUILDS}
evaluation: {{generator: "symbolic:error_rate=0.3", verifier: symbolic, judge: symbolic, limit: 3}}
blocks:
  sweep:
    evaluation:
      generator: ["symbolic:error_rate=0.3", "symbolic:error_rate=0.5,seed=2"]
      verifier: symbolic
      methods: safe
      limit: 3
      max_steps: [2, 10]
      max_retries: [0, 1]
  forms:
    evaluation:
      generator: symbolic:error_rate=0.3
      verifier: symbolic
      methods: [safe]
      feedback: [diagnosis, guidance]
      drop_gold: true
      limit: 3
"""
TRAINED = f"""{BUILDS}
verifier_steps: {{rows: 40, ideal: 0.5, refined: 0}}
adapter: {{recipe: smollm2-cpu}}
evaluation: &loop
  generator: symbolic:error_rate=0.3
  verifier: vllm:Qwen/Qwen3-8B+{{adapter}}
  methods: [no_verification, safe]
  limit: 3
blocks:
  again: {{evaluation: *loop}}
  drop-category:
    adapters:
      no-logical: {{recipe: smollm2-cpu, change: {{filters.drop_category: Logical}}}}
      no-attribution: {{recipe: smollm2-cpu, change: {{filters.drop_category: Attribution}}}}
    evaluation: *loop
  other-set:
    verifier_steps: {{rows: 30, ideal: 0.4, refined: 0}}
    adapters: {{other: {{recipe: smollm2-cpu}}}}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(SWEEPS, encoding="utf-8")
    return file


def made(manifest: Path, output: Path, *only: str, **options: Any) -> tuple[str, dict[str, Any]]:
    cache = manifest.parent / "replies.sqlite"
    said = regenerate.regenerate(manifest, output, cache=cache, workers=1, only=only, **options)
    return said, json.loads((output / LOCK).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, Any]]:
    """A release of which the sweep alone was made, with what was said and its lock."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "small.yaml").write_text(SWEEPS, encoding="utf-8")
    return folder / "out", *made(folder / "small.yaml", folder / "out", "sweep")


@pytest.fixture
def swept(first: tuple[Path, str, dict[str, Any]], tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(first[0], tmp_path / "out"))


def results(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "report" / "results.json").read_text()))


def times(folder: Path) -> dict[str, int]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.as_posix(): path.stat().st_mtime_ns for path in files}


def test_a_block_is_made_alone_and_another_joins_it(
    manifest: Path, first: tuple[Path, str, dict[str, Any]], swept: Path, tmp_path: Path
) -> None:
    output = swept
    _, said, lock = first
    assert lock["skipped"] == ["evaluation", "forms", "space"]
    assert "space, evaluation, forms: left out (--only)" in said
    assert not (output / "report").exists()
    runs = results(output / "blocks" / "sweep")["runs"]
    assert len(runs) == 2 * 2 * 2
    assert {(r["options"]["max_steps"], r["options"]["max_retries"]) for r in runs} == {
        (2, 0), (2, 1), (10, 0), (10, 1)
    }  # fmt: skip
    overview = (output / "README.md").read_text("utf-8")
    row = "[`blocks/sweep/report/`](blocks/sweep/report) | safe (simulated) | 8 | synthetic 3 |"
    assert row in overview
    assert "evaluation questions with their answers" in overview
    again, _ = made(manifest, output, "sweep")
    assert "complete and unchanged" in again

    before = times(output / "datasets") | times(output / "blocks" / "sweep")
    said, lock = made(manifest, output, "forms")
    assert "datasets, sweep: made before" in said
    assert before == times(output / "datasets") | times(output / "blocks" / "sweep")
    assert lock["skipped"] == ["evaluation", "space"]
    assert lock["counts"]["synthetic-train"]["rows"] == 60
    forms = results(output / "blocks" / "forms")
    assert forms["settings"]["drop_gold"] is True
    assert {run["options"]["feedback"] for run in forms["runs"]} == {"diagnosis", "guidance"}

    said, lock = made(manifest, output)
    assert lock["skipped"] == []
    assert "datasets, sweep, forms: made before" in said
    assert "complete and unchanged" in made(manifest, output, "forms")[0]
    _, whole = made(manifest, tmp_path / "whole")
    assert lock == whole


def test_what_is_left_of_other_code_or_changed_is_not_kept(
    manifest: Path, swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = swept
    file = output / "blocks" / "sweep" / "report" / "results.json"
    kept = file.read_bytes()
    file.write_bytes(kept + b" ")
    with pytest.raises(UserError, match=r"sweep/report/results\.json: differs"):
        made(manifest, output, "forms")
    file.write_bytes(kept)
    monkeypatch.setattr("releases.making.release_code", lambda: "other")
    with pytest.raises(UserError, match="sweep was made there from another manifest, or by other"):
        made(manifest, output, "forms")
    assert not (output / "blocks" / "forms").exists()
    _, lock = made(manifest, output, "forms", "sweep")
    assert lock["code_sha256"] == "other"
    (output / "blocks" / "stray").mkdir()
    (output / LOCK).unlink()
    with pytest.raises(UserError, match="holds blocks/stray, which"):
        made(manifest, output)


def test_a_block_that_was_killed_goes_on(manifest: Path, swept: Path) -> None:
    output = swept
    (output / LOCK).unlink()
    report = output / "blocks" / "sweep" / "report"
    (report / "results.json").unlink()
    (report / ".trajectories.jsonl").write_bytes(b'{"torn')  # its journal
    made(manifest, output, "sweep")
    assert not (report / ".trajectories.jsonl").exists()
    (output / LOCK).unlink()
    (report / ".hidden").write_text("")
    with pytest.raises(UserError, match=r"\.hidden: what is hidden is no part of a release"):
        made(manifest, output, "sweep")


def test_needs_are_followed(tmp_path: Path) -> None:
    file = tmp_path / "trained.yaml"
    file.write_text(TRAINED, encoding="utf-8")
    assert needs(file) == {
        "datasets": set(),
        "verifier_steps": {"datasets"},
        "space": set(),
        "adapter": {"datasets", "verifier_steps"},
        "evaluation": {"datasets", "adapter"},
        "again": {"datasets", "adapter"},
        "drop-category": {"datasets", "verifier_steps"},
        "other-set": {"datasets"},
    }
    every = set(needs(file))
    assert set(left_out(file, only=["drop-category"])) == every - {
        "datasets", "verifier_steps", "drop-category"
    }  # fmt: skip
    assert set(left_out(file, only=["again", "space"])) == {
        "evaluation", "drop-category", "other-set"
    }  # fmt: skip
    untrained = {"adapter", "evaluation", "again", "drop-category", "other-set"}
    assert set(left_out(file, skip_training=True)) == untrained
    with pytest.raises(UserError, match="--only 'agian' is not known; did you mean again"):
        left_out(file, only=["agian"])
    with pytest.raises(UserError, match="takes adapter, which --skip-training leaves out"):
        left_out(file, skip_training=True, only=["again"])


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Recipe], list[Options]]:
    """Training and the adapters' verdicts are played; all else is real."""
    recipes: list[Recipe] = []
    asked: list[Options] = []

    def train(recipe: Recipe, **_: Any) -> dict[str, Any]:
        recipes.append(recipe)
        recipe.output.mkdir(parents=True, exist_ok=True)
        # Of one digest for each that is trained.
        weights = f"{len({one.output for one in recipes})}"
        (recipe.output / "adapter_model.safetensors").write_text(weights)
        (recipe.output / "adapter_config.json").write_text(json.dumps(config()))
        filters = plain(recipe)["filters"]
        record = training(**{"dataset.version": "v0.2.0", "recipe.filters": filters})
        (recipe.output / "training.json").write_text(json.dumps(record))
        return record

    def evaluated(options: Options, *_: object) -> str:
        asked.append(options)
        said = evaluate_stepwise.evaluate(replace(options, verifier=("symbolic",)))
        base, _, folder = options.verifier[0].partition("+")
        found = results(options.output.parent)
        of_pairs = [d[end] for d in found["comparison"]["differences"] for end in ("first", "second")]
        for one in (*found["comparison"]["systems"], *of_pairs):
            one["simulated"] = False
            if "verifier" in one["players"]:
                one["players"]["verifier"] = f"{base}+{find_adapter(Model(folder))}"
        (options.output / "results.json").write_text(json.dumps(found))
        return said

    monkeypatch.setattr("releases.stages.training.need_libraries", lambda _: None)
    monkeypatch.setattr("releases.stages.training.find_base", lambda _: None)
    monkeypatch.setattr("releases.stages.training.train", train)
    monkeypatch.setattr(evaluation, "run_evaluation", evaluated)
    return recipes, asked


def test_adapters_are_trained_evaluated_in_turn_and_told_of_their_own_scores(
    tmp_path: Path, played: tuple[list[Recipe], list[Options]]
) -> None:
    recipes, asked = played
    file, output = tmp_path / "trained.yaml", tmp_path / "out"
    file.write_text(TRAINED, encoding="utf-8")
    _, lock = made(file, output)
    blocks = output / "blocks"
    homes = [output, blocks / "drop-category/no-logical", blocks / "drop-category/no-attribution"]
    homes += [blocks / "other-set/other"]
    assert [recipe.output for recipe in recipes] == [home / "adapter" for home in homes]
    dropped = [recipe.filters.drop_category for recipe in recipes]
    assert dropped == [None, "Logical", "Attribution", None]
    steps = "datasets/safe-verifier-steps"
    own = [str(output / steps)] * 3
    assert [recipe.dataset for recipe in recipes] == [*own, str(blocks / "other-set" / steps)]
    assert lock["counts"]["verifier-steps"]["rows"] == 40
    assert lock["counts"]["verifier-steps-other-set"]["rows"] == 30
    assert [options.verifier[0].partition("+")[2] for options in asked] == [
        str(home / "adapter") for home in (output, output, *homes[1:3])
    ]
    assert [options.output for options in asked] == [
        output / "report", blocks / "again" / "report", *(home / "report" for home in homes[1:3])
    ]  # fmt: skip
    card = (output / "adapter" / "README.md").read_text("utf-8")
    assert "## In the loop\n" in card
    assert "| this adapter |" in card
    assert "drop-category" not in card
    assert "Further evaluations with this adapter: `blocks/again/report/`" in card
    ablation = (homes[1] / "adapter" / "README.md").read_text("utf-8")
    assert "drop_category = Logical" in ablation
    assert "## In the loop\n" in ablation
    locked = set(lock["files"])
    assert "blocks/drop-category/no-logical/adapter/adapter_model.safetensors" in locked
    assert "blocks/drop-category/no-logical/report/trajectories.jsonl.gz" in locked

    (blocks / "again" / "report" / "results.json").write_text("{}")
    with pytest.raises(UserError, match="differs"):
        made(file, output)


def test_a_blocks_set_may_have_the_releases_rows_by_another(
    tmp_path: Path, played: tuple[list[Recipe], list[Options]]
) -> None:
    recipes, _ = played
    file, output = tmp_path / "trained.yaml", tmp_path / "out"
    head, _, _ = TRAINED.partition("evaluation:")
    weaker = "verifier_steps: {teacher: annotations, rows_of: verifier_steps}"
    block = f"  weaker: {{{weaker}, adapters: {{of-it: {{recipe: smollm2-cpu}}}}}}"
    file.write_text(f"{head}blocks:\n{block}\n", encoding="utf-8")
    manifest = manifest_of(file)
    assert needs(file)["weaker"] == {"datasets", "verifier_steps"}
    said, lock = made(file, output, "weaker")
    home = output / "blocks" / "weaker"
    assert [recipe.dataset for recipe in recipes] == [str(home / "datasets/safe-verifier-steps")]
    own, its = (
        json.loads((place / "datasets" / "safe-verifier-steps" / STEPS_RECORD).read_text()) for place in (output, home)
    )
    told = its["rows_of"]
    number = sum(told["matched"].values())
    assert (told["rows"], told["teacher"]) == (own["rows"], own["teacher"])
    assert number + sum(told["lost"].values()) == own["rows"]
    assert number > own["rows"] / 2
    assert told["matched"]["id"] > 10
    assert its["seed"] == own["seed"] == manifest.seed
    assert f"that this teacher made: {number} of {own['rows']}" in said
    assert lock["counts"]["verifier-steps-weaker"]["rows"] == its["rows"]


def test_unverifiable_rows_join_those_of_the_release(tmp_path: Path) -> None:
    file = tmp_path / "trained.yaml"
    own = "verifier_steps: {rows: 30, ideal: 0.4, refined: 0}"
    teacher = '"openai:m@http://127.0.0.1:9/v1"'
    joined = f"verifier_steps: {{rows: 30, ideal: 0.4, unverifiable: true, teacher: {teacher}}}"
    file.write_text(TRAINED.replace(own, joined), encoding="utf-8")
    assert needs(file)["other-set"] == {"datasets", "verifier_steps"}
    (one,) = AdapterStage.of_block(release_of(file, tmp_path), "other-set")
    steps = "datasets/safe-verifier-steps"
    assert one.recipe.dataset == str(tmp_path / steps)
    assert one.recipe.plus == (str(tmp_path / "blocks" / "other-set" / steps),)


def test_each_block_has_its_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = '"openai:m@http://127.0.0.1:9/v1"'
    text = SWEEPS.replace("symbolic:error_rate=0.3", "x").replace('"x"', model)
    text = text.replace("generator: x", f"generator: {model}")
    file = tmp_path / "priced.yaml"
    file.write_text(text, encoding="utf-8")

    def told(*options: str) -> dict[str, list[str]]:
        regenerate.main([str(file), "--output", str(tmp_path / "out"), "--dry-run", *options])
        lines = capsys.readouterr().out.splitlines()
        return {line.split("  ")[0]: line.split() for line in lines if line}

    both = told()
    assert both["evaluate self_verification"][2:4] == ["3", f"{3 * 40}"]  # its own profile
    assert both["evaluate safe"][2:4] == ["3", f"{3 * 14}"]
    retries = 3 * 2 * (9 + (9 + 5 / 3))  # three questions, two K, N of 0 and 1
    assert both["sweep: evaluate safe"][3:5] == ["24", f"{(3 * 9) * 2 + 32 * 2}"]
    assert abs(int(both["sweep: evaluate safe"][4]) - retries) <= 2
    assert both["sweep"][1] == both["sweep: evaluate safe"][4]
    assert int(both["total"][1]) == sum(int(both[n][1]) for n in ("sweep", "forms")) + int(both["(no block)"][2])
    alone = told("--only", "forms")
    assert "sweep: evaluate safe" not in alone
    assert "evaluate safe" not in alone
    assert alone["forms: evaluate safe"][3:5] == ["6", f"{6 * 14}"]
    assert not (tmp_path / "out").exists()


def test_a_block_of_prompting_methods_is_priced_and_run(
    manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block = """
  prompting:
    evaluation:
      generator: "symbolic:error_rate=0.2"
      verifier: symbolic
      methods: [cot, sg_fsm2]
      samples: [1, 3]
      evidence: true
      limit: 3
"""
    manifest.write_text(SWEEPS.rstrip("\n") + block, encoding="utf-8")
    made(manifest, tmp_path / "out", "prompting")
    runs = results(tmp_path / "out" / "blocks" / "prompting")["runs"]
    told = [(run["method"], run["options"].get("samples")) for run in runs]
    assert told == [("cot", 1), ("cot", 3), ("sg_fsm2", None)]
    assert all(run["options"]["evidence"] for run in runs)
    text = manifest.read_text(encoding="utf-8").replace("symbolic:error_rate=0.2", "openai:m@http://127.0.0.1:9/v1")
    manifest.write_text(text, encoding="utf-8")
    capsys.readouterr()
    regenerate.main([str(manifest), "--output", str(tmp_path / "no"), "--dry-run"])
    lines = capsys.readouterr().out.splitlines()
    priced = next(line.split() for line in lines if line.startswith("prompting: evaluate cot"))
    assert priced[3:5] == ["6", f"{3 * (1 + 3)}"]


def test_what_was_asked_by_an_earlier_part_is_free(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = '"openai:m@http://127.0.0.1:9/v1"'
    text = f"""{BUILDS}
evaluation: {{generator: {model}, verifier: {model}, judge: {model}, limit: 5}}
blocks:
  more: {{evaluation: {{generator: {model}, verifier: {model}, judge: {model}, limit: 8,
    methods: [safe], max_steps: 10, max_retries: 3}}}}
  less: {{evaluation: {{generator: {model}, verifier: {model}, judge: {model}, limit: 2}}}}
  other: {{evaluation: {{generator: {model}, verifier: {model}, drop_gold: true, limit: 2}}}}
"""
    file = tmp_path / "priced.yaml"
    file.write_text(text, encoding="utf-8")
    regenerate.main([str(file), "--output", str(tmp_path / "out"), "--dry-run"])
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split("  ")[0]: line.split() for line in lines if ": " in line}
    assert rows["more: evaluate safe"][3] == "3"  # the defaults, said or not
    assert rows["more: judge"][2] == "3"
    assert rows["less: evaluate safe"][3] == "0"
    assert rows["less: judge"][2] == "0"
    assert rows["other: evaluate safe"][3] == "2"


def test_the_papers_are_covered() -> None:
    manifest = manifest_of(Path(regenerate.__file__).parent / "releases" / "paper.yaml")
    blocks = manifest.blocks
    generators = blocks["generators"].evaluation
    assert generators is not None
    assert len(generators.generator) == 5
    assert len(generators.methods) == 3
    sweep = blocks["sweep"].evaluation
    assert sweep is not None
    assert (sweep.max_steps, sweep.max_retries) == ((7, 10, 13), (1, 2, 3, 4, 5))
    trained = {(name, key): one.change for name, b in blocks.items() for key, one in b.adapters.items()}
    assert trained["drop-category", "no-attribution"] == {
        "filters.drop_category": "Attribution", "filters.drop_from_prompt": True
    }  # fmt: skip
    assert trained["synthetic-only", "synthetic"] == {"filters.origins": ["ideal", "injected"]}
    assert trained["missing-evidence", "incomplete"] == {"incomplete_evidence": True}
    for name in ("diagnosis", "guidance"):
        assert trained[f"{name}-only", name] == {"filters.feedback": name}
        evaluation = blocks[f"{name}-only"].evaluation
        assert evaluation is not None
        assert evaluation.feedback == (name,)
    assert len([key for key in trained if key[0] == "drop-category"]) == 3
    sets = {name: steps for name, steps in manifest.sets.items() if name in blocks}
    assert set(sets) == {"unverifiable", "weaker-teacher"}
    assert (sets["unverifiable"].rows, sets["unverifiable"].unverifiable) == (5_300, True)
    assert "gpt-oss-20b" in sets["weaker-teacher"].teacher
    assert (sets["weaker-teacher"].rows, sets["weaker-teacher"].rows_of) == (11_515, OWN_SET)
    followed = blocks["as-published"].evaluation
    assert followed is not None
    assert followed.as_published
    for name, searched in (("missing-evidence", True), ("missing-evidence-unsearched", False)):
        evaluation = blocks[name].evaluation
        assert evaluation is not None
        assert (evaluation.drop_gold, evaluation.corpus is not None) == (True, searched)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  sweep:\n", "  Sweep!:\n", r"blocks\.Sweep!: 'Sweep!' is no name for it"),
        ("  sweep:\n", "  evaluation:\n", r"blocks\.evaluation: 'evaluation' is no name"),
        ("  sweep:\n    evaluation:", "  sweep:\n    evaluatoin:", r"blocks\.sweep\.eval"),
        ("max_steps: [2, 10]", "max_step: [2]", r"blocks\.sweep\.evaluation\.max_step:"),
        ("max_steps: [2, 10]", "max_steps: [two]", r"sweep\.evaluation\.max_steps\[0\] is not a whole"),
        ("max_steps: [2, 10]", "max_steps: [true]", r"max_steps\[0\] is not a whole number"),
        ("max_steps: [2, 10]", "max_steps: 0", r"blocks\.sweep\.evaluation: --method safe: max_steps has to be 1"),
        ("feedback: [diagnosis, guidance]", "feedback: praise", r"forms\.evaluation: option: feedback is not one of"),
        ("drop_gold: true", "drop_gold: 1", r"drop_gold is not true or false"),
        ("drop_gold: true", "corpus: 3", r"forms\.evaluation\.corpus is not a path"),
        ("drop_gold: true", "on_exhausted: stop", r"on_exhausted is not one of accept, drop"),
        ("drop_gold: true", "tries_total: 1", r"tries_total\[0\] is not true or false"),
        ("drop_gold: true", "examples: generate", r"evaluation\.examples: 'generate' is not known"),
        ("drop_gold: true", "judge_without_question: true", r"without_question: there is no judge"),
        ("drop_gold: true", "max_retries: 0\n      as_published: true", r"max_retries counts trie"),
        ("methods: safe", "methods: sage", r"sweep\.evaluation\.methods 'sage'"),
        ('["symbolic:error_rate=0.3", "symb', '[3, "symb', r"generator\[0\] is not a text"),
        ("error_rate=0.5,seed=2", "error_rate=0.3", r"generator: name at least one, and each once"),
        ("symbolic\n      methods: safe", "vllm:m+{adapter}\n      methods: safe",
         r"blocks\.sweep\.evaluation\.verifier: \{adapter\} stands for no model of the release"),
    ],
)  # fmt: skip
def test_a_bad_block_names_file_and_key(manifest: Path, old: str, new: str, expected: str) -> None:
    assert old in SWEEPS
    manifest.write_text(SWEEPS.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        manifest_of(manifest)
    assert "small.yaml" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("other: {recipe: smollm2-cpu}", "report: {recipe: x}", r"adapters: 'report' is no"),
        ("drop_category: Logical", "drop: Logical", r"no-logical\.change: .*did you mean"),
        ("drop_category: Logical", "drop_category: Odd", r"no-logical\.change: .*Odd"),
        ("{other: {recipe: smollm2-cpu}}", "{}", r"other-set: add adapters \(who learn its"),
        ("{rows: 40, ideal", "{unverifiable: true, rows: 40, ideal", r"steps\.unverifiable"),
        ("ideal: 0.4, refined: 0}", "ideal: 0.4, unverifiable: true, refined: 3}",
         r"blocks\.other-set\.verifier_steps\.refined: such rows are of verified"),
        ("again: {evaluation: *loop}", "again: {}", r"blocks\.again: add adapters"),
        ("{rows: 30, ideal: 0.4, refined: 0}",
         "{rows: 30, refinement: {rows: 3, generator: symbolic, verifier: symbolic}}",
         r"other-set\.verifier_steps\.refinement: is of the release's own set alone"),
        ("{rows: 40, ideal: 0.5, refined: 0}", "{rows: 40, rows_of: verifier_steps}",
         r"verifier_steps\.rows_of: such a set is for one of the blocks"),
        ("{rows: 30, ideal: 0.4, refined: 0}", "{rows_of: datasets, teacher: annotations}",
         r"other-set\.verifier_steps\.rows_of 'datasets' is not known; .*choose from verifier_st"),
        ("{rows: 30, ideal: 0.4, refined: 0}", "{rows_of: verifier_steps, rows: 3}",
         r"other-set\.verifier_steps\.rows: is as in verifier_steps, whose rows these are; leave"),
        ("{rows: 30, ideal: 0.4, refined: 0}", "{rows_of: verifier_steps}", r"teacher is not there"),
        ("{rows: 30, ideal: 0.4, refined: 0}", "{rows_of: verifier_steps, teacher: [x]}",
         r"other-set\.verifier_steps\.teacher is not a text"),
        ("      no-logical: {recipe: smollm2-cpu,", "      no-logical: {recipe: nope,",
         r"blocks\.drop-category\.adapters\.no-logical\.recipe: there is no"),
    ],
)  # fmt: skip
def test_a_bad_adapter_of_a_block_names_its_key(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in TRAINED
    file = tmp_path / "trained.yaml"
    file.write_text(TRAINED.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=expected):
        manifest_of(file)


def test_a_corpus_that_is_not_here_stops_the_run_beforehand(
    manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest.write_text(SWEEPS.replace("drop_gold: true", "corpus: gone.jsonl"), encoding="utf-8")
    regenerate.main([str(manifest), "--output", str(tmp_path / "out"), "--dry-run"])
    assert "still owed: gone.jsonl is not here" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"gone\.jsonl is not here: .* build_corpus"):
        made(manifest, tmp_path / "out", "forms")
    assert not (tmp_path / "out").exists()
