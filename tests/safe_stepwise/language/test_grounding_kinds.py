"""Kinds of wording that were misread on rows elsewhere, with made-up names."""

import pytest

from safe_stepwise.language.grounding import ground
from safe_stepwise.records import Passage


@pytest.mark.parametrize(
    ("title", "text", "head", "relation", "tail", "is_stated"),
    [
        (
            "Ors Vorr",
            "Ors Vorr (Florence, 1820; Vienna, 18 January 1892) wrote.",
            "",
            "place of death",
            "Vienna",
            True,
        ),
        ("Ors Vorr", "Ors Vorr( 19 July 1886, Oru- 29 May 1972, Vel) wrote.", "", "place of death", "Vel", True),
        ("Ors Vorr", "Ors Vorr( Oru, 1894- Vel, 1978) wrote.", "", "place of birth", "Oru", True),
        (
            "Dune",
            "Dune is a film, marking the debut directorial work of actress Ana Velt.",
            "",
            "director",
            "Ana Velt",
            True,
        ),
        ("Dune", "Dune is a film produced by one of its stars, Ana Velt.", "", "producer", "Ana Velt", True),
        ("Dune", "Dune is a film directed by Mara Kole starring actress Ana Velt.", "", "director", "Ana Velt", False),
        (
            "Dune",
            "Dune is a bar founded in 1971 by country singer Ana Velt in Oru.",
            "",
            "founded by",
            "Ana Velt",
            True,
        ),
        ("Dune", "Dune is a film starring Edo Kort, who also produced it.", "", "producer", "Edo Kort", True),
        ("Ors Vorr", "Ors Vorr is a Kelvia Prize-winning poet.", "", "award received", "Kelvia Prize", True),
        ("Ors Vorr", "Ors Vorr has received five Kelvia nominations.", "", "award received", "Kelvia", False),
        (
            "Edo Kort",
            "Edo Kort, born in Denver, founded a band with Ors Vorr.",
            "Ors Vorr",
            "place of birth",
            "Denver",
            False,
        ),
        ("Edo Kort", "Denver is the birthplace of Ors Vorr.", "Ors Vorr", "place of birth", "Denver", True),
        ("Ors Vorr", "Ors Vorr died before 1492.", "", "date of death", "1492", False),
        ("Ors Vorr", "Ors Vorr was born at Oru High School.", "", "place of birth", "Oru", False),
    ],
)
def test_a_kind_of_wording(title: str, text: str, head: str, relation: str, tail: str, is_stated: bool) -> None:
    found = ground(head or title, relation, tail, [(1, Passage(title, (text,)))])
    assert (found.status == "stated") is is_stated, found
