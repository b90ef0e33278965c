"""The teacher that takes published lists at their word: labels, counts, identity, files."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from builders.steps.build import StepsBuild
from builders.steps.build import build as build_steps
from builders.steps.composition import Composition
from builders.steps.model import resolve_maker
from builders.synthetic import generate, parse_spec
from builders.verified import chunks
from builders.verified.build import build, summary
from builders.verified.chunks import VerificationChunk
from builders.verified.collect import Build
from builders.verified.lookup import labelled
from builders.verified.statistics import ListCounts, ListMatches, Statistics
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.teachers.choice import resolve_teacher
from builders.verified.teachers.published import PublishedTeachers, load_lists
from builders.verified.verification import verify
from cards.datasets import CARDS, verifier_steps
from safe_stepwise.errors import UserError
from safe_stepwise.records import Label, Question
from safe_stepwise.store.codec import label_of, label_row
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import NO_PATH, NOISE_LABELS, VERIFIED


def as_stored(label: Label) -> Label:
    """A path's triples are stored without their sentences."""
    return label_of(label_row(label))


SPEC = "rows=60,seed=8,noise=0.5"
ROWS = [question for question, _ in generate(parse_spec(SPEC), split="train")]
OURS = {q.id: as_stored(asyncio.run(verify(q, AnnotationsTeacher()))) for q in ROWS}
PREFIXES = {
    "unspecified": "Unverifiable by the SAFE authors' published list, without a reason",
    "none": "Sound, as the SAFE authors' published list does not name it",
}


def list_of(folder: Path, texts: Iterable[str], name: str = "a_wrong.txt") -> Path:
    file = folder / name
    file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return file


def plan_of(folder: Path, *files: Path) -> Build:
    return Build("synthetic", SPEC, "train", load_lists(files), output=folder / "out")


def labels_of(folder: Path) -> dict[str, Label]:
    return {question.id: label for _, found in labelled(folder) for question, label in found}


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def some(kinds: Iterable[str]) -> list[Question]:
    return [question for question in ROWS if OURS[question.id].noise_type in kinds]


NOISE = {label.noise_type for label in OURS.values()} - {"none", "unparsed"}


# Labels


def test_every_row_has_their_verdict_and_as_much_of_ours_as_agrees(tmp_path: Path) -> None:
    """Half of the sound rows, of those not judged and of the noisy ones, on a list."""
    named = {q.question for q in [*some(["none"])[::2], *some(["unparsed"])[:1], *some(NOISE)[::2]]}
    made = build(plan_of(tmp_path, list_of(tmp_path, named)), CARDS)
    found, seen = labels_of(tmp_path / "out"), Counter[tuple[bool, str]]()
    for question in ROWS:
        ours, label, is_named = OURS[question.id], found[question.id], question.question in named
        seen[is_named, "noise" if ours.unverifiable else ours.noise_type] += 1
        assert label.unverifiable is is_named
        assert label.teacher == "published:a_wrong.txt"
        assert label.knowledge_graph == ours.knowledge_graph
        if is_named is ours.unverifiable and ours.noise_type != "unparsed":
            assert label == replace(ours, teacher=label.teacher)
            continue
        by_us = {"none": "by the annotations it is sound: ",
                 "unparsed": "the annotations could not judge it: "}.get(
                     ours.noise_type, f"by the annotations it is {ours.noise_type}: ")  # fmt: skip
        assert label.noise_type == ("unspecified" if is_named else "none")
        theirs = f"{PREFIXES[label.noise_type]} (a_wrong.txt); "
        assert label.explanation == theirs + by_us + ours.explanation
        assert (label.reasoning_path, label.confidence) == ((), None)
    assert set(seen) == {(a, b) for a in (True, False) for b in ("none", "unparsed", "noise")}
    assert len(found) == made.rows == 60
    assert made.unparsed == made.rejected == 0
    assert made.verified + sum(made.unverifiable.values()) == 60
    assert made.unverifiable["unspecified"] == seen[True, "none"] + seen[True, "unparsed"]


def test_rows_without_a_path_stay_verified_and_make_no_steps(tmp_path: Path) -> None:
    listed = list_of(tmp_path, ["Is there nobody of this name?"])
    build(replace(plan_of(tmp_path, listed), limit=60), CARDS)
    folder, cache = tmp_path / "out" / VERIFIED, str(tmp_path / "cache")
    rows = load_dataset(str(folder), "synthetic", cache_dir=cache)["train"]
    assert len(rows) == 60
    maker = resolve_maker(AnnotationsTeacher)
    plan = StepsBuild(tmp_path / "out", Composition(rows=40, refined=0), output=tmp_path / "steps")
    made = build_steps(plan, maker, verifier_steps, print)
    pathless = sum(label.noise_type != "none" for label in OURS.values())
    assert made["refused"][""][NO_PATH] == pathless


