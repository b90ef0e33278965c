"""Every wording of a step is one that the checker's reading recognises."""

from __future__ import annotations

import pytest

from safe_stepwise.checking.statements import cite, is_free, quote, state, wordings
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.language.grounding import ground
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Passage, Triple

TAILS = {"date": "3 May 1901", "place": "Oru", "nation": "Kelvia", "name": "Ana Vorr"}
VOCABULARY = load("statements")


def worded(relation: str) -> list[str]:
    return list(wordings(Triple("Dune Rain", relation, TAILS[RELATIONS[relation].kind])))


@pytest.mark.parametrize("relation", sorted(set(RELATIONS)))
def test_every_statement_is_recognised(relation: str) -> None:
    tail = TAILS[RELATIONS[relation].kind]
    for claim in worded(relation):
        page = Passage("", (f"{claim}.",))
        found = ground("Dune Rain", relation, tail, [(1, page)])
        assert found.status == "stated", claim


@pytest.mark.parametrize("relation", sorted(set(RELATIONS)))
def test_every_citation_is_taken_off_again(relation: str) -> None:
    for claim in worded(relation):
        for choice in range(len(VOCABULARY["citations"])):
            reading = read_step(cite(claim, 7, choice))
            assert reading.cited == (7,)
            assert reading.claim.rstrip(".") == claim
            assert not reading.denies


def test_a_question_in_words_is_asked_with_earlier_answers() -> None:
    triples = [
        Triple("Oru", "when did … meet …", "1901"),
        Triple("Vel", "when did … meet …", "1901"),
    ]
    assert is_free(triples[0])
    assert "when did Oru meet Vel?" in state(triples, 0)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("He lived in Oru.", "According to Passage 1, Ana Vorr lived in Oru."),
        ("Her house is in Oru.", "According to Passage 1, Ana Vorr's house is in Oru."),
        ("In 1901 she left.", "Passage 1 says of Ana Vorr: “In 1901 she left.”"),
        ("He and his wife left.", "Passage 1 says of Ana Vorr: “He and his wife left.”"),
    ],
)
def test_a_quotation_names_its_subject(sentence: str, expected: str) -> None:
    page = Passage("Ana Vorr (poet)", (sentence,))
    assert quote(page, 1, 0, "", 0) == expected


def test_a_long_quotation_ends_behind_what_is_needed() -> None:
    sentence = f"Ana Vorr met Ors Velt in Oru, and then {'went on and on ' * 30}."
    page = Passage("Ana Vorr", (sentence,))
    assert quote(page, 1, 0, "Ors Velt", 0).endswith("met Ors Velt in Oru.")
    assert quote(page, 1, 0, "Ors", 0).endswith("in Oru.")
    assert len(quote(page, 1, 0, "nowhere", 0)) > 320
