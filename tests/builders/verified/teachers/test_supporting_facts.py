from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.teachers.supporting_facts import leading_words
from builders.verified.verification import verify
from safe_stepwise.checking.plans import NAMES
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Label, Passage, Question, SupportingFact

DUNE = Passage("Dune Rain", ("Dune Rain is a film.", "It was directed by Ors Velt."), True)
ORS = Passage("Ors Velt", ("Ors Velt (1901 – 1970) was a director.", "He was born in Oru Marsh."), True)
ILA = Passage("Ila Dell", ("Ila Dell (1899 – 1980) was a singer.", "She sang in Oru Marsh."), True)
KARN = Passage("Karn", ("Karn is a river.", "It is short."), True)


def label(text: str, answer: str, *gold: Passage, kind: str = "bridge") -> Label:
    facts = tuple(SupportingFact(p.title, n) for p in gold for n in range(len(p.sentences)))
    distractor = Passage("Marn", ("Marn is a country.", "Its capital is Po."))
    question = Question(
        "h1", "hotpotqa", "train", text, answer, kind=kind,
        passages=(distractor, *gold), supporting_facts=facts,
    )  # fmt: skip
    return asyncio.run(verify(question, AnnotationsTeacher()))


def test_linked_passages_that_hold_the_answer() -> None:
    found = label("Where was the director of Dune Rain born?", "Oru Marsh", DUNE, ORS)
    assert found.noise_type == "none"
    assert [(t.head, t.tail, t.passage) for t in found.reasoning_path] == [
        ("Dune Rain", "Ors Velt", 2),
        ("Ors Velt", "Oru Marsh", 3),
    ]
    assert found.reasoning_path[1].sentence == 1
    assert set(found.reasoning_path) <= set(found.knowledge_graph)


def test_an_answer_that_is_a_passages_subject() -> None:
    found = label("Who, born in Oru, directed Dune Rain?", "Ors Velt", DUNE, ORS)
    assert found.noise_type == "none"
    assert found.reasoning_path[-1].tail == "Ors Velt"


def test_linked_by_a_third_thing() -> None:
    found = label("Which singer sang where Ors Velt was born?", "Ila Dell", ORS, ILA)
    assert found.noise_type == "none"
    assert {t.tail for t in found.reasoning_path} == {"Oru Marsh"}


def test_an_answer_that_stands_nowhere() -> None:
    found = label("Where was the director of Dune Rain born?", "Marn", DUNE, ORS)
    assert found.noise_type == "missing_evidence"
    assert "“Marn”" in found.explanation
    assert found.reasoning_path == ()


def test_an_answer_within_other_words_is_not_called_absent() -> None:
    page = Passage("Ors Velt", ("Ors Velt lived in OruTarnharbour.",), is_gold=True)
    found = label("Where did Ors Velt live?", "Tarnharbour", page)
    assert (found.noise_type, found.explanation) == (
        "undecided",
        "Passage 2 has “Tarnharbour”, and what it says of it could not be read.",
    )


def test_a_decade_is_no_date_to_compare_with_another() -> None:
    pages = (
        Passage(
            "Oru Club", ("Oru Club was founded in the early 1980s.", "Its hall was founded in 1999."), is_gold=True
        ),
        Passage("Vel Club", ("Vel Club was founded in 1993.",), is_gold=True),
    )
    found = label("Which was founded first, Oru Club or Vel Club?", "Oru Club", *pages, kind="comparison")
    assert found.noise_type == "undecided"
    assert "was not checked" in found.explanation


def test_passages_that_nothing_links() -> None:
    found = label("Where was the director of Dune Rain born?", "Oru Marsh", KARN, ORS)
    assert found.noise_type == "undecided"
    assert "“Karn”" in found.explanation
    assert "No link was found" in found.explanation


def test_linked_by_part_of_a_name() -> None:
    """ "Velt" for the director Ors Velt: a passage that names a subject by its surname alone."""
    play = Passage("Cold Oru", ("Cold Oru is a play.", "Critics took it for Velt's best."), True)
    found = label("Where was the author of Cold Oru born?", "Oru Marsh", play, ORS)
    assert found.noise_type == "none"
    assert ("Cold Oru", "Ors Velt") in {(t.head, t.tail) for t in found.reasoning_path}


def test_a_common_noun_of_a_title_links_nothing() -> None:
    club = Passage("Marn River Club", ("Marn River Club is a club.",), True)
    play = Passage("Cold Oru", ("Cold Oru is a play about a River.",), True)
    found = label("Which club played Cold Oru?", "Marn River Club", play, club)
    assert found.noise_type == "undecided"


