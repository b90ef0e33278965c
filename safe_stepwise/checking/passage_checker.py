"""Judges steps by the passages alone, for questions without annotations.

Each claim of a step is stated by a passage that the step cites or by an accepted step, said otherwise there, found
nowhere, or not read (`support.weigh`). Whether a step is needed can't be told: only annotations give the plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from safe_stepwise.checking.inference import has_false_premise
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.checking.support import Finding, Support, weigh
from safe_stepwise.language.text import as_number, has_words, words_of
from safe_stepwise.records import Passage, Step
from safe_stepwise.steps import final_answer

SOUND, UNDECIDED = "sound", "undecided"


@dataclass(frozen=True, slots=True)
class PassageVerdict:
    """A judgement of one step.

    ``label``: `SOUND`, an error type, or `UNDECIDED`; ``reason``: a clause, "" for a sound step; ``claims``: what was
    found of its parts.
    """

    label: str
    reason: str = ""
    claims: tuple[Finding, ...] = ()


def judge_by_passages(
    question: str, passages: Sequence[Passage], previous: Sequence[Step], step: Step
) -> PassageVerdict:
    """Judge a step that follows accepted ones by the passages that it cites, or by all if it cites none.

    >>> page = Passage("Dune Rain", ("Dune Rain is a 1954 film directed by Ors Velt.",))
    >>> step = Step(1, "Passage 1 says that Ors Velt was directed by Dune Rain.", "Attribution")
    >>> judge_by_passages("Who directed Dune Rain?", [page], [], step).label
    'Contradictory'
    """
    if step.kind == "Final Answer":
        return _judge_answer(previous, step)
    reading = read_step(step.text)
    earlier = Passage("", tuple(accepted.text for accepted in previous))
    cited = [n for n in reading.cited if 0 < n <= len(passages)]
    pages = [(n, passages[n - 1]) for n in cited or range(1, len(passages) + 1)]
    if step.kind == "Logical":
        pages = [*([(0, earlier)] if previous else []), *((n, passages[n - 1]) for n in cited)]
        if has_false_premise(reading.claim):
            return PassageVerdict("Logical Fallacy", "it compares two values wrongly")
    support = weigh(step.text, pages, [question, *earlier.sentences])
    return _verdict(step, support, previous)


def _verdict(step: Step, support: Support, previous: Sequence[Step]) -> PassageVerdict:
    claims = (*support.stated, *support.findings)
    wrong, unsupported = ("Contradictory", "Unsupported")
    if step.kind == "Logical":
        wrong = unsupported = "Logical Fallacy"
    if finding := support.contradiction:
        return PassageVerdict(wrong, finding.reason, claims)
    absent = [f for f in support.findings if f.status == "not found" and not _is_derived(f.part, previous)]
    if absent and step.kind == "Attribution":
        return PassageVerdict(unsupported, absent[0].reason, claims)
    if rest := absent or [f for f in support.findings if f.status != "not found"]:
        return PassageVerdict(UNDECIDED, rest[0].reason, claims)
    return PassageVerdict(SOUND, "", claims)


def _is_derived(value: str, previous: Sequence[Step]) -> bool:
    """Whether a number is the difference or the sum of two numbers of accepted steps."""
    number = as_number(value)
    if number is None:
        return False
    numbers = {n for step in previous for v in read_step(step.text).values if (n := as_number(v)) is not None}
    years = {float(v[-4:]) for step in previous for v in read_step(step.text).values if v[-4:].isdigit()}
    known = numbers | years
    return any(number in (abs(a - b), a + b) for a in known for b in known)


def _judge_answer(previous: Sequence[Step], step: Step) -> PassageVerdict:
    answer = words_of(final_answer(step))
    if not answer or not previous:
        return PassageVerdict(UNDECIDED, "no accepted step comes before the answer")
    if any(has_words(words_of(accepted.text), answer) for accepted in previous):
        return PassageVerdict(SOUND)
    return PassageVerdict(UNDECIDED, "no accepted step has the answer")
