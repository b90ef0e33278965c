from __future__ import annotations

import pyarrow as pa
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from builders.verified.questions import config_features
from safe_stepwise.records import NOISE_TYPES, Hop, Label, Passage, Question, SupportingFact, Triple
from safe_stepwise.store.codec import label_of, label_row, question_of, question_row
from safe_stepwise.store.names import EVAL, LABELED, NOISE_LABELS, VERIFIED

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
number = st.integers(0, 99)
passages = st.builds(Passage, text, st.lists(text, max_size=3).map(tuple), st.booleans())
evidence = st.builds(Triple, text, text, text)
questions = st.builds(
    Question,
    id=text,
    benchmark=st.just("synthetic"),
    split=st.just("train"),
    question=text,
    answer=text,
    aliases=st.lists(text, max_size=2).map(tuple),
    kind=text,
    hops=number,
    passages=st.lists(passages, max_size=3).map(tuple),
    supporting_facts=st.lists(st.builds(SupportingFact, text, number), max_size=2).map(tuple),
    evidence=st.lists(evidence, max_size=2).map(tuple),
    decomposition=st.lists(st.builds(Hop, text, text, st.none() | number), max_size=2).map(tuple),
)


@given(questions)
def test_question_survives_its_row_and_arrow(question: Question) -> None:
    row = question_row(question)
    table = pa.Table.from_pylist([row], schema=config_features(VERIFIED, "b").arrow_schema)
    for read in (row, table.to_pylist()[0]):
        assert question_of(read, benchmark="synthetic", split="train") == question


def test_columns_are_the_contract() -> None:
    row = "id question answer aliases kind hops passages supporting_facts evidence decomposition"
    label = "unverifiable noise_type confidence explanation reasoning_path knowledge_graph teacher"
    assert list(config_features(VERIFIED, "b")) == row.split()
    assert list(config_features(VERIFIED, EVAL)) == [*row.split(), "input"]
    assert list(config_features(VERIFIED, LABELED)) == [*row.split(), *label.split()]
    assert list(config_features(NOISE_LABELS, "b")) == ["id", "question_sha256", *label.split()]
    assert config_features(NOISE_LABELS, "b")["noise_type"].names == list(NOISE_TYPES)


def test_label_row_reads_back_by_name() -> None:
    steps = (Triple("Oru", "country", "Marn", 2, 0), Triple("Vel", "crosses", "Oru", None, None))
    label = Label("wrong_answer", "The passages say Marn.", steps[:1], steps, "annotations", 0.85)
    columns = config_features(NOISE_LABELS, "b")
    data = Dataset.from_list([{"id": "q", "question_sha256": "", **label_row(label)}], features=columns)
    row = data[0]
    assert columns["noise_type"].int2str(row["noise_type"]) == "wrong_answer"
    assert row["unverifiable"] is True
    assert label_of(row).confidence == 0.85
    assert row["reasoning_path"] == [{"head": "Oru", "relation": "country", "tail": "Marn", "passage": 2}]
    assert row["knowledge_graph"][1]["passage"] is None
    assert row["knowledge_graph"][0]["sentence"] == 0


def test_unparsed_is_not_unverifiable() -> None:
    row = label_row(Label("unparsed", "No answer came.", (), (), "t"))
    assert row["unverifiable"] is False
    assert NOISE_TYPES[row["noise_type"]] == "unparsed"
