"""Whole builds: with rows of refinement, and with a model that fails or is not there."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from builders.steps.build import StepsBuild, build
from builders.steps.chunks import NOT_IN_POOL, OTHER_PASSAGES
from builders.steps.composition import Composition
from builders.steps.making import AnnotationsMaker
from builders.steps.model import ModelMaker
from builders.steps.questions import open_verified
from builders.steps.refined import REFINED, line_of, read_refined
from builders.steps.refinement import Refinement, refine
from builders.steps.rows import StepRow
from builders.steps.statistics import Record
from builders.verified.teachers.llm import LLMTeachers
from cards.datasets import verifier_steps as card
from safe_stepwise.engines import client
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.open import open_engine
from safe_stepwise.records import Feedback, Step
from safe_stepwise.store import codec
from safe_stepwise.store import progress as bars
from safe_stepwise.store.names import REQUEST_FAILED, VERIFIER_STEPS
from scripts import build_verified
from tests.makers.plausible import PlausibleMaker
from tests.servers.openai_server import MockServer
from tests.servers.steps import Pair, Truth


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    for split, number in (("train", 120), ("validation", 25)):
        build_verified.main(
            f"--benchmark synthetic --input rows={number},seed=3,noise=0.1 --split {split} "
            f"--teacher annotations --output {folder} --workers 1 --evaluation-size 6".split()
        )
    return folder


@pytest.fixture(scope="module")
def mined(verified: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What refinement with a verifier that errs in 3 of 10 steps found."""
    output = tmp_path_factory.mktemp("refined")
    generator, verifier = (Client(open_engine(f"symbolic:error_rate=0.3,seed={seed}")) for seed in (1, 2))
    refine(Refinement(verified, output, max_rows=60), generator, verifier, None)
    return output / REFINED


def built(
    verified: Path, output: Path, composition: Composition, **changes: Any
) -> tuple[Record, list[dict[str, Any]]]:
    plan = StepsBuild(verified, composition, output=output, **changes)
    statistics = build(plan, AnnotationsMaker(plan.seed), card)
    opened = load_dataset(str(output / VERIFIER_STEPS), cache_dir=str(output / "cache"))
    origin = opened["train"].features["origin"].int2str
    type_ = opened["train"].features["error_type"].int2str
    found = [
        {**row, "split": split, "origin": origin(row["origin"]), "label": type_(row["error_type"])}
        for split, content in opened.items()
        for row in content
    ]
    return statistics, found


def reasons(output: Path) -> Counter[str]:
    lines = (output / "refused.jsonl").read_text(encoding="utf-8").splitlines()
    return Counter(json.loads(line)["reason"] for line in lines)


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in (folder / VERIFIER_STEPS).rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


# Refinement


def test_as_many_refined_rows_come_out_as_are_wanted(verified: Path, mined: Path, tmp_path: Path) -> None:
    wanted = Composition(300, 80, refined=40)
    statistics, found = built(verified, tmp_path, wanted, refined=mined, test_share=0.3)
    known = {row.id: row for row in read_refined(mined)}
    refined = [row for row in found if row["origin"] == "refined"]
    assert len(refined) == 40
    assert "refined" not in statistics["shortfalls"].get("synthetic", {})
    assert Counter(row["origin"] for row in found) == {"ideal": 102, "injected": 158, "refined": 40}
    assert statistics["benchmarks"]["synthetic"]["refined"] == 40
    for row in refined:
        was = known[row["id"]]
        assert row["label"] == was.feedback.error_type
        assert (row["diagnosis"], row["guidance"]) == (was.feedback.diagnosis, was.feedback.guidance)
        assert row["question_id"] == was.question.id
        titles = [passage["title"] for passage in row["passages"]]
        assert titles == [passage.title for passage in was.question.passages]
    # By question: none has refined rows on one side and others on the other.
    splits: dict[str, set[str]] = {}
    for row in found:
        splits.setdefault(row["question_id"], set()).add(row["split"])
    assert all(len(names) == 1 for names in splits.values())
    assert {row["split"] for row in refined} == {"train", "test"}
    readme = (tmp_path / VERIFIER_STEPS / "README.md").read_text(encoding="utf-8")
    assert "60 such rows were given to the build in refined.jsonl" in readme
    assert "**simulated**: an engine without a model" in readme
    assert statistics["refined"] is not None
    assert (statistics["refined"]["rows"], statistics["refined"]["simulated"]) == (60, True)