def test_the_class_is_the_last_one(tmp_path: Path) -> None:
    """Numbers of before keep their meaning."""
    build(plan_of(tmp_path, list_of(tmp_path, [ROWS[0].question])), CARDS)
    folder, cache = tmp_path / "out" / NOISE_LABELS, str(tmp_path / "cache")
    rows = load_dataset(str(folder), "synthetic", cache_dir=cache)["train"]
    assert rows.features["noise_type"].names[-2:] == ["unspecified", "undecided"]
    assert rows.features["noise_type"].str2int("unparsed") == 6


# Counts


def test_what_is_on_a_list_and_nowhere_else_is_counted_and_kept(tmp_path: Path) -> None:
    first, second, third = (question.question for question in ROWS[:3])
    one = list_of(tmp_path, [first, "Where is Atlantis?", first, f" {second}"])
    other = list_of(tmp_path, [third, "Where is Mu?", "Where is Atlantis?"], "b_wrong.txt")
    plan = plan_of(tmp_path, one, other)
    made = build(plan, CARDS)
    assert made.listed == ListCounts(
        lists=(ListMatches("a_wrong.txt", sha256_of(one), 2, 1), ListMatches("b_wrong.txt", sha256_of(other), 1, 2)),
        rows=3,
    )
    lines = (tmp_path / "out" / "unmatched.jsonl").read_text(encoding="utf-8").splitlines()
    assert [(row["list"], row["question"]) for row in map(json.loads, lines)] == [
        ("a_wrong.txt", "Where is Atlantis?"),
        ("b_wrong.txt", "Where is Mu?"),
        ("b_wrong.txt", "Where is Atlantis?"),
    ]
    said = summary(plan, made)
    assert "a_wrong.txt: 2 entries have a row here; 1 have none, see " in said
    assert "rows named: 3\n" in said
    for dataset in (VERIFIED, NOISE_LABELS):
        card = (tmp_path / "out" / dataset / "README.md").read_text(encoding="utf-8")
        assert "| synthetic | train | a\\_wrong.txt |".replace("\\_", "_") in card
        assert f"| `{sha256_of(other)}` | 1 | 2 |" in card
        assert f"| synthetic | train | 3 | {made.unverifiable['unspecified']} |" in card
        assert "No published labels were given" not in card


