"""Finds the mistakes that the symbolic generator made on purpose in a chain: the truth to test measurements with.

The generator has a fixed set of wordings for each fact and inference of a plan (`steps.ideal`). A step is right if it
is exactly one of them, except for the numbers of the steps that it refers to; any other step is a mistake. No text is
interpreted, so that this truth is independent of the checker and the judges. A *place* is the index of an item of the
plan, from 0.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from safe_stepwise.engines.base import EngineError
from safe_stepwise.players.facts import denial, flaw_of
from safe_stepwise.players.steps import WORDINGS, checker_of, facts_of, ideal
from safe_stepwise.records import Question, Step, Trajectory

Mistake = Literal["", "value", "relation", "result", "answer", "early", "repeated", "denied"]
"""The mistake of a step: none (""), a wrong value or relation of a fact, a wrong result of an inference, a wrong final
answer, a fact before one that it needs, a repeated step, a fact that the step says is not there."""
PATH_MISTAKES: tuple[Mistake, ...] = ("value", "relation", "early", "denied")
"""Mistakes in facts; inferences do not belong to a path."""
_STEP = re.compile(r"\bStep \d+\b")


@dataclass(frozen=True, slots=True)
class Truth:
    """The mistake of each accepted step of a chain; ``missing`` has the plan's facts (from 1) without a step."""

    mistakes: tuple[Mistake, ...]
    missing: tuple[int, ...]

    @property
    def is_faithful(self) -> bool:
        """Whether the chain states every fact correctly and in a possible order, and no fact wrongly.

        >>> Truth(("", "early", ""), ()).is_faithful, Truth(("", "repeated"), ()).is_faithful
        (False, True)
        """
        return not self.missing and not {*PATH_MISTAKES} & {*self.mistakes}


def truth_of(question: Question, trajectory: Trajectory) -> Truth | None:
    """Find the generator's mistakes in the accepted steps; None if the question gives no plan.

    ``question`` has the passages from before the run; the trajectory has those that were retrieved in it.
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
        facts = places.intersection(plan.fact_places)
        waiting = facts and not any(established.issuperset(plan.items[place].uses) for place in facts)
        if places:
            mistakes.append("repeated" if text in earlier_texts else "early" if waiting else "")
        else:
            candidates = [words.mistake(step, text) for words in views]
            mistakes.append(next((mistake for mistake in candidates if mistake != "value"), "value"))
        established |= places
        earlier_texts.add(text)
    return Truth(tuple(mistakes), tuple(place + 1 for place in plan.fact_places if place not in established))


def _as_shown(question: Question, trajectory: Trajectory) -> Iterator[Question]:
    """Yield the question with the passages at the start, and after each retrieval."""
    yield question
    for attempt in trajectory.attempts:
        if attempt.retrieved:
            question = replace(question, passages=(*question.passages, *attempt.retrieved))
            yield question


class _Words:
    """All right wordings that the generator has for one question."""

    def __init__(self, question: Question) -> None:
        self.checker = checker_of(question)
        chains = [ideal(question, seed) for seed in range(WORDINGS)]
        self.items = self.checker.plan.items
        self.flaw = flaw_of(facts_of(question), chains[0])
        self._right = [{_plain(chain[n].text) for chain in chains} for n in range(len(self.items))]
        self._answer = _plain(chains[0][-1].text)

    def places(self, text: str) -> Iterator[int]:
        return (n for n, texts in enumerate(self._right) if text in texts)

    def mistake(self, step: Step, text: str) -> Mistake:
        """Classify a step that states no item of the plan; "" for the right final answer."""
        if text == self._answer:
            return ""
        if step.kind == "Final Answer":
            return "answer"
        if self.flaw and self.flaw.kind != "missing" and text == _plain(self.flaw.text):
            return self.flaw.kind
        if step.kind == "Logical":
            return "result"
        pages = self.checker.passages
        return "denied" if text in {_plain(denial(item, pages)) for item in self.items if item.triples} else "value"


def _plain(text: str) -> str:
    """Return a step's text without the numbers of other steps and with single blanks."""
    return _STEP.sub("Step", " ".join(text.split()))
