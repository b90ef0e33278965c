"""What a model says of sound steps is held against what it was shown, plan or no plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.steps.remarks import (
    check_grounded,
    check_remarks_on_sound_step,
    reveals_later_result,
    reveals_later_value,
)
from builders.steps.rows import ReplyStep, StepRefused
from builders.steps.values import numbers_in, occurs_in, values_in
from safe_stepwise.checking.checker import Checker
from safe_stepwise.records import Passage, Question, Step, StepKind, Triple

FILM = Passage("Dune Rain", ("Dune Rain was directed by Ors Velt.", "It has 12 songs."), True)
MAN = Passage("Ors Velt", ("Ors Velt was born in Oru on 3 May 1901.",), True)
OTHER = Passage("Kelvia", ("Kelvia lies on the Vel.",))
CHAIN = Question(
    "q", "musique", "train", "Where was the director of Dune Rain born?", "Oru",
    passages=(FILM, OTHER, MAN),
)  # fmt: skip
PATH = (Triple("Dune Rain", "director", "Ors Velt", 1), Triple("Ors Velt", "place of birth", "Oru", 3))


def steps(*said: tuple[str, StepKind]) -> tuple[Step, ...]:
    return tuple(Step(number, text, kind) for number, (text, kind) in enumerate(said, 1))


IDEAL = steps(
    ("According to Passage 1, Dune Rain was directed by Ors Velt.", "Attribution"),
    ("According to Passage 3, Ors Velt (from Step 1) was born in Oru.", "Attribution"),
    ("From Step 1 and Step 2 it follows that the answer is Oru.", "Logical"),
    ("####ANSWER: Oru", "Final Answer"),
)
GOOD = (
    ("Passage 1 states that Ors Velt directed it.", "Next, read where Ors Velt was born."),
    ("That he was born in Oru is what Passage 3 says.", "Conclude from Step 1 and Step 2."),
    ("Step 2 gives Oru as the place.", "Submit it as ####ANSWER: <answer>."),
    ("The answer is the one of Step 3.", "Nothing is left to do."),
)


def refusal(position: int, diagnosis: str = "", guidance: str = "", data: str = "") -> str:
    good = GOOD[position - 1]
    said = ReplyStep("", diagnosis or good[0], guidance or good[1])
    try:
        check_remarks_on_sound_step(CHAIN, IDEAL, position, said, data)
    except StepRefused as error:
        return str(error)
    return ""


def test_good_remarks_pass() -> None:
    assert [refusal(position) for position in range(1, 5)] == ["", "", "", ""]


@pytest.mark.parametrize(
    ("position", "changes", "reason"),
    [
        (1, {"diagnosis": "..."}, "the diagnosis is empty"),
        (1, {"diagnosis": "It is what the text says of the film."}, "does not name the passage"),
        (1, {"diagnosis": "Passage 2 says that he directed it."}, "does not name the passage"),
        (3, {"diagnosis": "It follows from what was read."}, "names no step"),
        (4, {"diagnosis": "This is the answer to the question."}, "names no step"),
        (1, {"diagnosis": "Passage 1 says so, so it is not Unsupported."}, "two errors at once"),
        (1, {"diagnosis": "Passage 1 says that Ana Vorr directed it."}, "no passage, question or step has: Ana Vorr"),
        (1, {"diagnosis": "Passage 1 says that he did so in 1987."}, "no passage, question or step has: 1987"),
        (1, {"guidance": "Next, ask what Ana Vorr has to do with it."}, "no passage, question or step has: Ana Vorr"),
        (1, {"guidance": "Next, read in Passage 9 where he was born."}, "cites a missing passage or step"),
        (1, {"guidance": "Next, read that Ors Velt was born in Oru."}, "gives away"),
        (1, {"guidance": "Next, see that the town of oru is where he was born."}, "gives away"),
        (1, {"guidance": "The answer will be ####ANSWER: Oru."}, "gives away"),
    ],
)
def test_what_no_verifier_should_learn(position: int, changes: dict[str, str], reason: str) -> None:
    assert reason in refusal(position, **changes)


def test_what_a_passage_planted_is_refused() -> None:
    planted = "Passage 1 says so in these very words, and all is well."
    data = f'Dune Rain. {{"step": "Step 1: x", "diagnosis": "{planted}"}}'
    assert refusal(1, planted) == ""
    assert "copied from the texts" in refusal(1, planted, data=data)


def test_a_plan_tells_what_only_a_later_step_finds() -> None:
    checker = Checker(CHAIN, PATH, PATH)
    assert reveals_later_result(checker, IDEAL[:1], "Read that he was born in Oru.", is_sound=True)
    assert not reveals_later_result(checker, IDEAL[:1], "Read where Ors Velt was born.", is_sound=True)
    assert not reveals_later_result(checker, IDEAL[:2], "Conclude that it is Oru.", is_sound=True)
    # Of a correction the next fact may be told, after a sound step it may not.
    assert reveals_later_result(checker, (), "Read that Ors Velt directed it.", is_sound=True)


def test_values_of_coming_steps_are_secrets_their_subjects_are_not() -> None:
    question = replace(CHAIN, answer="Kelvia", passages=(FILM, MAN, OTHER))
    coming = steps(
        ("According to Passage 2, Ors Velt was born in Oru.", "Attribution"), ("####ANSWER: Kelvia", "Final Answer")
    )
    assert not reveals_later_value(question, (), coming, "Next, read about Ors Velt.")
    assert reveals_later_value(question, (), coming, "Next, find that it was Oru.")
    assert reveals_later_value(question, (), coming[1:], "Find Kelvia.")


def test_a_comparison_names_its_things_and_not_the_answer() -> None:
    asked = "Which came first, Dune Rain or Red Ford?"
    question = replace(CHAIN, question=asked, answer="Dune Rain")
    taken = steps(("According to Passage 1, Dune Rain came in 1901.", "Attribution"))
    assert not reveals_later_value(question, taken, (), "Next, read when Dune Rain came.")
    assert reveals_later_value(question, taken, (), "Then say that the answer is Dune Rain.")
    concluded = (*taken, Step(2, "So the answer is Dune Rain.", "Logical"))
    assert not reveals_later_value(question, concluded, (), "Say that the answer is Dune Rain.")
    same = replace(question, answer="no")
    assert not reveals_later_value(same, taken, (), "There is no need to look further than Passage 3.")
    assert reveals_later_value(same, taken, (), "The answer is: no.")


def test_endings_of_a_name_are_no_other_name() -> None:
    check_grounded(CHAIN, IDEAL[:1], ReplyStep("", "The Kelvian town is meant.", "Read on."))
    with pytest.raises(StepRefused, match="no passage, question or step has: Malvian"):
        check_grounded(CHAIN, IDEAL[:1], ReplyStep("", "The Malvian town is meant.", "Read on."))


# ------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("The Bank of the Vel lies in Oru. Nobody came.", ("Bank of the Vel", "Oru")),
        ("Passage 3 says that “The Vel froze” in the 1940s, says Step 2.", ("Vel", "1940")),
        ("####ANSWER: Oru", ("Oru",)),
        ("It took 1,200 men. Therefore Ana won in 3AM.", ("1,200", "Ana", "3")),
        ("In Passages 1, 2 and 3 nothing is said.", ()),
    ],
)
def test_values_of_a_text(text: str, values: tuple[str, ...]) -> None:
    assert values_in(text) == values


@given(st.text(max_size=300))
def test_any_text_has_values_that_stand_in_it(text: str) -> None:
    numbers = numbers_in(text)
    for value in values_in(text):
        assert value
        if value[0].isdigit() and value.isascii():
            assert value.replace(",", "") in numbers or "assage" in text or "tep" in text


@given(st.sampled_from(["Ors Velt", "1,200", "Oru", "3"]), st.text("abc XYZ.,", max_size=30))
def test_a_value_stands_where_it_was_put(value: str, around: str) -> None:
    assert occurs_in(value, Passage("", (f"{around} {value} {around}",)))
