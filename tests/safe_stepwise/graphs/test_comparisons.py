from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.graphs.comparisons import (
    Operation,
    Side,
    compare,
    comparison_of,
    is_comparison,
    operation,
    without_names,
)
from safe_stepwise.records import Question, Triple

QUESTIONS: dict[Operation, tuple[str, ...]] = {
    "earliest": (
        "Who was born first, Ana Vorr or Ors Velt?",
        "Who is older, Ana Vorr or Ors Velt?",
        "Which film came out earlier, Marel or Dune Rain?",
        "Was Ana Vorr or Ors Velt born first?",
        "Which firm was founded before the other, Oru Works or Velt Motors?",
        "Who died earlier?",
    ),
    "latest": (
        "Who was born later, Ana Vorr or Ors Velt?",
        "Who is younger, Ana Vorr or Ors Velt?",
        "Which film was released more recently, Marel or Dune Rain?",
        "Who died last?",
        "Which film is newer?",
    ),
    "longest": (
        "Who lived longer, Ana Vorr or Ors Velt?",
        "Who lived a longer life?",
        "Who had the longer life, Ana Vorr or Ors Velt?",
    ),
    "same": (
        "Are Oru and Vel in the same country?",
        "Do Ana Vorr and Ors Velt share a nationality?",
        "Were Ana Vorr and Ors Velt both poets?",
        "Did Ana Vorr and Ors Velt die in the same town?",
        "Is Oru as well as Vel and Marn in Kelvia?",
    ),
    "most": (
        "Which town has more people, Oru or Vel?",
        "Which river is longer, the Oru or the Vel?",
        "Which lake is larger?",
        "Which tower is taller?",
    ),
    "fewest": ("Which town has fewer people, Oru or Vel?", "Which lake is smaller?", "Which film is shorter?"),
}


def test_every_operation_is_covered() -> None:
    assert set(QUESTIONS) == set(get_args(Operation))


@pytest.mark.parametrize(("expected", "question"), [(op, text) for op, texts in QUESTIONS.items() for text in texts])
def test_what_a_question_asks(expected: Operation, question: str) -> None:
    assert operation(question) == expected
    assert operation(f"  {question.upper()}") == expected


@pytest.mark.parametrize(
    "question", ["Where was Ana Vorr born?", "Who directed Dune Rain?", "", "Which lasted?", "Who is Firsten?"]
)
def test_no_comparison(question: str) -> None:
    assert operation(question) is None


def test_the_newest() -> None:
    assert operation("Which film is the newest, Marel or Dune Rain?") == "latest"


def sides(first: str, second: str, *since: str) -> list[Side]:
    one, other = ((since[0],), (since[1],)) if since else ((), ())
    return [Side("Ana", (first,), one), Side("Ors", (second,), other)]


@pytest.mark.parametrize(
    ("op", "first", "second", "expected"),
    [
        ("earliest", "1901", "1902", "Ana"),
        ("earliest", "1902", "1901", "Ors"),
        ("latest", "1901", "1902", "Ors"),
        ("earliest", "3 May 1901", "4 May 1901", "Ana"),
        ("earliest", "31 May 1901", "1 June 1901", "Ana"),
        ("earliest", "31 December 1901", "1 January 1902", "Ana"),
        ("latest", "31 December 1901", "January 1902", "Ors"),
        ("latest", "May 1901", "June 1901", "Ors"),
        ("latest", "15 June 1901", "July 1901", "Ors"),
        ("earliest", "May 3, 1901", "4 May 1901", "Ana"),
        # one says less than the other: not to be decided
        ("earliest", "3 May 1901", "1901", None),
        ("latest", "May 1901", "12 May 1901", None),
        ("earliest", "1901", "1901", "tie"),
        # not dates
        ("earliest", "Oru", "1901", None),
        ("earliest", "1901", "Oru", None),
        ("latest", "1901–1970", "1950", None),
        ("most", "1,250 people", "999", "Ana"),
        ("most", "1250", "9,990", "Ors"),
        ("most", "seven", "8", "Ors"),
        ("most", "7", "seven", "tie"),
        ("most", "3.5 km", "3.4 km", "Ana"),
        ("most", "many", "5", None),
        ("fewest", "3", "5", "Ana"),
        ("fewest", "1,003", "5", "Ors"),
        ("fewest", "3", "some", None),
        ("same", "Kelvia", "Kelvian", "yes"),
        ("same", "the Dutch", "Dutch", "yes"),
        ("same", "Dutch", "Netherlands", "yes"),
        ("same", "Élan", "Elan", "yes"),
        ("same", "Bombay", "Mumbai", "yes"),
        ("same", "Kelvia", "Marnia", "no"),
        ("same", "Austria", "Australia", "no"),
        ("same", "Mali", "Malta", "no"),
        ("same", "India", "Indonesia", "no"),
        ("same", "Iran", "Iraq", "no"),
        ("same", "poet", "painter", "no"),
        ("same", "1901", "1902", "no"),
        # who lived longer, without a birth
        ("longest", "1970", "1960", None),
    ],
)
def test_compared(op: Operation, first: str, second: str, expected: str | None) -> None:
    assert compare(op, sides(first, second)) == expected
    swapped = {"Ana": "Ors", "Ors": "Ana"}
    back = swapped.get(expected, expected) if expected else None
    assert compare(op, sides(second, first)) == back


