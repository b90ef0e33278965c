"""What a step says that somebody or something is: it has to be stated of them, not of another."""

from __future__ import annotations

import pytest

from safe_stepwise.checking.passage_checker import PassageVerdict, judge_steps

PEOPLE = ["Mira Holt is a Norwegian botanist.", "Jon Pell was a Hungarian composer who lived in Varn."]
TOGETHER = [" ".join(PEOPLE)]
MEETING = ["In Varn the Hungarian composer Jon Pell met Mira Holt, a Norwegian botanist."]
PLACES = ["Mount Tarl is a volcano in Zandor. It lies near Esk.", "Esk is a river."]
FILMS = ["The Glass Key is a 1938 western film directed by Lars Odd.", "Paper Moons is a 1944 musical film."]
DIRECTORS = ["Lars Odd is a Finnish director. He made The Glass Key.", "Tim Roe is a Welsh director."]
COUPLE = ["Arne Bly is a poet. His wife, Ida Bly, is a Norwegian painter."]


def judge(passages: list[str], *steps: str) -> PassageVerdict:
    return judge_steps("Who is it?", passages, steps)[-1]


@pytest.mark.parametrize(
    ("passages", "step"),
    [
        (PEOPLE, "Jon Pell is Norwegian."),
        (PEOPLE, "Mira Holt is a composer."),
        (PEOPLE, "Jon Pell is a botanist."),
        (PEOPLE, "Jon Pell was a Norwegian composer."),
        (PEOPLE, "Mira Holt has been a composer."),
        (PEOPLE, "Mira Holt became a composer."),
        (PEOPLE, "Mira Holt and Jon Pell were composers."),
        (PEOPLE, "Jon Pell was a composer and botanist."),
        (PEOPLE, "Jon Pell lived in Varn and was Norwegian."),
        (PEOPLE, "Jon Pell, a Norwegian composer, lived in Varn."),
        (PEOPLE, "Jon Pell, a botanist, lived in Varn."),
        (PEOPLE, "The Norwegian composer Jon Pell lived in Varn."),
        (PEOPLE, "The botanist Jon Pell lived in Varn."),
        (PEOPLE, "According to Passage 2, Jon Pell is Norwegian."),
        (TOGETHER, "Jon Pell was a Norwegian composer."),
        (TOGETHER, "Mira Holt is Hungarian."),
        (MEETING, "Mira Holt is Hungarian."),
        (MEETING, "Jon Pell was a botanist."),
        (PLACES, "Mount Tarl is a river."),
        ([" ".join(PLACES)], "Mount Tarl is a river."),
        (FILMS, "The Glass Key is a musical."),
        (FILMS, "The Glass Key is a musical film."),
        (DIRECTORS, "Lars Odd is a Welsh director."),
        (DIRECTORS, "The Glass Key was made by the Welsh director Lars Odd."),
        (COUPLE, "Arne Bly is Norwegian."),
        (COUPLE, "Arne Bly is a painter."),
        (COUPLE, "Ida Bly is a poet."),
        (PEOPLE, "The composer who lived in Varn was Norwegian."),
        (PEOPLE, "As a botanist, Jon Pell lived in Varn."),
        (["Paper Moons is a 1944 film with Ana Vorr, an actress."], "Paper Moons is an actress."),
    ],
)
def test_what_only_another_is_makes_no_step_sound(passages: list[str], step: str) -> None:
    verdict = judge(passages, step)
    assert verdict.label != "sound"
    absent = [claim.part for claim in verdict.claims if "no passage has" in claim.reason]
    assert not any(word in passage for word in absent for passage in passages)


@pytest.mark.parametrize(
    ("passages", "step"),
    [
        (PEOPLE, "Jon Pell was a Hungarian composer."),
        (PEOPLE, "Jon Pell is Hungarian."),
        (PEOPLE, "Mira Holt was a botanist."),
        (PEOPLE, "Jon Pell, a Hungarian composer, lived in Varn."),
        (PEOPLE, "The Hungarian composer Jon Pell lived in Varn."),
        (TOGETHER, "Mira Holt is a Norwegian botanist."),
        (MEETING, "Jon Pell was a Hungarian composer."),
        (MEETING, "Mira Holt is a Norwegian botanist."),
        (PLACES, "Mount Tarl is a volcano."),
        (FILMS, "The Glass Key is a movie."),
        (FILMS, "The Glass Key is a western."),
        (["Paper Moons is a 1944 film. The film is a musical."], "Paper Moons is a musical."),
        (DIRECTORS, "Lars Odd is Finnish."),
        (DIRECTORS, "The Glass Key was made by the Finnish director Lars Odd."),
        (COUPLE, "Ida Bly is a Norwegian painter."),
        (["Arne Bly is a poet. He was also a Swiss painter."], "Arne Bly was a Swiss painter."),
        (["Ana Vorr and Ida Bly are Swiss poets."], "Ana Vorr and Ida Bly are poets."),
        (
            ['Thomas "Tom" Bly (born 3 May 1901 in Varn) is one of the greatest Swiss poets.'],
            "Tom Bly is a Swiss poet.",
        ),
        (["Oru is a town in Norway."], "Oru is a Norwegian town."),
    ],
)
def test_what_somebody_is_said_to_be_is_sound(passages: list[str], step: str) -> None:
    assert judge(passages, step).label == "sound"


def test_an_accepted_step_says_what_somebody_is() -> None:
    assert judge(PEOPLE, "Jon Pell was a Hungarian composer.", "So Jon Pell is Hungarian. (Logical)").label == "sound"
    assert judge(PEOPLE, "Mira Holt is a Norwegian botanist.", "So Jon Pell is Norwegian. (Logical)").label != "sound"


def test_the_finding_is_the_claim_and_names_of_whom_no_passage_says_it() -> None:
    verdict = judge(PEOPLE, "Mira Holt is Hungarian.")
    [claim] = verdict.claims
    assert (verdict.label, verdict.reason) == ("undecided", "no passage says 'Hungarian' of Mira Holt")
    assert (claim.status, claim.part, claim.span) == ("not read", "Hungarian", (0, 22))


def test_a_question_says_of_nobody_what_they_are() -> None:
    [verdict] = judge_steps("Where did the Swiss composer Jon Pell live?", PEOPLE, ["Jon Pell was a Swiss composer."])
    assert verdict.label != "sound"


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("Ors Velt was born in Marn.", "Passage 1 says 'born' with another name or date"),
        ("Ors Velt founded Marn.", "Passage 1 leaves open whether 'founded' is so"),
        ("Ors Velt married Ana Holt.", "Passage 1 says that it is not so"),
        ("Ors Velt was not born in Oru.", "Passage 1 says that it is so"),
    ],
)
def test_reasons_are_in_the_words_of_the_step(step: str, reason: str) -> None:
    text = "Ors Velt was born in Oru in 1912. He may have founded Marn in 1940. He did not marry Ana Holt."
    assert judge([text], step).reason == reason
