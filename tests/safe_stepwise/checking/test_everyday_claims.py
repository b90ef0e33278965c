"""Claims in everyday words about dates, countries, amounts, ages and kin, over made-up passages.

A false one never passes, a true one is never an error; those under `STATED` are decided.
"""

from __future__ import annotations

import pytest

from safe_stepwise.checking.passage_checker import SOUND, UNDECIDED, judge_steps
from safe_stepwise.records import Passage
from tests import sizes

PASSAGES = (
    Passage("Dune Rain", ("Dune Rain is a 1987 Danish drama film directed by Ors Velt and starring Ana Brell.",)),
    Passage(
        "Ors Velt",
        (
            "Ors Velt (12 March 1941 – 3 May 2001) was a Danish film director, born in Oru.",
            "He studied at the University of Lom and married the actress Ana Brell in 1970.",
        ),
    ),
    Passage("Ana Brell", ("Ana Brell (born 5 June 1950) is a Swedish actress.", "She was born in Tesk, Sweden.")),
    Passage("Oru", ("Oru is a town in northern Denmark on the river Vel.", "It has a population of 12,400.")),
    Passage("Tesk", ("Tesk is a town in Sweden.", "It has a population of 9,000 and a harbour.")),
    Passage("Lom Mill", ("The Lom Mill was a factory.", "It employed 200 people before the war and 80 after it.")),
    Passage("Vel", ("The Vel is a river in Denmark.", "It is 310 km long.")),
    Passage("Sarn", ("The Sarn is a river in Sweden.", "It is 540 km long and flows into the Vel.")),
)
STATED = (
    *("Ors Velt's nationality is Danish.", "The nationality of Ors Velt is Danish.", "Ors Velt is from Denmark."),
    *("The country of origin of Dune Rain is Denmark.", "Oru is situated in Denmark."),
    *("Dune Rain was released in 1987.", "Dune Rain came out in 1987."),
    *("Ana Brell was the wife of Ors Velt.", "Ors Velt, who directed Dune Rain, was married to Ana Brell."),
    *("Ana Brell works as an actress.", "Oru has 12,400 inhabitants.", "The population of Oru is 12,400."),
    *("The Vel is 310 km long.", "The Sarn is 540 km long.", "The Sarn flows into the Vel."),
    *("Ors Velt was older than Ana Brell.", "Ana Brell is nine years younger than Ors Velt."),
    "Ors Velt was born before Ana Brell.",
)
TRUE = (
    *("The Vel is about 300 km long.", "The Lom Mill employed 80 people after the war."),
    *("The length of the Vel is 310 km.", "Ana Brell's occupation is actress.", "Oru lies in the north of Denmark."),
)
FALSE = (
    *("Ors Velt's nationality is Swedish.", "The nationality of Ors Velt is Swedish.", "Ors Velt is from Sweden."),
    *("The country of origin of Dune Rain is Sweden.", "Oru is situated in Sweden.", "Ana Brell is Danish."),
    *("Dune Rain was released in 1970.", "Dune Rain came out in 1950.", "Ana Brell married Ors Velt in 1941."),
    *("Ana Brell was the sister of Ors Velt.", "The mother of Ors Velt is Ana Brell."),
    *("Ana Brell works as a director.", "Oru has 9,000 inhabitants.", "The population of Oru is 9,000."),
    *(
        "The Vel is 540 km long.",
        "The Sarn is 310 km long.",
        "The Vel is 310 miles long.",
        "The Vel flows into the Sarn.",
    ),
    *("The Lom Mill employed 200 people after the war.", "Oru has 200 inhabitants."),
    *("Ana Brell is older than Ors Velt.", "Ana Brell is ten years younger than Ors Velt."),
    "Ana Brell was born before Ors Velt.",
)


def label_of(text: str) -> str:
    (verdict,) = judge_steps("Where was the director of Dune Rain born?", PASSAGES, [text])
    return verdict.label


@pytest.mark.parametrize("text", STATED)
def test_what_passages_say_in_other_words_is_sound(text: str) -> None:
    assert label_of(text) == SOUND


@pytest.mark.parametrize("text", TRUE)
def test_what_is_true_is_no_error(text: str) -> None:
    assert label_of(text) in (SOUND, UNDECIDED)


@pytest.mark.parametrize("text", FALSE)
def test_what_is_false_does_not_pass(text: str) -> None:
    assert label_of(text) != SOUND


def test_most_wrong_values_are_errors() -> None:
    texts = sizes.sample(FALSE, 8)
    assert sum(label_of(text) not in (SOUND, UNDECIDED) for text in texts) >= len(texts) / 3
