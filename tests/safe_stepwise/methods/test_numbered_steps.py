"""Few-shot CoT and CoT-Plan: what is asked with and without passages, and which replies can be read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.faithfulness.responses import response_of
from safe_stepwise import prompts
from safe_stepwise.methods.numbered_steps import NumberedOptions, read_numbered
from tests.makers.prompting import outcome_of
from tests.safe_stepwise.methods.test_one_shot import run

METHODS = ("few_shot_cot", "cot_plan")
GOOD = "HINT: director -> birthplace\n1. Ors Velt made Dune Rain.\n2. He was born in Oru.\nSo the answer is (Oru)."
STEPS = "Ors Velt made Dune Rain.\nHe was born in Oru."


@pytest.mark.parametrize(
    ("reply", "form", "answer", "steps"),
    [
        (GOOD, "strict", "Oru", STEPS),
        ("Let us see.\n**1.** A is B.\n\n**So the answer is (B).**", "strict", "B", "A is B."),
        ("Step 1: A is B.\n- 2) B is C. Thus, the answer is (C).", "strict", "C", "A is B.\nB is C."),
        ("1. A is B.\n2. So the answer is (B).", "strict", "B", "A is B."),
        ("1. A is B.\nThe answer to the question is: Oru (town).", "strict", "Oru (town)", "A is B."),
        ("1. A is B.\nSo the answer is (Oru (town)).", "strict", "Oru (town)", "A is B."),
        (f"{GOOD}\nQuestion: Who else?\n1. No one.\nSo the answer is (Bo).", "strict", "Oru", STEPS),
        ("So the answer is (Oru).", "salvaged", "Oru", ""),
        ("Ors Velt was born in Oru. So the answer is (Oru).", "salvaged", "Oru", ""),
        ("1. A is B.\n2. B is C.", "unreadable", "", ""),
        ("1. A is B.\nSo the answer is ().", "unreadable", "", ""),
        ('1. Passage 1 says: "So the answer is (Kel)".', "unreadable", "", ""),
        ("", "unreadable", "", ""),
    ],
)
def test_readings(reply: str, form: str, answer: str, steps: str) -> None:
    reading = read_numbered(reply)
    assert reading.form == form
    assert (reading.value.get("answer", ""), reading.value.get("explain", "")) == (answer, steps)


@pytest.mark.parametrize(
    ("conclusion", "answer"),
    [
        ("So the answer is (Tol). This is because of step 1.", "Tol"),
        ("So the answer is (Tol), as step 1 says", "Tol"),
        ("So the answer is (Tol) (see step 1)", "Tol"),
        ("So the answer is (Oru) and (Vel).", "Oru, Vel"),
        ("So the answer is (Tol). Actually, the answer is (Vel).", "Vel"),
        ("So the answer is (Tol).\nWait, no. So the answer is (Vel).", "Vel"),
        ("The answer isn't clear.\nSo the answer is (Tol).", "Tol"),
        ("So the answer is Tol. This is because of step 1.", "Tol"),
        ("So the answer is yes, because both are films.", "yes"),
        ("So the answer is (B) Oru", "Oru"),
        ("So the answer is (500) Days of Oru.", "(500) Days of Oru"),
        ("So the answer is J. R. R. Velt.", "J. R. R. Velt"),
        ("So the answer is:\n(Tol)", "Tol"),
        ("So the answer is （托尔）。", "托尔"),
        ("So the answer is ($\\boxed{\\text{Tol}}$).", "Tol"),
        ("3. B is C, so the answer is (Tol)", "Tol"),
        *((f"{words} Tol", "Tol") for words in (
            "Answer:", "**Answer:**", "The final answer:", "Therefore, the correct answer is", "the answer would be",
            "So answer is", "Conclusion: So the answer is", "A: So the answer is", "<br>So the answer is",
        )),
    ],
)  # fmt: skip
def test_conclusions_of_models(conclusion: str, answer: str) -> None:
    reading = read_numbered(f"1. A met B.\n2. B met C.\n{conclusion}")
    assert (reading.form, reading.value["answer"]) == ("strict", answer)


@pytest.mark.parametrize("steps", [
    "### Step 1\nA met B.\n### Step 2\nB met C.", "1.A met B.\n2.B met C.", "Step 1 - A met B.\nStep 2 - B met C.",
    "[1] A met B.\n[2] B met C.", "1、A met B.\n2、B met C.", "HINT:\n1. met\n2. met\n\n1. A met B.\n2. B met C.",
    "1. A met\n   B.\n2. B met C.", "1. A met B.\n2. B met C.\n\nWe have all facts.",
])  # fmt: skip
def test_steps_of_models(steps: str) -> None:
    assert read_numbered(f"{steps}\nSo the answer is (C).").value == {"answer": "C", "explain": "A met B.\nB met C."}


def test_a_step_that_speaks_of_the_answer_is_no_conclusion() -> None:
    reading = read_numbered(
        "1. The answer is in Passage 2: Oru.\n2. The answer is not given.\nSo the answer is (Tol)."
    )
    assert reading.value["answer"] == "Tol"
    assert len(reading.value["explain"].split("\n")) == 2


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    reading = read_numbered(text)
    assert reading.is_unreadable is not bool(reading.value)
    json.dumps(reading.plain)


@given(st.lists(st.from_regex(r"[A-Z][a-z]{1,9} met [A-Z][a-z]{1,9}\.", fullmatch=True), min_size=1, max_size=12))
def test_what_is_written_in_the_form_is_read_back(steps: list[str]) -> None:
    lines = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    value = read_numbered("\n".join([*lines, "So the answer is (Oru, Vel)."])).value
    assert (value["answer"], value["explain"].split("\n")) == ("Oru, Vel", steps)


@pytest.mark.parametrize("name", METHODS)
def test_one_call_answers(name: str) -> None:
    trajectory, (request,) = run(name, GOOD)
    assert (trajectory.answer, trajectory.stop_reason) == ("Oru", "answered")
    assert (request.role, request.schema) == (name, None)
    system, user = request.messages
    assert "Passage 2" in user.content
    assert user.content.index("Passage 1") < user.content.index("Question:")
    assert ("HINT" in system.content) == ("HINT" in user.content) == (name == "cot_plan")
    assert run(name, "1. A is B.")[0].stop_reason == "unreadable"


@pytest.mark.parametrize("name", METHODS)
def test_without_passages_the_question_stands_alone(name: str) -> None:
    text = prompts.load(f"numbered/{name}").render_user(question="Who?", passages=())
    assert "assage" not in text
    assert 'Question: "Who?"' in text


def test_samples_vote_and_each_has_its_chain() -> None:
    replies = [GOOD, GOOD.replace("Oru", "Kel"), GOOD]
    response = response_of(outcome_of("few_shot_cot", lambda _: replies.pop(0), samples=3))
    assert (response.samples, response.chosen) == ((1, 2, 3), 0)
    assert [chain.answer for chain in response.chains] == ["Oru", "Kel", "Oru"]
    assert response.chains[0].steps == tuple(STEPS.split("\n"))


def test_a_reply_without_steps_has_no_chain() -> None:
    reply = "1. It is in Passage 2.\nSo the answer is (Oru)."
    assert response_of(outcome_of("few_shot_cot", lambda _: reply)).kind == "unstructured"
    assert response_of(outcome_of("few_shot_cot", lambda _: "So the answer is (Oru).")).chains == ()


def test_supporting_facts_are_refused() -> None:
    with pytest.raises(ValueError, match="leave out --evidence"):
        NumberedOptions(evidence=True)