def test_a_text_of_several_rows_names_all_of_them(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    page = {"title": "Ana Vorr", "paragraph_text": "Ana Vorr was born in Oru.", "idx": 0}
    asked = ["Where was Ana Vorr born?"] * 2 + ["Where was  Ana Vorr born?", "Where is Oru?"]
    rows = [
        {
            "id": f"2hop__1_{n}",
            "question": question,
            "answer": "Oru",
            "answer_aliases": [],
            "answerable": True,
            "paragraphs": [page | {"is_supporting": True}],
            "question_decomposition": [
                {"question": "Ana Vorr >> place of birth", "answer": "Oru",
                 "paragraph_support_idx": 0},
            ],
        }
        for n, question in enumerate(asked)
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    teacher = load_lists([list_of(tmp_path, asked[:1])])
    made = build(Build("musique", str(file), "train", teacher, output=tmp_path / "out"), CARDS)
    labels = labels_of(tmp_path / "out")
    assert [label.unverifiable for label in labels.values()] == [True, True, True, False]
    assert made.listed is not None
    assert made.listed.rows == 3
    (use,) = made.listed.lists
    assert (use.matched, use.unmatched) == (1, 0)
    assert not (tmp_path / "out" / "unmatched.jsonl").exists()


def test_builds_of_one_folder_keep_each_others_lines(tmp_path: Path) -> None:
    plan = replace(plan_of(tmp_path, list_of(tmp_path, ["Where is Mu?"])), limit=60)
    build(plan, CARDS)
    build(replace(plan, split="validation"), CARDS)

    def lines() -> list[tuple[str, str]]:
        text = (tmp_path / "out" / "unmatched.jsonl").read_text(encoding="utf-8")
        return [(row["split"], row["question"]) for row in map(json.loads, text.splitlines())]

    assert lines() == [("train", "Where is Mu?"), ("validation", "Where is Mu?")]
    build(replace(plan, teacher=AnnotationsTeacher), CARDS)
    assert lines() == [("validation", "Where is Mu?")]
    build(replace(plan, split="validation", teacher=AnnotationsTeacher), CARDS)
    assert not (tmp_path / "out" / "unmatched.jsonl").exists()


# Identity


def test_other_lists_make_other_shards_and_the_same_ones_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[VerificationChunk] = []
    make = VerificationChunk.make
    monkeypatch.setattr(VerificationChunk, "make", lambda job: jobs.append(job) or make(job))
    file = list_of(tmp_path, [ROWS[0].question])
    plan = replace(plan_of(tmp_path, file), keep_work=True)
    build(plan, CARDS)
    first = contents(tmp_path / "out" / VERIFIED)
    again = replace(plan, teacher=load_lists([file]))
    build(again, CARDS)
    assert contents(tmp_path / "out" / VERIFIED) == first
    assert len(jobs) == 1
    list_of(tmp_path, [ROWS[1].question])
    other = replace(plan, teacher=load_lists([file]))
    build(other, CARDS)
    assert len(jobs) == 2
    assert [id_ for id_, label in labels_of(tmp_path / "out").items() if label.unverifiable] == [ROWS[1].id]


def test_rows_are_the_same_on_several_processes(tmp_path: Path) -> None:
    file = list_of(tmp_path, [question.question for question in ROWS[::3]])
    plan = replace(plan_of(tmp_path, file), source="rows=450,seed=8,noise=0.5")
    assert pickle.loads(pickle.dumps(plan.teacher)) == plan.teacher
    build(plan, CARDS)
    first = contents(tmp_path / "out")
    build(replace(plan, output=tmp_path / "two", workers=2), CARDS)
    assert contents(tmp_path / "two") == first


def test_the_record_and_the_code_know_the_teacher(tmp_path: Path) -> None:
    made = build(plan_of(tmp_path, list_of(tmp_path, [ROWS[0].question])), CARDS)
    by = [chunks.code_of("synthetic", name) for name in ("annotations", "published:x", "m prompts")]
    assert len(set(by)) == 3
    assert made.code_sha256 == by[1]
    for dataset in (VERIFIED, NOISE_LABELS):
        file = tmp_path / "out" / dataset / "statistics" / "synthetic-train.json"
        record = json.loads(file.read_bytes())
        assert record["teacher"] == "published:a_wrong.txt"
        assert str(tmp_path) not in file.read_text(encoding="utf-8")
        assert Statistics(**record).simulated is False


# Specs


def test_a_spec_names_lists_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [list_of(tmp_path, ["Who?"], name) for name in ("a.txt", "b.txt")]
    made = resolve_teacher("published:a.txt,b.txt", lists=tmp_path)
    assert isinstance(made, PublishedTeachers)
    assert made == load_lists(files)
    assert made.name == "published:a.txt,b.txt"
    monkeypatch.chdir(tmp_path)
    assert resolve_teacher("published:a.txt,b.txt", lists=Path()) == made
    assert resolve_teacher(f"published:{files[0]}", lists=Path("elsewhere")) == load_lists(files[:1])


@pytest.mark.parametrize(
    ("spec", "lists", "says"),
    [
        ("published", Path(), "'published': name the lists, as published:FILE[,FILE]"),
        ("published:", Path(), "name the lists, as published:FILE"),
        ("published:a.txt,", Path(), "name the lists"),
        ("published:none.txt", Path(), "none.txt: cannot be read"),
        ("published:none.txt", None, "write no steps; use annotations, or a model"),
    ],
)
def test_a_bad_spec(spec: str, lists: Path | None, says: str) -> None:
    with pytest.raises(UserError) as caught:
        resolve_teacher(spec, lists=lists)
    assert str(caught.value).startswith("--teacher")
    assert says in str(caught.value)


def test_no_confidence_overrules_their_labels(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, list_of(tmp_path, ["Who?"]))
    with pytest.raises(UserError, match="labels have no confidence"):
        replace(plan, min_confidence=0.5)


# Real rows


@pytest.mark.parametrize("benchmark", ["hotpotqa", "2wikimultihopqa", "musique"])
def test_real_rows_with_a_list_of_their_labels(real_data: Path, tmp_path: Path, benchmark: str) -> None:
    """Agreement 1.0 with the labels that the list was made of, and every row accounted for."""
    file = real_data / f"{benchmark}_published_labels.jsonl"
    rows: list[dict[str, Any]] = [json.loads(line) for line in file.open(encoding="utf-8")]
    named = [row["question"] for row in rows if row["unverifiable"]]
    teacher = load_lists([list_of(tmp_path, named)])
    accounted, met = 0, 0
    for part, split in (("train", "train"), ("dev", "validation")):
        source = str(real_data / f"{benchmark}_{part}.jsonl")
        plan = Build(benchmark, source, split, teacher, output=tmp_path / "out", published=file)
        made = build(replace(plan, keep_rejects=True), CARDS)
        assert made.known is not None
        assert made.listed is not None
        found = made.known.agreement
        assert (found.precision, found.recall, found.f1) == (1.0, 1.0, 1.0)
        assert found.rows == made.verified + sum(made.unverifiable.values())
        assert made.rows == found.rows + made.rejected
        assert made.listed.rows == found.noise
        accounted += made.rows
        met += made.listed.lists[0].matched
    assert accounted == len(rows)
    labels = labels_of(tmp_path / "out")
    said = tmp_path / "out" / "rejects.jsonl"
    lines = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
    rejected = {json.loads(line)["id"] for line in lines}
    assert {*labels, *rejected} == {row["id"] for row in rows}
    assert met == sum(row["unverifiable"] for row in rows if row["id"] in labels)
    assert {row["id"]: row["unverifiable"] for row in rows if row["id"] in labels} == {
        id_: label.unverifiable for id_, label in labels.items()
    }