@pytest.mark.parametrize(
    ("title", "told", "expected"),
    [
        ("Political correctness", "Some called it politically correct.", "none"),
        ("Political correctness", "It was political. Some called it right.", "undecided"),
        ("Tourism in Marn", "It was built for tourism.", "none"),
        ("Tourism in Marn", "It was built for tourists.", "undecided"),
        ("River of Marn", "It is a play about a river.", "undecided"),
    ],
)
def test_linked_by_a_title_in_other_words(title: str, told: str, expected: str) -> None:
    play = Passage("Cold Oru", tuple(re.split(r"(?<=\.) ", told)), True)
    other = Passage(title, ("This came up in 1901.",), True)
    assert label("When did that come up?", "1901", play, other).noise_type == expected


def test_namesakes_are_joined_by_their_name_and_by_no_triple() -> None:
    album = Passage("Dune Rain (album)", ("Dune Rain is the first album by Dune Rain.",), True)
    band = Passage("Dune Rain (band)", ("Dune Rain is a band from Oru Marsh.",), True)
    found = label("Whence is the band of the album Dune Rain?", "Oru Marsh", album, band)
    assert found.noise_type == "none"
    assert [(t.head, t.relation) for t in found.reasoning_path] == [("Dune Rain (band)", "band from")]


def test_a_question_that_its_answer_does_not_fit() -> None:
    found = label("Who directed the film of Ors Velt?", "Ors Velt", DUNE, ORS)
    assert (found.noise_type, found.confidence) == ("wrong_answer", 0.6)
    assert found.reasoning_path


def test_every_triple_says_where_it_stands_and_none_is_about_itself() -> None:
    found = label("Which singer sang where Ors Velt was born?", "Ila Dell", ORS, ILA)
    assert all(t.passage and t.sentence is not None for t in found.knowledge_graph)
    assert all(t.head != t.tail for t in found.knowledge_graph)


@pytest.mark.parametrize("name", ["Vel", "Mar"])
def test_a_name_inside_another_word_links_nothing(name: str) -> None:
    river = Passage(name, ("It is a river.", "It is short."), True)
    found = label("Where was the director of Dune Rain born?", "Oru Marsh", river, ORS)
    assert found.noise_type == "undecided"


def test_no_gold_passage() -> None:
    question = Question(
        "h1", "hotpotqa", "train", "?", "Oru", kind="bridge",
        supporting_facts=(SupportingFact("Oru", 0),),
    )  # fmt: skip
    found = asyncio.run(verify(question, AnnotationsTeacher()))
    assert found.noise_type == "missing_evidence"


# What leads to a name


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("It was directed by Ors Velt.", "directed by"),
        ("It is the first play that the young painter Ors Velt wrote.", "young painter"),
        ('A talk show was named after the song "Ors Velt".', "named after the song"),
        ("He sang (with Ors Velt) for years.", "names"),
        ("He met Ila Dell and Ors Velt.", "names"),
        ("In the house of the Ors Velt Club he sang.", "house of"),
        ("Ors Velt was a painter.", "names"),
        ("Critics took it for Velt's best.", "took it for"),
        ("It was told by a Torsvelt and by no other.", "names"),
    ],
)
def test_the_words_that_lead_to_a_name(sentence: str, expected: str) -> None:
    assert leading_words(sentence, "Ors Velt").lower() == expected


WORDS = st.lists(
    st.sampled_from("and of the by was directed Hester's role, (in he film “a 1901 du".split()) | st.text(max_size=8)
)


@given(WORDS, st.text(max_size=8) | st.sampled_from(["Ors Velt", "Velt (poet)", "Oru, Kelvia"]))
def test_a_relation_is_a_few_words_of_the_sentence_that_say_something(before: list[str], name: str) -> None:
    sentence = " ".join([*before, f"{name}."])
    relation = leading_words(sentence, name)
    words = relation.split()
    assert 1 <= len(words) <= 5
    assert words[0] not in word_list("stop_words")
    assert words[-1] not in ("and", "the")
    if relation != NAMES:
        assert relation in " ".join(sentence.split())


# Comparisons


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("Who was born first, Ors Velt or Ila Dell?", "Ila Dell", "none"),
        ("Who was born first, Ors Velt or Ila Dell?", "Ors Velt", "wrong_answer"),
        ("Who died later, Ors Velt or Ila Dell?", "Ila Dell", "none"),
        ("Who died later, Ors Velt or Ila Dell?", "Ors Velt", "wrong_answer"),
        ("Who is older, Ors Velt or Ila Dell?", "Ila Dell", "none"),
        # nothing that dates, nations or numbers decide
        ("Who was a singer, Ors Velt or Ila Dell?", "Ila Dell", "undecided"),
        ("Were Ors Velt and Ila Dell both singers?", "no", "undecided"),
    ],
)
def test_comparisons(text: str, answer: str, expected: str) -> None:
    found = label(text, answer, ORS, ILA, kind="comparison")
    assert found.noise_type == expected
    assert {t.head for t in found.reasoning_path} == {"Ors Velt", "Ila Dell"}


