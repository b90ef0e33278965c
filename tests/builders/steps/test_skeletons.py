"""What a skeleton masks and what it keeps."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders.steps.rows import StepRow
from builders.steps.skeletons import MASK, find_unseen, skeleton
from safe_stepwise.records import Feedback, Question, Step, StepKind
from tests.growth import too_slow

NAMES = st.sampled_from(
    "Oru|Ana Vorr|The Duke of Oru|Ors van der Vel|1901|5 May 1901|1,234|“so it”|«neu»|Łódź|東京"
    '|seventeen|Oru, Vel and Ana Vorr|McVel-Oru|U.S.A|"The end"'.split("|")
)
FRAMES = st.sampled_from(
    [
        "According to Passage 3, the author of {} was born in {}.",
        "Passage {} says that {} was directed by {}.",
        "{} is older than {}, so the answer is {}.",
        "As Step 2 says about {}, {} was crowned in {}.",
        "Comparing Step 1 with what we know of {}, nothing follows.",
    ]
)


@given(FRAMES, st.lists(NAMES, min_size=6, max_size=6))
def test_what_is_filled_in_changes_nothing(frame: str, names: list[str]) -> None:
    assert skeleton(frame.format(*names[:3])) == skeleton(frame.format(*names[3:]))


@given(st.text())
@example("the a the _ of _ and Step 1 or Step 2, passage 3")
@example("İing İ. İly: ǅ ª ⅳ Ⅳ")
@example("of the _ a _")
@example("0%_a")
def test_a_skeleton_is_its_own_skeleton(text: str) -> None:
    once = skeleton(text)
    assert skeleton(once) == once
    assert once == " ".join(once.split())
    assert (MASK, MASK) not in pairwise(once.split())
    assert not any(c.isdigit() or c.isupper() for c in once)


def test_twice_the_text_takes_twice_the_time() -> None:
    assert not too_slow(lambda text: [skeleton(text * 5) for _ in range(2)])


@given(st.lists(st.sampled_from("reads gives old of the and so born Passage Oru 12".split())))
def test_plain_words_stay_in_their_order(words: list[str]) -> None:
    kept = [w for w in skeleton(" ".join(words)).split() if w in {"reads", "gives", "old", "born"}]
    assert kept == [w for w in words if w in {"reads", "gives", "old", "born"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Passage 3 states: Ana Vorr was born. In Oru.", "passage _ states _"),
        ("So far so good: Passage 3 reads: Ana came.", "so far so good passage _ reads _"),
        ("It is not there: nothing names Oru.", "it is not there nothing names _"),
        ("By Step 1, Step 2 and Step 12, it is no.", "by step _ it is no"),
        ("Oru's river isn't the Vel.", "_ river isn't _"),
        ("I see. Reading on, Reading is a town.", "i see reading on _ is town"),
        ("Two of the three are two.", "_ are _"),
        ("####ANSWER: Oru", "answer _"),
        ("", ""),
    ],
)
def test_what_is_masked(text: str, expected: str) -> None:
    assert skeleton(text) == expected


def row(text: str, kind: StepKind = "Logical") -> StepRow:
    question = Question("q", "b", "train", "Who?", "Oru")
    said = Feedback("Correct", "So.", "Go on.")
    return StepRow(question, (), Step(1, text, kind), said, "ideal", "hand")


def test_unseen_is_what_no_train_step_is_worded_like() -> None:
    train = [row("Oru is old."), row("####ANSWER: Oru", kind="Final Answer")]
    seen = [row("Ana Vorr is old."), row("####ANSWER: yes", kind="Final Answer")]
    new = row("Old is Ana Vorr.")
    assert find_unseen([*seen, new], train) == {new.id}
    assert find_unseen(train, []) == {one.id for one in train}
