from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import get_dataset_config_names, load_dataset

from builders.steps import build as verifier_steps
from builders.steps import chunks as step_chunks
from builders.steps import configs as step_configs
from builders.steps import leakage
from builders.steps.build import StepsBuild, build
from builders.steps.composition import Composition
from builders.steps.questions import open_verified
from builders.steps.skeletons import skeleton
from builders.verified.build import build as build_verified
from builders.verified.collect import Build
from builders.verified.teachers.annotations import AnnotationsTeacher
from cards import datasets
from cards.datasets import verifier_steps as card
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import parse_feedback
from safe_stepwise.methods.verifier import prompt_digest, verifier_request
from safe_stepwise.records import Passage
from safe_stepwise.steps import parse_step
from safe_stepwise.store import codec
from safe_stepwise.store.names import NOISE_LABELS, REFUSED, STEPS, VERIFIED, VERIFIER_STEPS
from safe_stepwise.taxonomy import ERROR_TYPES, MISSING_EVIDENCE, category, labels
from tests.makers.plausible import PlausibleMaker

ROOT = Path(__file__).parents[3]
CARDS = {VERIFIED: datasets.verified_multihop, NOISE_LABELS: datasets.noise_labels}


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("verified")
    for split, rows, seed in (("train", 160, 11), ("validation", 60, 12)):
        source = f"rows={rows},seed={seed},noise=0.15"
        plan = Build("synthetic", source, split, AnnotationsTeacher, output=output, evaluation_size=8)
        build_verified(plan, CARDS)
    return output


@pytest.fixture(scope="module")
def made(verified: Path, tmp_path_factory: pytest.TempPathFactory) -> StepsBuild:
    """A finished build; the tests that use it only look."""
    plan = plan_of(verified, tmp_path_factory.mktemp("made"))
    build(plan, PlausibleMaker(), card)
    return plan


def plan_of(verified: Path, output: Path, rows: int = 400, **changes: Any) -> StepsBuild:
    return StepsBuild(verified, Composition(rows, 120), output=output, **changes)


def load(plan: StepsBuild, *config: str) -> Any:
    cache = str(plan.output / "cache")
    return load_dataset(str(plan.output / VERIFIER_STEPS), *config, cache_dir=cache)


def record(plan: StepsBuild) -> dict[str, Any]:
    file = plan.output / VERIFIER_STEPS / "statistics" / "verifier_steps.json"
    return dict(json.loads(file.read_text(encoding="utf-8")))


def contents(output: Path) -> dict[str, bytes]:
    files = [f for f in (output / VERIFIER_STEPS).rglob("*") if f.is_file()]
    files.append(output / REFUSED)
    return {file.relative_to(output).as_posix(): file.read_bytes() for file in files}


# What comes out


def test_every_config_opens_with_its_columns(made: StepsBuild) -> None:
    folder = str(made.output / VERIFIER_STEPS)
    assert set(get_dataset_config_names(folder)) == set(step_configs.CONFIGS)
    for config in step_configs.CONFIGS:
        opened = load(made, config)
        assert set(opened) == {"train", "test"}
        for rows in opened.values():
            assert rows.features == step_configs.config_features(config)
    assert load(made)["train"].features == step_configs.config_features(STEPS)
    assert " ".join(load(made)["train"].features) == (
        "id benchmark question_id question passages previous_steps current_step step_kind "
        "error_type error_category diagnosis guidance query origin position teacher wording context"
    )


def test_rows_and_questions_are_what_was_asked_for(made: StepsBuild) -> None:
    opened = load(made)
    rows = [row for split in opened.values() for row in split]
    assert len(rows) == len({row["id"] for row in rows}) == 400
    assert len({row["question_id"] for row in rows}) == 120
    names = opened["train"].features
    origins = Counter(names["origin"].int2str(row["origin"]) for row in rows)
    assert origins == {"ideal": 136, "injected": 264}
    types = Counter(names["error_type"].int2str(row["error_type"]) for row in rows)
    assert {types[entry.name] for entry in ERROR_TYPES} == {26, 27}
    for row in rows:
        name = names["error_type"].int2str(row["error_type"])
        assert names["error_category"].int2str(row["error_category"]) == category(name)
        step = parse_step(row["current_step"])
        assert (step.number, step.kind) == (row["position"], row["step_kind"])
        assert len(row["previous_steps"]) == row["position"] - 1
        assert len(row["passages"]) == 10
        assert row["query"] is None
    assert made.work.exists() is False


