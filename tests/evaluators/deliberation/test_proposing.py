"""Who proposes paths, what it learns from, and what its proposals are worth."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from evaluators.deliberation import FIRST_PATH
from evaluators.deliberation.measuring import answers_of, compare_runs, measure, score_case
from evaluators.deliberation.options import split_name
from evaluators.deliberation.proposing import (
    ModelProposer,
    Proposer,
    answer_case,
    make_majority,
    make_nearest,
    make_oracle,
)
from evaluators.deliberation.questions import Case, PathExample, PathsSet, select_held_out
from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.graphs import knowledge
from safe_stepwise.graphs.graph_store import GraphStore
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.methods.deliberation import PathOptions
from safe_stepwise.methods.path_proposing import completion_of, joint_completion, masked
from safe_stepwise.players.judging import OVER_PATHS
from safe_stepwise.players.symbolic import Rates, SymbolicEngine
from safe_stepwise.records import Attempt, Candidate, KGQuestion, RelationPath, Trajectory, Usage

FILMS = [
    ("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Tesk", "by", "Edo"),
    ("Oru", "in", "1962"), ("Vel", "in", "1971"), ("Tesk", "in", "1971"),
]  # fmt: skip
KNOWN = GraphKnowledge(GraphStore(FILMS))
BY, IN, OTHERS = ("by",), ("in",), ("by", "~by")


def asked(words: str, answers: str, *gold: RelationPath, hops: int = 1, topic: str = "Oru") -> Case:
    question = KGQuestion(words, "metaqa", "test", words.format(topic), (topic,), frozenset(answers.split()), (), hops)
    paths = {topic: gold} if gold else {}
    return Case(question, masked(question.question, question.topics), paths)


def example(words: str, *paths: RelationPath, hops: int = 1) -> PathExample:
    return PathExample(words, masked(words, ("Vel",)), hops, paths)


def paths_of(proposer: Proposer, one: Case) -> list[RelationPath]:
    return [found.path for found in asyncio.run(proposer.propose(one, KNOWN))]


def trajectory(proposer: Proposer, one: Case) -> Trajectory:
    return asyncio.run(answer_case(one, KNOWN, proposer, {}, PathOptions()))


LEARNT = [
    example("who made [Vel]", BY),
    example("who made [Tesk]", BY),
    example("when did [Vel] come out", IN),
    example("other films by who made [Vel]", OTHERS, hops=2),
]


def test_the_majority_is_that_of_as_many_hops() -> None:
    assert paths_of(make_majority(LEARNT, 1), asked("when was [{}] made", "1962")) == [BY]
    assert paths_of(make_majority(LEARNT, 5), asked("when was [{}] made", "1962")) == [BY, IN]
    assert paths_of(make_majority(LEARNT, 1), asked("films like [{}]", "Vel", hops=2)) == [OTHERS]
    assert paths_of(make_majority(LEARNT, 1), asked("films near [{}]", "Vel", hops=3)) == []


def test_the_nearest_has_most_words_in_common() -> None:
    learnt = make_nearest(LEARNT, 1)
    assert paths_of(learnt, asked("in what year did [{}] come out", "1962")) == [IN]
    assert paths_of(learnt, asked("which person made [{}]", "Ana")) == [BY]
    assert set(paths_of(make_nearest(LEARNT, 9), asked("who made [{}]", "Ana"))) == {BY, IN, OTHERS}


def test_held_to_the_graph_the_next_nearest_path_that_exists_is_named() -> None:
    nowhere = [example("who made [Vel]", ("at",)), *LEARNT]
    one = asked("who made [{}]", "Ana")
    assert paths_of(make_nearest(nowhere, 1), one) == [("at",)]
    assert paths_of(make_nearest(nowhere, 1, constrained=True), one) == [BY]
    assert paths_of(make_majority([nowhere[0]], 1, constrained=True), one) == []


def test_hop_by_hop_any_path_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    every = GraphKnowledge(GraphStore(FILMS)).list_paths("Oru")
    assert {len(path) for path in every} == {1, 2, 3}
    one = asked("who made [{}]", "Ana")
    monkeypatch.setattr(knowledge, "MAX_LISTED", 2)
    for path in every:
        known, meant = GraphKnowledge(GraphStore(FILMS)), completion_of(path)
        engine = Meaning(meant)
        model = ModelProposer("m", Client(engine), 1, constrained=True, seed=0)
        case = asyncio.run(answer_case(one, known, model, {}, PathOptions()))
        states = [attempt.state for attempt in case.attempts]
        assert states == [*["extend"] * (len(states) - 2), "propose", "follow"]
        assert case.attempts[-2].read["path"] == list(path)
        assert len(engine.requests) == len(states) - 1 <= 3
        assert all(len(request.choices) <= 4 for request in engine.requests)
        cost = measure([score_case(one, case)], 0)["cost"]["by_role"]["proposer"]
        assert cost["calls"] == len(engine.requests)


class Meaning:
    """A model that means one reply, and gives the allowed one that is like it longest."""

    identity, name, simulated = MappingProxyType({"kind": "meaning"}), "meaning", False

    def __init__(self, meant: str) -> None:
        self.meant, self.requests = meant, list[Request]()

    async def generate(self, requests: Sequence[Request]) -> list[Completion | EngineError]:
        self.requests += requests
        return [Completion(max(r.choices or [self.meant], key=self._likeness), Usage(1, 0, 1)) for r in requests]

    def _likeness(self, reply: str) -> tuple[int, int]:
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(reply, self.meant, strict=False))
        return len([*alike]), -len(reply)

    async def check(self) -> None: ...

    async def close(self) -> None: ...


def test_a_joint_reply_names_paths_of_all_topics() -> None:
    two = replace(asked("what of [{}]", "Ana").question, topics=("Oru", "Vel", "nobody"))
    paths = [Candidate("Oru", BY), Candidate("Vel", IN), Candidate("Vel", ("at",))]
    engine = Meaning(joint_completion(paths))
    model = ModelProposer("m", Client(engine), 2, constrained=False, seed=0, joint=True)
    case = Case(two, "", {})
    proposals = asyncio.run(model.propose(case, KNOWN))
    assert [(p.topic, p.path) for p in proposals] == [
        ("nobody", ()), *[(candidate.topic, candidate.path) for candidate in paths] * 2
    ]  # fmt: skip
    assert len(engine.requests) == 2
    assert [request.sampling.temperature for request in engine.requests] == [0, 1]
    assert '"Oru" "Vel" "nobody"' in engine.requests[0].messages[1].content
    assert sum(p.usage is not None for p in proposals) == 2
    answered = asyncio.run(answer_case(case, KNOWN, model, {}, PathOptions()))
    assert answers_of(answered) == ("Ana",)
    engine.meant = "Ana"
    assert [p.outcome for p in asyncio.run(model.propose(case, KNOWN))] == ["nowhere", "unreadable", "unreadable"]


def test_a_question_without_a_topic_is_answered_with_a_reason() -> None:
    none = Case(replace(asked("who made [{}]", "Ana").question, topics=()), "", {})
    case = trajectory(make_oracle(), none)
    assert (case.stop_reason, answers_of(case)) == ("no_paths", ())
    assert "no topic entity" in case.attempts[0].read["reason"]
    assert score_case(none, case).scores["dp"].hit == 0


def test_nobody_learns_from_the_question_itself() -> None:
    one = asked("when did [{}] come out", "1971", topic="Vel")
    assert paths_of(make_nearest(LEARNT, 1), one) != [IN]
    assert paths_of(make_majority(LEARNT[2:], 1), one) == []
    other = asked("when did [{}] come out", "1962")
    assert paths_of(make_nearest(LEARNT, 1), other) == [IN]


def test_the_first_path_that_leads_somewhere_answers() -> None:
    one = asked("who made [{}]", "Ana", ("from",), ("by",), ("in",))
    found = trajectory(make_oracle(), one)
    assert (found.method, found.stop_reason, answers_of(found)) == (FIRST_PATH, "answered", ("Ana",))
    assert [attempt.accepted for attempt in found.attempts] == [False, True, True, True]
    nowhere = trajectory(make_oracle(), asked("who made [{}]", "Ana", ("from",)))
    assert (nowhere.stop_reason, answers_of(nowhere)) == ("no_paths", ())


def test_answers_are_ranked_by_their_instances_then_by_name() -> None:
    ways: RelationPath = ("by", "~by", "in", "~in")
    found = answers_of(trajectory(make_oracle(), asked("films [{}]", "Tesk", ways, hops=3)))
    assert found == ("Tesk", "Vel")


def test_shares_are_of_all_proposals() -> None:
    put = [
        asked("who made [{}]", "Ana", BY),
        asked("when was [{}] made", "1962", IN),
        asked("who is with [{}]", "Edo"),
    ]
    bad = make_nearest([example("who made [Vel]", BY), example("where was [Vel] made", ("at",))], 2)
    found = measure([score_case(one, trajectory(bad, one)) for one in put], seed=0)
    told = found["paths"]
    assert (told["proposals"], told["executable"], told["first_executable"]) == (6, 0.5, 2 / 3)
    # Of the four proposals for questions whose gold path is known one is gold.
    assert told["gold"] == 0.25
    assert told["first_gold"] == 0.5
    assert (found["questions"], found["hits_at_1"]) == (3, 1 / 3)
    assert found["by_hop"]["1"]["questions"] == 3
    low, high = found["intervals"]["hits_at_1"]
    assert 0 <= low <= 1 / 3 <= high <= 1


def test_a_question_that_failed_is_wrong_by_every_rule() -> None:
    one = asked("who made [{}]", "")
    failed = Trajectory(one.question.id, FIRST_PATH, (), (), "", "failed", "no reply")
    assert score_case(one, failed).scores["dp"].hit == 0
    found = measure([score_case(one, failed)], seed=0)
    assert (found["failed"], found["hit"], found["scorers"]["dp"]["f1"]) == (1, 0, 0)


class Halfway:
    """Answers of the one topic, and has no reply for another."""

    identity: Mapping[str, Any] = MappingProxyType({"kind": "halfway"})
    name, simulated = "halfway", False

    async def check(self) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, requests: Sequence[Request]) -> list[Completion | EngineError]:
        down = EngineError("the server is down")
        told = Completion(completion_of(BY), Usage(19, 0, 7))
        return [down if 'Topic: "Vel"' in r.messages[-1].content else told for r in requests]


def test_what_was_spent_before_a_proposal_failed_is_kept() -> None:
    question = KGQuestion("q", "metaqa", "test", "by both", ("Oru", "Vel"), frozenset({"Ana"}))
    one, engine = (Case(question, "by both", {}), ModelProposer("e", Client(Halfway(), tries=1), 1, True, 0))
    found = trajectory(engine, one)
    assert (found.stop_reason, found.failure) == ("failed", "the server is down")
    assert [attempt.read["said"] for attempt in found.attempts] == ["path", "failed"]
    told = measure([score_case(one, found)], seed=0)
    assert told["paths"]["failed"] == 1
    assert told["paths"]["executable"] == 0.5
    assert told["cost"]["by_role"]["proposer"]["tokens"] == 26


def test_what_a_path_leads_to_is_ranked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked = Counter[Candidate]()
    times = GraphKnowledge._count_instances

    def counted(knowledge: GraphKnowledge, candidate: Candidate) -> Mapping[str, int]:
        ranked[candidate] += 1
        return times(knowledge, candidate)

    monkeypatch.setattr(GraphKnowledge, "_count_instances", counted)
    one = asked("films like [{}]", "Vel", OTHERS, BY, IN, hops=2)
    engine = SymbolicEngine(OVER_PATHS, Rates(planted=1), 0)
    for clients in ({}, {"generator": Client(engine)}):
        knowledge = GraphKnowledge(GraphStore(FILMS))
        found = asyncio.run(answer_case(one, knowledge, make_oracle(), clients, PathOptions()))
        assert found.stop_reason == "answered"
        assert ranked == {Candidate("Oru", path): 1 for path in (OTHERS, BY, IN)}
        ranked.clear()


def test_questions_with_entities_cut_are_counted_by_hop() -> None:
    def followed(*cut: int | None) -> Trajectory:
        reads = [{} if n is None else {"cut": n} for n in cut]
        attempts = [Attempt(1, "", None, True, state="instantiate", read=read) for read in reads]
        return Trajectory("q", "deliberation", (), tuple(attempts), "", "no_answer")

    one, two = (asked("who made [{}]", "Ana", BY, hops=hops) for hops in (1, 2))
    cut = [(one, (0, 3, 7)), (one, (0,)), (two, (1,)), (two, ()), (one, (None,)), (two, (2, 0))]
    told = measure([score_case(of, followed(*n)) for of, n in cut], seed=0)
    assert (told["cut"], told["by_hop"]["1"]["cut"], told["by_hop"]["2"]["cut"]) == (3, 1, 2)


def test_runs_are_paired() -> None:
    put = [asked(f"who made [{{}}] {n}", "Ana", BY) for n in range(40)]
    right = [score_case(one, trajectory(make_oracle(), one)) for one in put]
    wrong = make_majority([example("when was [Vel]", IN)], 1)
    runs = {"oracle": right, "wrong": [score_case(one, trajectory(wrong, one)) for one in put]}
    told = {row["metric"]: row for row in compare_runs(runs, seed=0)}
    assert told["hits_at_1"]["difference"] == -1
    assert told["hits_at_1"]["interval"] == [-1, -1]
    assert told["hits_at_1"]["p"] == pytest.approx(1 / 2001)
    assert np.isclose(told["f1"]["p_holm"], 3 / 2001)


def test_what_is_held_out() -> None:
    row: dict[str, Any] = {"hops": 1, "path": ["by"], "best": True, "gold": True}
    words = ["who made [Oru]", "who made [Vel]", "when was [Oru]"]
    rows = [{**row, "question": w, "template": masked(w, ("Oru", "Vel"))} for w in words]
    put = [asked("who made [{}]", "Ana"), asked("when was [{}]", "1962"), asked("why [{}]", "x")]
    by_question = PathsSet(Path("s"), "question", {"train": rows[1:], "test": rows[:1]})
    assert select_held_out(put, by_question, True) == ([0], {"test": 1, "train": 1, "neither": 1}, "")
    by_template = PathsSet(Path("s"), "template", {"train": rows[:2], "test": rows[2:]})
    assert select_held_out(put, by_template, True)[0] == [1]
    places, counts, note = select_held_out(put, by_template, False)
    assert (places, counts["train"]) == ([0, 1, 2], 1)
    assert note.startswith("1 of 3 questions are in the train split of s")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("oracle", ("", "oracle")),
        ("a b=oracle", ("a b", "oracle")),
        ("symbolic:error_rate=0.3", ("", "symbolic:error_rate=0.3")),
        ("KTO=vllm:m@r+a", ("KTO", "vllm:m@r+a")),
        ("x=symbolic:a=1", ("x", "symbolic:a=1")),
    ],
)
def test_a_run_may_be_named(text: str, found: tuple[str, str]) -> None:
    assert split_name(text) == found
