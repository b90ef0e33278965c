"""What passages say about a triple: wordings that state it, near misses, contradictions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.language.grounding import Finding, find_further_values, ground, stated_dates
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.records import Passage

TERRITORY = "located in the administrative territorial entity"

# Relation: head, opening sentence, tail, sentences that state it, sentences that do not.
Case = tuple[str, str, str, tuple[str, ...], tuple[str, ...]]
POET = ("Ana Vorr", "Ana Vorr was a poet.")
FILM = ("Dune Rain", "Dune Rain is a film.")
SONG = ("Dune Rain", "Dune Rain is a song.")
FIRM = ("Velt Motors", "Velt Motors is a firm.")
WORDINGS: dict[str, Case] = {
    "place of birth": (
        *POET, "Oru",
        ("She was born in Oru.", "She was born on 3 May 1901 in Oru.", "A native of Oru, she sang.",
         "She came from Oru.", "Her birthplace was Oru."),
        ("She moved to Oru.", "She died in Oru.", "She was raised in Oru.", "She studied in Oru.",
         "She was born in 1901 and moved to Oru."),
    ),
    "place of death": (
        *POET, "Vel",
        ("She died in Vel.", "She was killed near Vel.", "She passed away in 1970 in Vel.",
         "She drowned at Vel."),
        ("She was born in Vel.", "She moved to Vel.", "She is buried in Vel.",
         "She worked in Vel."),
    ),
    "date of birth": (
        *POET, "3 May 1901",
        ("She was born on May 3, 1901.", "She was born in Oru on 3 May 1901.",
         "She was born in May 1901."),
        ("She died on 3 May 1901.", "She married on 3 May 1901.", "She moved in May 1901."),
    ),
    "date of death": (
        *POET, "4 June 1970",
        ("She died on 4 June 1970.", "She was killed in 1970.", "She drowned on June 4, 1970."),
        ("She was born on 4 June 1970.", "She opened a shop in 1970.", "She moved in June 1970."),
    ),
    "place of burial": (
        *POET, "Vel",
        ("She is buried in Vel.", "She was laid to rest in Vel.", "Her grave is in Vel."),
        ("She died in Vel.", "She was born in Vel.", "She lived in Vel."),
    ),
    "cause of death": (*POET, "fever", ("She died of fever.", "A fever killed her."), ()),
    "educated at": (
        *POET, "Vel College",
        ("She studied at Vel College.", "She graduated from Vel College in 1920.",
         "She was educated at Vel College."),
        ("She lectured at Vel College.", "She performed at Vel College.",
         "She lived beside Vel College."),
    ),
    "employer": (
        *POET, "Velt Works",
        ("She worked for Velt Works.", "She joined Velt Works in 1930.",
         "She was employed by Velt Works."),
        ("She visited Velt Works.", "She lived beside Velt Works.", "She died at Velt Works."),
    ),
    "award received": (
        *POET, "Golden Reed",
        ("She won the Golden Reed in 1930.", "She received the Golden Reed.",
         "She was awarded the Golden Reed."),
        ("She was nominated for the Golden Reed.", "She sat on the jury of the Golden Reed.",
         "She wrote about the Golden Reed."),
    ),
    "spouse": (
        *POET, "Ors Velt",
        ("She married Ors Velt in 1920.", "Her husband was the painter Ors Velt.",
         "She was the wife of Ors Velt.", "Ors Velt and Ana Vorr married in 1920.",
         "She starred with her husband Ors Velt."),
        ("She starred alongside Ors Velt.", "Her co-star was Ors Velt.", "She met Ors Velt.",
         "Her father was Ors Velt.", "Her brother was Ors Velt."),
    ),
    "father": (
        *POET, "Ors Velt",
        ("She was the daughter of Ors Velt.", "Her father was Ors Velt.",
         "She was born to Ors Velt."),
        ("She married Ors Velt.", "Her friend was Ors Velt.", "Her brother was Ors Velt."),
    ),
    "mother": (
        *POET, "Ila Velt",
        ("Her mother was Ila Velt.", "She was born to Ors Velt and Ila Velt.",
         "She was the daughter of Ila Velt."),
        ("Her sister was Ila Velt.", "Her co-star was Ila Velt.", "She met Ila Velt."),
    ),
    "child": (
        *POET, "Ila Velt",
        ("Her daughter Ila Velt was a singer.", "She was the mother of Ila Velt."),
        ("She met Ila Velt.", "Her sister was Ila Velt.", "Her partner was Ila Velt."),
    ),
    "sibling": (
        *POET, "Ila Velt",
        ("Her sister was Ila Velt.", "She was the twin of Ila Velt.",
         "Ila Velt and her sister Ana Vorr sang."),
        ("Her wife was Ila Velt.", "She met Ila Velt.", "Her friend was Ila Velt."),
    ),
    "director": (
        *FILM, "Ana Vorr",
        ("It was directed by Ana Vorr.", "Ana Vorr directed it.", "Its director was Ana Vorr.",
         "It was written and directed by Ana Vorr."),
        ("It starred Ana Vorr.", "It was directed by Ors Velt and starred Ana Vorr.",
         "It was produced by Ana Vorr.", "It was written by Ana Vorr."),
    ),
    "author": (
        "Dune Rain", "Dune Rain is old.", "Ana Vorr",
        ("It was written by Ana Vorr.", "It is a novel by Ana Vorr.", "Ana Vorr wrote it."),
        ("It was illustrated by Ana Vorr.", "It was edited by Ana Vorr.",
         "It was praised by Ana Vorr."),
    ),
    "screenwriter": (
        *FILM, "Ana Vorr",
        ("Its screenplay is by Ana Vorr.", "It was written by Ana Vorr.",
         "It was written and directed by Ana Vorr."),
        ("It was produced by Ana Vorr.", "It was directed by Ana Vorr.", "It starred Ana Vorr."),
    ),
    "producer": (
        *FILM, "Ana Vorr",
        ("It was produced by Ana Vorr.", "Its producer was Ana Vorr."),
        ("It starred Ana Vorr.", "It was directed by Ana Vorr."),
    ),
    "composer": (
        *FILM, "Ana Vorr",
        ("Its music was composed by Ana Vorr.", "It was scored by Ana Vorr.",
         "Ana Vorr composed the score."),
        ("It starred Ana Vorr.", "It was directed by Ana Vorr."),
    ),
    "performer": (
        *SONG, "Ana Vorr",
        ("It was performed by Ana Vorr.", "It was recorded by Ana Vorr.", "Ana Vorr sang it."),
        ("It was produced by Ana Vorr.", "It was praised by Ana Vorr."),
    ),
    "cast member": (
        *FILM, "Ana Vorr",
        ("It stars Ana Vorr.", "The lead role is played by Ana Vorr.", "It was made starring"
         " Ana Vorr."),
        ("It was directed by Ana Vorr.", "It was praised by Ana Vorr."),
    ),
    "presenter": (
        "Dune Rain", "Dune Rain is a show.", "Ana Vorr",
        ("It was hosted by Ana Vorr.", "Its presenter is Ana Vorr."),
        ("It was produced by Ana Vorr.", "It was praised by Ana Vorr."),
    ),
    "creator": (
        "Dune Rain", "Dune Rain is old.", "Ana Vorr",
        ("It was created by Ana Vorr.", "It was painted by Ana Vorr.", "Ana Vorr designed it."),
        ("It was bought by Ana Vorr.", "It was praised by Ana Vorr."),
    ),
    "publisher": (
        "Dune Rain", "Dune Rain is old.", "Velt Press",
        ("It was published by Velt Press.", "Its publisher was Velt Press."),
        ("It was reviewed by Velt Press.", "It was bought by Velt Press."),
    ),
    "founded by": (
        *FIRM, "Ana Vorr",
        ("It was founded by Ana Vorr.", "Ana Vorr established it in 1901.",
         "Its founder was Ana Vorr."),
        ("It was bought by Ana Vorr.", "It employs Ana Vorr."),
    ),
    "manufacturer": (
        "Velt Nine", "The Velt Nine is a van.", "Oru Works",
        ("It was manufactured by Oru Works.", "It was built by Oru Works."),
        ("It was reviewed by Oru Works.", "It was hosted by Oru Works."),
    ),
    "owned by": (
        *FIRM, "Oru Works",
        ("It is owned by Oru Works.", "It is a subsidiary of Oru Works.",
         "Oru Works bought it in 1930."),
        ("It competed with Oru Works.", "It was founded by Oru Works."),
    ),
    "record label": (
        *SONG, "Reed Records",
        ("It was released by Reed Records.", "It came out on the label Reed Records."),
        ("It was written by Reed Records.", "It was praised by Reed Records."),
    ),
    "editor": (
        "Oru Gazette", "The Oru Gazette is a paper.", "Ana Vorr",
        ("It was edited by Ana Vorr.", "Its editor was Ana Vorr."),
        ("It was founded by Ana Vorr.", "It praised Ana Vorr."),
    ),
    "country of citizenship": (
        *POET, "Kelvia",
        ("She was a Kelvian citizen.", "She was a citizen of Kelvia.", "She came from Kelvia."),
        ("She toured in Kelvia.", "She emigrated to Kelvia.", "She studied in Kelvia."),
    ),
    "country": (
        "Oru", "Oru is a town.", "Kelvia",
        ("It lies in Kelvia.", "It is in the north of Kelvia.", "It is a Kelvian port."),
        ("Its choir visited Kelvia.", "Its delegation came to Kelvia."),
    ),
    "country of origin": (
        *FILM, "Kelvia",
        ("It was made in Kelvia.", "It is a Kelvian production."),
        ("It was remade in Kelvia.", "It was banned in Kelvia.", "It was shown in Kelvia."),
    ),
    "publication date": (
        *FILM, "1954",
        ("It was released in 1954.", "It premiered on 3 May 1954.", "It came out in 1954."),
        ("It was restored in 1954.", "It was remade in 1954."),
    ),
    "inception": (
        *FIRM, "1901",
        ("It was founded in 1901.", "It was established on 3 May 1901."),
        ("It opened an office in 1901.", "It was renamed in 1901.", "It closed in 1901."),
    ),
    "shares border with": (
        "Kelvia", "Kelvia is a country.", "Marnia",
        ("It is bordered by Marnia.", "Marnia borders it.", "It is next to Marnia."),
        ("It signed a treaty with Marnia.", "A road leads to Marnia.", "It exports to Marnia."),
    ),
    "capital": (
        "Kelvia", "Kelvia is a country.", "Oru",
        ("Its capital is Oru.", "Oru is its capital.", "The capital of Kelvia is Oru."),
        ("It held a fair in Oru.", "It had a concert in Oru.", "Its town Oru is old."),
    ),
    "capital of": (
        "Oru", "Oru is a town.", "Kelvia",
        ("It is the capital of Kelvia.", "It became the capital of Kelvia in 1901."),
        ("It had trade with Kelvia.", "It signed a treaty with Kelvia."),
    ),
    "headquarters location": (
        *FIRM, "Oru",
        ("It is based in Oru.", "Its headquarters are in Oru.", "Its head office is in Oru."),
        ("It has a branch in Oru.", "It sells vans in Oru.", "It had a fire in Oru."),
    ),
    TERRITORY: (
        "Oru", "Oru is a town.", "Belk Province",
        ("It lies in Belk Province.", "It is located in Belk Province.",
         "It is part of Belk Province."),
        ("Its choir visited Belk Province.", "It held a fair with Belk Province."),
    ),
}  # fmt: skip


def find(head: str, relation: str, tail: str, *sentences: str, title: str = "") -> Finding:
    return ground(head, relation, tail, [(1, Passage(title or head, sentences))])


def test_every_relation_of_the_vocabulary_is_covered() -> None:
    assert set(WORDINGS) == set(RELATIONS)


@pytest.mark.parametrize(
    ("relation", "sentence"), [(relation, said) for relation, case in WORDINGS.items() for said in case[3]]
)
def test_stated(relation: str, sentence: str) -> None:
    head, opening, tail, *_ = WORDINGS[relation]
    found = find(head, relation, tail, opening, sentence)
    assert (found.status, found.passage, found.sentence) == ("stated", 1, 1)


@pytest.mark.parametrize(
    ("relation", "sentence"), [(relation, said) for relation, case in WORDINGS.items() for said in case[4]]
)
def test_near_misses(relation: str, sentence: str) -> None:
    head, opening, tail, *_ = WORDINGS[relation]
    found = find(head, relation, tail, opening, sentence)
    assert found.status in ("together", "other")
    assert found.sentence == 1


@pytest.mark.parametrize("relation", WORDINGS)
def test_absent_and_elsewhere(relation: str) -> None:
    head, opening, tail, _said, _ = WORDINGS[relation]
    assert find(head, relation, tail, opening).status == "absent"
    other = find(head, relation, tail, "Marel is a song.", "It is short.", title="Marel")
    assert other == Finding("absent")
    if RELATIONS[relation].kind in ("name", "place"):
        elsewhere = find(head, relation, tail, f"Marel heard of {tail}.", title="Marel")
        assert elsewhere == Finding("mentioned", 1, 0)
    assert ground(head, relation, tail, []) == Finding("absent")


BOTH = "Ana Vorr (3 May 1901, Oru – 4 June 1970, Vel) was a poet."


@pytest.mark.parametrize(
    ("relation", "tail", "status", "value"),
    [
        ("date of birth", "May 3, 1901", "stated", ""),
        ("date of birth", "1901", "stated", ""),
        ("date of birth", "4 June 1970", "other", "3 may 1901"),
        ("date of birth", "3 May 1902", "other", "3 may 1901"),
        ("date of death", "4 June 1970", "stated", ""),
        ("date of death", "3 May 1901", "other", "4 june 1970"),
        ("place of birth", "Oru", "stated", ""),
        ("place of birth", "Vel", "other", "Oru"),
        ("place of death", "Vel", "stated", ""),
        ("place of death", "Oru", "other", "Vel"),
    ],
)
def test_a_life_span_says_what_happened_when_and_where(relation: str, tail: str, status: str, value: str) -> None:
    found = find("Ana Vorr", relation, tail, BOTH)
    assert (found.status, found.value, found.sentence) == (status, value, 0)


@pytest.mark.parametrize(
    ("relation", "tail", "sentences", "status"),
    [
        # one sentence, two relations
        ("place of birth", "Oru", ["Born in Oru and raised in Vel, Ana Vorr sang."], "stated"),
        ("place of birth", "Vel", ["Born in Oru and raised in Vel, Ana Vorr sang."], "other"),
        ("place of death", "Vel", ["She was born in Vel and died in Oru."], "other"),
        ("place of death", "Oru", ["She was born in Vel and died in Oru."], "stated"),
        ("place of death", "Oru", ["She lived in Vel until her death in Oru."], "stated"),
        ("place of death", "Vel", ["She lived in Vel until her death in Oru."], "other"),
        ("educated at", "Vel College", ["Born at Vel College, she studied at Oru."], "together"),
        # a cue and the name in different sentences
        ("spouse", "Ors Velt", ["She was married.", "She starred with Ors Velt."], "together"),
        ("place of death", "Vel", ["She died in 1970.", "She had lived in Vel."], "together"),
        # an odd way to write a date
        ("date of birth", "26 April | 1897", ["Ana Vorr (26 April 1897 – 1970) sang."], "stated"),
        ("date of birth", "26 April 1897", ["Ana Vorr (26 April | 1897 – 1970) sang."], "stated"),
        ("date of birth", "27 April 1897", ["Ana Vorr (26 April 1897 – 1970) sang."], "other"),
        # a place under a former name, with more or less of it
        ("place of birth", "Bombay", ["She was born in Mumbai."], "stated"),
        ("place of birth", "Oru, Kelvia", ["She was born in Oru."], "stated"),
        ("place of birth", "Oru", ["She was born in Oru, Kelvia."], "stated"),
        ("place of birth", "Oru", ["She was born in Orum."], "other"),
        # a country contradicts no province
        (TERRITORY, "Belk Province", ["She lies in Kelvia."], "absent"),
        (TERRITORY, "Belk Province", ["She lies in Tarn Province."], "other"),
    ],
)
def test_a_sentence_with_two_things_in_it(relation: str, tail: str, sentences: list[str], status: str) -> None:
    assert find("Ana Vorr", relation, tail, *sentences).status == status


@pytest.mark.parametrize(
    ("opening", "tail", "status", "value"),
    [
        ("Ana Vorr was a Kelvian poet.", "Kelvia", "stated", ""),
        ("Ana Vorr was a Kelvian poet.", "Kelvian", "stated", ""),
        ("Ana Vorr was a German poet.", "Germany", "stated", ""),
        ("Ana Vorr was a Dutch poet.", "Netherlands", "stated", ""),
        ("Ana Vorr was a British poet.", "United Kingdom", "stated", ""),
        ("Ana Vorr was a poet from Kelvia.", "Kelvia", "stated", ""),
        ("Ana Vorr was a Marnish poet.", "Kelvia", "other", "Marnish"),
        ("Ana Vorr was a poet. She held Marnish citizenship.", "Kelvia", "other", "Marnish"),
        ("Ana Vorr was a citizen of Marnia.", "Kelvia", "other", "Marnia"),
        ("Ana Vorr was a poet.", "Kelvia", "absent", ""),
        ("Ana Vorr was a Kelvinist poet.", "Kelvia", "stated", ""),
    ],
)
def test_nations(opening: str, tail: str, status: str, value: str) -> None:
    found = find("Ana Vorr", "country of citizenship", tail, opening)
    assert (found.status, found.value) == (status, value)


@pytest.mark.parametrize(
    ("opening", "status", "value"),
    [
        ("Oru is a town in Kelvia.", "stated", ""),
        ("Oru is one of the towns of Kelvia.", "stated", ""),
        ("Oru is a town in Marnia.", "other", "Marnia"),
        ("Oru is a town in the Belk Province of Marnia.", "other", "Marnia"),
        ("Oru is a town in Belk, Marnia.", "other", "Marnia"),
    ],
)
def test_the_country_of_a_place(opening: str, status: str, value: str) -> None:
    found = find("Oru", "country", "Kelvia", opening)
    assert (found.status, found.value) == (status, value)


@pytest.mark.parametrize(
    ("relation", "tail", "sentence", "value"),
    [
        ("publication date", "1954", "It was released in 1960.", "1960"),
        ("publication date", "3 May 1954", "It was released on 4 May 1954.", "4 may 1954"),
        ("inception", "1954", "It was founded in 1960.", "1960"),
        ("capital", "Oru", "Its capital is Vel.", "Vel"),
        ("capital", "Oru", "Vel is its capital.", "Vel"),
        ("headquarters location", "Oru", "It is based in Vel.", "Vel"),
        ("place of burial", "Oru", "It is buried in Vel.", "Vel"),
        ("country of origin", "Kelvia", "It is a Marnish production.", "Marnish"),
    ],
)
def test_contradictions_name_the_other_value(relation: str, tail: str, sentence: str, value: str) -> None:
    found = find("Dune Rain", relation, tail, "Dune Rain is old.", sentence)
    assert (found.status, found.passage, found.sentence, found.value) == ("other", 1, 1, value)


def test_a_works_year_stands_in_its_opening() -> None:
    assert find("Dune Rain", "publication date", "1954", "It is a 1954 film.").status == "stated"
    found = find("Dune Rain", "publication date", "1954", "It is a 1960 film.")
    assert found == Finding("other", 1, 0, "1960")


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("Ana Vorr was born in Oru.", "stated"),
        ("Ana Maria Vorr was born in Oru.", "stated"),
        ("Ana Vorr died in Oru.", "together"),
        ("Ors Velt was born in Oru.", "mentioned"),
        ("Nobody came.", "absent"),
    ],
)
def test_a_passage_about_something_else(sentence: str, status: str) -> None:
    found = find("Ana Vorr", "place of birth", "Oru", "Vel is a town.", sentence, title="Vel")
    assert found.status == status


@pytest.mark.parametrize(
    ("head", "relation", "tail", "title", "sentences"),
    [
        ("Ana Vorr", "child", "Ila Velt", "Ila Velt", ["She is the daughter of Ana Vorr."]),
        ("Ana Vorr", "spouse", "Ors Velt", "Ors Velt", ["He was the husband of Ana Vorr."]),
        ("Ana Vorr", "spouse", "Ors Velt", "Oru Inn", ["Ors Velt and his wife Ana Vorr kept it."]),
        ("Dune Rain", "director", "Ana Vorr", "Ana Vorr", ["She directed Dune Rain in 1954."]),
        ("Velt Motors", "founded by", "Ana Vorr", "Ana Vorr", ["She founded Velt Motors."]),
        ("Kelvia", "capital", "Oru", "Oru", ["It is the capital of Kelvia."]),
    ],
)
def test_a_relation_read_from_its_tail(head: str, relation: str, tail: str, title: str, sentences: list[str]) -> None:
    assert find(head, relation, tail, *sentences, title=title).status == "stated"


def test_relatives_are_told_apart_by_their_full_names() -> None:
    page = ("Ana Vorr was a poet.", "Her brother Ors Vorr was born in Oru.")
    assert find("Mina Vorr", "place of birth", "Oru", *page, title="Ana Vorr").status == "mentioned"
    named = ("Oru is a town.", "Ana Vorr came.", "Ors studied at Vorr College.")
    found = find("Ana Vorr", "educated at", "Vorr College", *named, title="Oru")
    assert found.status == "mentioned"
    wed = ("Ors Vorr came in 1901.", "Vorr was the husband of Mina Dell.")
    assert find("Ana Vorr", "spouse", "Mina Dell", *wed, title="Oru").status == "mentioned"


def test_the_strongest_finding_of_several_passages() -> None:
    weak = Passage("Ana Vorr", ("Ana Vorr was a poet.", "She moved to Oru."))
    other = Passage("Vel", ("Vel is a town.", "Ana Vorr was born in Oru."))
    assert ground("Ana Vorr", "place of birth", "Oru", [(3, weak)]).passage == 3
    found = ground("Ana Vorr", "place of birth", "Oru", [(3, weak), (7, other)])
    assert found == Finding("stated", 7, 1)


def test_an_unknown_relation_needs_both_names_only() -> None:
    assert find("Ana Vorr", "sang in", "Oru", "She saw Oru.").status == "stated"
    assert find("Ana Vorr", "sang in", "Oru", "She saw Oru.", title="Vel").status == "mentioned"


# Known limits, each a wrong verdict on its smallest example


def test_a_visited_nation_is_none_of_hers() -> None:
    found = find("Ana Vorr", "country of citizenship", "Kelvia", "She toured Kelvia twice.")
    assert found.status == "together"


def test_issued_by_a_publisher() -> None:
    found = find("Dune Rain", "publisher", "Velt Press", "It was issued by Velt Press.")
    assert found.status == "stated"


def test_the_birthplace_of_somebody() -> None:
    said = "Oru is the birthplace of Ana Vorr."
    assert find("Ana Vorr", "place of birth", "Oru", said, title="Oru").status == "stated"


@pytest.mark.parametrize(
    ("relation", "tail", "sentence"),
    [
        ("place of birth", "Vel", "Her son was born in Vel."),
        ("place of death", "Vel", "Her father died in Vel."),
        ("date of birth", "1930", "Her son was born in 1930."),
        ("date of death", "1930", "Her father died in 1930."),
    ],
)
def test_a_relatives_life_is_not_hers(relation: str, tail: str, sentence: str) -> None:
    found = find("Ana Vorr", relation, tail, "Ana Vorr was a poet.", sentence)
    assert found.status == "together"


def test_married_and_starring_with_another() -> None:
    said = "She was married and starred alongside Ors Velt."
    assert find("Ana Vorr", "spouse", "Ors Velt", said).status == "together"


def test_a_mother_is_no_father() -> None:
    found = find("Ana Vorr", "father", "Ors Velt", "She was the mother of Ors Velt.")
    assert found.status == "together"


def test_what_is_denied_is_not_stated() -> None:
    found = find("Ana Vorr", "place of birth", "Oru", "She was not born in Oru.")
    assert found.status == "together"


def test_a_relatives_marriage() -> None:
    page = ("Oru is a town.", "Ana Vorr came.", "Ors Vorr was a husband.")
    assert find("Ana Vorr", "spouse", "Ors Vorr", *page, title="Oru").status == "mentioned"


def test_a_relative_in_the_next_sentence() -> None:
    page = ("Vel is a town.", "Ana Vorr came to it.", "Ors Vorr was born in Oru.")
    assert find("Ana Vorr", "place of birth", "Oru", *page, title="Vel").status == "mentioned"


# Dates and further values


@pytest.mark.parametrize(
    ("relation", "sentences", "expected"),
    [
        ("date of death", ("Ana Vorr (1901 – 1970) sang.",), ((0, "1970"),)),
        ("date of birth", ("Ana Vorr (1901 – 1970) sang.",), ((0, "1901"),)),
        ("date of death", ("She sang.", "She died on June 4, 1970."), ((1, "june 4 , 1970"),)),
        ("date of death", ("She was born in 1901.",), ()),
        ("date of death", ("She died on 4 June.",), ()),
        ("inception", ("It was founded in 1901.", "It closed in 1970."), ((0, "1901"),)),
        ("publication date", ("It came out in 1954.", "It was remade in 1970."), ((0, "1954"),)),
    ],
)
def test_stated_dates(relation: str, sentences: tuple[str, ...], expected: tuple[tuple[int, str], ...]) -> None:
    assert stated_dates(Passage("Ana Vorr", sentences), relation) == expected


@pytest.mark.parametrize(
    ("sentence", "relation", "tail", "expected"),
    [
        ("It was directed by Ana Vorr and Ors Velt.", "director", "Ana Vorr", ("Ors Velt",)),
        ("It was directed by Ana Vorr and Ors Velt.", "director", "Ors Velt", ("Ana Vorr",)),
        ("She won the Oru Reed and the Vel Cup.", "award received", "Oru Reed", ()),
        ("Ana Vorr and Ors Velt were born.", "place of birth", "Ana Vorr", ()),
        ("It was directed by Ana Vorr and scored by Ors Velt.", "director", "Ana Vorr", ()),
        ("It was directed by Ana Vorr.", "director", "Ana Vorr", ()),
        ("It was directed by (A. Vorr) and Ors Velt.", "director", "(A. Vorr)", ("Ors Velt",)),
        ("Ana Vorr met him. Ila Po and Ana Vorr and Ors Velt sang.", "child", "Ana Vorr", ("Ila Po",)),
    ],
)
def test_further_values_of_a_sentence(sentence: str, relation: str, tail: str, expected: tuple[str, ...]) -> None:
    assert find_further_values(sentence, relation, tail) == expected


@given(
    st.text(max_size=15),
    st.sampled_from([*RELATIONS, "sang in", ""]),
    st.text(max_size=15) | st.sampled_from(["3 May 1901", "Kelvia", "Oru"]),
    st.lists(st.text(max_size=40) | st.just("Ana (1901 – 1970) of Oru, Kelvia."), max_size=3),
)
def test_anything_can_be_looked_up(head: str, relation: str, tail: str, sentences: list[str]) -> None:
    found = find(head, relation, tail, *sentences, title="Ana Vorr")
    assert found.sentence is None or 0 <= found.sentence < len(sentences)
    assert (found.status == "absent") == (found.sentence is None)
    assert bool(found.value) == (found.status == "other")
    find_further_values(" ".join(sentences), relation, tail)
