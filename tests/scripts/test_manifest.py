from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from builders.steps.composition import ROWS_PER_QUESTION, Composition
from builders.verified.teachers.annotations import AnnotationsTeacher
from evaluators.run.options import Options
from releases.manifest import EvaluationEntry
from releases.stages import datasets, verifier_steps
from releases.stages.datasets import DatasetsStage
from safe_stepwise import prompts
from safe_stepwise.commands.options import copy_into
from safe_stepwise.engines.base import AS_PROMPTED, Allowance, Effort
from safe_stepwise.errors import UserError
from safe_stepwise.methods.limits import Limits
from safe_stepwise.store.names import LOCK
from scripts import refine_verifier_steps, regenerate
from tests.makers.manifests import manifest_of, release_of
from tests.makers.plausible import PlausibleMaker

RELEASES = Path(__file__).parents[2] / "scripts" / "releases"
MANIFEST = """\
version: v0.1.0
seed: 4
evaluation_size: 3
builds:
  - benchmark: synthetic
    input: rows=40,seed=1,noise=0.1
    split: train
  - benchmark: synthetic
    input: rows=20,seed=2,noise=0.1
    split: validation
verifier_steps:
  rows: 60
  questions: 20
  ideal: 0.5
  refined: 0
  per_benchmark:
    synthetic: {rows: 60, questions: 20}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(MANIFEST, encoding="utf-8")
    return file


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_steps_are_built_after_the_builds_and_locked(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier_steps, "resolve_maker", lambda *_, **__: PlausibleMaker())
    said = regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    assert "safe-verifier-steps" in said
    lock = json.loads((tmp_path / "out" / LOCK).read_text(encoding="utf-8"))
    counts = lock["counts"]["verifier-steps"]
    assert (counts["rows"], counts["questions"]) == (60, 20)
    name = "datasets/safe-verifier-steps/statistics/verifier_steps.json"
    assert name in lock["files"]
    assert not (tmp_path / "out" / "datasets" / ".work").exists()
    assert "complete and unchanged" in regenerate.regenerate(manifest, tmp_path / "out")
    regenerate.regenerate(manifest, tmp_path / "again", workers=2)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_refined_rows_come_from_a_file_beside_the_manifest(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    refine_verifier_steps.main(
        f"--verified {tmp_path / 'out'} --generator symbolic:error_rate=0.3,seed=1 --rows 9 "
        f"--verifier symbolic:error_rate=0.3,seed=2 --teacher annotations --seed 4 "
        f"--cache {tmp_path / 'cache.sqlite'} --output {tmp_path / 'refined'}".split()
    )
    text = MANIFEST.replace("  refined: 0", "  refined: 9\n  refined_from: refined/refined.jsonl")
    manifest.write_text(text, encoding="utf-8")
    regenerate.regenerate(manifest, tmp_path / "again", workers=1)
    lock = json.loads((tmp_path / "again" / LOCK).read_text(encoding="utf-8"))
    origins = lock["counts"]["verifier-steps"]["origins"]
    assert sum(of["refined"] for of in origins.values()) == 9
    (tmp_path / "refined" / "refined.jsonl").unlink()
    with pytest.raises(UserError, match=r"refined\.jsonl: cannot be read"):
        regenerate.regenerate(manifest, tmp_path / "third", workers=1)
    assert not (tmp_path / "third").exists()


def test_refined_rows_without_a_number_are_all_of_the_file(manifest: Path) -> None:
    manifest.write_text(MANIFEST.replace("  refined: 0", "  refined_from: a.jsonl"))
    steps = manifest_of(manifest).verifier_steps
    assert steps is not None
    assert (steps.refined_from, steps.refined) == (manifest.parent / "a.jsonl", None)


def test_the_maker_gets_the_options_and_is_checked_before_any_work(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(PlausibleMaker):
        def check(self) -> None:
            raise UserError("no server answers")

        def close(self) -> None:
            closed.append(self.name)

    seen: list[Any] = []
    asked: list[Any] = []
    closed: list[str] = []

    def teacher(spec: str, **options: Any) -> type[AnnotationsTeacher]:
        asked.append((spec, options))
        return AnnotationsTeacher

    def known(*what: Any, **options: Any) -> PlausibleMaker:
        seen.append((what, options))
        return Broken()

    monkeypatch.setattr(verifier_steps, "resolve_maker", known)
    monkeypatch.setattr(datasets, "resolve_teacher", teacher)
    command = [str(manifest), "--output", str(tmp_path / "out"), "--in-flight", "3"]
    with pytest.raises(UserError, match="no server answers"):
        regenerate.main([*command, "--cache", "here.sqlite"])
    assert seen == [((AnnotationsTeacher, 4), {"unverifiable": False, "prompts": "paper", "planners": "structure"})]
    named = [one for one in asked if "option" not in one[1]]  # not only looked at
    beside = [options.pop("lists", None) for _, options in named]
    assert {options.pop("adjudicator", None) for _, options in named} == {None}
    assert beside == [manifest.parent, manifest.parent, None]  # of builds, not of steps
    how = {"cache": Path("here.sqlite"), "in_flight": 3, "timeout": None, "allowance": AS_PROMPTED}
    assert named == 3 * [("annotations", how)]
    assert closed  # what was opened to look
    assert not (tmp_path / "out" / "datasets" / "safe-verified-multihop").exists()


BY_ROLE = "max_tokens: {path: 4096, inject: 99}\nreasoning_effort: {path: low, judge: high}\n"


def allowed(manifest: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> list[Allowance]:
    """What those who are asked in a release's making are given, in their order."""
    asked: list[Allowance] = []

    def teacher(spec: str, allowance: Allowance = AS_PROMPTED, **how: Any) -> Any:
        if "option" not in how:  # else it is only looked at
            asked.append(allowance)
        return AnnotationsTeacher

    monkeypatch.setattr(datasets, "resolve_teacher", teacher)
    monkeypatch.setattr(verifier_steps, "resolve_maker", lambda *_, **__: PlausibleMaker())
    regenerate.regenerate(manifest, output, workers=1)
    return asked