def test_prompts_are_the_loops_and_completions_parse(made: StepsBuild) -> None:
    steps, pairs = load(made), load(made, "prompt_completion")
    for split in ("train", "test"):
        names = steps[split].features["error_type"]
        assert steps[split]["id"] == pairs[split]["id"]
        for row, pair in zip(steps[split], pairs[split], strict=True):
            passages = [Passage(p["title"], (p["text"],)) for p in row["passages"]]
            previous = [parse_step(text) for text in row["previous_steps"]]
            current = parse_step(row["current_step"])
            request = verifier_request(row["question"], passages, previous, current)
            asked = [{"role": m.role, "content": m.content} for m in request.messages]
            assert pair["prompt"] == asked
            (turn,) = pair["completion"]
            assert turn["role"] == "assistant"
            feedback = parse_feedback(turn["content"])
            assert feedback.error_type == names.int2str(row["error_type"])
            assert (feedback.diagnosis, feedback.guidance) == (row["diagnosis"], row["guidance"])


def test_rows_of_all_twelve_labels_are_rendered_as_the_loop_with_a_search_asks(made: StepsBuild) -> None:
    pairs = load(made, "missing_evidence_prompt_completion")
    said: set[str] = set()
    for split in ("train", "test"):
        rows = {
            row["id"]: row
            for config in ("steps", "missing_evidence", "missing_evidence_twins")
            for row in load(made, config)[split]
        }
        assert sorted(pairs[split]["id"]) == sorted(rows)
        assert pairs[split]["id"] != sorted(pairs[split]["id"])
        for pair in pairs[split]:
            row = rows[pair["id"]]
            passages = [Passage(p["title"], (p["text"],)) for p in row["passages"]]
            previous = [parse_step(text) for text in row["previous_steps"]]
            asked = verifier_request(row["question"], passages, previous, parse_step(row["current_step"]), True)
            assert pair["prompt"] == [{"role": m.role, "content": m.content} for m in asked.messages]
            feedback = parse_feedback(pair["completion"][0]["content"], incomplete_evidence=True)
            assert labels(True)[row["error_type"]] == feedback.error_type
            assert feedback.query == row["query"]
            said.add(feedback.error_type)
        # A mixture, of which a recipe may take the first rows.
        places = [n for n, id_ in enumerate(pairs[split]["id"]) if rows[id_]["query"]]
        middle = sum(places) / len(places) / len(pairs[split])
        assert 0.5 - 1 / len(places) ** 0.5 < middle < 0.5 + 1 / len(places) ** 0.5
    assert said == set(labels(True))
    found = record(made)
    assert found["missing_evidence_prompt_sha256"] == prompt_digest(incomplete_evidence=True)
    assert found["files"]["missing_evidence_prompt_completion"]["train"]["rows"] == len(pairs["train"])


def test_twins_have_a_config_of_their_own(made: StepsBuild) -> None:
    missing, twins = load(made, "missing_evidence"), load(made, "missing_evidence_twins")
    for split in ("train", "test"):
        names = twins[split].features["error_type"]
        assert {names.int2str(n) for n in twins[split]["error_type"]} == {"Information Miss"}
        assert sorted(twins[split]["current_step"]) == sorted(missing[split]["current_step"])
        assert not any(twins[split]["query"])
        assert record(made)["missing_evidence_twins"][split] == twins[split].num_rows
    assert record(made)["missing_evidence_probe"]["score"] == 0.5


def test_missing_evidence_has_its_own_config_and_the_same_splits(made: StepsBuild) -> None:
    steps, missing = load(made), load(made, "missing_evidence")
    assert MISSING_EVIDENCE not in steps["train"].features["error_type"].names
    for split in ("train", "test"):
        names = missing[split].features["error_type"]
        assert {names.int2str(n) for n in missing[split]["error_type"]} == {MISSING_EVIDENCE}
        assert set(missing[split]["question_id"]) <= set(steps[split]["question_id"])
        assert all(missing[split]["query"])


def questions_of(verified: Path) -> dict[str, Any]:
    found = {}
    for split in ("train", "validation"):
        folder = verified / VERIFIED / "data" / "synthetic_labeled"
        for file in folder.glob(f"{split}-*.parquet"):
            for row in pq.read_table(file).to_pylist():
                found[row["id"]] = codec.question_of(row, benchmark="synthetic", split=split)
    return found


