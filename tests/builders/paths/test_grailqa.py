"""GrailQA's questions, with the gold paths of their queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset
from hypothesis import given
from hypothesis import strategies as st

from builders.paths import grailqa, weak
from builders.paths.questions import ANNOTATED, BEST, Questions
from builders.paths.relation_readers import check_graph
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.graphs.graph_store import GraphStore, inverse
from safe_stepwise.records import Candidate
from safe_stepwise.store.names import paths_set
from scripts import build_paths
from tests.makers import books
from tests.makers.books import EDITED, EDITION, PUBLISHER, WROTE, edge, node
from tests.makers.films import execute

ROWS = {row["qid"] % 1000: row for row in books.grailqa()}


def test_one_relation() -> None:
    question = grailqa.parse(ROWS[0], "validation")
    assert (question.id, question.question) == ("2100001000000", "what did author 0 write?")
    assert question.answers == {"Book 0", "Book 8", "Book 16", "Book 21"}
    assert (question.topics, question.gold_paths) == (("Author 0",), (Candidate("Author 0", (WROTE,)),))
    assert question.hops == 1


def test_a_nameless_node_in_between() -> None:
    question = grailqa.parse(ROWS[300], "validation")
    assert question.gold_paths == (Candidate("Book 0", (EDITION, PUBLISHER)),)
    assert question.hops == 2


def test_two_entities_have_a_path_each() -> None:
    question = grailqa.parse(ROWS[200], "validation")
    assert question.gold_paths == (Candidate("Author 0", (WROTE,)), Candidate("Editor 0", (EDITED,)))
    assert question.hops == 1


def test_paths_of_several_lengths_give_no_number_of_hops() -> None:
    """Weak labels prefer paths of a question's number of hops, which here is one topic's alone."""
    nodes = [node(1, "Edition", "class"), node(2, "Oru Press"), node(3, "Author 0")]
    edges = [edge(0, EDITION, 1), edge(1, PUBLISHER, 2), edge(3, WROTE, 0)]
    question = grailqa.parse(books.row(1, "what?", ["Book 0"], nodes, edges), "validation")
    back = Candidate("Oru Press", (inverse(PUBLISHER), inverse(EDITION)))
    assert question.gold_paths == (back, Candidate("Author 0", (WROTE,)))
    assert question.hops == 0


def test_a_count_keeps_the_path_to_what_it_counts() -> None:
    question = grailqa.parse(ROWS[100], "validation")
    assert (question.answers, question.gold_paths) == ({"4"}, (Candidate("Author 0", (WROTE,)),))


def test_without_an_entity_there_is_no_topic() -> None:
    question = grailqa.parse(ROWS[400], "validation")
    assert (question.topics, question.gold_paths, question.hops) == ((), (), 0)


def test_an_entity_without_a_name_has_its_id() -> None:
    nodes = [node(1, "", id="m.0abc")]
    question = grailqa.parse(books.row(1, "what?", [""], nodes, [edge(0, EDITION, 1)]), "validation")
    assert (question.topics, question.answers) == (("m.0abc",), {"m.0"})


def test_a_copy_with_lists_by_column() -> None:
    """The Hub's copy has them."""
    row: dict[str, Any] = json.loads(json.dumps(ROWS[200]))
    query = row["graph_query"]
    query |= {name: {key: [part[key] for part in query[name]] for key in query[name][0]} for name in query}
    row["answer"] = {key: [answer[key] for answer in row["answer"]] for key in row["answer"][0]}
    assert grailqa.parse(row, "validation") == grailqa.parse(ROWS[200], "validation")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": None, "graph_query": None}, "its answers or its query are hidden, as in GrailQA's test split"),
        ({"answer": []}, "are hidden"),
        ({"answer": ["Book 0"]}, "missing field 'answer_argument'"),
        ({"answer": [{"answer_type": "Value"}]}, "missing field 'answer_argument'"),
        ({"graph_query": ["x"]}, "graph_query is no object with nodes and edges"),
        ({"graph_query": {"nodes": [node(0, "Book", "class")], "edges": []}}, "its query has 0 question nodes"),
        ({"graph_query": {"nodes": [books.ASKED], "edges": [edge(0, WROTE, 1)] * 21}}, "and 21 edges; write 1"),
        ({"graph_query": {"nodes": [books.ASKED], "edges": [edge(0, WROTE, 77)]}}, "an edge of a nid that no"),
        ({"graph_query": {"nodes": [books.ASKED, books.ASKED], "edges": []}}, "question nodes"),
        ({"qid": ""}, "qid is empty"),
        ({"graph_query": {"nodes": [books.ASKED], "edges": [{"start": 0}]}}, "edges 1 has no 'end'"),
        ({"qid": None}, "missing field 'qid'"),
        ({"question": " "}, "question is empty"),
    ],
)
def test_a_row_that_cannot_be_used(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        grailqa.parse({**ROWS[0], **change}, "test")


@given(st.dictionaries(st.sampled_from(["qid", "question", "answer", "graph_query"]), st.recursive(
    st.none() | st.text() | st.integers(),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from(["nodes", "edges", "nid"]), parts),
)))  # fmt: skip
def test_any_object_is_a_question_or_a_row_error(row: dict[str, Any]) -> None:
    try:
        grailqa.parse(row, "validation")
    except RowError:
        return


