"""Seeded errors in facts and in paths; which errors there are, the tests of the path probe say."""

from __future__ import annotations

from builders.paths.world import PathQuestion, World
from safe_stepwise.checking.faithfulness.grounds import grounds_of_paths
from safe_stepwise.checking.statements import state
from safe_stepwise.records import Label, Question, Triple
from studies.calibration.cases import (
    TRUE,
    WRONG,
    CalibrationSource,
    ChainCase,
    make_cases,
    word_film_fact,
    word_plainly,
)
from studies.calibration.reading import select_questions


def source(number: int, asked: str, *path: Triple, free: frozenset[str] = frozenset()) -> CalibrationSource:
    answers, start, needed = (path[-1].tail,), path[0].head, tuple(range(1, len(path) + 1))
    question = PathQuestion("b", f"q{number}", asked, answers[0], answers, (path,), start, needed, free=free)
    return CalibrationSource(question, grounds_of_paths(asked, answers, [path]), state)


def film(number: int, director: str, born: str) -> CalibrationSource:
    path = (Triple(f"Dune {number}", "director", director), Triple(director, "date of birth", born))
    return source(number, f"When was the director of Dune {number} born?", *path)


FILMS = [
    film(1, "Ana Vorr", "3 May 1901"),
    film(2, "Ors Velt", "9 June 1911"),
    film(3, "Edo Lind", "1920"),
    film(4, "Una Marn", "1931"),
]
POOL = World([source.question for source in FILMS])


def cases(sources: list[CalibrationSource] = FILMS, world: World = POOL, seed: int = 0) -> list[ChainCase]:
    return list(make_cases(sources, world, seed)[0])


def test_every_kind_is_made_alone_and_in_its_path() -> None:
    made = {(case.setting, case.kind) for case in cases()}
    assert {kind for _, kind in made} == {TRUE, *WRONG}
    assert {("alone", "true"), ("in its path", "true")} <= made


def test_an_error_changes_one_thing_and_says_so() -> None:
    for case in cases():
        fact, said = case.fact, case.claim
        if case.kind == "wrong tail":
            assert (said.head, said.relation) == (fact.head, fact.relation)
            assert said.tail != fact.tail
        elif case.kind == "wrong head":
            assert (said.relation, said.tail) == (fact.relation, fact.tail)
        elif case.kind == "wrong relation":
            assert (said.head, said.tail) == (fact.head, fact.tail)
        elif case.kind == "reversed":
            assert (said.head, said.tail) == (fact.tail, fact.head)
        text = " ".join(case.chain.steps)
        assert said.head in text
        assert said.tail in text
    by_path = {(case.source.question.id, case.kind): case.chain.steps for case in cases() if case.setting != "alone"}
    for (id_, kind), steps in by_path.items():
        differing = sum(step != true for step, true in zip(steps, by_path[id_, "true"], strict=True))
        assert differing == (kind != "true"), (id_, kind)


def test_what_the_rest_of_the_graph_knows_is_no_error() -> None:
    more = [Triple("Dune 1", "director", name) for name in ("Ors Velt", "Edo Lind", "Una Marn")]
    world = World([source.question for source in FILMS], more)
    wrong = [case for case in cases(FILMS[:1], world) if case.setting == "alone" and case.kind == "wrong tail"]
    assert {case.fact.relation for case in wrong} == {"date of birth"}


def test_an_error_that_no_wording_shows_is_not_made() -> None:
    """A question in words states its head only where it has a place for it."""
    asked = [
        source(n, "When?", Triple(head, words, tail), free=frozenset((words,)))
        for n, (head, words, tail) in enumerate(
            (("Oru", "when was the town founded", "1901"), ("Vel", "when was the town founded", "1911"))
        )
    ]
    made, impossible = make_cases(asked, World([one.question for one in asked]), 0)
    assert {case.kind for case in made} == {"true", "wrong tail"}
    assert impossible["alone: wrong head"] == 2


def test_the_same_seed_makes_the_same_cases_and_another_others() -> None:
    one, other = ([(c.kind, c.claim) for c in cases()] for _ in range(2))
    assert one == other
    drawn = {tuple(c.claim for c in cases(seed=seed)) for seed in range(8)}
    assert len(drawn) > 1


def test_words_for_people_and_films() -> None:
    assert word_plainly([Triple("Oru", "lies on", "the Vel")], 7) == "Oru lies on the Vel"
    assert word_film_fact([Triple("Dune", "release_year", "1954")], 0) == "Dune was released in 1954"


def test_hotpotqa_without_derivations_has_no_path() -> None:
    rows = [(Question("q", "hotpotqa", "train", "Where?", "Oru"), Label("none", "", (), (), "annotations"))]
    without = select_questions(rows, {})
    assert (without.sources, without.left_out) == ([], {"no annotated path": 1})
    derivations = {"q": [[("Oru", 0, ("Oru", "lies on", "the Vel"))], []]}
    (found,) = select_questions(rows, derivations).sources
    assert len(found.grounds.paths) == 1
