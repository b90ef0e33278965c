"""Probes find what gives a label away, and nothing where nothing does."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from builders.steps.probes import EVIDENCE_LABELS, FOLDS, PROBE_KINDS, cross_predict, run_probes
from builders.steps.rows import StepRow
from safe_stepwise.records import Feedback, Passage, Question, Step
from tests.memory.sitecustomize import SWITCH

WORDS = "river town duke built before after crowned stone bridge north south of the by in".split()


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each probe is run, though an earlier one was of the same rows."""
    monkeypatch.delenv(SWITCH)


def row(question: int, text: str, label: str, *previous: str) -> StepRow:
    asked = Question(f"q{question}", "b", "train", "Who?", "Oru")
    before = tuple(Step(n, said, "Attribution") for n, said in enumerate(previous, 1))
    step = Step(len(before) + 1, text, "Attribution")
    return StepRow(asked, before, step, Feedback(label, "So.", "Go on."), "ideal", "hand")


def rows(number: int, giveaway: bool, before: bool = False) -> list[StepRow]:
    """Rows of random words; with a giveaway, each label has one of its own."""
    rng = random.Random(1)
    made = []
    for n in range(number):
        label = rng.choice(EVIDENCE_LABELS)
        words = rng.choices(WORDS, k=8)
        told = [*words, f"giveaway{label[:4]}"] if giveaway else words
        rng.shuffle(told)
        texts = (" ".join(words), " ".join(told)) if before else (" ".join(told),)
        made.append(row(n // 3, texts[0], label, *texts[1:]))
    return made


def test_a_giveaway_is_found() -> None:
    for probe in run_probes(rows(400, giveaway=True))[:3]:
        assert probe.score is not None
        assert probe.score > 0.98
        assert probe.exceeds_aim
        assert set(probe.recall) == set(EVIDENCE_LABELS)


def test_without_one_nothing_is_found() -> None:
    for probe in run_probes(rows(400, giveaway=False)):
        assert probe.score is not None
        assert probe.majority is not None
        assert abs(probe.score - probe.majority) < 0.08
        assert not probe.exceeds_aim


def test_a_giveaway_in_the_steps_before_is_found_by_the_probe_that_sees_them() -> None:
    alone, both, *_ = run_probes(rows(400, giveaway=True, before=True))
    assert alone.score is not None
    assert both.score is not None
    assert alone.score < 0.4
    assert both.score > 0.8


def test_questions_are_never_parted() -> None:
    """A word that tells the label within its question alone helps nobody."""
    rng = random.Random(2)
    made = []
    for n in range(150):
        label = rng.choice(EVIDENCE_LABELS)
        made += [row(n, f"word{n} {' '.join(rng.choices(WORDS, k=4))}", label) for _ in range(3)]
    score = run_probes(made)[0].score
    assert score is not None
    assert score < 0.45


def test_equal_rows_give_equal_figures_in_any_order() -> None:
    made = rows(120, giveaway=False)
    assert run_probes(made) == run_probes(made) == run_probes(made[::-1])


def test_the_balanced_one_is_the_mean_of_recalls() -> None:
    probe = run_probes(rows(200, giveaway=False))[2]
    assert probe.score == pytest.approx(sum(probe.recall.values()) / 4, abs=1e-3)
    assert probe.majority == 0.25
    assert probe.measure == "balanced accuracy"


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 7, 30])
def test_few_rows_are_no_fault(number: int) -> None:
    for probe in run_probes(rows(number, giveaway=True)):
        assert probe.rows == number
        assert probe.score is None or 0 <= probe.score <= 1
        if number < 4:  # of one question
            assert probe.score is None
            assert not probe.exceeds_aim
    some = run_probes(rows(30, giveaway=True))
    assert all(probe.score is not None for probe in some)


def test_a_label_of_one_question_is_never_guessed() -> None:
    made = [row(0, "so it is", "Correct"), row(1, "so it is", "Off-topic")]
    assert cross_predict([r.step.text for r in made], ["a", "b"], ["0", "1"], False) == ["b", "a"]
    assert run_probes(made)[0].score == 0.0


def test_one_label_is_no_task() -> None:
    probe = run_probes([row(n, "so it is", "Correct") for n in range(20)])[0]
    assert (probe.score, probe.majority, probe.recall) == (None, 1.0, {})


def test_aims_are_those_of_the_design() -> None:
    words, overlaps = [(0.5, False), (0.62, False), (0.4, True)], [(0.6, True), (0.72, True)]
    assert [(kind.aim, kind.balanced) for kind in PROBE_KINDS] == words + overlaps
    assert FOLDS == 5


@pytest.mark.parametrize("label", ["Contradictory", "Unsupported"])
def test_a_label_that_copied_words_tell_is_found_by_the_probes_of_overlap_alone(label: str) -> None:
    rng = random.Random(3)
    made = []
    for n in range(200):
        page = Passage(f"P{n}", (" ".join(rng.choices(WORDS, k=12)),))
        is_copied = n % 2 == 0
        words = page.text.split()[2:10] if is_copied else rng.choices(WORDS, k=8)
        plain = row(n, f"Passage 1 says {' '.join(words)}", "Correct" if is_copied else label)
        made.append(replace(plain, question=replace(plain.question, passages=(page,))))
    alone, both, types, overlap_types, overlap_errors = run_probes(made)
    for probe in (alone, both, types):
        assert probe.score is not None
        assert probe.score < 0.65
    for probe in (overlap_types, overlap_errors):
        assert probe.score is not None
        assert probe.score > 0.9
        assert probe.exceeds_aim