@st.composite
def trees(draw: st.DrawFn) -> tuple[dict[str, Any], dict[int, str], list[tuple[int, str, int]]]:
    """A query that is a tree around node 0, whose leaves are entities; the names of its nodes, and its edges."""
    parents = [draw(st.integers(0, n)) for n in range(draw(st.integers(1, 6)))]
    edges = []
    for child, parent in enumerate(parents, 1):
        ends = (child, parent) if draw(st.booleans()) else (parent, child)
        edges.append((ends[0], draw(st.sampled_from(["r.a", "r.b"])), ends[1]))
    leaves = {child for child in range(1, len(parents) + 1) if child not in parents}
    nodes = [node(n, f"Leaf {n}" if n in leaves else "Thing", "entity" if n in leaves else "class",
                  question_node=int(n == 0)) for n in range(len(parents) + 1)]  # fmt: skip
    names = {n: f"Leaf {n}" if n in leaves else f"m.0{n}" for n in range(len(nodes))}
    query = {"nodes": draw(st.permutations(nodes)), "edges": [edge(*ends) for ends in draw(st.permutations(edges))]}
    return query, names, edges


@given(trees())
def test_each_gold_path_leads_to_the_question_node(
    tree: tuple[dict[str, Any], dict[int, str], list[tuple[int, str, int]]],
) -> None:
    query, names, edges = tree
    row = {**ROWS[0], "graph_query": query}
    question = grailqa.parse(row, "validation")
    graph = GraphStore((names[start], relation, names[end]) for start, relation, end in edges)
    leaves = {name for name in names.values() if name.startswith("Leaf")}
    assert {gold.topic for gold in question.gold_paths} == set(question.topics) == leaves
    assert len(question.gold_paths) == len(leaves), "a tree has one walk between two nodes"
    for gold in question.gold_paths:
        assert names[0] in execute(graph, gold.topic, gold.path)
        assert len(gold.path) == question.hops or question.hops == 0


@pytest.fixture
def rows(tmp_path: Path) -> Questions:
    kb, dev, _ = books.written(tmp_path)
    return Questions("grailqa", [str(dev)], "validation", kb)


def test_annotated_paths_go_before_all_others(rows: Questions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weak, "explore", None)  # nothing is searched
    template = {"what did [topic] write?": ((EDITED,),)}
    indices = [n for n, question in enumerate(rows.questions) if question.topics]
    gold, origin = rows.find_gold_paths(template, indices)
    assert origin == ANNOTATED == "annotated"
    assert gold[0] == {"Author 0": ((WROTE,),)}
    by_id = dict(zip((question.id[-3:] for question in rows.questions), gold, strict=True))
    assert by_id["200"] == {"Author 0": ((WROTE,),), "Editor 0": ((EDITED,),)}


def test_a_question_without_an_entity_has_no_gold_path(rows: Questions) -> None:
    gold, origin = rows.find_gold_paths({}, range(len(rows.questions)))
    assert gold[-1] == {}
    assert origin == f"{ANNOTATED} ({len(gold) - 1} questions); {BEST} (1 questions)"


def test_the_graph_is_a_file() -> None:
    with pytest.raises(UserError, match="grailqa: its knowledge graph is a file"):
        check_graph("grailqa", None)


def test_a_set_of_paths_has_each_topics_annotated_ones(tmp_path: Path) -> None:
    kb, dev, _ = books.written(tmp_path)
    options = ["--benchmark=grailqa", f"--kb={kb}", f"--input={dev}", "--split=dev", "--on-error=keep"]
    build_paths.main([*options, f"--output={tmp_path / 'out'}", "--workers=1"])
    folder = str(tmp_path / "out" / paths_set("grailqa"))
    rows = [row for split in ("train", "test") for row in load_dataset(folder, "paths", split=split)]
    gold = {(row["question_id"], Candidate(row["topic"], tuple(row["path"]))) for row in rows if row["gold"]}
    questions = [grailqa.parse(row, "validation") for row in ROWS.values()]
    assert gold == {(question.id, path) for question in questions for path in question.gold_paths}
    statistics = json.loads((Path(folder) / "statistics" / "paths.json").read_bytes())
    assert (statistics["gold_paths"], statistics["rejected"]) == (3, 1)
    assert statistics["caveat"] == grailqa.CAVEAT
