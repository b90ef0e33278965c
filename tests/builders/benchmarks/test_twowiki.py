from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.benchmarks import parse_row, twowiki
from safe_stepwise.errors import RowError
from safe_stepwise.records import Triple, identity
from tests.builders.benchmarks.raw_rows import columnar, real_rows, spoilt

Row = dict[str, Any]
ROW: Row = {
    "_id": "8a01",
    "type": "compositional",
    "question": "Where was the director of Low Tide born?",
    "answer": "Oru",
    "answer_id": "Q0",
    "entity_ids": "Q1_Q2",
    "supporting_facts": [["Low Tide", 0], ["Ana Brell", 1]],
    "evidences": [["Low Tide", "director", "Ana Brell"], ["Ana Brell", "place of birth", "Oru"]],
    "evidences_id": [["Q1", "director", "Q2"], ["Q2", "place of birth", "Q0"]],
    "context": [
        ["Low Tide", ["Low Tide is a film by Ana Brell."]],
        ["Ana Brell", ["Ana Brell is a director.", "She was born in Oru."]],
    ],
}


def changed(**fields: Any) -> Row:
    return {**copy.deepcopy(ROW), **fields}


def as_objects(row: Row) -> Row:
    """Evidences as objects, as one Hub copy's features name them."""
    names = ("fact", "relation", "entity")
    return {**row, "evidences": [dict(zip(names, e, strict=True)) for e in row["evidences"]]}


def as_strings(row: Row) -> Row:
    """Nested fields as JSON strings, as another Hub copy's Parquet holds them."""
    nested = ("context", "supporting_facts", "evidences")
    return {**row, **{name: json.dumps(row[name]) for name in nested}}


def test_reads_evidence_as_triples_without_a_passage() -> None:
    question = twowiki.parse(ROW, "train")
    assert question.benchmark == "2wikimultihopqa"
    assert question.evidence == (
        Triple("Low Tide", "director", "Ana Brell"),
        Triple("Ana Brell", "place of birth", "Oru"),
    )
    assert [passage.title for _, passage in question.gold] == ["Low Tide", "Ana Brell"]


@pytest.mark.parametrize(
    ("kind", "hops"), [("compositional", 2), ("comparison", 2), ("inference", 2), ("bridge_comparison", 4)]
)
def test_hops_follow_the_type(kind: str, hops: int) -> None:
    question = twowiki.parse(changed(type=kind), "train")
    assert (question.kind, question.hops) == (kind, hops)


def test_ids_may_be_missing() -> None:
    bare = {k: v for k, v in ROW.items() if k not in ("answer_id", "entity_ids", "evidences_id")}
    assert twowiki.parse(bare, "train") == twowiki.parse(ROW, "train")


def test_all_hub_shapes_are_one_question() -> None:
    shapes = [ROW, as_strings(ROW), columnar(ROW), as_objects(columnar(ROW)), as_objects(ROW)]
    assert len({twowiki.parse(shape, "train") for shape in shapes}) == 1
    for shape in (as_strings(ROW), columnar(ROW), as_objects(columnar(ROW))):
        (row,) = datasets.Dataset.from_list([shape])
        assert twowiki.parse(row, "train") == twowiki.parse(ROW, "train")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (changed(evidences=[["Low Tide", "director"]]), "evidences 1 is a list of 2, expected"),
        (changed(evidences=[["Low Tide", "director", 3]]), "evidence 1 object is a number"),
        (changed(evidences=[{"fact": "x", "relation": "y"}]), "evidences 1 has no 'entity'"),
        (changed(evidences=None), "missing field 'evidences'"),
        (changed(type="bridge"), "type is 'bridge', expected one of compositional, comparison"),
        (changed(supporting_facts=[["Ana Brell", 2]]), "sentence 2 of 'Ana Brell', which"),
        (changed(answer=""), "no answer"),
        (
            {"_id": "5f", "level": "hard", "context": []},
            "a hotpotqa row, not a 2wikimultihopqa one: try --benchmark hotpotqa",
        ),
        ({"id": "2hop__1_2", "paragraphs": []}, "a musique row, not a 2wikimultihopqa one: try --benchmark musique"),
    ],
)
def test_refuses_a_bad_row_with_the_reason(row: Row, reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        parse_row(row, "2wikimultihopqa", "train")


@given(st.data())
def test_any_row_parses_or_says_why_not(data: st.DataObject) -> None:
    shapes = [ROW, as_objects(columnar(ROW)), as_strings(ROW)]
    row = data.draw(spoilt(data.draw(st.sampled_from(shapes))))
    with contextlib.suppress(RowError):
        assert identity(twowiki.parse(row, "train"))


def names_missing_sentence(row: Row) -> bool:
    lengths = {title: len(sentences) for title, sentences in row["context"]}
    return any(sentence >= lengths[title] for title, sentence in row["supporting_facts"])


def test_all_real_rows_in_all_shapes(real_data: Path) -> None:
    for row in real_rows(real_data, "2wikimultihopqa"):
        if names_missing_sentence(row):
            with pytest.raises(RowError, match=r"supporting fact \d names sentence \d+ of"):
                twowiki.parse(row, "train")
            continue
        question = twowiki.parse(row, "train")
        for shape in (columnar(row), as_objects(columnar(row)), as_strings(row)):
            assert twowiki.parse(shape, "train") == question
        assert [[p.title, list(p.sentences)] for p in question.passages] == row["context"]
        assert [[t.head, t.relation, t.tail] for t in question.evidence] == row["evidences"]
        gold = [passage.title for _, passage in question.gold]
        assert sorted(gold) == sorted({title for title, _ in row["supporting_facts"]})
