"""What questions give to judge by: from evidence, decompositions, derivations and other graphs."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.benchmarks import BENCHMARKS
from builders.synthetic import Spec, generate
from evaluators.derivations import read_derivations
from safe_stepwise.checking.faithfulness.grounds import (
    Chain,
    Grounds,
    fact_of,
    grounds_of,
    grounds_of_paths,
    is_alike,
    is_same,
    orders,
    walk_ends,
)
from safe_stepwise.checking.faithfulness.grounds import Path as Told
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.errors import RowError
from safe_stepwise.records import Hop, Passage, Question, SupportingFact, Triple

DIRECTOR = Triple("Dune Rain", "director", "Ors Velt")
SPOUSE = Triple("Ors Velt", "spouse", "Ana Vorr")


def asked(question: str, answer: str, *evidence: Triple, kind: str = "") -> Question:
    return Question("q", "b", "train", question, answer, kind=kind, evidence=evidence)


def test_evidence_is_the_path_and_the_graph_adds_what_else_is_known() -> None:
    read = Triple("the Dune Rain", "director", "Ors Velt", 1, 0)
    more = Triple("Ana Vorr", "place of birth", "Oru", 2, 1)
    question = asked("Who married the director of Dune Rain?", "Ana Vorr", DIRECTOR, SPOUSE)
    grounds = grounds_of(question, [read, more])
    assert grounds.paths == ((DIRECTOR, SPOUSE),)
    assert grounds.triples == (DIRECTOR, SPOUSE, more)
    assert (grounds.starts, grounds.answers) == (("Dune Rain",), ("Ana Vorr",))


def test_a_decomposition_is_one_path_whose_branches_meet() -> None:
    hops = (
        Hop("Dune Rain >> director", "Ors Velt", 1),
        Hop("Tin Ford >> director", "Edo Marn", 2),
        Hop("What prize did #1 and #2 share?", "the Oru Cup", 3),
    )
    pages = tuple(Passage(title, ("…",), True) for title in ("Dune Rain", "Tin Ford", "Oru Cup"))
    said = "What prize did the directors of Dune Rain and Tin Ford share?"
    question = Question("q", "musique", "train", said, "the Oru Cup", passages=pages,
                        decomposition=hops)  # fmt: skip
    grounds = grounds_of(question)
    heads = [triple.head for triple in grounds.paths[0]]
    assert heads == ["Dune Rain", "Tin Ford", "Ors Velt", "Edo Marn"]
    assert grounds.is_branched
    assert grounds.starts == ("Dune Rain", "Tin Ford")
    assert grounds.passages == pages


def test_hotpotqa_annotates_no_path() -> None:
    question = Question("q", "hotpotqa", "train", "Who?", "Ana",
                        supporting_facts=(SupportingFact("Ana", 0),))  # fmt: skip
    grounds = grounds_of(question, [SPOUSE])
    assert (grounds.paths, grounds.triples) == ((), (SPOUSE,))


def test_comparisons_are_branched_though_their_facts_meet() -> None:
    one = Triple("Ana", "country of citizenship", "Kelvian")
    other = Triple("Ors", "country of citizenship", "Kelvian")
    assert walk_ends((one, other))
    question = asked("Are Ana and Ors from the same country?", "yes", one, other)
    assert grounds_of(question).is_branched
    same = grounds_of_paths(question.question, ["yes"], [[one, other]])
    assert same.is_branched
    assert same.starts == ("Ana", "Ors")


def test_what_two_facts_share_is_told_in_any_order() -> None:
    facts = [Triple("Ana Vorr", "employer", "Oru Pictures"),
             Triple("Ors Velt", "employer", "Oru Pictures")]  # fmt: skip
    asked_for = asked("Who employed both Ana Vorr and Ors Velt?", "Oru Pictures", *facts)
    assert grounds_of(asked_for).is_branched
    assert grounds_of(asked_for).starts == ("Ana Vorr", "Ors Velt")


def test_what_a_comparison_asks_for_is_where_it_starts() -> None:
    facts = [Triple("Dune Rain", "publication date", "1951"),
             Triple("Tin Ford", "publication date", "1962")]  # fmt: skip
    question = asked("Which is older, Dune Rain or Tin Ford?", "Dune Rain", *facts,
                     kind="comparison")  # fmt: skip
    assert grounds_of(question).starts == ("Dune Rain", "Tin Ford")


def test_a_question_that_names_nothing_starts_at_the_root() -> None:
    assert grounds_of(asked("Who married him?", "Ana Vorr", DIRECTOR, SPOUSE)).starts == ("Dune Rain",)


def test_a_possessive_names_its_owner() -> None:
    wed = Triple("Ana Vorr", "spouse", "Ors Velt")
    film = Triple("Dune Rain", "director", "Ors Velt")
    question = asked("What film did Ana Vorr’s husband direct?", "Dune Rain", wed, film)
    assert grounds_of(question).starts == ("Ana Vorr",)
    assert grounds_of(asked("What did O'Dell's cook?", "Dune Rain", Triple(
        "O'Dell's", "dish", "Dune Rain"))).starts == ("O'Dell's",)  # fmt: skip


def test_an_entity_under_a_fuller_name_goes_on() -> None:
    path = (Triple("Edo Marn, 2nd Earl of Oru", "father", "Ors Marn, 1st Earl of Oru"),
            Triple("Ors Marn", "father", "Lir Marn"))  # fmt: skip
    assert walk_ends(path)
    assert not is_same("Ors Marn, 1st Earl of Oru", "Ors Marn, 3rd Earl of Oru")


def test_orders_keep_each_branch_in_its_own() -> None:
    path = (DIRECTOR, Triple("Tin Ford", "director", "Edo"), SPOUSE, Triple("Edo", "spouse", "Ina"))
    found = orders(path)
    assert found[0] == path
    assert len(set(found)) == len(found) == 6
    assert all(o.index(DIRECTOR) < o.index(SPOUSE) for o in found)
    many = tuple(Triple(f"E{n}", "r", f"F{n}") for n in range(9))
    assert len(orders(many)) == 120


def test_names_and_facts() -> None:
    assert is_alike("U.S.", "us") == is_alike("us", "U.S.")
    assert not is_alike("", "")
    assert is_alike("?", "?")
    assert fact_of(DIRECTOR) == fact_of(Triple("The Dune Rain", "director", "Ors Velt", 3, 1))


def plainly(path: Told) -> tuple[str, ...]:
    return tuple(f"The {t.relation.replace('_', ' ')} of {t.head} is {t.tail}." for t in path)


def check_told(grounds: Grounds, answer: str) -> None:
    """A gold path told plainly is faithful to the paper's rule; backwards, a chain is not."""
    path = grounds.paths[0]
    assert judge_chain(grounds, Chain(plainly(path), answer), "paper").path == "faithful"
    assert judge_chain(grounds, Chain(plainly(path), answer), "paper").edits == 0
    if len(path) > 1 and not grounds.is_branched:
        back = judge_chain(grounds, Chain(plainly(path[::-1]), answer), "paper")
        assert (back.path, back.fault) == ("unfaithful", "order")


