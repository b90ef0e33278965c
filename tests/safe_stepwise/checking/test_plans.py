"""The kinds of plan, and what each item builds on."""

from __future__ import annotations

import pytest

from safe_stepwise.checking.plans import MAX_GOLD, PlanError, make_plan
from safe_stepwise.records import Passage, Question, SupportingFact, Triple


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
    path = [Triple("Dune", "publication date", "1951", 1), Triple("Ford", "publication date", "1962", 2)]
    plan = plan_of("Which came out first, Dune or Ford?", "Dune", path, "comparison")
    assert shape(plan) == ("simple comparison", [("Attribution", ()), ("Attribution", ()), ("Logical", (0, 1))])
    assert plan.operation == "earliest"  # type: ignore[attr-defined]


def test_a_bridge_comparison() -> None:
    path = [A, B, Triple("Ors", "date of birth", "1901", 3), Triple("Ana", "date of birth", "1899", 4)]
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
        for triple in (Triple(name, "date of birth", born, n), Triple(name, "date of death", died, n))
    ]
    plan = plan_of("Who lived longer, Ors or Ana?", "Ors", path, "comparison")
    kind, items = shape(plan)
    assert kind == "calculated comparison"
    assert items[-1] == ("Logical", (2, 5))
    assert [item.derivation for item in plan.items] == [  # type: ignore[attr-defined]
        "", "", "life span", "", "", "life span", "conclusion",
    ]  # fmt: skip


def test_one_fact_that_joins_two_answers_is_one_item() -> None:
    path = [A, B, Triple("Ors", "where did … meet …", "Oru", 3), Triple("Ana", "where did … meet …", "Oru", 3)]
    plan = plan_of("Where did the directors of Dune and Ford meet?", "Oru", path)
    assert shape(plan)[1] == [("Attribution", ()), ("Attribution", ()), ("Attribution", (0, 1)), ("Logical", (2,))]


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

    assert make_plan(told(MAX_GOLD), [A], [A])
    with pytest.raises(PlanError, match="11 gold passages, at most 10 can be planned for"):
        make_plan(told(MAX_GOLD + 1), [A], [A])


def cited_plan(question: str, kind: str, told: dict[str, str], cited: str, **more: object) -> object:
    """The plan of a question whose passages, all gold, are cited in another order than they stand.

    Its path is what each passage has in the same place.
    """
    pages = tuple(Passage(title, (text,), True) for title, text in told.items())
    facts = tuple(SupportingFact(title, 0) for title in cited.split())
    asked = Question("q", "hotpotqa", "train", question, "Oru", (), kind, 2, pages, facts, **more)  # type: ignore[arg-type]
    path = [
        Triple(page.title, "publication date", page.sentences[0].split()[-1][:-1], n)
        for n, page in enumerate(pages, 1)
    ]
    return make_plan(asked, path, path)


def passages_of(plan: object) -> list[int]:
    return [item.passage_number for item in plan.items if item.triples]  # type: ignore[attr-defined]


def uses_of(plan: object) -> list[tuple[int, ...]]:
    return [item.uses for item in plan.items]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("cited", "order"), [("Ana Ors", [1, 2]), ("Ors Ana", [2, 1])])
def test_sentences_are_read_as_they_are_cited(cited: str, order: list[int]) -> None:
    told = {"Ana": "Ana lives in Oru.", "Ors": "Ors is a painter of Kelvia."}
    assert passages_of(cited_plan("Where does the painter live?", "bridge", told, cited)) == order


@pytest.mark.parametrize("cited", ["Ana Ors", "Ors Ana"])
def test_what_is_led_to_is_read_after_what_leads_there(cited: str) -> None:
    told = {"Ana": "Ana was born in Oru.", "Ors": "Ors married Ana."}
    plan = cited_plan("Where was the wife of Ors born?", "bridge", told, cited)
    assert passages_of(plan) == [2, 1]
    assert uses_of(plan) == [(), (0,), (1,)]


@pytest.mark.parametrize(
    ("cited", "order", "uses"), [("Ford Ana", [2, 1], [(), (0,), (1,)]), ("Ana Ford", [1, 2], [(), (0,), (1,)])]
)
def test_the_answer_builds_on_what_it_leads_to_only_where_that_was_read(
    cited: str, order: list[int], uses: list[tuple[int, ...]]
) -> None:
    told = {"Ana": "Ana of Oru made Ford.", "Ford": "Ford is a film."}
    plan = cited_plan("Where does the maker of the film come from?", "bridge", told, cited)
    assert passages_of(plan) == order
    assert uses_of(plan) == uses


EVIDENCE = (Triple("Dune", "publication date", "1951"),)


@pytest.mark.parametrize(
    ("more", "order"), [({}, [2, 1]), ({"evidence": EVIDENCE}, [1, 2])], ids=["facts", "evidence"]
)
def test_sides_are_compared_as_they_are_cited_where_nothing_else_is_annotated(
    more: dict[str, object], order: list[int]
) -> None:
    told = {"Dune": "It came out in 1951.", "Oru": "It came out in 1942."}
    asked = "Which came out first, Dune or Oru?"
    assert passages_of(cited_plan(asked, "comparison", told, "Oru Dune", **more)) == order
