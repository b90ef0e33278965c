from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.language.cues import governing_cues
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import REACH, RELATIONS, cue_pattern, nation_pattern, parse_question, same_nation
from safe_stepwise.language.vocabulary import load

GROUPS = tuple(load("relations")["cues"])


def cues(sentence: str, name: str, group: str) -> set[str]:
    text = clean(sentence)
    start = text.index(clean(name))
    return set(governing_cues(text, start, start + len(clean(name)), 0, len(text), group))


@pytest.mark.parametrize(
    ("sentence", "group", "expected"),
    [
        # the last cue before the name
        ("It was directed by Ana Vorr.", "credit", {"director"}),
        ("It was produced by Ors Velt and directed by Ana Vorr.", "credit", {"director"}),
        ("It was directed by Ors Velt and starred Ana Vorr.", "credit", {"cast"}),
        ("She was born in Oru and died in Ana Vorr.", "life", {"death"}),
        # coordinated
        ("It was written and directed by Ana Vorr.", "credit", {"writer", "director"}),
        ("It was written, produced and directed by Ana Vorr.", "credit",
         {"writer", "producer", "director"}),
        ("It was written by and co-directed by Ana Vorr.", "credit", {"writer", "director"}),
        # after the name
        ("Ana Vorr directed the film.", "credit", {"director"}),
        ("Ana Vorr, who wrote the book.", "credit", {"writer"}),
        ("Ana Vorr's film was lost.", "credit", {"director"}),
        ("Ana Vorr's novel was lost.", "credit", {"writer"}),
        ("Ana Vorr's last great opera was lost.", "credit", {"composer"}),
        ("Ana Vorr and Ors Velt directed it.", "credit", {"director"}),
        # much nearer on one side
        ("It was directed by Ana Vorr, who sang well.", "credit", {"director"}),
        ("It was directed by the old and tired Ors Velt. Ana Vorr sang.", "credit", {"performer"}),
        # not the subject of what follows
        ("Ana Vorr was there and Ors Velt directed it.", "credit", set()),
        ("Ana Vorr was directed by Ors Velt.", "credit", set()),
        ("To Ana Vorr it was written by Ors Velt.", "credit", set()),
        ("Ana Vorr is old, but Ors Velt wrote it.", "credit", set()),
        # brackets close over their cue
        ("Dune Rain (directed by Ors Velt) has Ana Vorr.", "credit", set()),
        ("Dune Rain has (directed by Ana Vorr) no end.", "credit", {"director"}),
        # too far away
        (f"It was directed by {'one ' * (REACH // 3)}Ana Vorr.", "credit", set()),
        ("Nothing is said of Ana Vorr here.", "credit", set()),
        # contact trumps the other cues of places
        ("It signed a treaty with the capital Ana Vorr.", "place", {"contact"}),
        ("It trades with the capital Ana Vorr.", "place", {"contact"}),
        ("Its capital is Ana Vorr.", "place", {"capital"}),
        ("Its choir visited the district of Ana Vorr.", "place", {"contact"}),
    ],
)  # fmt: skip
def test_the_cue_that_governs_a_name(sentence: str, group: str, expected: set[str]) -> None:
    assert cues(sentence, "Ana Vorr", group) == expected


def test_a_sentence_ends_the_search() -> None:
    text = "it was directed there . by ana vorr"
    start, low = text.index("ana"), text.index("by")
    assert governing_cues(text, start, start + 8, 0, len(text), "credit") == {"director"}
    assert governing_cues(text, start, start + 8, low, len(text), "credit") == set()


@given(
    st.lists(st.sampled_from("born died directed by married and ( ) , in ana vorr 's . film".split()), max_size=14),
    st.data(),
)
def test_any_span_has_labels_of_its_group(words: list[str], data: st.DataObject) -> None:
    text = " ".join(words)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    for group in GROUPS:
        labels = set(load("relations")["cues"][group])
        assert governing_cues(text, start, end, 0, len(text), group) <= labels


# The vocabulary itself


