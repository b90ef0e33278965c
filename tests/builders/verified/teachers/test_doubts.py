"""What a HotpotQA question asks for, held against what its passages and its answer give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.verified.teachers import Proposal
from builders.verified.teachers.supporting_facts import doubt
from safe_stepwise.records import Passage, Question


def doubted(text: str, answer: str, *told: tuple[str, str], kind: str = "bridge") -> Proposal | None:
    gold = tuple(Passage(title, (sentence,), True) for title, sentence in told)
    return doubt(Question("h1", "hotpotqa", "train", text, answer, kind=kind, passages=gold))


def compared(text: str, answer: str, dune: str, ford: str) -> Proposal | None:
    return doubted(text, answer, ("Dune", dune), ("Ford", ford), kind="comparison")


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("When did the war end?", "after 53 days", True),
        ("When did the war end?", "May 1901", False),
        ("When did the war end?", "in the early 17th century", False),
        ("When did the war end?", "when Oru fell", False),
        ("When considering both, who led Oru?", "the other one", False),
        ("How many beers does Oru brew?", "the river", True),
        ("How many beers does Oru brew?", "over forty", False),
        ("How many beers does Oru brew?", "about 12", False),
        ("Who produced a film directed by Ors Velt?", "Ors Velt", True),
        ("Who produced a film directed by Ors Velt?", "Ana Vorr", False),
        ("Who is older, Ors Velt or Ana Vorr?", "Ors Velt", False),
        ("Which film of Oru was shot in Oru?", "Oru", False),
    ],
)
def test_the_sort_of_an_answer(text: str, answer: str, expected: bool) -> None:
    found = doubted(text, answer)
    assert (found is not None) == expected
    if found:
        assert found.noise_type == "wrong_answer"
        assert f"“{answer}”" in found.explanation


FIVE = "Ford is a genus of 5 flowering species."


@pytest.mark.parametrize(
    ("text", "answer", "dune", "expected"),
    [
        ("Which has more species, Dune or Ford?", "Ford", "Dune is a genus.", "missing_evidence"),
        ("Which has more than 4 species, Dune or Ford?", "Ford", "It is one.", "missing_evidence"),
        ("Which has more species, Dune or Ford?", "Ford", "Dune has two species.", ""),
        ("Which has more species, Dune or Ford?", "Dune", "Dune has two species.", "wrong_answer"),
        ("Which has fewer species, Dune or Ford?", "Ford", "Dune has two species.", "wrong_answer"),
        ("Which has fewer species, Dune or Ford?", "Dune", "Dune has two species.", ""),
        # numbers that overlap, an amount that is no number, a number of something else
        ("Which has more species, Dune or Ford?", "Dune", "Two species, now 9 species.", ""),
        ("Which has more species, Dune or Ford?", "Ford", "Dune has several species.", ""),
        ("Which has more species, Dune or Ford?", "Ford", "It has 7 acts.", "missing_evidence"),
        ("Which has more varied species, Dune or Ford?", "yes", "Dune has 2 species.", ""),
        # nothing that is counted
        ("Which is more varied, Dune or Ford?", "Ford", "Dune is a genus.", ""),
        ("Which was named more recently than this, Dune or Ford?", "Ford", "It was in 1901.", ""),
    ],
)
def test_more_or_fewer_of_something(text: str, answer: str, dune: str, expected: str) -> None:
    found = compared(text, answer, dune, FIVE)
    assert (found.noise_type if found else "") == expected


def test_one_of_a_few_is_no_number_of_them() -> None:
    text = "Which refers to more breeds, Dune or Ford?"
    ford = "Ford may mean three breeds."
    assert compared(text, "Ford", "It is one of the top five breeds.", ford) is None


@pytest.mark.parametrize(
    ("dune", "expected"),
    [
        ("Dune was a machine of 1901, sold in Europe only.", True),
        ("Dune was a Kelvian machine.", False),
        ("Dune was built in Oru.", False),
        ("Dune was an Oru-based maker.", False),
        ("Dune came from the Marn.", False),
    ],
)
def test_one_country_needs_a_place_on_both_sides(dune: str, expected: bool) -> None:
    text = "Were Dune and Ford from the same country?"
    found = compared(text, "no", dune, "Ford was a Kelvian band.")
    assert (found is not None) == expected
    if found:
        assert found.explanation.startswith("“Dune” names no country")


@pytest.mark.parametrize(
    ("text", "answer", "dune", "expected"),
    [
        ("Were both Dune and Ford actors?", "yes", "Dune was a film director.", True),
        ("Were both Dune and Ford actors?", "no", "Dune was a film director.", False),
        ("Were both Dune and Ford actors?", "yes", "Dune directed, and starred in, films.", False),
        ("Were both Dune and Ford actors?", "yes", "Dune was born in Oru.", False),
        ("Were both Dune and Ford rivers?", "yes", "Dune was a film director.", False),
        ("Were Dune or Ford actors?", "yes", "Dune was a film director.", False),
    ],
)
def test_both_of_one_occupation(text: str, answer: str, dune: str, expected: bool) -> None:
    assert (compared(text, answer, dune, "Ford was an actress.") is not None) == expected


PAGES = st.lists(st.tuples(st.text(max_size=8), st.text(max_size=30)), max_size=3)
ASKED = st.sampled_from(
    ["Who has more acts, A or B?", "Are both A and B actors?", "When did A?", "A in the same nation"]
)


@given(ASKED | st.text(max_size=20), st.text(max_size=8), PAGES, st.booleans())
def test_any_question_is_doubted_in_a_sentence_or_not_at_all(
    text: str, answer: str, pages: list[tuple[str, str]], comparison: bool
) -> None:
    found = doubted(text, answer, *pages, kind="comparison" if comparison else "bridge")
    assert found is None or (0 < found.confidence < 1 and found.explanation.endswith("."))
