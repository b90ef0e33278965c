from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.benchmarks import hotpotqa, parse_row
from safe_stepwise.errors import RowError
from safe_stepwise.records import Passage, Question, SupportingFact, identity
from tests.builders.benchmarks.raw_rows import columnar, real_rows, spoilt

Row = dict[str, Any]
ROW: Row = {
    "_id": "5f00",
    "question": " In which country is the town that the Vel crosses? ",
    "answer": "Marn",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Vel", 1], ["Oru", 1]],
    "context": [
        ["Vel", ["The Vel is a river.", " It crosses Oru."]],
        ["Tamo", ["Tamo is a village.", " "]],
        ["Oru", ["Oru is a town.", " It lies in Márn."]],
    ],
}


def changed(**fields: Any) -> Row:
    return {**copy.deepcopy(ROW), **fields}


def test_reads_a_row_as_it_stands() -> None:
    assert hotpotqa.parse(ROW, "validation") == Question(
        id="5f00",
        benchmark="hotpotqa",
        split="validation",
        question=" In which country is the town that the Vel crosses? ",
        answer="Marn",
        kind="bridge",
        hops=2,
        passages=(
            Passage("Vel", ("The Vel is a river.", " It crosses Oru."), True),
            Passage("Tamo", ("Tamo is a village.", " "), False),
            Passage("Oru", ("Oru is a town.", " It lies in Márn."), True),
        ),
        supporting_facts=(SupportingFact("Vel", 1), SupportingFact("Oru", 1)),
    )


def test_a_fact_means_the_first_passage_of_its_title_that_has_the_sentence() -> None:
    context = [["Oru", ["Short."]], ["Oru", ["Long.", " Yes."]], ["Oru", ["Long.", " Yes."]]]
    question = hotpotqa.parse(changed(context=context, supporting_facts=[["Oru", 1]]), "train")
    assert [passage.is_gold for passage in question.passages] == [False, True, False]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (changed(question=" \n"), "question is empty"),
        (changed(question=7), "question is a number, expected a string"),
        (changed(question="\ud83d"), "question holds half a character at position 0"),
        (changed(answer=None), "no answer: a test split"),
        (changed(answer=" "), "no answer: a test split"),
        (changed(_id=None), "missing field '_id' or 'id'"),
        (changed(type="chain"), "type is 'chain', expected one of bridge, comparison"),
        (changed(context=[]), "context has no passages"),
        (changed(context=[["Vel", []]]), r"passage 1 \('Vel'\) is empty"),
        (changed(context=[["Vel", [" ", ""]]]), r"passage 1 \('Vel'\) is empty"),
        (changed(context=[["Vel", "text"]]), "passage 1 sentences is a string, expected a list"),
        (changed(context=[["Vel"]]), r"context 1 is a list of 1, expected \(title, sentences\)"),
        (changed(context={"title": ["Vel"]}), "context 1 has no 'sentences'"),
        (changed(context={"title": ["Vel"], "sentences": []}), "passage 1 title is a list of 1, expected a string"),
        (changed(context="[["), r"context 1 is a string, expected \(title, sentences\)"),
        (changed(supporting_facts=[]), "no supporting facts"),
        (changed(supporting_facts=[["Zem", 0]]), "fact 1 names sentence 0 of 'Zem', which"),
        (changed(supporting_facts=[["Vel", 2]]), "sentence 2 of 'Vel', which the context"),
        (changed(supporting_facts=[["Vel", -1]]), "sentence -1 of 'Vel'"),
        (changed(supporting_facts=[["Vel", True]]), "sentence is true or false, expected a whole"),
        (changed(paragraphs=[]), "looks like a musique row, not a hotpotqa one: try --benchmark musique"),
        (
            changed(evidences=[]),
            "looks like a 2wikimultihopqa row, not a hotpotqa one: try --benchmark 2wikimultihopqa",
        ),
        (changed(truth="none"), "looks like a synthetic row, not a hotpotqa one: try --benchmark synthetic"),
    ],
)
def test_refuses_a_bad_row_with_the_reason(row: Row, reason: str) -> None:
    with pytest.raises(RowError, match=reason) as error:
        parse_row(row, "hotpotqa", "train")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("field", sorted(set(ROW) - {"level"}))
def test_names_a_missing_field(field: str) -> None:
    row = {key: value for key, value in ROW.items() if key != field}
    with pytest.raises(RowError, match=field.strip("_")):
        hotpotqa.parse(row, "train")


@given(st.data())
def test_any_row_parses_or_says_why_not(data: st.DataObject) -> None:
    row = data.draw(spoilt(data.draw(st.sampled_from([ROW, columnar(ROW)]))))
    try:
        question = hotpotqa.parse(row, "train")
    except RowError:
        return
    assert identity(question)
    assert question.gold


def test_a_hub_dataset_gives_the_same_question() -> None:
    hub = datasets.Dataset.from_list([columnar(ROW)])
    assert [hotpotqa.parse(row, "train") for row in hub] == [hotpotqa.parse(ROW, "train")]


def test_all_real_rows_in_both_shapes(real_data: Path) -> None:
    for row in real_rows(real_data, "hotpotqa"):
        question = hotpotqa.parse(row, "train")
        assert hotpotqa.parse(columnar(row), "train") == question
        assert question.question == row["question"]
        assert [[p.title, list(p.sentences)] for p in question.passages] == row["context"]
        gold = {title for title, _ in row["supporting_facts"]}
        assert {passage.title for _, passage in question.gold} == gold