def test_nothing_leaks_into_test_nor_from_the_evaluation_sample(made: StepsBuild, verified: Path) -> None:
    documents = {id_: leakage.document(q) for id_, q in questions_of(verified).items()}
    opened = load(made)
    train, test = set(opened["train"]["question_id"]), set(opened["test"]["question_id"])
    assert train
    assert test
    for one, other in product(train, test):
        assert not leakage.near(documents[one], documents[other])
    sample = next((verified / VERIFIED / "data" / "synthetic_eval").glob("*.parquet"))
    evaluated = pq.read_table(sample).column("id").to_pylist()
    assert len(evaluated) == 8
    for one, other in product(train | test, evaluated):
        assert not leakage.near(documents[one], documents[other])
    kept_out = record(made)["kept_out"]["synthetic"]
    assert kept_out["questions"] >= 8
    assert kept_out["rows"] > 8


def test_the_record_adds_up(made: StepsBuild, verified: Path) -> None:
    found = record(made)
    assert found["rows"] == sum(s["rows"] for s in found["splits"].values()) == 400
    assert sum(n for counts in found["positions"].values() for n in counts.values()) == 400
    assert sum(found["contexts"].values()) == 400
    types = found["types"]["synthetic"].values()
    assert sum(n for splits in types for n in splits.values()) == 400
    trajectories = found["trajectories"]["synthetic"]
    records = sorted((verified / VERIFIED / "statistics").glob("*.json"))
    verified_rows = [json.loads(file.read_text())["verified"] for file in records]
    assert trajectories == {"questions": sum(verified_rows), "passing": sum(verified_rows)}
    refused = [json.loads(line) for line in (made.output / REFUSED).read_text().splitlines()]
    reasons = Counter((r["error_type"], r["reason"].partition(":")[0]) for r in refused)
    counted = {(t, r): n for t, found_ in found["refused"].items() for r, n in found_.items()}
    assert counted == reasons
    assert {build["split"] for build in found["verified"]} == {"train", "validation"}


def test_rows_of_test_say_whether_their_wording_is_new(made: StepsBuild) -> None:
    found = record(made)["wordings"]
    for config in ("steps", "missing_evidence"):
        opened = load(made, config)
        names = opened["train"].features["wording"]
        assert names.names == ["seen", "unseen"]
        assert set(opened["train"]["wording"]) <= {0}
        counts = Counter(names.int2str(number) for number in opened["test"]["wording"])
        assert {name: counts[name] for name in names.names} == found[config]
    known = {
        skeleton(parse_step(text).text)
        for config in ("steps", "missing_evidence")
        for text in load(made, config)["train"]["current_step"]
    }
    for row in load(made)["test"]:
        step = parse_step(row["current_step"])
        if step.kind != "Final Answer":
            assert (skeleton(step.text) not in known) == row["wording"]


def test_steps_of_test_that_stand_in_train_are_taken_out(made: StepsBuild, tmp_path: Path) -> None:
    plan = replace(made, output=tmp_path)
    build(plan, PlausibleMaker(alike="Redundancy"), card, lambda _: None)
    found, opened = record(plan), load(plan)
    names = opened["train"].features["error_type"]
    types = [names.int2str(number) for number in opened["test"]["error_type"]]
    assert "Redundancy" not in types
    assert "Off-topic" in types
    assert found["overlap"]["steps"] > 0
    assert found["rows"] == opened["train"].num_rows + len(types)
    assert found["rows"] + found["overlap"]["steps"] == 400
    assert found["splits"]["test"]["rows"] == len(types)
    assert load(plan, "prompt_completion")["test"].num_rows == len(types)
    train = {" ".join(parse_step(t).text.casefold().split()) for t in opened["train"]["current_step"]}
    for text in opened["test"]["current_step"]:
        step = parse_step(text)
        same = " ".join(step.text.casefold().split()) in train
        assert not same or step.kind == "Final Answer"
    text = (plan.output / VERIFIER_STEPS / "README.md").read_text(encoding="utf-8")
    assert f"(final answers are exempt): {found['overlap']['steps']} rows" in text


