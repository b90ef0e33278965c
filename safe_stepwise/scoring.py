r"""Computes exact match and F1 as each benchmark's official scorer does.

All three lower-case, delete ASCII punctuation, replace the words a, an and the by a space and squeeze white space, in
that order; F1 counts shared tokens with multiplicity. So "U.S." is one token, "well-known" is "wellknown", and marks
beyond ASCII (a dash, an ellipsis, a curly quote) stay as they are. What differs:

- HotpotQA and 2WikiMultihopQA (the same rule): if the normalised prediction or answer is ``yes``, ``no`` or
  ``noanswer`` and the two differ, F1 is 0 whatever they share. Two texts that normalise to nothing match exactly, but
  their F1 is 0, as they share no token.
- MuSiQue (SQuAD's rule): yes and no are words like any other, and if one side normalises to nothing, F1 is 1 if the
  other does too, else 0.
- Several answers: MuSiQue takes the best over the answer and its aliases, separately for exact match and F1; so does
  2Wiki's version 1.1, with a file of aliases. HotpotQA has one answer per question. Here the best reference counts for
  every benchmark.

Sources: hotpot_evaluate_v1.py, 2wikimultihop_evaluate_v1.1.py, metrics/answer.py of MuSiQue. ``synthetic`` follows
HotpotQA, ``custom`` (users' own questions) MuSiQue. A benchmark outside `BENCHMARKS` is scored by the rule of one of
these, which its file names. Scores are fractions from 0 to 1.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from safe_stepwise.errors import UserError

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
CUSTOM = "custom"
"""The benchmark of users' own questions."""
_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over ``count`` questions, each from 0 to 1."""

    exact_match: float
    f1: float
    count: int


def normalize_answer(text: str) -> str:
    """Normalise an answer for comparison.

    >>> normalize_answer("The  Well-Known Mayor of Oru.")
    'wellknown mayor of oru'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, references: Sequence[str], benchmark: str = CUSTOM) -> float:
    """Return 1.0 if the normalised prediction equals a normalised reference, else 0.0.

    This rule is the same for all benchmarks. Raises UserError for an unknown benchmark, and for references
    that are empty or one string.

    >>> exact_match("the Vel", ["Vel", "River Vel"], "musique")
    1.0
    """
    _scorer_of(benchmark)
    normalized = normalize_answer(prediction)
    return float(any(normalized == normalize_answer(r) for r in _check_references(references)))


def f1(prediction: str, references: Sequence[str], benchmark: str) -> float:
    """Return token F1 against the best reference, from 0 to 1; raises as ``exact_match`` does.

    >>> f1("yes it is", ["yes"], "hotpotqa"), f1("yes it is", ["yes"], "musique")
    (0.0, 0.5)
    """
    scorer = _scorer_of(benchmark)
    normalized = normalize_answer(prediction)
    return max(mean_of(*scorer(normalized, normalize_answer(r))) for r in _check_references(references))


def precision_recall(prediction: str, references: Sequence[str], benchmark: str) -> tuple[float, float]:
    """Return token precision and recall, each against its best reference, for joint scores.

    2Wiki's scorer takes the best of each separately; HotpotQA has one reference. Raises as ``exact_match`` does.

    >>> precision_recall("Oru town", ["Oru"], "hotpotqa")
    (0.5, 1.0)
    """
    scorer = _scorer_of(benchmark)
    normalized = normalize_answer(prediction)
    pairs = [scorer(normalized, normalize_answer(r)) for r in _check_references(references)]
    return max(p for p, _ in pairs), max(r for _, r in pairs)


def mean_of(precision: float, recall: float) -> float:
    """Return F1, the harmonic mean of precision and recall; 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def set_f1(shared: int, predicted: int, gold: int) -> float:
    """Return F1 of two sets by their sizes and the number of ``shared`` items; 0 if both are empty.

    >>> set_f1(1, 2, 1) == mean_of(1 / 2, 1 / 1)
    True
    """
    return 2 * shared / (predicted + gold) if predicted + gold else 0.0


def score(predictions: Sequence[str], references: Sequence[Sequence[str]], benchmark: str) -> Scores:
    """Compute mean exact match and F1; ``references[i]`` are the accepted answers of ``predictions[i]``.

    Raises UserError if the two differ in length or are empty, and as ``exact_match`` does.

    >>> score(["Oru", "no"], [["Oru"], ["yes"]], "synthetic")
    Scores(exact_match=0.5, f1=0.5, count=2)
    """
    if len(predictions) != len(references):
        raise UserError(
            f"{len(predictions)} predictions but {len(references)} lists of references: "
            "give one list of references for each prediction"
        )
    if not predictions:
        raise UserError("there are no predictions to score: give at least one")
    pairs = list(zip(predictions, references, strict=True))
    matches = [exact_match(p, r, benchmark) for p, r in pairs]
    overlaps = [f1(p, r, benchmark) for p, r in pairs]
    count = len(pairs)
    return Scores(math.fsum(matches) / count, math.fsum(overlaps) / count, count)


def _check_references(references: Sequence[str]) -> Sequence[str]:
    if isinstance(references, str):
        raise UserError(f"references is the string {references[:40]!r}: give a list of strings")
    if not references:
        raise UserError("a question has no references: give at least one accepted answer")
    return references


def _compute_overlap(prediction: list[str], reference: list[str]) -> tuple[float, float]:
    shared = sum((Counter(prediction) & Counter(reference)).values())
    return (shared / len(prediction), shared / len(reference)) if shared else (0.0, 0.0)


def _score_hotpotqa(prediction: str, reference: str) -> tuple[float, float]:
    if prediction != reference and not _CLOSED_ANSWERS.isdisjoint((prediction, reference)):
        return 0.0, 0.0
    return _compute_overlap(prediction.split(), reference.split())


def _score_squad(prediction: str, reference: str) -> tuple[float, float]:
    if not prediction or not reference:
        return (1.0, 1.0) if prediction == reference else (0.0, 0.0)
    return _compute_overlap(prediction.split(), reference.split())


_SCORERS: dict[str, Callable[[str, str], tuple[float, float]]] = {
    "hotpotqa": _score_hotpotqa,
    "2wikimultihopqa": _score_hotpotqa,
    "musique": _score_squad,
    "synthetic": _score_hotpotqa,
    CUSTOM: _score_squad,
}
"""The functions that compute token precision and recall of two normalised texts, by benchmark."""
BENCHMARKS = tuple(name for name in _SCORERS if name != CUSTOM)
"""The benchmarks that have a scorer here."""


def _scorer_of(benchmark: str) -> Callable[[str, str], tuple[float, float]]:
    if benchmark not in _SCORERS:
        raise UserError(f"unknown benchmark {benchmark!r}: give one of {', '.join(_SCORERS)}")
    return _SCORERS[benchmark]
