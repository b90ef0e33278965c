"""Scores supporting facts, evidence, and answer and evidence jointly, as the benchmarks' official scorers do.

- **Supporting facts** (HotpotQA, 2Wiki): sets of (title, sentence) pairs; exact match, precision, recall, F1. 2Wiki's
  scorer compares titles in lower case. Precision, recall and F1 of an empty set are 0;
  exact match is 1 if both sets are empty.
- **Supporting passages** (MuSiQue): sets of passage numbers; an empty prediction scores 1 if no passage is gold.
- **Evidence** (2Wiki): triples in lower case, without punctuation, with articles; relations are compared as written.
  Every predicted triple that is gold counts towards precision and recall.
- **Joint**: the products of the precisions and of the recalls of answer, facts and (2Wiki) evidence, and F1 of the
  two products; exact match if all match. MuSiQue has no joint score.

Sources: hotpot_evaluate_v1.py, 2wikimultihop_evaluate_v1.1.py (whose file of aliases is not used here),
metrics/support.py of MuSiQue. SG-FSM (Table 3) calls triples "joint" and prints pairs that these definitions exclude.
Scores are fractions from 0 to 1.
"""

import math
import string
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass

from safe_stepwise.scoring import exact_match, mean_of, precision_recall

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LOWER_TITLES = frozenset({"2wikimultihopqa"})

Fact = tuple[str, int]
"""A passage's title and a sentence's index, from 0."""
TextTriple = tuple[str, str, str]
"""Subject, relation, object."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """The overlap of predicted and gold items; all values from 0 to 1."""

    exact_match: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return mean_of(self.precision, self.recall)


def answer_overlap(prediction: str, references: Sequence[str], benchmark: str) -> Overlap:
    """Score an answer by tokens as an `Overlap`, for a joint score; raises as `scoring.exact_match` does."""
    precision, recall = precision_recall(prediction, references, benchmark)
    return Overlap(exact_match(prediction, references, benchmark), precision, recall)


def facts_overlap(predicted: Iterable[Fact], gold: Iterable[Fact], benchmark: str) -> Overlap:
    """Score predicted supporting facts by the rule of HotpotQA or 2Wiki, as ``benchmark`` says.

    >>> facts_overlap([("Oru", 0), ("Vel", 1)], [("oru", 0)], "2wikimultihopqa").precision
    0.5
    """
    # Titles that differ in case alone stay two facts, as in the official scorer.
    lists = (
        [(title.lower() if benchmark in _LOWER_TITLES else title, n) for title, n in set(facts)]
        for facts in (predicted, gold)
    )
    return _overlap(*lists)


def passages_overlap(predicted: Iterable[int], gold: Iterable[int]) -> Overlap:
    """Score the numbers of predicted supporting passages by the rule of MuSiQue."""
    chosen, supporting = set(predicted), set(gold)
    return _overlap(chosen, supporting) if chosen or supporting else Overlap(1.0, 1.0, 1.0)


def evidence_overlap(predicted: Iterable[TextTriple], gold: Iterable[TextTriple]) -> Overlap:
    """Score predicted evidence triples by the rule of 2Wiki.

    >>> evidence_overlap([("Low Tide", "director", "Ana Brell")],
    ...                  [("low tide.", "director", "Ana Brell"), ("Ana Brell", "born", "Oru")])
    Overlap(exact_match=0.0, precision=1.0, recall=0.5)
    """
    triples = {_plain(triple) for triple in predicted}
    gold_triples = [_plain(triple) for triple in gold]
    right = len(triples & set(gold_triples))
    precision = right / len(triples) if triples else 0.0
    recall = right / len(gold_triples) if gold_triples else 0.0
    return Overlap(float(right == len(triples) == len(gold_triples)), precision, recall)


def joint(*overlaps: Overlap) -> Overlap:
    """Multiply the overlaps of an answer and its evidence, which gives their joint score."""
    return Overlap(*map(math.prod, zip(*map(astuple, overlaps), strict=True)))


def _overlap(predicted: Collection[object], gold: Collection[object]) -> Overlap:
    right = sum(item in gold for item in predicted)
    missed = sum(item not in predicted for item in gold)
    precision = right / len(predicted) if predicted else 0.0
    recall = right / (right + missed) if right + missed else 0.0
    return Overlap(float(right == len(predicted) and not missed), precision, recall)


def _plain(triple: TextTriple) -> TextTriple:
    head, relation, tail = (" ".join(term.lower().translate(_PUNCTUATION).split()) for term in triple)
    return head, relation, tail
