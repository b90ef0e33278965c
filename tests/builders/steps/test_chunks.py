"""Chunks of steps: what is owed is made again, and rows of refinement join where they belong."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from builders.steps.chunks import NOT_IN_POOL, OTHER_PASSAGES, MadeSteps, StepChunk, read_rows
from builders.steps.questions import open_verified
from builders.steps.rows import StepResult, StepRow
from builders.verified.build import build as build_verified
from builders.verified.collect import Build
from builders.verified.questions import VerifiedQuestion
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.work.shards import Shard, process
from cards import datasets
from safe_stepwise.records import Feedback, Label, Passage, Question, Step
from safe_stepwise.store.names import NOISE_LABELS, REQUEST_FAILED, VERIFIED
from safe_stepwise.taxonomy import MISSING_EVIDENCE
from tests.makers.plausible import PlausibleMaker

CARDS = {VERIFIED: datasets.verified_multihop, NOISE_LABELS: datasets.noise_labels}


@pytest.fixture(scope="module")
def chunk(tmp_path_factory: pytest.TempPathFactory) -> list[VerifiedQuestion]:
    """Verified rows with a path."""
    output = tmp_path_factory.mktemp("verified")
    build_verified(Build("synthetic", "rows=12,seed=4", "train", AnnotationsTeacher, output=output), CARDS)
    return list(open_verified(output, "v0.1.0").questions("synthetic", "train"))


def question_of(row: VerifiedQuestion, seed: int = 0) -> Question:
    return row.sample(seed).question


def refined(question: Question, text: str = "Oru is a town.", label: str = "Off-topic") -> StepRow:
    step = Step(1, text, "Attribution")
    return StepRow(question, (), step, Feedback(label, "Why.", "Then."), "refined", "someone")


def made(chunk: list[VerifiedQuestion], folder: Path, rows: list[StepRow]) -> Shard[MadeSteps]:
    job = StepChunk("synthetic", "train", tuple(chunk), PlausibleMaker(), 0, folder, tuple(rows))
    return process(job)


def ids(shard: Shard[MadeSteps]) -> set[str]:
    return {candidate.id for candidate in shard.summary.candidates}


# What failed


@dataclass(frozen=True)
class FlakyMaker(PlausibleMaker):
    """Gets no reply for its first question, as long as there is something in ``failures``."""

    failures: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def make_all(self, questions: list[tuple[Question, Label]]) -> list[StepResult]:
        self.calls.append(len(questions))
        found = super().make_all(questions)
        if self.failures:
            reason = f"{REQUEST_FAILED}: {self.failures.pop()}"
            found[0] = StepResult((), (replace(found[0].refused[0], reason=reason),))
        return found


def test_a_chunk_in_which_a_request_failed_is_made_again(chunk: list[VerifiedQuestion], tmp_path: Path) -> None:
    maker = FlakyMaker(failures=["HTTP 500", "HTTP 503"])
    job = StepChunk("synthetic", "train", tuple(chunk), maker, 0, tmp_path)
    first, second, third, fourth = (process(job) for _ in range(4))
    assert len(maker.calls) == 3
    shards = (first, second, third, fourth)
    assert [shard.summary.is_complete for shard in shards] == [False, False, True, True]
    assert [shard.cached for shard in shards] == [False, False, False, True]
    assert len(third.summary.passing) == len(first.summary.passing) + 1
    assert fourth == replace(third, cached=True)


# Rows of refinement


def test_refined_rows_join_those_of_their_question(chunk: list[VerifiedQuestion], tmp_path: Path) -> None:
    row = refined(question_of(chunk[0]))
    plain, joined = made(chunk, tmp_path, []), made(chunk, tmp_path, [row])
    assert plain.path != joined.path
    assert ids(joined) == ids(plain) | {row.id}
    assert joined.summary.refused == plain.summary.refused
    assert joined.summary.passing == plain.summary.passing
    assert list(read_rows(joined.path, {row.id})) == [row]
    (candidate,) = (c for c in joined.summary.candidates if c.id == row.id)
    assert (candidate.origin, candidate.row_class) == ("refined", "refined")
    assert (candidate.question, candidate.position) == (row.question.id, 1)


def other_passages(question: Question) -> Question:
    first, second, *rest = question.passages
    return replace(question, passages=(second, first, *rest))


def one_more(question: Question) -> Question:
    return replace(question, passages=(*question.passages, Passage("Oru", ("Oru is a town.",))))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda q: refined(replace(q, id="elsewhere")), NOT_IN_POOL),
        (lambda q: refined(other_passages(q)), OTHER_PASSAGES),
        (lambda q: refined(one_more(q)), OTHER_PASSAGES),
        (lambda q: refined(replace(q, question="Who?")), OTHER_PASSAGES),
        (lambda q: refined(q, label=MISSING_EVIDENCE), f"a refined row says {MISSING_EVIDENCE}"),
    ],
)
def test_refined_rows_that_do_not_fit_are_refused(
    chunk: list[VerifiedQuestion], tmp_path: Path, change: Any, reason: str
) -> None:
    row = change(question_of(chunk[0]))
    plain, joined = made(chunk, tmp_path, []), made(chunk, tmp_path, [row])
    assert joined.summary.candidates == plain.summary.candidates
    (more,) = set(joined.summary.refused) - set(plain.summary.refused)
    assert (more.question_id, more.error_type) == (row.question.id, row.feedback.error_type)
    assert (more.position, more.reason, more.text) == (1, reason, row.step.text)


def test_passages_drawn_with_another_seed_are_refused(chunk: list[VerifiedQuestion], tmp_path: Path) -> None:
    joined = made(chunk, tmp_path, [refined(question_of(row, seed=1)) for row in chunk])
    assert sum(one.reason == OTHER_PASSAGES for one in joined.summary.refused) == len(chunk)


def test_a_refined_row_takes_the_place_of_the_same_made_one(chunk: list[VerifiedQuestion], tmp_path: Path) -> None:
    """It is as good, and that a verifier erred on it is worth knowing."""
    plain = made(chunk, tmp_path, [])
    ideal = next(c for c in plain.summary.candidates if c.origin == "ideal")
    (row,) = read_rows(plain.path, {ideal.id})
    twin = replace(row, origin="refined", teacher="someone")
    joined = made(chunk, tmp_path, [twin, twin])
    assert len(joined.summary.candidates) == len(plain.summary.candidates)
    (candidate,) = (c for c in joined.summary.candidates if c.id == twin.id)
    assert candidate.origin == "refined"
    assert joined.summary.passing == plain.summary.passing
    again = [one for one in joined.summary.refused if one.reason == "the same row again"]
    assert len(again) == 2


def test_a_refined_row_of_another_label_is_refused_with_the_made_one(
    chunk: list[VerifiedQuestion], tmp_path: Path
) -> None:
    plain = made(chunk, tmp_path, [])
    ideal = next(c for c in plain.summary.candidates if c.origin == "ideal")
    (row,) = read_rows(plain.path, {ideal.id})
    other = replace(row, origin="refined", feedback=Feedback("Off-topic", "Why.", "Then."))
    joined = made(chunk, tmp_path, [other])
    assert ids(joined) == ids(plain) - {row.id}
    reasons = {one.reason for one in joined.summary.refused if one.reason.startswith("two labels")}
    assert reasons == {"two labels for one step: Correct, Off-topic"}
