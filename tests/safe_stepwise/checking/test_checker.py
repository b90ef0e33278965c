"""The protocol on invented questions: each error type, the order of checks, what is left unsaid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.inference import comparisons_hold, measure_of
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.wordings import WordingStyle
from safe_stepwise.records import Passage, Question, Step, SupportingFact, Triple
from safe_stepwise.steps import parse_step
from safe_stepwise.taxonomy import check_order

PAGES = (
    Passage("Dune Rain", ("Dune Rain is a 1951 film directed by Ors Velt.", "It won no prize."), True),
    Passage("Oru", ("Oru is a town in Kelvia.",), False),
    Passage("Ors Velt", ("Ors Velt was a director.", "He was born in Lake Oru."), True),
    Passage("Silent Ford", ("Silent Ford is a 1962 film directed by Ana Vorr.",), True),
    Passage("Ana Vorr", ("Ana Vorr (3 May 1901 – 1970) was a director.",), True),
    Passage("Harbour Light", ("Harbour Light is a novel by Edo Marsh.",), False),
)
CHAIN = (Triple("Dune Rain", "director", "Ors Velt", 1), Triple("Ors Velt", "place of birth", "Lake Oru", 3))
COMPARED = (Triple("Dune Rain", "publication date", "1951", 1), Triple("Silent Ford", "publication date", "1962", 4))


def chain() -> Checker:
    question = "Where was the director of Dune Rain born?"
    return Checker(Question("q", "musique", "train", question, "Lake Oru", passages=PAGES), CHAIN, CHAIN)


def comparison() -> Checker:
    asked = "Which film came out first, Dune Rain or Silent Ford?"
    question = Question("q", "2wikimultihopqa", "train", asked, "Dune Rain", (), "comparison", 2, PAGES)
    return Checker(question, COMPARED, COMPARED)


def verdict(checker: Checker, previous: Sequence[str], text: str) -> str | None:
    steps = [parse_step(f"Step {n}: {step}") for n, step in enumerate(previous, 1)]
    found = checker.check(steps, parse_step(f"Step {len(steps) + 1}: {text}"))
    return None if found is None else found.error_type


DIRECTOR = "According to Passage 1, the director of Dune Rain is Ors Velt. (Attribution)"
BORN = "Passage 3 states that Ors Velt (from Step 1) was born in Lake Oru. (Attribution)"
CONCLUSION = "From Step 1 and Step 2 it follows that the question asks for Lake Oru. (Logical)"
FIRST = "According to Passage 1, Dune Rain came out in 1951. (Attribution)"
SECOND = "According to Passage 4, Silent Ford was released in 1962. (Attribution)"
COMPARE = "1951 (Step 1) is earlier than 1962 (Step 2), so the answer is Dune Rain. (Logical)"


@pytest.mark.parametrize(
    ("previous", "text", "expected"),
    [
        ([], DIRECTOR, "Correct"),
        ([], "Passage 1 tells us that Ors Velt directed Dune Rain. (Attribution)", "Correct"),
        ([DIRECTOR], BORN, "Correct"),
        ([DIRECTOR, BORN], CONCLUSION, "Correct"),
        ([DIRECTOR, BORN], "####ANSWER: Lake Oru (Final Answer)", "Correct"),
        ([DIRECTOR, BORN, CONCLUSION], "####ANSWER: Lake Oru (Final Answer)", "Correct"),
        # procedural
        ([DIRECTOR, BORN], "According to Passage 1, it won no prize. (Attribution)", "Overthinking"),
        ([DIRECTOR, BORN, CONCLUSION], DIRECTOR, "Overthinking"),
        ([], "According to Passage 6, Harbour Light is a novel by Edo Marsh. (Attribution)", "Off-topic"),
        ([DIRECTOR], "Passage 3 says that Ors Velt was a director. (Attribution)", "Off-topic"),
        ([DIRECTOR], DIRECTOR, "Redundancy"),
        ([DIRECTOR], "As Step 1 shows, Ors Velt directed Dune Rain. (Attribution)", "Redundancy"),
        ([], "Next, I need to find the director of Dune Rain. (Attribution)", "Inefficiency"),
        ([DIRECTOR, BORN], "We should now put this together. (Logical)", "Inefficiency"),
        # attribution
        ([], "According to Passage 1, Dune Rain was directed by Edo Marsh. (Attribution)", "Contradictory"),
        ([DIRECTOR], "According to Passage 2, Ors Velt was born in Kelvia. (Attribution)", "Contradictory"),
        ([DIRECTOR], "According to Passage 2, Ors Velt was born in Lake Oru. (Attribution)", "Unsupported"),
        ([], "According to Passage 1, Dune Rain was produced by Ors Velt. (Attribution)", "Unsupported"),
        ([], "Passage 1 says that Dune Rain was praised by Ilka Brandt. (Attribution)", "Unsupported"),
        ([], "Passage 1 does not say who the director of Dune Rain is. (Attribution)", "Information Miss"),
        ([], "According to Passage 3, Ors Velt was born in Lake Oru. (Attribution)", "Premature Attribution"),
        (
            [],
            "Passage 3 says that the birthplace of Dune Rain's director is Lake Oru. (Attribution)",
            "Premature Attribution",
        ),
        # logical, final answer
        ([DIRECTOR, BORN], "From Step 1 and Step 2, the answer is Ors Velt. (Logical)", "Logical Fallacy"),
        ([DIRECTOR], "From Step 1, it follows that the answer is Lake Oru. (Logical)", "Logical Fallacy"),
        ([DIRECTOR, BORN], "####ANSWER: Ors Velt (Final Answer)", "Wrong Conclusion"),
        ([DIRECTOR], "####ANSWER: Lake Oru (Final Answer)", "Wrong Conclusion"),
        # nothing that could be proved
        ([DIRECTOR, BORN], "####ANSWER: Lake Oru, Kelvia (Final Answer)", None),
        ([], "According to Passage 1, Dune Rain is well made. (Attribution)", None),
    ],
)
def test_chain(previous: list[str], text: str, expected: str | None) -> None:
    assert verdict(chain(), previous, text) == expected


@pytest.mark.parametrize(
    ("previous", "text", "expected"),
    [
        ([], SECOND, "Correct"),
        ([FIRST, SECOND], COMPARE, "Correct"),
        ([FIRST, SECOND], FIRST, "Redundancy"),
        (
            [FIRST, SECOND],
            "1962 (Step 2) is earlier than 1951 (Step 1), so the answer is Silent Ford. (Logical)",
            "Logical Fallacy",
        ),
        (
            [FIRST, SECOND],
            "1951 (Step 1) is later than 1962 (Step 2), so the answer is Dune Rain. (Logical)",
            "Logical Fallacy",
        ),
        ([FIRST, SECOND, COMPARE], "####ANSWER: Silent Ford (Final Answer)", "Wrong Conclusion"),
        ([FIRST], "According to Passage 4, Silent Ford came out in 1951. (Attribution)", "Contradictory"),
    ],
)
def test_comparison(previous: list[str], text: str, expected: str | None) -> None:
    assert verdict(comparison(), previous, text) == expected


WRONG, RIGHT = "Logical Fallacy", "Correct"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("From Step 1 and Step 2, Silent Ford is older than Dune Rain.", WRONG),
        ("From Step 1 and Step 2, Silent Ford came out before Dune Rain.", WRONG),
        ("From Step 1 and Step 2, Dune Rain is the later one.", WRONG),
        ("Silent Ford was released before Dune Rain, so Dune Rain is the older film.", WRONG),
        ("From Step 1 and Step 2, 1962 is earlier than 1951.", WRONG),
        ("Since 1951 is earlier than 1962, Silent Ford came out first.", WRONG),
        ("Since 1951 is earlier than 1962, Dune Rain came out later.", WRONG),
        ("Dune Rain came out 10 years before Silent Ford.", WRONG),
        ("Since 1951 is earlier than 1962, Dune Rain came out last.", WRONG),
        ("From Step 1 and Step 2, Dune Rain came last.", WRONG),
        ("From Step 1 and Step 2, \ue000Dune Rain (1951) \ue000(1951) came last.", WRONG),
        ("Dune Rain (1962) came out before Silent Ford (1951).", WRONG),
        ("From Step 1 and Step 2, 1951 is earlier than 1962.", RIGHT),
        ("Since 1951 is earlier than 1962, Dune Rain came out first.", RIGHT),
        ("Comparing 1951 and 1962, Dune Rain is the earlier film.", RIGHT),
        ("Dune Rain (1951) came out before Silent Ford (1962).", RIGHT),
        ("Dune Rain came out 11 years before Silent Ford.", RIGHT),
        ("From Step 1 and Step 2, Silent Ford is younger than Dune Rain.", RIGHT),
        ("From Step 1 and Step 2, Silent Ford is not older than Dune Rain.", None),
        ("Since 1951 is earlier than 1962, the answer is Silent Ford.", WRONG),
        ("From Step 1 and Step 2, Dune Rain and Silent Ford were released in the same year.", None),
        ("Dune Rain, which Edo Marsh praised, is older than Silent Ford.", None),
    ],
)
def test_a_comparison_is_judged_by_the_values_of_the_facts(text: str, expected: str | None) -> None:
    assert verdict(comparison(), [FIRST, SECOND], f"{text} (Logical)") == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Ana Vorr is older than Edo Marsh.", True),
        ("Ana Vorr is 49 years older than Edo Marsh.", True),  # 48 full years
        ("Ana Vorr is 48 years older than Edo Marsh.", True),
        ("Ana Vorr is 47 years older than Edo Marsh.", False),
        ("Ana Vorr is two months older than Edo Marsh.", None),
        ("Ana Vorr died before Edo Marsh.", None),
        ("Ana Vorr later moved to Oru.", None),
        ("Ana Vorr has an older brother, Edo Marsh.", None),
        ("Edo Marsh was born first.", False),
        ("1,250 is more than 900.", True),
        ("Ana Vorr was born in 1901, when 102 years had passed.", None),
    ],
)
def test_a_comparison_is_decided_only_by_measures_of_one_kind(claim: str, expected: bool | None) -> None:
    lives = [("Ana Vorr", "3 May 1901", "date of birth"), ("Edo Marsh", "2 March 1950", "date of birth")]
    deaths = [("Ana Vorr", "1990", "date of death")]
    assert comparisons_hold(claim, [measure for life in lives + deaths if (measure := measure_of(*life))]) is expected


def test_the_first_error_in_order_is_the_label() -> None:
    """After the goal is reached a false and repeated claim is Overthinking, not what else it is."""
    false = "According to Passage 1, Dune Rain was directed by Edo Marsh. (Attribution)"
    assert verdict(chain(), [DIRECTOR, BORN], false) == "Overthinking"


def test_the_diagnosis_says_where_and_the_guidance_what_next() -> None:
    false = "According to Passage 1, Dune Rain was directed by Edo Marsh. (Attribution)"
    step = parse_step(f"Step 1: {false}")
    found = chain().check([], step)
    assert found is not None
    assert "Passage 1" in found.diagnosis
    assert "director of Dune Rain" in found.guidance
    right = chain().check([], parse_step(f"Step 1: {DIRECTOR}"))
    assert right is not None
    assert "place of birth of Ors Velt" in right.guidance
    assert "Lake Oru" not in right.guidance, "the guidance gives the answer away"


def test_the_diagnosis_names_the_value_that_is_wrong() -> None:
    """Not a month of it, nor a number that is part of a name."""
    page = Passage("205 Rooms", ("205 Rooms was released on May 3, 1951.",), True)
    hop = Triple("205 Rooms", "publication date", "May 3, 1951", 1, 0)
    asked = "When was 205 Rooms released?"
    question = Question("q", "musique", "train", asked, "May 3, 1951", passages=(page,))
    for style in get_args(WordingStyle):
        checker = Checker(question, (hop,), (hop,), style)
        for year in range(1960, 1990):
            text = f"According to Passage 1, 205 Rooms was released on June 4, {year}. (Attribution)"
            found = checker.check([], parse_step(f"Step 1: {text}"))
            assert found is not None
            assert found.error_type == "Contradictory"
            assert "“205”" not in found.diagnosis
            assert "“June”" not in found.diagnosis


def test_told_in_a_passages_own_words() -> None:
    """HotpotQA has no triples: the supporting sentences are the facts."""
    facts = (SupportingFact("Dune Rain", 0), SupportingFact("Ors Velt", 1))
    asked = "Where was the director of Dune Rain born?"
    question = Question(
        "q", "hotpotqa", "train", asked, "Lake Oru", (), "bridge", 2, PAGES, facts
    )  # fmt: skip
    checker = Checker(question, (Triple("Dune Rain", "names", "Ors Velt", 1),), ())
    told = "According to Passage 1, Dune Rain is a 1951 film directed by Ors Velt. (Attribution)"
    born = "Passage 3 states: Ors Velt was born in Lake Oru. (Attribution)"
    assert verdict(checker, [], told) == "Correct"
    assert verdict(checker, [told], born) == "Correct"
    assert verdict(checker, [], born) == "Premature Attribution"
    assert verdict(checker, [told], told) == "Redundancy"
    altered = "According to Passage 1, Dune Rain is a 1951 film directed by Edo Marsh. (Attribution)"
    assert verdict(checker, [], altered) == "Contradictory"


@pytest.mark.parametrize("style", get_args(WordingStyle))
def test_a_title_that_is_the_answer_is_not_given_away(style: WordingStyle) -> None:
    """HotpotQA's facts are asked for by the titles of their passages."""
    facts = (SupportingFact("Ors Velt", 0), SupportingFact("Dune Rain", 1))
    question = Question(
        "q", "hotpotqa", "train", "Who made Dune Rain?", "Ors Velt", (), "bridge", 2, PAGES, facts
    )  # fmt: skip
    checker = Checker(question, (Triple("Dune Rain", "names", "Ors Velt", 1),), (), style)
    asides = ["Let us go on.", "So far so good.", "According to Passage 2, Oru is a town in Kelvia."]
    steps = [*(f"{text} (Attribution)" for text in asides), "####ANSWER: Oru (Final Answer)"]
    prize = "According to Passage 1, Dune Rain won no prize. (Attribution)"
    for previous in ([], [parse_step(f"Step 1: {prize}")]):
        for text in steps:
            found = checker.check(previous, parse_step(f"Step {len(previous) + 1}: {text}"))
            assert found is not None
            assert "Velt" not in found.diagnosis + found.guidance


