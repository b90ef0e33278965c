"""Lists of questions: what is read of them, and which rows they name."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builders.verified.teachers.published import PublishedTeachers, QuestionList, plain, questions_of, read_list
from safe_stepwise.errors import UserError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
LINES = TEXTS.filter(lambda text: "\n" not in text and not text.endswith("\r"))
JSON_LIKE = ('"', "[", "{", "\ufeff")


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def is_named(question: str, *texts: str) -> bool:
    return plain(question) in PublishedTeachers((QuestionList("a.txt", "", texts),)).noise


# Reading


@given(st.lists(LINES, min_size=1), st.sampled_from(["\n", "\r\n", "\n\n", "\n \t\n"]), st.booleans())
def test_bare_lines_are_read_as_they_stand(texts: list[str], end: str, marked: bool) -> None:
    """U+2028 and the like end no line, blanks at the ends stay."""
    assume(not any(text.lstrip().startswith(JSON_LIKE) for text in texts))
    content = (end.join(texts) + end).encode()
    assert questions_of((b"\xef\xbb\xbf" if marked else b"") + content) == texts


@given(st.lists(TEXTS, min_size=1), st.booleans(), st.sampled_from(["", " ", "\t"]))
def test_lines_of_json_strings_are_what_they_say(texts: list[str], escaped: bool, by: str) -> None:
    lines = (f"{by}{json.dumps(text, ensure_ascii=escaped)}{by}" for text in texts)
    assert questions_of("\n".join(lines).encode()) == texts


@given(st.lists(TEXTS, min_size=1), st.sampled_from([None, 2]))
def test_an_array_of_strings_is_a_list(texts: list[str], indent: int | None) -> None:
    assert questions_of(json.dumps(texts, indent=indent).encode()) == texts


@given(st.lists(TEXTS, min_size=1), st.sampled_from([None, 2]))
def test_an_array_that_is_cut_short_is_no_question(texts: list[str], indent: int | None) -> None:
    with pytest.raises(ValueError, match="cut short"):
        questions_of(json.dumps(texts, indent=indent).rstrip("]").encode())


@given(LINES, st.lists(LINES, min_size=1))
def test_a_quotation_mark_alone_makes_no_json(bare: str, others: list[str]) -> None:
    """A question may begin with a quoted title."""
    assume(not is_json(bare) and not bare.lstrip().startswith(("\ufeff", "{", "[")))
    quoted = [json.dumps(text) for text in others]
    assert questions_of("\n".join([bare, *quoted]).encode()) == [bare, *quoted]


@given(st.binary())
def test_whatever_a_file_holds(content: bytes) -> None:
    reason = ""
    try:
        found = questions_of(content)
    except ValueError as error:
        reason = str(error)
        found = []
    assert bool(found) is not reason.startswith(":")
    assert all(isinstance(text, str) and text.strip() for text in found)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", ": holds no question"),
        (b" \n\r\n", ": holds no question"),
        (b'["", " "]', ": holds no question"),
        (b"Where is Oru?\nWho \xff", ":2: not UTF-8 text"),
        (b'Where is Oru?\n{"id": "1", "unverifiable": true}', ": holds an object of JSON"),
        (b'{"id": "1",\n "unverifiable": true}', ": holds an object of JSON"),
        (b'["Where is Oru?", 3]', ": entry 2 is not the text of a question"),
        (b'[{"question": "Where is Oru?"}]', ": entry 1 is not the text of a question"),
    ],
)
def test_what_is_no_list_says_so_in_one_line(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "a_wrong.txt"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_list(file)
    assert str(caught.value).startswith(f"{file}{says}")
    assert str(caught.value).endswith("; name a text file of questions, one a line")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a_wrong\.txt: cannot be read"):
        read_list(tmp_path / "a_wrong.txt")


# Naming


@given(TEXTS, st.lists(TEXTS))
def test_a_list_names_its_own_texts(text: str, others: list[str]) -> None:
    assert is_named(text, *others, text)


@given(TEXTS)
def test_the_plain_form_is_one(text: str) -> None:
    assert plain(plain(text)) == plain(text)
    assert plain(f"\u00a0{text}\t\n") == plain(text)
    assert plain(unicodedata.normalize("NFD", text)) == plain(unicodedata.normalize("NFC", text))


@given(TEXTS, TEXTS)
def test_texts_with_one_plain_form_name_each_other(one: str, other: str) -> None:
    assert is_named(other, one) == (plain(one) == plain(other))


def test_case_and_marks_are_no_blanks() -> None:
    assert is_named(" Who  wrote E\u0301mile?", "Who wrote Émile?")
    for other in ("who wrote Émile?", "Who wrote Emile?", "Who wrote Émile"):
        assert not is_named(other, "Who wrote Émile?")
