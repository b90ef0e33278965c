"""What prompting methods are measured by, on trajectories that scripts make."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.prompting.measures import FAILURES, SupportedAnswer, measure_trajectory, summarize
from safe_stepwise.engines.base import EngineError
from safe_stepwise.methods.prompting import PromptingOptions
from safe_stepwise.methods.sg_fsm_safe import sub_answers
from tests.makers.prompting import outcome_of, question
from tests.safe_stepwise.methods.machines import BAD, SIMPLE, Script, compound, find, go_on, stop, verdict
from tests.safe_stepwise.methods.machines import summary as summed_up

RIGHT = {"answer": "Oru", "explain": "So it says."}
FACTS = {
    "supporting_facts": [[1, 1], [2, 0]],
    "evidences": [["Dune Rain", "director", "Ors Velt"], ["Ors Velt", "place of birth", "Oru"]],
}


def cited(passage: int, answer: str, sentences: list[int], evidence: list[str]) -> str:
    return find(passage, answer, sentences=sentences, evidence=evidence)


# --------------------------------------------------------------------------- strict and salvaged


@pytest.mark.parametrize(
    ("reply", "strict", "salvaged", "form", "failure"),
    [
        (json.dumps(RIGHT), 1, 1, "first", None),
        (f"Well: {json.dumps(RIGHT)}", 0, 1, "salvaged", "format"),
        ("I think.\nAnswer: Oru", 0, 1, "salvaged", "format"),
        ("I cannot tell", 0, 0, "never", "format"),
        ("I think.\nAnswer: Kel", 0, 0, "salvaged", "untold"),
        (json.dumps({**RIGHT, "answer": "Kel"}), 0, 0, "first", "untold"),
    ],
)
def test_what_cannot_be_read_is_wrong_and_salvaged_where_it_can_be(
    reply: str, strict: float, salvaged: float, form: str, failure: str | None
) -> None:
    one = outcome_of("direct", Script(direct=[reply]))
    assert (one.exact_match, one.measures["salvaged"]["exact_match"]) == (strict, salvaged)
    assert {form: 1} == {name: count for name, count in one.measures["format"].items() if count}
    assert one.measures.get("failure") == failure


def test_form_is_counted_by_what_was_asked_for_not_by_reply() -> None:
    # q0 at once; q2 after one revision; q4 never.
    one = outcome_of("sg_fsm1", Script(search=[BAD], revise=[find(), BAD], terminate=[BAD]))
    assert one.measures["format"] == {"first": 1, "revised": 1, "salvaged": 0, "never": 1}
    assert one.trajectory.stop_reason == "withdrawn"
    assert one.measures["failure"] == "format"
    whole = summarize([one, outcome_of("sg_fsm1", Script())])
    assert whole
    assert whole["format"]["replies"] == 3 + 5
    assert whole["format"]["shares"]["first"] == (1 + 5) / 8
    assert whole["strict"]["exact_match"] == 0.5


def test_a_vote_salvages_all_samples() -> None:
    loose, other = "So.\nAnswer: Oru", json.dumps({**RIGHT, "answer": "Kel"})
    one = outcome_of("cot", Script(cot=[loose, other, loose]), samples=3)
    assert (one.trajectory.answer, one.exact_match) == ("Kel", 0)
    assert one.measures["salvaged"]["exact_match"] == 1
    assert one.measures["failure"] == "format"


# ------------------------------------------------------------------- before and after the summary


TWICE = [compound(), compound("Where was Ors Velt born?")]  # so that the Terminator has the last word


@pytest.mark.parametrize(
    ("replies", "documents", "move"),
    [
        ({}, "right_documents", "right_to_right"),
        ({"summarize": [summed_up("Kel")]}, "right_documents", "right_to_wrong"),
        ({"decompose": TWICE, "terminate": [go_on(), stop("Kel")]}, "right_documents", "wrong_to_right"),
        (
            {"decompose": TWICE, "terminate": [go_on(), stop(None)]},
            "right_documents",
            "right_to_right",
        ),  # the last find
        ({"decompose": [SIMPLE], "search": [find(2, "Oru")]}, "wrong_documents", "right_to_right"),
        ({"search": [find(), find(3, "Kel")], "summarize": [summed_up("Kel")]}, "wrong_documents", "wrong_to_wrong"),
        ({"summarize": [BAD]}, "right_documents", "right_to_wrong"),  # withdrawn
    ],
)
def test_a_summary_is_compared_with_the_answer_before(replies: Any, documents: str, move: str) -> None:
    measured = summarize([outcome_of("sg_fsm2", Script(**replies)), outcome_of("sg_fsm2", Script(search=[BAD]))])
    assert measured
    counts = {(kind, name): n for kind, moves in measured["summary"].items() for name, n in moves.items() if n}
    assert counts == {(documents, move): 1}  # the second question never came to a summary
    assert "summary" not in outcome_of("sg_fsm1", Script()).measures


def test_other_methods_have_none() -> None:
    one = outcome_of("direct", Script(direct=[json.dumps(RIGHT)]))
    assert measure_trajectory(question(), one.trajectory, object(), "musique") == {}
    assert summarize([]) is None


# ------------------------------------------------------------------------ facts, triples, joint


def test_facts_and_triples_of_one_reply() -> None:
    one = outcome_of("direct", Script(direct=[json.dumps(RIGHT | FACTS)]), evidence=True).measures
    for part in ("supporting_facts", "evidence", "joint"):
        assert one[part] == {"exact_match": 1, "precision": 1, "recall": 1, "f1": 1}
    less = RIGHT | FACTS | {"answer": "Oru town", "supporting_facts": [[1, 1], [3, 0]]}
    found = outcome_of("direct", Script(direct=[json.dumps(less)]), evidence=True).measures
    assert found["supporting_facts"]["f1"] == 0.5
    # Precisions 1/2 · 1/2 · 1, recalls 1 · 1/2 · 1.
    assert found["joint"] == {
        "exact_match": 0, "precision": 1 / 4, "recall": 1 / 2, "f1": pytest.approx(1 / 3),
    }  # fmt: skip


def test_each_benchmark_has_what_it_annotates() -> None:
    script = {"direct": [json.dumps(RIGHT | FACTS)]}
    hotpot = outcome_of("direct", Script(**script), question("hotpotqa"), evidence=True).measures
    assert "evidence" not in hotpot
    assert hotpot["joint"]["f1"] == 1
    musique = outcome_of("direct", Script(**script), question("musique"), evidence=True).measures
    assert musique["supporting_passages"]["f1"] == 1
    assert not {"supporting_facts", "evidence", "joint"} & musique.keys()
    plain = outcome_of("direct", Script(direct=[json.dumps(RIGHT)]), question("musique")).measures
    assert not {"supporting_facts", "supporting_passages", "joint"} & plain.keys()


def searching() -> list[str]:
    first, second = (list(t) for t in FACTS["evidences"])
    return [cited(1, "Ors Velt", [1], first), cited(2, "Oru", [0], second)]


def test_the_first_stage_rests_on_its_finds_and_the_second_on_its_summary() -> None:
    first = outcome_of("sg_fsm1", Script(search=searching()), evidence=True)
    assert first.measures["joint"]["f1"] == 1
    told = RIGHT | FACTS | {"supporting_facts": [[1, 1]], "answer": "Oru"}
    second = outcome_of("sg_fsm2", Script(search=searching(), summarize=[json.dumps(told)]), evidence=True)
    assert second.measures["supporting_facts"] == {
        "exact_match": 0, "precision": 1, "recall": 1 / 2, "f1": pytest.approx(2 / 3),
    }  # fmt: skip


def test_react_says_it_when_it_finishes() -> None:
    done = f"Thought: it is said.\nAction: Finish[{json.dumps(RIGHT | FACTS)}]"
    turns = Script(react=["Thought: look.\nAction: Search[Dune Rain]", done])
    one = outcome_of("react", turns, evidence=True)
    assert one.exact_match == 1
    assert one.measures["joint"]["f1"] == 1
    lost = outcome_of("react", Script(react=["Action: Search[Kel]"]), evidence=True, max_steps=2)
    assert lost.trajectory.stop_reason == "unfinished"
    assert lost.measures["failure"] == "unanswered"
    unread = outcome_of("react", Script(react=["Well."]), evidence=True, max_steps=2)
    assert unread.measures["failure"] == "format"


def test_what_is_withdrawn_rests_on_nothing() -> None:
    endless = Script(search=searching()[:1], decompose=[compound()], terminate=[go_on()])
    one = outcome_of("sg_fsm1", endless, evidence=True)
    assert one.trajectory.stop_reason == "withdrawn"
    assert one.measures["supporting_facts"]["recall"] == 0
    # Six finds, all right; but no answer went lost on the way from them: there is none.
    assert one.measures["failure"] == "unanswered"
    assert SupportedAnswer.from_trajectory(question(), one.trajectory, True).facts == ()
    assert len(SupportedAnswer.from_trajectory(question(), one.trajectory, True).sub_answers) == 6


# -------------------------------------------------------------------------------------- on the way


@pytest.mark.parametrize("benchmark", ["2wikimultihopqa", "musique"])
def test_sub_answers_count_against_the_benchmarks_own(benchmark: str) -> None:
    asked = question(benchmark)
    whole = outcome_of("sg_fsm1", Script(), asked).measures["sub_answers"]
    assert whole == {"gold": 2, "found": 2, "right": 2, "gold_passages": 2, "located": 2}
    script = Script(search=[find(3, "Kel"), find(2, "the Oru")])
    half = outcome_of("sg_fsm1", script, asked)
    assert half.measures["sub_answers"] == {
        "gold": 2, "found": 2, "right": 1, "gold_passages": 2, "located": 1,
    }  # fmt: skip
    found = summarize([outcome_of("sg_fsm1", Script(), asked), half])
    assert found
    assert found["sub_answers"]["recall"] == 3 / 4


def test_finds_that_a_verdict_took_back_do_not_count() -> None:
    script = Script(
        search=[find(3, "Kel"), find(), find(2, "Oru")], verify=[verdict("Contradictory"), verdict("Correct")]
    )
    one = outcome_of("sg_fsm_safe", script)
    assert [f.answer for f in sub_answers(one.trajectory.attempts)] == ["Ors Velt", "Oru"]
    assert one.measures["sub_answers"]["right"] == 2
    unread = Script(search=[find(3, "Kel"), find(), find(2, "Oru")], verify=[BAD, verdict("Correct")])
    kept = outcome_of("sg_fsm_safe", unread)
    assert [f.answer for f in sub_answers(kept.trajectory.attempts)] == ["Ors Velt", "Oru"]
    enough = Script(
        decompose=[compound()],
        search=[find(), find(3, "Kel")],
        terminate=[go_on()],
        verify=[verdict("Correct"), verdict("Overthinking")],
    )
    stopped = outcome_of("sg_fsm_safe", enough)
    assert [f.answer for f in sub_answers(stopped.trajectory.attempts)] == ["Ors Velt"]
    # The steps that the method itself kept say the same.
    for found in (one, kept, stopped):
        steps = [s.text for s in found.trajectory.steps if s.kind == "Attribution"]
        here = sub_answers(found.trajectory.attempts)
        assert [f.answer in step for f, step in zip(here, steps, strict=True)] == [True] * len(here)


def test_sub_questions_are_those_that_were_asked() -> None:
    found = sub_answers(outcome_of("sg_fsm1", Script()).trajectory.attempts)
    assert [f.question for f in found] == ["Who directed Dune Rain?", "Where was Ors Velt born?"]


def test_derivations_count_as_far_as_finds_speak_of_them() -> None:
    one = [("Dune Rain", 1, ("Dune Rain", "directed by", "Ors Velt"))]
    both = [*one, ("Ors Velt", 0, ("Ors Velt", "born in", "Oru"))]
    asked = question("hotpotqa")
    half = outcome_of("sg_fsm1", Script(decompose=[SIMPLE], search=[find()]), asked)

    def covered(trajectory: Any) -> Any:
        found = measure_trajectory(asked, trajectory, PromptingOptions(), "hotpotqa", [both])
        return found.get("derivations")

    whole = outcome_of("sg_fsm1", Script(), asked)
    assert covered(whole.trajectory) == {"passages": 1, "triples": 1}
    assert covered(half.trajectory) == {"passages": 0.5, "triples": 0.5}
    direct = outcome_of("direct", Script(direct=[json.dumps(RIGHT)]), asked)
    assert covered(direct.trajectory) is None


# ---------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ({}, None),
        # The first find is wrong, and so is the answer.
        ({"search": [find(3, "Kel"), find(3, "Kel")], "terminate": [go_on(), stop("Kel")]},
         "propagation"),
        # All finds are right, and the Terminator says something else; or stops after the first.
        ({"decompose": [compound()], "terminate": [go_on(), stop("Ors Velt")]}, "lost"),
        ({"decompose": [compound()], "terminate": [stop(None)]}, "lost"),
        # No answer: with a wrong find, with right ones alone.
        ({"search": [find(3, "Kel")], "decompose": [compound()], "terminate": [go_on()]},
         "propagation"),
        ({"decompose": [compound()], "terminate": [go_on()]}, "unanswered"),
        # The answer is right, and its passage is not.
        ({"search": [find(), find(3, "Oru")]}, "hallucination"),
        ({"decompose": [BAD], "revise": [BAD]}, "format"),
    ],
)  # fmt: skip
def test_the_kinds_of_failure(script: dict[str, Any], kind: str | None) -> None:
    for benchmark in ("2wikimultihopqa", "musique", "hotpotqa"):
        one = outcome_of("sg_fsm1", Script(**script), question(benchmark))
        assert one.measures.get("failure") == kind, benchmark
        whole = summarize([one])
        assert whole
        counted = {name: whole["failures"][name]["questions"] for name in FAILURES}
        assert counted == {name: int(name == kind) for name in FAILURES}


def test_a_wrong_answer_without_a_find_is_untold() -> None:
    cites_none = RIGHT | {"answer": "Kel", "supporting_facts": [], "evidences": []}
    one = outcome_of("direct", Script(direct=[json.dumps(cites_none)]), evidence=True)
    assert one.measures["failure"] == "untold"
    cites = outcome_of("direct", Script(direct=[json.dumps(RIGHT | FACTS | {"answer": "Kel"})]), evidence=True)
    assert cites.measures["failure"] == "lost"


def test_a_request_that_failed_is_no_kind_of_failure_and_all_shares_add_up() -> None:
    one = outcome_of("sg_fsm1", Script(search=[EngineError("down")]))
    assert one.trajectory.stop_reason == "failed"
    assert "failure" not in one.measures
    endless = Script(decompose=[compound()], terminate=[go_on()])
    guessed = Script(search=[find(), find(3, "Oru")])
    found = summarize([one, *(outcome_of("sg_fsm1", s) for s in (endless, guessed, Script()))])
    assert found
    shares = {name: part["rate"] for name, part in found["failures"].items() if part["rate"]}
    assert shares == {"failed": 0.25, "unanswered": 0.25, "hallucination": 0.25}
    wrong = sum(shares.values()) - shares["hallucination"]
    assert wrong == 1 - found["strict"]["exact_match"]


def test_a_summary_repairs_what_was_found_wrong() -> None:
    script = Script(search=[find(1, "Kel")], decompose=[SIMPLE], summarize=[summed_up("Oru")])
    one = outcome_of("sg_fsm2", script)
    assert one.exact_match == 1
    assert one.measures["failure"] == "hallucination"  # passage 2 was never read
