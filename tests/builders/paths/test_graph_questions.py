"""Gold paths of the probe's questions over a graph: derived, and beyond doubt or left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.paths.questions import GoldPaths, Questions
from builders.paths.sources import derive, find_gold, with_paths
from builders.paths.world import PathQuestion as Asked
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.graph_store import GraphStore
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion, Triple
from tests.makers import films

GRAPH = GraphStore(
    [
        ("Oru", "directed_by", "Ana"),
        ("Oru", "written_by", "Ana"),
        ("Vel", "directed_by", "Ana"),
        ("Marn", "directed_by", "Ors"),
        ("Kel", "directed_by", "Ors"),
    ]
)


def asked(words: str, topic: str, hops: int, *answers: str) -> KGQuestion:
    question = words.format(topic)
    return KGQuestion(question, "films", "test", question, (topic,), frozenset(answers), (), hops)


def outcome(*questions: KGQuestion) -> tuple[list[Asked], list[str]]:
    refused: list[str] = []
    by_template = derive(GRAPH, questions)
    rows = []
    for question in questions:
        path = by_template.get(masked(question.question, question.topics))
        gold: GoldPaths = {} if path is None else {question.topics[0]: (path,)}
        rows.append((question, GRAPH, gold))
    return list(with_paths(rows, lambda _, __, why: refused.append(why))), refused


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Questions:
    kb, file = films.written(tmp_path_factory.mktemp("films"), 200)
    return Questions("metaqa", [str(file)], "test", kb)


def test_every_path_is_the_one_that_was_meant(made_up: Questions) -> None:
    questions = made_up.questions
    meant = {words.replace("[{}]", "[topic]"): path for words, path in films.ASKED.items()}
    assert derive(next(made_up.graphs()), questions) == meant
    facts = {Triple(*triple) for triple in films.triples()}
    by_id = {one.id: one for one in questions}
    found = list(with_paths(find_gold(made_up), lambda *_: None))
    assert len(found) > 150
    for one in found:
        own = by_id[one.id]
        assert "[" not in one.question
        assert set(one.accepted) == own.answers
        for path in one.paths:
            assert len(path) == own.hops == len(set(path))
            assert set(path) <= facts
            assert own.topics[0] in (path[0].head, path[0].tail)
            assert {path[-1].head, path[-1].tail} & own.answers


def test_a_path_that_another_may_stand_for_is_left_out() -> None:
    who = "who made [{}]"
    found, refused = outcome(asked(who, "Oru", 1, "Ana"))
    assert not found, "to direct and to write are one in this graph's only question"
    assert refused == ["no relation path, or several, give its answers best"]
    found, refused = outcome(asked(who, "Oru", 1, "Ana"), asked(who, "Vel", 1, "Ana"))
    assert [one.path for one in found] == [(Triple(name, "directed_by", "Ana"),) for name in ("Oru", "Vel")]
    assert not refused


def test_what_its_path_does_not_answer_is_left_out() -> None:
    what = "what did [{}] direct"
    found, refused = outcome(asked(what, "Ana", 1, "Oru", "Vel"), asked(what, "Ors", 1, "Marn", "Oru"))
    assert [one.id for one in found] == ["what did [Ana] direct"]
    assert found[0].question == "what did Ana direct"
    assert refused == ["its relation path does not give its answers"]


@pytest.mark.parametrize(("topic", "hops"), [("nobody", 1), ("Ana", 0), ("Ana", 4)])
def test_what_can_have_no_path_is_left_out(topic: str, hops: int) -> None:
    question = asked("what of [{}]", topic, hops, "Oru")
    assert outcome(question) == ([], ["no relation path, or several, give its answers best"])


def test_a_path_that_goes_back_by_its_fact_is_none() -> None:
    back = "who directed what the director of [{}] did"
    found, refused = outcome(asked(back, "Marn", 3, "Ors"))
    assert not found
    assert refused == ["its paths go by one fact twice"]


def test_a_relation_that_looks_backward_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kb.txt").write_text("a|~by|b\n")
    with pytest.raises(UserError, match=r"kb\.txt: the relation '~by' begins with"):
        Questions("metaqa", [str(tmp_path / "questions.jsonl")], "test", tmp_path / "kb.txt")
