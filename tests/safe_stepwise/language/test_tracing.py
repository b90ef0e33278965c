"""Offsets survive what is done to a text before it is read."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from safe_stepwise.checking.step_reading import remove_silences
from safe_stepwise.language.text import TracedText, fold, fold_traced

PIECES = (
    "“", "”", "’", "`", "–", "−", "\u00ad", "\u200b", "\u202e", "e\u0301", "é", "😀", "👩\u200d🚀", "\r\n", "\u3000",
    "Ａ", "&amp;", "&#39;", "&nothing;", "1917-04-03", "U.S.", "U. S. ", "US ", "Oru", " ", ".", ", ", "; ", ", but ",
    "Passage 5 does not mention it", "Passage 3 says that Oru is a town", "While Passage 2 is silent, ", "a", "1",
)  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=14).map("".join)


@given(TEXTS)
def test_a_traced_text_is_the_folded_one(text: str) -> None:
    assert fold_traced(text).text == fold(text)


@given(TEXTS)
@example("While Passage 2 is silent on it, Passage 3 says that Oru is a town.")
@example("Passage 5 does not mention it, but Passage 3 says that “Oru” is a town")
def test_each_character_keeps_its_place(text: str) -> None:
    traced = remove_silences(fold_traced(text))
    assert traced.text == remove_silences(TracedText.from_source(fold(text))).text
    assert len(traced.starts) == len(traced.ends) == len(traced.text)
    edges = [0, *[edge for pair in zip(traced.starts, traced.ends, strict=True) for edge in pair], len(text)]
    assert all(a <= b for a, b in zip(traced.starts, traced.ends, strict=True))
    assert min(edges) == 0
    assert max(edges) == len(text)
    assert list(traced.starts) == sorted(traced.starts)
    for char, start, end in zip(traced.text, traced.starts, traced.ends, strict=True):
        if end - start == 1 and char.isalnum() and text[start:end].isascii():
            assert text[start:end] == char


@given(TEXTS, st.data())
def test_a_span_of_the_folded_text_folds_back(text: str, data: st.DataObject) -> None:
    traced = fold_traced(text)
    for word in re.finditer(r"\w+", traced.text):
        start, end = traced.source_span(*word.span())
        assert 0 <= start < end <= len(text)
        assert word[0] in fold(text[start:end])


def test_what_replaces_a_match_stands_for_all_of_it() -> None:
    source = "born 1917-04-03 in the U.S."
    traced = fold_traced(source)
    assert traced.text == "born 3 April 1917 in the USA."
    assert source[slice(*traced.source_span(5, 6))] == "1917-04-03"
    assert source[slice(*traced.source_span(len(traced.text) - 4, len(traced.text)))] == "U.S."
    assert traced.source_span(len(traced.text), len(traced.text)) == (len(source), len(source))
    assert TracedText.from_source("").source_span(0, 0) == (0, 0)
