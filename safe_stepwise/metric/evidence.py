"""Supporting facts, evidence and joint scores, as the benchmarks' official scorers compute them.

- **Supporting facts** (HotpotQA, 2Wiki): pairs of a title and a sentence as a set; exact match, precision, recall, F1.
  2Wiki's scorer compares titles in lower case. A set of none scores 0.
- **Supporting passages** (MuSiQue): numbers as a set; none where none is asked for scores 1.
- **Evidence** (2Wiki): triples in lower case, without punctuation, articles kept; relations count as they are written.
  Every predicted one that is gold counts towards precision and recall.
- **Joint**: the products of the parts' precisions and recalls, and F1 of the two; exact match where each part matches.
  HotpotQA's parts are the answer and the facts, 2Wiki's also the evidence; MuSiQue has no joint score.

Sources: hotpot_evaluate_v1.py, 2wikimultihop_evaluate_v1.1.py (whose file of aliases is not used here),
metrics/support.py of MuSiQue. SG-FSM (Table 3) calls triples "joint" and prints pairs that these definitions exclude.
Scores are fractions from 0 to 1.
"""

import math
import string
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from safe_stepwise.scoring import exact_match, mean_of, precision_recall

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LOWER_TITLES = frozenset({"2wikimultihopqa"})

Fact = tuple[str, int]
"""A title, and a sentence from 0."""
Named = tuple[str, str, str]
"""Subject, relation, object."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """How what was predicted meets what is gold."""

    exact_match: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return mean_of(self.precision, self.recall)


def answer_overlap(prediction: str, references: Sequence[str], benchmark: str) -> Overlap:
    """The answer's part of a joint score; raises as `scoring.exact_match` does."""
    parts = precision_recall(prediction, references, benchmark)
    return Overlap(exact_match(prediction, references, benchmark), *parts)


def facts_overlap(predicted: Iterable[Fact], gold: Iterable[Fact], benchmark: str) -> Overlap:
    """Supporting facts by the rule of HotpotQA, or of 2Wiki.

    >>> facts_overlap([("Oru", 0), ("Vel", 1)], [("oru", 0)], "2wikimultihopqa").precision
    0.5
    """
    # Titles that differ in case alone stay two: that is what the scorer does.
    said, known = (
        [(title.lower() if benchmark in _LOWER_TITLES else title, n) for title, n in set(facts)]
        for facts in (predicted, gold)
    )
    return _of_lists(said, known)


def passages_overlap(predicted: Iterable[int], gold: Iterable[int]) -> Overlap:
    """Supporting passages by the rule of MuSiQue.

    >>> passages_overlap([1, 2, 2], [2]).f1 == 2 / 3
    True
    """
    said, known = [*set(predicted)], [*set(gold)]
    return _of_lists(said, known) if said or known else Overlap(1.0, 1.0, 1.0)


def evidence_overlap(predicted: Iterable[Named], gold: Iterable[Named]) -> Overlap:
    """Triples by the rule of 2Wiki.

    >>> evidence_overlap([("Low Tide", "director", "Ana Brell")],
    ...                  [("low tide.", "director", "Ana Brell"), ("Ana Brell", "born", "Oru")])
    Overlap(exact_match=0.0, precision=1.0, recall=0.5)
    """
    said = {_plain(triple) for triple in predicted}
    known = [_plain(triple) for triple in gold]
    met = len(said & set(known))
    precision = met / len(said) if said else 0.0
    recall = met / len(known) if known else 0.0
    return Overlap(float(met == len(said) == len(known)), precision, recall)


def joint(*parts: Overlap) -> Overlap:
    """Several parts together.

    >>> joint(Overlap(1.0, 1.0, 1.0), Overlap(0.0, 0.5, 1.0)).f1 == 2 / 3
    True
    """
    return Overlap(
        math.prod(part.exact_match for part in parts),
        math.prod(part.precision for part in parts),
        math.prod(part.recall for part in parts),
    )


def _of_lists(said: Collection[object], known: Collection[object]) -> Overlap:
    right = sum(one in known for one in said)
    missed = sum(one not in said for one in known)
    precision = right / len(said) if said else 0.0
    recall = right / (right + missed) if right + missed else 0.0
    return Overlap(float(right == len(said) and not missed), precision, recall)


def _plain(triple: Named) -> Named:
    head, relation, tail = (" ".join(part.lower().translate(_PUNCTUATION).split()) for part in triple)
    return head, relation, tail
