from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from safe_stepwise.language.mentions import is_about, mentioned_within, mentions, names_in
from safe_stepwise.language.reading import Text, clean, read
from safe_stepwise.records import Passage


def page(title: str, *sentences: str) -> Text:
    return read(Passage(title, sentences))


def named(title: str, name: str, *sentences: str) -> list[str]:
    text = page(title, *sentences)
    return [text.clean[start:end] for start, end in mentions(text, name)]


# Cleaning


@given(st.text(max_size=60))
@example("\ud800'")
@example("~~ -- – 's's")
def test_cleaned_text_is_lower_case_words_and_marks(text: str) -> None:
    cleaned = clean(text)
    assert "  " not in cleaned
    assert cleaned == cleaned.strip()
    assert not set(cleaned) & set('"“”«»’‘–—.!?|\t\n')


@given(st.text(st.sampled_from('aBcdé19 ,;:().!?|"-ŁØ'), max_size=40))
@example("O'Dell's café; the \"old\" one (a.b)")
def test_cleaning_twice_changes_nothing_but_dashes_and_lone_quotes(text: str) -> None:
    cleaned = clean(text)
    assume("--" not in cleaned)
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Vorr's poem", "vorr 's poem"),
        ("the poets' inn", "the poets 's inn"),
        ("O’Dell", "odell"),
        ("Oru,Vel", "oru , vel"),
        ("1901–1970", "1901 -- 1970"),
        ("1901 - 1970", "1901 -- 1970"),
        ("well-known", "well known"),
        ("18 August 154216 November 1601", "18 august 1542 -- 16 november 1601"),
        ("1901Vel", "1901 -- vel"),
        ("U.S. Army", "usa army"),
        ("1,250", "1 , 250"),
        ("", ""),
    ],
)
def test_cleaned(text: str, expected: str) -> None:
    assert clean(text) == expected


# Life spans


BORN, DIED = "3 may 1901", "4 june 1970"


def life(*sentences: str) -> tuple[str, str]:
    """What directly follows the first "born" and the last "died" of a passage."""
    text = page("Ana Vorr", *sentences).clean
    born = re.search(rf"\bborn (?:{BORN}|1901)", text)
    died = re.search(rf"\bdied (?:{DIED}|1970)", text)
    return (born[0] if born else ""), (died[0] if died else "")


@pytest.mark.parametrize("dash", ["–", "—", "−", " – ", " — ", " - "])
@pytest.mark.parametrize(
    ("birth", "death"), [("1901", "1970"), ("3 May 1901", "4 June 1970"), ("May 1901", "June 1970")]
)
def test_both_ends_of_a_bare_span(dash: str, birth: str, death: str) -> None:
    text = page("Ana Vorr", f"Ana Vorr ({birth}{dash}{death}) was a poet.").clean
    assert f"( born {birth.lower()} -- died {death.lower()} )" in text


@pytest.mark.parametrize(
    "sentence",
    [
        "Ana Vorr (3 May 1901, Oru – 4 June 1970, Vel) was a poet.",
        "Ana Vorr (3 May 1901 in Oru – 4 June 1970 in Vel) was a poet.",
        "Ana Vorr (born 3 May 1901 – died 4 June 1970) was a poet.",
        "Ana Vorr (born 3 May 1901, died 4 June 1970) was a poet.",
        "Ana Vorr (born 3 May 1901; died 4 June 1970) was a poet.",
        "Ana Vorr (b. 3 May 1901 – d. 4 June 1970) was a poet.",
        "Ana Vorr (b. 3 May 1901, d. 4 June 1970) was a poet.",
        "Ana Vorr (b. 3 May 1901; d. 4 June 1970) was a poet.",
        "Ana Vorr (3 May 19014 June 1970) was a poet.",
        "Ana Vorr (3 May 1901 4 June 1970) was a poet.",
        "Ana Vorr (Kelvian: Ána; 3 May 1901 – 4 June 1970) was a poet.",
        "Ana Vorr (née Dell; 3 May 1901 – 4 June 1970) was a poet.",
        "Ana Vorr (3 May 1901, Oru (Kelvia) – 4 June 1970, Vel (Marnia)) was a poet.",
        'Ana Vorr ("the Reed") (3 May 1901 – 4 June 1970) was a poet.',
        "Ana Vorr, née Dell (3 May 1901 – 4 June 1970), was a poet.",
    ],
)
def test_life_spans_in_all_punctuations(sentence: str) -> None:
    assert life(sentence) == (f"born {BORN}", f"died {DIED}")


