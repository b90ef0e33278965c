from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import get_dataset_config_names, load_dataset

from builders.synthetic import generate, parse_spec, to_row
from builders.verified import chunks, collect
from builders.verified import questions as verified_questions
from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.questions import EvaluationSample, with_passages
from builders.verified.statistics import Statistics
from builders.verified.teachers import Proposal
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.work import parquet
from cards import datasets
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.prompts import quoted
from safe_stepwise.records import Question
from safe_stepwise.store import codec, files
from safe_stepwise.store.names import EVAL, LABELED, NOISE_LABELS, VERIFIED

CARDS = {VERIFIED: datasets.verified_multihop, NOISE_LABELS: datasets.noise_labels}
ROOT = Path(__file__).parents[3]
SPEC = "rows=60,seed=5,noise=0.4"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "CHUNK_ROWS", 20)


@pytest.fixture
def plan(tmp_path: Path) -> Build:
    return Build("synthetic", SPEC, "validation", AnnotationsTeacher, output=tmp_path / "out")


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def load(plan: Build, dataset: str, config: str) -> Any:
    cache = str(plan.output.parent / "cache")
    return load_dataset(str(plan.output / dataset), config, cache_dir=cache)


def hotpot_rows(number: int) -> list[dict[str, Any]]:
    return [
        {
            "_id": f"h{n}",
            "question": f"In which country is town {n}?",
            "answer": "Marn",
            "type": "bridge",
            "level": "hard",
            "supporting_facts": [["Vel", 0], ["Oru", 1]],
            "context": [
                ["Vel", ["The Vel is a river.", " It crosses Oru."]],
                ["Oru", ["Oru is a town.", " It lies in Marn."]],
            ],
        }
        for n in range(1, number + 1)
    ]


def hotpot_plan(plan: Build, rows: list[Any], **changes: Any) -> Build:
    file = plan.output.parent / "hotpot.jsonl"
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return replace(plan, benchmark="hotpotqa", source=str(file), split="train", **changes)


# What comes out


def test_every_config_opens_and_agrees(plan: Build) -> None:
    made = build(plan, CARDS)
    folder = str(plan.output / VERIFIED)
    assert set(get_dataset_config_names(folder)) == {"synthetic", "synthetic_labeled", "synthetic_eval"}
    rows = load(plan, VERIFIED, "synthetic")["validation"]
    labeled = load(plan, VERIFIED, "synthetic_labeled")["validation"]
    sample = load(plan, VERIFIED, "synthetic_eval")["test"]
    labels = load(plan, NOISE_LABELS, "synthetic")["validation"]
    assert rows.features == verified_questions.config_features(VERIFIED, "b")
    assert sample.features == verified_questions.config_features(VERIFIED, EVAL)
    assert labeled.features == verified_questions.config_features(VERIFIED, LABELED)
    assert labels.features == verified_questions.config_features(NOISE_LABELS, "b")

    questions = [question for question, _ in generate(parse_spec(SPEC), 0, 60, "validation")]
    assert labeled["id"] == labels["id"] == [question.id for question in questions]
    hashes = [verified_questions.question_sha256(question.question) for question in questions]
    assert labels["question_sha256"] == hashes
    for row, question in zip(labeled, questions, strict=True):
        assert codec.question_of(row, benchmark="synthetic", split="validation") == replace(
            question, evidence=tuple(replace(t, passage=None, sentence=None) for t in question.evidence)
        )
    type_ = labeled.features["noise_type"].int2str
    types = [type_(number) for number in labeled["noise_type"]]
    sound = [id_ for id_, name in zip(labeled["id"], types, strict=True) if name == "none"]
    assert rows["id"] == sound
    assert 0 < len(sound) < 60
    assert set(sample["id"]) <= set(sound)
    counts = Counter(types)
    assert made.verified == counts.pop("none")
    assert made.unparsed == counts.pop("unparsed", 0)
    assert made.unverifiable == counts
    assert sum(kind.rows for kind in made.kinds.values()) == made.rows == 60
    assert not (plan.output / "rejects.jsonl").exists()
    assert sorted(path.name for path in plan.output.iterdir()) == [NOISE_LABELS, VERIFIED]


