"""Compare the verdicts of several verifiers on the same labelled steps (`StepCase`).

Intervals are bootstrapped over questions, as rows of one question are alike; both verifiers of a pair get the same
samples. A *probe* is a classifier that sees steps without passages: a verifier has to be better than it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluators.comparison.significance import Estimate, Matrix, interval, resampled
from evaluators.verifier.step_set import StepCase, read_cases
from safe_stepwise.steps import format_step
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.names import TEST, TRAIN
from safe_stepwise.taxonomy import CORRECT, EVIDENCE, labels

RESAMPLES = 2_000
_SEED = 0
Verdicts = Mapping[str, str]
"""A verifier's label of each step, by the step's id; another text if the reply could not be parsed."""
ProbeFunction = Callable[[Sequence[str], Sequence[str], Sequence[str]], Sequence[str]]
"""A function that learns from texts and their labels, and returns the labels of further texts."""


def read_verdicts(file: Path) -> Verdicts:
    """Read a verifier's label of each row, as `evaluate_verifier` wrote it."""
    rows = (parse_json(line) for line in file.read_bytes().splitlines())
    return {str(row["id"]): str(row["said"]) for row in rows}


def label_by_probe(folder: Path, probe: ProbeFunction) -> Verdicts:
    """Label the test rows (``Correct`` or ``error``) by a probe that learns from the train rows without passages."""
    train, test = (read_cases(folder, split) for split in (TRAIN, TEST))
    gold = [CORRECT if case.gold == CORRECT else "error" for case in train]
    texts, unseen_texts = (["\n".join(map(format_step, case.steps)) for case in cases] for cases in (train, test))
    return {case.id: label for case, label in zip(test, probe(texts, gold, unseen_texts), strict=True)}


def is_evidence(case: StepCase) -> bool:
    """Return whether a step cites a passage and its label is one of `EVIDENCE`."""
    return case.steps[-1].kind == "Attribution" and case.gold in EVIDENCE


def repeat_label(steps: Sequence[StepCase], label: str) -> Verdicts:
    """Give every step the same label."""
    return {step.id: label for step in steps}


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of verdicts: ``counts`` counts one step and its verdict; ``value`` computes the measure from sums."""

    counts: Callable[[StepCase, str], Sequence[float]]
    value: Callable[[Matrix], Matrix]
    """Maps sums of shape (samples, counts) to values of shape (samples,)."""


def _errors(step: StepCase, verdict: str) -> Sequence[float]:
    """Count a hit, a flagged step, a wrong step."""
    is_label = verdict in labels() or verdict == "error"
    wrong, flagged = step.gold != CORRECT, is_label and verdict != CORRECT
    return (float(wrong and flagged), float(flagged), float(wrong))


def _by_label(step: StepCase, verdict: str) -> Sequence[float]:
    """Count the hits of each label of `EVIDENCE`, then the steps that have it."""
    is_label = [is_evidence(step) and step.gold == label for label in EVIDENCE]
    is_hit = [relevant and verdict == step.gold for relevant in is_label]
    return [float(flag) for flag in (*is_hit, *is_label)]


def _balanced(sums: Matrix) -> Matrix:
    """Return the mean recall of the labels that occur in each sample."""
    hits, rows = sums[:, : len(EVIDENCE)], sums[:, len(EVIDENCE) :]
    has_rows = rows > 0  # a bootstrap sample may lack a label, or all of them: then the value is NaN
    recalls = np.where(has_rows, hits / np.maximum(rows, 1), 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(recalls.sum(axis=1) / has_rows.sum(axis=1), dtype=np.float64)


ERROR_F1 = Measure(_errors, lambda sums: 2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1))
"""F1 of finding steps that are wrong in any way (`verifier.quality`)."""
EVIDENCE_BALANCED = Measure(_by_label, _balanced)
"""Balanced accuracy over attribution steps of `EVIDENCE`: the mean of the labels' recall."""


def compute_measure(steps: Sequence[StepCase], verdicts: Verdicts, measure: Measure) -> float:
    """Return a measure of one verifier's verdicts over all steps, from 0 to 1.

    A step without a verdict counts as not flagged: its error is missed. `ERROR_F1` is 0 without errors,
    `EVIDENCE_BALANCED` NaN without steps of `EVIDENCE`.
    """
    return float(measure.value(_counts(steps, verdicts, measure).sum(axis=0, keepdims=True))[0])


def compute_recall(steps: Sequence[StepCase], verdicts: Verdicts, label: str) -> float:
    """Return the recall (0-1) of a label of `EVIDENCE` over the attribution steps that have it; NaN if none has."""
    hits = [verdicts.get(step.id) == label for step in steps if is_evidence(step) and step.gold == label]
    return sum(hits) / len(hits) if hits else math.nan


def estimate_gain(steps: Sequence[StepCase], verdicts: Verdicts, baseline: Verdicts, measure: Measure) -> Estimate:
    """Estimate how much higher (-1 to 1) a measure is for ``verdicts`` than for ``baseline``, with a 95% interval."""
    pair = [_counts(steps, labels_by_id, measure) for labels_by_id in (verdicts, baseline)]
    keys = [(step.question.benchmark, step.question.id) for step in steps]
    numbers = {key: n for n, key in enumerate(sorted({*keys}))}
    question_numbers = np.array([numbers[key] for key in keys])
    by_question = []
    for counts in pair:
        sums = np.zeros((len(numbers), counts.shape[1]))
        np.add.at(sums, question_numbers, counts)
        by_question.append(sums)

    def gain(times: Matrix) -> Matrix:
        value, baseline_value = (measure.value(times @ sums) for sums in by_question)
        return np.asarray(value - baseline_value, dtype=np.float64)

    observed = compute_measure(steps, verdicts, measure) - compute_measure(steps, baseline, measure)
    gains = resampled(gain, len(numbers), np.random.default_rng(_SEED), RESAMPLES)
    return Estimate(observed, *interval(observed, gains))


def _counts(steps: Sequence[StepCase], verdicts: Verdicts, measure: Measure) -> Matrix:
    return np.array([measure.counts(step, verdicts.get(step.id, "")) for step in steps])
