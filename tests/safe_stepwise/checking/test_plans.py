"""The kinds of plan, and what each item builds on."""

from __future__ import annotations

import pytest

from safe_stepwise.checking.plans import MOST_GOLD, PlanError, make_plan
from safe_stepwise.records import Passage, Question, Triple


def plan_of(question: str, answer: str, path: list[Triple], kind: str = "") -> object:
    made = Question("q", "2wikimultihopqa", "train", question, answer, kind=kind)
    return make_plan(made, path, path)


def shape(plan: object) -> tuple[str, list[tuple[str, tuple[int, ...]]]]:
    return plan.kind, [(item.kind, item.uses) for item in plan.items]  # type: ignore[attr-defined]


A, B = Triple("Dune", "director", "Ors", 1), Triple("Ford", "director", "Ana", 2)


def test_a_chain() -> None:
    path = [A, Triple("Ors", "spouse", "Mara", 3), Triple("Mara", "place of birth", "Oru", 4)]
    plan = plan_of("Where was the wife of the director of Dune born?", "Oru", path)
    assert shape(plan) == (
        "sequential",
        [("Attribution", ()), ("Attribution", (0,)), ("Attribution", (1,)), ("Logical", (2,))],
    )


def test_two_facts_about_what_the_question_names_build_on_nothing() -> None:
    path = [Triple("Dune", "director", "Ors", 1), Triple("Dune", "composer", "Ors", 1)]
    plan = plan_of("Who directed and scored Dune?", "Ors", path)
    assert shape(plan)[1][:1] == [("Attribution", ())]


def test_a_simple_comparison() -> None:
    path = [
        Triple("Dune", "publication date", "1951", 1),
        Triple("Ford", "publication date", "1962", 2),
    ]
    plan = plan_of("Which came out first, Dune or Ford?", "Dune", path, "comparison")
    assert shape(plan) == (
        "simple comparison",
        [("Attribution", ()), ("Attribution", ()), ("Logical", (0, 1))],
    )
    assert plan.operation == "earliest"  # type: ignore[attr-defined]


def test_a_bridge_comparison() -> None:
    path = [
        A,
        B,
        Triple("Ors", "date of birth", "1901", 3),
        Triple("Ana", "date of birth", "1899", 4),
    ]
    asked = "Which film has the director who was born first, Dune or Ford?"
    plan = plan_of(asked, "Ford", path, "bridge_comparison")
    kind, items = shape(plan)
    assert kind == "bridge comparison"
    assert items == [
        ("Attribution", ()),
        ("Attribution", (0,)),
        ("Attribution", ()),
        ("Attribution", (2,)),
        ("Logical", (1, 3)),
    ]


def test_a_calculated_comparison() -> None:
    dates = [("Ors", "1901", "1970"), ("Ana", "1899", "1960")]
    path = [
        triple
        for n, (name, born, died) in enumerate(dates, 1)
        for triple in (
            Triple(name, "date of birth", born, n),
            Triple(name, "date of death", died, n),
        )
    ]
    plan = plan_of("Who lived longer, Ors or Ana?", "Ors", path, "comparison")
    kind, items = shape(plan)
    assert kind == "calculated comparison"
    assert items[-1] == ("Logical", (2, 5))
    assert [item.derivation for item in plan.items] == [  # type: ignore[attr-defined]
        "", "", "life span", "", "", "life span", "conclusion",
    ]  # fmt: skip


def test_one_fact_that_joins_two_answers_is_one_item() -> None:
    path = [
        A,
        B,
        Triple("Ors", "where did … meet …", "Oru", 3),
        Triple("Ana", "where did … meet …", "Oru", 3),
    ]
    plan = plan_of("Where did the directors of Dune and Ford meet?", "Oru", path)
    assert shape(plan)[1] == [
        ("Attribution", ()),
        ("Attribution", ()),
        ("Attribution", (0, 1)),
        ("Logical", (2,)),
    ]


@pytest.mark.parametrize(
    ("path", "kind", "reason"),
    [
        ([], "", "no path"),
        ([Triple("Dune", "director", "Ors")], "", "a hop without a passage"),
        ([A], "comparison", "a comparison with one branch"),
    ],
)
def test_no_plan(path: list[Triple], kind: str, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        plan_of("Who?", "Ors", path, kind)


def test_more_gold_passages_than_a_sample_has_are_no_plan() -> None:
    def told(count: int) -> Question:
        pages = tuple(Passage(f"Aa {n}", ("It is in Oru.",), True) for n in range(count))
        return Question("q", "hotpotqa", "train", "Where?", "Oru", passages=pages)

    assert make_plan(told(MOST_GOLD), [A], [A])
    with pytest.raises(PlanError, match="11 gold passages, at most 10 can be planned for"):
        make_plan(told(MOST_GOLD + 1), [A], [A])
