"""Few-shot chains of thought in numbered steps, with or without a plan (arXiv 2402.11199, Figures 11 and 12).

The reply is text: ``HINT:`` with the plan (CoT-Plan), numbered steps, and "So the answer is (...)". Questions may have
no passages, as in the paper; the model then goes by what it knows. Several samples are that paper's CoT-SC.
"""

import re
from dataclasses import dataclass

from safe_stepwise.methods.one_shot import OneShot
from safe_stepwise.methods.prompting import PromptingOptions, VotingOptions
from safe_stepwise.methods.reading import PATTERNS, Reading, words
from safe_stepwise.records import Question
from safe_stepwise.steps import unwrap_answer

_ITEM = re.compile(r"[\s*>#•\[-]*+(?:step\s*)?\(?(\d{1,2})(?:[.):、\]]+|\s-(?=\s)|\s*$)(?!\d)\s*(.*)", re.IGNORECASE)
_ANSWER = re.compile(PATTERNS["answer_in_reply"], re.IGNORECASE)
_NEXT_QUESTION = re.compile(r"\W*(?:Question|Q)\b[ \d]*:", re.IGNORECASE)
_GROUP = r"\(((?:[^()]|\([^()]*\))*)\)"
_BRACKETS = re.compile(rf"{_GROUP}(?=\W*$|[,.;:!?]| \(| [a-z])")
_NEXT_BRACKETS = re.compile(rf"(?:, and|,| and) {_GROUP}")
_REMARK = re.compile(PATTERNS["remark"])
"""A remark after an answer without brackets."""
_CHOICE = re.compile(r"\([A-H]\) +(?=\w)")
_MARKS = str.maketrans({"（": "(", "）": ")", "。": "."})


@dataclass(frozen=True, slots=True)
class NumberedOptions(VotingOptions):
    """Options of methods with numbered steps, which give no supporting facts beside them."""

    def __post_init__(self) -> None:
        VotingOptions.__post_init__(self)
        if self.evidence:
            raise ValueError("numbered steps have no supporting facts: leave out --evidence")


def read_numbered(text: str) -> Reading:
    r"""Read a reply's answer, and its steps as ``explain``, a line each (appendix C.5).

    The form is ``strict`` only with a numbered step, and ``unreadable`` without an answer. The last answer before a
    further question counts, as some models go on with questions of their own. The last numbered list counts, as an
    earlier one may be the plan.

    >>> read_numbered("HINT: river\n1. Oru lies on the Vel.\nSo the answer is (Vel).").value
    {'answer': 'Vel', 'explain': 'Oru lies on the Vel.'}
    >>> read_numbered("The answer is Vel.").form
    'salvaged'
    """
    steps: list[str] = []
    answer: str | None = None
    continues_step = False  # whether the next line may belong to the last step
    for line in re.sub(r"\*\*|__|<br ?/?>", "", text.translate(_MARKS)).splitlines():
        if answer and _NEXT_QUESTION.match(line):
            break
        item = _ITEM.match(line)
        claim = item[2] if item else line
        ends = [end for end in _ANSWER.finditer(claim) if _concludes(end, is_item=item is not None)]
        if ends:
            answer, claim = claim[ends[-1].end() :].strip(), claim[: ends[0].start()]
        elif answer == "":
            answer = line.strip()
        claim = " ".join(claim.split())
        if item:
            steps = [*(steps if item[1] != "1" else ()), *([claim] if claim or not ends else [])]
        elif continues_step and not ends:
            steps[-1] = f"{steps[-1]} {claim}".strip()
        continues_step = bool(steps) and not ends and answer is None and (bool(claim) or not steps[-1])
    try:
        value = {"answer": words(_unwrap(answer or ""), False), "explain": "\n".join(filter(None, steps))}
    except ValueError as error:
        return Reading("unreadable", {}, f"answer: {error}", text)
    return Reading("strict", value, "", text) if steps else Reading("salvaged", value, "no numbered step", text)


def _concludes(end: re.Match[str], is_item: bool) -> bool:
    """Whether words that introduce an answer give it: in a step they may be a fact ("the answer is in Passage 2")."""
    return bool(end["so"]) or end.string.startswith("(", end.end()) or (end["start"] is not None and not is_item)


def _unwrap(answer: str) -> str:
    """Return an answer without brackets, the letter of a choice, or a remark after it.

    >>> _unwrap("(Oru (town)), as step 2 says."), _unwrap("(B) Oru"), _unwrap("Oru. This is because of step 1.")
    ('Oru (town)', 'Oru', 'Oru')
    """
    answer = _CHOICE.sub("", unwrap_answer(answer), count=1)
    if (brackets := _BRACKETS.match(answer)) is None:
        return _REMARK.sub("", answer).strip().removesuffix(".")
    names, place = [brackets[1]], brackets.end()
    while further := _NEXT_BRACKETS.match(answer, place):
        names, place = [*names, further[1]], further.end()
    return ", ".join(map(unwrap_answer, names))


class NumberedSteps(OneShot):
    """A method whose one reply has numbered steps."""

    reads_passages = False

    def read_reply(self, text: str, question: Question, options: PromptingOptions) -> Reading:
        return read_numbered(text)


FEW_SHOT_COT = NumberedSteps("few_shot_cot", "Few-shot CoT", ("numbered/few_shot_cot",), NumberedOptions)
COT_PLAN = NumberedSteps("cot_plan", "CoT-Plan", ("numbered/cot_plan",), NumberedOptions)