def test_limits_and_efforts_go_to_those_who_ask_in_these_roles(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest.write_text(MANIFEST + BY_ROLE, encoding="utf-8")
    efforts: dict[str, Effort] = {"path": "low", "judge": "high"}
    read = manifest_of(manifest)
    assert read.allowance == Allowance.by_role({"path": 4096, "inject": 99}, efforts)
    asked = allowed(manifest, tmp_path / "out", monkeypatch)
    path, inject = Allowance.by_role({"path": 4096}, {"path": "low"}), Allowance.by_role({"inject": 99})
    assert asked == [path, path, inject]


def test_examples_go_to_the_builders_that_are_named_and_not_to_evaluations(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest.write_text(MANIFEST + "examples: [extract, inject]\n", encoding="utf-8")
    read = manifest_of(manifest)
    asked = allowed(manifest, tmp_path / "out", monkeypatch)
    extract, inject = prompts.examples(["extract"]), prompts.examples(["inject"])
    assert [dict(one.examples or ()) for one in asked] == [extract, extract, inject]
    assert set(extract) == {"extract", "glean"}
    entry = EvaluationEntry(("symbolic",), ("symbolic",), ("safe",))
    assert entry.allowed(read.allowance) == Allowance()
    shown = replace(entry, examples=("judge",)).allowed(read.allowance)
    assert dict(shown.examples or ()) == prompts.examples(["judge"])
    for said in ("[verify]", "[nobody]"):
        manifest.write_text(f"{MANIFEST}examples: {said}\n", encoding="utf-8")
        with pytest.raises(UserError, match=r"examples\[0\] is not one of extract, path, inject"):
            manifest_of(manifest)


def test_an_evaluation_may_follow_the_papers() -> None:
    ours = EvaluationEntry(("g",), ("v",), ("safe",), judge="j")
    theirs = replace(ours, as_published=True, last_rejected=(False,))

    def followed(entry: EvaluationEntry) -> tuple[dict[str, Any], list[str]]:
        options = copy_into(
            Options, entry, questions="", output=Path(), method=entry.methods, allowance=entry.allowed(AS_PROMPTED)
        )
        ((_, _, values),) = options.combinations()
        changed = {name: value for name, value in asdict(values).items() if value != asdict(Limits())[name]}
        return changed, [role for role, _ in options.allowed.examples or ()]

    assert followed(ours) == ({}, [])
    choices = {"tries_total": True, "accepted_diagnosis": True, "answer_when_told": True}
    assert followed(theirs) == (choices, ["judge", "verify"])
    assert followed(replace(theirs, examples=())) == (choices, [])


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("max_tokens: {pth: 4096}", r"max_tokens: 'pth' is not known; did you mean path\?"),
        ("max_tokens: {path: many}", r"max_tokens\.path is not a whole number"),
        ("max_tokens: {path: 0}", r"max_tokens\.path: has to be a whole number"),
        ("max_tokens: {path: true}", r"max_tokens\.path is not a whole number"),
        ("max_tokens: 4096", "max_tokens is not an object"),
        ("reasoning_effort: {path: hard}", r"reasoning_effort\.path: 'hard' is not known"),
    ],
)
def test_a_limit_that_is_none_is_one_line(manifest: Path, said: str, expected: str) -> None:
    manifest.write_text(f"{MANIFEST}{said}\n", encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        manifest_of(manifest)
    assert "\n" not in str(caught.value)


def test_steps_that_the_manifest_does_not_name(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier_steps, "resolve_maker", lambda *_, **__: PlausibleMaker())
    regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    (tmp_path / "out" / LOCK).unlink()
    manifest.write_text(MANIFEST.partition("verifier_steps:")[0], encoding="utf-8")
    with pytest.raises(UserError, match="holds safe-verifier-steps"):
        regenerate.regenerate(manifest, tmp_path / "out", workers=1)


def test_the_papers_composition_is_a_manifest() -> None:
    manifest = manifest_of(RELEASES / "paper.yaml")
    assert manifest.version == "v1.0.0"
    assert manifest.evaluation_size == 1_000
    assert len(manifest.builds) == 6
    assert manifest.verifier_steps is not None
    assert manifest.verifier_steps.composition == Composition(
        rows=11_515,
        questions=5_060,
        ideal=0.339,
        refined=848,
        per_benchmark={"2wikimultihopqa": (5_476, 2_292), "hotpotqa": (3_063, 1_330), "musique": (2_976, 1_438)},
    )


def test_a_manifest_may_cap_the_rows_of_a_question(manifest: Path) -> None:
    steps = manifest_of(manifest).verifier_steps
    assert steps is not None
    assert steps.composition.rows_per_question == ROWS_PER_QUESTION
    manifest.write_text(MANIFEST.replace("refined: 0", "refined: 0\n  rows_per_question: 3"))
    steps = manifest_of(manifest).verifier_steps
    assert steps is not None
    assert steps.composition.rows_per_question == 3
    manifest.write_text(MANIFEST.replace("refined: 0", "refined: 0\n  rows_per_question: 2"))
    with pytest.raises(UserError, match="20 questions with at most 2 rows each are too few"):
        manifest_of(manifest)


def test_the_demo_has_steps() -> None:
    steps = manifest_of(RELEASES / "demo.yaml").verifier_steps
    assert steps is not None
    assert steps.teacher == "annotations"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  rows: 60\n", "", r"verifier_steps\.rows is not there"),
        ("  rows: 60\n", "  row: 60\n", r"verifier_steps\.row: .*did you mean rows"),
        ("ideal: 0.5", "ideal: half", r"verifier_steps\.ideal is not a number"),
        ("ideal: 0.5", "ideal: 5", "between 0 and 1"),
        ("questions: 20\n  ideal", "questions: 19\n  ideal", "per_benchmark sums to"),
        ("    synthetic: {", "    musique: {", r"per_benchmark 'musique' is not known"),
        ("{rows: 60, questions: 20}", "{rows: 60}", r"per_benchmark\.synthetic\.questions is not there"),
        ("  refined: 0", "  refined_from: 3", r"refined_from is not a path"),
        ("  refined: 0", "  teacher: gpt", r"verifier_steps\.teacher"),
        ("input: rows=20", "input: rowz=20", r"builds\[1\]\.input: synthetic spec .*: rowz: is not a setting"),
        ("  refined: 0", "  pool: 0", r"verifier_steps\.pool: has to be a whole number from 1 on"),
        ("  refined: 0", "  test_share: 1.0", r"test_share: has to be a share above 0 and below 1"),
    ],
)
def test_a_bad_entry_names_file_and_key(manifest: Path, old: str, new: str, expected: str) -> None:
    assert old in MANIFEST
    manifest.write_text(MANIFEST.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        manifest_of(manifest)
    assert "small.yaml" in str(caught.value)


def test_files_of_a_benchmark_of_ones_own_lie_beside_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("mine")
    folder.mkdir()
    (folder / "refs.bib").write_text("@misc{mine}\n")
    row = {"question": "Where is Oru?", "answer": "Marn", "passages": [{"title": "Oru", "text": "Oru lies in Marn."}]}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "own.yaml").write_text(
        "version: v0.1.0\nseed: 1\nbuilds:\n  - {benchmark: mine, input: rows.jsonl, split: validation, "
        "own: {citation: refs.bib}}\n"
    )
    (build,) = DatasetsStage(release_of(folder / "own.yaml"), "datasets").builds
    assert build.own_benchmark is not None
    assert build.own_benchmark.citation.strip() == "@misc{mine}"
