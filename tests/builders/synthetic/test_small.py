"""A small world: short rows, sound ones and noise, and no name in two splits."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

from builders.synthetic import SmallSpec, generate, parse_spec
from builders.synthetic.noise import NOISE
from builders.synthetic.small import MAX_PASSAGES, MIN_PASSAGES
from safe_stepwise.errors import UserError
from safe_stepwise.records import NoiseType, Question


@cache
def made(split: str, noise: float = 0.0, passages: int = 5) -> tuple[tuple[Question, NoiseType], ...]:
    return tuple(generate(SmallSpec(400, 3, noise, "plain", passages), split=split))


@pytest.mark.parametrize("passages", range(MIN_PASSAGES, MAX_PASSAGES + 1))
def test_rows_are_short(passages: int) -> None:
    for question, _ in made("train", 0.3, passages):
        assert len(question.passages) == passages
        assert all(len(page.sentences) == 1 for page in question.passages)
        assert question.hops in (2, 3)
        assert len({page.title for page in question.passages}) == passages
    texts = [page.text for question, _ in made("train", 0.3, passages) for page in question.passages]
    assert sum(map(len, texts)) / len(texts) < 45


def test_names_are_of_two_plain_syllables() -> None:
    """They have to be few tokens: a row tells about twenty of them."""
    names = {page.title for question, _ in made("train") for page in question.passages}
    people = [name.removesuffix(" the Younger") for name in names if name.endswith(" the Younger")]
    assert len(people) >= 5
    for person in people:
        assert re.fullmatch(r"(?:[A-Z][aeio][a-z][aeio][lnrs] ?){2}", person), person


def test_gold_passages_name_what_they_are_about_and_say_what_is_annotated() -> None:
    named = 0
    for question, _ in made("train"):
        pages = [page for page in question.passages if page.is_gold]
        assert len(pages) == question.hops
        for triple, fact in zip(question.evidence, question.supporting_facts, strict=True):
            (page,) = (page for page in pages if page.title == fact.title)
            named += triple.head in page.text
    assert named >= 0.9 * sum(question.hops for question, _ in made("train"))


def test_a_relation_has_several_wordings() -> None:
    of: dict[str, set[str]] = {}
    for question, _ in made("train"):
        for triple in question.evidence:
            for page in question.passages:
                if page.is_gold and triple.head in page.text and triple.tail in page.text:
                    words = page.text.replace(triple.head, "X").replace(triple.tail, "Y")
                    of.setdefault(triple.relation, set()).add(words)
    common = [words for words in of.values() if len(words) > 1]
    assert len(common) >= 8


def ends(split: str) -> set[str]:
    """What triples of a split name, years and days aside."""
    said = {end for q, _ in made(split) for t in q.evidence for end in (t.head, t.tail)}
    return {end for end in said if not re.search(r"\d", end)}


def test_no_name_is_in_two_splits() -> None:
    def names(split: str) -> set[str]:
        titles = (page.title for question, _ in made(split) for page in question.passages)
        words = {word for title in titles for word in re.findall(r"\w{4,}", title)}
        return {word for word in words if word[0].isupper()}

    # What is left are common nouns of titles and kinds, a handful, however many rows there are.
    assert len(names("train") & names("validation")) <= 60
    assert not ends("train") & ends("validation")


def test_noise_is_as_asked_for_and_ranges_compose() -> None:
    spec = SmallSpec(400, 3, 0.5, "plain", 5)
    found = Counter(truth for _, truth in generate(spec))
    assert {*found} == {"none", *NOISE}
    assert 0.4 < 1 - found["none"] / 400 < 0.6
    whole = list(generate(spec, 190, 230))
    assert whole == [*generate(spec, 190, 203), *generate(spec, 203, 230)]


def test_the_spec_says_how_many_passages() -> None:
    assert parse_spec("rows=9,passages=4") == SmallSpec(9, passages=4)
    for text in ("rows=9,passages=3", "rows=9,passages=9"):
        with pytest.raises(UserError, match="is not from 4 to 8"):
            parse_spec(text)
