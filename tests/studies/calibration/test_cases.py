"""Seeded errors: of the right one's sort, and false by the graph."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.checking.faithfulness.grounds import grounds_of_paths
from safe_stepwise.checking.statements import state
from safe_stepwise.records import Question, Triple
from studies.calibration.cases import (
    KINDS,
    WRONG,
    CalibrationSource,
    ChainCase,
    ErrorValues,
    are_alike,
    form_of,
    make_cases,
    may_equal,
    question_source,
    word_film_fact,
    word_plainly,
)


def film(number: int, director: str, born: str) -> CalibrationSource:
    path = (Triple(f"Dune {number}", "director", director), Triple(director, "date of birth", born))
    asked = f"When was the director of Dune {number} born?"
    return CalibrationSource("b", f"q{number}", grounds_of_paths(asked, [born], [path]), state)


FILMS = [
    film(1, "Ana Vorr", "3 May 1901"),
    film(2, "Ors Velt", "9 June 1911"),
    film(3, "Edo Lind", "1920"),
    film(4, "Una Marn", "1931"),
]
POOL = ErrorValues([t for source in FILMS for t in source.grounds.triples])


def cases() -> list[ChainCase]:
    return list(make_cases(FILMS, POOL, 0)[0])


def test_every_kind_is_made_alone_and_in_its_path() -> None:
    made = {(case.setting, case.kind) for case in cases()}
    assert {kind for setting, kind in made if setting == "alone"} == set(KINDS) - {"wrong relation"}
    assert ("in its path", "true") in made


def test_an_error_changes_one_thing_and_says_so() -> None:
    for case in cases():
        fact, said = case.fact, case.claim
        if case.kind == "wrong tail":
            assert (said.head, said.relation) == (fact.head, fact.relation)
            assert not may_equal(said.tail, fact.tail)
        elif case.kind == "wrong head":
            assert (said.relation, said.tail) == (fact.relation, fact.tail)
        elif case.kind == "reversed":
            assert (said.head, said.tail) == (fact.tail, fact.head)
        text = " ".join(case.chain.steps)
        assert said.head in text
        assert said.tail in text


def test_a_date_is_exchanged_for_one_as_exact() -> None:
    wrong = POOL.exchange(Triple("Ana Vorr", "date of birth", "3 May 1901"), "wrong tail", "s")
    assert wrong is not None
    assert wrong.tail == "9 June 1911"


def test_no_false_fact_is_one_of_the_graph() -> None:
    assert not any(POOL.is_true(case.claim) for case in cases() if case.kind in WRONG)


def test_what_the_rest_of_the_graph_knows_is_no_error() -> None:
    fact = Triple("Dune 1", "director", "Ana Vorr")
    more = [Triple("Dune 1", "director", name) for name in ("Ors Velt", "Edo Lind", "Una Marn")]
    pool = ErrorValues([t for source in FILMS for t in source.grounds.triples], more)
    assert POOL.exchange(fact, "wrong tail", "s") is not None
    assert pool.exchange(fact, "wrong tail", "s") is None


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        (Triple("Ana", "spouse", "Ors"), "mutual"),
        (Triple("Ana", "date of birth", "1901"), "a date is no head"),
        (Triple("Oru", "is", "a town"), "says nothing of direction"),
        (Triple("Oru", "when was … founded", "Vel"), "a question in words"),
    ],
)
def test_what_may_be_true_when_reversed_is_not(fact: Triple, why: str) -> None:
    assert ErrorValues([fact]).exchange(fact, "reversed", "") is None, why


def test_a_near_synonym_is_no_wrong_relation() -> None:
    facts = [Triple("Oru", "country", "Kelvia"), Triple("Ana", "country of citizenship", "Veld")]
    assert ErrorValues(facts).exchange(facts[0], "wrong relation", "s") is None
    life = [Triple("Ana", "date of birth", "1901"), Triple("Ors", "date of death", "1950")]
    found = ErrorValues(life).exchange(life[0], "wrong relation", "s")
    assert found == Triple("Ana", "date of death", "1901")


def test_the_same_seed_makes_the_same_cases_and_another_others() -> None:
    one, other = ([(c.kind, c.claim) for c in make_cases(FILMS, POOL, seed)[0]] for seed in (0, 0))
    assert one == other
    drawn = {tuple(c.claim for c in make_cases(FILMS, POOL, seed)[0]) for seed in range(8)}
    assert len(drawn) > 1


def test_words_for_people_and_films() -> None:
    assert word_plainly([Triple("Oru", "lies on", "the Vel")], 7) == "Oru lies on the Vel"
    assert word_film_fact([Triple("Dune", "release_year", "1954")], 0) == "Dune was released in 1954"


def test_hotpotqa_without_derivations_has_no_path() -> None:
    asked = Question("q", "hotpotqa", "train", "Where?", "Oru")
    assert question_source(asked) is None
    found = question_source(asked, derivations=[[("Oru", 0, ("Oru", "lies on", "the Vel"))], []])
    assert found is not None
    assert len(found.grounds.paths) == 1


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_names_have_a_form_and_may_mean_each_other(one: str, other: str) -> None:
    assert form_of(one) in {"day", "month", "year", "number", "country", "people", "name", "words"}
    assert may_equal(one, other) == may_equal(other, one)
    assert are_alike(one, other) == are_alike(other, one)
