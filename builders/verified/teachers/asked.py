"""What a HotpotQA question asks for, held against what its gold passages and its answer give.

HotpotQA annotates no relations, so that each check reads one sort of question alone (when, how
many, who; how many more; of one country; both of one occupation) and doubts only where the text
lacks the very sort of thing that is asked for. What no check reads is not doubted. Confidences are
judged, not measured: of 1,273 real rows these checks doubt seven, all of which are published noise.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from safe_stepwise.graphs.comparisons import without_names
from safe_stepwise.language.reading import CAPITAL, clean, read
from safe_stepwise.language.text import as_number, dates_in, has_words, normal_name, words_of
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import NoiseType, Passage, Question


class Doubt(NamedTuple):
    """Why an answer may not follow: noise type, explanation, and how surely (0-1)."""

    noise_type: NoiseType
    explanation: str
    confidence: float


def doubt(question: Question) -> Doubt | None:
    """The first doubt that a question's words raise, or None.

    >>> doubt(Question("q", "b", "train", "When did it end?", "after 53 days")).explanation
    'The question asks when; the answer “after 53 days” gives no date.'
    """
    checks = _COMPARED if "comparison" in question.kind else _ANSWERED
    return next((found for check in checks for found in check(question)), None)


# ----------------------------------------------------------------------------- the answer's sort

_WHEN = re.compile(r"\s*(?:in |since |until )?when (?:did|was|were|is|does|will|has)\b", re.I)
_A_TIME = re.compile(r"\d{3}|\d0s\b|centur|decade|spring|summer|autumn|winter|\w+day\b|today|present|now\b", re.I)
_HOW_MANY = re.compile(r"\bhow (?:many|much|old|tall)\b", re.IGNORECASE)
_AMOUNT = re.compile(
    r"\w+ty\b|hundred|thousand|million|dozen|once|twice|first|second|third|several|many|half|\bno\b", re.IGNORECASE
)
_WHO = re.compile(r"\s*who\b(?!.*\bor\b)", re.IGNORECASE)


def _another_sort(question: Question) -> Iterator[Doubt]:
    """A time asked for and none given, or a number; names of what happened then may be times."""
    asked, answer = question.question, question.answer
    told = f"the answer “{answer}” gives"
    if _WHEN.match(asked) and not (dates_in(answer) or _A_TIME.search(answer) or re.search(CAPITAL, answer)):
        yield Doubt("wrong_answer", f"The question asks when; {told} no date.", 0.6)
    how = _HOW_MANY.search(asked)
    if how and as_number(answer) is None and not _AMOUNT.search(answer):
        yield Doubt("wrong_answer", f"The question asks {how[0].lower()}; {told} no number.", 0.6)


def _named_in_the_question(question: Question) -> Iterator[Doubt]:
    """Somebody who is asked for is not named in asking, but where there is a choice."""
    name = normal_name(question.answer)
    if name and _WHO.match(question.question) and has_words(words_of(question.question), name):
        why = f"The question asks who, and names “{question.answer}” itself as somebody else."
        yield Doubt("wrong_answer", why, 0.6)


# ------------------------------------------------------------------------------ compared numbers

_NO_NOUN = "than|that|and|or|between|in|of|on|to|does|did|is|was|are|has|have|his|its|this|x"
_COUNTED = re.compile(
    rf"\b(more|most|fewer|fewest) (?:than )?(?:(?!(?:{_NO_NOUN})\b)[\w'’-]+ ){{0,4}}"
    rf"(?!(?:{_NO_NOUN})\b)([\w-]+s)\b",
    re.IGNORECASE,
)
_ENDING = re.compile(r"(?:ies|es|s)$")
_NUMBERS = "|".join(load("words")["numbers"].split())
_COUNT = rf"(?<!one of the )(?<!one of the top )\b(\d[\d,]*|{_NUMBERS})(?: \w+){{0,4}}? "
_AMOUNTS = rf"\b(?:\d[\d,]*|{_NUMBERS}|several|many|numerous|few|hundreds|thousands|dozens)\b"


def _uncounted(question: Question) -> Iterator[Doubt]:
    """More or fewer of something: a number of it on one side, and none on the other."""
    asked = _COUNTED.search(without_names(question.question, [passage.title for _, passage in question.gold]))
    if asked is None or len(question.gold) != 2:
        return
    noun = asked[2]
    stem = re.escape(_ENDING.sub("", clean(noun)))
    (_, one), (_, other) = question.gold
    matches = (re.finditer(rf"{_COUNT}{stem}", read(passage).clean) for passage in (one, other))
    counts = [[n for match in found if (n := as_number(match[1])) is not None] for found in matches]
    if bool(counts[0]) != bool(counts[1]):
        counted, lacking = (one, other) if counts[0] else (other, one)
        if not _has_amount(lacking, stem):
            why = f"“{counted.title}” gives a number of {noun}, “{lacking.title}” gives none."
            yield Doubt("missing_evidence", why, 0.8)
    elif all(counts) and (min(counts[0]) > max(counts[1]) or max(counts[0]) < min(counts[1])):
        larger = (min(counts[0]) > max(counts[1])) == (asked[1].lower() in ("more", "most"))
        told, rest = (one, other) if larger else (other, one)
        if _is_side(question.answer, rest) and not _is_side(question.answer, told):
            why = f"The numbers of {noun} in the passages give “{told.title}”"
            yield Doubt("wrong_answer", f"{why}, not “{question.answer}”.", 0.6)


def _has_amount(passage: Passage, stem: str) -> bool:
    """Whether an amount stands near the thing counted, be it no number that can be compared."""
    near = rf"(?:{_AMOUNTS})(?: \w+){{0,4}}? {stem}|\b{stem}\w*(?: \w+){{0,2}}? (?:{_AMOUNTS})"
    return bool(re.search(near, read(passage).clean))


def _is_side(answer: str, passage: Passage) -> bool:
    return not set(normal_name(answer).split()).isdisjoint(normal_name(passage.title).split())


# ------------------------------------------------------------------- what both sides have in common

_ONE_COUNTRY = re.compile(r"\bsame (?:country|nationality|nation)\b", re.IGNORECASE)
_CONTINENT = r"(?!Europe|Asia|Africa|North|South)"
_ORIGIN = re.compile(
    rf"\b(?:in|from|of|near)(?: the)? {_CONTINENT}{CAPITAL}|\w-based\b|\b{CAPITAL}\w+, {CAPITAL}"
    rf"|\b(?:an?|the) (?:\d{{4}} )?{CAPITAL}\w+(?:-\w+)? [a-z]|\b{CAPITAL}\w+(?:an|ese|ish|ch)\b"
)


def _placeless(question: Question) -> Iterator[Doubt]:
    """One country asked about: a passage that names no place that its subject could be from."""
    if not _ONE_COUNTRY.search(question.question):
        return
    for _, passage in question.gold:
        if not _ORIGIN.search(passage.text.replace(passage.title, "")):
            why = f"“{passage.title}” names no country, nationality or place of its subject."
            yield Doubt("missing_evidence", why, 0.6)


_OCCUPATIONS: dict[str, str] = load("words")["occupations"]


def _of_no_such_occupation(question: Question) -> Iterator[Doubt]:
    """Both of one occupation, says the answer: a passage with another occupation, but not that."""
    *asked, last = words_of(question.question).split() or [""]
    noun = last.removesuffix("s")
    if question.answer.lower() != "yes" or "both" not in asked or noun not in _OCCUPATIONS:
        return
    for _, passage in question.gold:
        told = read(passage).clean
        shown = [o for o, words in _OCCUPATIONS.items() if re.search(rf"\b(?:{words})\b", told)]
        if shown and noun not in shown:
            why = f"“{passage.title}” says what its subject did, and nothing of a work as {noun}."
            yield Doubt("missing_evidence", why, 0.6)


_ANSWERED = (_another_sort, _named_in_the_question)
_COMPARED = (_uncounted, _placeless, _of_no_such_occupation)