@pytest.mark.parametrize(
    "sentences",
    [
        ("Ana Vorr (3 May 1901, Oru –", " 4 June 1970, Vel) was a poet."),
        ("Ana Vorr (3 May 1901", " – 4 June 1970) was a poet."),
        ("Ana Vorr (b.", " 3 May 1901 – d.", " 4 June 1970) was a poet."),
    ],
)
def test_a_span_that_the_source_split_over_sentences(sentences: tuple[str, ...]) -> None:
    assert life(*sentences) == (f"born {BORN}", f"died {DIED}")


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Ana Vorr (born 1901) is a poet.", ("born 1901", "")),
        ("Ana Vorr (b. 1901) is a poet.", ("born 1901", "")),
        ("Ana Vorr (3 May 1901) is a poet.", (f"born {BORN}", "")),
        ("Ana Vorr (died 1970) was a poet.", ("", "died 1970")),
        ("Ana Vorr (d. 1970) was a poet.", ("", "died 1970")),
        ("Ana Vorr (d. 4 June 1970) was a poet.", ("", f"died {DIED}")),
        ("Ana Vorr (1901 – present) is a poet.", ("born 1901", "")),
    ],
)
def test_one_end_alone(sentence: str, expected: tuple[str, str]) -> None:
    assert life(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Ana Vorr (reigned 1901 – 1970) was a queen.",
        "Ana Vorr (ruled 1901 – 1970) was a queen.",
        "The Reeds (active 1901 – 1970) were a choir.",
        "Dune Rain (film, 1901 – 1970) was lost.",
        "It aired on May 3, 1901 (1901 – 05 – 03).",
        "Oru (population 1901) is a town.",
        "Oru was at war from 1901 – 1970.",
        "Dune Rain (1901) is a novel.",
    ],
)
def test_what_is_no_life_is_left_alone(sentence: str) -> None:
    assert life(sentence) == ("", "")


def test_a_span_with_a_plain_hyphen() -> None:
    assert life("Ana Vorr (1901-1970) was a poet.") == ("born 1901", "died 1970")


def test_a_span_with_an_unknown_birth() -> None:
    assert life("Ana Vorr (? – 4 June 1970) was a poet.") == ("", f"died {DIED}")


@pytest.mark.parametrize(
    "sentence",
    [
        "Ana Vorr (3 May 1901 – 4 June 1970) was a poet.",
        "Ana Vorr (born 3 May 1901; died 4 June 1970) was a poet.",
        "Ana Vorr (c. 1901 – c. 1970) was a poet.",
    ],
)
def test_each_event_is_said_once(sentence: str) -> None:
    text = page("Ana Vorr", sentence).clean
    assert text.count("born") == text.count("died") == 1
    assert "  " not in text


# Sentences


WORD = st.text(st.characters(categories=["Lu", "Ll", "Nd"], max_codepoint=0x17F), max_size=6)
ENDING = st.sampled_from([".", "!", "?", "", ",", '."', " "])


@given(st.lists(st.tuples(st.lists(WORD, max_size=4), ENDING), max_size=6), st.booleans())
def test_offsets_belong_to_their_sentence(parts: list[tuple[list[str], str]], with_life: bool) -> None:
    sentences = [f"{' '.join(words)} mark{n}x{ending}" for n, (words, ending) in enumerate(parts)]
    if with_life and sentences:
        sentences[0] = f"Ana Vorr (1901 – 1970) {sentences[0]}"
    text = page("Ana Vorr", *sentences)
    assert len(text.starts) == len(sentences)
    assert list(text.starts) == sorted(text.starts)
    for n in range(len(sentences)):
        match = re.search(rf"\bmark{n}x", text.clean)
        assert match
        assert text.sentence_at(match.start()) == n


@pytest.mark.parametrize(
    "sentences",
    [
        ("Ana Vorr (3 May 1901, Oru –", " 4 June 1970, Vel) was a poet.", "She sang."),
        ("Ana Vorr (1901 – 1970) was a poet.", "She was mute.", "She sang."),
        ("Ana Vorr (", "1901, Oru –", "4 June 1970, Vel) was a poet.", "She sang."),
        ("Ana Vorr (1901, Oru", " – 4 June 1970, Vel) was a poet.", "She sang."),
    ],
)
def test_offsets_around_a_life_span(sentences: tuple[str, ...]) -> None:
    text = page("Ana Vorr", *sentences)
    for n, sentence in enumerate(sentences):
        for word in re.findall(r"\b(?:1901|oru|1970|vel|poet|sang)\b", clean(sentence)):
            assert text.sentence_at(text.clean.index(f" {word}") + 1) == n, word


