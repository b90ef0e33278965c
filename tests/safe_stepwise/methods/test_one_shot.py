"""Methods that answer in one reply: what they ask, what they read, what they put to the vote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from safe_stepwise.engines.base import EngineError, Request, request_key
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.one_shot import OneShot
from safe_stepwise.methods.prompting import readability, salvaged_answer
from safe_stepwise.records import Passage, Question, Trajectory

PASSAGES = (
    Passage("Dune Rain", ("It is a film.", "Dune Rain was directed by Ors Velt."), True),
    Passage("Ors Velt", ("Ors Velt was born in Oru.",), True),
)
ASKED = Question("q1", "synthetic", "train", "Where was its director born?", "Oru", passages=PASSAGES)
ONE_SHOT = [name for name, method in METHODS.items() if type(method) is OneShot]
FACTS = {"supporting_facts": [[1, 1], [2, 0]], "evidences": [["Ors Velt", "place of birth", "Oru"]]}


def said(answer: object = "Oru", **more: Any) -> str:
    return json.dumps({"explain": "Passage 2 says so.", "answer": answer} | more)


def run(name: str, reply: str | Callable[[Request], str], **options: Any) -> tuple[Trajectory, list[Request]]:
    asked: list[Request] = []

    def replying(request: Request) -> str:
        asked.append(request)
        return reply if isinstance(reply, str) else reply(request)

    method = METHODS[name]
    assert isinstance(method, OneShot)
    players = {"generator": Client(MockEngine(replying), tries=1)}
    return asyncio.run(method.answer(ASKED, players, method.options(**options))), asked


@pytest.mark.parametrize("name", ONE_SHOT)
def test_one_call_answers(name: str) -> None:
    found, asked = run(name, said())
    assert (found.method, found.answer, found.stop_reason) == (name, "Oru", "answered")
    (attempt,) = found.attempts
    assert (attempt.state, attempt.next_state, attempt.accepted) == ("answer", "end", True)
    assert attempt.read == {"form": "strict", "value": {"answer": "Oru", "explain": "Passage 2 says so."}}
    assert set(attempt.usage) == {"generator"}
    assert (asked[0].role, asked[0].schema, asked[0].sampling.temperature) == (name, None, 0)


@pytest.mark.parametrize("name", ONE_SHOT)
def test_what_never_changes_comes_first_and_the_form_last(name: str) -> None:
    _, (request,) = run(name, said())
    system, user = request.messages
    assert "Dune Rain" not in system.content
    places = [user.content.index(part) for part in ("Passage 1", "Passage 2", "Question:", "Reply")]
    assert places == sorted(places)
    assert user.content.endswith('Reply with JSON alone: {"explain": "...", "answer": "..."}')


@pytest.mark.parametrize("name", ONE_SHOT)
def test_with_evidence_sentences_are_numbered_and_facts_read(name: str) -> None:
    found, (request,) = run(name, said(**FACTS), evidence=True)
    assert '1: "Dune Rain was directed by Ors Velt."' in request.messages[1].content
    assert found.answer == "Oru"
    assert found.attempts[0].read["value"] | FACTS == found.attempts[0].read["value"]
    lacking, _ = run(name, said(), evidence=True)
    assert (lacking.answer, lacking.stop_reason) == ("", "unreadable")
    assert salvaged_answer(lacking) == "Oru"
    assert "supporting_facts" not in run(name, said())[1][0].messages[1].content


@pytest.mark.parametrize(
    ("reply", "form", "salvaged"),
    [
        (said(), "strict", "Oru"),
        (f"```json\n{said()}\n```", "strict", "Oru"),
        (f"<think>{said('Ana')}</think>{said()}", "strict", "Oru"),
        (said(more=1), "strict", "Oru"),
        (f"Here it is: {said()}", "salvaged", "Oru"),
        ('{"explain": "x", "answer": "Oru",}', "salvaged", "Oru"),
        ('{"Explain": "x", "Answer": "Oru"}', "salvaged", "Oru"),
        ('{"answer": "Oru"}', "salvaged", "Oru"),
        (said(1932), "salvaged", "1932"),
        (said(True), "salvaged", "yes"),
        ('{"explain": "He said "go"", "answer": "Oru"}', "salvaged", "Oru"),
        ("Passage 2 says so.\n\n**Answer:** Oru.", "salvaged", "Oru"),
        ("The final answer is: Oru", "salvaged", "Oru"),
        ("It is Oru.", "unreadable", ""),
        (said("..."), "unreadable", ""),
        ('{"explain": "...", "answer": "..."}', "unreadable", ""),
        ('{"explain": "...", "answer": "Oru"}', "unreadable", ""),
        (said(""), "unreadable", ""),
        (said(None), "unreadable", ""),
        (said({"answer": "Oru"}), "unreadable", ""),
        (f"{said()} or {said('Vel')}", "unreadable", ""),
        ('{"answer": "Oru", "explain": "x", "answer": "Vel"}', "unreadable", ""),
        (said("O" * 1_001), "unreadable", ""),
        (said("\ud800"), "unreadable", ""),
        ("", "unreadable", ""),
    ],
)
def test_how_a_reply_is_read(reply: str, form: str, salvaged: str) -> None:
    found, _ = run("direct", reply)
    assert found.attempts[0].read["form"] == form
    assert found.answer == (salvaged if form == "strict" else "")
    assert found.stop_reason == ("answered" if form == "strict" else "unreadable")
    assert salvaged_answer(found) == salvaged
    first = {"first": form == "strict", "salvaged": form == "salvaged"}
    assert readability([found]) == {"revised": 0, "never": form == "unreadable"} | first


def test_a_request_that_fails_for_good_fails_the_question() -> None:
    def fails(_: Request) -> str:
        raise EngineError("gone")

    found, _ = run("direct", fails)
    assert (found.stop_reason, found.failure, found.answer) == ("failed", "gone", "")


def test_sampling_as_the_paper_does_is_another_request() -> None:
    greedy, paper = (run("direct", said(), sampling=way)[1][0] for way in ("greedy", "paper"))
    s = paper.sampling
    assert (s.temperature, s.top_p, s.repetition_penalty) == (0.8, 0.8, 1.1)
    engine = MockEngine(lambda _: "")
    assert request_key(engine, greedy) != request_key(engine, paper)


def test_samples_are_drawn_and_put_to_the_vote() -> None:
    def reply(request: Request) -> str:
        return [said("Vel"), "?", said("the Oru"), said("Oru"), said("oru")][request.sampling.seed]

    found, asked = run("cot", reply, samples=5)
    assert (found.answer, found.stop_reason) == ("the Oru", "answered")
    assert [attempt.number for attempt in found.attempts] == [1, 2, 3, 4, 5]
    ways = {(s.temperature, s.top_p, s.repetition_penalty) for s in (r.sampling for r in asked)}
    assert ways == {(0.8, 0.8, 1.0)}, "hosted models know no penalty"
    _, theirs = run("cot", reply, samples=2, sampling="paper")
    assert {r.sampling.repetition_penalty for r in theirs} == {1.1}
    assert [(r.sampling.temperature, r.sampling.seed) for r in asked] == [(0.8, n) for n in range(5)]
    assert len({r.messages for r in asked}) == 1
    assert readability([found]) == {"first": 4, "revised": 0, "salvaged": 0, "never": 1}
    assert run("cot", reply, samples=1)[1][0].sampling.temperature == 0


def test_salvaging_lets_more_replies_vote() -> None:
    def reply(request: Request) -> str:
        return [said("Vel"), f"So: {said()}", f"So: {said()}"][request.sampling.seed]

    found, _ = run("cot", reply, samples=3)
    assert (found.answer, salvaged_answer(found)) == ("Vel", "Oru")


def test_one_sample_at_least() -> None:
    with pytest.raises(ValueError, match="samples has to be 1 or more"):
        run("cot", said(), samples=0)