def test_dates_that_tie() -> None:
    twin = Passage("Ila Dell", ("Ila Dell (1901 – 1980) was a singer.",), True)
    text = "Who was born first, Ors Velt or Ila Dell?"
    assert label(text, "Ila Dell", ORS, twin, kind="comparison").noise_type == "ambiguous_question"


def test_a_date_on_one_side_only_decides_nothing() -> None:
    undated = Passage("Ila Dell", ("Ila Dell was a singer.",), True)
    text = "Who was born first, Ors Velt or Ila Dell?"
    found = label(text, "Ors Velt", ORS, undated, kind="comparison")
    assert found.noise_type == "undecided"
    assert {t.relation for t in found.reasoning_path} == {"is described as"}


def test_a_comparison_with_one_side() -> None:
    found = label("Who is older, Ors Velt or Ila Dell?", "Ors Velt", ORS, kind="comparison")
    assert found.noise_type == "missing_evidence"
    assert "two branches" in found.explanation


SENTENCES = st.lists(st.text(max_size=20) | st.just("Ana Vorr (1901 – 1970) was."), max_size=3)


@given(
    st.lists(st.tuples(st.text(max_size=8), SENTENCES), max_size=3),
    st.text(max_size=20) | st.just("Who was born first, Ana or Ors?"),
    st.text(max_size=8),
    st.sampled_from(["bridge", "comparison", ""]),
)
def test_any_row_gets_a_label(pages: list[tuple[str, list[str]]], text: str, answer: str, kind: str) -> None:
    gold = [Passage(title, tuple(sentences), True) for title, sentences in pages]
    found = label(text, answer, *gold, kind=kind)
    assert found.explanation
    assert set(found.reasoning_path) <= set(found.knowledge_graph)


SOLE = Passage("Ann Sole", ("Ann Sole was a Danish painter.", "She had 3 children."), True)
UDE = Passage("Karl Ude", ("Karl Ude was a German poet.", "He had twelve children."), True)
KELBY = Passage("Kelby", ("Kelby is a town in Norland.", "It has 12,450 people."), True)
OSBY = Passage("Osby", ("Osby lies in western Norland, by the sea.", "It has 450 people."), True)


@pytest.mark.parametrize(
    ("text", "answer", "pages", "expected"),
    [
        ("Were Ann Sole and Karl Ude of the same nationality?", "yes", (SOLE, UDE), "wrong_answer"),
        ("Were Ann Sole and Karl Ude of the same nationality?", "no", (SOLE, UDE), "none"),
        ("Are Kelby and Osby in the same country?", "no", (KELBY, OSBY), "wrong_answer"),
        ("Are Kelby and Osby in the same country?", "yes", (KELBY, OSBY), "none"),
        ("Are Kelby and Ann Sole from the same country?", "no", (KELBY, SOLE), "undecided"),
        ("Did Ann Sole and Karl Ude both paint?", "yes", (SOLE, UDE), "undecided"),
        ("Which town has more people, Kelby or Osby?", "Osby", (KELBY, OSBY), "wrong_answer"),
        ("Which town has more people, Kelby or Osby?", "Kelby", (KELBY, OSBY), "none"),
        ("Who had fewer children, Ann Sole or Karl Ude?", "Ann Sole", (SOLE, UDE), "none"),
        ("Which of Kelby and Osby is the highest?", "Kelby", (KELBY, OSBY), "undecided"),
        ("In which land are Kelby and Osby?", "Norland", (KELBY, OSBY), "none"),
        ("In which land are Kelby and Osby?", "Velland", (KELBY, OSBY), "undecided"),
    ],
)
def test_a_comparison_counts_by_the_values_of_both_sides_or_is_undecided(
    text: str, answer: str, pages: tuple[Passage, ...], expected: str
) -> None:
    found = label(text, answer, *pages, kind="comparison")
    assert found.noise_type == expected, found.explanation
    if expected == "undecided":
        assert "was not checked" in found.explanation


def test_two_nations_of_one_person_decide_nothing() -> None:
    migrant = Passage("Ivo Brant", ("Ivo Brant was a German painter, born in Norway.",), True)
    found = label("Are Ivo Brant and Karl Ude of the same nationality?", "no", migrant, UDE, kind="comparison")
    assert found.noise_type == "undecided"


@pytest.mark.parametrize(("answer", "expected"), [("12450", "none"), ("12,450", "none"), ("2450", "missing_evidence")])
def test_a_large_number_may_have_commas(answer: str, expected: str) -> None:
    page = Passage("Kelby", ("Kelby is a town.", "Some 12,450 people live there."), True)
    assert label("How many people live in Kelby?", answer, page).noise_type == expected


def test_a_number_is_not_found_by_its_first_digits() -> None:
    page = Passage("Kelby", ("Kelby is a town.", "Some 12 people live there."), True)
    assert label("How many people live in Kelby?", "12,450", page).noise_type == "missing_evidence"
