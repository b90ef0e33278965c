"""The paper's analyses against cases that were reckoned by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluators.deliberation.analysing import analyse, average_repeats, count_matches, find_error
from evaluators.deliberation.measuring import ScoredCase, score_case
from evaluators.deliberation.questions import Case
from safe_stepwise.records import Attempt, Constraint, KGQuestion, RelationPath, Trajectory

BY, IN, LIKE = ("by",), ("in",), ("by", "~by")
FILM = Constraint("type", "It is a film.", "~by")
YEAR = Constraint("explicit_time", "In 1998.", time="1998", comparison="in")
QUESTION = KGQuestion("q", "metaqa", "test", "who made Oru", ("Oru", "Vel"), frozenset({"Ana"}))


def attempt(state: str, **read: Any) -> Attempt:
    return Attempt(1, "", None, True, state=state, read=read)


def proposed(path: RelationPath, topic: str = "Oru") -> Attempt:
    return attempt("propose", topic=topic, path=list(path), said="path" if path else "unreadable")


def verdict(path: RelationPath, *answers: str, **more: Any) -> Attempt:
    return attempt("verify", topic="Oru", path=list(path), answers=[*answers], **more)


def extraction(*constraints: Constraint) -> Attempt:
    names = ("kind", "text", "relation", "entity", "time", "comparison")
    return attempt("constraints", value={"constraints": [{n: getattr(c, n) for n in names} for c in constraints]})


def scored(
    *attempts: Attempt, stop: str = "answered", method: str = "deliberation", gold: Any = None, **fields: Any
) -> ScoredCase:
    case = Case(replace(QUESTION, **fields), "", {"Oru": (BY, IN)} if gold is None else gold)
    return score_case(case, Trajectory("q", method, (), attempts, "", stop))


def test_paths_by_beam() -> None:
    """Two gold paths of Oru; Vel has none. Found: one of two (Oru's first and Vel's), one of three, two of four."""
    run = [scored(proposed(BY), proposed(LIKE), proposed(IN), proposed(BY, "Vel"))]
    assert analyse(run)["path_generation"] == [
        {"beam": 1, "questions": 1, "hit": 1, "f1": pytest.approx(2 * 1 / (2 + 2))},
        {"beam": 2, "questions": 1, "hit": 1, "f1": pytest.approx(2 * 1 / (3 + 2))},
        {"beam": 3, "questions": 1, "hit": 1, "f1": pytest.approx(2 * 2 / (4 + 2))},
    ]


def test_a_reply_without_a_path_takes_its_place_in_the_beam() -> None:
    """The first question hits with two proposals only; one without a gold path does not count."""
    run = [scored(proposed(()), proposed(BY)), scored(proposed(LIKE)), scored(proposed(LIKE), gold={})]
    rows = analyse(run)["path_generation"]
    assert [(row["questions"], row["hit"]) for row in rows] == [(2, 0), (2, 0.5)]
    assert rows[1]["f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert analyse([scored(method="no_graph")])["path_generation"] == []


@pytest.mark.parametrize(
    ("extracted", "matches"),
    [
        ([FILM, YEAR], 2),
        ([replace(FILM, text="Other words."), YEAR, YEAR], 2),
        ([replace(FILM, relation="~BY")], 1),
        ([replace(FILM, relation="by")], 0),
        ([replace(YEAR, relation="came_out")], 1),  # a field that is not annotated is free
        ([replace(YEAR, comparison="before")], 0),
        ([replace(YEAR, kind="implicit_time")], 0),
        ([], 0),
    ],
)
def test_a_constraint_is_one_of_kind_and_fields(extracted: list[Constraint], matches: int) -> None:
    assert count_matches(extracted, [FILM, YEAR]) == matches


def test_one_extracted_constraint_is_not_two() -> None:
    anything = Constraint("type", "Something.")
    assert count_matches([FILM], [anything, FILM]) == 1
    assert count_matches([Constraint("type", "Any.", "by"), FILM], [anything, FILM]) == 2


def test_constraints_of_a_run() -> None:
    """One of two found and one more, F1 1/2; none; a question without annotation; one that was not asked."""
    run = [
        scored(extraction(FILM, replace(YEAR, time="1999")), constraints=(FILM, YEAR)),
        scored(extraction(FILM), extraction(), constraints=(FILM, FILM)),
        scored(extraction(YEAR)),
        scored(constraints=(FILM,)),
    ]
    measured = analyse(run)["constraints"]
    assert {name: measured[name] for name in ("asked", "questions", "hit", "f1")} == {
        "asked": 3, "questions": 2, "hit": 0.5, "f1": 0.25,
    }  # fmt: skip
    assert measured["by_kind"]["type"] == {"extracted": 1, "gold": 2}
    assert measured["by_kind"]["explicit_time"] == {"extracted": 2, "gold": 1}
    assert measured["by_kind"]["ordinal"] == {"extracted": 0, "gold": 0}
    none = analyse([scored()])["constraints"]
    assert (none["asked"], none["hit"], none["f1"]) == (0, None, None)


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (scored(proposed(BY), stop="failed"), "failed"),
        (scored(proposed(BY), gold={}), "no gold path"),
        (scored(proposed(LIKE), proposed(())), "path generation"),
        (scored(proposed(BY, "Vel"), stop="unreadable"), "path generation"),
        (scored(proposed(LIKE), proposed(BY), verdict(LIKE, "Edo")), "path selection"),
        (scored(proposed(LIKE), proposed(BY), verdict(BY), verdict(LIKE, "Edo")), "path selection"),
        (scored(proposed(BY), stop="no_answer"), "path selection"),
        (scored(proposed(BY), verdict(LIKE), verdict(BY, "Edo")), "reasoning"),
        (scored(proposed(BY), verdict(BY, "Edo"), verdict(LIKE)), "reasoning"),
        (scored(proposed(BY), verdict(BY, unreached=["Ana Brell"])), "instruction following"),
        (scored(proposed(BY), verdict(BY), stop="unreadable"), "instruction following"),
        (scored(proposed(BY), attempt("follow", topic="Oru", path=["by"], answers=["Edo"])), "reasoning"),
        (scored(attempt("recall", answers=["the Ana"]), method="no_graph"), "instruction following"),
        (scored(attempt("recall", answers=["Edo"]), method="no_graph"), "reasoning"),
        (scored(attempt("recall", answers=[]), method="no_graph", stop="unreadable"), "instruction following"),
    ],
)
def test_an_error_is_of_the_first_kind_that_applies(case: ScoredCase, kind: str) -> None:
    assert case.scores["dp"].hits_at_1 == 0
    assert find_error(case) == kind


def test_only_wrong_questions_have_an_error() -> None:
    right = scored(proposed(LIKE), verdict(LIKE, "Ana"))
    errors = analyse([right, scored(proposed(LIKE)), scored(proposed(BY), stop="failed")])["errors"]
    assert errors["wrong"] == 2
    assert {kind: n for kind, n in errors["by_kind"].items() if n} == {"failed": 1, "path generation": 1}


def test_independent_runs_are_averaged_by_system() -> None:
    """0.5 and 0.7: mean 0.6, sample deviation 0.2 / sqrt 2."""
    names, hits = ("a", "b", "a #2", "b #2"), (0.5, 1, 0.7, 1)
    records = [{"name": name, "hit": h, "hits_at_1": h, "f1": h} for name, h in zip(names, hits, strict=True)]
    a, b = average_repeats(records, 2)
    assert (a["name"], a["runs"], a["hit"]["mean"]) == ("a", 2, pytest.approx(0.6))
    assert a["f1"]["deviation"] == pytest.approx(0.2 / 2**0.5)
    assert (b["name"], b["hits_at_1"]) == ("b", {"mean": 1, "deviation": 0})
    assert average_repeats(records, 1) == []
