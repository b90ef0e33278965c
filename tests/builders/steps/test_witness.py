"""The second witness: what each rule sees, and the labels that it must never bear out."""

from __future__ import annotations

import ast
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.steps import values, witness
from builders.steps.witness import bears_out
from safe_stepwise.checking.plans import Plan, make_plan
from safe_stepwise.records import Passage, Question, Step, StepKind, SupportingFact, Triple
from safe_stepwise.steps import StepError, format_step
from safe_stepwise.taxonomy import labels
from tests import sizes

FILM = Passage("Dune Rain", ("Dune Rain is a film of 1931 directed by Ors Velt.", "It has 12 songs."), True)
MAN = Passage("Ors Velt", ("Ors Velt was born in Oru on 3 May 1901.", "He kept 40 bees."), True)
OTHER = Passage("Ana Vorr", ("Ana Vorr was born in Marn.",))
CHAIN = Question(
    "q", "musique", "train", "Where was the director of Dune Rain born?", "Oru",
    passages=(FILM, OTHER, MAN),
)  # fmt: skip
PATH = (Triple("Dune Rain", "director", "Ors Velt", 1), Triple("Ors Velt", "place of birth", "Oru", 3))
PLAN = make_plan(CHAIN, PATH, PATH)

ONE = "According to Passage 1, Dune Rain was directed by Ors Velt."
TWO = "According to Passage 3, Ors Velt was born in Oru."
THREE = "From Step 1 and Step 2 it follows that the answer is Oru."

TOLD = Question(
    "t", "hotpotqa", "train", "When was the director of Dune Rain born?", "3 May 1901",
    passages=(FILM, OTHER, MAN),
    supporting_facts=(SupportingFact("Dune Rain", 0), SupportingFact("Ors Velt", 0)),
)  # fmt: skip
TOLD_PATH = (Triple("Dune Rain", "names", "Ors Velt", 1, 0), Triple("Ors Velt", "names", "3 May 1901", 3, 0))
TOLD_PLAN = make_plan(TOLD, TOLD_PATH, TOLD_PATH)


def found(
    text: str, *before: str, kind: StepKind = "Attribution", of: tuple[Question, Plan] = (CHAIN, PLAN)
) -> set[str]:
    """The labels that the witness bears out."""
    kinds: list[StepKind] = ["Logical" if "answer is" in one else "Attribution" for one in before]
    previous = [Step(n, t, k) for n, (t, k) in enumerate(zip(before, kinds, strict=True), 1)]
    step = Step(len(before) + 1, text, kind)
    return {label for label in labels() if bears_out(label, of[1], of[0], previous, step)}


def test_sound_steps_are_correct_and_nothing_else() -> None:
    assert found(ONE) == {"Correct"}
    assert found(TWO, ONE) == {"Correct"}
    assert found(THREE, ONE, TWO, kind="Logical") == {"Correct"}
    assert found("####ANSWER: Oru", ONE, TWO, THREE, kind="Final Answer") == {"Correct"}


@pytest.mark.parametrize(
    ("label", "text", "before", "kind"),
    [
        ("Contradictory", "According to Passage 1, Dune Rain was directed by Ana Vorr.", (),
         "Attribution"),
        ("Contradictory", "According to Passage 3, Ors Velt was born in Marn.", (ONE,),
         "Attribution"),
        ("Unsupported", "According to Passage 1, Dune Rain won the Gold Crown.", (), "Attribution"),
        ("Unsupported", "According to Passage 2, Dune Rain was directed by Ors Velt.", (),
         "Attribution"),
        ("Redundancy", "Passage 1 says once more that Dune Rain was directed by Ors Velt.",
         (ONE, TWO), "Attribution"),
        ("Information Miss", "Passage 1 does not say who directed Dune Rain.", (), "Attribution"),
        ("Inefficiency", "I will now look for the place of birth of Ors Velt.", (ONE,),
         "Attribution"),
        ("Off-topic", "According to Passage 3, Ors Velt kept 40 bees.", (ONE,), "Attribution"),
        ("Premature Attribution", TWO, (), "Attribution"),
        ("Logical Fallacy", "From Step 1 and Step 2 it follows that the answer is Ors Velt.",
         (ONE, TWO), "Logical"),
        ("Overthinking", "According to Passage 3, Ors Velt kept 40 bees.", (ONE, TWO, THREE),
         "Attribution"),
        ("Wrong Conclusion", "####ANSWER: Marn", (ONE, TWO, THREE), "Final Answer"),
        ("Wrong Conclusion", "####ANSWER: Oru", (ONE,), "Final Answer"),
    ],
)  # fmt: skip
def test_each_error_has_its_rule(label: str, text: str, before: tuple[str, ...], kind: StepKind) -> None:
    said = found(text, *before, kind=kind)
    assert label in said
    assert "Correct" not in said


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("So the answer is Oru.", "Logical"),
        ("The question is answered by Oru.", "Logical"),
        ("The answer is Ors Velt.", "Logical"),
        ("According to Passage 1, Dune Rain was directed by Ors Velt.", "Attribution"),
    ],
)
def test_a_stated_answer_or_fact_is_never_inefficiency(text: str, kind: StepKind) -> None:
    assert "Inefficiency" not in found(text, ONE, TWO, kind=kind)
    assert "Inefficiency" not in found(text, ONE, kind=kind)


