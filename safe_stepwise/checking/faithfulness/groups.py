"""Sorts responses into the paper's four groups, and scores reasoning by them (arXiv 2402.11199, section 4, C.3-C.5).

A response is *abstained*, *unstructured*, or has a chain of steps, which is *faithful* or *unfaithful*. A fifth group
is ours: chains that a rule can't decide (*unjudgeable*).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.language.vocabulary import wording
from safe_stepwise.scoring import set_f1

ResponseKind = Literal["chain", "abstained", "unstructured", "failed"]
SCORED = ("reasoning", "answer")
SHARES = ("precision", "recall", "f1")
_NO_ANSWER = wording("groups", "no_answer")
_CITATION = wording("groups", "citation", re.IGNORECASE)
_CONCLUDES = wording("groups", "concludes", re.IGNORECASE)
_ROUND_DIGITS = 6


def kind_of(steps: Sequence[str], answer: str, is_right: bool) -> ResponseKind:
    """Return the kind of a response; a wrong answer that declines to answer abstains, whatever its steps say.

    A response is unstructured if no step makes a claim with a name or a number (apart from citations).

    >>> [kind_of([step], "Oru", True) for step in ("It is in Passage 7 and 9.", "He was born in 1912.")]
    ['unstructured', 'chain']
    """
    if not is_right and abstains(answer):
        return "abstained"
    has_claim = any(_names_something(step) and claims_something(step) for step in steps)
    return "chain" if has_claim else "unstructured"


def claims_something(step: str) -> bool:
    """Whether a step claims a fact, and does not only plan, ask, conclude, or say that something is missing.

    >>> [claims_something(s) for s in ("So the answer is Oru.", "Who led Oru?", "Vel led Oru.")]
    [False, False, True]
    """
    if concludes(step) or step.rstrip().endswith("?"):
        return False
    reading = read_step(step)
    return not (reading.announces or reading.denies)


def concludes(step: str) -> bool:
    """Whether a step only states the answer."""
    return _CONCLUDES.match(step) is not None


def claimless_steps(steps: Iterable[tuple[str, str]]) -> tuple[int, ...]:
    """Return the numbers (from 1) of the steps, given by text and kind, that claim no new fact.

    These draw the conclusion, state the answer, or announce what is to be done. A question or a denial is not among
    them, though `claims_something` is False for it: it may still be wrong.

    >>> claimless_steps([("Oru lies on the Vel.", "Attribution"), ("The answer is Oru.", "")])
    (2,)
    """
    claimless = (kind == "Logical" or concludes(text) or read_step(text).announces for text, kind in steps)
    return tuple(place for place, is_claimless in enumerate(claimless, 1) if is_claimless)


def _names_something(step: str) -> bool:
    return bool(names_in_text(step)) or any(map(str.isdigit, _CITATION.sub("", step)))


def abstains(answer: str) -> bool:
    """Whether an answer says that there is no answer.

    >>> abstains(" "), abstains("I don't know."), abstains("The Unknown Soldier")
    (True, True, False)
    """
    words = " ".join(re.sub(r"\W", " ", answer.lower()).split())
    return not words or _NO_ANSWER.fullmatch(words) is not None


def score_reasoning(right: Mapping[str, int], wrong: Mapping[str, int]) -> dict[str, Any]:
    """Score reasoning and answers by precision, recall and F1 (0-1; Equations 3 and 4), and take the gap of the F1s.

    ``right`` and ``wrong`` count the responses with a right and with a wrong answer by their group. Faithful reasoning
    leads to the right answer, so a faithful chain with a wrong answer counts as unfaithful (Algorithm 2). Precision is
    the share of all chains, recall that of all responses (``of``). An answer counts only if it has a chain.
    Unjudgeable chains and failed requests are ``left_out``. A share of nothing is None.

    >>> scores = score_reasoning({"faithful": 4, "unfaithful": 2}, {"unfaithful": 2, "abstained": 2})
    >>> scores["reasoning"], scores["answer"]["f1"], scores["gap"]
    ({'precision': 0.5, 'recall': 0.4, 'f1': 0.444444}, 0.666667, 0.222222)
    """
    groups = {group: right.get(group, 0) + wrong.get(group, 0) for group in {**right, **wrong}}
    chains = groups.get("faithful", 0) + groups.get("unfaithful", 0)
    responses = chains + groups.get("abstained", 0) + groups.get("unstructured", 0)
    faithful_and_right = right.get("faithful", 0)
    right_chains = faithful_and_right + right.get("unfaithful", 0)
    counts = dict(zip(SCORED, (faithful_and_right, right_chains), strict=True))
    gap = set_f1(right_chains, chains, responses) - set_f1(faithful_and_right, chains, responses) if chains else None
    return {
        "of": responses,
        "left_out": sum(groups.values()) - responses,
        **{name: _compute_shares(n, chains, responses) for name, n in counts.items()},
        "gap": None if gap is None else round(gap, _ROUND_DIGITS),
    }


def _compute_shares(count: int, chains: int, responses: int) -> dict[str, float | None]:
    return {
        "precision": round(count / chains, _ROUND_DIGITS) if chains else None,
        "recall": round(count / responses, _ROUND_DIGITS) if responses else None,
        "f1": round(set_f1(count, chains, responses), _ROUND_DIGITS) if chains else None,
    }