@given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=10))
def test_any_passage_is_read(sentences: list[str], title: str) -> None:
    text = page(title, *sentences)
    assert len(text.starts) == len(sentences)
    for offset in range(len(text.clean)):
        assert 0 <= text.sentence_at(offset) < max(1, len(sentences))
        low, high = text.sentence_span(offset)
        assert low >= 0
        assert high <= len(text.clean)


def test_a_sentence_span_is_the_sentence() -> None:
    text = page("Oru", "Oru is a town.", "It lies on the Vel,", "a river.", "It is old.")
    spans = {text.clean[slice(*text.sentence_span(o))].strip() for o in range(len(text.clean))}
    assert "it lies on the vel , a river" in spans
    assert "oru is a town" in spans


# Mentions


@pytest.mark.parametrize(
    ("name", "sentence", "expected"),
    [
        ("Ana Vorr", "Ana Vorr sang.", ["ana vorr"]),
        ("Élan Vorr", "Elan Vorr sang.", ["elan vorr"]),
        ("Ana Vorr", "Ana Maria Vorr sang.", ["ana maria vorr"]),
        ("Ana Vorr", "Ana Maria Lena Dell Vorr sang.", ["ana maria lena dell vorr"]),
        ("Ana Vorr", "Ana met her old aunt Ila Vorr.", []),
        ("Ana Vorr (poet)", "Ana Vorr sang.", ["ana vorr"]),
        ("Ana de la Vorr", "Ana Vorr sang.", ["ana vorr"]),
        ("Oru, Kelvia", "She lived in Oru.", ["oru"]),
        ("Bombay", "She lived in Mumbai.", ["mumbai"]),
        ("Mumbai", "She lived in Bombay.", ["bombay"]),
        ("Vel", "Velt and Novel and Vels.", []),
        ("Ana Vorr", "Ana Vorrig sang.", []),
        ("Ana Vorr", "Vorr sang.", []),
        ("The Silent Ford", "He made Silent Ford.", ["silent ford"]),
    ],
)
def test_mentions_of_a_name(name: str, sentence: str, expected: list[str]) -> None:
    assert named("Kelvia", name, sentence) == expected


def test_after_the_full_name_the_last_word_counts() -> None:
    found = named("Oru", "Ana Vorr", "Vorr is common.", "Ana Vorr came.", "Vorr sang.")
    assert found == ["ana vorr", "vorr"]


@pytest.mark.parametrize(
    ("name", "sentences"),
    [("Vel College", ("She was at Vel College.", "The college closed.")), ("Ana Vor", ("Ana Vor came.", "Vor sang."))],
)
def test_no_short_form(name: str, sentences: tuple[str, ...]) -> None:
    assert named("Oru", name, *sentences) == [clean(name)]


def test_a_namesakes_surname_is_not_counted() -> None:
    sentences = ("Ana Vorr was a poet.", "Ors Vorr was her brother.", "Vorr sang.")
    assert named("Ana Vorr", "Ors Vorr", *sentences) == ["ors vorr"]
    assert named("Ana Vorr", "Ana Vorr", *sentences)[0] == "ana vorr"
    assert named("Ana Vorr", "Ana Vorr", *sentences)[-1] == "vorr"


def test_a_relatives_full_name_is_no_mention() -> None:
    assert named("Oru", "Ana Vorr", "Ana Vorr came.", "Ors Vorr sang.") == ["ana vorr"]


def test_mentioned_within() -> None:
    text = page("Oru", "Ana Vorr came.", "Vorr sang.", "Nobody did.")
    second, third = text.starts[1], text.starts[2]
    assert mentioned_within(text, "Ana Vorr", 0, second)
    assert mentioned_within(text, "Ana Vorr", second - 1, third)
    assert not mentioned_within(text, "Ana Vorr", second - 1, third, in_full=True)
    assert not mentioned_within(text, "Ana Vorr", third, len(text.clean))


@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=3))
def test_any_name_is_looked_for(name: str, sentences: list[str]) -> None:
    text = page("Oru", *sentences)
    for start, end in mentions(text, name):
        assert 0 <= start < end <= len(text.clean)
    is_about(text, name)


# Subjects


