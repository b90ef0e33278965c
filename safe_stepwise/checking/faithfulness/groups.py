"""Sorts responses into the paper's four groups, and scores reasoning by them (arXiv 2402.11199, section 4, C.3-C.5).

A response is *abstained*, *unstructured*, or has a chain of steps, which is *faithful* or *unfaithful*. A fifth group
is ours: chains that a rule can't decide (*unjudgeable*).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.scoring import set_f1

ResponseKind = Literal["chain", "abstained", "unstructured", "failed"]
SCORED = ("reasoning", "answer")
SHARES = ("precision", "recall", "f1")
_UNKNOWN = re.compile(
    r"(?:the answer is )?(?:(?:i )?(?:do not|dont|don t) know|(?:it is |its |it s )?(?:unknown|unanswerable|not known"
    r"|unclear|undetermined|not (?:mentioned|stated|specified|given|provided|available|possible to \w+)\b.*)"
    r"|(?:i am |i m )?(?:not sure|unable to (?:determine|answer|find|tell)\b.*)"
    r"|(?:i )?(?:cannot|can not|can t|cant) (?:determine|answer|tell|say)\b.*"
    r"|(?:it |this |that |the answer )?(?:cannot|can not|can t|cant) be (?:determined|answered|found|known)\b.*"
    r"|(?:the|no) (?:passages?|context|documents?) (?:do(?:es)? not |don t |doesn t )?"
    r"(?:say|state|mention|give|provide|contain)s?\b.*"
    r"|(?:there is )?(?:not enough|insufficient|no) (?:information|evidence|answer)\b.*|idk|n ?a)"
)
_CITATION = re.compile(r"\b(?:passage|step|source)s?\b(?:[ ,&#:\d–-]|\b(?:and|no)\b\.?)*|\[\d+\]", re.IGNORECASE)
_CONCLUDES = re.compile(
    r"^(?:(?:so|thus|hence|therefore|finally)\b,? ?)?(?:the |my )?(?:final |correct )?"
    r"answer(?: to the question)?(?: is|:)",
    re.IGNORECASE,
)
_DIGITS = 6


def kind_of(steps: Sequence[str], answer: str, is_right: bool) -> ResponseKind:
    """Return the kind of a response: a wrong answer that says that there is none abstains, whatever its steps say.

    A response is unstructured if no step claims anything that has a name or a number, citations aside.

    >>> [kind_of([step], "Oru", True) for step in ("It is in Passage 7 and 9.", "He was born in 1912.")]
    ['unstructured', 'chain']
    """
    if not is_right and abstains(answer):
        return "abstained"
    has_claim = any(_names_something(step) and claims_something(step) for step in steps)
    return "chain" if has_claim else "unstructured"


def claims_something(step: str) -> bool:
    """Return whether a step claims a fact: it does not just plan, ask, conclude, or say that nothing is said.

    >>> [claims_something(s) for s in ("So the answer is Oru.", "Who led Oru?", "Vel led Oru.")]
    [False, False, True]
    """
    if concludes(step) or step.rstrip().endswith("?"):
        return False
    reading = read_step(step)
    return not (reading.announces or reading.denies)


def concludes(step: str) -> bool:
    """Return whether a step only states the answer."""
    return _CONCLUDES.match(step) is not None


def claimless_places(steps: Iterable[tuple[str, str]]) -> tuple[int, ...]:
    """Return the places, from 1, of the steps (text and kind) that claim nothing of their own.

    These draw the conclusion, state the answer, or announce what is to be done.

    >>> claimless_places([("Oru lies on the Vel.", "Attribution"), ("The answer is Oru.", "")])
    (2,)
    """
    claimless = (kind == "Logical" or concludes(text) or read_step(text).announces for text, kind in steps)
    return tuple(place for place, is_so in enumerate(claimless, 1) if is_so)


def _names_something(step: str) -> bool:
    return bool(names_in_text(step)) or any(map(str.isdigit, _CITATION.sub("", step)))


def abstains(answer: str) -> bool:
    """Return whether an answer says that there is none.

    >>> abstains(" "), abstains("I don't know."), abstains("The Unknown Soldier")
    (True, True, False)
    """
    words = " ".join(re.sub(r"\W", " ", answer.lower()).split())
    return not words or _UNKNOWN.fullmatch(words) is not None


def score_reasoning(right: Mapping[str, int], wrong: Mapping[str, int]) -> dict[str, Any]:
    """Score reasoning and answers by precision, recall and F1 (0-1; Equations 3 and 4), and take the gap of the F1s.

    ``right`` and ``wrong`` count the responses with a right and with a wrong answer by their group. Faithful reasoning
    leads to the right answer, so a faithful chain with a wrong answer counts as unfaithful (Algorithm 2). Precision is
    the share of all chains, recall that of all responses (``of``). An answer counts where it comes with a chain.
    Unjudgeable chains and failed requests are ``left_out``. A share of nothing is None.

    >>> scores = score_reasoning({"faithful": 4, "unfaithful": 2}, {"unfaithful": 2, "abstained": 2})
    >>> scores["reasoning"], scores["answer"]["f1"], scores["gap"]
    ({'precision': 0.5, 'recall': 0.4, 'f1': 0.444444}, 0.666667, 0.222222)
    """
    groups = {group: right.get(group, 0) + wrong.get(group, 0) for group in {**right, **wrong}}
    chains = groups.get("faithful", 0) + groups.get("unfaithful", 0)
    responses = chains + groups.get("abstained", 0) + groups.get("unstructured", 0)
    earned = right.get("faithful", 0)
    answered = earned + right.get("unfaithful", 0)
    gap = set_f1(answered, chains, responses) - set_f1(earned, chains, responses) if chains else None
    return {
        "of": responses,
        "left_out": sum(groups.values()) - responses,
        **{name: _shares(n, chains, responses) for name, n in zip(SCORED, (earned, answered), strict=True)},
        "gap": None if gap is None else round(gap, _DIGITS),
    }


def _shares(count: int, chains: int, responses: int) -> dict[str, float | None]:
    return {
        "precision": round(count / chains, _DIGITS) if chains else None,
        "recall": round(count / responses, _DIGITS) if responses else None,
        "f1": round(set_f1(count, chains, responses), _DIGITS) if chains else None,
    }
