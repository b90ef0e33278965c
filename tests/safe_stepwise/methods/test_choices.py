"""The choices between the papers' way and ours, each told by the requests that it makes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from builders.steps.model import Target, injection_request
from builders.synthetic import generate, parse_spec
from builders.verified.teachers.llm import extraction_request, gleaning_request, path_request
from safe_stepwise import prompts
from safe_stepwise.engines.base import Allowance, Request, request_key
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.feedback import format_feedback
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.methods.base import option_values, published_values
from safe_stepwise.methods.limits import DEFAULT, Limits, retries_of
from safe_stepwise.methods.loop import run_question
from safe_stepwise.methods.running import statistics
from safe_stepwise.metric.judge import JudgeCase, judge_request
from safe_stepwise.records import Feedback, Step, Trajectory
from tests.safe_stepwise.methods.test_loop import (
    ASKED,
    BAD,
    FOUR,
    GOOD,
    IDEAL,
    ONE,
    THREE,
    TWO,
    Script,
    run,
    script,
    texts,
)

CLOSE = Feedback("Correct", "All is there.", "Submit it as ####ANSWER: <answer>.")
EARLY = Feedback("Overthinking", "It is settled.", "Submit it as ####ANSWER: <answer>.")
MORE = Feedback("Wrong Conclusion", "Nothing says so.", "Derive it first.")
FINAL = "There is no room for another"


def keys(asked: Sequence[Request]) -> str:
    """One digest of what was sent, scenes aside."""
    engine = MockEngine(lambda _: "")
    sent = [request_key(engine, replace(request, scene=None)) for request in asked]
    return hashlib.sha256("".join(sent).encode()).hexdigest()[:16]


def run_with(generator: Client, verifier: Client) -> Trajectory:
    return asyncio.run(run_question(ASKED, generator, verifier))


def tried(*limits: Limits) -> list[tuple[Script, Script]]:
    """A run under each, with two rejected tries at the second step."""
    found = []
    for one in limits:
        writer = script(ONE, TWO, TWO, TWO, THREE, FOUR)
        judge = script(GOOD, BAD, replace(BAD, guidance="Once more."), GOOD, CLOSE, GOOD)
        run(writer, judge, one)
        found.append((writer, judge))
    return found


def test_by_default_every_request_is_as_it_was() -> None:
    """A prompt said otherwise changes a literal; a choice that nobody makes never does."""
    ((writer, judge),) = tried(DEFAULT)
    assert keys(writer.asked) == "0e4a39418286b0d1"
    assert keys(judge.asked) == "97e3bcdcfea2e939"
    case = JudgeCase("the Vel", ("Vel",), "Where is Oru?")
    assert keys([judge_request(case)]) == "fd622ce9d62c1661"
    question, _ = next(iter(generate(parse_spec("rows=4,seed=1,noise=0"), split="validation")))
    gold = question.gold[0][0]
    read = [extraction_request(question, gold), gleaning_request(question, gold, ())]
    assert keys([*read, path_request(question, KnowledgeGraph())]) == "77cb6f7c8215e1b9"
    steps = [
        Step(1, "According to Passage 1, Oru lies on the Vel.", "Attribution"),
        Step(2, "####ANSWER: Vel", "Final Answer"),
    ]
    target = Target("Contradictory", 1, "Attribution")
    assert keys([injection_request(question, steps, target)]) == "d098fa3af8a5e757"


def test_ours_is_not_told_and_theirs_is() -> None:
    assert set(option_values(DEFAULT)) == {"max_steps", "max_retries", "on_exhausted", "feedback"}
    theirs = published_values(Limits)
    assert set(theirs) == {"tries_total", "accepted_diagnosis", "last_rejected", "answer_when_told"}
    assert option_values(Limits(**theirs)) == option_values(DEFAULT) | theirs
    assert theirs.keys() < {field.name for field in fields(Limits)}


# ------------------------------------------------------------------------------------------ tries


@pytest.mark.parametrize("number", [1, 2, 3])
def test_n_counts_retries_or_tries(number: int) -> None:
    for total in (False, True):
        limits = Limits(1, number, tries_total=total)
        writer = script(ONE)
        found = run(writer, script(BAD), limits)
        tries = number + (not total)
        assert len(writer.asked) == tries + 1  # and one for the answer
        assert [attempt.accepted for attempt in found.attempts[:tries]] == [False] * (tries - 1) + [True]
        told = statistics([found], retries_of(option_values(limits)))
        assert told.exhausted == 1
        # Without an accepted try only the number of tries tells where a round ends.
        dropped = run(script(ONE), script(BAD), replace(limits, on_exhausted="drop"))
        assert statistics([dropped], retries_of(option_values(limits))).exhausted == 1


def test_no_try_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="max_retries counts tries: it has to be 1 or more"):
        Limits(max_retries=0, tries_total=True)
    assert Limits(max_retries=0).tries == 1


# ------------------------------------------------------------------------- what the generator sees


def test_the_diagnosis_of_a_step_that_passed_is_told_or_not() -> None:
    (ours, _), (theirs, _) = tried(DEFAULT, Limits(accepted_diagnosis=True))
    why = 'Why: "It is so."'
    assert not any(why in prompt for prompt in ours.prompts)
    assert [why in prompt for prompt in theirs.prompts] == [False, True, True, True, True, False]
    assert theirs.prompts[0] == ours.prompts[0]
    # What a form leaves out stays out; one tells it anyway.
    (guided, _), (also, _) = tried(Limits(feedback="guidance"), Limits(feedback="guidance", accepted_diagnosis=True))
    assert guided.prompts == also.prompts


def test_all_rejected_tries_are_shown_or_the_last() -> None:
    (ours, _), (theirs, _) = tried(DEFAULT, Limits(last_rejected=True))
    assert [prompt.count("\nRejected: ") for prompt in ours.prompts] == [0, 0, 1, 2, 0, 0]
    assert [prompt.count("\nRejected: ") for prompt in theirs.prompts] == [0, 0, 1, 1, 0, 0]
    assert "Read Passage 1 again." not in theirs.prompts[3]
    assert 'Now: "Once more."' in theirs.prompts[3]
    assert [n for n in range(6) if ours.prompts[n] != theirs.prompts[n]] == [3]


# ----------------------------------------------------------------------------- the answer when told


def test_once_the_guidance_asks_for_the_answer_so_does_the_prompt() -> None:
    (ours, first), (theirs, second) = tried(DEFAULT, Limits(answer_when_told=True))
    assert not any(FINAL in prompt for prompt in ours.prompts)
    assert [FINAL in prompt for prompt in theirs.prompts] == [False] * 5 + [True]
    assert [request.role for request in theirs.asked] == ["generate"] * 5 + ["final_answer"]
    assert theirs.prompts[:5] == ours.prompts[:5]
    # What it says is a try like any other, which the verifier judges.
    assert keys(first.asked) == keys(second.asked)


def test_a_bare_answer_counts_there_and_one_that_is_rejected_is_no_end() -> None:
    writer = script(ONE, "####ANSWER: Marn", TWO, "####ANSWER: Oru (Final Answer)")
    judge = script(EARLY, MORE, CLOSE, GOOD)
    limits = Limits(answer_when_told=True, on_exhausted="drop")
    found = run(writer, judge, limits)
    # The fault of the first try asks for the answer, too; that of the answer asks for a step.
    assert [FINAL in prompt for prompt in writer.prompts] == [False, True, False, True]
    assert (found.answer, found.stop_reason) == ("Oru", "answered")
    assert texts(found)[-1] == "####ANSWER: Oru"


def test_what_is_no_word_of_the_verifiers_asks_for_no_answer() -> None:
    writer, judge = script("I do not know.", ONE, *IDEAL[1:]), script(GOOD)
    run(writer, judge, Limits(answer_when_told=True))
    assert "####ANSWER: ... (Final Answer)" in writer.prompts[1]  # our own remark on the form
    assert not any(FINAL in prompt for prompt in writer.prompts)
    # A generator that is not told the guidance is not asked by it either.
    writer = script(*IDEAL)
    run(writer, script(GOOD, GOOD, CLOSE, GOOD), Limits(answer_when_told=True, feedback="diagnosis"))
    assert not any(FINAL in prompt for prompt in writer.prompts)


def test_a_reply_that_is_no_answer_is_asked_for_again() -> None:
    writer = script(*IDEAL[:3], "I do not know.", FOUR)
    found = run(writer, script(GOOD, GOOD, CLOSE, GOOD), Limits(answer_when_told=True))
    assert [FINAL in prompt for prompt in writer.prompts] == [False] * 3 + [True] * 2
    assert (found.answer, found.stop_reason) == ("Oru", "answered")


# --------------------------------------------------------------------------------------- examples


def shown(**roles: Any) -> Allowance:
    return Allowance.by_role(examples=prompts.examples(roles))


def test_examples_stand_behind_the_instructions_of_those_who_are_shown_them() -> None:
    sent: list[Request] = []

    def reply(request: Request) -> str:
        sent.append(request)
        return format_feedback(GOOD) if request.role == "verify" else FOUR

    asked = Client(MockEngine(reply), tries=1, allowance=shown(verify=True, judge=True))
    found = run_with(asked, asked)
    plain: list[Request] = []
    other = Client(MockEngine(lambda r: (plain.append(r), reply(r))[1]), tries=1)
    assert run_with(other, other).steps == found.steps
    written, judged = sent[:2]
    assert (written.role, judged.role) == ("generate", "verify")
    assert written == plain[0]
    text = prompts.examples(["verify"])["verify"]
    assert judged.messages[0].content == f"{plain[1].messages[0].content}\n\n{text}"
    assert judged.messages[1:] == plain[1].messages[1:]
    assert prompts.data_of(judged) == prompts.data_of(plain[1])  # no data: nothing is planted


def test_none_said_is_no_example() -> None:
    request = judge_request(JudgeCase("a", ("b",)))
    for allowance in (Allowance(), Allowance(examples=()), shown(path=True)):
        assert allowance.apply(request) is request
    assert shown(judge=True).apply(request) != request
    assert shown(extract=True).plain["examples"].startswith("extract ")
    assert " glean " in f" {shown(extract=True).plain['examples']}"
    assert not Allowance(examples=())
