"""Whose child, parent, spouse or sibling somebody is, in many ways of saying so."""

import pytest

from safe_stepwise.language.cues import Role, roles_of
from safe_stepwise.language.mentions import mentions
from safe_stepwise.language.reading import read
from safe_stepwise.records import Passage

SAID = [
    ("She was the daughter of Ors Velt.", "parent"),
    ("She was the youngest daughter of the painter Ors Velt and his wife Ida.", "parent"),
    ("She was the daughter of Kel, 3rd Earl of Oru (1801–1870), by his wife, Ors Velt.", "parent"),
    ("She was born in Oru to Kel Vorr, a farmer, and the teacher Ors Velt.", "parent"),
    ("Born the third of seven children to Kel and Ors Velt, she left early.", "parent"),
    ("Her parents were Kel Vorr and Ors Velt.", "parent"),
    ("Her parents, Kel Vorr and Ors Velt, were farmers.", "parent"),
    ("Her father was Ors Velt, son of the mayor.", "father"),
    ("Her father, Ors Velt, was a smith.", "father"),
    ("Ors Velt was her father.", "father"),
    ("Her mother, née Ors Velt, was a smith.", "mother"),
    ("She lost her mother, the singer Ors Velt, at six.", "mother"),
    ("Ors Velt's daughter Ana became a poet.", "parent"),
    ("Ors Velt had a daughter, Ana.", "parent"),
    ("She is the mother of Ors Velt.", "child"),
    ("He fathered Ors Velt.", "child"),
    ("Her son Ors Velt became king.", "child"),
    ("She had two sons, Kel and Ors Velt.", "child"),
    ("Her children include the singer Ors Velt.", "child"),
    ("Ors Velt was her only son.", "child"),
    ("He was succeeded by his eldest son, Ors Velt.", "child"),
    ("They had three children: Kel, Ors Velt and Ida.", "child"),
    ("She married Ors Velt in 1901.", "spouse"),
    ("She was married to the painter Ors Velt, a grandson of Kel.", "spouse"),
    ("In 1901 she became the wife of Ors Velt.", "spouse"),
    ("Her husband, Ors Velt, died young.", "spouse"),
    ("Ors Velt was her first husband.", "spouse"),
    ("Ors Velt married her in 1901.", "spouse"),
    ("She was Queen Consort of Oru by marriage to King Ors Velt.", "spouse"),
    ("She is the widow of Ors Velt.", "spouse"),
    ("She was a sister of Ors Velt.", "sibling"),
    ("Her brothers were Kel and Ors Velt.", "sibling"),
    ("Ors Velt was her elder brother.", "sibling"),
    ("She was the niece of Ors Velt.", "other"),
    ("She was the granddaughter of Ors Velt.", "other"),
    ("She was a sister-in-law of Ors Velt.", "other"),
    ("She married Kel Vorr, the son of Ors Velt.", "other"),
    ("Her father, Kel Vorr, was the son of Ors Velt.", "other"),
    ("She starred with Ors Velt, a friend of Kel.", None),
    ("There Ors Velt and her husband kept it.", "spouse"),
    ("Ors Velt and her son Kel kept it.", "parent"),
    ("She met Ors Velt in Oru.", None),
]  # fmt: skip


def roles(sentence: str) -> frozenset[Role]:
    """What a sentence of a passage about Ana Vorr calls Ors Velt."""
    text = read(Passage("Ana Vorr", (sentence,)))
    start, end = mentions(text, "Ors Velt")[0]
    return roles_of(text.clean, start, end, *text.sentence_span(start))


@pytest.mark.parametrize(("sentence", "role"), SAID)
def test_a_relative_is_read_with_its_direction(sentence: str, role: str | None) -> None:
    found = roles(sentence)
    assert found == ({role} if role else found & {"other"})


@pytest.mark.parametrize(
    ("sentence", "role"),
    [
        ("The father of Ana Vorr was Ors Velt, a smith.", "father"),
        ("She was the wife of Kel, niece of Ida, and second wife of the poet Ors Velt.", "spouse"),
        ("She is the daughter of the founder Ors Velt and his second wife Ida.", "parent"),
        ("She was the fourth child, of Kel Vorr and Ors Velt.", "parent"),
        ("She had two daughters, Ana, who married Kel, and Ors Velt.", "child"),
        ("Also called Vorr, she bore him a son named Ors Velt.", "child"),
        ("She was the daughter of Kel, by his marriage to Ors Velt.", "parent"),
        ("She was an actress born in Oru, and was married to Ors Velt.", "spouse"),
    ],
)  # fmt: skip
def test_what_other_hands_write(sentence: str, role: str) -> None:
    test_a_relative_is_read_with_its_direction(sentence, role)


def test_two_things_said_at_once() -> None:
    assert "spouse" in roles("She was married to and collaborated with Ors Velt.")
