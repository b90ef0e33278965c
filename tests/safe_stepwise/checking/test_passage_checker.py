"""Conclusions, answers, numbers and forms of steps over passages without annotations."""

from __future__ import annotations

import pytest

from safe_stepwise.checking.passage_checker import PassageVerdict, judge_steps

PAGES = [
    "Silent Ford is a 1961 film directed by Martin Hale. It was produced by Oda Webb.",
    "Red Harbor is a 1974 film directed by Ana Brandt. It grossed $12 million against a budget of $3 million.",
    "Martin Hale (4 May 1920 – 9 August 1999) was a director. He was born in Leeds.",
    "Oru is a town. Oru has a population of 12,450.",
    "Vel is a town. Vel has a population of 8,310.",
]
FILMS = ["Silent Ford was released in 1961.", "Red Harbor is a 1974 film."]
TOWNS = ["Oru has a population of 12,450.", "Vel has a population of 8,310."]
WHICH_FILM, WHICH_TOWN = "Which film came out first, Silent Ford or Red Harbor?", "Which town is larger, Oru or Vel?"


def last(question: str, *steps: str) -> PassageVerdict:
    return judge_steps(question, PAGES, steps)[-1]


@pytest.mark.parametrize(
    ("question", "steps", "text", "is_sound"),
    [
        (WHICH_FILM, FILMS, "So Silent Ford came out first. (Logical)", True),
        (WHICH_FILM, FILMS, "Since 1961 is earlier than 1974, Silent Ford came out first. (Logical)", True),
        (WHICH_FILM, FILMS, "So Silent Ford came out 13 years before Red Harbor. (Logical)", True),
        (WHICH_TOWN, TOWNS, "So Oru is larger than Vel. (Logical)", True),
        (WHICH_FILM, FILMS, "So Silent Ford came out 14 years before Red Harbor. (Logical)", False),
        (WHICH_FILM, FILMS, "Hence the film that came out first is Red Harbor. (Logical)", False),
        (WHICH_FILM, FILMS, "Hence the film that came out first is Red Harbor.", False),
        (WHICH_FILM, [], "The film that came out first is Red Harbor.", False),
        (WHICH_FILM, FILMS, "Therefore, the answer is Red Harbor since it was released in 1961.", False),
        (WHICH_FILM, FILMS[:1], "So Silent Ford came out first. (Logical)", False),
        (WHICH_TOWN, TOWNS, "Thus the town with more inhabitants is Vel. (Logical)", False),
        (WHICH_FILM, FILMS, "####ANSWER: Silent Ford", True),
        (WHICH_FILM, FILMS, "####ANSWER: Red Harbor", False),
        (WHICH_TOWN, TOWNS, "####ANSWER: Vel", False),
        (WHICH_FILM, FILMS[1:], "####ANSWER: Red Harbor", False),
        ("Who directed Red Harbor?", ["Red Harbor was directed by Ana Brandt."], "####ANSWER: Ana Brandt", True),
        ("Who directed Red Harbor?", ["Red Harbor was directed by Ana Brandt."], "####ANSWER: Red Harbor", False),
        (
            "Where was the director of Silent Ford born?",
            ["Silent Ford was directed by Martin Hale.", "Martin Hale was born in Leeds."],
            "####ANSWER: Silent Ford",
            False,
        ),
    ],
)
def test_a_conclusion_is_sound_only_if_the_accepted_steps_decide_it(
    question: str, steps: list[str], text: str, is_sound: bool
) -> None:
    assert (last(question, *steps, text).label == "sound") == is_sound


@pytest.mark.parametrize(
    "text",
    [
        "Silent Ford came out 13 years before Red Harbor.",
        "Martin Hale died aged 79.",
        "Martin Hale was 41 when Silent Ford was released.",
        "Oru has 4,140 more inhabitants than Vel.",
        "Red Harbor grossed $12,000,000.",
        "Mr. Hale directed Silent Ford.",
        "M. Hale directed Silent Ford.",
    ],
)
def test_a_difference_or_another_form_is_no_missing_name(text: str) -> None:
    assert last(WHICH_FILM, text).label in ("sound", "undecided")


@pytest.mark.parametrize(
    "text",
    ["Silent Ford came out 17 years before Red Harbor.", "Oru has 4,150 more inhabitants than Vel.", "Mr. Gale sang."],
)
def test_but_a_number_that_nothing_gives_is_missing(text: str) -> None:
    assert last(WHICH_FILM, text).label == "Unsupported"


@pytest.mark.parametrize("form", ["1. {}", "2) {}", "(1) {}", "[1] {}", "{} [1]", "{} [1]."])
def test_the_mark_of_a_list_is_no_number_of_the_step(form: str) -> None:
    claim = "Red Harbor was directed by Ana Brandt"
    verdict = last(WHICH_FILM, text := form.format(claim))
    assert (verdict.label, text[slice(*verdict.claims[0].span)]) == ("sound", claim)


def test_a_final_answer_in_words_is_one() -> None:
    texts = ("Final answer: Silent Ford", "**Final Answer:** Silent Ford", "Final answer: Silent Ford (Final Answer)")
    assert [last(WHICH_FILM, *FILMS, text).label for text in texts] == ["sound"] * 3


@pytest.mark.parametrize(
    ("text", "is_sound"),
    [
        ("4 May 1920 is the date of birth of Martin Hale.", True),
        ("According to Passage 3, 9 August 1999 is the date of death of Martin Hale.", True),
        ("The date of death of Martin Hale is 9 August 1999.", True),
        ("9 August 1999 is the date of birth of Martin Hale.", False),
        ("4 May 1920 is the date of death of Martin Hale.", False),
        ("9 August 1999 is not the date of death of Martin Hale.", False),
        ("4 May 1920 is the date of birth of Ana Brandt.", False),
    ],
)
def test_the_dates_of_a_life_in_brackets_are_those_of_birth_and_death(text: str, is_sound: bool) -> None:
    assert (last("When did Martin Hale die?", text).label == "sound") == is_sound


BREWERY = ["Oru Brewery was founded by Otto Kranz. It lies in Vel.", "Otto Kranz was born in Mirefield."]
FOUNDER = ["Oru Brewery was founded by Otto Kranz.", "Otto Kranz was born in Mirefield."]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("So the brewery was founded by Otto Kranz.", "sound"),
        ("So, the founder was born in Mirefield.", "sound"),
        ("So Otto Kranz was born in Vel.", "Contradictory"),
        ("The second passage says that Otto Kranz was born in Mirefield.", "sound"),
        ("According to the first passage, Otto Kranz was born in Mirefield.", "undecided"),
        ("The ninth passage says that Otto Kranz was born in Mirefield.", "Unsupported"),
        ("The answer is Mirefield.", "sound"),
        ("So the answer is Mirefield", "sound"),
        ("#### Mirefield", "sound"),
        ("The answer is Vel.", "undecided"),
        ("#### Vel", "undecided"),
        ("The answer is Mirefield, a large town.", "undecided"),
        ("The answer is not Mirefield.", "undecided"),
    ],
)
def test_usual_wordings_of_steps_and_answers_are_read(text: str, label: str) -> None:
    question = "Where was the founder of Oru Brewery born?"
    assert judge_steps(question, BREWERY, [*FOUNDER, text])[-1].label == label
