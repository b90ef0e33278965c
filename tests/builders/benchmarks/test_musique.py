from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.benchmarks import musique, parse_row
from safe_stepwise.errors import RowError
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.records import Hop, Passage, Question, identity
from tests.builders.benchmarks.raw_rows import real_rows, spoilt

Row = dict[str, Any]
ROW: Row = {
    "id": "3hop1__11_12_13",
    "question": "Which country is the birthplace of Ana Brell in?",
    "answer": "Marn",
    "answer_aliases": ["Republic of Marn"],
    "answerable": True,
    "question_decomposition": [
        {"id": 11, "question": "Ana Brell >> place of birth", "answer": "Oru", "paragraph_support_idx": 9},
        {"id": 12, "question": "#1 >> country", "answer": "Marn", "paragraph_support_idx": 4},
    ],
    "paragraphs": [
        {"idx": 4, "title": "Oru", "paragraph_text": "Oru is a town. It lies in Marn.", "is_supporting": True},
        {"idx": 5, "title": "Oru", "paragraph_text": "Oru is a novel.", "is_supporting": False},
        {"idx": 9, "title": "Ana Brell", "paragraph_text": "Ana Brell was born in Oru.", "is_supporting": True},
    ],
}


def changed(**fields: Any) -> Row:
    return {**copy.deepcopy(ROW), **fields}


def with_first(field: str, **values: Any) -> Row:
    """The row with values of the first item of a nested field replaced."""
    row = copy.deepcopy(ROW)
    row[field][0].update(values)
    return row


def as_columns(row: Row) -> Row:
    nested = ("paragraphs", "question_decomposition")
    columns = {name: {key: [item[key] for item in row[name]] for key in row[name][0]} for name in nested}
    return {**row, **columns}


def test_reads_a_row() -> None:
    assert musique.parse(ROW, "validation") == Question(
        id="3hop1__11_12_13",
        benchmark="musique",
        split="validation",
        question="Which country is the birthplace of Ana Brell in?",
        answer="Marn",
        aliases=("Republic of Marn",),
        kind="3hop1",
        hops=2,
        passages=(
            Passage("Oru", ("Oru is a town.", "It lies in Marn."), True),
            Passage("Oru", ("Oru is a novel.",), False),
            Passage("Ana Brell", ("Ana Brell was born in Oru.",), True),
        ),
        decomposition=(Hop("Ana Brell >> place of birth", "Oru", 3), Hop("#1 >> country", "Marn", 1)),
    )


def test_hub_shapes_give_the_same_question() -> None:
    wider = {**ROW, "golden_docs": ["extra"]}
    for shape in (wider, as_columns(ROW)):
        (row,) = datasets.Dataset.from_list([shape])
        assert musique.parse(row, "train") == musique.parse(ROW, "train")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (changed(answerable=False), "use MuSiQue-Ans"),
        (changed(answerable="yes"), "answerable is a string, expected true or false"),
        (changed(answer=None), "no answer"),
        (changed(question=""), "question is empty"),
        (changed(paragraphs=[]), "no supporting paragraph"),
        (with_first("paragraphs", paragraph_text=" \n"), r"paragraph 1 \('Oru'\) is empty"),
        (with_first("paragraphs", paragraph_text="a\udfffb"), "half a character at position 1"),
        (with_first("paragraphs", idx=9), "paragraph 3 has the idx 9 of paragraph 1"),
        (with_first("paragraphs", idx="4"), "paragraph 1 idx is a string"),
        (with_first("paragraphs", is_supporting=1), "is_supporting is a number"),
        (
            with_first("question_decomposition", paragraph_support_idx=7),
            "hop 1 points at paragraph idx 7, which is not there",
        ),
        (with_first("question_decomposition", paragraph_support_idx=None), "idx is null"),
        (changed(question_decomposition=[]), "no hops"),
        (changed(answer_aliases="Marn"), "answer_aliases is a string, expected a list"),
        ({"_id": "5f", "level": "hard"}, "this looks like a hotpotqa row, not a musique one: try --benchmark"),
        ({"_id": "5f", "evidences": []}, "this looks like a 2wikimultihopqa row"),
        ({"id": "x"}, "no answer"),
        ({"id": "x", "answer": "y"}, "missing field 'paragraphs'"),
    ],
)
def test_refuses_a_bad_row_with_the_reason(row: Row, reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        parse_row(row, "musique", "train")


@given(st.data())
def test_any_row_parses_or_says_why_not(data: st.DataObject) -> None:
    row = data.draw(spoilt(data.draw(st.sampled_from([ROW, as_columns(ROW)]))))
    try:
        question = musique.parse(row, "train")
    except RowError:
        return
    assert identity(question)
    assert question.gold
    assert all(hop.passage for hop in question.decomposition)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Go! is a film. It won.", ["Go! is a film.", "It won."]),
        ("A. B. Vale (1931 - 10 - 15) was a poet.", ["A. B. Vale (1931 - 10 - 15) was a poet."]),
        ("Led by Brell (1996 -- 98, 2014 -- 15) at Oru.", None),
        ("The Vel (1,367 mi) flows. It ends.", ["The Vel (1,367 mi) flows.", "It ends."]),
        ('He said "Go." Then he went.', ['He said "Go."', "Then he went."]),
        ("One.\n\nTwo.", ["One.", "Two."]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_splits_where_sentences_end(text: str, sentences: list[str] | None) -> None:
    expected = [text] if sentences is None else sentences
    assert list(split_sentences(text)) == expected


def without_space(text: str) -> str:
    return "".join(text.split())


@given(st.text() | st.text(alphabet="aB1.!?()\"' \n-é…·"))
def test_splitting_loses_nothing_but_white_space_between(text: str) -> None:
    sentences = split_sentences(text)
    assert without_space("".join(sentences)) == without_space(text)
    assert all(sentence and sentence in text for sentence in sentences)


def test_all_real_rows_in_both_shapes(real_data: Path) -> None:
    for row in real_rows(real_data, "musique"):
        question = musique.parse(row, "train")
        assert musique.parse(as_columns(row), "train") == question
        assert question.hops == int(question.kind[0]) == len(row["question_decomposition"])
        for raw, passage in zip(row["paragraphs"], question.passages, strict=True):
            assert (passage.title, passage.is_gold) == (raw["title"], raw["is_supporting"])
            assert without_space(passage.text) == without_space(raw["paragraph_text"])
        for raw, hop in zip(row["question_decomposition"], question.decomposition, strict=True):
            assert hop.passage is not None
            assert row["paragraphs"][hop.passage - 1]["idx"] == raw["paragraph_support_idx"]