def test_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    """Sets of strings are ordered anew in each process; none may decide what is written."""
    pages = [[f"Town {n}", [f"Town {n} lies in Marn near Oru.", " Po Vel and Ana Vorr met in Lo."]] for n in range(8)]
    rows = [
        row | {"context": [*row["context"], *pages],
               "supporting_facts": [*row["supporting_facts"], *([t, 0] for t, _ in pages)]}
        for row in hotpot_rows(20)
    ]  # fmt: skip
    file = tmp_path / "hotpot.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    outputs = []
    for seed in ("1", "2", "3"):
        command = [
            *(sys.executable, "-m", "scripts.build_verified", "--benchmark", "hotpotqa"),
            *("--input", str(file), "--split", "train", "--teacher", "annotations"),
            *("--output", str(tmp_path / seed), "--workers", "1"),
        ]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        outputs.append(contents(tmp_path / seed))
    assert outputs[0] == outputs[1] == outputs[2]


def test_same_bytes_for_any_number_of_workers(plan: Build, tmp_path: Path) -> None:
    outputs = []
    for workers in (1, 3):
        one = replace(plan, output=tmp_path / str(workers), workers=workers)
        build(one, CARDS)
        outputs.append(contents(one.output))
    assert outputs[0] == outputs[1]
    build(replace(plan, output=tmp_path / "1"), CARDS)
    assert contents(tmp_path / "1") == outputs[0]


def test_a_long_split_has_several_files(plan: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 7)
    monkeypatch.setattr(parquet, "ROWS_PER_FILE", 21)
    build(plan, CARDS)
    folder = plan.output / NOISE_LABELS / "data" / "synthetic"
    assert sorted(file.name for file in folder.iterdir()) == [f"validation-0000{n}-of-00003.parquet" for n in range(3)]
    assert load(plan, NOISE_LABELS, "synthetic")["validation"].num_rows == 60


def test_limit_reads_the_first_rows(plan: Build) -> None:
    assert build(replace(plan, limit=25), CARDS).rows == 25
    assert load(plan, NOISE_LABELS, "synthetic")["validation"].num_rows == 25


