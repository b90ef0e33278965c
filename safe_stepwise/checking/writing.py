"""The steps that carry out a plan, in our own words: one a plan item, then the final answer.

Wording varies with the question and a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from safe_stepwise.checking import statements
from safe_stepwise.checking.claims import Claims
from safe_stepwise.checking.inference import lifespan, span_of
from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.graphs.comparisons import Side, compare
from safe_stepwise.records import Step
from safe_stepwise.steps import ANSWER_MARKER

_WORDINGS_TRIED = 6


class Checks(Protocol):
    """What writing asks of a `checking.checker.Checker`."""

    claims: Claims

    def passes(self, previous: Sequence[Step], step: Step) -> bool: ...


def write_trajectory(checker: Checks, seed: int) -> tuple[Step, ...]:
    """The steps of a question's plan in our own words: wordings that pass, where there are any."""
    writer = _Writer(checker.claims, seed)
    steps: list[Step] = []
    for item in writer.plan.items:
        steps.append(_fitting(writer, checker, steps, item))
    answer = f"{ANSWER_MARKER} {_plain(writer.question.answer)}"
    return (*steps, Step(len(steps) + 1, answer, "Final Answer"))


def _fitting(writer: _Writer, checker: Checks, steps: Sequence[Step], item: Item) -> Step:
    """The first wording that passes; the last one tried where none does."""
    step = Step(1, "", item.kind)
    for attempt in range(_WORDINGS_TRIED):
        step = Step(len(steps) + 1, _plain(writer.write(item, attempt)), item.kind)
        if checker.passes(steps, step):
            break
    return step


def _plain(text: str) -> str:
    return " ".join(text.split())


class _Writer:
    """Words for the items of one plan; ``choice`` varies them."""

    def __init__(self, claims: Claims, seed: int) -> None:
        self.claims, self.plan, self.question = claims, claims.plan, claims.question
        self.choice = choice_for(str(seed), claims.question.id)

    def write(self, item: Item, attempt: int) -> str:
        choice = self.choice + attempt + self.plan.items.index(item)
        if item.triples:
            return self._fact(item, choice)
        steps = [use + 1 for use in item.uses]
        if item.derivation == "life span":
            span = span_of(self.plan, item)
            return statements.lived(steps, span.head, span.years, choice)
        if self.plan.kind == "sequential":
            return self._conclusion(choice)
        return self._comparison(item, steps, choice)

    def _fact(self, item: Item, choice: int) -> str:
        assert item.passage is not None
        if item.sentence is not None:
            page = item.page(self.question.passages)
            needed = self.claims.value_of(item)
            return statements.quote(page, item.passage, item.sentence, needed, choice)
        claim = statements.state(item.triples, choice // 3)
        return statements.cite(self._referring(item, claim), item.passage, choice)

    def _referring(self, item: Item, claim: str) -> str:
        """The claim with the steps noted behind the names that come from them."""
        for use in item.uses:
            found = {t.tail for t in self.plan.items[use].triples}
            for triple in item.triples:
                name = triple.head
                if name in claim and (name in found or len(item.uses) == 1):
                    at = claim.index(name) + len(name)
                    if claim[at:].startswith((" (from", "’", "'")):
                        continue
                    claim = f"{claim[:at]} (from Step {use + 1}){claim[at:]}"
                    break
        return claim

    def _conclusion(self, choice: int) -> str:
        facts = [n + 1 for n in self.plan.facts]
        chain = self._chain()
        if chain and choice % 3 == 0:
            return f"Combining {statements.steps_named(facts)}, {chain} is {self.question.answer}."
        return statements.conclude(facts, self.question.answer, choice)

    def _chain(self) -> str:
        """The chain as one noun phrase ("the spouse of the director of X"), where it is one."""
        triples = [self.plan.items[n].triples[0] for n in self.plan.facts]
        if not all(statements.is_noun(triple.relation) for triple in triples):
            return ""
        joints = [*(t.head for t in triples[1:]), self.question.answer]
        ends = zip(triples, joints, strict=True)
        if not all(self.claims.graph.same(triple.tail, joint) for triple, joint in ends):
            return ""
        phrase = triples[0].head
        for triple in triples:
            phrase = f"the {triple.relation} of {phrase}"
        return phrase

    def _comparison(self, item: Item, steps: Sequence[int], choice: int) -> str:
        plan, answer = self.plan, self.question.answer
        values = [self._compared(side, n) for side, n in zip(plan.sides, steps[-2:], strict=False)]
        if plan.operation is None or len(plan.sides) != 2 or len(values) != 2:
            return statements.compared("open", steps, (), answer, choice)
        outcome: str = plan.operation
        if outcome == "same" and answer.lower() == "no":
            outcome = "different"
        elif outcome in ("earliest", "latest", "longest", "most", "fewest"):
            first = compare(plan.operation, plan.sides) == plan.sides[0].entity
            values = values if first else values[::-1]
        return statements.compared(outcome, steps, values, answer, choice)

    def _compared(self, side: Side, step: int) -> str:
        if side.since:
            facts = [t for n in self.plan.facts for t in self.plan.items[n].triples]
            own = [t for t in facts if t.tail in (*side.since, *side.values)]
            return f"{lifespan(own).years} years (Step {step})"
        return f"{side.values[0]} (Step {step})"