@pytest.mark.parametrize(
    ("ends", "starts", "expected"),
    [
        (("1970", "1960"), ("1900", "1880"), "Ors"),
        (("1970", "1960"), ("1900", "1890"), "tie"),
        (("3 June 1970", "1 June 1960"), ("3 May 1910", "2 May 1900"), "Ana"),
        (("1970", "1960"), ("1900", "Oru"), None),
        (("Oru", "1960"), ("1900", "1890"), None),
    ],
)
def test_spans(ends: tuple[str, str], starts: tuple[str, str], expected: str | None) -> None:
    assert compare("longest", sides(*ends, *starts)) == expected


def test_any_value_in_common_is_the_same() -> None:
    one, other = Side("Ana", ("Kelvia", "Marnia")), Side("Ors", ("Belk", "Marnish"))
    assert compare("same", [one, other]) == "yes"
    assert compare("same", [one, Side("Ors", ("Belk",))]) == "no"


@pytest.mark.parametrize("op", get_args(Operation))
def test_two_sides_with_values_or_nothing(op: Operation) -> None:
    side, empty = Side("Ana", ("1901",), ("1850",)), Side("Ors", ())
    for wrong in ([], [side], [side, side, side], [side, empty], [empty, side]):
        assert compare(op, wrong) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Austrian", "Australian", "no"),
        ("Niger", "Nigeria", "no"),
        ("12 May 1901", "12 May 1902", "no"),
        ("3 May 1901", "May 3, 1901", "yes"),
    ],
)
def test_sameness_of_what_is_no_adjective(one: str, other: str, expected: str) -> None:
    assert compare("same", sides(one, other)) == expected


def test_years_before_christ() -> None:
    assert compare("earliest", sides("300 BC", "200 BC")) == "Ana"


def test_millions() -> None:
    assert compare("most", sides("1.5 million", "900,000")) == "Ana"


@pytest.mark.parametrize(
    ("kind", "answer", "expected"),
    [
        ("comparison", "Oru", True),
        ("bridge_comparison", "Oru", True),
        ("bridge", "Yes", True),
        ("", "no", True),
        ("compositional", "Oru", False),
        ("", "nobody", False),
    ],
)
def test_is_comparison(kind: str, answer: str, expected: bool) -> None:
    assert is_comparison(Question("q", "b", "train", "", answer, kind=kind)) is expected


# A question and the branches of its path: the one rule of labels and of plans


def branch(head: str, *hops: tuple[str, str]) -> tuple[Triple, ...]:
    """Hops of one head, or of the value before where the relation leads on."""
    path: list[Triple] = []
    for relation, tail in hops:
        start = path[-1].tail if path and path[-1].relation == "director" else head
        path.append(Triple(start, relation, tail, 1))
    return tuple(path)


def asks(question: str, answer: str, *branches: tuple[Triple, ...]) -> str | None:
    return comparison_of(Question("q", "b", "train", question, answer), branches).result


BORN, DIED = "date of birth", "date of death"


def two(relation: str, one: str, other: str) -> list[tuple[Triple, ...]]:
    return [branch("Ana", (relation, one)), branch("Ors", (relation, other))]


def lives(one: tuple[str, str], other: tuple[str, str]) -> list[tuple[Triple, ...]]:
    return [
        branch(name, (BORN, born), (DIED, died))
        for name, (born, died) in zip(("Ana", "Ors"), (one, other), strict=True)
    ]


