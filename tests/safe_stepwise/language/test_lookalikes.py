"""Text that looks alike is alike: no label, verdict or reward turns on what no reader sees."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.benchmarks import BENCHMARKS
from builders.verified.lookup import real_rows
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from safe_stepwise.checking.rewards import checker_of, judge_trajectory
from safe_stepwise.language.text import MONTHS, fold, normal_name
from safe_stepwise.records import Passage, Question
from tests.safe_stepwise.checking.test_rewards import told

_NAMES = [month.title() for month in MONTHS]
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(_NAMES)}),? (\d{{4}})\b")
_MONTH_FIRST = re.compile(rf"\b({'|'.join(_NAMES)}) (\d{{1,2}}), (\d{{4}})\b")


def iso(text: str) -> str:
    text = _DAY_FIRST.sub(lambda d: f"{d[3]}-{_NAMES.index(d[2]) + 1:02}-{int(d[1]):02}", text)
    return _MONTH_FIRST.sub(lambda d: f"{d[3]}-{_NAMES.index(d[1]) + 1:02}-{int(d[2]):02}", text)


def within_words(mark: str) -> Callable[[str], str]:
    return lambda text: re.sub(r"\b(\w{3})(\w{2})", rf"\1{mark}\2", text)


def put(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


DISGUISES: dict[str, Callable[[str], str]] = {
    **{f"apostrophe {ord(mark):04X}": put("'", mark) for mark in "’ʻʼʹ′´＇"},
    **{f"hyphen {ord(mark):04X}": lambda t, m=mark: re.sub(r"(?<=\w)-(?=\w)", m, t) for mark in "−‐‑"},
    **{f"within words {ord(mark):04X}": within_words(mark) for mark in "\u00ad\u200b\u200c\u200d\u2060\ufeff"},
    "marks of direction": lambda text: re.sub(r"(\w{4,})", "\u200e\\1\u200f", text),
    "spaces": put(" ", "\u00a0"),
    "&nbsp;": put(" ", "&nbsp;"),
    "&#39;": put("'", "&#39;"),
    "&#x27;": put("'", "&#x27;"),
    "&quot;": put('"', "&quot;"),
    "&amp;": put("&", "&amp;"),
    "US": put("U.S.", "US"),
    "U.S.": lambda text: re.sub(r"\bUS\b", "U.S.", text),
    "dates of ISO 8601": iso,
    "digits of full width": lambda text: re.sub(r"\d", lambda digit: chr(0xFF10 + int(digit[0])), text),
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hawaiʻi", "Hawai'i"),
        ("O′Dell", "O'Dell"),
        ("Smith−Jones", "Smith-Jones"),
        ("so\u00adcalled", "socalled"),
        ("Ana\u200bVorr", "AnaVorr"),
        ("Vorr &amp; Velt", "Vorr & Velt"),
        ("Vorr&nbsp;Velt", "Vorr Velt"),
        ("&quot;Oru&quot;", '"Oru"'),
        ("O&#39;Dell", "O'Dell"),
        ("U.S. Army", "US Army"),
        ("U. S. Army", "US Army"),
        ("u.s. army", "US Army"),
        ("Grandview, u.s.a.", "Grandview, USA"),
        ("u.k. parliament", "UK Parliament"),
        ("Washington, D.C.", "Washington, DC"),
        ("1917-04-03", "3 April 1917"),
    ],
)
def test_what_looks_alike_is_one_name(one: str, other: str) -> None:
    assert normal_name(one) == normal_name(other)


@pytest.mark.parametrize(
    "text",
    [
        "AT&T; and R&D;",
        "a & b;",
        "1917-13-03",
        "1917-04-32",
        "12-04-1917",
        "it told us",
        "us army",
        "it told us. So it ends.",
        "u.s.s. oru",
        "option u. s. ends",
        "J.R.R. Vorr",
        "U.S.S. Oru",
        "LET US PRAY",
        "TOLD US THAT",
        "US$5",
        "&region;",
        "—",
    ],
)
def test_what_only_looks_as_if_stays(text: str) -> None:
    assert fold(text) == text


@given(st.text(st.characters(max_codepoint=127)))
def test_folding_twice_folds_once_more_only_what_was_escaped(text: str) -> None:
    once = fold(text)
    assert "&" in once or fold(once) == once


@given(st.text())
def test_nothing_unseen_is_left(text: str) -> None:
    assert not re.search("[\u00ad\u200b-\u200f\u2060\ufeff]", fold(text))


def disguised(question: Question, disguise: Callable[[str], str]) -> Question:
    """The question as a source would have it whose gold passages are written otherwise."""
    pages = tuple(
        Passage(disguise(page.title), tuple(map(disguise, page.sentences)), True) if page.is_gold else page
        for page in question.passages
    )
    facts = tuple(replace(fact, title=disguise(fact.title)) for fact in question.supporting_facts)
    return replace(question, passages=pages, supporting_facts=facts)


def noise_type(question: Question) -> str:
    return asyncio.run(verify(question, AnnotationsTeacher())).noise_type


@cache
def some_real(data: Path) -> tuple[Question, ...]:
    _, rows = real_rows(data)
    return tuple(question for labelled in rows.values() for question, _ in labelled[::17])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", DISGUISES)
def test_no_label_of_a_real_row_turns_on_its_spelling(name: str, real_data: Path) -> None:
    asked = some_real(real_data)
    assert len(asked) > 60
    changed = {
        question.id: noise_type(question)
        for question in asked
        if (other := disguised(question, DISGUISES[name])) != question and noise_type(other) != noise_type(question)
    }
    assert not changed


def step_lines(trajectory: str, disguise: Callable[[str], str]) -> Iterator[str]:
    """The lines of a trajectory, each disguised between its number and its kind."""
    for line in trajectory.splitlines():
        head, _, rest = line.partition(": ")
        body, _, kind = rest.rpartition(" (")
        marker = "####ANSWER: " if body.startswith("####ANSWER: ") else ""
        yield f"{head}: {marker}{disguise(body.removeprefix(marker))} ({kind}"


@pytest.mark.parametrize("name", DISGUISES)
def test_no_verdict_turns_on_how_a_step_is_spelled(name: str) -> None:
    for one in told()[::4]:
        checker = checker_of(one.row)
        assert checker is not None
        for ideal in one.ideal:
            judged = judge_trajectory(checker, "\n".join(step_lines(ideal, DISGUISES[name])))
            assert judged.reward == 1.0, judged.labels
        for injected in one.injected:
            judged = judge_trajectory(checker, "\n".join(step_lines(injected, DISGUISES[name])))
            assert judged.reward < 0.5


def test_a_supporting_fact_means_the_title_that_looks_alike() -> None:
    row = {
        "_id": "q1", "question": "Where was Ana O'Dell born?", "answer": "Oru", "type": "bridge", "level": "easy",
        "context": [["Ana O'Dell", ["Ana O'Dell was born in Oru."]], ["Oru & Vel", ["Oru lies on the Vel."]]],
        "supporting_facts": [["Ana O’Dell", 0], ["Oru &amp; Vel", 0]],
    }  # fmt: skip
    question = BENCHMARKS["hotpotqa"].parse(row, "train")
    assert [fact.title for fact in question.supporting_facts] == ["Ana O'Dell", "Oru & Vel"]
    assert all(page.is_gold for page in question.passages)
