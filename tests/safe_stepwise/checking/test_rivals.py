"""A step that gives another name of its passage is false; what only looks like another name is not."""

from __future__ import annotations

import pytest

from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.support import weigh
from safe_stepwise.records import Passage, Question, Step, Triple

FILM = Passage(
    "Dune Rain", ("Dune Rain is a 1954 drama film directed by Ors Velt.", "It stars Ana Vorr and Bel Kahn."), True
)
MAN = Passage(
    "Ors Velt",
    ("Ors Velt (3 May 1901 – 2 June 1970) was a Kelvian film director.", "He was born in Oru and studied in Vel."),
    True,
)
HOPS = (Triple("Dune Rain", "director", "Ors Velt", 1, 0), Triple("Ors Velt", "place of birth", "Oru", 2, 1))
QUESTION = Question(
    "q", "b", "train", "Where was the director of Dune Rain born?", "Oru", passages=(FILM, MAN), evidence=HOPS
)
FIRST = Step(1, "According to Passage 1, Dune Rain was directed by Ors Velt.", "Attribution")


def label(text: str) -> str | None:
    """The checker's label of an attribution after the first fact was read."""
    verdict = Checker(QUESTION, HOPS, HOPS).check([FIRST], Step(2, text, "Attribution"))
    return verdict and verdict.error_type


@pytest.mark.parametrize(
    "text",
    [
        "According to Passage 2, Ors Velt was born in Vel.",
        "According to Passage 2, Vel is the birthplace of Ors Velt.",
        "According to Passage 1, Dune Rain was directed by Ana Vorr.",
        "According to Passage 2, Oru was born in Ors Velt.",
        "According to Passage 2, Ors Velt was not born in Oru.",
    ],
)
def test_another_name_of_the_passage_contradicts_it(text: str) -> None:
    assert label(text) == "Contradictory"


def test_a_contrast_with_the_true_name_is_not_right() -> None:
    assert label("According to Passage 2, Ors Velt was born in Vel, not in Oru.") != "Correct"


@pytest.mark.parametrize(
    "text",
    [
        "According to Passage 2, Ors Velt was born in Oru.",
        "According to Passage 2, Ors Velt was born in Oru, not in Vel.",
        "According to Passage 2, Ors Velt, a Kelvian film director, was born in Oru.",
        "According to Passage 2, Oru was the birthplace of Ors Velt, so that is where the film's director was born.",
    ],
)
def test_a_right_step_passes(text: str) -> None:
    assert label(text) == "Correct"


@pytest.mark.parametrize(
    "text",
    [
        "According to Passage 2, the director of Dune Rain was born in Oru.",
        "Since Ors Velt directed Dune Rain (Step 1), we look at Passage 2: he was born in Oru.",
        "Ors Velt directed Dune Rain, and according to Passage 2 he was born in Oru.",
    ],
)
def test_a_right_step_in_freer_words_is_no_error(text: str) -> None:
    assert label(text) in (None, "Correct")


@pytest.mark.parametrize(
    ("text", "is_false"),
    [
        ("Rey Vell is a Kelvian wrestler who began his wrestling career on the circuit.", True),
        ("Rey Vell is an Oruan, not Kelvian, wrestler who began his wrestling career on the circuit.", False),
        ("Rey Vell is an Oruan wrestler.", False),
    ],
)
def test_what_a_passage_names_to_exclude_it_is_false(text: str, is_false: bool) -> None:
    page = Passage(
        "Rey Vell", ("Rey Vell is an Oruan, not Kelvian, wrestler who began his wrestling career on the circuit.",)
    )
    assert (weigh(text, [(1, page)]).contradiction is not None) is is_false


def test_who_is_named_in_the_same_sentence_may_be_one_of_several() -> None:
    page = Passage("Dune Rain", ("Dune Rain was owned by the Velt Company, with a share of the Oru Bank.",))
    assert weigh("Dune Rain was owned by Oru Bank.", [(1, page)]).contradiction is None
    page = Passage("Dune Rain", ("Dune Rain was owned by the Velt Company.", "It was sold near the Oru Bank."))
    assert weigh("Dune Rain was owned by Oru Bank.", [(1, page)]).contradiction is not None


def test_a_day_is_one_word_however_it_is_written() -> None:
    page = Passage("Ors Velt", ("Ors Velt (March 28, 1888, Oru – July 19, 1955, Vel) was a composer.",))
    text = "Passage 1 says: “Ors Velt (1888-03-28, Oru – 1955-07-19, Vel) was a composer.”"
    assert weigh(text, [(1, page)]).is_borne_out
    assert not weigh(text.replace("1888", "1889"), [(1, page)]).is_borne_out


@pytest.mark.parametrize("motion", ["he moved to Vel at 12", "he emigrated to Lom", "she was sent to school in Vel"])
def test_where_somebody_went_after_a_birth_is_no_parent(motion: str) -> None:
    passage = Passage("Ors Velt", ("Ors Velt (1901–1970) was a Kelvian film director.", f"Born in Oru, {motion}."))
    assert weigh("Ors Velt was born in Lom City.", [(1, passage)]).contradiction is not None
    assert weigh("Ors Velt was born in Oru.", [(1, passage)]).is_borne_out