COMPARED: list[tuple[str, list[tuple[Triple, ...]], str | None]] = [
    ("Who was born first, Ana or Ors?", two(BORN, "1 May 1901", "3 May 1901"), "Ana"),
    ("Who was born later, Ana or Ors?", two(BORN, "1901", "1899"), "Ana"),
    ("Who is younger, Ana or Ors?", two(BORN, "1901", "1901"), "tie"),
    ("Who is older, Ana or Ors?", two(BORN, "1901", "3 May 1901"), None),
    ("Who died first, Ana or Ors?", two(DIED, "1970", "1960"), "Ors"),
    ("Who died later, Ana or Ors?", two(DIED, "May 1970", "June 1970"), "Ors"),
    ("Which film was released first, Ana or Ors?", two("publication date", "1954", "1955"), "Ana"),
    ("Which film came out later, Ana or Ors?", two("publication date", "1954", "1955"), "Ors"),
    ("Which firm was founded earlier, Ana or Ors?", two("inception", "1954", "1955"), "Ana"),
    # a life needs both its ends; births alone say nothing of its length, and are no tie
    ("Who lived longer, Ana or Ors?", lives(("1900", "1970"), ("1900", "1960")), "Ana"),
    ("Who lived longer, Ana or Ors?", lives(("1900", "1970"), ("1890", "1960")), "tie"),
    ("Who lived longer, Ana or Ors?", two(BORN, "1900", "1890"), None),
    ("Who lived longer, Ana or Ors?", two(DIED, "1970", "1960"), None),
    ("Who lived longer, Ana or Ors?",
     [branch("Ana", (BORN, "1900"), (DIED, "1970")), branch("Ors", (BORN, "1890"))], None),
    ("Are Ana and Ors in the same country?", two("country", "Kelvia", "Kelvia"), "yes"),
    ("Do Ana and Ors share a nationality?", two("country of citizenship", "Kelvia", "Kelvian"),
     "yes"),
    ("Are Ana and Ors both Kelvian?", two("country of citizenship", "Kelvia", "Belk"), "no"),
    ("Were Ana and Ors both poets?", two("occupation of", "poet", "poet"), None),
    # a bridge: the values that count are the last ones
    ("Which film has the director who was born first, Ana or Ors?",
     [branch("Ana", ("director", "Ila"), (BORN, "1901")),
      branch("Ors", ("director", "Po"), (BORN, "1899"))], "Ors"),
    # values of relations whose kind is not known, on either side, are not compared
    ("Which town has more people, Ana or Ors?", two("people", "1,250", "999"), None),
    ("Who was born first, Ana or Ors?",
     [branch("Ana", (BORN, "1901")), branch("Ors", ("came to life", "1899"))], None),
    ("Who was born first, Ana or Ors?",
     [branch("Ana", ("came to life", "1901")), branch("Ors", (BORN, "1899"))], None),
    # nothing to compare by
    ("What do Ana and Ors do?", two(BORN, "1901", "1899"), None),
    ("Who was born first, Ana or Ors?", two(BORN, "Oru", "1899"), None),
    ("Who was born first?", two(BORN, "1901", "1899")[:1], None),
    ("Who was born first?", [*two(BORN, "1901", "1899"), branch("Po", (BORN, "1902"))], None),
]  # fmt: skip


@pytest.mark.parametrize(("question", "branches", "expected"), COMPARED)
def test_what_the_branches_answer(question: str, branches: list[tuple[Triple, ...]], expected: str | None) -> None:
    answer = expected if expected in ("yes", "no") else "Ana"
    assert asks(question, answer, *branches) == expected
    assert asks(question, answer, *reversed(branches)) == expected


def test_yes_or_no_is_told_by_sameness_alone() -> None:
    question = "Was Ana born before Ors?"
    assert asks(question, "Ana", *two(BORN, "1899", "1901")) == "Ana"
    assert asks(question, "Yes", *two(BORN, "1899", "1901")) is None


def test_a_name_that_sounds_like_an_operation_is_none() -> None:
    sides = [branch("First Rain", (BORN, "1901")), branch("The Last", (BORN, "1899"))]
    assert asks("Whose date is later, First Rain or The Last?", "x", *sides) == "First Rain"
    assert asks("What of First Rain and The Last?", "x", *sides) is None


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["First Rain"], "X, X... X or Last (1954)?"),
        (["Last (1954)"], "First Rain, first RAIN... First Rain or X (1954)?"),
        (["First Rain", "LAST"], "X, X... X or X (1954)?"),
    ],
)
def test_names_go_wherever_they_stand_and_in_whatever_case(names: list[str], left: str) -> None:
    text = "First Rain, first RAIN... First Rain or Last (1954)?"
    assert without_names(text, names) == left


VALUES = st.text(max_size=12) | st.sampled_from(["1901", "3 May 1901", "7", "Kelvia", ""])


@given(st.sampled_from(get_args(Operation)), VALUES, VALUES, VALUES, VALUES)
def test_the_order_of_the_sides_does_not_matter(
    op: Operation, first: str, second: str, since: str, other: str
) -> None:
    result = compare(op, sides(first, second, since, other))
    assert result in ("Ana", "Ors", "yes", "no", "tie", None)
    assert compare(op, list(reversed(sides(first, second, since, other)))) == result
