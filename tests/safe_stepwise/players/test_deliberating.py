"""The symbolic player of the loop over relation paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from safe_stepwise.engines.base import Completion, Request, request_key
from safe_stepwise.errors import UserError
from safe_stepwise.methods.path_deliberating import (
    Instantiated,
    ask_choice,
    ask_constraints,
    ask_verdict,
    read_verdict,
)
from safe_stepwise.methods.scene import PoolScene
from safe_stepwise.open import open_engine
from safe_stepwise.players.judging import MAX_ANSWERS
from safe_stepwise.players.symbolic import SymbolicEngine
from safe_stepwise.records import Candidate, KGQuestion

ANSWERS = frozenset(("1990", "1998"))
GOLD = (Candidate("Ana", ("~by", "year")),)
ASKED = KGQuestion("q", "metaqa", "test", "when [Ana]", ("Ana",), ANSWERS, GOLD, 2)
UNANNOTATED = KGQuestion("q", "webqsp", "test", "when Ana", ("Ana",), ANSWERS)
FILMS, YEARS, SOME = (Candidate("Ana", p) for p in (("~by",), ("~by", "year"), ("~with", "year")))
POOL = ((FILMS, ("Oru", "Vel")), (SOME, ("1990",)), (YEARS, ("1956", "1990", "1998")))


def scene(asked: KGQuestion = ASKED, **fields: Any) -> PoolScene:
    return PoolScene(asked, POOL, **fields)


def said(request: Request, spec: str = "symbolic") -> dict[str, Any]:
    engine = open_engine(spec)
    assert isinstance(engine, SymbolicEngine)
    assert engine.simulated
    assert "(simulated)" in engine.name
    found = engine.answer(request)
    assert isinstance(found, Completion)
    reply: dict[str, Any] = json.loads(found.text)
    return reply


def choosing(seen: PoolScene) -> Request:
    return ask_choice(seen.question, [candidate for candidate, _ in seen.pool], (), seen)


def judging(seen: PoolScene) -> Request:
    candidate, ends = seen.pool[seen.chosen - 1]
    return ask_verdict(seen.question, Instantiated(candidate, (), False, ends, 9), (), seen)


@pytest.mark.parametrize(
    ("spec", "tried", "number"),
    [
        ("symbolic", 0, 3),
        ("symbolic:planted=1", 0, 1),
        ("symbolic:planted=1", 1, 3),
        ("symbolic:planted=9", 5, 1),
        ("symbolic:planted=0", 0, 3),
    ],
)
def test_wrong_paths_are_followed_first_as_many_as_are_planted(spec: str, tried: int, number: int) -> None:
    assert said(choosing(scene(tried=tried)), spec)["path"] == number


def test_without_gold_paths_it_goes_by_what_a_path_leads_to() -> None:
    """F1 of two of three (.8) is above that of one of two (.67)."""
    assert said(choosing(scene(UNANNOTATED)))["path"] == 3
    assert said(choosing(PoolScene(UNANNOTATED, POOL[:2])))["path"] == 2
    assert said(choosing(PoolScene(UNANNOTATED, POOL[:1])))["path"] == 0


def test_a_path_that_is_right_from_one_topic_is_wrong_from_another() -> None:
    """The films of Edo are as far away as those of Ana, but of them nobody asked."""
    asked = KGQuestion("q", "webqsp", "test", "when", ("Edo", "Ana"), ANSWERS, GOLD)
    other = Candidate("Edo", GOLD[0].path)
    pool = ((other, ("1990", "1998")), (GOLD[0], ("1990",)))
    assert said(choosing(PoolScene(asked, pool)))["path"] == 2
    assert said(judging(PoolScene(asked, pool, chosen=1)))["sufficient"] is False
    assert said(judging(PoolScene(asked, pool, chosen=2)))["sufficient"] is True


@pytest.mark.parametrize(
    ("chosen", "answer", "suffices"), [(1, ["Oru", "Vel"], False), (2, ["1990"], False), (3, ["1990", "1998"], True)]
)
def test_its_verdict_is_that_of_the_gold_path(chosen: int, answer: list[str], suffices: bool) -> None:
    request = judging(scene(chosen=chosen))
    found, wrong = said(request), said(request, "symbolic:error_rate=1")
    assert (found["answer"], found["sufficient"]) == (answer, suffices)
    assert wrong["sufficient"] is not suffices


def test_constraints_are_of_the_gold_path() -> None:
    request = ask_constraints(ASKED, ("by", "year"), scene())
    (one,) = said(request)["constraints"]
    assert (one["kind"], one["relation"]) == ("type", "year")
    assert said(request, "symbolic:error_rate=1") == {"constraints": []}


def test_an_error_follows_a_wrong_path() -> None:
    assert said(choosing(scene()), "symbolic:error_rate=1")["path"] in (1, 2)


@pytest.mark.parametrize("value", ["-1", "0.5", "many", ""])
def test_planted_is_a_whole_number(value: str) -> None:
    with pytest.raises(UserError, match="planted has to be"):
        open_engine(f"symbolic:planted={value}")


def test_another_annotation_is_another_request() -> None:
    engine = open_engine("symbolic")
    one, other = choosing(scene()), choosing(scene(UNANNOTATED))
    other = Request(one.messages, one.sampling, one.schema, one.role, other.scene)
    assert request_key(engine, one) != request_key(engine, other)


def test_it_names_no_more_than_a_reply_can_hold() -> None:
    many = tuple(f"an entity of a long name, number {n}" for n in range(20_000))
    seen = PoolScene(UNANNOTATED, ((FILMS, many),), chosen=1)
    request = judging(seen)
    found = said(request)
    assert read_verdict(json.dumps(found), ()).is_strict
    assert found["answer"] == [*many[:MAX_ANSWERS]]
