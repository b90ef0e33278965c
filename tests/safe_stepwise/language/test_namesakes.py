"""Each clue fires, and with the smallest change to the text does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.language.namesakes import are_name_alikes, epithet, explain_difference, extend_name
from safe_stepwise.language.reading import Text, read
from safe_stepwise.records import Passage


def page(title: str, *sentences: str) -> Text:
    return read(Passage(title, sentences))


def film(credit: str) -> Text:
    return page("Dune Rain", f"Dune Rain is a 1954 film directed by {credit}.")


@pytest.mark.parametrize(
    ("credit", "title", "apart"),
    [
        ("Ors Velt the Younger", "Ors Velt the Elder", True),
        ("Ors Velt the Elder", "Ors Velt the Elder", False),
        ("Ors Velt", "Ors Velt the Elder", False),
        ("Ors Velt, Jr.", "Ors Velt, Sr.", True),
        ("Ors Velt, Jr.", "Ors Velt Junior", False),
        ("Ors Velt II", "Ors Velt III", True),
        ("Ors Velt II", "Ors Velt II", False),
        ("Ors Velt B", "Ors Velt", True),
        ("Ors Velt B", "Ors Velt B", False),
        ("Ors Velt a while ago", "Ors Velt", False),
        ("Ors Velt", "Ors Velt", False),
        ("Ors Velt XIII", "Ors Velt XIV", True),
    ],
)
def test_by_epithet(credit: str, title: str, apart: bool) -> None:
    subject = page(title, f"{title} was a film director.")
    assert bool(explain_difference("Ors Velt", "director", film(credit), subject)) is apart


@pytest.mark.parametrize(
    ("said", "title", "relation", "apart"),
    [
        ("Oru, Belk Province", "Oru, Tarn Province", "place of birth", True),
        ("Oru in Belk Province", "Oru, Tarn Province", "place of birth", True),
        ("Oru (Belk Province)", "Oru, Tarn Province", "place of birth", True),
        ("Oru, Belk", "Oru, Tarn", "place of birth", True),
        ("Oru, Belk Province", "Oru, Tarn", "place of birth", False),
        ("Oru, Belk Province", "Oru, Belk", "place of birth", False),
        ("Oru, Belk Province", "Oru", "place of birth", False),
        ("Oru", "Oru, Tarn", "place of birth", False),
        ("Oru, Province", "Oru, Tarn", "place of birth", False),
        ("Oru, where she sang", "Oru, Tarn", "place of birth", False),
        ("Oru, Belk Province", "Oru, Tarn", "director", False),
        ("Oru, Belk Province", "Oru, Tarn", "sang in", False),
    ],
)
def test_by_region(said: str, title: str, relation: str, apart: bool) -> None:
    birth = page("Ana Vorr", f"Ana Vorr was born in {said}.")
    reason = explain_difference("Oru", relation, birth, page(title, "It is a town."))
    assert bool(reason) is apart


WARNING = "Not to be confused with the other of the same name."


@pytest.mark.parametrize(
    ("relation", "sentences", "apart"),
    [
        ("composer", ("Ors Velt is a footballer.", WARNING), True),
        ("composer", ("Ors Velt is a footballer.",), False),
        ("composer", ("Ors Velt is a pianist.", WARNING), False),
        ("director", ("Ors Velt is a pianist.", WARNING), True),
        ("spouse", ("Ors Velt is a footballer.", WARNING), False),
        ("composer", ("Ors Velt is a footballer.", "Not to be confused with the composer Ors Velt."), True),
    ],
)
def test_by_hatnote(relation: str, sentences: tuple[str, ...], apart: bool) -> None:
    said = page("Dune Rain", "Dune Rain is old. It is by Ors Velt.")
    assert bool(explain_difference("Ors Velt", relation, said, page("Ors Velt", *sentences))) is apart


def test_by_a_hatnote_where_the_name_is_said() -> None:
    said = page("Dune Rain", "Dune Rain is by Ors Velt.", WARNING)
    assert explain_difference("Ors Velt", "composer", said, page("Ors Velt", "He is a footballer."))


@pytest.mark.parametrize(
    ("opening", "apart"),
    [
        ("Ors Velt is a footballer.", True),
        ("Ors Velt is a painter.", False),
        ("Ors Velt is a baker.", False),
        ("Ors Velt is a footballer and painter.", False),
    ],
)
def test_by_a_hatnote_that_names_both(opening: str, apart: bool) -> None:
    said = page(
        "Ana Vorr",
        "Ana Vorr was a poet.",
        "She married the painter Ors Velt; the painter Ors Velt is not to be confused with the"
        " footballer of the same name.",
    )
    assert bool(explain_difference("Ors Velt", "spouse", said, page("Ors Velt", opening))) is apart


@pytest.mark.parametrize(
    ("relation", "life", "apart"),
    [
        # of a film of 1954
        ("director", "1860 – 1938", True),
        ("director", "1860 – 1939", False),
        ("director", "1954 – 1999", False),
        ("director", "1955 – 1999", True),
        ("performer", "1955 – 1999", True),
        ("author", "1700 – 1770", False),
        ("director", "born 1955", True),
        ("director", "born 1920", False),
        ("director", "died 1938", True),
        ("composer", "1860 – 1938", False),
    ],
)
def test_by_the_dates_of_a_work(relation: str, life: str, apart: bool) -> None:
    subject = page("Ors Velt", f"Ors Velt ({life}) was a director and composer.")
    assert bool(explain_difference("Ors Velt", relation, film("Ors Velt"), subject)) is apart


@pytest.mark.parametrize(
    ("relation", "life", "apart"),
    [
        # of somebody born in 1901
        ("father", "1860 – 1899", True),
        ("father", "1860 – 1900", False),
        ("father", "1891 – 1950", False),
        ("father", "1892 – 1950", True),
        ("mother", "1892 – 1950", True),
        ("spouse", "1840 – 1899", True),
        ("spouse", "1841 – 1899", False),
        ("spouse", "1961 – 1999", False),
        ("sibling", "1962 – 1999", True),
        ("sibling", "died 1899", False),
        ("child", "1801 – 1870", False),
    ],
)
def test_by_the_dates_of_relatives(relation: str, life: str, apart: bool) -> None:
    said = page("Ana Velt", "Ana Velt (1901 – 1970) was of the house of Ors Velt.")
    subject = page("Ors Velt", f"Ors Velt ({life}) was a duke.")
    assert bool(explain_difference("Ors Velt", relation, said, subject)) is apart


def test_without_a_date_nothing_is_told_apart() -> None:
    undated = page("Dune Rain", "Dune Rain is a film directed by Ors Velt.")
    subject = page("Ors Velt", "Ors Velt (1801 – 1870) was a director.")
    assert explain_difference("Ors Velt", "director", undated, subject) == ""
    ageless = page("Ors Velt", "Ors Velt was a director.")
    assert explain_difference("Ors Velt", "director", film("Ors Velt"), ageless) == ""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("It is by Ors Velt the Elder.", "ors velt the elder"),
        ("It is by Ors Velt, Jr.", "ors velt jr"),
        ("It is by Ors Velt IV, a poet.", "ors velt iv"),
        ("It is by Ors Velt B.", "ors velt b"),
        ("It is by Ors Velt.", ""),
        ("It is by Ors Velt a year ago.", ""),
        ("It is by Ors Velt Karn.", ""),
        ("It is by Ila Velt the Elder.", ""),
    ],
)
def test_a_name_with_its_epithet(said: str, expected: str) -> None:
    assert extend_name("Ors Velt", page("Dune Rain", said)) == expected


def test_the_subject_itself_is_no_extension() -> None:
    assert extend_name("Ors Velt", page("Ors Velt II", "Ors Velt II was a duke.")) == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Ors Velt the Elder", "elder"),
        ("Ors Velt Sr.", "senior"),
        ("Ors Velt, Jr.", "junior"),
        ("Ors Velt the Second", "ii"),
        ("Ors Velt VIII", "viii"),
        ("Ors Velt (painter)", "painter"),
        ("Ors Velt", ""),
        ("Elder Velt", ""),
        ("Ors Civi", ""),
        ("", ""),
    ],
)
def test_epithets(name: str, expected: str) -> None:
    assert epithet(name) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Ors Velt the Elder", "Ors Velt the Younger", True),
        ("Ors Velt (painter)", "Ors Velt (footballer)", True),
        ("Ors Velt II", "Ors Velt III", True),
        ("Ors Velt, Jr.", "Ors Velt Sr", True),
        ("Ors Velt Jr", "Ors Velt Junior", False),
        ("Ors Velt the Second", "Ors Velt II", False),
        ("Ors Velt", "Ors Velt II", False),
        ("Ors Velt II", "Ila Velt III", False),
        ("Ors XIII", "Ors XIV", True),
    ],
)
def test_name_alikes(one: str, other: str, expected: bool) -> None:
    assert are_name_alikes(one, other) is are_name_alikes(other, one) is expected


@given(st.text(max_size=40))
def test_no_name_is_its_own_name_alike(name: str) -> None:
    assert not are_name_alikes(name, name)
