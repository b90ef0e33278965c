"""The evidence of a step, found by its own words: what it rests on, and the value that it gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.feedback import evidence_in, format_feedback, parse_feedback
from safe_stepwise.methods.quoting import with_evidence
from safe_stepwise.records import EVIDENCE_FIRST, Feedback, Passage, Step
from safe_stepwise.taxonomy import labels

PAGES = [
    Passage("The Salt Clock", ("The Salt Clock is a film.", "It was directed by Maro Quill.")),
    Passage("Maro Quill", ("Maro Quill was born in Tesk in 1931.",)),
]
BORN = "Passage 2: Maro Quill was born in Tesk in 1931. Maro Quill: Step 1."
ASKED = "Where was the director of The Salt Clock born?"
ONE = Step(1, "Here, Passage 1 says that Maro Quill directed The Salt Clock.", "Attribution")
TWO = Step(2, "With Step 1 done, Maro Quill is from Tesk (Passage 2).", "Attribution")


def said(step: Step, label: str, previous: tuple[Step, ...] = (), why: str = "") -> tuple[str, ...]:
    guidance, query = "Go on.", "q" if label == "Missing Evidence" else None
    feedback = with_evidence(Feedback(label, why, guidance, query), ASKED, PAGES, previous, step)
    found = evidence_in(feedback.diagnosis)
    assert found is not None
    assert (feedback.error_type, feedback.guidance) == (label, guidance)
    return tuple(found)


@pytest.mark.parametrize(
    ("text", "label", "why", "found"),
    [
        (TWO.text, "Correct", "", (f"{BORN} 1931: new. Tesk: new.", "Tesk", "same")),
        (
            "According to Passage 2, Maro Quill was born in Ardle.",
            "Contradictory",
            "",
            (f"{BORN} Tesk: new. 1931: new. Ardle: new.", "Ardle", "different"),
        ),
        (
            "By Passage 2, The Salt Clock was directed by Ilse Bram.",
            "Unsupported",
            "",
            (f"{BORN} Tesk: new. 1931: new. Ilse Bram: new.", "Ilse Bram", "absent"),
        ),
        (
            "The passages do not name the director.",
            "Information Miss",
            "Passage 1 says that Maro Quill directed it.",
            ("Passage 1: It was directed by Maro Quill. Maro Quill: Step 1.", "nothing", "different"),
        ),
        ("I will now look for the director.", "Inefficiency", "", ("nothing", "nothing", "absent")),
        ("Passage 9 says Tesk.", "Unsupported", "", ("nothing", "Tesk", "absent")),
    ],
)
def test_of_a_fact_the_sentence_that_is_cited(text: str, label: str, why: str, found: tuple[str, ...]) -> None:
    assert said(Step(2, text, "Attribution"), label, (ONE,), why) == found


def test_the_claim_is_what_the_step_brings_in() -> None:
    turned = "Passage 2 says that Tesk was the birthplace of Maro Quill."
    assert said(Step(2, turned, "Attribution"), "Correct", (ONE,)) == (
        *(f"{BORN} 1931: new. Tesk: new.", "Tesk", "same"),
    )


CAPITAL, DIRECTOR = "Oru's capital is Tesk.", "It was directed by Maro Quill."


@pytest.mark.parametrize(
    ("text", "previous", "evidence"),
    [
        ("Tesk is Oru's seat (Passage 2).", (), f"2: {CAPITAL} Tesk: new. Oru: new."),
        ("Tesk is Oru's seat (Passage 2).", (ONE, TWO), f"2: {CAPITAL} Tesk: Step 2. Oru: new."),
        ("Passage 1: Maro Quill made it.", (ONE,), f"1: {DIRECTOR} Maro Quill: Step 1."),
        ("Passage 1: Maro Quill made it.", (), f"1: {DIRECTOR} Maro Quill: new."),
    ],
)
def test_a_name_is_said_to_be_from_where_it_was_met_first(
    text: str, previous: tuple[Step, ...], evidence: str
) -> None:
    pages = [PAGES[0], Passage("Oru", (CAPITAL,))]
    step = Step(len(previous) + 1, text, "Attribution")
    feedback = with_evidence(Feedback("Correct", "", "Go on."), ASKED, pages, previous, step)
    found = evidence_in(feedback.diagnosis)
    assert found is not None
    assert found.evidence == f"Passage {evidence}"


def test_a_word_that_opens_a_sentence_takes_no_name_with_it() -> None:
    born = Step(2, "Passage 2 states: In Tesk, Maro Quill was born.", "Attribution")
    derived = Step(3, "By Step 2, it is Tesk.", "Logical")
    assert said(derived, "Correct", (ONE, born))[:2] == ("Step 2: Tesk.", "Tesk")


def test_of_a_derivation_what_its_steps_have_found() -> None:
    right = Step(3, "From Step 1 and Step 2, the director was born in Tesk.", "Logical")
    rests = "Step 1: Maro Quill. Step 2: Tesk."
    assert said(right, "Correct", (ONE, TWO)) == (rests, "Tesk", "same")
    wrong = Step(3, "From Step 1 and Step 2, it is Maro Quill's Ardle.", "Logical")
    assert said(wrong, "Logical Fallacy", (ONE, TWO)) == (rests, "Maro Quill's Ardle", "different")


def test_of_an_answer_what_the_last_step_has_found() -> None:
    answer = Step(3, "####ANSWER: Maro Quill", "Final Answer")
    assert said(answer, "Wrong Conclusion", (ONE, TWO)) == ("Step 2: Tesk.", "Maro Quill", "different")
    assert said(answer, "Wrong Conclusion") == ("nothing", "Maro Quill", "absent")


@given(
    st.text(min_size=1).map(str.strip).filter(bool),
    st.sampled_from(["Attribution", "Logical"]),
    st.sampled_from(labels(incomplete_evidence=True)),
)
def test_whatever_a_step_says_the_verdict_is_one(text: str, kind: str, label: str) -> None:
    step = Step(2, text, kind)  # type: ignore[arg-type]
    query = "q" if label == "Missing Evidence" else None
    feedback = with_evidence(Feedback(label, "d", "Go on.", query), ASKED, PAGES, [ONE], step)
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        written = format_feedback(feedback, EVIDENCE_FIRST)
        assert parse_feedback(written, incomplete_evidence=True) == feedback
