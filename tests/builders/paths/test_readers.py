"""Questions over a graph, in every shape in which they travel."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.paths import metaqa
from builders.paths.freebase import CWQ, WEBQSP
from builders.paths.relation_readers import own_graph, questions
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.records import KGQuestion, identity

ORIGINAL = "[Ana [B]] wrote which films\tOru|Vel\nwho wrote [Oru]\tAna [B]\n"
ROG: dict[str, Any] = {
    "id": "WebQTrn-7",
    "question": "what did ana write",
    "answer": ["Oru", "Oru"],
    "q_entity": ["Ana"],
    "a_entity": ["Oru"],
    "graph": [["Ana", "people.person.wrote", "Oru"]],
}


@pytest.mark.parametrize("packed", [False, True])
def test_original_files_tell_hops_by_their_folder(packed: bool, tmp_path: Path) -> None:
    file = tmp_path / "2-hop" / "vanilla" / "qa_train.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(gzip.compress(ORIGINAL.encode()) if packed else ORIGINAL.encode())
    first, second = questions("metaqa", str(file), "train")
    assert first == KGQuestion(
        "2hop-train-1", "metaqa", "train", "[Ana [B]] wrote which films", ("Ana [B]",),
        frozenset(["Oru", "Vel"]), (), 2,
    )  # fmt: skip
    assert second.topics == ("Oru",)


def test_a_file_that_says_no_hops_has_none(tmp_path: Path) -> None:
    file = tmp_path / "qa.txt"
    file.write_text(ORIGINAL)
    found = list(questions("metaqa", str(file), "dev"))
    assert [(q.id, q.hops) for q in found] == [("validation-1", 0), ("validation-2", 0)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("who wrote [Oru]", "qa.txt:1: missing field 'answers'"),
        ("who wrote Oru\tAna", "qa.txt:1: the question has no"),
        ("who wrote [Oru]\t", "qa.txt:1: an answer is empty"),
        ("who wrote [Oru]\tAna||Edo", "qa.txt:1: an answer is empty"),
    ],
)
def test_a_broken_line_is_told_with_its_place(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "qa.txt"
    file.write_text(f"{line}\n")
    with pytest.raises(UserError, match=said):
        list(questions("metaqa", str(file), "train"))


def test_bytes_that_are_no_text_are_told_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "qa.txt"
    file.write_bytes(b"who wrote [Oru]\tAna\xff\n")
    with pytest.raises(UserError, match=r"qa\.txt:1"):
        list(questions("metaqa", str(file), "train"))


@pytest.mark.parametrize("benchmark", ["webqsp", "cwq"])
def test_rog_rows_come_as_lines_and_as_parquet(benchmark: str, tmp_path: Path) -> None:
    lines, parquet = tmp_path / "rows.jsonl", tmp_path / "rows.parquet"
    lines.write_text(json.dumps(ROG) + "\n")
    pq.write_table(pa.Table.from_pylist([ROG]), parquet)
    (one,), (other,) = (list(questions(benchmark, str(file), "test")) for file in (lines, parquet))
    assert one == other
    assert (one.topics, one.answers, one.hops) == (("Ana",), frozenset(["Oru"]), 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"graph": [["a", "b"]]}, "triple 1 of graph is not"),
        ({"graph": [["a", "b", 3]]}, "triple 1 of graph is"),
        ({"graph": None}, "missing field 'graph'"),
        ({"answer": "", "a_entity": None}, "answer is empty"),
    ],
)
def test_what_is_no_rog_row_is_told(change: dict[str, Any], said: str) -> None:
    row = {**ROG, **change}
    with pytest.raises(RowError, match=said):
        WEBQSP.triples(row) if "graph" in change else CWQ.parse(row, "train")


def test_a_question_without_an_answer_or_a_topic_is_one(tmp_path: Path) -> None:
    assert WEBQSP.parse({**ROG, "answer": []}, "test").answers == frozenset()
    assert WEBQSP.parse({**ROG, "q_entity": []}, "test").topics == ()
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({**ROG, "q_entity": []}) + "\n")
    with pytest.raises(UserError, match=r"rows\.jsonl:1: it has no topic entity: there is nowhere to start from"):
        list(questions("webqsp", str(file), "train"))


@pytest.mark.parametrize("blank", ["", " ", None])
def test_a_triple_with_a_blank_name_is_left_out_and_counted(blank: str | None) -> None:
    graph = own_graph("cwq", {**ROG, "graph": [*ROG["graph"], ["Ana", "none", blank], [blank, "r", "Oru"]]})
    assert (graph.relations, graph.left_out) == (("people.person.wrote", "~people.person.wrote"), 2)


@given(st.dictionaries(st.sampled_from(["id", "question", "answers", "hop", "graph"]), st.one_of(
    st.none(), st.text(), st.integers(), st.lists(st.text(), max_size=3)
)))  # fmt: skip
def test_any_object_is_a_question_or_a_row_error(row: dict[str, Any]) -> None:
    for parse in (metaqa.parse, WEBQSP.parse, CWQ.parse):
        try:
            question = parse(row, "train")
        except RowError:
            continue
        assert len(identity(question)) == 64
        assert question.question == row["question"]
