"""Probe a set: try to label its steps without the passages, to measure what a verifier need not read.

Each probe is a logistic regression over the TF-IDF of word 1-3 grams, scored on questions that it was not trained on.
Aims: DESIGN, section 6 ("Passages are necessary"). The fit is stochastic, with fixed seeds; it takes a tenth of the
time of the exact fit and is no weaker (``tests/benchmarks/bench_probes.py``).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from builders.steps.rows import StepRow
from safe_stepwise.errors import UserError
from safe_stepwise.steps import format_step
from safe_stepwise.taxonomy import EVIDENCE, labels

FOLDS = 5
UPDATES, EPOCHS = 40_000, (5, 40)
"""Approximate updates of the weights, and the fewest and most passes over the rows; more do not help."""
COST, BALANCED_COST = 60, 5
"""Weights of errors against the penalty, at which the fit is as good as the best exact one."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of probe: which rows it labels, the text that it sees, and the score that it should not exceed."""

    name: str
    sees: Callable[[StepRow], str]
    takes: Callable[[StepRow], bool]
    balanced: bool
    """Whether its score is balanced accuracy (the mean of the labels' recall)."""
    aim: float


def _steps(row: StepRow) -> str:
    return "\n".join(format_step(step) for step in (*row.previous, row.step))


def _is_evidence(row: StepRow) -> bool:
    return row.step.kind == "Attribution" and row.feedback.error_type in EVIDENCE


KINDS = (
    Kind("step alone", lambda row: format_step(row.step), lambda _: True, balanced=False, aim=0.50),
    Kind("step and previous steps", _steps, lambda _: True, balanced=False, aim=0.62),
    Kind("evidence types, step alone", lambda row: format_step(row.step), _is_evidence, balanced=True, aim=0.40),
)
"""Aims are those of DESIGN, section 6."""
MISSED = Kind("missing or missed", _steps, lambda row: row.incomplete, balanced=True, aim=0.60)
"""A probe of incomplete evidence: whether the evidence that a step denies exists, by the words up to the step."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of a probe over all its rows; shares are from 0 to 1.

    ``score`` is by its ``measure``; ``majority`` is the best score of one label for all rows. ``score`` is None and
    ``recall`` empty if all rows have one label or question.
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
    def is_above(self) -> bool:
        """Whether its score exceeds the aim."""
        return self.score is not None and self.score > self.aim

    @property
    def cells(self) -> tuple[object, ...]:
        """Its row of a table: name, rows, score, majority, aim."""
        reached = "too few rows" if self.score is None else f"{self.score:.3f}"
        return f"{self.name} ({self.measure})", self.rows, reached, f"{self.majority or 0:.3f}", f"{self.aim:.2f}"


def probed(rows: Sequence[StepRow], kinds: Sequence[Kind] = KINDS) -> tuple[Probe, ...]:
    """Return the result of each kind of probe on the rows of all splits together.

    Equal rows give equal figures, whatever their order and the number of threads. Raises ``UserError`` if scikit-learn
    is not installed.
    """
    rows = sorted(rows, key=lambda row: row.id)
    return tuple(_probe(kind, [row for row in rows if kind.takes(row)]) for kind in kinds)


def _probe(kind: Kind, rows: Sequence[StepRow]) -> Probe:
    gold, groups = [row.feedback.error_type for row in rows], [row.question_key for row in rows]
    counts, measure = Counter(gold), "balanced accuracy" if kind.balanced else "accuracy"
    majority = round(1 / len(counts) if kind.balanced else max(counts.values()) / len(rows), 4) if rows else None
    if len(counts) < 2 or len(set(groups)) < 2:
        return Probe(kind.name, measure, kind.aim, len(rows), None, majority, {})
    labelled = predicted([kind.sees(row) for row in rows], gold, groups, kind.balanced)
    right = Counter(a for a, b in zip(gold, labelled, strict=True) if a == b)
    recall = {name: right[name] / counts[name] for name in labels(True) if name in counts}
    score = sum(recall.values()) / len(recall) if kind.balanced else right.total() / len(rows)
    recalls = {name: round(share, 4) for name, share in recall.items()}
    return Probe(kind.name, measure, kind.aim, len(rows), round(score, 4), majority, recalls)


def predicted(texts: Sequence[str], gold: Sequence[str], groups: Sequence[str], balanced: bool) -> list[str]:
    """Label each text by a probe trained on the texts of other groups (five folds at most).

    ``balanced`` weighs labels as if they were equally frequent. There must be two groups, two labels and a word that
    two texts share.
    """
    counts = _count_ngrams(texts)  # once for all folds, as the vocabulary tells no label
    from sklearn.model_selection import GroupKFold

    truth, labelled = np.array(gold), np.array(gold)
    folds = GroupKFold(min(FOLDS, len(set(groups))), shuffle=True, random_state=0)
    for train, test in folds.split(counts, groups=groups):
        labelled[test] = _fit_predict(counts[train], truth[train], counts[test], balanced)
    return [str(name) for name in labelled]


def classify(texts: Sequence[str], gold: Sequence[str], unseen: Sequence[str], balanced: bool = False) -> list[str]:
    """Label each of ``unseen`` by a probe trained on ``texts``, which have two labels.

    Raises ``UserError`` if scikit-learn is not installed.
    """
    counts, number = _count_ngrams([*texts, *unseen]), len(texts)
    labelled = _fit_predict(counts[:number], np.array(gold), counts[number:], balanced)
    return [str(name) for name in labelled]


def _count_ngrams(texts: Sequence[str]) -> Any:
    """Count the n-grams of each text; raise ``UserError`` if scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        raise UserError("the probes of the verifier set need scikit-learn, which is not installed; pip install -e .")
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(ngram_range=(1, 3), min_df=2, dtype=float).fit_transform(texts)


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
