"""What the symbolic generator did in a chain that it wrote: the truth to hold measurements to.

It is told from the generator's own words, which are few: a step is a fact's or a result's of the
plan only if it is one of the wordings that the generator has for it (`steps.ideal`), letter for
letter but for the numbers of the steps that it refers to. All else that it writes is a mistake.
Nothing is read in a text, so that this owes nothing to checker and judges.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from safe_stepwise.engines.base import EngineError
from safe_stepwise.players.evidence import denial
from safe_stepwise.players.facts import flaw_of
from safe_stepwise.players.steps import WORDINGS, checker_of, facts_of, ideal
from safe_stepwise.records import Question, Step, Trajectory

Mistake = Literal["", "value", "relation", "result", "answer", "early", "repeated", "denied"]
"""None (""); another value or relation of a fact; another result of facts, or answer; a fact before
one that it builds on; a step once more; a fact said not to be there."""
PATH_MISTAKES: tuple[Mistake, ...] = ("value", "relation", "early", "denied")
"""Mistakes in facts; what follows from facts is no part of a path."""
_STEP = re.compile(r"\bStep \d+\b")


@dataclass(frozen=True, slots=True)
class Truth:
    """The mistakes of a chain: one for each accepted step, and the facts that no step states.

    ``missing`` are places in the plan, from 1.
    """

    mistakes: tuple[Mistake, ...]
    missing: tuple[int, ...]

    @property
    def is_faithful(self) -> bool:
        """Whether every needed fact is rightly stated, in an order that leads there, none wrongly.

        >>> Truth(("", "early", ""), ()).is_faithful, Truth(("", "repeated"), ()).is_faithful
        (False, True)
        """
        return not self.missing and not {*PATH_MISTAKES} & {*self.mistakes}


def truth_of(question: Question, trajectory: Trajectory) -> Truth | None:
    """Find the generator's mistakes in the accepted steps; None where the row gives it no plan.

    ``question`` is as it was asked: what was retrieved on the way is in the trajectory.
    """
    try:
        views = [_Words(mistake) for mistake in _as_shown(question, trajectory)]
    except EngineError:
        return None
    plan = views[0].checker.plan
    established, earlier_texts, mistakes = set[int](), set[str](), list[Mistake]()
    for step in trajectory.steps:
        text = _plain(step.text)
        places = {place for words in views for place in words.places(text)}
        facts = places.intersection(plan.facts)
        waiting = facts and not any(established.issuperset(plan.items[place].uses) for place in facts)
        if places:
            mistakes.append("repeated" if text in earlier_texts else "early" if waiting else "")
        else:
            candidates = [words.mistake(step, text) for words in views]
            mistakes.append(next((mistake for mistake in candidates if mistake != "value"), "value"))
        established |= places
        earlier_texts.add(text)
    missing = tuple(place + 1 for place in plan.facts if place not in established)
    return Truth(tuple(mistakes), missing)


def _as_shown(question: Question, trajectory: Trajectory) -> Iterator[Question]:
    yield question
    for attempt in trajectory.attempts:
        if attempt.retrieved:
            question = replace(question, passages=(*question.passages, *attempt.retrieved))
            yield question


class _Words:
    """All that the generator can say rightly of one question."""

    def __init__(self, question: Question) -> None:
        self.checker = checker_of(question)
        chains = [ideal(question, seed) for seed in range(WORDINGS)]
        self.items = self.checker.plan.items
        self.flaw = flaw_of(facts_of(question), chains[0])
        self._right = [{_plain(chain[n].text) for chain in chains} for n in range(len(self.items))]
        self._answer = _plain(chains[0][-1].text)

    def places(self, text: str) -> Iterator[int]:
        """The places of the plan whose item a text carries out; they may be the answer's."""
        return (n for n, texts in enumerate(self._right) if text in texts)

    def mistake(self, step: Step, text: str) -> Mistake:
        """Classify a step that carries out nothing of the plan."""
        if text == self._answer:
            return ""
        if step.kind == "Final Answer":
            return "answer"
        if self.flaw and self.flaw.kind != "missing" and text == _plain(self.flaw.text):
            return self.flaw.kind
        if step.kind == "Logical":
            return "result"
        pages = self.checker.passages
        denials = {_plain(denial(item, pages)) for item in self.items if item.triples}
        return "denied" if text in denials else "value"


def _plain(text: str) -> str:
    return _STEP.sub("Step", " ".join(text.split()))