def test_a_file_of_synthetic_rows(plan: Build, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    made = generate(parse_spec(SPEC), 0, 60, "validation")
    file.write_text("".join(json.dumps(to_row(*row)) + "\n" for row in made), encoding="utf-8")
    from_file = build(replace(plan, source=str(file)), CARDS)
    assert from_file.source.name == "rows.jsonl"
    assert from_file.source.synthetic
    data = contents(plan.output / VERIFIED / "data")
    build(replace(plan, output=tmp_path / "spec"), CARDS)
    assert contents(tmp_path / "spec" / VERIFIED / "data") == data


class Doubter(AnnotationsTeacher):
    """Finds fault with everything."""

    name = identity = "doubter"

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        return Proposal((), "missing_evidence", "It doubts.")


def test_a_split_without_verified_rows_is_left_out(plan: Build) -> None:
    made = build(replace(plan, teacher=Doubter), CARDS)
    assert made.unverifiable == {"missing_evidence": 60}
    assert made.evaluation is not None
    assert made.evaluation.rows == 0
    assert get_dataset_config_names(str(plan.output / VERIFIED)) == ["synthetic_labeled"]
    assert load(plan, VERIFIED, "synthetic_labeled")["validation"].num_rows == 60


# The evaluation sample


def test_the_sample_has_ten_shuffled_passages(plan: Build) -> None:
    build(replace(plan, evaluation_size=8), CARDS)
    whole = {row["id"]: row for row in load(plan, VERIFIED, "synthetic")["validation"]}
    sample = load(plan, VERIFIED, "synthetic_eval")["test"]
    assert sample.num_rows == 8
    moved = 0
    for row in sample:
        original = whole[row["id"]]
        assert len(row["passages"]) == 10
        gold = [p for p in original["passages"] if p["is_gold"]]
        assert all(p in row["passages"] for p in gold)
        assert all(p in original["passages"] for p in row["passages"])
        moved += row["passages"] != original["passages"][:10]
        for old, new in zip(original["decomposition"], row["decomposition"], strict=True):
            if new["passage"] is not None:
                before = original["passages"][old["passage"] - 1]
                assert row["passages"][new["passage"] - 1] == before
        told = [row["input"].index(f"({quoted(p['title'])}): ") for p in row["passages"]]
        assert told == sorted(told)
        assert told[-1] < row["input"].index(quoted(row["question"]))
    assert moved == 8


def sample_row(id_: str, passages: int, gold: int) -> dict[str, Any]:
    numbers = range(1, passages + 1)
    return {
        "id": id_,
        "passages": [{"title": f"P{n}", "sentences": [f"S{n}"], "is_gold": n > passages - gold} for n in numbers],
        "decomposition": [{"question": "q", "answer": "a", "passage": n} for n in numbers],
    }


BLANK: dict[str, Any] = {
    **dict.fromkeys(("id", "question", "answer", "kind"), ""),
    **dict.fromkeys(("aliases", "supporting_facts", "evidence"), ()),
    "hops": 2,
}


def sample_question(id_: str) -> Question:
    return codec.question_of({**BLANK, **sample_row(id_, 20, 2)}, benchmark="", split="")


def as_table(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    columns = verified_questions.config_features(VERIFIED, "b")
    return pa.Table.from_pylist([{**BLANK, **row} for row in rows], schema=columns.arrow_schema)


def test_the_draw_depends_on_seed_and_id_alone() -> None:
    rows = [sample_row(f"r{n}", 12 + n % 9, 2 + n % 3) for n in range(40)]

    def draw(rows: list[dict[str, Any]], seed: int, size: int = 10) -> list[dict[str, Any]]:
        sample = EvaluationSample(size, seed)
        sample.offer(as_table(rows[:15]))
        sample.offer(as_table(rows[15:]))
        return sample.rows()

    first = draw(rows, 1)
    assert draw(rows[::-1], 1) == first
    assert [row["id"] for row in draw(rows, 2)] != [row["id"] for row in first]
    assert draw(rows, 1, size=5) == first[:5]


def test_rows_that_cannot_have_ten_are_counted() -> None:
    sample = EvaluationSample(10, 0)
    fitting = [sample_row("a", 10, 2), sample_row("b", 20, 10)]
    sample.offer(as_table([*fitting, sample_row("c", 9, 2), sample_row("d", 20, 11)]))
    assert {row["id"] for row in sample.rows()} == {"a", "b"}
    assert sample.left_out == 2


def test_gold_and_distractors_are_mixed() -> None:
    places = Counter(
        n
        for number in range(300)
        for n, p in enumerate(with_passages(sample_question(f"r{number}"), 0)[0].passages)
        if p.is_gold
    )
    assert all(30 <= places[n] <= 95 for n in range(10)), places


def test_dropped_passage_of_a_hop_becomes_none() -> None:
    question, _ = with_passages(sample_question("a"), 0)
    numbers = [hop.passage for hop in question.decomposition]
    assert sorted(n for n in numbers if n is not None) == list(range(1, 11))
    assert None not in numbers[-2:]


# Builds accumulate


def test_builds_of_splits_and_benchmarks_accumulate(plan: Build) -> None:
    build(plan, CARDS)
    kept = contents(plan.output)
    build(replace(plan, split="train"), CARDS)
    build(hotpot_plan(plan, hotpot_rows(3)), CARDS)
    now = contents(plan.output)
    data = {name: content for name, content in kept.items() if "README" not in name}
    assert data.items() <= now.items()
    labels = load(plan, NOISE_LABELS, "synthetic")
    assert {split: rows.num_rows for split, rows in labels.items()} == {"train": 60, "validation": 60}
    assert load(plan, NOISE_LABELS, "hotpotqa")["train"].num_rows == 3
    card = (plan.output / VERIFIED / "README.md").read_text(encoding="utf-8")
    assert "| hotpotqa | train | 3 |" in card
    assert "license:\n- cc-by-sa-4.0\n- cc0-1.0\n" in card

    build(replace(plan, source="rows=40,seed=6,noise=0.4"), CARDS)
    labels = load(plan, NOISE_LABELS, "synthetic")
    assert labels["validation"].num_rows == 40
    assert labels["train"].num_rows == 60


def test_the_order_of_builds_does_not_show(plan: Build, tmp_path: Path) -> None:
    for name, splits in (("a", ("train", "validation")), ("b", ("validation", "train"))):
        for split in splits:
            build(replace(plan, output=tmp_path / name, split=split), CARDS)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_another_version_is_refused(plan: Build) -> None:
    build(plan, CARDS)
    before = contents(plan.output)
    with pytest.raises(UserError, match=r"version v0\.1\.0.*this build is v0\.2\.0"):
        build(replace(plan, version="v0.2.0", split="train"), CARDS)
    assert contents(plan.output) == before


# Bad rows


def bad_rows() -> list[Any]:
    rows: list[Any] = hotpot_rows(50)
    rows[4] = "{not json"
    del rows[30]["answer"]
    rows[44] = {**rows[2], "question": "The same id again?"}
    return rows


def test_the_first_bad_row_stops_the_build(plan: Build) -> None:
    with pytest.raises(UserError, match=r"hotpot\.jsonl:5.*--on-error keep"):
        build(hotpot_plan(plan, bad_rows()), CARDS)
    assert [path.name for path in plan.output.iterdir()] == [".work"]


def test_kept_rejects_are_written_and_counted(plan: Build, tmp_path: Path) -> None:
    rows = bad_rows()
    made = build(hotpot_plan(plan, rows, keep_rejects=True), CARDS)
    assert (made.rows, made.rejected) == (50, 3)
    file = plan.output / "rejects.jsonl"
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(r["location"], r["id"]) for r in found] == [
        ("hotpot.jsonl:5", None),
        ("hotpot.jsonl:31", "h31"),
        ("hotpot.jsonl:45", "h3"),
    ]
    assert "hotpot.jsonl:3" in found[2]["reason"]
    assert [r["row"] for r in found] == [rows[4], rows[30], None]  # another row with that id is read
    ids = load(plan, NOISE_LABELS, "hotpotqa")["train"]["id"]
    assert sorted(ids) == sorted({f"h{n}" for n in range(1, 51)} - {"h5", "h31", "h45"})
    labeled = load(plan, VERIFIED, "hotpotqa_labeled")["train"]
    assert labeled[ids.index("h3")]["question"] == "In which country is town 3?"

    parallel = hotpot_plan(plan, rows, keep_rejects=True, workers=3, output=tmp_path / "3")
    build(parallel, CARDS)
    assert contents(parallel.output) == contents(plan.output)


def test_rejects_follow_their_build(plan: Build) -> None:
    build(hotpot_plan(plan, bad_rows(), keep_rejects=True), CARDS)
    build(plan, CARDS)
    assert (plan.output / "rejects.jsonl").exists()
    build(hotpot_plan(plan, hotpot_rows(5)), CARDS)
    assert not (plan.output / "rejects.jsonl").exists()


def test_a_duplicate_id_stops_the_build(plan: Build) -> None:
    rows = hotpot_rows(30)
    rows[25]["_id"] = "h1"
    with pytest.raises(UserError, match=r"hotpot\.jsonl:26.*duplicate id 'h1'.*hotpot\.jsonl:1"):
        build(hotpot_plan(plan, rows), CARDS)


def test_the_wrong_benchmark_says_so(plan: Build) -> None:
    wrong = replace(hotpot_plan(plan, hotpot_rows(2)), benchmark="musique")
    with pytest.raises(UserError, match=r"hotpot\.jsonl:1.*hotpotqa"):
        build(wrong, CARDS)


def test_counts_that_do_not_add_up_are_a_fault(plan: Build) -> None:
    made = build(plan, CARDS)
    with pytest.raises(AssertionError, match="61 rows in, 60 accounted for"):
        replace(made, rows=61)
    assert isinstance(made, Statistics)


def test_a_source_of_another_digest_is_refused(plan: Build) -> None:
    with pytest.raises(UserError, match="expected " + "0" * 64):
        build(hotpot_plan(plan, hotpot_rows(1), sha256="0" * 64), CARDS)


# The disk


def test_a_file_in_place_of_the_output(plan: Build) -> None:
    plan.output.write_text("mine")
    with pytest.raises(UserError, match="there is a file where"):
        build(plan, CARDS)
    with pytest.raises(UserError, match="there is a file where"):
        build(replace(plan, output=plan.output / "below"), CARDS)
    assert plan.output.read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_output_without_permission(plan: Build) -> None:
    plan.output.mkdir(mode=0o500)
    with pytest.raises(UserError, match="no permission"):
        build(plan, CARDS)


def test_a_folder_of_something_else_is_left_alone(plan: Build) -> None:
    (plan.output / VERIFIED).mkdir(parents=True)
    (plan.output / VERIFIED / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="not a dataset of build_verified"):
        build(plan, CARDS)


def test_two_builds_at_once_are_refused(plan: Build) -> None:
    with files.lock_folder(plan.output), pytest.raises(UserError, match="another build"):
        build(plan, CARDS)


@pytest.mark.parametrize("failing", [2, 5, 9, 12, 14])
def test_a_full_disk_is_one_line_and_the_rerun_resumes(
    plan: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    calls = 0

    def sync(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls >= failing:
            raise OSError(errno.ENOSPC, "No space left on device")

    clean = replace(plan, output=tmp_path / "clean")
    build(clean, CARDS)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        with pytest.raises(UserError, match=r"no space left.*\d+ rows.*resumes"):
            build(plan, CARDS)
    published = [n for n in contents(plan.output) if not n.startswith(".work")]
    assert published == [] or (plan.output / VERIFIED / "README.md").exists()
    assert not list(plan.output.rglob(".*.arrow.*"))
    finished = {path: path.stat().st_mtime_ns for path in (plan.work / "shards").iterdir()}
    assert len(finished) == min(failing - 1, 3)
    build(replace(plan, keep_work=True), CARDS)
    assert all(path.stat().st_mtime_ns == before for path, before in finished.items())
    build(plan, CARDS)
    assert contents(plan.output) == contents(clean.output)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no right to mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_disk_that_really_fills_up(plan: Build, tiny_disk: Path, workers: int) -> None:
    full = replace(plan, output=tiny_disk / "out", source="rows=400,seed=5", workers=workers)
    with pytest.raises(UserError, match="no space left"):
        build(full, CARDS)
    assert [path.name for path in full.output.iterdir()] == [".work"]


@pytest.mark.parametrize("point", ["before", "between"])
def test_a_swap_that_was_cut_short_is_mended(plan: Build, point: str) -> None:
    build(plan, CARDS)
    before = contents(plan.output)
    final, old = plan.output / VERIFIED, plan.output / f".{VERIFIED}.old"
    if point == "between":
        final.rename(old)
    else:
        old.mkdir()
        (old / "left.over").write_text("old")
    build(plan, CARDS)
    assert contents(plan.output) == before


def test_shards_of_other_code_are_not_used(plan: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    build(replace(plan, keep_work=True), CARDS)
    names = {path.name for path in (plan.work / "shards").iterdir()}
    monkeypatch.setattr(chunks, "code_digest", lambda *modules: "changed")
    build(replace(plan, keep_work=True), CARDS)
    assert len(list((plan.work / "shards").iterdir())) == 2 * len(names)


# Real rows


REAL_DATA = Path(os.environ.get("SAFE_STEPWISE_REAL_DATA", "../shared/data"))


@pytest.mark.skipif(not REAL_DATA.is_dir(), reason="no SAFE_STEPWISE_REAL_DATA")
@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize("benchmark", ["hotpotqa", "2wikimultihopqa", "musique"])
def test_every_real_row_is_found_by_its_id(plan: Build, benchmark: str, split: str) -> None:
    file = REAL_DATA / f"{benchmark}_{split}.jsonl"
    split = {"dev": "validation"}.get(split, split)
    real = Build(benchmark, str(file), split, AnnotationsTeacher, output=plan.output, keep_rejects=True, workers=1)
    made = build(real, CARDS)
    given = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    ids = [row.get("_id") or row["id"] for row in given]
    rejects = plan.output / "rejects.jsonl"
    lines = rejects.read_text(encoding="utf-8").splitlines() if rejects.exists() else []
    rejected = [json.loads(line)["id"] for line in lines]
    labels = load(plan, NOISE_LABELS, benchmark)[split]["id"]
    labeled = load(plan, VERIFIED, f"{benchmark}_labeled")[split]["id"]
    assert sorted([*labels, *rejected]) == sorted(ids)
    assert labels == labeled
    assert (made.rows, made.rejected) == (len(ids), len(rejected))
