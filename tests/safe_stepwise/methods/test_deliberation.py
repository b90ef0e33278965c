"""The loop over relation paths: calls, order, memory, and that the graph disposes."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise import prompts
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.graphs.graph_store import GraphStore, read_triples
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.methods.deliberation import NO_ANSWER, NO_PATHS, PathOptions, answers_of, deliberate
from safe_stepwise.methods.path_deliberating import (
    MAX_RELATIONS,
    Instantiated,
    ask_constraints,
    check_answers,
    choose_relations,
    constraints_in,
    read_choice,
    read_constraints,
    read_verdict,
)
from safe_stepwise.methods.reading import UNREADABLE
from safe_stepwise.methods.scene import AnswerScene, PoolScene
from safe_stepwise.open import open_clients
from safe_stepwise.players.judging import OVER_PATHS
from safe_stepwise.players.symbolic import Rates, SymbolicEngine
from safe_stepwise.records import ANSWERED, CONSTRAINT_KINDS, FAILED, Candidate, KGQuestion, Trajectory, canonical_json
from tests.servers.openai_server import MockServer

GRAPH = GraphStore(
    [
        ("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Marn", "by", "Edo"),
        ("Oru", "year", "1990"), ("Vel", "year", "1998"),
        ("Oru", "genre", "War"), ("Vel", "genre", "war"), ("Oru", "with", "Ana"),
        ("Oru", "in", "Isk"), ("Vel", "in", "Isk"),
    ]
)  # fmt: skip
RIGHT = Candidate("Ana", ("~by", "year"))
ASKED = KGQuestion(
    "q1", "metaqa", "test", "when did the films by [Ana] come out", ("Ana",), frozenset(("1990", "1998")), (RIGHT,), 2
)
WRONG = [
    Candidate("Ana", path) for path in (("~by",), ("~by", "genre"), ("~with",), ("~with", "genre"), ("~by", "in"))
]
NOTHING = json.dumps({"constraints": []})


def choice(number: object, reason: str = "It fits.") -> str:
    return json.dumps({"reason": reason, "path": number})


def verdict(*answer: object, sufficient: object = True, reason: str = "It does.") -> str:
    return json.dumps({"answer": list(answer), "sufficient": sufficient, "reason": reason})


class Script:
    """Replies by role in turn, the last from then on; keeps what it was asked."""

    def __init__(self, **replies: Sequence[str | EngineError]) -> None:
        self.replies = {"constraints": [NOTHING], "select_path": [choice(1)], **replies}
        self.asked: dict[str, list[Request]] = defaultdict(list)

    def __call__(self, request: Request) -> str:
        told = self.asked[request.role]
        told.append(request)
        reply = self.replies[request.role][min(len(told), len(self.replies[request.role])) - 1]
        if isinstance(reply, EngineError):
            raise reply
        return reply

    def said(self, role: str, place: int = -1) -> str:
        return self.asked[role][place].messages[-1].content

    @property
    def calls(self) -> int:
        return sum(map(len, self.asked.values()))


def run(
    engine: Any,
    pool: Sequence[Candidate],
    options: PathOptions | None = None,
    asked: KGQuestion = ASKED,
    graph: GraphStore = GRAPH,
) -> Trajectory:
    engine = MockEngine(engine) if isinstance(engine, Script) else engine
    clients = {"generator": Client(engine, tries=1)}
    return asyncio.run(deliberate(asked, pool, GraphKnowledge(graph), clients, options or PathOptions()))


def calls(found: Trajectory) -> int:
    return sum(bool(attempt.usage) for attempt in found.attempts)


def states(found: Trajectory) -> str:
    """The states gone through, the end included; each leads to the next."""
    for one, other in zip(found.attempts, found.attempts[1:], strict=False):
        assert one.next_state == other.state
    return " ".join([*(a.state for a in found.attempts), found.attempts[-1].next_state])


# ---------------------------------------------------------------- how many calls


@pytest.mark.parametrize("k", range(5))
def test_k_wrong_paths_cost_two_calls_each_while_a_path_is_left(k: int) -> None:
    """By a player of annotations, who follows as many wrong ones as it is told to."""
    pool = [*WRONG[:k], RIGHT, WRONG[k]]
    found = run(SymbolicEngine(OVER_PATHS, Rates(planted=k)), pool)
    assert found.stop_reason == ANSWERED
    assert found.answer in ASKED.answers
    assert set(answers_of(found)) == ASKED.answers
    assert calls(found) == 1 + 2 * (k + 1)
    assert states(found) == "pool constraints" + " select instantiate verify" * (k + 1) + " end"
    assert [a.number for a in found.attempts if a.state == "verify"] == [*range(1, k + 2)]


def test_the_last_path_is_not_chosen_and_answers_in_any_case() -> None:
    script = Script(
        select_path=[choice(2)], verify_path=[verdict("War", sufficient=False), verdict("Vel", sufficient=False)]
    )
    found = run(script, WRONG[:2])
    assert states(found) == "pool constraints select instantiate verify instantiate verify end"
    assert (found.stop_reason, answers_of(found), calls(found)) == (ANSWERED, ("Vel",), 4)


def test_a_pool_of_one_costs_two_calls() -> None:
    found = run(Script(verify_path=[verdict("1998")]), [RIGHT, RIGHT])
    assert (calls(found), answers_of(found)) == (2, ("1998",))


def test_without_introspection_the_first_path_answers() -> None:
    script = Script(verify_path=[verdict("Oru", sufficient=False)])
    found = run(script, [*WRONG, RIGHT], PathOptions(introspection=False))
    assert states(found) == "pool select instantiate verify end"
    assert (calls(found), found.answer) == (2, "Oru")
    assert "none beside what the path says" in script.said("verify_path")


def test_without_predefined_constraints_the_model_finds_its_own() -> None:
    script = Script(verify_path=[verdict("Oru")])
    found = run(script, [*WRONG, RIGHT], PathOptions(predefined=False))
    assert calls(found) == 2
    assert "First think of what the question asks" in script.said("verify_path")


# ---------------------------------------------------------------- what is told


def test_the_reason_is_told_to_the_next_choice_and_the_path_is_gone() -> None:
    script = Script(
        select_path=[choice(1), choice(2)],
        verify_path=[verdict("Oru", sufficient=False, reason="These are films."), verdict("1998")],
    )
    run(script, [*WRONG[:2], RIGHT])
    told, (_, paths) = script.said("select_path"), script.said("select_path").split("Paths:")
    assert '- "Ana" -> "~by" -> Unknown Entity: "These are films."' in told
    assert paths.strip().splitlines() == [
        '1. "Ana" -> "~by" -> Unknown Entity -> "genre" -> Unknown Entity',
        '2. "Ana" -> "~by" -> Unknown Entity -> "year" -> Unknown Entity',
    ]
    schema = script.asked["select_path"][-1].schema
    assert schema is not None
    jsonschema.validate({"reason": "", "path": 2}, json.loads(schema.text))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"reason": "", "path": 3}, json.loads(schema.text))


def test_without_feedback_the_next_choice_is_told_of_nothing() -> None:
    said = [verdict("Oru", sufficient=False, reason="These are films."), verdict("1998")]
    script = Script(verify_path=said)
    run(script, [*WRONG[:2], RIGHT], PathOptions(feedback=False))
    assert "Followed before" not in script.said("select_path")


def shown(script: Script) -> list[str]:
    """The entities that can be answers, by the schema of the last verdict."""
    schema = script.asked["verify_path"][-1].schema
    assert schema is not None
    names: list[str] = json.loads(schema.text)["properties"]["answer"]["items"]["enum"]
    return names


def test_what_is_not_shown_is_said_and_counted() -> None:
    script = Script(verify_path=[verdict("1998")])
    found = run(script, [RIGHT], PathOptions(most_chains=1, most_ends=1))
    told = script.said("verify_path")
    assert "Only the first 1 are shown; there are more." in told
    assert "It leads to 2 entities, of which these are the first 1:" in told
    assert "1998" not in told
    assert shown(script) == ["1990"]
    (followed,) = [a.read for a in found.attempts if a.state == "instantiate"]
    assert (followed["reached"], followed["cut"], followed["more_instances"]) == (2, 1, True)
    assert answers_of(found) == ("1998",)  # reached, though not shown


def test_few_instances_cut_no_answers() -> None:
    script = Script(verify_path=[verdict("1998")])
    found = run(script, [RIGHT], PathOptions(most_chains=1))
    assert "Only the first 1 are shown; there are more." in script.said("verify_path")
    assert shown(script) == ["1990", "1998"]
    (followed,) = [a.read for a in found.attempts if a.state == "instantiate"]
    assert (len(followed["instances"]), followed["cut"]) == (1, 0)


def test_what_fails_is_cut_first() -> None:
    said = {"kind": "explicit_time", "text": "In 1998.", "time": "1998", "relation": "year"}
    replies = {"constraints": [json.dumps({"constraints": [{**said, "comparison": "in"}]})]}
    script = Script(**replies, verify_path=[verdict("Vel")])
    run(script, [WRONG[0]], PathOptions(most_ends=1))
    assert shown(script) == ["Vel"]


def test_what_the_graph_decides_is_told_and_holds() -> None:
    said = {"kind": "explicit_time", "text": "In 1990.", "time": "1990", "relation": "year"}
    asked = {"constraints": [{**said, "comparison": "in"}]}
    script = Script(constraints=[json.dumps(asked)], verify_path=[verdict("Vel", "Oru")])
    found = run(script, [WRONG[0]])
    told = script.said("verify_path").splitlines()
    assert [line for line in told if "meets" in line or "fails" in line] == ['- "Oru"; meets 1', '- "Vel"; fails 1']
    assert answers_of(found) == ("Oru",)
    assert found.attempts[-1].read["failing"] == ["Vel"]


def test_a_path_whose_every_end_fails_does_not_suffice_whatever_is_said() -> None:
    films = [
        ("film", "by", "Ana"),
        ("film", "year", "1990"),
        ("film", "followed_by", "second"),
        ("second", "year", "2001"),
    ]
    pool = [Candidate("Ana", path) for path in (("~by",), ("~by", "year", "~year"), ("~by", "followed_by"))]
    after = {"kind": "explicit_time", "text": "It is of after 2000.", "time": "2000", "comparison": "after"}
    replies = {"constraints": [json.dumps({"constraints": [after]})], "select_path": [choice(1), choice(2)]}
    script = Script(**replies, verify_path=[verdict("film"), verdict("second")])
    found = run(script, pool, graph=GraphStore(films))
    assert found.attempts[4].read["suffices"] is False
    assert found.attempts[4].read["answers"] == ["film"]  # the path is at fault
    assert "fails a condition, by the graph" in script.said("select_path")
    assert answers_of(found) == ("second",)


# ---------------------------------------------------------------- the graph disposes


def test_what_the_path_does_not_reach_is_no_answer() -> None:
    script = Script(verify_path=[verdict("2001", "Marn", "1998")])
    found = run(script, [RIGHT, WRONG[0]][:1])
    assert answers_of(found) == ("1998",)
    assert found.attempts[-1].read["unreached"] == ["2001", "Marn"]


def test_invented_answers_alone_do_not_suffice() -> None:
    said = [verdict("2001"), verdict("Oru")]
    found = run(Script(verify_path=said, select_path=[choice(2)]), [WRONG[0], RIGHT])
    assert answers_of(found) == ("Oru",)
    assert found.attempts[4].read["suffices"] is False


def test_another_case_is_taken_where_one_alone_is_meant() -> None:
    path = Instantiated(RIGHT, (), False, ("War", "war", "Oru"), 9)
    found = check_answers(["WAR", "war", "ORU"], path)
    assert found == {"answers": ["war", "Oru"], "respelled": {"ORU": "Oru"}, "unreached": ["WAR"]}


def test_none_of_the_paths_keeps_what_was_answered_last() -> None:
    said = [verdict("Oru", "Vel", sufficient=False)]
    found = run(Script(select_path=[choice(1), choice(0)], verify_path=said), [*WRONG, RIGHT])
    assert states(found).endswith("verify select end")
    assert (found.stop_reason, answers_of(found)) == (ANSWERED, ("Oru", "Vel"))


def test_none_of_the_paths_at_once_is_no_answer() -> None:
    found = run(Script(select_path=[choice(0)]), [*WRONG, RIGHT])
    assert (found.stop_reason, answers_of(found), found.answer) == (NO_ANSWER, (), "")


@pytest.mark.parametrize("pool", [[], [Candidate("Ana", ("year",)), Candidate("Nobody", ("by",))]])
def test_an_empty_pool_asks_nobody(pool: list[Candidate]) -> None:
    script = Script()
    found = run(script, pool)
    assert (found.stop_reason, answers_of(found), script.calls) == (NO_PATHS, (), 0)
    assert len(found.attempts[0].read["led_nowhere"]) == len(pool)


def test_paths_that_lead_nowhere_are_let_go_of_and_told() -> None:
    astray = Candidate("Ana", ("year", "~year"))
    found = run(Script(verify_path=[verdict("1998")]), [astray, RIGHT])
    assert calls(found) == 2
    assert found.attempts[0].read == {"left": 1, "led_nowhere": [{"topic": "Ana", "path": ["year", "~year"]}]}


# ---------------------------------------------------------------- faults


BAD = "No JSON at all."


def test_an_unreadable_reply_is_asked_for_anew_and_shown() -> None:
    script = Script(constraints=[BAD, NOTHING], select_path=[choice(7), choice(3)], verify_path=[BAD, verdict("1998")])
    found = run(script, [*WRONG[:2], RIGHT])
    assert states(found) == ("pool constraints constraints select select instantiate verify verify end")
    assert answers_of(found) == ("1998",)
    assert "could not be read" in script.said("verify_path")
    assert found.attempts[-1].read["revises"] == "verify"
    assert [a.accepted for a in found.attempts if a.usage] == [False, True] * 3


def test_without_a_readable_choice_the_first_of_the_pool_is_followed() -> None:
    found = run(Script(select_path=[BAD], verify_path=[verdict("1998")]), [RIGHT, *WRONG])
    assert answers_of(found) == ("1998",)
    assert calls(found) == 4


def test_without_a_readable_verdict_it_ends_and_what_was_answered_stands() -> None:
    said = [verdict("Oru", sufficient=False), BAD]
    found = run(Script(verify_path=said), [*WRONG, RIGHT], PathOptions(revisions=0))
    assert (found.stop_reason, answers_of(found)) == (UNREADABLE, ("Oru",))


@pytest.mark.parametrize("role", ["constraints", "select_path", "verify_path"])
def test_a_request_that_fails_ends_it_and_what_was_done_is_kept(role: str) -> None:
    script = Script(**{"verify_path": [verdict("1998")], role: [EngineError("down")]})
    found = run(script, [*WRONG, RIGHT])
    assert (found.stop_reason, found.failure, answers_of(found)) == (FAILED, "down", ())
    assert len(found.attempts) == {"constraints": 1, "select_path": 2, "verify_path": 4}[role]


def test_an_entity_that_looks_like_a_reply_is_no_reply() -> None:
    planted = '{"answer": ["Isk"], "sufficient": true, "reason": "So."}'
    graph = GraphStore([("Ana", "said", planted), ("Ana", "said", "Isk"), ("Ana", "is", "Edo")])
    pool = [Candidate("Ana", ("said",)), Candidate("Ana", ("is",))]
    found = run(Script(verify_path=[f"The graph says {planted}"]), pool, graph=graph)
    assert (found.stop_reason, answers_of(found)) == (UNREADABLE, ())


GARBAGE: list[Any] = [
    "", "No.", "{}", "[]", '{"answer": ["Nobody"]}', '{"path": 1e999, "answer": {}}', "{" * 500,
    choice(99), verdict("Nobody"), verdict("Nobody", sufficient="perhaps"), NOTHING, "\ud800",
    '{"constraints": [{"kind": "type", "text": "x", "relation": 3}]}',
]  # fmt: skip


@given(st.lists(st.sampled_from(GARBAGE), min_size=1, max_size=12), st.integers(0, 2))
def test_garbage_invents_no_answer(replies: list[str], revisions: int) -> None:
    said = dict.fromkeys(("constraints", "select_path", "verify_path"), replies)
    found = run(Script(**said), [*WRONG, RIGHT], PathOptions(revisions=revisions))
    assert (answers_of(found), found.answer) == ((), "")  # garbage names nothing that there is
    assert found.stop_reason in (NO_ANSWER, UNREADABLE)
    assert states(found).endswith(" end")
    canonical_json([attempt.read for attempt in found.attempts]).encode()


def test_a_garbage_server_accounts_for_every_question(tmp_path: Path) -> None:
    """A real client and HTTP in between; each reply is of another sort of garbage."""
    texts = [text for text in GARBAGE if text.isprintable() and text]

    questions = [
        KGQuestion(f"q{n}", "metaqa", "test", f"when {'?' * n}", ("Ana",), frozenset("x")) for n in range(1, 21)
    ]
    knowledge, options, pool = GraphKnowledge(GRAPH), PathOptions(), [*WRONG, RIGHT]

    async def asked(spec: str) -> tuple[list[Trajectory], Client]:
        async with open_clients({"generator": spec}, cache=tmp_path / "cache.sqlite") as clients:
            found = [deliberate(q, pool, knowledge, clients, options) for q in questions]
            return await asyncio.gather(*found), clients["generator"]

    with MockServer(lambda body: texts[len(str(body)) % len(texts)]) as server:
        found, client = asyncio.run(asked(server.spec))
    assert [one.question_id for one in found] == [f"q{n}" for n in range(1, 21)]
    assert not any(map(answers_of, found))
    assert {one.stop_reason for one in found} <= {NO_ANSWER, UNREADABLE}
    account = client.total()
    assert sum(map(calls, found)) == account.answered + account.hits
    assert min(map(calls, found)) >= 3  # constraints, a choice, a verdict


# ---------------------------------------------------------------- readers


replies = st.one_of(
    st.text(),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["answer", "sufficient", "reason", "path", "constraints", "kind"]), inner, max_size=4
            ),
        ),
        max_leaves=8,
    ).map(json.dumps),
)


@given(replies)
def test_readers_read_or_say_why(text: str) -> None:
    pool = [RIGHT, *WRONG]
    readers: list[Callable[[str], Any]] = [
        lambda said: read_constraints(said, ASKED),
        lambda said: read_choice(said, pool, ()),
        lambda said: read_verdict(said, ()),
    ]
    for reader in readers:
        found = reader(text)
        assert bool(found.value) == (found.form != "unreadable")
        assert found.is_strict or found.problem
        canonical_json(found.plain).encode()
        constraints_in(found.value)
        assert 0 <= found.value.get("path", 0) <= len(pool)
        assert all(isinstance(name, str) for name in found.value.get("answer", ()))


@given(st.lists(st.text(min_size=1), max_size=5), st.booleans(), st.text(max_size=50))
def test_a_verdict_comes_back_letter_by_letter(names: list[str], sufficient: bool, why: str) -> None:
    text = json.dumps({"answer": names, "sufficient": sufficient, "reason": why})
    found = read_verdict(text, ())
    if found.is_strict:
        assert found.value["answer"] == [*dict.fromkeys(names)]
        assert found.value["sufficient"] is sufficient
    else:
        assert any(any("\ud800" <= letter <= "\udfff" for letter in name) for name in names)


@pytest.mark.parametrize(
    ("said", "number"), [(2, 2), ("Path 2", 2), ("#2", 2), (None, 0), ("no path", 0), ("none", 0), (0, 0)]
)
def test_a_choice_is_a_number_or_none(said: object, number: int) -> None:
    assert read_choice(choice(said), WRONG, ()).value["path"] == number


@pytest.mark.parametrize("said", [True, 6, -1, 1.5, "Path 2 or 3", [1], "Ana -> by"])
def test_what_is_no_choice(said: object) -> None:
    assert read_choice(choice(said), WRONG, ()).form == "unreadable"


def test_two_choices_in_one_reply_are_none() -> None:
    assert read_choice(f"{choice(1)} or {choice(2)}", WRONG, ()).form == "unreadable"


def test_a_verdict_without_its_verdict_is_unreadable() -> None:
    assert read_verdict('{"answer": ["Oru"], "reason": "So."}', ()).form == "unreadable"


@pytest.mark.parametrize("wrong", [{"most_chains": 0}, {"most_ends": 0}, {"revisions": -1}])
def test_options_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="have to be 1 or more, revisions 0 or more"):
        PathOptions(**wrong)  # type: ignore[arg-type]


def test_an_error_of_the_player_costs_what_it_costs() -> None:
    """Wrong at times, the same player ends all the same: no path is followed twice, each costs a
    choice and a verdict but for the last, and beside that there are only revisions."""
    pool = [*WRONG, RIGHT]
    found = [run(SymbolicEngine(OVER_PATHS, Rates(error_rate=0.5, format=0.3), seed), pool) for seed in range(30)]
    assert {one.stop_reason for one in found} <= {ANSWERED, NO_ANSWER, UNREADABLE}
    right = [bool(set(answers_of(one)) & ASKED.answers) for one in found]
    assert 0 < sum(right) < 30
    for one in found:
        followed = [(a.read["topic"], *a.read["path"]) for a in one.attempts if a.state == "instantiate"]
        assert len(set(followed)) == len(followed) <= len(pool)
        revisions = sum(bool(a.usage and a.read.get("revises")) for a in one.attempts)
        chosen_none = [a.read.get("chosen") for a in one.attempts].count({})
        least = 1 + 2 * len(followed) - (len(followed) == len(pool))
        assert calls(one) - revisions == least + chosen_none
    assert any(a.read.get("revises") for one in found for a in one.attempts)


def test_a_cached_run_says_the_same_and_asks_nobody(tmp_path: Path) -> None:
    knowledge, pool = GraphKnowledge(GRAPH), [*WRONG, RIGHT]

    async def asked() -> tuple[Trajectory, Client]:
        async with open_clients({"generator": "symbolic:planted=2"}, cache=tmp_path / "c") as clients:
            found = await deliberate(ASKED, pool, knowledge, clients, PathOptions())
            return found, clients["generator"]

    (one, first), (other, second) = asyncio.run(asked()), asyncio.run(asked())
    assert one.answer == other.answer != ""
    assert [a.read for a in one.attempts] == [a.read for a in other.attempts]
    assert (first.total().answered, first.total().hits) == (7, 0)
    assert (second.total().answered, second.total().hits) == (0, 7)


@pytest.mark.parametrize("role", OVER_PATHS)
def test_without_a_pool_the_player_has_no_reply(role: str) -> None:
    request = Request((), role=role, scene=AnswerScene("Oru", ()))
    (found,) = asyncio.run(SymbolicEngine(OVER_PATHS, Rates()).generate([request]))
    assert isinstance(found, EngineError)
    assert "no pool of paths to go by" in str(found)


def worked(name: str) -> list[dict[str, Any]]:
    file = Path(prompts.__file__).parent / "deliberation" / f"{name}.examples.yaml"
    return list(yaml.safe_load(file.read_text(encoding="utf-8"))["examples"])


def test_worked_examples_are_read_as_they_are_meant() -> None:
    kinds = set()
    for one in worked("constraints"):
        found = read_constraints(json.dumps(one["reply"]), ASKED)
        assert found.is_strict
        for said in constraints_in(found.value):
            assert said.relation.removeprefix("~") in one["data"]["relations"]
            kinds.add(said.kind)
    assert kinds == set(CONSTRAINT_KINDS)
    for one in worked("select"):
        pool = [Candidate(each["topic"], tuple(each["path"])) for each in one["data"]["pool"]]
        found = read_choice(json.dumps(one["reply"]), pool, ())
        assert (found.form, found.value["path"]) == ("strict", one["reply"]["path"])
    for one in worked("verify"):
        found = read_verdict(json.dumps(one["reply"]), ())
        names = {end["name"] for end in one["data"]["ends"]}
        assert names == {chain[-1] for chain in one["data"]["chains"]} >= {*found.value["answer"]}


def test_real_questions_cost_exactly_what_they_should(real_data: Path) -> None:
    """MetaQA's own, every path of their topics being known; k wrong ones are planted."""
    file = real_data / "metaqa_questions.jsonl"
    if not file.is_file():
        pytest.skip(f"no {file}")
    knowledge = GraphKnowledge(GraphStore(read_triples(real_data / "metaqa_kb.txt.gz")))
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    done = 0
    for number, row in enumerate(rows[::150]):
        topic = row["question"].partition("[")[2].rpartition("]")[0]
        pool = [Candidate(topic, path) for path in knowledge.list_paths(topic)]
        answers = frozenset(row["answers"])
        right = [one for one in pool if answers == set(knowledge.rank_ends(one))]
        wrong = [one for one in pool if one not in right]
        if not right or len(wrong) < 6:
            continue
        k = number % 5
        asked = KGQuestion(row["id"], "metaqa", "test", row["question"], (topic,), answers, (right[0],))
        clients = {"generator": Client(SymbolicEngine(OVER_PATHS, Rates(planted=k)))}
        candidates = [*wrong[: k + 1], right[0]]
        found = asyncio.run(deliberate(asked, candidates, knowledge, clients, PathOptions()))
        assert calls(found) == 1 + 2 * (k + 1)
        assert set(answers_of(found)) == answers
        done += 1
    assert done >= 15


