"""Shortened sentences have words of the sentence alone, in its order, and what was needed."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.language.clauses import shorten
from safe_stepwise.language.syntax import MAX_TEXT_CHARS

PIECES = st.lists(
    st.sampled_from(
        ["Ana Vorr", "who", "was", "a poet", "and", "(born 1901)", ",", "of Oru", "(", ")", ";", "in 1930", "–", "“"]
    ),
    max_size=12,
)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def is_part(short: list[str], long: list[str]) -> bool:
    """Whether the words of one text stand in another in their order."""
    following = iter(long)
    return all(word in following for word in short)


@given(PIECES)
def test_any_words_are_shortened_to_words_of_theirs(pieces: list[str]) -> None:
    sentence = f"{' '.join(pieces)}."
    for form in shorten(sentence, ""):
        assert is_part(words(form), words(sentence))
        assert form.endswith(".")
        assert len(form) < len(sentence) + 1


@pytest.mark.parametrize("file", ["hotpotqa_dev.jsonl", "2wikimultihopqa_dev.jsonl"])
def test_sentences_of_real_passages_keep_what_is_needed(file: str, real_data: Path) -> None:
    rows = [json.loads(line) for line in (real_data / file).read_text().splitlines()[:15]]
    shortened = 0
    for sentence in (sentences[0].strip() for row in rows for _, sentences in row["context"] if sentences):
        needed = (re.findall(r"[A-Z]\w+", sentence) or [""])[-1]
        for form in shorten(sentence, needed):
            shortened += 1
            assert needed in form
            assert is_part(words(form), words(sentence))
    assert shortened > 100


@pytest.mark.parametrize(
    "sentence",
    [
        "Ana Vorr was a poet, according to her son, of great renown.",
        "Oru is a town of Kelvia, except for its north, which is a park.",
        "He would lead the band, if he had lived (in Lom).",
    ],
)
def test_what_holds_under_a_condition_is_not_shortened(sentence: str) -> None:
    assert shorten(sentence, "") == ()


def test_a_denial_stays() -> None:
    for form in shorten("Ana Vorr (1901–1950), who lived in Oru, was not a poet and never left Lom.", "poet"):
        assert "was not a poet" in form


def test_a_text_without_end_is_left() -> None:
    assert shorten(f"Ana Vorr was a {'poet and a ' * MAX_TEXT_CHARS}painter.", "") == ()
