from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders.synthetic import generate, parse_spec, to_row
from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.lookup import labelled
from builders.verified.teachers import Proposal
from builders.verified.teachers.annotations import AnnotationsTeacher
from cards.datasets import CARDS
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import Question
from safe_stepwise.store.published_labels import read_published
from scripts import compare_labels
from studies.labels.published import is_held_out, measure

ROOT = Path(__file__).parents[2]
SPEC = "rows=80,seed=31337,noise=0.5,writer=plain"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("built") / "out"
    build(Build("synthetic", SPEC, "validation", AnnotationsTeacher, output=output), CARDS)
    return output


@pytest.fixture(scope="module")
def truths() -> dict[str, str]:
    return {q.id: truth for q, truth in generate(parse_spec(SPEC), split="validation")}


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def noisy(truth: str) -> bool:
    return truth not in ("none", "unparsed")


def figures(printed: str, labels: str) -> list[str]:
    """The columns of the first table row that names the labels, after their name."""
    line = next(line for line in printed.splitlines() if f"{labels}  " in line)
    return line.partition(labels)[2].split()


def test_a_build_against_its_truth(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [to_row(*row) for row in generate(parse_spec(SPEC), split="validation")]
    published = write(tmp_path / "truth.jsonl", rows)
    compare_labels.main(["--verified", str(built), "--published", str(published)])
    printed = capsys.readouterr().out
    number, true, found, precision, recall, _ = figures(printed, "synthetic")
    assert (int(number), int(true)) == (80, sum(noisy(str(row["truth"])) for row in rows))
    assert int(found) > 0
    assert float(precision) >= 0.9
    assert float(recall) >= 0.9


def test_every_disagreement_is_listed(
    built: Path, tmp_path: Path, truths: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Published labels that are all turned round: every row with one differs."""
    kept = dict(list(truths.items())[:30])
    rows = [{"id": i, "unverifiable": not noisy(truth)} for i, truth in kept.items()]
    published = write(tmp_path / "published.jsonl", [*rows, {"id": "else", "unverifiable": True}])
    out = tmp_path / "deep" / "disagreements.jsonl"
    options = ["--verified", str(built), "--published", str(published), "--show", "2"]
    compare_labels.main([*options, "--disagreements", str(out)])
    printed = capsys.readouterr().out
    assert figures(printed, "synthetic")[0] == "30"
    written = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(written) > 25
    assert f"{len(written)} disagreements in {out}" in printed
    for row in written:
        assert row["published_unverifiable"] is not noisy(row["noise_type"])
        assert row["benchmark"] == "synthetic"
        assert row["explanation"]
        assert row["question"]
    theirs = sum(row["published_unverifiable"] for row in written)
    assert f"published as noise only: {theirs} (the first 2)" in printed
    assert f"found as noise only: {len(written) - theirs} (the first 2)" in printed
    assert printed.count("  synthetic synthetic-validation-") == 4


def test_none_are_shown_where_none_are_asked_for(
    built: Path, tmp_path: Path, truths: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": i, "unverifiable": not noisy(truth)} for i, truth in truths.items()]
    published = write(tmp_path / "published.jsonl", list(rows))
    options = ["--published", str(published), "--show", "0"]
    compare_labels.main(["--verified", str(built), *options])
    printed = capsys.readouterr().out
    assert "the first" not in printed
    # What regenerate makes has its datasets in a folder.
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "datasets").symlink_to(built)
    compare_labels.main(["--verified", str(tmp_path / "release"), *options])
    assert capsys.readouterr().out == printed


def test_it_ends_in_order(built: Path, tmp_path: Path) -> None:
    """On one core, threads that a reader of Parquet leaves behind abort every other exit."""
    published = write(tmp_path / "truth.jsonl", [{"id": "synthetic-validation-31337-0", "truth": "none"}])
    command = [sys.executable, "-m", "scripts.compare_labels"]
    for _ in range(4):
        done = subprocess.run(
            [*command, "--verified", str(built), "--published", str(published), "--show", "0"],
            cwd=ROOT, capture_output=True, text=True, check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


def test_perfect_agreement(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ((_, found),) = labelled(built)
    rows = [{"id": question.id, "unverifiable": label.unverifiable} for question, label in found]
    published = write(tmp_path / "published.jsonl", list(rows))
    compare_labels.main(["--verified", str(built), "--published", str(published)])
    printed = capsys.readouterr().out
    assert figures(printed, "synthetic")[3:] == ["1.000", "1.000", "1.000"]
    assert "published as noise only: 0\n" in printed
    assert "found as noise only: 0\n" in printed


def test_a_folder_of_rows_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of a benchmark's own format beside their published labels, as in the real data."""
    page = {"title": "Ana Vorr", "paragraph_text": "Ana Vorr was born in Oru.", "idx": 0}
    row = {
        "id": "2hop__1_2",
        "question": "Where was Ana Vorr born?",
        "answer": "Oru",
        "answer_aliases": [],
        "answerable": True,
        "paragraphs": [page | {"is_supporting": True}],
        "question_decomposition": [
            {"id": 1, "question": "Ana Vorr >> place of birth", "answer": "Oru",
             "paragraph_support_idx": 0}
        ],
    }  # fmt: skip
    wrong = row | {"id": "2hop__1_3", "question": "Where did Ana Vorr die?"}
    wrong["question_decomposition"] = [
        row["question_decomposition"][0] | {"question": "Ana Vorr >> place of death"}  # type: ignore[index]
    ]
    write(tmp_path / "musique_train.jsonl", [row, {"id": "2hop__1_4"}])
    write(tmp_path / "musique_dev.jsonl", [wrong, row])  # the first row again: counted once
    labels = [
        {"id": "2hop__1_2", "unverifiable": False},
        {"id": "2hop__1_3", "unverifiable": True},
        {"id": "2hop__1_4", "unverifiable": True},
    ]
    write(tmp_path / "musique_published_labels.jsonl", list(labels))
    compare_labels.main(["--data", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "left out: musique_train.jsonl:2: " in printed
    assert figures(printed, "musique") == ["2", "1", "1", "1.000", "1.000", "1.000"]


class Unsure(AnnotationsTeacher):
    """Less sure of missing evidence than of other noise."""

    name = identity = "unsure"

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        found = await super().propose(question, graph)
        return replace(found, confidence=0.35 if found.noise_type == "missing_evidence" else 0.8)


def test_confidence_is_calibrated(tmp_path: Path, truths: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    build(Build("synthetic", SPEC, "validation", Unsure, output=folder), CARDS)
    ((_, rows),) = labelled(folder)
    ours = {question.id: label for question, label in rows}
    doubts = [i for i, label in ours.items() if label.noise_type == "missing_evidence"]
    published = write(tmp_path / "published.jsonl", [{"id": i, "truth": truth} for i, truth in truths.items()])
    options = ["--verified", str(folder), "--published", str(published)]
    compare_labels.main(options)
    printed = capsys.readouterr().out
    right = sum(noisy(truths[i]) for i in doubts) / len(doubts)
    assert figures(printed, "under 0.5") == [str(len(doubts)), f"{right:.3f}", "0", "-"]


def test_a_benchmark_without_published_labels_is_left_out(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ((_, found),) = labelled(built)
    rows = list(found)
    published = {question.id: label.unverifiable for question, label in rows}
    assert {*measure({"synthetic": rows, "other": []}, published)} == {"synthetic"}
    assert "left out: other: " in capsys.readouterr().out


# Mistakes


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--verified", "{built}"], "--published"),
        (["--published", "{truth}"], "--verified"),
        (["--verified", "{tmp}", "--published", "{truth}"], "build_verified"),
        (["--verified", "{tmp}/none", "--published", "{truth}"], "build_verified"),
        (["--verified", "{built}", "--published", "{tmp}/none.jsonl"], "none.jsonl"),
        (["--verified", "{built}", "--published", "{tmp}"], "build_verified"),
        (["--verified", "{built}", "--published", "{strange}"], "no id"),
        (["--verified", "{built}", "--published", "{torn}"], "torn.jsonl, line 2"),
        (["--verified", "{built}", "--published", "{list}"], "list.jsonl, line 1"),
        (["--verified", "{built}", "--published", "{fieldless}"], "fieldless.jsonl, line 1"),
        (["--data", "{tmp}"], "--data"),
        (["--data", "{tmp}/none"], "none: no such folder; name the folder with --data"),
        (["--show", "few"], "--help"),
        (["--nonsense"], "--help"),
    ],
)
def test_mistakes_are_user_errors(built: Path, tmp_path: Path, options: list[str], expected: str) -> None:
    files = {
        "truth": '{"id": "synthetic-validation-31337-0", "truth": "none"}\n',
        "strange": '{"id": "x", "truth": "none"}\n',
        "torn": '{"id": "x", "truth": "none"}\n{"id": "x", "tru',
        "list": "[1, 2]\n",
        "fieldless": '{"id": "x"}\n',
    }
    for name, text in files.items():
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    paths = {name: tmp_path / f"{name}.jsonl" for name in files}
    given = [option.format(built=built, tmp=tmp_path, **paths) for option in options]
    with pytest.raises(UserError) as caught:
        compare_labels.main(given)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mistake_is_one_line_and_status_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.compare_labels", "--data", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert str(tmp_path) in done.stderr


def test_published_labels_that_are_not_text(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="labels"):
        read_published(file)


def test_a_line_separator_within_a_row_is_no_new_line(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    row = {"id": "1", "question": "Who\u2028was it?\x85", "unverifiable": True}
    file.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    assert read_published(file) == {"1": True}


@pytest.mark.parametrize("truth", ["nonsense", None, 3])
def test_a_truth_that_is_no_noise_type(tmp_path: Path, truth: object) -> None:
    file = write(tmp_path / "labels.jsonl", [{"id": "1", "truth": truth}])
    with pytest.raises(UserError, match=r"labels\.jsonl, line 1: is no label \(truth"):
        read_published(file)


def test_disagreements_that_cannot_be_written(built: Path, tmp_path: Path) -> None:
    published = write(tmp_path / "truth.jsonl", [{"id": "synthetic-validation-31337-0", "truth": "none"}])
    options = ["--verified", str(built), "--published", str(published)]
    with pytest.raises(UserError, match="written"):
        compare_labels.main([*options, "--disagreements", str(tmp_path)])


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        compare_labels.main(["--help"])
    assert caught.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_halves_are_scored_apart_and_one_is_kept_back(
    built: Path, truths: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Every label is contradicted, so that whatever may be listed is.
    rows = [{"id": id_, "unverifiable": not noisy(truth)} for id_, truth in truths.items()]
    published = write(tmp_path / "published.jsonl", rows)
    out = tmp_path / "disagreements.jsonl"
    files = ["--verified", str(built), "--published", str(published)]
    compare_labels.main([*files, "--halves", "--disagreements", str(out)])
    printed = capsys.readouterr().out
    assert "synthetic, read" in printed
    assert "synthetic, kept back" in printed
    listed = {json.loads(line)["id"] for line in out.read_text(encoding="utf-8").splitlines()}
    assert listed
    assert not any(is_held_out(id_) for id_ in listed)
    assert any(map(is_held_out, truths))


def test_a_build_may_be_the_reference(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compare_labels.main(["--verified", str(built), "--published", str(built)])
    assert figures(capsys.readouterr().out, "synthetic")[3:] == ["1.000", "1.000", "1.000"]
    with pytest.raises(UserError, match="build_verified"):
        compare_labels.main(["--verified", str(built), "--published", str(tmp_path)])
