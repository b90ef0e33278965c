"""Questions over a graph, asked without passages: all answers, all their paths, and chains that follow any of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.paths.sources import read_chain_questions, to_question
from evaluators.faithfulness.measuring import measure
from evaluators.outcomes import QuestionRecord
from safe_stepwise.checking.faithfulness.grounds import Chain, Rule, grounds_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.graph_store import GraphStore
from safe_stepwise.records import KGQuestion, canonical_json
from safe_stepwise.store import boundary
from scripts import evaluate_stepwise
from tests.makers import books, films
from tests.makers.prompting import outcome_of

GRAPH = GraphStore(
    [
        ("Dune Rain", "directed_by", "Ors Velt"),
        ("Dune Rain", "directed_by", "Ana Brell"),
        ("Low Tide", "directed_by", "Ors Velt"),
        ("Ember", "directed_by", "Ors Velt"),
        ("Ember", "directed_by", "Ana Brell"),
        ("Grey Ford", "directed_by", "Ana Brell"),
        ("Low Tide", "written_by", "Ana Brell"),
    ]
)
ROW = KGQuestion(
    *("q1", "metaqa", "test", "which other films are by a director of [Dune Rain]"),
    ("Dune Rain",),
    frozenset({"Low Tide", "Ember"}),
    (),
    2,
)
QUESTION = to_question(ROW, GRAPH, {"Dune Rain": (("directed_by", "~directed_by"),)})


def test_two_answers_have_three_paths() -> None:
    """By hand: Ember over either director, Low Tide over Ors Velt. Grey Ford is on a path, and no answer."""
    walks = {tuple((t.head, t.tail) for t in path) for path in QUESTION.paths}
    assert walks == {
        (("Dune Rain", "Ana Brell"), ("Ember", "Ana Brell")),
        (("Dune Rain", "Ors Velt"), ("Ember", "Ors Velt")),
        (("Dune Rain", "Ors Velt"), ("Low Tide", "Ors Velt")),
    }
    assert QUESTION.question == "which other films are by a director of Dune Rain"
    assert (set(QUESTION.accepted), QUESTION.passages, QUESTION.hops) == ({"Ember", "Low Tide"}, (), 2)
    assert QUESTION.evidence == QUESTION.paths[0]


@pytest.mark.parametrize("rule", ["house", "paper"])
@pytest.mark.parametrize(
    ("director", "film", "path", "edits"),
    [
        ("Ana Brell", "Ember", "faithful", 0),
        ("Ors Velt", "Ember", "faithful", 0),
        ("Ors Velt", "Low Tide", "faithful", 0),
        # Ana Brell only wrote it.
        ("Ana Brell", "Low Tide", "unfaithful", 1),
    ],
)
def test_a_chain_may_follow_any_of_the_paths(rule: Rule, director: str, film: str, path: str, edits: int) -> None:
    steps = (f"Dune Rain was directed by {director}.", f"{film} was directed by {director}.")
    verdict = judge_chain(grounds_of(QUESTION), Chain(steps, film), rule)
    assert (verdict.is_right, verdict.path, verdict.edits) == (True, path, edits)


def test_the_paths_are_kept_for_measuring_anew() -> None:
    record = QuestionRecord.from_question(QUESTION, {})
    read_back = boundary.read(QuestionRecord, boundary.parse_json(record.to_json()), "the question")
    assert read_back.as_question.paths == QUESTION.paths
    plain = QuestionRecord("b", "q", "Who?", ("Oru",), ())
    assert "paths" not in plain.to_json() + canonical_json(plain.as_question)


def test_chains_are_matched_to_the_paths_of_all_questions() -> None:
    """As in the paper (C.1): a step is matched to another question's fact, if it states that."""
    reply = (
        "1. Dune Rain was directed by Ors Velt.\n2. Grey Ford was directed by Ana Brell.\nSo the answer is (Ember)."
    )
    row = KGQuestion("q2", "custom", "test", "who made [Grey Ford]", ("Grey Ford",), frozenset({"Ana Brell"}), (), 1)
    other_question = to_question(row, GRAPH, {"Grey Ford": (("directed_by",),)})
    pairs = [
        (outcome_of("few_shot_cot", lambda _: reply, q), q)
        for q in (replace(QUESTION, benchmark="custom"), other_question)
    ]
    judged = next(judged for judged in measure(pairs) if judged.outcome.question_id == "q1")
    assert judged.verdicts["paper"].steps[1].triples[0].names == ("Grey Ford", "directed_by", "Ana Brell")


