"""SG-FSM's machines: each edge that they declare, what they ask, what they remember."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from safe_stepwise import prompts
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.methods import METHODS, sg_fsm, sg_fsm_safe
from safe_stepwise.methods.base import option_values, prompts_digest
from safe_stepwise.methods.machine import Machine, MachineError, Move, State, drive
from safe_stepwise.methods.prompting import MachineOptions, form_of, readability
from safe_stepwise.methods.reading import Reading
from safe_stepwise.methods.running import statistics, transitions
from safe_stepwise.methods.scene import PromptingScene, SubAnswer
from safe_stepwise.records import Passage, Trajectory
from safe_stepwise.taxonomy import CORRECT, labels
from tests.safe_stepwise.methods.machines import (
    ASKED,
    BAD,
    BORN,
    IDEAL,
    SIMPLE,
    Script,
    compound,
    find,
    go_on,
    path,
    rewritten,
    run,
    stop,
    summary,
    verdict,
)

REDO = {"revisions": 0, "redo": 1}
REDO_LATE = {"revisions": 1, "redo": 1}
SCRIPTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "q0 q2 q4 q0 q2 q5": ("q5", {}, {}),
    "q0 q2 q4 q0 q2 q4 q5": ("q5", {"decompose": [compound()]}, {}),
    "q0 q1 q2 q5": ("q5", {"decompose": [BAD], "revise": [SIMPLE]}, {}),
    "q0 q1 q1 q2 q5": ("q5", {"decompose": [BAD], "revise": [BAD, SIMPLE]}, {}),
    "q0 q1 q1 q7": ("q7", {"decompose": [BAD]}, {}),
    "q0 q1 q0 q2 q5": ("q5", {"decompose": [BAD, SIMPLE]}, REDO_LATE),
    "q0 q0 q2 q5": ("q5", {"decompose": [BAD, SIMPLE]}, REDO),
    "q0 q0 q7": ("q7", {"decompose": [BAD]}, REDO),
    "q0 q2 q3 q5": ("q5", {"decompose": [SIMPLE], "search": [BAD], "revise": [find()]}, {}),
    "q0 q2 q3 q4 q5": ("q5", {"search": [BAD], "revise": [find()], "terminate": [stop()]}, {}),
    "q0 q2 q3 q3 q4 q5": ("q5", {"search": [BAD], "revise": [BAD, find()], "terminate": [stop()]}, {}),
    "q0 q2 q3 q3 q7": ("q7", {"search": [BAD]}, {}),
    "q0 q2 q3 q2 q4 q5": ("q5", {"search": [BAD, find()], "terminate": [stop()]}, REDO_LATE),
    "q0 q2 q2 q4 q5": ("q5", {"search": [BAD, find()], "terminate": [stop()]}, REDO),
    "q0 q2 q2 q7": ("q7", {"search": [BAD]}, REDO),
    "q0 q2 q4 q4r q5": ("q5", {"terminate": [BAD], "revise": [stop()]}, {}),
    "q0 q2 q4 q4r q4r q5": ("q5", {"terminate": [BAD], "revise": [BAD, stop()]}, {}),
    "q0 q2 q4 q4r q0 q2 q5": ("q5", {"terminate": [BAD], "revise": [go_on()]}, {}),
    "q0 q2 q4 q4r q4r q7": ("q7", {"terminate": [BAD]}, {}),
    "q0 q2 q4 q4r q4 q5": ("q5", {"terminate": [BAD, stop()]}, REDO_LATE),
    "q0 q2 q4 q4 q5": ("q5", {"terminate": [BAD, stop()]}, REDO),
    "q0 q2 q4 q4 q7": ("q7", {"terminate": [BAD]}, REDO),
}
"""By the way that they go: the end, what is said, the options."""
SUMMED_UP: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "q0 q2 q4 q0 q2 q5 q6 end": ("end", {}, {}),
    "q0 q2 q5 q6 q6r end": ("end", {"decompose": [SIMPLE], "summarize": [BAD], "revise": [summary()]}, {}),
    "q0 q2 q5 q6 q6r q6r end": ("end", {"decompose": [SIMPLE], "summarize": [BAD], "revise": [BAD, summary()]}, {}),
    "q0 q2 q5 q6 q6r q6r q7": ("q7", {"decompose": [SIMPLE], "summarize": [BAD]}, {}),
    "q0 q2 q5 q6 q6r q6 end": ("end", {"decompose": [SIMPLE], "summarize": [BAD, summary()]}, REDO_LATE),
    "q0 q2 q5 q6 q6 end": ("end", {"decompose": [SIMPLE], "summarize": [BAD, summary()]}, REDO),
    "q0 q2 q5 q6 q6 q7": ("q7", {"decompose": [SIMPLE], "summarize": [BAD]}, REDO),
}


def gone(name: str, scripts: dict[str, Any]) -> list[Trajectory]:
    found = []
    for way, (end, said, options) in scripts.items():
        one = run(name, Script(**said), **options)
        assert path(one) == way
        assert one.stop_reason == ("withdrawn" if end == "q7" else "answered")
        assert bool(one.answer) == (end != "q7")
        found.append(one)
    return found


def edges(machine: Machine[Any]) -> set[str]:
    return {f"{one} → {other}" for one, other in machine.edges}


def test_every_edge_of_the_first_stage_is_gone_and_counted() -> None:
    endless = run("sg_fsm1", Script(decompose=[compound()], terminate=[go_on()]))
    taken = transitions([*gone("sg_fsm1", SCRIPTS), endless])
    assert set(taken) == edges(sg_fsm.SINGLE_TURN)


def test_every_edge_of_the_second_stage_is_gone_and_counted() -> None:
    endless = run("sg_fsm2", Script(decompose=[compound()], terminate=[go_on()]))
    first = {
        way.removesuffix(" q5") + " q5 q6 end" if way.endswith("q5") else way: told for way, told in SCRIPTS.items()
    }
    found = [*gone("sg_fsm2", first), *gone("sg_fsm2", SUMMED_UP), endless]
    taken = statistics(found).transitions
    assert set(taken) == edges(sg_fsm.TWO)
    ends = Counter(one.attempts[-1].next_state for one in found)
    assert set(ends) == set(sg_fsm.TWO.ends)


def test_a_terminator_that_never_stops_is_withdrawn_at_the_seventh_iteration() -> None:
    script = Script(decompose=[compound()], terminate=[go_on()])
    found = run("sg_fsm1", script)
    assert (found.stop_reason, found.answer) == ("withdrawn", "")
    assert [len(script.asked[role]) for role in ("decompose", "search", "terminate")] == [6] * 3
    assert found.attempts[-1].usage == {}
    assert transitions([found])["q0 → q7"] == 1
    assert run("sg_fsm1", Script(terminate=[go_on()]), iterations=1).stop_reason == "withdrawn"


def test_the_answer_is_the_terminators_else_what_was_found_last() -> None:
    chain = {"decompose": [compound()]}
    assert run("sg_fsm1", Script(**chain)).answer == "Oru"
    assert run("sg_fsm1", Script(**chain, terminate=[stop("Vel")])).answer == "Vel"
    assert run("sg_fsm1", Script(**chain, terminate=[stop(None)])).answer == "Ors Velt"
    assert run("sg_fsm2", Script(**chain, summarize=[summary("Vel")])).answer == "Vel"


def test_what_each_role_is_shown() -> None:
    script = Script()
    run("sg_fsm2", script)
    decomposer, terminator = script.said("decompose"), script.said("terminate")
    assert decomposer == (
        'Question: "Where was Ors Velt born?"\n\nReply with JSON alone: {"simple": false, "subquestion": "..."}'
    )
    assert "Passage" not in terminator
    assert '"Who directed Dune Rain?" "Ors Velt"' in terminator
    places = [
        script.said("search").index(part)
        for part in (
            "Passage 1",
            "Passage 3",
            "Found so far",
            "(Passage 1)",
            "\nQuestion:",
            'Reply with JSON alone: {"question',
        )
    ]
    assert places == sorted(places)
    first, second = script.asked["search"]
    shared = first.messages[1].content.partition("nothing yet")[0]
    assert first.messages[0] == second.messages[0]
    assert second.messages[1].content.startswith(shared)
    assert "Passage 3" not in script.said("summarize")
    assert 'Answer that came out: "Oru"' in script.said("summarize")


def test_what_players_go_by() -> None:
    script = Script(terminate=["So: " + go_on(), stop()], revise=[go_on()])
    run("sg_fsm2", script)
    scenes = {role: [r.scene for r in asked] for role, asked in script.asked.items()}
    first, second = scenes["search"]
    assert isinstance(second, PromptingScene)
    assert isinstance(first, PromptingScene)
    assert (first.subquestion, first.sub_answers) == ("Who directed Dune Rain?", ())
    known = (SubAnswer("Who directed Dune Rain?", 1, "Ors Velt"),)
    assert (second.subquestion, second.sub_answers) == ("Where was Ors Velt born?", known)
    (mending,) = scenes["revise"]
    assert isinstance(mending, PromptingScene)
    assert (mending.mends, mending.rejected) == ("terminate", ("So: " + go_on(),))
    assert first.key != second.key
    for asked in script.asked.values():
        assert all(request.schema is None for request in asked)


def test_revisions_are_told_apart_and_differ() -> None:
    script = Script(search=[BAD], revise=["Worse.", find()], terminate=[stop()])
    found = run("sg_fsm1", script)
    assert readability([found]) == {"first": 2, "revised": 1, "salvaged": 0, "never": 0}
    one, other = script.asked["revise"]
    assert one.messages != other.messages
    assert '"Worse."' in script.said("revise")
    assert script.said("revise").endswith('Reply with JSON alone: {"question": "...", "passage": 1, "answer": "..."}')
    assert found.attempts[2].read["revises"] == "q2"
    never = run("sg_fsm1", Script(search=[f"So: {find()}"]))
    assert readability([never]) == {"first": 1, "revised": 0, "salvaged": 1, "never": 0}


def test_a_redo_shows_the_reply_that_was_refused() -> None:
    script = Script(search=["Not this.", find()], terminate=[stop()])
    found = run("sg_fsm1", script, **REDO)
    assert found.answer == "Oru"
    assert '"Not this."' in script.said("search")


@pytest.mark.parametrize(
    ("role", "reply"),
    [
        ("decompose", '{"simple": false, "subquestion": null}'),
        ("decompose", '{"simple": "false", "subquestion": "Who?"}'),
        ("decompose", '{"simple": true}'),
        ("search", find(0)),
        ("search", find(4)),
        ("search", find("1")),
        ("search", find(True)),
        ("search", find(1, "")),
        ("search", find(1, "\ud800")),
        ("terminate", '{"question": "Q?", "continue": "false", "answer": "Oru"}'),
        ("terminate", '{"question": "", "continue": true, "answer": null}'),
        ("summarize", '{"answer": null, "reason": "x"}'),
    ],
)
def test_what_is_not_of_the_form_is_revised(role: str, reply: str) -> None:
    found = run("sg_fsm2", Script(**{role: [reply]}))
    assert found.stop_reason == "withdrawn"
    assert [a.read["form"] == "strict" for a in found.attempts[-3:]] == [False] * 3


@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("name", ["direct", "cot", "sp_cot", "sg_fsm2"])
def test_the_form_asked_for_fits_the_schema_of_its_prompt(name: str, evidence: bool) -> None:
    facts = {"supporting_facts": [[1, 1]], "evidences": []} if evidence else {}
    more = {"sentences": [1], "evidence": ["a", "b", "c"]} if evidence else {}
    told = json.dumps({"answer": "Oru", "explain": "x", "reason": "x", **facts})
    script = Script(
        direct=[told], cot=[told], sp_cot=[told], summarize=[told], search=[find(**more)],
        decompose=[compound()], terminate=[stop()],
    )  # fmt: skip
    found = run(name, script, evidence=evidence)
    assert found.answer == "Oru"
    schemas = {p.role: p.schema for p in map(prompts.load, METHODS[name].prompts)}
    for role, (request, *_) in script.asked.items():
        form = json.loads(form_of(request))
        jsonschema.validate(form, json.loads(schemas[role].text))


def test_with_evidence_finds_have_sentences_and_a_triple() -> None:
    fact = {"sentences": [1], "evidence": ["Dune Rain", "director", "Ors Velt"]}
    more = {"supporting_facts": [[1, 1]], "evidences": [fact["evidence"]]}
    told = '{"answer": "Oru", "explain": "x", "supporting_facts": [[1, 1]], "evidences": []}'
    script = Script(search=[find(**fact)], terminate=[stop()], summarize=[told])
    found = run("sg_fsm2", script, evidence=True)
    assert found.answer == "Oru"
    assert found.attempts[-1].read["value"]["supporting_facts"] == more["supporting_facts"]
    assert '1: "Dune Rain was directed by Ors Velt."' in script.said("search")
    assert 'Evidence: "Dune Rain | director | Ors Velt"' in script.said("summarize")
    beyond = Script(search=[find(sentences=[2], evidence=fact["evidence"])])
    assert run("sg_fsm1", beyond, evidence=True).stop_reason == "withdrawn"


def test_the_second_stage_repeats_the_firsts_calls_from_the_cache(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "replies.sqlite")
    script = Script()
    client = Client(MockEngine(script), cache)
    for name in ("sg_fsm1", "sg_fsm2"):
        found = asyncio.run(METHODS[name].answer(ASKED, {"generator": client}, MachineOptions()))
        assert found.answer == "Oru"
    assert {role: len(asked) for role, asked in script.asked.items()} == {
        "decompose": 2, "search": 2, "terminate": 1, "summarize": 1,
    }  # fmt: skip
    cache.close()


def test_a_request_that_fails_for_good_keeps_what_was_done() -> None:
    found = run("sg_fsm1", Script(terminate=[EngineError("gone")]))
    assert (found.stop_reason, found.failure, found.answer) == ("failed", "gone", "")
    assert [attempt.state for attempt in found.attempts] == ["q0", "q2"]


# ------------------------------------------------------------------------------- Terminator's forms


@pytest.mark.parametrize("form", sg_fsm.DECISIONS)
def test_a_terminator_that_only_decides_leaves_rewriting_to_the_decomposer(form: str) -> None:
    script = Script()
    trajectory = run("sg_fsm2", script, terminator=form)
    assert path(trajectory) == "q0 q2 q4 q0 q2 q4 q5 q6 end"
    assert set(script.asked) == {sg_fsm.INFORMED, "search", form, "summarize"}
    decomposer, terminator = script.said(sg_fsm.INFORMED), script.said(form)
    assert '"Who directed Dune Rain?" "Ors Velt"' in decomposer
    assert "nothing yet" in script.said(sg_fsm.INFORMED, 0)
    assert f'The question as it stands: "{BORN}"\nThe last simple question: "{BORN}"' in terminator
    assert '"Oru"' in terminator
    assert "Passage" not in decomposer + terminator
    findings = sg_fsm_safe.sub_answers(trajectory.attempts)
    assert [(f.question, f.answer) for f in findings] == [("Who directed Dune Rain?", "Ors Velt"), (BORN, "Oru")]


@pytest.mark.parametrize("form", sg_fsm.DECISIONS)
def test_the_last_finding_counts_where_such_a_terminator_stops(form: str) -> None:
    names = {"decide": '{"continue": false}', "compare": '{"identical": true}'}
    assert run("sg_fsm1", Script(**{form: [names[form]]}), terminator=form).answer == "Ors Velt"
    simple = Script(decompose_with_findings=[IDEAL[sg_fsm.INFORMED][0], rewritten("Is it Oru?", None)])
    trajectory = run("sg_fsm1", simple, terminator=form)
    assert (path(trajectory), trajectory.answer) == ("q0 q2 q4 q0 q2 q5", "Oru")
    assert sg_fsm_safe.sub_answers(trajectory.attempts)[-1].question == "Is it Oru?"


@pytest.mark.parametrize(
    ("form", "role", "reply"),
    [
        ("decide", "decide", '{"continue": null}'),
        ("decide", "decide", go_on().replace("true", "1")),
        ("compare", "compare", '{"continue": true}'),
        ("compare", sg_fsm.INFORMED, compound()),
        ("compare", sg_fsm.INFORMED, rewritten("", None)),
        ("decide", sg_fsm.INFORMED, '{"question": "Q?", "simple": false, "subquestion": null}'),
    ],
)
def test_what_is_not_of_their_form_is_revised(form: str, role: str, reply: str) -> None:
    trajectory = run("sg_fsm1", Script(**{role: [reply]}), terminator=form)
    assert trajectory.stop_reason == "withdrawn"
    mended = run("sg_fsm1", Script(**{role: [reply], "revise": list(IDEAL[role])}), terminator=form, iterations=9)
    assert mended.attempts[-1].next_state == "q5"


def test_each_form_has_its_prompts_and_what_it_asks_for_fits_their_schemas() -> None:
    digests = set()
    for form in (None, *sg_fsm.DECISIONS):
        options = sg_fsm.SgFsmOptions(terminator=form)
        digests.add(prompts_digest(METHODS["sg_fsm2"], options))
        script = Script()
        run("sg_fsm2", script, terminator=form)
        schemas = {p.role: p.schema for p in map(prompts.load, METHODS["sg_fsm2"].prompts_of(options))}  # type: ignore[attr-defined]
        assert set(script.asked) <= set(schemas)
        for role, (request, *_) in script.asked.items():
            jsonschema.validate(json.loads(form_of(request)), json.loads(schemas[role].text))
    assert len(digests) == 3
    assert option_values(sg_fsm.SgFsmOptions()) == option_values(MachineOptions())


@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"revisions": -1}, {"redo": -1}])
def test_options_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="iterations has to be 1 or more"):
        MachineOptions(**wrong)


# ----------------------------------------------------------------------------------------- driver


def test_an_edge_that_is_not_declared_is_a_fault_of_ours() -> None:
    def away(memory: int, _: Reading) -> Move[int]:
        return Move("b" if memory else "end", memory)

    a, b = State("a", frozenset(("end",)), away), State("b", frozenset(("a",)), away)
    machine = Machine({"a": a, "b": b}, {"end": "answered"}, lambda _: 1, lambda _: "x")
    assert asyncio.run(drive(machine, 0, {}, "q", "m")).answer == "x"
    with pytest.raises(MachineError, match=r"a has no edge to b, only to \['end'\]"):
        asyncio.run(drive(machine, 1, {}, "q", "m"))


def test_a_machine_that_leads_nowhere_or_has_no_end_is_a_fault_of_ours() -> None:
    def stays(memory: int, _: Reading) -> Move[int]:
        return Move("a", memory)

    with pytest.raises(MachineError, match="leads to nowhere"):
        Machine({"a": State("a", frozenset(("b",)), stays)}, {}, lambda _: 1, lambda _: "")
    machine = Machine({"a": State("a", frozenset("a"), stays)}, {}, lambda _: 1, lambda _: "")
    with pytest.raises(MachineError, match="no end after"):
        asyncio.run(drive(machine, 1, {}, "q", "m"))


# ------------------------------------------------------------------------------------------ guards

CHAIN = {"decompose": [compound(), SIMPLE], "search": [find(), find(2, "Oru")]}
GUARDED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "q0 q2 g2 q4 q0 q2 g2 q5": ("q5", {}, {}),
    "q0 q2 g2 q4 g4 q5": ("q5", {"terminate": [stop()]}, {}),
    "q0 q2 g2 q2 g2 q4 g4 q5": (
        "q5",
        {"terminate": [stop()], "verify": [verdict("Unsupported"), verdict("Correct")]},
        {},
    ),
    "q0 q2 g2 q0 q2 g2 q5": ("q5", {"verify": [verdict("Off-topic"), verdict("Correct")]}, {}),
    "q0 q2 g2 q5": ("q5", {"verify": [verdict("Overthinking")]}, {}),
    "q0 q2 g2 q6 end": ("end", {"verify": [verdict("Logical Fallacy")]}, {}),
    "q0 q2 g2 q4 g4 q6 end": (
        "end",
        {"terminate": [stop()], "verify": [verdict("Correct"), verdict("Wrong Conclusion")]},
        {},
    ),
    "q0 q2 g2 q4 g4 q6 q6r q6r q7": (
        "q7",
        {"terminate": [stop()], "verify": [verdict("Correct"), BAD], "summarize": [BAD]},
        {},
    ),
}


def test_every_edge_of_the_guarded_machine_is_gone_and_counted() -> None:
    def guarded(way: str) -> str:
        return way.replace("q2 q4", "q2 g2 q4").replace("q2 q5", "q2 g2 q5").replace(
            "q3 q4", "q3 g2 q4").replace("q3 q5", "q3 g2 q5").replace(
            "q4 q5", "q4 g4 q5").replace("q4r q5", "q4r g4 q5")  # fmt: skip

    first = {guarded(way): told for way, told in SCRIPTS.items()}
    summed = {
        way.replace("q2 q5 q6", "q2 g2 q6"): (
            end, {**said, "verify": [verdict("Wrong Conclusion")]}, options,
        )
        for way, (end, said, options) in SUMMED_UP.items() if "q4" not in way
    }  # fmt: skip
    endless = run("sg_fsm_safe", Script(decompose=[compound()], terminate=[go_on()]))
    found = [gone("sg_fsm_safe", scripts) for scripts in (first, summed, GUARDED)]
    together = [one for several in found for one in several] + [endless]
    assert set(transitions(together)) == edges(sg_fsm_safe.MACHINE)
    ends = {one.attempts[-1].next_state for one in together}
    assert ends == set(sg_fsm_safe.MACHINE.ends)


def test_every_label_has_its_edge() -> None:
    assert {*sg_fsm_safe.GUARDED, CORRECT} == set(labels(incomplete_evidence=True))


@pytest.mark.parametrize("label", sorted(sg_fsm_safe.GUARDED))
def test_a_verdict_leads_where_it_should(label: str) -> None:
    said = verdict(label, **({"query": "Oru"} if label == "Missing Evidence" else {}))
    found = run("sg_fsm_safe", Script(verify=[said, verdict("Correct")]), search=lambda _: ())
    assert found.attempts[2].next_state == sg_fsm_safe.GUARDED[label]
    assert statistics([found]).error_types == {label: 1}


def test_a_find_is_judged_as_a_step() -> None:
    script = Script(terminate=[go_on(), stop()], decompose=[compound()])
    found = run("sg_fsm_safe", script)
    assert script.said("verify", 0).endswith(
        '“Who directed Dune Rain?” is Ors Velt. (Attribution)"\n\nJudge the current step.'
    )
    assert 'Step 3: ####ANSWER: Oru (Final Answer)"' in script.said("verify")
    assert [step.kind for step in found.steps] == ["Attribution", "Attribution", "Final Answer"]
    judged = found.attempts[2]
    assert judged.feedback is not None
    assert set(judged.usage) == {"verifier"}


def test_what_was_at_fault_is_shown() -> None:
    again = Script(verify=[verdict("Contradictory"), verdict("Correct")])
    run("sg_fsm_safe", again)
    told = again.said("search", 1)
    assert '"Who directed Dune Rain? Ors Velt (Passage 1)"' in told
    assert 'Fault: "Contradictory"' in told
    anew = Script(verify=[verdict("Redundancy"), verdict("Correct")])
    run("sg_fsm_safe", anew)
    assert '"Who directed Dune Rain?"\nFault: "Redundancy"' in anew.said("decompose", 1)
    assert "Redundancy" not in anew.said("search", 1)


def test_a_find_that_keeps_failing_passes_by_safes_rule_or_another_is_asked_for() -> None:
    script = Script(verify=[verdict("Unsupported")], terminate=[stop()])
    found = run("sg_fsm_safe", script, max_retries=1)
    assert path(found) == "q0 q2 g2 q2 g2 q4 g4 q6 end"
    dropped = run("sg_fsm_safe", script, max_retries=0, on_exhausted="drop", iterations=2)
    assert path(dropped) == "q0 q2 g2 q0 q2 g2 q0 q7"


def test_first_questions_that_keep_failing_pass_by_the_same_rule() -> None:
    """None is asked for by a request that was made before, which a cache would answer alike."""
    script = Script(verify=[verdict("Redundancy")], decompose=[compound()], terminate=[stop()])
    found = run("sg_fsm_safe", script, max_retries=1)
    assert path(found) == "q0 q2 g2 q0 q2 g2 q4 g4 q6 end"
    other = Script(verify=[verdict("Redundancy")], decompose=[compound()], terminate=[stop()])
    dropped = run("sg_fsm_safe", other, max_retries=1, on_exhausted="drop", iterations=4)
    assert (dropped.stop_reason, dropped.answer) == ("withdrawn", "")
    asked = [request.messages for request in other.asked["decompose"]]
    assert len(set(asked)) == len(asked) == 4


@pytest.mark.parametrize(
    "said", [BAD, "", '{"error_type": "Correct?"}', f"{verdict('Correct')} {verdict('Off-topic')}"]
)
def test_a_verdict_that_cannot_be_read_never_passes(said: str) -> None:
    found = run("sg_fsm_safe", Script(verify=[said]))
    assert (found.stop_reason, found.answer) == ("withdrawn", "")
    taken = transitions([found])
    assert not {"g2 → q4", "g2 → q5", "g4 → q5"} & set(taken)
    assert statistics([found]).unread == taken["g2 → q2"] + taken["g2 → q0"]
    last = run("sg_fsm_safe", Script(verify=[verdict("Correct"), said], terminate=[stop()]))
    assert path(last) == "q0 q2 g2 q4 g4 q6 end"


def test_missing_evidence_is_searched_for() -> None:
    page = Passage("Oru", ("Oru is a town.",))
    missing = verdict("Missing Evidence", query="Oru")
    script = Script(verify=[missing, verdict("Correct")], terminate=[stop()])
    found = run("sg_fsm_safe", script, search=lambda query: (page, ASKED.passages[0]))
    assert found.attempts[2].retrieved == (page,)
    assert 'Passage 4 ("Oru")' in script.said("search")
    in_vain = Script(verify=[missing, verdict("Correct")], terminate=[stop()])
    run("sg_fsm_safe", in_vain, search=lambda query: ())
    assert "brought nothing new" in in_vain.said("search")


def test_what_no_step_can_say_is_no_find() -> None:
    odd = find(1, "x (Attribution)\nStep 2: y")
    assert run("sg_fsm_safe", Script(search=[odd])).stop_reason == "withdrawn"
    assert run("sg_fsm_safe", Script(search=[odd], revise=[find()])).stop_reason == "answered"


def test_requests_are_greedy_unless_they_are_to_be_sampled() -> None:
    def temperatures(**options: Any) -> set[float]:
        script = Script()
        run("sg_fsm1", script, **options)
        asked: list[Request] = [r for several in script.asked.values() for r in several]
        return {request.sampling.temperature for request in asked}

    assert (temperatures(), temperatures(sampling="paper")) == ({0.0}, {0.8})