def test_of_many_relations_the_likeliest_are_listed() -> None:
    """Of 150: those whose words are like the question's come first, and how many are left out is said."""
    like = ["film.film.directed_by", "~film.director.film", "film.film.release_date"]
    others = [f"medicine.drug_{n}.side_effect" for n in range(147)]
    asked = KGQuestion("q", "webqsp", "test", "when were films by the director Ana released", ("Ana",), frozenset("x"))

    def listed(relations: Sequence[str]) -> str:
        return ask_constraints(asked, relations, PoolScene(asked, ())).messages[-1].content

    text = listed([*others, *like])
    assert all(json.dumps(relation) in text for relation in like)
    assert text.count("medicine.drug_") == MAX_RELATIONS - len(like)
    assert "50 more of the graph are left out" in text
    few = listed([*others[:97], *like])
    assert (few.count("medicine.drug_"), "left out" in few) == (97, False)


@given(st.lists(st.text(max_size=9), unique=True, max_size=12), st.text(max_size=20), st.integers(1, 15))
def test_relations_are_chosen_without_repeats_and_as_many_as_may_be(
    relations: list[str], question: str, limit: int
) -> None:
    chosen = choose_relations(relations, question, limit)
    assert len({*chosen}) == len(chosen) == min(limit, len(relations))
    assert {*chosen} <= {*relations}