def test_what_a_comparison_could_answer_is_never_inefficiency() -> None:
    pages = (
        Passage("Dune Rain", ("Dune Rain is a film of 1931.",), True),
        Passage("Red Ford", ("Red Ford is a film of 1940.",), True),
    )
    path = (Triple("Dune Rain", "publication date", "1931", 1), Triple("Red Ford", "publication date", "1940", 2))
    question = Question(
        "c", "2wikimultihopqa", "train", "Which film came out first, Dune Rain or Red Ford?",
        "Dune Rain", kind="comparison", passages=pages, evidence=path,
    )  # fmt: skip
    plan = make_plan(question, path, path)
    for text in ("It is Dune Rain.", "It is Red Ford.", "Red Ford it must be, by all that is said."):
        assert "Inefficiency" not in found(text, kind="Logical", of=(question, plan))


@pytest.mark.parametrize(
    "text",
    [
        "Passage 1 reads: “No passage says that nothing is known of Dune Rain.”",
        "In Passage 1 one reads “Dune Rain does not state who was missing”.",
        "According to Passage 1, “Not Stated” is what Dune Rain is about.",
    ],
)
def test_denials_count_outside_of_quotations_only(text: str) -> None:
    assert "Information Miss" not in found(text)


QUOTE = "According to Passage 3, “Ors Velt was born in Oru on {}.”"


@pytest.mark.parametrize("date", ["3 May 1911", "4 May 1901", "3 June 1901", "40 May 1901"])
def test_a_changed_year_in_a_quotation_is_never_correct(date: str) -> None:
    of = (TOLD, TOLD_PLAN)
    before = "According to Passage 1, “Dune Rain is a film of 1931 directed by Ors Velt.”"
    assert found(QUOTE.format("3 May 1901"), before, of=of) == {"Correct"}
    assert "Correct" not in found(QUOTE.format(date), before, of=of)


@pytest.mark.parametrize(
    "text",
    [
        "According to Passage 1, “Dune Rain is a film of 1931 directed by Ana Vorr.”",
        "According to Passage 1, “Dune Rain is a film of 1931 directed by Zyx Quarl.”",
        "According to Passage 1, “Dune Rain is a film of 1987 directed by Ors Velt.”",
    ],
)
def test_a_wrong_value_inside_a_quotation_is_contradictory_never_unsupported(text: str) -> None:
    for of in ((CHAIN, PLAN), (TOLD, TOLD_PLAN)):
        said = found(text, of=of)
        assert "Contradictory" in said
        assert not said & {"Unsupported", "Correct"}


def test_a_value_in_the_place_of_another_is_not_unsupported() -> None:
    said = found("According to Passage 1, Dune Rain was directed by Zyx Quarl.")
    assert "Contradictory" in said
    assert not said & {"Unsupported", "Correct"}


def test_a_sentence_quoted_from_the_wrong_passage_is_unsupported() -> None:
    text = "According to Passage 2, “Dune Rain is a film of 1931 directed by Ors Velt.”"
    assert "Unsupported" in found(text)


def test_another_relation_between_the_right_names_is_not_correct() -> None:
    assert "Correct" not in found("According to Passage 1, Dune Rain was edited by Ors Velt.")


def test_a_remark_that_another_passage_is_silent_is_no_denial() -> None:
    said = f"{ONE[:-1]}; nothing in Passage 2 mentions this."
    assert found(said) == {"Correct"}
    assert "Information Miss" in found("I turn to Passage 1, but Passage 1 does not give it.")


def test_the_checker_is_no_part_of_it() -> None:
    """Nor is its reading of claims, at any remove within these two files."""
    for module in (witness, values):
        tree = ast.parse(Path(module.__file__).read_text())
        froms = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        barred = {"claims", "checker", "step_reading", "inference"}
        assert not {one.rpartition(".")[2] for one in froms} & barred


@settings(max_examples=sizes.examples(150), deadline=None)
@given(
    st.text('“”" ;.,PassageStep 0123éX\n', max_size=120) | st.text(max_size=120),
    st.sampled_from(["Attribution", "Logical", "Final Answer"]),
)
def test_any_step_is_judged(text: str, kind: StepKind) -> None:
    previous = [Step(1, ONE, "Attribution"), Step(2, text, "Logical")]
    with suppress(StepError):
        format_step(Step(3, text, kind))
        assert found(text, ONE, kind=kind) <= set(labels())
    if kind == "Final Answer":
        return  # those that break the grammar never come so far
    for label in labels():
        assert bears_out(label, PLAN, CHAIN, previous, Step(3, text, kind)) in (True, False)
