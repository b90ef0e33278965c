"""Score a ranked list of answers by Hit, Hits@1 and F1, by the rules of four papers.

We reimplemented each rule from its authors' published code. ``predicted`` are the answers, the best first; ``gold``
are the right answers.

- ``dp`` (Deliberation on Priors, ``utils/statics_caculate.py``): names have to be equal except for case. A repeated
  answer counts twice for precision. Without gold answers all scores are 1.
- ``rog`` (Reasoning on Graphs, ``qa_prediction/evaluate_results.py``): a gold answer is found if the normalised text
  of all answers contains it. Precision is found gold answers per answer, and can exceed 1.
- ``gcr`` (Graph-constrained Reasoning, ``utils/qa_utils.py``): as ``rog``, but precision is the share of answers that
  contain a gold one; blank answers do not count.
- ``tog`` (Think on Graph, ``eval/utils.py``): an answer is right if it and a gold one, without blanks and case, are
  equal or one contains the other. It has no F1.

For ``rog``, ``gcr`` and ``tog``, Hits@1 is the hit of the first answer, as with ``--top_k 1`` of RoG's script; what
their papers print as Hits@1 is our ``hit`` (as DP's section 4.2 notes). If their code fails (no gold answer) or calls
an empty reply right (ToG's, as every text contains it), the score is 0.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from safe_stepwise.scoring import mean_of, normalize_answer

METRICS = ("hit", "hits_at_1", "f1")
HEADLINE = "dp"
"""The rule of the main scores in a report."""


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """The scores of one question's answers, 0 to 1; F1 is None if the rule has none."""

    hit: float
    hits_at_1: float
    f1: float | None


Scorer = Callable[[Sequence[str], Collection[str]], AnswerScore]


def score_dp(predicted: Sequence[str], gold: Collection[str]) -> AnswerScore:
    """Score by the rule of Deliberation on Priors (see the module).

    >>> score_dp(["Oru", "ana", "ana"], ["Ana"])  # precision 2/3, recall 1
    AnswerScore(hit=1.0, hits_at_1=0.0, f1=0.8)
    """
    predicted_names, gold_names = [name.lower() for name in predicted], [name.lower() for name in gold]
    if not gold_names:
        return AnswerScore(1.0, 1.0, 1.0)
    matches = [name in gold_names for name in predicted_names]
    precision = sum(matches) / len(matches) if matches else 0.0
    recall = sum(name in predicted_names for name in gold_names) / len(gold_names)
    return AnswerScore(float(any(matches)), float(any(matches[:1])), mean_of(precision, recall))


def score_rog(predicted: Sequence[str], gold: Collection[str]) -> AnswerScore:
    """Score by the rule of Reasoning on Graphs (see the module): frequent answers go first; each counts once.

    >>> score_rog(["Ana Brell and Edo Marn"], ["Ana Brell", "Edo Marn"])  # precision 2, recall 1
    AnswerScore(hit=1.0, hits_at_1=1.0, f1=1.3333333333333333)
    """
    answers = _sort_by_frequency(predicted)
    match_count = _count_stated(answers, gold)
    f1 = mean_of(match_count / len(answers), match_count / len(gold)) if answers and gold else 0.0
    return AnswerScore(float(match_count > 0), float(_count_stated(answers[:1], gold) > 0), f1)


def score_gcr(predicted: Sequence[str], gold: Collection[str]) -> AnswerScore:
    """Score by the rule of Graph-constrained Reasoning (see the module).

    >>> score_gcr(["Ana Brell and Edo Marn", "Oru"], ["Ana Brell", "Edo Marn"])  # precision 1/2
    AnswerScore(hit=1.0, hits_at_1=1.0, f1=0.6666666666666666)
    """
    answers, gold_answers = _sort_by_frequency([name for name in predicted if name.strip()]), set(gold)
    match_count = _count_stated(answers, gold_answers)
    precise = sum(_count_stated([name], gold_answers) > 0 for name in answers)
    f1 = mean_of(precise / len(answers), match_count / len(gold_answers)) if answers and gold_answers else 0.0
    return AnswerScore(float(match_count > 0), float(_count_stated(answers[:1], gold_answers) > 0), f1)


def score_tog(predicted: Sequence[str], gold: Collection[str]) -> AnswerScore:
    """Score by the rule of Think on Graph (see the module), which takes each answer as a whole reply.

    >>> score_tog(["the Ana Brell", "Oru"], ["Ana Brell"]), score_tog(["Ana"], ["Ana Brell"]).hits_at_1
    (AnswerScore(hit=1.0, hits_at_1=1.0, f1=None), 1.0)
    """
    replies, names = map(_remove_blanks, predicted), [*map(_remove_blanks, gold)]
    right = [bool(reply) and any(reply in name or name in reply for name in names) for reply in replies]
    return AnswerScore(float(any(right)), float(any(right[:1])), None)


SCORERS: Mapping[str, Scorer] = {"dp": score_dp, "rog": score_rog, "gcr": score_gcr, "tog": score_tog}
TITLES: Mapping[str, str] = {
    "dp": "Deliberation on Priors",
    "rog": "Reasoning on Graphs",
    "gcr": "Graph-constrained Reasoning",
    "tog": "Think on Graph",
}


def _sort_by_frequency(names: Sequence[str]) -> list[str]:
    return [name for name, _ in Counter(names).most_common()]


def _count_stated(answers: Sequence[str], gold: Collection[str]) -> int:
    """Count the gold answers within the text of all answers; a gold answer of only articles always counts."""
    text = normalize_answer(" ".join(answers))
    return sum(normalize_answer(name) in text for name in gold) if answers else 0


def _remove_blanks(text: str) -> str:
    return text.strip().replace(" ", "").lower()
