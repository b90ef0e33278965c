"""Verdicts of several verifiers on the same test rows, compared question by question.

Intervals are bootstrapped over questions, as rows of one question are alike; both of a pair are
drawn together.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluators.comparison.significance import Estimate, Matrix, interval, resampled
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.names import STEPS, TEST, TRAIN
from safe_stepwise.store.parquet import ANEW, parquet_files, read_rows
from safe_stepwise.taxonomy import CORRECT, EVIDENCE, labels

RESAMPLES = 2_000
_SEED = 0
_COLUMNS = ["id", "benchmark", "question_id", "previous_steps", "current_step", "error_type", "step_kind"]


@dataclass(frozen=True, slots=True)
class LabelledStep:
    """A labelled step as far as one sees it without its passages."""

    id: str
    question: tuple[str, str]
    text: str
    """The steps before it and itself, a line each."""
    is_attribution: bool
    gold: str

    @property
    def is_evidence(self) -> bool:
        return self.is_attribution and self.gold in EVIDENCE


Said = Mapping[str, str]
"""What was said of each step, by its id: a label, or what stands for none."""
Probe = Callable[[Sequence[str], Sequence[str], Sequence[str]], Sequence[str]]
"""From texts and their labels to the labels of other texts."""


def read_steps(folder: Path, split: str) -> list[LabelledStep]:
    """The rows of a split of a safe-verifier-steps; raises ``UserError`` for a damaged file."""
    files = parquet_files(folder, STEPS, split)
    found = [row for file in files for row in read_rows(file, _step, _COLUMNS)]
    if not found:
        raise UserError(f"{folder}: has no rows of {split}; {ANEW}")
    return found


def _step(row: Mapping[str, object]) -> LabelledStep:
    previous: Sequence[str] = row["previous_steps"]  # type: ignore[assignment]
    return LabelledStep(
        str(row["id"]),
        (str(row["benchmark"]), str(row["question_id"])),
        "\n".join([*previous, str(row["current_step"])]),
        row["step_kind"] == "Attribution",
        labels()[int(str(row["error_type"]))],
    )


def read_verdicts(file: Path) -> Said:
    """What a verifier said of each row, as `evaluate_verifier` wrote it down."""
    found = (parse_json(line) for line in file.read_bytes().splitlines())
    return {str(row["id"]): str(row["said"]) for row in found}


def probed(folder: Path, probe: Probe) -> Said:
    """What one says of the rows of test who learns from train and sees no passage.

    It is asked for nothing but whether there is an error.
    """
    train, test = (read_steps(folder, split) for split in (TRAIN, TEST))
    gold = [CORRECT if step.gold == CORRECT else "error" for step in train]
    said = probe([step.text for step in train], gold, [step.text for step in test])
    return {step.id: label for step, label in zip(test, said, strict=True)}


def always(steps: Sequence[LabelledStep], label: str) -> Said:
    """The same of every row."""
    return {step.id: label for step in steps}


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of verdicts: what is counted of a row, and what sums of counts come to."""

    counts: Callable[[LabelledStep, str], Sequence[float]]
    value: Callable[[Matrix], Matrix]
    """From columns of sums (samples, counts) to a value each."""


def _errors(step: LabelledStep, said: str) -> Sequence[float]:
    known = said in labels() or said == "error"
    wrong, flagged = step.gold != CORRECT, known and said != CORRECT
    return (float(wrong and flagged), float(flagged), float(wrong))


def _by_label(step: LabelledStep, said: str) -> Sequence[float]:
    mine = [step.is_evidence and step.gold == label for label in EVIDENCE]
    right = [one and said == step.gold for one in mine]
    return [float(one) for one in (*right, *mine)]


def _f1(sums: Matrix) -> Matrix:
    return np.asarray(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1), dtype=np.float64)


def _balanced(sums: Matrix) -> Matrix:
    right, rows = sums[:, : len(EVIDENCE)], sums[:, len(EVIDENCE) :]
    known = rows > 0  # a draw may lack a label, or all of them: then it says nothing
    recalls = np.where(known, right / np.maximum(rows, 1), 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(recalls.sum(axis=1) / known.sum(axis=1), dtype=np.float64)


ERROR_F1 = Measure(_errors, _f1)
"""Of finding steps that are wrong in any way (`verifier.quality`)."""
EVIDENCE_BALANCED = Measure(_by_label, _balanced)
"""Balanced accuracy over attribution steps of `EVIDENCE`: the mean of the labels' recall."""


def measured(steps: Sequence[LabelledStep], said: Said, measure: Measure) -> float:
    """A measure of one verifier's verdicts."""
    counts = _counts(steps, said, measure).sum(axis=0, keepdims=True)
    return float(measure.value(counts)[0])


def recall(steps: Sequence[LabelledStep], said: Said, label: str) -> float:
    """Of the attribution steps with one of the labels of `EVIDENCE` the share that is so called."""
    found = [said.get(step.id) == label for step in steps if step.is_evidence and step.gold == label]
    return sum(found) / len(found) if found else math.nan


def difference(steps: Sequence[LabelledStep], one: Said, other: Said, measure: Measure) -> Estimate:
    """How much more ``one`` reaches than ``other``, with its 95% interval over questions."""
    pair = [_counts(steps, said, measure) for said in (one, other)]
    places = {question: n for n, question in enumerate(sorted({s.question for s in steps}))}
    at = np.array([places[step.question] for step in steps])
    by_question = []
    for counts in pair:
        sums = np.zeros((len(places), counts.shape[1]))
        np.add.at(sums, at, counts)
        by_question.append(sums)

    def gain(times: Matrix) -> Matrix:
        first, second = (measure.value(times @ sums) for sums in by_question)
        return np.asarray(first - second, dtype=np.float64)

    value = measured(steps, one, measure) - measured(steps, other, measure)
    gains = resampled(gain, len(places), np.random.default_rng(_SEED), RESAMPLES)
    return Estimate(value, *interval(value, gains))


def _counts(steps: Sequence[LabelledStep], said: Said, measure: Measure) -> Matrix:
    return np.array([measure.counts(step, said.get(step.id, "")) for step in steps])
