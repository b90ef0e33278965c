"""Every wording of a step is one that the checker's reading recognises."""

from __future__ import annotations

from typing import get_args

import pytest

from safe_stepwise.checking.statements import is_free, names_subject, quote_sentence, state, wordings
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.checking.wordings import WordingStyle, phrase
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
def test_whatever_stands_around_a_claim_is_taken_off_again(relation: str) -> None:
    for number, claim in enumerate(worded(relation)):
        for style in get_args(WordingStyle):
            for seed in range(12):
                around = {"k": seed % 2 or None, "m": 5, "what": "who made Dune Rain"}
                said = f"{seed} {number}"
                text = phrase("fact", said, style=style, n=7, claim=claim, **around)
                reading = read_step(text)
                assert reading.cited == (7,), text
                assert claim.lower() in reading.claim.lower(), text
                assert not reading.denies, text


def test_a_question_in_words_is_asked_with_earlier_answers() -> None:
    triples = [Triple("Oru", "when did … meet …", "1901"), Triple("Vel", "when did … meet …", "1901")]
    assert is_free(triples[0])
    assert "when did Oru meet Vel?" in state(triples, 0)


@pytest.mark.parametrize(
    ("sentence", "expected", "named"),
    [
        ("He lived in Oru.", "Ana Vorr lived in Oru.", True),
        ("Her house is in Oru.", "Ana Vorr's house is in Oru.", True),
        ("In 1901 she left.", "In 1901 she left.", False),
        ("He and his wife left.", "He and his wife left.", False),
    ],
)
def test_a_quotation_names_its_subject(sentence: str, expected: str, named: bool) -> None:
    page = Passage("Ana Vorr (poet)", ("Ana Vorr was a poet.", sentence))
    assert quote_sentence(page, 1, "") == expected
    assert names_subject(page, expected) is named


def test_whom_a_pronoun_means_is_not_guessed() -> None:
    page = Passage("Mary, mother of Jesus", ("Luther wrote much.", "His last thoughts are kept."))
    assert quote_sentence(page, 1, "") == "His last thoughts are kept."
    assert quote_sentence(Passage("Ana Vorr", ("She lived in Oru.",)), 0, "") == "She lived in Oru."


def test_a_long_quotation_ends_behind_what_is_needed() -> None:
    sentence = f"Ana Vorr met Ors Velt in Oru, and then {'went on and on ' * 30}."
    page = Passage("Ana Vorr", (sentence,))
    assert quote_sentence(page, 0, "Ors Velt").endswith("met Ors Velt in Oru.")
    assert quote_sentence(page, 0, "Ors").endswith("in Oru.")
    page = Passage("Ana Vorr", (f"Ors Velt (a poet, it is said) left, {'and on ' * 80}.",))
    assert quote_sentence(page, 0, "Ors Velt") == "Ors Velt (a poet, it is said) left."
    assert len(quote_sentence(page, 0, "nowhere")) > 320