@pytest.mark.parametrize(
    ("path", "reason"), [((), "no path"), ((Triple("A", "director", "B"),), "a hop without a passage")]
)
def test_no_plan_without_a_path(path: tuple[Triple, ...], reason: str) -> None:
    question = Question("q", "musique", "train", "Who?", "B", passages=PAGES)
    with pytest.raises(PlanError, match=reason):
        Checker(question, path, path)


@pytest.mark.parametrize("text", ["", "(", "Passage 99", "“", "####", "Step 1", "Passage 0 states that"])
def test_no_text_breaks_it(text: str) -> None:
    for kind in ("Attribution", "Logical"):
        chain().check([Step(1, text, kind)], Step(2, text * 3, kind))


LIVES = (
    Triple("Ors Velt", "date of birth", "3 May 1901", 1),
    Triple("Ors Velt", "date of death", "1970", 1),
    Triple("Ana Vorr", "date of birth", "1899", 2),
    Triple("Ana Vorr", "date of death", "1960", 2),
)
LIFE_PAGES = (
    Passage("Ors Velt", ("Ors Velt (3 May 1901 – 1970) was a poet.",), True),
    Passage("Ana Vorr", ("Ana Vorr (1899 – 1960) was a poet.",), True),
)
TEXTS = (
    "According to Passage 1, Ors Velt was born on 3 May 1901. (Attribution)",
    "According to Passage 1, Ors Velt died in 1970. (Attribution)",
    "By Step 1 and Step 2, Ors Velt lived for 68 years. (Logical)",
    "By Step 1 and Step 2, Ors Velt lived for 98 years. (Logical)",
    "According to Passage 2, Ana Vorr was born in 1899. (Attribution)",
    "According to Passage 2, Ana Vorr died in 1960. (Attribution)",
    "By Step 4 and Step 5, Ana Vorr lived for 61 years. (Logical)",
    "68 years (Step 3) is longer than 61 years (Step 6), so the answer is Ors Velt. (Logical)",
    "From Step 1 and Step 4, the answer is Ana Vorr. (Logical)",
    "Let us go on. (Logical)",
    "####ANSWER: Ors Velt (Final Answer)",
    "####ANSWER: Ana Vorr (Final Answer)",
)


@given(st.lists(st.sampled_from(TEXTS), max_size=9), st.sampled_from(TEXTS))
def test_any_order_of_steps_gets_a_verdict_in_order(previous: list[str], text: str) -> None:
    """Whatever was accepted before: no crash, a label of the step's kind, words for it."""
    asked = "Who lived longer, Ors Velt or Ana Vorr?"
    question = Question("q", "2wikimultihopqa", "train", asked, "Ors Velt", (), "comparison", 2, LIFE_PAGES)
    checker = Checker(question, LIVES, LIVES)
    steps = [parse_step(f"Step {n}: {step}") for n, step in enumerate(previous, 1)]
    step = parse_step(f"Step {len(steps) + 1}: {text}")
    found = checker.check(steps, step)
    if found is not None:
        assert found.error_type in ("Correct", *check_order(step.kind))
        assert found.diagnosis
        assert found.guidance
        assert "{" not in found.diagnosis + found.guidance