@pytest.mark.parametrize(
    ("title", "opening", "name"),
    [
        ("Ana Vorr", "She was a poet.", "Ana Vorr"),
        ("Ana Vorr", "She was a poet.", "ÁNA VORR"),
        ("Ana Vorr (poet)", "She was a poet.", "Ana Vorr"),
        ("Ana Vorr", "She was a poet.", "Ana Vorr (poet)"),
        ("Ana Vorr", "She was a poet.", "Ana Maria Vorr"),
        ("Ana Maria Vorr", "She was a poet.", "Ana Vorr"),
        ("Ana Vorr", "She was a poet.", "Sir Ana Vorr"),
        ("Ana Vorr", "Ana Vorr was a poet.", "Vorr"),
        ("Ana Vorr", "Ana Vorr, known as Mina Dell, was a poet.", "Mina Dell"),
        ("Ana Vorr", "Ana Vorr, née Mina Dell, was a poet.", "Mina Dell"),
        ("Ana Vorr", "Ana Vorr (born Mina Dell; 1901) is a poet.", "Mina Dell"),
        ("Mina", "Mina Dell (1901 – 1970) was a poet.", "Mina Dell"),
        ("Dune Rain (1954 film)", "Dune Rain is a film.", "Dune Rain"),
    ],
)
def test_is_about(title: str, opening: str, name: str) -> None:
    assert is_about(page(title, opening), name)


@pytest.mark.parametrize(
    ("title", "opening", "name"),
    [
        ("Ana Vorr", "Ana Vorr was a poet.", "Ors Vorr"),
        ("Ana Vorr", "Ana Vorr met Mina Dell.", "Mina Dell"),
        ("Ana Vorr", "Ana Vorr, the wife of Mina Dell, was a poet.", "Mina Dell"),
        ("Ana Vorr", "Ana Vorr was a poet. She was born to Mina.", "Mina"),
        ("Oru", "Oru is a town in Kelvia.", "Kelvia"),
        ("Sand and Rain", "It is a film.", "Sand"),
        ("Ana Vorr", "3 May 1901 was her birthday.", "3 May 1901"),
        ("Ana Vorr", "She was a poet.", ""),
        ("Ana Vorr Prize", "The Ana Vorr Prize is a prize.", "Ana Vorr"),
    ],
)
def test_is_not_about(title: str, opening: str, name: str) -> None:
    assert not is_about(page(title, opening), name)


# Names


def test_names_in_a_passage() -> None:
    found = names_in(
        Passage("Oru (town)", ("In 1901 the painter Ana Vorr came.", "The Vel crosses it.", "She met Ors of Marn."))
    )
    assert found["ana vorr"] == ("Ana Vorr", 0)
    assert found["ors of marn"] == ("Ors of Marn", 2)
    assert not {"in", "the", "she"} & set(found)


@pytest.mark.parametrize(
    ("sentences", "spans"),
    [
        # cut at an abbreviation, an initial, within brackets
        (("He met Dr.", "Ana Vorr."), 1),
        (("He met A.", "Vorr."), 1),
        (("Ana Vorr (born 1901 in St.", "Oru) sang."), 1),
        (("Ana Vorr FRSE (", "1901 – 1970) sang."), 1),
        (("He met Ana Vorr.", "She sang."), 2),
        # several sentences that a source gives as one
        (("Directed by Ana Vorr. Music by Ors Velt.",), 2),
        (("Released by Vorr Bros. Records in Oru.",), 1),
    ],
)
def test_where_sentences_end(sentences: tuple[str, ...], spans: int) -> None:
    text = read(Passage("Ana Vorr", sentences))
    found = {text.sentence_span(at) for at, char in enumerate(text.clean) if char.isalpha()}
    assert len(found) == spans


@pytest.mark.parametrize(
    ("sentence", "spelled"),
    [
        ("Ana Vorr (1901 – 1970) was a poet.", True),
        ("Ana Vorr (1901 – 1970), a poet, sang.", True),
        ("The Oru War (1901 – 1970) was a war in Vel.", False),
        ("Oru Castle (1901 – 1970) was a large castle near Vel.", False),
        ("Vorr was king of Oru (1901 – 1970).", False),
        ("Ana Vorr (1901 – 1970) was a film and television director.", True),
    ],
)
def test_only_people_have_a_life_span(sentence: str, spelled: bool) -> None:
    text = read(Passage("It", (sentence,)))
    assert ("born 1901 -- died 1970" in text.clean) is spelled


@pytest.mark.parametrize(
    ("written", "cleaned"),
    [
        ("b. 3 May 1901, Oru", "born 3 may 1901 , oru"),
        ("Vorr m. (1925) Ors Velt", "vorr married ( 1925 ) ors velt"),
        ("Educ.: Oru College", "educated at oru college"),
        ("It is 5 m. high", "it is 5 m high"),
        ("John B. Vorr", "john b vorr"),
        ("Visva - Bharati", "visva bharati"),
        ("1901 - 1970", "1901 -- 1970"),
        ("Vel - May 1970", "vel -- may 1970"),
    ],
)
def test_what_reference_works_and_corpora_write(written: str, cleaned: str) -> None:
    assert clean(written) == cleaned
