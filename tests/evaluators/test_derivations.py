"""Derivations that people wrote, and how much of them our trajectories say."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from builders.steps.contexts import StepSource
from builders.steps.making import check_trajectory
from builders.steps.rows import TrajectoryError
from builders.verified.lookup import SPLITS, verified_rows
from evaluators.derivations import Coverage, measure_coverage, read_derivations
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.errors import UserError

ONE = [("Oru", 0, ("Oru", "lies on", "the river Vel")), ("Vel", 0, ("Vel", "flows through", "Kelvia"))]


def test_the_nearest_annotator_counts() -> None:
    other = [("Elsewhere", 0, ("Elsewhere", "is", "a town"))]
    told = {"Oru": "Oru lies on the river Vel.", "Vel": "The Vel flows through Kelvia."}
    assert measure_coverage(told.items(), [other, ONE]) == Coverage(1.0, 1.0)
    assert measure_coverage(told.items(), [ONE]).triples == 1


def test_the_right_words_in_the_wrong_passage_do_not_count() -> None:
    told = {"Vel": "Oru lies on the river Vel."}
    assert measure_coverage(told.items(), [ONE]) == Coverage(passages=0.5, triples=0.0)


def test_nothing_to_compare() -> None:
    assert measure_coverage([], []) == Coverage(0.0, 0.0)


def test_ideal_trajectories_cover_what_people_derived(real_data: Path, tmp_path: Path) -> None:
    derivations = read_derivations(real_data / "r4c_derivations.jsonl")
    rows, coverages = 0, []
    for stem, split in SPLITS.items():
        lines = (real_data / f"hotpotqa_{stem}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        file = tmp_path / f"{stem}.jsonl"
        file.write_text("".join(line for line in lines if json.loads(line)["_id"] in derivations), encoding="utf-8")
        for question, label in verified_rows("hotpotqa", file, split):
            rows += 1
            try:
                checker = StepSource.build(question, label).checker
                check_trajectory(checker, steps := write_trajectory(checker, seed=0))
            except (PlanError, TrajectoryError):
                continue
            cited = (
                (question.passages[number - 1].title, step.text)
                for step in steps
                if step.kind == "Attribution"
                for number in read_step(step.text).cited
            )
            coverages.append(measure_coverage(cited, derivations[question.id]))
    assert rows == 389
    assert len(coverages) >= 365  # comparisons that nothing decides are undecided, and have no trajectory
    assert fmean(coverage.passages for coverage in coverages) >= 0.99
    assert fmean(coverage.triples for coverage in coverages) >= 0.9


@pytest.mark.parametrize("content", [None, "{", '{"id": 1}\n', '{"id": "a", "derivations": [[1]]}\n'])
def test_no_derivations(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "r4c_derivations.jsonl"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"r4c_derivations\.jsonl"):
        read_derivations(file)
