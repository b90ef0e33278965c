"""Probe a set: try to label its steps without reading the passages, to measure what a verifier need not read.

A probe is scored on questions that it was not trained on. One that sees words is a logistic regression over the TF-IDF
of word 1-3 grams; its fit is stochastic, with fixed seeds: a tenth of the time of the exact fit, and as strong
(``tests/benchmarks/bench_probes.py``). One that compares words with those of the passages (`overlap`), as a verifier
may that does no more, is a random forest. If a probe scores higher than its ``aim``, labels can be guessed without
reading.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from builders.steps.rows import StepRow
from safe_stepwise.errors import UserError
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage
from safe_stepwise.steps import format_step
from safe_stepwise.taxonomy import CORRECT, EVIDENCE, labels

FOLDS = 5
TREES = 200
UPDATES, EPOCHS = 40_000, (5, 40)
"""Approximate updates of the weights, and the fewest and most passes over the rows; more do not help."""
COST, BALANCED_COST = 60, 5
"""Weights of errors against the penalty, at which the fit is as good as the best exact one."""


FEATURES = (
    *("cited", "elsewhere", "cited - elsewhere", "anywhere", "one sentence", "cited - one sentence"),
    *("copied words", "copied share", "names", "names not in cited", "names nowhere", "words not in cited"),
    *("question", "earlier steps", "question in cited", "question anywhere"),
    *("words", "content words", "citations", "passages", "earlier"),
)
"""Shares (0-1) of a step's content words that a text has, of the question's that the passages have, and counts."""
_WORD = re.compile(r"[\w'’-]+")
_NAME = re.compile(r"[A-Z][\w'’-]+|\d[\d,.]*\d|\d")
_CITED = re.compile(r"\b[Pp]assage (\d{1,9})")
_IDLE = (
    word_list("stop_words")
    | word_list("step_openers")
    | {"according", "based", "passage", "passages", "step", "steps"}
)


def overlap(row: StepRow) -> list[float]:
    """Return the `FEATURES` of a row.

    >>> from safe_stepwise.records import Feedback, Question, Step
    >>> page = Passage("Oru", ("Oru is a town in Kelvia.",))
    >>> asked = Question("q", "b", "train", "Where is Oru?", "Kelvia", passages=(page,))
    >>> step = Step(1, "According to Passage 1, Oru lies in Kelvia.", "Attribution")
    >>> features = overlap(StepRow(asked, (), step, Feedback("Correct", "So.", ""), "ideal", "hand"))
    >>> [round(dict(zip(FEATURES, features))[name], 2) for name in ("cited", "copied words", "names nowhere")]
    [0.67, 2, 0]
    """
    words = _words(row.step.text)
    content = [word for word in words if word not in _IDLE and (len(word) == 4 or not word.isdigit())]
    pages = [_words_of_page(page) for page in row.question.passages]
    sets = [frozenset(page) for page in pages]
    places = [int(n) - 1 for n in _CITED.findall(row.step.text) if 0 < int(n) <= len(pages)][:3]
    shares = [_share(content, page) for page in sets]
    cited = max((shares[n] for n in places), default=-1.0)
    elsewhere = max((share for n, share in enumerate(shares) if n not in places), default=-1.0)
    sentences = [frozenset(_words(s)) for n in places for s in row.question.passages[n].sentences]
    sentence = max((_share(content, words) for words in sentences), default=-1.0)
    copied = max((_longest_run(words, pages[n]) for n in places), default=0)
    names = [name.lower() for name in _NAME.findall(_CITED.sub("", row.step.text)) if name.lower() not in _IDLE]
    question = [word for word in _words(row.question.question) if word not in _IDLE]
    earlier = frozenset(_words(" ".join(step.text for step in row.previous)))
    of_question = [_share(question, page) for page in sets]
    return [
        *(cited, elsewhere, cited - elsewhere, max(shares, default=-1.0), sentence, cited - sentence),
        *(copied, copied / max(1, len(words)), len(names), _missing(names, [sets[n] for n in places])),
        *(_missing(names, [frozenset[str]().union(*sets)]), _missing(content, [sets[n] for n in places])),
        *(_share(content, frozenset(question)), _share(content, earlier)),
        *(max((of_question[n] for n in places), default=-1.0), max(of_question, default=-1.0)),
        *(len(words), len(content), len(places), len(pages), len(row.previous)),
    ]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@lru_cache(maxsize=4096)
def _words_of_page(page: Passage) -> tuple[str, ...]:
    return tuple(_words(f"{page.title} . {page.text}"))


def _share(words: Sequence[str], text: frozenset[str]) -> float:
    return sum(word in text for word in words) / len(words) if words else 0.0


def _missing(words: Sequence[str], texts: Sequence[frozenset[str]]) -> int:
    """Return how many words the text lacks that lacks fewest; -1 without texts."""
    return min((sum(word not in text for word in words) for text in texts), default=-1)


def _longest_run(words: Sequence[str], text: Sequence[str]) -> int:
    """Return the number of words in a row that two texts share.

    >>> _longest_run("he was born in oru".split(), "ana was born in vel".split())
    3
    """
    return SequenceMatcher(None, words, text, autojunk=False).find_longest_match().size


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
    return row.step.kind == "Attribution" and row.feedback.error_type in EVIDENCE


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


def classify(texts: Sequence[str], gold: Sequence[str], unseen: Sequence[str], balanced: bool = False) -> list[str]:
    """Label ``unseen`` texts by a probe of ``texts`` and ``gold`` labels; raise ``UserError`` without scikit-learn."""
    counts, number = _count_ngrams([*texts, *unseen]), len(texts)
    return [str(name) for name in _fit_predict(counts[:number], np.array(gold), counts[number:], balanced)]


def _count_ngrams(texts: Sequence[str]) -> Any:
    """Count the n-grams of each text; raise ``UserError`` if scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        raise UserError("the probes of the verifier set need scikit-learn, which is not installed; pip install -e .")
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