def test_what_refinement_falls_short_of_is_said_and_others_stand_in(
    verified: Path, mined: Path, tmp_path: Path
) -> None:
    wanted = Composition(300, refined=100)
    statistics, found = built(verified, tmp_path, wanted, refined=mined)
    there = sum(row["origin"] == "refined" for row in found)
    assert 50 < there <= 60
    assert statistics["shortfalls"]["synthetic"]["refined"] == 100 - there
    assert len(found) == 300


def test_without_a_number_all_of_them_come_out_in_the_same_bytes(verified: Path, mined: Path, tmp_path: Path) -> None:
    wanted = Composition(300, refined=None)
    _, found = built(verified, tmp_path / "one", wanted, refined=mined)
    assert sum(row["origin"] == "refined" for row in found) > 50
    built(verified, tmp_path / "two", wanted, refined=mined, workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    plain, _ = built(verified, tmp_path / "three", wanted)
    assert plain["refined"] is None
    assert plain["benchmarks"]["synthetic"]["refined"] == 0


def test_rows_of_other_passages_or_questions_are_refused(verified: Path, mined: Path, tmp_path: Path) -> None:
    first, *rest = read_refined(mined)
    stranger = replace(first, question=replace(first.question, id="elsewhere"))
    other = replace(first, question=replace(first.question, benchmark="musique"))
    file = tmp_path / "file.jsonl"
    file.write_text("".join(map(line_of, [stranger, other, *rest])), encoding="utf-8")
    wanted = Composition(100, refined=5)
    statistics, found = built(verified, tmp_path / "one", wanted, refined=file)
    assert reasons(tmp_path / "one")[NOT_IN_POOL] == 2
    assert sum(row["origin"] == "refined" for row in found) == 5
    assert statistics["refined"] is not None
    assert (statistics["refined"]["file"], statistics["refined"]["simulated"]) == ("file.jsonl", None)
    _, found = built(verified, tmp_path / "two", wanted, refined=mined, seed=1)
    assert reasons(tmp_path / "two")[OTHER_PASSAGES] >= 50
    few = [row for row in found if row["origin"] == "refined"]
    assert len(few) < 5
    _, found = built(verified, tmp_path / "three", Composition(20, refined=5), refined=mined, pool=5)
    assert reasons(tmp_path / "three")[NOT_IN_POOL] > 40


def test_no_refined_row_of_the_evaluation_sample_comes_in(verified: Path, tmp_path: Path) -> None:
    sample = next((verified / "safe-verified-multihop/data/synthetic_eval").glob("*.parquet"))
    asked = [
        codec.question_of(row, benchmark="synthetic", split="validation") for row in pq.read_table(sample).to_pylist()
    ]
    step, said = Step(1, "Oru.", "Attribution"), Feedback("Off-topic", "Why.", "Then.")
    leaks = [StepRow(question, (), step, said, "refined", "someone") for question in asked]
    file = tmp_path / "file.jsonl"
    file.write_text("".join(map(line_of, leaks)), encoding="utf-8")
    _, found = built(verified, tmp_path / "out", Composition(100, refined=None), refined=file)
    refused = tmp_path / "out" / "refused.jsonl"
    assert not refused.exists() or OTHER_PASSAGES not in reasons(tmp_path / "out")
    assert not {row["question_id"] for row in found} & {question.id for question in asked}


def test_a_file_that_cannot_be_read_is_a_mistake(verified: Path, tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    for text, expected in ((None, "cannot be read"), ("{}\n", "line 1: is no refined row")):
        if text is not None:
            file.write_text(text)
        with pytest.raises(UserError, match=expected):
            built(verified, tmp_path / "out", Composition(100), refined=file)


# A maker with a model


@dataclass(frozen=True)
class Noting(PlausibleMaker):
    """Notes when it is checked and closed; ``bad`` says why it can't work."""

    bad: str = ""
    calls: list[str] = field(default_factory=list)

    def check(self) -> None:
        self.calls.append("check")
        if self.bad:
            raise UserError(self.bad)

    def make_all(self, questions: Any) -> Any:
        self.calls.append("make")
        return super().make_all(questions)

    def progress(self) -> str:
        return "requests: done 7"

    def close(self) -> None:
        self.calls.append("close")


def test_a_maker_is_checked_first_and_closed_last(verified: Path, tmp_path: Path) -> None:
    maker = Noting(bad="no server answers")
    plan = StepsBuild(verified, Composition(100), output=tmp_path)
    with pytest.raises(UserError, match="no server answers"):
        build(plan, maker, card)
    assert maker.calls == ["check", "close"]
    maker = Noting()
    build(plan, maker, card)
    assert (maker.calls[0], maker.calls[-1]) == ("check", "close")
    assert set(maker.calls[1:-1]) == {"make"}


def test_the_bar_ends_with_all_counts_on_a_line_of_its_own(
    verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bars, "AFTER_S", 0.05)
    plan = StepsBuild(verified, Composition(100), output=tmp_path)
    made = build(plan, Noting(pause=0.1), card)
    bar = capsys.readouterr().err
    assert bar.endswith("\n")
    last = bar.rstrip("\n").split("\r")[-1]
    number = made["trajectories"]["synthetic"]["questions"]
    refused = sum(number for reasons in made["refused"].values() for number in reasons.values())
    assert f"{number}/{number}" in last
    assert f"done {number} cached 0 refused {refused} owed 0; requests: done 7" in last
    with pytest.raises(UserError):
        build(replace(plan, composition=Composition(10**6)), Noting(pause=0.1), card)
    assert capsys.readouterr().err.endswith("\n")


def asked_of(verified: Path) -> tuple[Pair, ...]:
    opened = open_verified(verified, "v0.1.0")
    return tuple(pair.sample(0) for split in ("train", "validation") for pair in opened.questions("synthetic", split))


def test_only_what_failed_is_asked_again(verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ended short, its work kept: some chunks hold refusals that are still owed."""
    truth = Truth(asked_of(verified))
    plan = StepsBuild(verified, Composition(100_000), output=tmp_path / "out", workers=2)
    with MockServer(truth, fault_rate=0.3, faults=("500", "reset")) as server, monkeypatch.context() as impatient:
        impatient.setattr(client, "TRIES", 1)
        maker = ModelMaker(LLMTeachers(server.spec, tmp_path / "one.sqlite", open_engine))
        with pytest.raises(UserError, match="rows are wanted, but only"):
            build(plan, maker, card)
    assert any(plan.work.glob("shards/*"))
    plan = replace(plan, composition=Composition(300))
    with MockServer(truth, port=server.port) as again:
        statistics = build(plan, maker, card)
    assert again.asked
    assert not set(again.asked) & set(server.answered)
    assert not any(REQUEST_FAILED in found for found in statistics["refused"].values())
    with MockServer(truth, port=server.port):
        clean = replace(plan, output=tmp_path / "clean")
        build(clean, ModelMaker(LLMTeachers(server.spec, tmp_path / "two.sqlite", open_engine)), card)
    assert contents(tmp_path / "out") == contents(tmp_path / "clean")


def test_a_run_in_which_every_request_failed_is_a_mistake_that_resumes(
    verified: Path, mined: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TRIES", 1)
    plan = StepsBuild(verified, Composition(40), output=tmp_path / "out", pool=10, refined=mined)
    truth = Truth(asked_of(verified))
    with MockServer(truth, status=503) as server:
        maker = ModelMaker(LLMTeachers(server.spec, tmp_path / "cache.sqlite", open_engine))
        expected = r"no step could be made of 20 .*the last: .*\(?HTTP 503.*only what failed"
        with pytest.raises(UserError, match=expected) as caught:
            build(plan, maker, card)
    assert "\n" not in str(caught.value)
    assert any(plan.work.glob("shards/*"))
    assert not (plan.output / VERIFIER_STEPS).exists()
    with MockServer(truth, port=server.port):
        build(plan, maker, card)
