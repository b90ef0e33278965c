"""The questions of step rows with their annotations, also where a row's passages were changed."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.synthetic import to_row
from builders.verified import lookup
from builders.verified.lookup import add_annotations, labelled
from safe_stepwise.errors import UserError
from safe_stepwise.records import Passage, Question
from safe_stepwise.store.codec import passage_of
from scripts import build_verified

WORDS = st.lists(st.sampled_from(["Oru", "Vel", "left", "is", "New Oru", "a."]), max_size=12)


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("verified")
    build_verified.main(
        "--benchmark synthetic --input rows=30,seed=3,noise=0 --split train "
        f"--teacher annotations --output {output} --workers 1".split()
    )
    return output


@pytest.fixture(scope="module")
def question(verified: Path) -> Question:
    ((_, found),) = labelled(verified)
    return next(q for q, _ in found if len(q.evidence) == 2)


def shown(question: Question, number: int, page: Passage) -> Question:
    """The question as a step row shows it, with another page in the place of a passage."""
    pages = question.passages
    return replace(question, passages=(*pages[:number], page, *pages[number + 1 :]), evidence=())


def test_a_value_that_a_passage_was_given_is_the_annotations_too(verified: Path, question: Question) -> None:
    value = question.evidence[-1].tail
    numbers = [n for n, p in enumerate(question.passages) if p.is_gold and value in p.text]
    page = question.passages[numbers[0]]
    text = tuple(sentence.replace(value, "Another One") for sentence in page.sentences)
    (found,) = add_annotations([shown(question, numbers[0], replace(page, sentences=text))], verified)
    assert found.evidence[-1].tail == "Another One"
    assert found.passages[numbers[0]].is_gold
    assert found.evidence[0] == question.evidence[0]


def test_a_passage_whose_last_sentence_is_empty_is_the_same_in_a_row(tmp_path: Path, question: Question) -> None:
    """As a row of HotpotQA may have it; the row's text then ends in a space."""
    pages = tuple(replace(p, sentences=(*p.sentences, "")) for p in question.passages)
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(to_row(replace(question, passages=pages), "none")) + "\n")
    build_verified.main(
        f"--benchmark synthetic --input {file} --split train --teacher annotations "
        f"--output {tmp_path / 'out'} --workers 1".split()
    )
    told = tuple(passage_of({"title": p.title, "text": p.text}) for p in pages)
    asked = replace(question, passages=told, evidence=(), answer="")
    (found,) = add_annotations([asked], tmp_path / "out")
    assert found.passages == pages
    assert found.answer == question.answer
    value = question.evidence[-1].tail
    number = next(n for n, p in enumerate(pages) if p.is_gold and value in p.text)
    changed = Passage(pages[number].title, (pages[number].text.replace(value, "Another One"),))
    (other,) = add_annotations([shown(asked, number, changed)], tmp_path / "out")
    assert other.evidence[-1].tail == "Another One"


def test_a_passage_of_another_question_stands_where_it_is_shown(verified: Path, question: Question) -> None:
    (found,) = add_annotations([shown(question, 0, Passage("Of another", ("It is so.",)))], verified)
    assert found.passages[0].title == "Of another"
    assert found.passages[1:] == question.passages[1:]
    assert found.evidence == question.evidence


def test_another_folders_question_is_refused(verified: Path, question: Question) -> None:
    other = Passage("Of another", ("It is so.",))
    twice = replace(question, passages=(other, other, *question.passages[2:]))
    for asked in (twice, replace(question, question="Who else?")):
        with pytest.raises(UserError, match="has other text or passages than the steps"):
            add_annotations([asked], verified)


@given(before=WORDS, other=st.sampled_from(["Kel", "New Vel", "Orus", "O"]))
def test_what_was_replacement_a_value_is_found(before: list[str], other: str) -> None:
    old = " ".join([*before, "Oru", "is."])
    new = re.sub(r"(?<!\w)Oru(?!\w)", other, old)
    assert lookup._replacement("Oru", old, new) == other


def test_texts_that_differ_in_more_have_nothing_in_its_place() -> None:
    assert lookup._replacement("Oru", "Oru is old.", "Vel was old.") is None
    assert lookup._replacement("Oru", "It is old.", "It was old.") is None
    assert lookup._replacement("Oru", "Oru " * 400 + "!", "Vel " * 399 + "Kel " + "!") is None


def test_a_changed_text_is_cut_where_sentences_stay() -> None:
    own = ("Oru is old.", " Ana left Oru.", " It rained.", " Oru lies on the Vel.")
    text = "Kel is old. Ana left Kel. It rained. Kel lies on the Vel."
    found = [*lookup._cut(text, own)]
    assert found[2:] == ["It rained.", "Kel lies on the Vel."]
    assert found[:2] == ["Kel is old. Ana left Kel.", ""]