def test_a_question_without_a_path_is_kept() -> None:
    question = to_question(ROW, GRAPH, {})
    assert (question.paths, question.evidence, question.accepted) == ((), (), ("Ember", "Low Tide"))


@pytest.mark.parametrize("benchmarks", [(), ("metaqa", "cwq")])
def test_the_graph_is_of_one_benchmark(benchmarks: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--benchmark metaqa"):
        read_chain_questions(tmp_path / "kb.txt", "questions.txt", benchmarks, None, None)


# ------------------------------------------------------------------------------------------ the command


def evaluate(folder: Path, source: Path, *more: str, method: str = "cot_plan") -> dict[str, Any]:
    evaluate_stepwise.main(
        [f"--questions={source}", f"--output={folder / 'out'}", f"--cache={folder / 'replies.sqlite'}",
         f"--method={method}", "--generator=symbolic", *more]
    )  # fmt: skip
    results: dict[str, Any] = json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))
    return results


def check_all_earned(results: dict[str, Any], size: int) -> None:
    assert results["runs"][0]["all"]["exact_match"] == 1
    rules = results["faithfulness"]["systems"][0]["all"]["rules"]
    earned = {rule: measures["answers"]["exact_match"]["right"]["faithful"] for rule, measures in rules.items()}
    assert earned == {"house": size, "paper": size}
    assert results["faithfulness"]["settings"]["questions"] == size


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return films.written(tmp_path_factory.mktemp("films"), 40)


def test_metaqa_from_the_command_line(made_up: tuple[Path, Path], tmp_path: Path) -> None:
    kb, rows = made_up
    check_all_earned(evaluate(tmp_path, rows, "--benchmark=metaqa", f"--kb={kb}", "--limit=12"), 12)
    with pytest.raises(
        UserError, match=r"--method cot reads passages, which these questions lack; take few_shot_cot or cot_plan"
    ):
        evaluate(tmp_path, rows, "--benchmark=metaqa", f"--kb={kb}", method="cot")
    with pytest.raises(UserError, match="its knowledge graph is a file"):
        evaluate(tmp_path, rows, "--benchmark=metaqa")


def test_rows_that_bring_their_own_graph(tmp_path: Path) -> None:
    """RoG's form, with two topics; a row that can't be read is kept apart."""
    graph = [
        ["Ana", "book.author.works", "Dune"],
        ["Ana", "book.author.works", "Ember"],
        ["Ors", "film.wrote", "Ember"],
    ]
    row = {
        "id": "w1",
        "question": "what did ana and ors write",
        "answer": ["Ember"],
        "q_entity": ["Ana", "Ors"],
        "graph": graph,
    }
    file = tmp_path / "cwq.jsonl"
    file.write_text(f"{json.dumps(row)}\n{json.dumps({'id': 'w2'})}\n", encoding="utf-8")
    results = evaluate(tmp_path, file, "--benchmark=cwq", "--on-error=keep")
    check_all_earned(results, 1)
    assert results["settings"]["skipped"] == 1
    assert len((tmp_path / "out" / "rejects.jsonl").read_text(encoding="utf-8").splitlines()) == 1


def test_grailqa_from_the_command_line(tmp_path: Path) -> None:
    """Annotated paths that end at an answer: two hops by a nameless entity, two topics; none to a number."""
    kb, dev, _ = books.written(tmp_path)
    results = evaluate(tmp_path, dev, "--benchmark=grailqa", f"--kb={kb}", "--limit=26")
    rows = [json.loads(line) for line in (tmp_path / "out" / "questions.jsonl").read_text().splitlines()]
    paths = {row["id"][-3:]: row.get("paths", []) for row in rows}
    assert {id_ for id_, walks in paths.items() if not walks} == {f"10{n}" for n in range(8)}
    assert [len(path) for path in paths["300"]] == [2]
    assert len(paths["000"]) == 4
    assert {name for (step,) in paths["200"] for name in (step["head"], step["tail"])} == {
        "Author 0", "Editor 0", "Book 0",
    }  # fmt: skip
    rules = results["faithfulness"]["systems"][0]["all"]["rules"]
    earned = {rule: measures["answers"]["exact_match"]["right"]["faithful"] for rule, measures in rules.items()}
    assert earned == {"house": 18, "paper": 18}
    assert results["runs"][0]["all"]["failed"] == 8
