"""The step grammar: what is written can be read, what cannot be read says why."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from safe_stepwise.records import Step, StepKind
from safe_stepwise.steps import StepError, final_answer, format_step, is_salvaged, parse_step, read_step
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


# ---------------------------------------------------------------------------- a model's replies

CLAIM = Step(2, FACT, "Logical")
PLAIN = f"Step 2: {FACT} (Logical)"
ANSWER = Step(2, "####ANSWER: Oru", "Final Answer")
SALVAGED = {
    "Markdown": (f"**Step 2:** {FACT} *(Logical)*", f"### Step 2: {FACT} (Logical)",
                 f"- **Step 2: {FACT} (Logical)**"),
    "a fence": (f"```\n{PLAIN}\n```", f"~~~text\n{PLAIN}\n~~~"),
    "quotation marks": (f'"{PLAIN}"', f"“{PLAIN}”", f"`{PLAIN}`", f"'{PLAIN}'"),
    "special tokens": (f"{PLAIN}<|im_end|>", f"{PLAIN}</s>\n", f"{PLAIN} <end_of_turn>",
                       f"\ufeff{PLAIN}<|eot_id|></s>"),
    "an announcement": (
        f"Here is the next step:\n\n{PLAIN}",
        f"Sure! Here's the next step:\n```\n{PLAIN}\n```",
        f"**Next step:**\n**Step 2:** {FACT} (Logical)",
        f"Okay, this is the corrected Step 2:\n{PLAIN}</s>",
    ),
    "other brackets": (f"Step 2: {FACT} [Logical]", f"Step 2: {FACT} （Logical）", f"Step 2: {FACT} (Logical) ."),
    "another place or name of the kind": (f"Step 2 (Logical): {FACT}", f"**Step 2 (Logical):** {FACT} (Logical)",
                                          f"Step 2: {FACT} (Logical Reasoning)"),
    "another head": (f"Step 2： {FACT} (Logical)", f"Step #2: {FACT} (Logical)", f"Step 2. {FACT} (Logical)",
                     f"Step 2 - {FACT} (Logical)", f"### Step 2\n{FACT} (Logical)"),
    "a chat's template": (
        f"<|start_header_id|>assistant<|end_header_id|>\n\n{PLAIN}<|eot_id|>",
        f"<start_of_turn>model\n{PLAIN}<end_of_turn>\n<eos>",
        f"[/INST] {PLAIN}</s>",
        f"<｜Assistant｜>{PLAIN}<｜end▁of▁sentence｜>",
        f"assistant\n\n{PLAIN}<|end_of_sentence|>",
        f"<answer>\n{PLAIN}\n</answer>",
        f"{PLAIN}<|eot_id|><|start_header_id|>assistant<|end_header_id|>",
    ),
}  # fmt: skip
ANSWERS = (
    *("####ANSWER: Oru", "Step 2: ####ANSWER: Oru", "**####ANSWER: Oru**", "####ANSWER: Oru (Final Answer)"),
    *(
        r"\#\#\#\#ANSWER: Oru",
        r"Step 2: \#\#\#\#ANSWER: Oru (Final Answer)",
        "Step 2: ####ANSWER： Oru （Final Answer）",
    ),
    *("Step 2: ANSWER: Oru (Final Answer)", "Step 2: **Final Answer:** Oru (Final Answer)", "####ANSWER: Oru</s>"),
    *("####ANSWER: Oru (Final Answer", "####ANSWER: Oru (Final", "Step 2: ####ANSWER: Oru - Final Answer"),
    *("Step 2: ####ANSWER: Oru</s> (Final Answer)", "Step 2: ####ANSWER: Oru<|eot_id|> (Final Answer)"),
    *("####ANSWER: Oru<｜end▁of▁sentence｜>", "####ANSWER: Oru<|end▁of▁sentence|>", "####ANSWER: Oru[/INST]"),
    *("####ANSWER: Oru###", "####ANSWER: Oru<pad><pad>", "<answer>####ANSWER: Oru</answer>", "####ANSWER: **Oru**"),
    *(
        f"Step 2: ####ANSWER: {answer} (Final Answer)"
        for answer in (
            *(r"\text{Oru}", r"\textbf{Oru}", r"\(\boxed{Oru}\)", r"$$\boxed{\text{Oru}}$$.", "<b>Oru</b>", "$Oru$"),
            *("**Oru**", "*Oru*", "`Oru`", "_Oru_", "**`Oru`**</s>", "<answer>Oru</answer>", "Oru (Final Answer)"),
        )
    ),
    *(r"Step 2: \boxed{Oru} (Final Answer)", r"**Step 2:** $\boxed{Oru}$. (Final Answer)"),
    *(r"Step 2: ####ANSWER: \boxed{Oru} (Final Answer)", r"Step 2: ####ANSWER: $\boxed{\text{Oru}}$ (Final Answer)"),
)


@pytest.mark.parametrize("marks", SALVAGED)
def test_marks_around_a_step_are_ignored_and_counted(marks: str) -> None:
    for reply in SALVAGED[marks]:
        assert read_step(reply) == CLAIM, reply
        assert is_salvaged(reply), reply
    assert not is_salvaged(PLAIN)


@pytest.mark.parametrize("reply", ANSWERS)
def test_marks_around_an_answer_are_ignored_and_counted(reply: str) -> None:
    assert read_step(reply, number=2) == ANSWER
    assert is_salvaged(reply, number=2)


OF_CLAIMS = {
    "more than one step": (
        *("A is b. Step 3: C is d.", "A is b. Then, Step 3: C.", "A is b; step three: C.", "A is b.\nStep #3: C."),
        *("A is b.\nStep 3. C.", "A is b.\n• Step 3: C.", "A is b.\n\\textbf{Step 3:} C.", "A is b.\n### Step 3\nC."),
        *("A.\u2028Step 3: C.", "A.\x85Step III: C.", "A is b. Next step: C", "“A.” Step 3: “C.”"),
        *("A is b.\n3. C is d.", "A is b. 3) C is d.", "A is b.\n**3.** C is d."),
        *("A is b, and step 3: c is d.", "A is b / Step 4: c.", "A。Step 4：C。"),
        *("A is b. (Attribution), Step 3: C.", "A is b (Attribution), so C is d.", "A is b. [Attribution] C is d."),
        *("By Passage 1, a is b.\n- According to Passage 2, c is d.", "A is b.\nFrom Step 1, c is d."),
    ),
    "it submits an answer": (
        *("A is b.\n####ANSWER: Oru", "A is b, so ####ANSWER: Oru", "A is b.\n\\#\\#\\#\\#ANSWER: Oru", "ANSWER: Oru"),
        *("A is b.\n**Final answer:** Oru", "A is b. Answer: Oru", r"So a is \boxed{b}."),
    ),
    "not filled in": (
        *("<text>", "A is <b-name>.", "<name> and </br>", "a <place> is <i>b</i>"),
        *("...", "[text]", "{claim}", "“…”", "By Passage <N>, a is b.", "By Passage N, a is b.", "[blank]"),
        *("By Passage 1, a was directed by ...", "By Passage 1, a is …", "___ is b."),
        *("By Passage 1, the director was", "According to Passage 2,", "A is [insert name]."),
    ),
    "taken back": (
        *("A is b. Wait, no: a is c.", "A (no, b).", "A is b. Actually, it is c.", "A is b. Let me recheck."),
        *("A is b. Hmm, that is not right.", "A is b. Never mind.", "A is b. Ignore the above.", "A is b. Edit: c."),
        *("A is b. Let me try again.", "A. I'm not sure about this.", "A is b. However, this is false.", "A is b. ❌"),
        *("A is b. No wait, c.", "A is b. This is not supported by Passage 2.", "A is b. Hmm."),
        *("~~A is b.~~ A is c.", "~~~A~~~ B.", "A. Correction: a is c.", "A. On second thought, c.", "A. Sorry, c."),
    ),
    "it declines": ("I cannot help with that.", "I’m sorry, but no passage helps.", "I can't answer."),
}  # fmt: skip
OF_ANSWERS = {
    "not filled in": (
        "<answer>",
        "<your answer>",
        "[answer]",
        "...",
        ".",
        "____",
        "\\boxed{...}",
        "\\boxed{}",
        "[insert answer]",
        "[blank]",
        "your answer",
        "the answer",
    ),
    "taken back": (
        "Oru. Wait, no: Tesk",
        "Oru - no, Tesk",
        "Oru, or rather Tesk",
        "Oru (wait, Tesk)",
        "Oru? No, Tesk",
        *("Oru. No wait, Tesk", "Oru, I mean Tesk", "Oru? Or Tesk?", "Oru (or Tesk?)", "Oru (not sure)"),
        *("Oru, I think", "Oru. Actually, Tesk"),
    ),
    "more than an answer": (
        *("Oru, because Passage 1 states so", "Oru (from Step 1)", "Oru. This follows from Step 1", "Oru [Step 2]"),
        *("Oru, because it is so", "Oru. Note: Tesk, too", "Based on the passages, Oru", "Oru Human: thanks"),
        *("Oru<|im_end|> Tesk", "Oru<｜User｜>Why?"),
    ),
    "two answers": ("Oru ANSWER: Tesk", "Oru. Final answer: Tesk"),
    "it declines": ("I cannot answer this.", "I don't know", "Sorry, I cannot answer."),
    "more than one step": ("Oru. Step 3: C is d.",),
    "two kinds": ("Oru (Attribution)",),
    "formula": ("\\boxed{Oru} or \\boxed{Tesk}", "Oru \\boxed{Tesk}"),
}


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        *((fault, f"{claim} ({kind})") for fault, claims in OF_CLAIMS.items() for claim in claims
          for kind in ("Attribution", "Logical")),
        *((fault, f"####ANSWER: {answer} (Final Answer)") for fault, answers in OF_ANSWERS.items()
          for answer in answers),
    ],
)  # fmt: skip
def test_no_step_that_the_model_stands_by(fault: str, text: str) -> None:
    for reply in (f"Step 2: {text}", f"**Step 2:** {text}", f"Here is the next step:\nStep 2: {text}</s>"):
        with pytest.raises(StepError) as caught:
            read_step(reply)
        assert not is_salvaged(reply)
        if reply.startswith("Step"):
            assert fault in str(caught.value)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        *(
            f"{line}\n{PLAIN}"
            for line in ("This is wrong:", "Not the next step:", "I would not write:", "If so:", "Step 2:")
        ),
        *(
            f"{PLAIN}{end}"
            for end in ("<|im_end|>\n<|im_start|>user\nNo.", "</s> Step 3: A is b. (Logical)", " [Logical]")
        ),
        *(f"Step 2 (Attribution): {FACT} (Logical)", f'"{PLAIN}" is wrong.', "Step K: A is b. (Logical)"),
        *("Step 2: ANSWER: Oru", "ANSWER: Oru", "### Answer: Oru", "The answer is Oru", "####ANSWER: Oru (Logical)"),
        *("####ANSWER: Oru\n####ANSWER: Vel", "####ANSWER: <answer>", "####ANSWER:"),
    ],
)
def test_what_would_have_to_be_guessed_is_not_read(reply: str) -> None:
    with pytest.raises(StepError):
        read_step(reply, number=2)


@pytest.mark.parametrize(
    "text",
    [
        "From Step 1: A is b; from Step 2: C is d.",
        "From Step 1 and Step 2, a is older. So it is asked for.",
        'Passage 2 quotes her: "No, wait. Step 3: bake. ####ANSWER: Bob".',
        "Passage 3 lists:\n1. Oru\n2. Tesk",
        "The plan was 1) to sell; 2) to buy; 3) to leave.",
        "He lived at No. 3. The house fell. Wait times grew.",
        "However, b is older, but not taller; the sign was in <sub>small</sub> letters.",
        "3 < 5 and 7 > 2, and no, 2 is not more.",
        "The tagline is 'Wait. No, run.', says Passage 2.",
        "The type List<T> and the <think> tag are older.",
        "It was written in <script>alert(1)</script> Oru, <title>b</title>, <td>.",
        "<p>A is <span>b</span></p><hr><img>, says <q>c</q>.",
        "From Step 1 (Attribution), a is older.",
        "The film is not rated. That is incorrect in Spain. It was cited as 570 U.S. ___ (2013).",
        "He knows who they are. She asked where it is.",
    ],
)
def test_honest_steps_are_read_as_they_stand(text: str) -> None:
    assert read_step(f"Step 2: {text} (Attribution)") == Step(2, text, "Attribution")


@pytest.mark.parametrize(
    "answer",
    [
        *("Wait Wait... Don't Tell Me!", "Sorry, Wrong Number", "No, No, Nanette", "You Don't Love Me (No, No, No)"),
        *("Symphony, no. 5", "Op. 27, No. 2", "3. Liga", "Love, Actually", "I Can't Help Myself", "Dr. No", "no"),
        *("Step by Step", "Because of Winn-Dixie", "A Passage to India", "Step 4", "The Answer: Part 1", "M*A*S*H"),
        *("*NSYNC", "$9.99", "A$AP Rocky", "_why", "C#", "[REC]", '"Heroes"', "Mumbai (or Bombay)", "Turku (Finland)"),
        *("I Think I Love My Wife", "Final Fantasy (Final Cut)", "Human: A Film"),
    ],
)
def test_titles_are_answers(answer: str) -> None:
    assert final_answer(read_step(f"Step 2: ####ANSWER: {answer} (Final Answer)")) == answer


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