def test_every_relation_has_a_group_that_knows_its_cues() -> None:
    for relation in RELATIONS.values():
        if relation.group:
            assert relation.cues, relation.name
            assert relation.cues <= set(load("relations")["cues"][relation.group]), relation.name


@pytest.mark.parametrize("group", GROUPS)
def test_cues_are_written_as_cleaned_text(group: str) -> None:
    cue_pattern(group)
    for label, wordings in load("relations")["cues"][group].items():
        for wording in wordings:
            plain = re.sub(r"\\\w|\(\?[:!]|\[.*?\]|[()|?*+{}]", "", wording)
            assert plain == plain.lower(), (label, wording)
            assert "-" not in plain, (label, wording)
            assert f"{label}" == clean(label)


@pytest.mark.parametrize(
    ("question", "subject", "relation"),
    [
        ("Where was Ana Vorr born?", "Ana Vorr", "place of birth"),
        ("In what city was Ana Vorr born?", "Ana Vorr", "place of birth"),
        ("Where did #1 die?", "#1", "place of death"),
        ("When did Ana Vorr die?", "Ana Vorr", "date of death"),
        ("who is the spouse of Ana Vorr", "Ana Vorr", "spouse"),
        ("Who was Ana Vorr married to?", "Ana Vorr", "spouse"),
        ("Who is Ana Vorr 's father?", "Ana Vorr", "father"),
        ("Who directed Dune Rain?", "Dune Rain", "director"),
        ("Who directed the 1954 film Dune Rain?", "the 1954 film Dune Rain", "director"),
        ("What is the capital of #2?", "#2", "capital"),
        ("In which country is Oru?", "Oru", "country"),
        ("When was  Dune Rain  released ?", "Dune Rain", "publication date"),
    ],
)
def test_what_a_hop_asks(question: str, subject: str, relation: str) -> None:
    found = parse_question(question)
    assert found is not None
    assert (found.subject, found.relation, found.inverse) == (subject, relation, False)


@pytest.mark.parametrize(
    ("question", "subject", "relation"),
    [
        ("Which film was directed by Ana Vorr?", "Ana Vorr", "director"),
        ("What is the song that was written by Ana Vorr?", "Ana Vorr", "author"),
        ("Which book was written by Ana Vorr?", "Ana Vorr", "author"),
        ("Which film that starred Ana Vorr?", "Ana Vorr", "cast member"),
        ("What is the film starring Ana Vorr?", "Ana Vorr", "cast member"),
    ],
)
def test_what_an_inverse_hop_asks(question: str, subject: str, relation: str) -> None:
    found = parse_question(question)
    assert found is not None
    assert (found.subject, found.relation, found.inverse) == (subject, relation, True)


@pytest.mark.parametrize(
    "question",
    ["Where was the oldest brother of the king born?", "How tall is Ana Vorr?", "Where was born?", "Ana Vorr", ""],
)
def test_what_is_not_understood(question: str) -> None:
    assert parse_question(question) is None


@given(st.text(max_size=60))
def test_any_question_is_asked(question: str) -> None:
    found = parse_question(question)
    assert found is None or found.relation in RELATIONS


@pytest.mark.parametrize(
    ("nation", "form"),
    [
        ("germany", "german"),
        ("german", "germany"),
        ("united kingdom", "british"),
        ("kingdom of italy", "italian"),
        ("dutch", "netherlands"),
    ],
)
def test_nations_and_their_people(nation: str, form: str) -> None:
    assert nation_pattern(nation).fullmatch(form)
    assert same_nation(form, nation)


@pytest.mark.parametrize(
    ("one", "other"), [("niger", "nigeria"), ("austrian", "australian"), ("austria", "australia"), ("oru", "vel")]
)
def test_nations_that_only_begin_alike(one: str, other: str) -> None:
    assert not same_nation(one, other)


@pytest.mark.parametrize("nation", ["marn", "oru", "iran", "the republic of marn"])
def test_a_nation_is_itself_and_no_shorter_word(nation: str) -> None:
    name = nation.removeprefix("the republic of ")
    assert nation_pattern(nation).fullmatch(name)
    assert not nation_pattern(nation).search(name[:-1])
