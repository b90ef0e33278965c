"""The step grammar: what is written can be read, what cannot be read says why."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from safe_stepwise.records import Step, StepKind
from safe_stepwise.steps import StepError, final_answer, format_step, parse_step
from safe_stepwise.taxonomy import STEP_KINDS

FACT = "According to Passage 2, Oru lies on the Vel."


def reason(text: str) -> str:
    with pytest.raises(StepError) as caught:
        parse_step(text)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    assert len(message) < 250
    return message


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Step(1, FACT, "Attribution"), f"Step 1: {FACT} (Attribution)"),
        (Step(12, "Oru is older.", "Logical"), "Step 12: Oru is older. (Logical)"),
        (Step(3, "####ANSWER: Oru", "Final Answer"), "Step 3: ####ANSWER: Oru (Final Answer)"),
    ],
)
def test_the_grammar(step: Step, text: str) -> None:
    assert format_step(step) == text
    assert parse_step(text) == step


@pytest.mark.parametrize(
    "text",
    [
        "The mayor (from Step 1) is Isk (born 1902).",
        "Isk wrote (Logical) Notes.",
        "From Step 1: Isk is mayor; from Step 2: Oru is a town.",
        'Passage 3 quotes a sign: "####ANSWER: Bob" and nothing else.',
        'Passage 3 quotes a sign:\n"\n####ANSWER: Bob\n"',
        'The sign reads "####ANSWER: Bob (Final Answer)" in Passage 3.',
        "Two lines\nof text\n\nand a gap.",
        "Step by step: one sees that Oru is old.",
        "Step",
        "(",
        "(Attribution",
        "Attribution)",
        "Żółw 河 🐢 \u2028 naïve",
        "Stepan: a man.",
    ],
)
@pytest.mark.parametrize("kind", ["Attribution", "Logical"])
def test_texts_that_survive(text: str, kind: StepKind) -> None:
    step = Step(2, text, kind)
    assert parse_step(format_step(step)) == step


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (f"  \n step 1 : {FACT}   ( attribution ) \n", Step(1, FACT, "Attribution")),
        (f"STEP 01:{FACT}(ATTRIBUTION).", Step(1, FACT, "Attribution")),
        (f"Step\t1:\n{FACT}\n(Attribution)", Step(1, FACT, "Attribution")),
        ("Step 4: ####answer:Oru (final-answer)", Step(4, "####ANSWER: Oru", "Final Answer")),
        ("Step 4: #### Answer :\n Oru (FinalAnswer)", Step(4, "####ANSWER: Oru", "Final Answer")),
        ("Step 4: ####ANSWER: Oru (town) (Final Answer)", Step(4, "####ANSWER: Oru (town)", "Final Answer")),
    ],
)
def test_what_else_is_read(text: str, step: Step) -> None:
    assert parse_step(text) == step


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (" \n\t\u2003", "empty"),
        (FACT, "does not open with 'Step K:'"),
        (f"Sure! Step 1: {FACT} (Attribution)", "does not open with 'Step K:'"),
        (f"Steps 1: {FACT} (Attribution)", "does not open with 'Step K:'"),
        (f"Step 1 {FACT} (Attribution)", "does not open with 'Step K:'"),
        (f"Step: {FACT} (Attribution)", "number is missing"),
        (f"Step two: {FACT} (Attribution)", "'two' is not written in digits"),
        (f"Step ٣: {FACT} (Attribution)", "not written in digits"),
        (f"Step ²: {FACT} (Attribution)", "not written in digits"),
        (f"Step 1.5: {FACT} (Attribution)", "not written in digits"),
        (f"Step -1: {FACT} (Attribution)", "not written in digits"),
        (f"Step 0: {FACT} (Attribution)", "not from 1 to 9999"),
        (f"Step 10000: {FACT} (Attribution)", "not from 1 to 9999"),
        (f"Step {'9' * 40}: {FACT} (Attribution)", "not from 1 to 9999"),
        (f"Step {'9' * 50_000}: {FACT} (Attribution)", "does not open with"),
        (f"Step 1: {FACT}", "does not end with one of (Attribution)"),
        (f"Step 1: {FACT} (Inference)", "does not end with one of"),
        (f"Step 1: {FACT} (Attrıbution)", "does not end with one of"),
        (f"Step 1: {FACT} (Attribution) I hope this helps", "does not end with one of"),
        ("Step 1: (Attribution)", "text is empty"),
        ("Step 1:(Logical)", "text is empty"),
        ("Step 1:", "does not end with"),
        (f"Step 1: {FACT} (Attribution) (Logical)", "two kinds"),
        (f"Step 1: {FACT} (Attribution)\nStep 2: {FACT} (Attribution)", "not atomic"),
        (f"Step 1: {FACT} (Attribution) Step 2: {FACT} (Attribution)", "not atomic"),
        (f"Step 1: {FACT} (Attribution). step two: {FACT} (Attribution)", "not atomic"),
        (f"Step 1: {FACT}\n  **Step 2:** {FACT} (Attribution)", "not atomic"),
        (f"Step 1: Step 2: {FACT} (Attribution)", "not atomic"),
        (f"Step 1: {FACT} (Attribution)\nNow I will compare. (Logical)", "not atomic"),
        (f"Step 1: {FACT} (Attribution)\nStep 2: cut off he", "not atomic"),
        ("Step 1: ####ANSWER: Oru (Logical)", "opens a step of kind Logical"),
        ("Step 1: #### answer: Oru (Attribution)", "opens a step of kind Attribution"),
        ("Step 1: Oru (Final Answer)", "'####ANSWER: <answer>' and nothing else"),
        ("Step 1: So it is ####ANSWER: Oru (Final Answer)", "and nothing else"),
        ("Step 1: ####ANSWER: (Final Answer)", "no answer"),
        ("Step 1: ####ANSWER: Oru ####ANSWER: Vel (Final Answer)", "twice"),
        ("Step 1: ####ANSWER: Oru\nas shown above (Final Answer)", "more than one line"),
        ("Step 1: ####ANSWER: Oru\u2028Vel (Final Answer)", "more than one line"),
    ],
)
def test_reasons(text: str, why: str) -> None:
    assert why in reason(text)


@pytest.mark.parametrize(
    "step",
    [
        Step(0, FACT, "Logical"),
        Step(10_000, FACT, "Logical"),
        Step(True, FACT, "Logical"),
        Step(1, "", "Logical"),
        Step(1, " \n", "Logical"),
        Step(1, " " + FACT, "Logical"),
        Step(1, FACT + "\n", "Logical"),
        Step(1, FACT + " (Attribution)", "Logical"),
        Step(1, FACT + " (logical).", "Logical"),
        Step(1, f"{FACT}\nStep 2: {FACT}", "Logical"),
        Step(1, "Step 2: Oru", "Logical"),
        Step(1, FACT + " (Logical)\nmore", "Logical"),
        Step(1, "####ANSWER: Oru", "Logical"),
        Step(1, "Oru", "Final Answer"),
        Step(1, "####ANSWER:Oru", "Final Answer"),
        Step(1, "####answer: Oru", "Final Answer"),
        Step(1, "####ANSWER: Oru\nVel", "Final Answer"),
        Step(1, FACT, "Inference"),  # type: ignore[arg-type]
        Step(1, FACT, "logical"),  # type: ignore[arg-type]
    ],
)
def test_a_step_that_is_not_valid_is_not_written(step: Step) -> None:
    with pytest.raises(StepError):
        format_step(step)


def test_final_answer() -> None:
    assert final_answer(parse_step("Step 3: ####ANSWER:  Oru (the town) (Final Answer)")) == ("Oru (the town)")
    with pytest.raises(StepError, match="of kind Logical"):
        final_answer(Step(1, 'It says "####ANSWER: Oru".', "Logical"))
    with pytest.raises(StepError, match="no answer"):
        final_answer(Step(1, "####ANSWER:", "Final Answer"))


# Letters of the grammar itself, far likelier to break it than random text.
PIECES = st.sampled_from(
    [
        *("Step ", "step 2:", ":", "1", "two", "(", ")", ".", "*", "####", "####ANSWER:", "Oru"),
        *("(Attribution)", "(logical)", "( Final answer )", "#### answer :", "ı", "ſ"),
        *(" ", "\n", "\r", "\t", "\u2028", "\x1c", "\x85"),
    ]
)
GRAMMAR_LIKE = st.lists(PIECES, max_size=12).map("".join)
TEXTS = st.one_of(st.text(), GRAMMAR_LIKE)


def written(step: Step) -> str | None:
    try:
        return format_step(step)
    except StepError:
        return None


@settings(deadline=None)
@given(st.integers(1, 9999), TEXTS.map(str.strip), st.sampled_from(STEP_KINDS))
def test_round_trip(number: int, text: str, kind: StepKind) -> None:
    for step in (Step(number, text, kind), Step(number, f"####ANSWER: {text}", "Final Answer")):
        line = written(step)
        if line is not None:
            assert parse_step(line) == step


ORDINARY = st.text(st.characters(codec="utf-8", exclude_characters="()#\n\r"), min_size=1)


@settings(deadline=None)
@given(st.integers(1, 9999), ORDINARY.map(str.strip).filter(bool), st.sampled_from(STEP_KINDS))
def test_ordinary_text_is_always_valid(number: int, text: str, kind: StepKind) -> None:
    if kind == "Final Answer":
        text = f"####ANSWER: {' '.join(text.split())}"
        if len(text.splitlines()) > 1:
            return
    elif text.lower().startswith("step"):
        return
    step = Step(number, text, kind)
    assert parse_step(format_step(step)) == step


@settings(deadline=None)
@given(TEXTS)
@example("Step 1: a (Logical)\x1c")
def test_arbitrary_text_parses_or_raises_a_step_error(text: str) -> None:
    for reply in (text, f"Step 1: {text}", f"Step 1: {text} (Logical)"):
        try:
            step = parse_step(reply)
        except StepError:
            continue
        assert parse_step(format_step(step)) == step


LONG = (
    *("\n", " ", "(", "( ", ")", "#", "####ANSWER:", "Step ", "Step 1", "1", "step:", "\n\t"),
    *("(Attribution) ", "(Logical)Step ", "(Final Answer", "\n*", "\u2003"),
)


@pytest.mark.parametrize("piece", LONG)
def test_long_replies_end(piece: str) -> None:
    # A quadratic search over 100 KB would run into the suite's timeout, not past an assertion.
    run = piece * (100_000 // len(piece))
    for reply in (run, f"Step 1: {run}", f"Step 1: {run} (Attribution)", f"Step {run}: a (Logical)"):
        with contextlib.suppress(StepError):
            parse_step(reply)


def test_a_long_step_is_kept_whole() -> None:
    step = Step(1, "Oru lies (they say) on the Vel.\n" * 3_000 + "So it is.", "Attribution")
    assert parse_step(format_step(step)) == step
