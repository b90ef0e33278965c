"""Every disagreement of a verifier with the checker has one weakness by name."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from builders.steps.weaknesses import WEAKNESSES, are_alike, family_of
from safe_stepwise.checking.plans import Item, Plan
from safe_stepwise.methods.loop import UNREAD
from safe_stepwise.records import Passage, Question, Step, StepKind, Triple
from safe_stepwise.taxonomy import CORRECT, check_order

FILM, BOOK = Passage("Dune Rain (film)", ("It is a film.",), True), Passage("Dune Rain (novel)", ())
QUESTION = Question("q", "b", "train", "Who directed it?", "Ors Velt", passages=(FILM, BOOK))
FACT = Item("Attribution", (Triple("Dune Rain (film)", "director", "Ors Velt", 1, 0),))
CHAIN = Plan("sequential", (FACT, Item("Logical", (), (0,), None, "conclusion")))
AGES = Plan("simple comparison", CHAIN.items, "earliest")


def family(said: str, label: str, text: str, kind: StepKind, plan: Plan = CHAIN) -> str:
    return family_of(said, label, Step(1, text, kind), plan, QUESTION)


@pytest.mark.parametrize(
    ("said", "label", "kind", "expected"),
    [
        (CORRECT, "Contradictory", "Attribution", "false facts passed"),
        (CORRECT, "Unsupported", "Attribution", "false facts passed"),
        (CORRECT, "Information Miss", "Attribution", "denials passed"),
        (CORRECT, "Premature Attribution", "Attribution", "skipped links passed"),
        (CORRECT, "Redundancy", "Logical", "detours passed"),
        (CORRECT, "Logical Fallacy", "Logical", "fallacies passed"),
        (CORRECT, "Wrong Conclusion", "Final Answer", "wrong answers passed"),
        ("Off-topic", CORRECT, "Attribution", "sound facts doubted"),
        ("Logical Fallacy", CORRECT, "Logical", "sound deductions doubted"),
        ("Wrong Conclusion", CORRECT, "Final Answer", "right answers doubted"),
        ("Contradictory", "Redundancy", "Attribution", "order of checks lost"),
        ("Redundancy", "Contradictory", "Attribution", "order of checks lost"),
        ("Redundancy", "Off-topic", "Attribution", "kinds of error mixed up"),
        ("Unsupported", "Contradictory", "Attribution", "kinds of error mixed up"),
        (UNREAD, CORRECT, "Attribution", "no verdict"),
        (UNREAD, "Wrong Conclusion", "Final Answer", "no verdict"),
    ],
)
def test_a_pair_of_labels_has_its_weakness(said: str, label: str, kind: StepKind, expected: str) -> None:
    assert family(said, label, "Oru is a town.", kind) == expected


def test_look_alikes_are_known_by_what_a_step_is_about() -> None:
    about = "According to Passage 2, Dune Rain (novel) was directed by Ors Velt."
    assert family(CORRECT, "Contradictory", about, "Attribution") == "look-alike names"
    assert family("Unsupported", CORRECT, about, "Attribution") == "look-alike names"
    # What it is about decides nothing where the question is whether a step is of any use.
    assert family(CORRECT, "Inefficiency", about, "Attribution") == "detours passed"
    assert family(CORRECT, "Logical Fallacy", about, "Logical") == "fallacies passed"
    other = "According to Passage 2, Oru is a town."
    assert family(CORRECT, "Contradictory", other, "Attribution") == "false facts passed"


def test_deductions_from_dates_are_a_weakness_of_their_own() -> None:
    step = ("Step 1 is earlier, so it is Ors Velt.", "Logical", AGES)
    assert family(CORRECT, "Logical Fallacy", *step) == "numbers and dates compared"
    assert family("Off-topic", CORRECT, *step) == "numbers and dates compared"
    same = Plan("simple comparison", CHAIN.items, "same")
    assert family(CORRECT, "Logical Fallacy", *step[:2], same) == "fallacies passed"


def test_no_pair_of_labels_is_without_a_weakness_and_no_weakness_without_a_pair() -> None:
    found: Counter[str] = Counter()
    for kind, plan in product(("Attribution", "Logical", "Final Answer"), (CHAIN, AGES)):
        labels = (*check_order(kind), CORRECT)
        for text in ("Dune Rain (novel) is long.", "Oru is a town."):
            pairs = [pair for pair in product((*labels, UNREAD), labels) if pair[0] != pair[1]]
            found.update(family(*pair, text, kind, plan) for pair in pairs)
    assert set(found) == set(WEAKNESSES)
    assert len(WEAKNESSES) == 14


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Henry Percy", "Thomas Percy", True),
        ("Dune Rain (film)", "Dune Rain (novel)", True),
        ("Dune Rain", "Dune Rain II", True),
        ("Dune Rain", "The Dune Rain", False),  # one thing
        ("Percy", "Henry Percy", False),  # may be short for it
        ("Bank of Oru", "University of Vel", False),
        ("3 May 1901", "5 May 1901", False),
        ("Oru", "Vel", False),
    ],
)
def test_names_that_are_alike(one: str, other: str, expected: bool) -> None:
    assert are_alike(one, other) is are_alike(other, one) is expected
