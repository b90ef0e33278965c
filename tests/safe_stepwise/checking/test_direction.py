"""Which way a sentence joins two names, by its parse: clauses without their verb, possessions, nations, denials."""

from __future__ import annotations

import pytest

from safe_stepwise.checking.faithfulness.house import stance_on
from safe_stepwise.checking.faithfulness.step_text import Stance, parse_text
from safe_stepwise.checking.support import weigh
from safe_stepwise.records import Passage, Triple

FILM = Triple("Dune Rain", "director", "Ana Vorr")
KIN = Triple("Ana Vorr", "father", "Ors Velt")
NATION = Triple("Ana Vorr", "country of citizenship", "France")


@pytest.mark.parametrize(
    ("text", "fact", "stance"),
    [
        ("Dune Rain was directed by Ana Vorr and Ford by Ors Velt.", FILM, "states"),
        ("Ford was directed by Ana Vorr and Dune Rain by Ors Velt.", FILM, "no"),
        ("Dune Rain was not directed by Ana Vorr.", FILM, "no"),
        ("Perhaps Dune Rain was directed by Ana Vorr.", FILM, "no"),
        ("The direction of Dune Rain was by Ana Vorr.", FILM, "states"),
        ("The film Ana Vorr was directed by Dune Rain.", FILM, "reversed"),
        ("Ors Velt had a child, Ana Vorr.", KIN, "states"),
        ("Ana Vorr had a child, Ors Velt.", KIN, "reversed"),
        ("Ana Vorr is the child of Ors Velt.", KIN, "states"),
        ("Ors Velt is the son of Ana Vorr.", KIN, "reversed"),
        ("Ana Vorr was of French nationality.", NATION, "states"),
        ("Ana Vorr is a French poet.", NATION, "states"),
        ("Ana Vorr directed a French film.", NATION, "near"),
    ],
)
def test_the_stance_of_a_sentence(text: str, fact: Triple, stance: Stance) -> None:
    entities = ("Dune Rain", "Ford", "Ana Vorr", "Ors Velt")
    assert stance_on(parse_text(text, (), (), entities), fact) in (
        (stance, "near") if stance == "no" else (stance,)
    )  # fmt: skip


def test_the_checker_and_the_house_rule_agree() -> None:
    page = Passage("Dune Rain", ("Dune Rain is a film directed by Ana Vorr.",))
    for text, is_right in (
        ("Ana Vorr directed Dune Rain.", True),
        ("Dune Rain directed Ana Vorr.", False),
        ("Dune Rain is the director of Ana Vorr.", False),
    ):
        assert (stance_on(parse_text(text), FILM) == "states") is is_right
        assert (weigh(text, [(1, page)], facts=[FILM]).contradiction is None) is is_right
