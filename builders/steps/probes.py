"""Probe a set: try to label its steps without reading the passages, to measure what a verifier need not read.

A probe is scored on questions that it was not trained on. One that sees words is a logistic regression over the TF-IDF
of word 1-3 grams; its fit is stochastic, with fixed seeds: a tenth of the time of the exact fit, and as strong
(``tests/benchmarks/bench_probes.py``). One that compares words with those of the passages (`overlap`), as a verifier
may that does no more, is a random forest. If a probe scores higher than its ``aim``, labels can be guessed without
reading.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from builders.steps.overlap import overlap
from builders.steps.rows import StepRow
from safe_stepwise.errors import require_modules
from safe_stepwise.records import Feedback, Question, Step
from safe_stepwise.steps import format_step
from safe_stepwise.taxonomy import CORRECT, EVIDENCE_LABELS, STEP_KINDS, labels

FOLDS = 5
TREES = 100
UPDATES, EPOCHS = 40_000, (5, 40)
"""Approximate updates of the weights, and the fewest and most passes over the rows; more do not help."""
COST, BALANCED_COST = 60, 5
"""Weights of errors against the penalty, at which the fit is as good as the best exact one."""


@dataclass(frozen=True, slots=True)
class ProbeKind:
    """A kind of probe: the rows that it labels, what it sees of one, and the score that it should not exceed."""

    name: str
    sees: Callable[[StepRow], str | list[float]]
    """Returns a text, or numbers."""
    takes: Callable[[StepRow], bool]
    balanced: bool
    """Whether its score is balanced accuracy (the mean of the labels' recall)."""
    aim: float
    """The score (0-1) that the probe should not exceed."""
    label: Callable[[StepRow], str] = lambda row: row.feedback.error_type


def _steps(row: StepRow) -> str:
    return "\n".join(format_step(step) for step in (*row.previous, row.step))


def _is_evidence(row: StepRow) -> bool:
    return row.step.kind == "Attribution" and row.feedback.error_type in EVIDENCE_LABELS


def _is_right(row: StepRow) -> str:
    return CORRECT if row.feedback.error_type == CORRECT else "error"


def _is_attribution(row: StepRow) -> bool:
    return row.step.kind == "Attribution"


PROBE_KINDS = (
    ProbeKind("step alone", lambda row: format_step(row.step), lambda _: True, balanced=False, aim=0.50),
    ProbeKind("step and previous steps", _steps, lambda _: True, balanced=False, aim=0.62),
    ProbeKind("evidence types, step alone", lambda row: format_step(row.step), _is_evidence, balanced=True, aim=0.40),
    ProbeKind("evidence types, overlap with passages", overlap, _is_evidence, balanced=True, aim=0.60),
    ProbeKind("error or not, overlap with passages", overlap, _is_attribution, True, 0.72, _is_right),
)
MISSED = ProbeKind("missing or missed", _steps, lambda row: row.incomplete, balanced=True, aim=0.60)
"""A probe of incomplete evidence: is the evidence that a step denies absent, or was it overlooked?"""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a probe over all rows that it labels; shares are from 0 to 1.

    ``measure`` says what ``score`` is: accuracy, or balanced accuracy. ``majority`` is the score of giving all rows
    the most frequent label (1 / the number of labels if balanced). ``aim`` is the score that should not be exceeded.
    If all rows have one label or one question, ``score`` is None and ``recall`` is empty.
    """

    name: str
    measure: str
    aim: float
    rows: int
    score: float | None
    majority: float | None
    """None without rows."""
    recall: Mapping[str, float]
    """Recall by label."""

    @property
    def exceeds_aim(self) -> bool:
        """Whether the score is higher than the aim; False without a score."""
        return self.score is not None and self.score > self.aim

    @property
    def cells(self) -> tuple[object, ...]:
        """The cells of the probe's row in a table: name, rows, score, majority, aim."""
        reached = "too few rows" if self.score is None else f"{self.score:.3f}"
        return f"{self.name} ({self.measure})", self.rows, reached, f"{self.majority or 0:.3f}", f"{self.aim:.2f}"


def run_probes(rows: Sequence[StepRow], kinds: Sequence[ProbeKind] = PROBE_KINDS) -> tuple[ProbeResult, ...]:
    """Run each probe on the rows of all splits, whatever their order; raise ``UserError`` without scikit-learn."""
    rows = sorted(rows, key=lambda row: row.id)
    return tuple(_probe(kind, [row for row in rows if kind.takes(row)]) for kind in kinds)


def _probe(kind: ProbeKind, rows: Sequence[StepRow]) -> ProbeResult:
    gold, groups = [kind.label(row) for row in rows], [row.question_key for row in rows]
    counts, measure = Counter(gold), "balanced accuracy" if kind.balanced else "accuracy"
    baseline = round(1 / len(counts) if kind.balanced else max(counts.values()) / len(rows), 4) if rows else None
    if len(counts) < 2 or len(set(groups)) < 2:
        return ProbeResult(kind.name, measure, kind.aim, len(rows), None, baseline, {})
    labelled = cross_predict([kind.sees(row) for row in rows], gold, groups, kind.balanced)
    right = Counter(a for a, b in zip(gold, labelled, strict=True) if a == b)
    recall = {name: right[name] / counts[name] for name in (*labels(True), "error") if name in counts}
    score = sum(recall.values()) / len(recall) if kind.balanced else right.total() / len(rows)
    recalls = {name: round(share, 4) for name, share in recall.items()}
    return ProbeResult(kind.name, measure, kind.aim, len(rows), round(score, 4), baseline, recalls)


def cross_predict(
    seen: Sequence[str | list[float]], gold: Sequence[str], groups: Sequence[str], balanced: bool
) -> list[str]:
    """Label each text, or row of numbers, by a probe trained on those of other ``groups`` (five folds at most).

    Raises ``ValueError`` for fewer than two groups or no shared word, and ``UserError`` without scikit-learn.
    """
    is_text = isinstance(seen[0], str)
    # Once for all folds, as the vocabulary tells no label.
    values = _count_ngrams([str(text) for text in seen]) if is_text else np.array(seen, dtype=float)
    from sklearn.model_selection import GroupKFold

    truth, labelled = np.array(gold), np.array(gold)
    folds = GroupKFold(min(FOLDS, len(set(groups))), shuffle=True, random_state=0)
    predict = _fit_predict if is_text else _grow_predict
    for train, test in folds.split(values, groups=groups):
        labelled[test] = predict(values[train], truth[train], values[test], balanced)
    return [str(name) for name in labelled]


def label_by_probes(
    learnt: Sequence[tuple[Question, Sequence[Step], str]], unlabelled: Sequence[tuple[Question, Sequence[Step]]]
) -> dict[str, list[str]]:
    """Return the labels that two probes give the last steps of ``unlabelled``, after training on ``learnt``, by probe.

    One sees the words of the steps, the other how they overlap with the passages, and what kind of step it is.
    """
    rows = [_row(question, steps, label) for question, steps, label in learnt]
    rows += [_row(question, steps, CORRECT) for question, steps in unlabelled]
    counts = _count_ngrams([_steps(row) for row in rows])
    kinds = [[float(row.step.kind == kind) for kind in STEP_KINDS] for row in rows]
    features = np.array([overlap(row) + kind for row, kind in zip(rows, kinds, strict=True)])
    gold, size = np.array([label for _, _, label in learnt]), len(learnt)
    return {
        "word probe": [str(name) for name in _fit_predict(counts[:size], gold, counts[size:], False)],
        "overlap probe": [str(name) for name in _grow_predict(features[:size], gold, features[size:], False)],
    }


def _row(question: Question, steps: Sequence[Step], label: str) -> StepRow:
    return StepRow(question, tuple(steps[:-1]), steps[-1], Feedback(label, "", "-"), "ideal", "")


def _count_ngrams(texts: Sequence[str]) -> Any:
    """Count the n-grams of each text; raise ``UserError`` if scikit-learn is not installed."""
    require_modules("a probe of the verifier set", "scikit-learn", "build", "sklearn")
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(ngram_range=(1, 3), min_df=2, dtype=float).fit_transform(texts)


def _grow_predict(values: Any, truth: Any, test_values: Any, balanced: bool) -> Any:
    """Grow a random forest on features and labels, and predict the labels of the test features."""
    from sklearn.ensemble import RandomForestClassifier

    weight = "balanced" if balanced else None
    forest = RandomForestClassifier(TREES, min_samples_leaf=3, class_weight=weight, random_state=0)
    return forest.fit(values, truth).predict(test_values)


def _fit_predict(counts: Any, truth: Any, test_counts: Any, balanced: bool) -> Any:
    """Fit a model to counts and labels, and predict the labels of the test counts."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import SGDClassifier

    rows = counts.shape[0]
    if len(set(truth)) < 2:
        return np.repeat(truth[:1], test_counts.shape[0])
    weights = TfidfTransformer(sublinear_tf=True).fit(counts)
    min_epochs, max_epochs = EPOCHS
    model = SGDClassifier(
        loss="log_loss",
        alpha=1 / (rows * (BALANCED_COST if balanced else COST)),
        average=True,
        max_iter=max(min_epochs, min(max_epochs, UPDATES // rows)),
        tol=None,
        class_weight="balanced" if balanced else None,
        random_state=0,
    )
    model.fit(weights.transform(counts), truth)
    return model.predict(weights.transform(test_counts))
