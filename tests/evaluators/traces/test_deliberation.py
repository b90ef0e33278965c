"""The page of traces on the loop over relation paths: paths, instances, constraints, verdicts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluators.outcomes import Outcome, QuestionRecord, read_outcomes
from evaluators.traces.page import read_traces, write
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.graphs.graph_store import GraphStore
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.methods.deliberation import NAME, PathOptions, deliberate
from safe_stepwise.open import open_engine
from safe_stepwise.records import Candidate, KGQuestion, Trajectory
from safe_stepwise.store.boundary import read
from safe_stepwise.store.files import write_lines
from safe_stepwise.store.names import QUESTIONS, TRAJECTORIES
from tests.browsing import BREAKOUTS, chromium, visits, worst_contrast
from tests.makers.outcomes import outcome

HOSTILE = " ".join(BREAKOUTS[:5])
GRAPH = GraphStore(
    [
        ("Oru", "by", "Ana"), ("Vel", "by", "Ana"),
        ("Oru", "year", "1990"), ("Vel", "year", "1998"),
        (HOSTILE, f"by{HOSTILE}", HOSTILE + "2"), (HOSTILE, "year", "1990"), (HOSTILE, "in", "Isk"),
    ]
)  # fmt: skip
YEARS = frozenset(("1990", "1998"))
GOLD = (Candidate("Ana", ("~by", "year")),)
ASKED = KGQuestion("q1", "metaqa", "test", "when [Ana]", ("Ana",), YEARS, GOLD, 2)
HOSTILE_ASKED = KGQuestion("q2", "metaqa", "test", HOSTILE, (HOSTILE,), frozenset((HOSTILE + "2",)))


def pool(topic: str, *paths: tuple[str, ...]) -> list[Candidate]:
    return [Candidate(topic, path) for path in paths]


def run(asked: KGQuestion, candidates: list[Candidate], engine: Any) -> Trajectory:
    clients = {"generator": Client(engine, tries=1)}
    knowledge = GraphKnowledge(GRAPH)
    return asyncio.run(deliberate(asked, candidates, knowledge, clients, PathOptions()))


def hostile(request: Any) -> str:
    said = {"kind": "explicit_time", "text": HOSTILE, "time": "1998", "relation": "year"}
    return {
        "constraints": json.dumps({"constraints": [said]}),
        "select_path": json.dumps({"reason": HOSTILE, "path": 1}),
        "verify_path": json.dumps({"answer": [HOSTILE, f"{HOSTILE}2"], "sufficient": False, "reason": HOSTILE}),
    }[request.role]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One answered after a wrong path; one of hostile names; one with nothing to follow."""
    found = tmp_path_factory.mktemp("deliberation")
    planted = open_engine("symbolic:planted=1")
    paths = pool("Ana", ("~by",), ("year",), ("~by", "year"), ("~by", "year", "~year"))
    odd = pool(HOSTILE, (f"by{HOSTILE}",), ("in",))
    told = [
        (ASKED, run(ASKED, paths, planted)),
        (HOSTILE_ASKED, run(HOSTILE_ASKED, odd, MockEngine(hostile))),
        (KGQuestion("q3", "metaqa", "test", "who", ("Ana",), YEARS), run(ASKED, [], planted)),
    ]
    lines = [
        outcome(
            asked.id,
            NAME,
            benchmark="metaqa",
            verdict=None,
            trajectory=Trajectory(asked.id, *_rest(made)),
            options={"introspection": True},
        )
        for asked, made in told
    ]
    records = [
        QuestionRecord("metaqa", asked.id, asked.question, tuple(sorted(asked.answers)), ()) for asked, _ in told
    ]
    write_lines(found / TRAJECTORIES, (one.to_json() for one in lines))
    write_lines(found / QUESTIONS, (one.to_json() for one in records))
    write(found, found / "traces.html")
    return found


def _rest(made: Trajectory) -> tuple[Any, ...]:
    return made.method, made.steps, made.attempts, made.answer, made.stop_reason, made.failure


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Any]:
    with chromium() as launched:
        yield launched


@pytest.fixture
def visit(browser: Any, folder: Path) -> Iterator[Callable[[int], Any]]:
    with visits(browser) as opened:

        def opens(place: int) -> Any:
            page = opened(folder / "traces.html")
            page.locator("#list li a").nth(place).click()
            return page

        yield opens


def test_lines_come_back_as_they_were_written(folder: Path) -> None:
    outcomes = [*read_outcomes(folder)]
    assert [read(Outcome, json.loads(one.to_json())) for one in outcomes] == outcomes
    assert [one.trajectory.stop_reason for one in outcomes] == ["answered", "answered", "no_paths"]


def test_what_was_read_and_what_the_graph_decided_are_told(folder: Path) -> None:
    attempts = read_traces(folder)["runs"][0]["attempts"]
    told = [{name.removeprefix("Read: "): text for name, text in one["reading"]["fields"]} for one in attempts]
    assert [json.loads(told[n]["chosen"])["path"] for n in (2, 5)] == [["~by"], ["~by", "year"]]
    assert json.loads(told[6]["instances"]) == [["Ana", "Oru", "1990"], ["Ana", "Vel", "1998"]]
    assert [told[n]["suffices"] for n in (4, 7)] == ["false", "true"]
    assert [one["step"] for one in attempts] == [1] * 5 + [2] * 3


def test_the_page_shows_the_paths_in_their_order(visit: Callable[[int], Any]) -> None:
    page = visit(0)
    heads = page.locator("#details .attempt header b").all_inner_texts()
    assert heads == ["Step 1"] * 5 + ["Step 2"] * 3
    cards = page.locator("#details .attempt").all_inner_texts()
    assert "nobody was asked" in cards[3]
    assert '["Ana","Oru","1990"]' in cards[6]
    assert worst_contrast(page)[0] >= 4.5


def test_names_of_a_graph_run_nothing(visit: Callable[[int], Any]) -> None:
    page = visit(1)
    shown = page.locator("#details").inner_text()
    assert shown.count(BREAKOUTS[0]) >= 10
    assert page.locator("#details img, #details svg, #details script").count() == 0


def test_a_question_without_paths_says_so(visit: Callable[[int], Any]) -> None:
    assert "no candidate path leads anywhere" in visit(2).locator("#details .facts").inner_text()
