from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.graphs.comparisons import Operation, Side, compare, operation

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
    "fewest": (
        "Which town has fewer people, Oru or Vel?",
        "Which lake is smaller?",
        "Which film is shorter?",
    ),
}


def test_every_operation_is_covered() -> None:
    assert set(QUESTIONS) == set(get_args(Operation))


@pytest.mark.parametrize(
    ("expected", "question"), [(op, text) for op, texts in QUESTIONS.items() for text in texts]
)
def test_what_a_question_asks(expected: Operation, question: str) -> None:
    assert operation(question) == expected
    assert operation(f"  {question.upper()}") == expected


@pytest.mark.parametrize(
    "question",
    ["Where was Ana Vorr born?", "Who directed Dune Rain?", "", "Which lasted?", "Who is Firsten?"],
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


VALUES = st.text(max_size=12) | st.sampled_from(["1901", "3 May 1901", "7", "Kelvia", ""])


@given(st.sampled_from(get_args(Operation)), VALUES, VALUES, VALUES, VALUES)
def test_the_order_of_the_sides_does_not_matter(
    op: Operation, first: str, second: str, since: str, other: str
) -> None:
    result = compare(op, sides(first, second, since, other))
    assert result in ("Ana", "Ors", "yes", "no", "tie", None)
    assert compare(op, list(reversed(sides(first, second, since, other)))) == result