def test_the_made_up_worlds_paths() -> None:
    questions = [q for q, truth in generate(Spec(rows=200)) if truth == "none"]
    for question in questions:
        check_told(grounds_of(question), question.answer)
    assert len(questions) > 150


def rows(folder: Path, benchmark: str) -> Iterator[Question]:
    for split in ("train", "dev"):
        for line in (folder / f"{benchmark}_{split}.jsonl").read_text("utf-8").splitlines():
            try:
                yield BENCHMARKS[benchmark].parse(json.loads(line), split)
            except RowError:
                continue


@pytest.mark.parametrize("benchmark", ["2wikimultihopqa", "musique"])
def test_real_gold_paths(real_data: Path, benchmark: str) -> None:
    for question in rows(real_data, benchmark):
        grounds = grounds_of(question)
        assert grounds.starts, question.id
        check_told(grounds, question.answer)


def test_real_derivations(real_data: Path) -> None:
    """What people derived of HotpotQA's questions: each one's own told back has no edits."""
    found = read_derivations(real_data / "r4c_derivations.jsonl")
    questions = {q.id: q for q in rows(real_data, "hotpotqa")}
    judged = 0
    for id_, derivations in found.items():
        golds = [[Triple(*fact) for _, _, fact in told] for told in derivations if told]
        question = questions[id_]
        grounds = grounds_of_paths(question.question, question.accepted, golds,
                                   passages=question.passages)  # fmt: skip
        chain = Chain(tuple(f"{t.head} {t.relation} {t.tail}." for t in golds[0]), question.answer)
        verdict = judge_chain(grounds, chain, "paper")
        assert not any(step.fault == "factual" for step in verdict.steps)
        judged += verdict.edits == 0
    assert judged >= 0.97 * len(found)


def test_real_paths_of_a_knowledge_graph(real_data: Path) -> None:
    """MetaQA, one hop: each fact that joins the topic to an answer is a path."""
    near: dict[str, list[Triple]] = defaultdict(list)
    with gzip.open(real_data / "metaqa_kb.txt.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            triple = Triple(*line.rstrip("\n").split("|"))
            near[triple.head].append(triple)
            near[triple.tail].append(triple)
    judged = 0
    for line in (real_data / "metaqa_questions.jsonl").read_text("utf-8").splitlines()[::5]:
        row = json.loads(line)
        topic = row["question"].partition("[")[2].partition("]")[0]
        facts = [t for t in near[topic] if {t.head, t.tail} & set(row["answers"])]
        if row["hop"] == 1 and facts:
            grounds = grounds_of_paths(row["question"], row["answers"], [[t] for t in facts],
                                       near[topic])  # fmt: skip
            check_told(grounds, row["answers"][0])
            judged += 1
    assert judged > 180