def test_what_probes_reach_is_recorded_and_warned_of(made: StepsBuild, tmp_path: Path) -> None:
    step, both, evidence, *overlaps = record(made)["probes"]
    assert step["rows"] == both["rows"] == 400
    # This maker's errors say what they are.
    assert step["score"] > 0.9
    assert evidence["score"] > 0.9
    above = [probe for probe in (step, both, evidence, *overlaps) if probe["score"] > probe["aim"]]
    said: list[str] = []
    plan = replace(made, output=tmp_path)
    build(plan, PlausibleMaker(), card, said.append)
    assert sum("can be labelled" in line for line in said) == len(above) >= 3
    assert contents(tmp_path) == contents(made.output)


def test_no_question_has_more_rows_than_it_may(made: StepsBuild, tmp_path: Path) -> None:
    composition = Composition(300, 120, rows_per_question=3)
    plan = replace(made, output=tmp_path, composition=composition)
    build(plan, PlausibleMaker(), card)
    counts = Counter(name for part in load(plan).values() for name in part["question_id"])
    assert (len(counts), max(counts.values())) == (120, 3)
    assert record(plan)["per_question"] == {"mean": 2.5, "most": 3}
    assert record(plan)["composition"]["rows_per_question"] == 3


# Same bytes


def test_same_bytes_for_any_number_of_workers(
    made: StepsBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builders.steps.chunks.CHUNK_QUESTIONS", 30)
    build(replace(made, output=tmp_path, workers=2), PlausibleMaker(), card)
    assert contents(tmp_path) == contents(made.output)


KILLED = """
import sys
from pathlib import Path
from builders.steps import chunks as step_chunks
from builders.steps.composition import Composition
from builders.steps.build import StepsBuild, build
from cards.datasets import verifier_steps as card
from tests.makers.plausible import PlausibleMaker
step_chunks.CHUNK_QUESTIONS = 20
step_chunks.code_digest = lambda *modules: sys.argv[4]
plan = StepsBuild(Path(sys.argv[1]), Composition(400, 120), output=Path(sys.argv[2]))
build(plan, PlausibleMaker(pause=float(sys.argv[3])), card)
"""


def test_killed_at_once_it_resumes_to_the_same_bytes(
    made: StepsBuild, verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", KILLED, str(verified), str(tmp_path), "0.3"]
    # Of this process, so that whoever edits a file while the tests run changes nothing.
    monkeypatch.setattr(step_chunks, "code_digest", lambda *modules: "of this process")
    command.append("of this process")
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    shards = tmp_path / ".work" / "verifier-steps" / "shards"
    while len(list(shards.glob("*.arrow"))) < 2:
        assert process.poll() is None, "the build ended before it could be killed"
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not (tmp_path / VERIFIER_STEPS).exists()
    kept = {file.name for file in shards.glob("*.arrow")}
    assert 2 <= len(kept) < 9

    asked: list[str] = []

    class Counting(PlausibleMaker):
        def make(self, question: Any, label: Any) -> Any:
            asked.append(question.id)
            return super().make(question, label)

    monkeypatch.setattr("builders.steps.chunks.CHUNK_QUESTIONS", 20)
    made_by_now = len(kept) * 20
    build(replace(made, output=tmp_path), Counting(), card)
    assert len(asked) <= record(made)["trajectories"]["synthetic"]["questions"] - made_by_now + 20
    assert contents(tmp_path) == contents(made.output)


def test_a_torn_shard_is_made_again(made: StepsBuild, tmp_path: Path,
                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    plan = replace(made, output=tmp_path)

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(verifier_steps, "choose", stop)
        with pytest.raises(KeyboardInterrupt):
            build(plan, PlausibleMaker(), card)
    first, *_ = sorted((plan.work / "shards").iterdir())
    first.write_bytes(first.read_bytes()[:200])
    build(plan, PlausibleMaker(), card)
    assert contents(tmp_path) == contents(made.output)


def test_a_second_build_replaces_the_first(made: StepsBuild, tmp_path: Path) -> None:
    small = replace(made, output=tmp_path, composition=Composition(100))
    build(small, PlausibleMaker(), card)
    assert load(small)["train"].num_rows + load(small)["test"].num_rows == 100
    build(replace(small, composition=made.composition), PlausibleMaker(), card)
    assert contents(tmp_path) == contents(made.output)


# What is refused


def test_rows_that_are_not_valid_are_counted_rejects(made: StepsBuild, tmp_path: Path) -> None:
    plan = replace(made, output=tmp_path)
    build(plan, PlausibleMaker(broken="Nonsense"), card)
    refused = record(plan)["refused"]
    questions = record(plan)["trajectories"]["synthetic"]["questions"]
    assert refused[""]["the same row again"] == questions
    assert refused[""]["not a valid row"] == questions
    lines = (plan.output / REFUSED).read_text().splitlines()
    assert any("unknown label 'Nonsense'" in line for line in lines)


def test_two_labels_for_one_step_are_both_refused(verified: Path) -> None:
    pair = next(open_verified(verified, "v0.1.0").questions("synthetic", "train"))
    question, label = pair.sample(0)
    rows = PlausibleMaker().make(question, label).rows
    twin = replace(rows[0], origin="injected", feedback=replace(rows[0].feedback, error_type="Off-topic"))
    kept, refused = step_chunks._check_rows([*rows, twin])
    assert {row.id for row in kept} == {row.id for row in rows[1:]}
    assert {one.reason for one in refused} == {"two labels for one step: Correct, Off-topic"}


def without_paths(verified: Path, output: Path) -> Path:
    """A copy of the verified set in which every second path is empty."""
    subprocess.run(["cp", "-r", str(verified), str(output)], check=True)
    for file in (output / VERIFIED / "data" / "synthetic_labeled").glob("*.parquet"):
        table = pq.read_table(file)
        rows = table.to_pylist()
        for row in rows[::2]:
            row["reasoning_path"] = []
        pq.write_table(type(table).from_pylist(rows, schema=table.schema), file)
    return output


def test_questions_without_a_path_are_counted_rejects(verified: Path, tmp_path: Path) -> None:
    source = without_paths(verified, tmp_path / "verified")
    plan = StepsBuild(source, Composition(100), output=tmp_path / "out")
    statistics = build(plan, PlausibleMaker(), card)
    seen = statistics["trajectories"]["synthetic"]
    assert statistics["refused"][""]["no path"] == seen["questions"] - seen["passing"] > 0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"composition": Composition(1_000_000)}, r"1,000,000 rows are wanted, but only [\d,]+ could"),
        ({"composition": Composition(900, 900)}, r"900 questions are wanted, but only \d+"),
        ({"benchmarks": ("musique",)}, "holds no musique, only synthetic"),
        ({"version": "v9.0.0"}, r"is version v0\.1\.0, but this build is v9\.0\.0; add --version"),
        ({"test_share": 0.0}, "a share lies between 0 and 1"),
    ],
)
def test_mistakes_are_user_errors(made: StepsBuild, tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    plan = replace(made, output=tmp_path, **changes)
    with pytest.raises(UserError, match=expected):
        build(plan, PlausibleMaker(), card)
    assert not (tmp_path / VERIFIER_STEPS).exists()


def test_folders_that_are_no_verified_set(made: StepsBuild, verified: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no safe-verified-multihop in it"):
        build(replace(made, verified=tmp_path / "no", output=tmp_path / "o"), PlausibleMaker(), card)
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(verified), str(copy)], check=True)
    (file,) = (copy / VERIFIED / "data" / "synthetic_labeled").glob("train-*.parquet")
    table = pq.read_table(file)
    pq.write_table(table.drop_columns(["teacher"]), file)
    plan = replace(made, verified=copy, output=tmp_path / "o")
    with pytest.raises(UserError, match=r"label\.teacher is not there"):
        build(plan, PlausibleMaker(), card)
    file.write_bytes(b"PAR1 nonsense")
    with pytest.raises(UserError, match="cannot be read"):
        build(plan, PlausibleMaker(), card)


def test_a_fault_of_the_maker_names_the_chunk(made: StepsBuild, tmp_path: Path) -> None:
    os.environ["PLAUSIBLE_FAULT"] = "1"
    try:
        with pytest.raises(ZeroDivisionError) as caught:
            build(replace(made, output=tmp_path), PlausibleMaker(), card)
    finally:
        del os.environ["PLAUSIBLE_FAULT"]
    assert "synthetic-train" in caught.value.__notes__[0]


def test_the_pool_limits_what_is_tried(made: StepsBuild, tmp_path: Path) -> None:
    plan = replace(made, output=tmp_path, composition=Composition(50), pool=15)
    statistics = build(plan, PlausibleMaker(), card)
    assert statistics["trajectories"]["synthetic"]["questions"] == 30
