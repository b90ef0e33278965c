"""How sure a label is, from the teacher to the column, the statistics, the card and the option."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from builders.steps.questions import open_verified
from builders.synthetic import generate, parse_spec, to_row
from builders.verified.build import build, summary
from builders.verified.chunks import VerificationChunk
from builders.verified.collect import Build
from builders.verified.lookup import labelled
from builders.verified.teachers import Proposal, TeacherError
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.teachers.choice import resolve_teacher
from builders.verified.verification import BY_GRAPH, apply_min_confidence, verify
from builders.work import collect
from cards.datasets import CARDS
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import Label, Question, Triple
from safe_stepwise.store.names import NOISE_LABELS, VERIFIED
from scripts import compare_labels

SPEC = "rows=40,seed=1,noise=0.4"
NOISE = Label("missing_evidence", "No passage states it.", (), (), "annotations", 0.35)


class Unsure(AnnotationsTeacher):
    """Finds what the annotations say, and is unsure of noise."""

    name = identity = "unsure"

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        found = await super().propose(question, graph)
        return replace(found, confidence=0.8 if found.noise_type == "none" else 0.35)


class Failing(AnnotationsTeacher):
    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        raise TeacherError("no reply")


@pytest.fixture
def plan(tmp_path: Path) -> Build:
    return Build("synthetic", SPEC, "train", Unsure, output=tmp_path / "out")


def truths() -> dict[str, bool]:
    rows = generate(parse_spec(SPEC), split="train")
    return {question.id: truth not in ("none", "unparsed") for question, truth in rows}


def labels_of(folder: Path) -> dict[str, Label]:
    return {question.id: label for _, found in labelled(folder) for question, label in found}


def published(folder: Path, rows: Sequence[tuple[str, bool]]) -> Path:
    file = folder / "published.jsonl"
    lines = (json.dumps({"id": id_, "unverifiable": noise}) for id_, noise in rows)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def without_confidence(folder: Path) -> None:
    """What this program wrote before there was the column."""
    for file in folder.rglob("*.parquet"):
        table = pq.read_table(file)
        if "confidence" in table.column_names:
            pq.write_table(table.drop_columns(["confidence"]).replace_schema_metadata(None), file)
    for file in folder.rglob("statistics/*.json"):
        record = json.loads(file.read_bytes())
        del record["min_confidence"], record["known"]
        file.write_text(json.dumps(record), encoding="utf-8")


# Into the column


def test_a_label_has_the_confidence_of_its_proposal() -> None:
    for question, _ in generate(parse_spec(SPEC), split="train"):
        label = asyncio.run(verify(question, Unsure()))
        # What the checks alone find is never surer than what they are worth.
        sure = {"none": (0.8,), "unparsed": (0.0,)}.get(label.noise_type, (0.35, BY_GRAPH))
        assert label.confidence in sure


def test_who_failed_is_sure_of_nothing() -> None:
    question, _ = next(generate(parse_spec(SPEC)))
    label = asyncio.run(verify(question, Failing()))
    assert (label.noise_type, label.confidence) == ("unparsed", 0.0)


def test_both_datasets_have_the_column(plan: Build, tmp_path: Path) -> None:
    build(plan, CARDS)
    sets = [
        load_dataset(str(plan.output / dataset), config, cache_dir=str(tmp_path / "cache"))["train"]
        for dataset, config in ((VERIFIED, "synthetic_labeled"), (NOISE_LABELS, "synthetic"))
    ]
    assert sets[0]["confidence"] == sets[1]["confidence"]
    assert set(sets[0]["confidence"]) == {0.0, 0.35, BY_GRAPH, 0.8}
    for folder in (VERIFIED, NOISE_LABELS):
        card = (plan.output / folder / "README.md").read_text(encoding="utf-8")
        assert "| `confidence` | float, 0 to 1 |" in card


def test_a_model_says_none(plan: Build, tmp_path: Path) -> None:
    model = resolve_teacher("symbolic", tmp_path / "replies.sqlite")
    made = build(replace(plan, teacher=model), CARDS)
    model.close()
    assert {label.confidence for label in labels_of(plan.output).values()} == {None, 0.0}
    assert made.known is not None
    assert [one.confidence for one in made.known.agreement.calibration] == ["not said"]
    with pytest.raises(UserError, match="labels have no confidence") as caught:
        replace(plan, teacher=model, min_confidence=0.5)
    assert "\n" not in str(caught.value)


# Folders of before


def test_a_folder_of_before_still_opens_and_grows(
    plan: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(plan, CARDS)
    without_confidence(plan.output)
    assert {label.confidence for label in labels_of(plan.output).values()} == {None}
    assert open_verified(plan.output, "v0.1.0").builds

    file = published(tmp_path, list(truths().items()))
    options = ["--verified", str(plan.output), "--published", str(file)]
    compare_labels.main(options)
    assert "synthetic  not said" in capsys.readouterr().out

    build(replace(plan, split="validation"), CARDS)
    for dataset, config in ((VERIFIED, "synthetic_labeled"), (NOISE_LABELS, "synthetic")):
        folder = str(plan.output / dataset)
        opened = load_dataset(folder, config, cache_dir=str(tmp_path / "cache"))
        assert set(opened["train"]["confidence"]) == {None}
        assert 0.35 in opened["validation"]["confidence"]
    card = (plan.output / VERIFIED / "README.md").read_text(encoding="utf-8")
    assert "No published labels were given for synthetic train:" in card


# The option


def test_noise_that_is_less_sure_is_kept_and_says_so() -> None:
    half = (Triple("Oru", "country", "Marn", 1, 0),)
    kept = apply_min_confidence(replace(NOISE, reasoning_path=half, knowledge_graph=half), 0.5)
    assert (kept.noise_type, kept.unverifiable, kept.confidence) == ("undecided", False, 0.35)
    why = "Undecided, since the confidence 0.35 lies under 0.50: No passage states it."
    assert kept.explanation == why
    assert (kept.reasoning_path, kept.knowledge_graph) == ((), half)
    assert apply_min_confidence(replace(NOISE, confidence=0.499), 0.5).explanation.startswith(
        "Undecided, since the confidence 0.499 lies under 0.50: "
    )


@pytest.mark.parametrize(
    "label",
    [
        replace(NOISE, confidence=0.5),
        replace(NOISE, confidence=None),
        replace(NOISE, noise_type="none"),
        replace(NOISE, noise_type="unparsed", confidence=0.0),
    ],
)
def test_other_labels_stay(label: Label) -> None:
    assert apply_min_confidence(label, 0.5) is label


def test_a_build_counts_no_noise_that_is_less_sure(plan: Build) -> None:
    before = build(plan, CARDS)
    was = labels_of(plan.output)
    strict = replace(plan, min_confidence=0.5)
    made = build(strict, CARDS)
    assert (before.min_confidence, made.min_confidence) == (0.0, 0.5)
    kept = {
        id_: label for id_, label in labels_of(plan.output).items()
        if label.explanation.startswith("Undecided, since the confidence 0.35 lies under 0.50: ")
    }  # fmt: skip
    doubts = {id_ for id_, label in was.items() if label.unverifiable and label.confidence == 0.35}
    assert set(kept) == doubts
    assert len(doubts) > 5
    assert {label.noise_type for label in kept.values()} == {"undecided"}
    assert {label.reasoning_path for label in kept.values()} == {()}  # no step is made of them
    assert (made.verified, made.undecided) == (before.verified, before.undecided + len(doubts))
    for dataset in (VERIFIED, NOISE_LABELS):
        card = (plan.output / dataset / "README.md").read_text(encoding="utf-8")
        assert "Noise labels with a confidence below 0.5 are `undecided` in synthetic train" in card


def test_a_stopped_build_does_not_go_on_with_labels_of_another_value(
    plan: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[VerificationChunk] = []
    make = VerificationChunk.make
    monkeypatch.setattr(VerificationChunk, "make", lambda job: jobs.append(job) or make(job))
    build(replace(plan, keep_work=True), CARDS)
    build(replace(plan, keep_work=True), CARDS)
    assert len(jobs) == 1
    made = build(replace(plan, keep_work=True, min_confidence=0.5), CARDS)
    assert [job.min_confidence for job in jobs] == [0.0, 0.5]
    assert 0.35 not in {label.confidence for label in labels_of(plan.output).values()
                        if label.unverifiable}  # fmt: skip
    assert made.min_confidence == 0.5


@pytest.mark.parametrize("least", [-0.1, 1.5, float("nan")])
def test_a_confidence_that_is_no_share(plan: Build, least: float) -> None:
    with pytest.raises(UserError, match="between 0 and 1"):
        replace(plan, min_confidence=least)


# Known labels


def test_published_labels_score_and_never_label(plan: Build, tmp_path: Path) -> None:
    rows = list(truths().items())[:25]
    turned = [(id_, not noise) for id_, noise in rows]  # as wrong as can be
    build(plan, CARDS)
    data = contents(plan.output / VERIFIED / "data")
    scored = replace(plan, published=published(tmp_path, [*turned, ("else", True)]))
    made = build(scored, CARDS)
    assert contents(plan.output / VERIFIED / "data") == data
    assert made.known is not None
    found = made.known.agreement
    ours = labels_of(plan.output)
    both = Counter((noise, ours[id_].unverifiable) for id_, noise in turned)
    assert (found.rows, found.noise) == (25, sum(noise for _, noise in turned))
    assert found.found == both[True, True] + both[False, True]
    assert found.precision == round(both[True, True] / found.found, 4)
    assert made.known.by == "published.jsonl"
    assert len(made.known.digest) == 64
    said = summary(scored, made)
    assert "agreement with published.jsonl on 25 rows" in said
    for dataset in (VERIFIED, NOISE_LABELS):
        card = (plan.output / dataset / "README.md").read_text(encoding="utf-8")
        assert "| synthetic | train | published.jsonl | 25 of 40 |" in card
        assert "| synthetic | train | 0.7 to 0.9 |" in card


def test_made_up_rows_are_scored_by_their_truth(plan: Build, tmp_path: Path) -> None:
    made = build(plan, CARDS)
    file = tmp_path / "rows.jsonl"
    rows = generate(parse_spec(SPEC), split="train")
    file.write_text("".join(json.dumps(to_row(*row)) + "\n" for row in rows), encoding="utf-8")
    again = build(replace(plan, source=str(file), output=tmp_path / "file"), CARDS)
    assert made.known == again.known
    assert made.known is not None
    assert made.known.agreement.noise == sum(truths().values())
    assert made.known.agreement.rows == 40


def test_labels_of_other_rows_are_said_to_be_so(plan: Build, tmp_path: Path) -> None:
    scored = replace(plan, published=published(tmp_path, [("else", True)]))
    made = build(scored, CARDS)
    assert "agreement with published.jsonl: none of the rows is in it" in summary(scored, made)
    card = (plan.output / VERIFIED / "README.md").read_text(encoding="utf-8")
    assert "| published.jsonl | 0 of 40 | 0 | 0 | - | - | - |" in card


def test_bad_published_labels_stop_a_build_before_it_works(
    plan: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(collect, "results", work)
    (tmp_path / "torn.jsonl").write_text('{"id": "x"', encoding="utf-8")
    for name in ("torn.jsonl", "none.jsonl"):
        with pytest.raises(UserError, match=name):
            build(replace(plan, published=tmp_path / name), CARDS)
