"""A step row's question gets back what it had when the steps were made of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from builders.verified.lookup import add_annotations
from builders.verified.questions import VerifiedQuestion, config_features
from builders.work.parquet import SplitWriter
from evaluators.verifier.step_set import StepCase
from safe_stepwise.errors import UserError
from safe_stepwise.records import Hop, Label, Passage, Question, Step
from safe_stepwise.store.codec import label_row, question_row
from safe_stepwise.store.names import LABELED, VERIFIED

PASSAGES = tuple(
    Passage("Oru" if n in (3, 7) else f"Page {n}", (f"This is {n}.", "So it is."), n in (2, 9)) for n in range(1, 13)
)
HOPS = (Hop("Who >> director", "Ana", 2), Hop("Where was #1 born?", "Oru", 9), Hop("?", "x", None))
QUESTION = Question("q1", "musique", "", "Where?", "Oru", ("Óru",), "2hop", 2, PASSAGES, decomposition=HOPS)
LABEL = Label("none", "", (), (), "annotations")


def written(folder: Path, question: Question, split: str = "train") -> Path:
    columns = config_features(VERIFIED, LABELED)
    writer = SplitWriter(folder / "safe-verified-multihop" / "data" / "musique_labeled", split, columns)
    row = {**question_row(question), **label_row(LABEL)}
    writer.add(pa.Table.from_pylist([row], schema=columns.arrow_schema))
    writer.close()
    return folder


def shown() -> tuple[Question, StepCase]:
    """The question as the steps are made of it, and a row of it as it is published."""
    row = {**question_row(QUESTION), **label_row(LABEL)}
    made, _ = VerifiedQuestion.of_row(row, "musique").sample(5)
    pages = tuple(Passage(p.title, (p.text,)) for p in made.passages)
    bare = Question("q1", "musique", "", "Where?", "", passages=pages)
    return made, StepCase("1", bare, (Step(1, "a.", "Attribution"),), "Correct", "ideal", "seen")


def test_it_is_the_question_that_the_steps_were_made_of(tmp_path: Path) -> None:
    made, case = shown()
    places = [hop.passage for hop in made.decomposition]
    assert places != [hop.passage for hop in HOPS]  # else the test would show nothing
    assert add_annotations([case.question], written(tmp_path, QUESTION)) == [made]


def test_of_a_question_in_both_splits_it_is_that_of_train(tmp_path: Path) -> None:
    made, case = shown()
    other = Question("q1", "musique", "", "Where?", "elsewhere", passages=PASSAGES)
    written(tmp_path, QUESTION)
    written(tmp_path, other, "validation")
    assert add_annotations([case.question], tmp_path) == [made]


def test_another_question_of_that_id_is_refused(tmp_path: Path) -> None:
    _, case = shown()
    other = Question("q1", "musique", "", "Where?", "Oru", passages=PASSAGES[:5])
    with pytest.raises(UserError, match="other text or passages"):
        add_annotations([case.question], written(tmp_path, other))
