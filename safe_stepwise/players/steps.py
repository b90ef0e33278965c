"""The symbolic generator writes the steps of a question's plan; the symbolic verifier judges steps by the plan.

The plan comes from the annotated hops and the passages that state them (HotpotQA: from the supporting facts). Its
items are the facts and inferences; a *place* is an item's index, from 0, and the final answer's place follows them.

The generator makes simple mistakes at its error rate: another value, a skipped hop, a repeated step, another answer.
What follows from a mistake is wrong too, except in a chain with a flaw (``spurious``, `players.facts`). After feedback
it usually writes the first step that is missing. The verifier gives the checker's label, ``Correct`` if the checker
abstains, and another label at its error rate.

If gold passages are hidden, the generator says that it does not find the fact, and the verifier says Missing Evidence
with a query, if its schema has that label (`players.facts`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import Any

from safe_stepwise.checking import statements
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.inference import calculation_of
from safe_stepwise.checking.plans import Item, PlanError
from safe_stepwise.checking.wordings import phrase
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.feedback import FeedbackError
from safe_stepwise.language.text import normal_name
from safe_stepwise.methods import generator, verifier
from safe_stepwise.methods.scene import Scene, SubAnswer
from safe_stepwise.players.facts import (
    Facts,
    ask_for_evidence,
    denial,
    draw_distractor,
    flaw_of,
    hide_stand_ins,
    is_hidden,
    may_lack_evidence,
    with_stand_ins,
)
from safe_stepwise.players.symbolic import DEAF, Rates, Role, format_verdict, is_listed, scene_of
from safe_stepwise.records import Feedback, Question, Step
from safe_stepwise.steps import ANSWER_MARKER, StepError, format_step
from safe_stepwise.taxonomy import CORRECT, MISSING_EVIDENCE, check_order

WORDINGS = 4
"""Number of seeds for the wordings of a plan's steps."""
_STEP = re.compile(r"\bStep (\d+)\b")
_FIND = re.compile(r"According to Passage (\d+), the answer to “([^“”]*)” is (.*)\.")
"""A step with a sub-answer, as `sg_fsm_safe` shows it to the verifier."""


def restate(facts: Facts, ideal: Sequence[Step], steps: Sequence[Step]) -> tuple[Step, ...]:
    """Rewrite steps with sub-answers to the plan's questions as statements of its facts, which the checker can judge.

    ``ideal`` are the correct steps of the plan. All other steps stay, and so do answers to hops in free words, which
    the checker can judge as they are.
    """
    answers, numbers, restated_steps = dict[int, SubAnswer](), dict[int, int](), list[Step]()
    for step in steps:
        sub_answer = _find_in(step)
        place = facts.place_of(sub_answer.question, answers) if sub_answer else None
        if sub_answer is None or place is None:
            restated_steps.append(step)
            continue
        answers[place] = sub_answer
        numbers.setdefault(place, step.number)
        item = facts.plan.items[place]
        text = step.text if statements.is_free(item.triples[0]) else _claim(facts, ideal[place].text, place, answers)
        text = _STEP.sub(lambda m: f"Step {numbers.get(int(m[1]) - 1, m[1])}", text)
        restated_steps.append(replace(step, text=" ".join(text.split())))
    return tuple(restated_steps)


def is_sound(facts: Facts, steps: Sequence[Step]) -> bool:
    """Whether the last step is the right sub-answer to a due fact; it overrules the checker, who may mix up names."""
    *earlier, last_answer = [sub_answer for step in steps if (sub_answer := _find_in(step))] or [SubAnswer("", 0, "")]
    answers = facts.index_by_place(earlier)
    place = facts.place_of(last_answer.question, answers) if _find_in(steps[-1]) else None
    if place is None or place in answers or facts.is_misled(place, answers):
        return False
    is_due = all(use in answers for use in facts.plan.items[place].uses)
    is_right = facts.is_right(place, {**answers, place: last_answer})
    return is_due and is_right and last_answer.passage == facts.passage(place)


def _find_in(step: Step) -> SubAnswer | None:
    """Read the sub-answer in a step that has the form of `_FIND`; None for any other step."""
    match = _FIND.fullmatch(step.text)
    return SubAnswer(match[2], int(match[1]), match[3]) if match else None


def _claim(facts: Facts, text: str, place: int, answers: Mapping[int, SubAnswer]) -> str:
    """State the fact at a place with the sub-answer; ``text`` is the ideal step's."""
    item, sub_answer = facts.plan.items[place], answers[place]
    is_right = not facts.is_misled(place, answers) and facts.is_right(place, answers)
    value = facts.answer(place)
    if is_right or (item.sentence is not None and value in text):
        text = text if is_right else text.replace(value, sub_answer.answer)
        return re.sub(rf"\bPassage {item.passage_number}\b", f"Passage {sub_answer.passage}", text)
    if item.sentence is not None:
        claim = f"the answer to “{facts.question_for(place, answers)}” is {sub_answer.answer}"
    else:
        end: Any = {"head" if facts.asks_for_head(item) else "tail": sub_answer.answer}
        claim = statements.state([replace(t, **end) for t in item.triples], 0)
    return phrase("fact", "0", n=sub_answer.passage, claim=claim)


@lru_cache(maxsize=2048)
def checker_of(question: Question) -> Checker:
    """Return the checker of a question's path, with stand-ins for lacking passages; raise ``EngineError`` if none."""
    completed, path = with_stand_ins(question)
    try:
        return Checker(completed, path, path)
    except PlanError as error:
        raise EngineError(f"the row's annotations give no plan ({error})") from None


def strict_checker_of(question: Question) -> Checker:
    """Return the checker for users' steps, without stand-ins, as a passage that the user lacks proves nothing.

    Raises ``EngineError`` if the question has no annotated path, or if its passages do not state all facts.
    """
    checker = checker_of(question)
    if len(checker.passages) > len(question.passages):
        raise EngineError("the passages do not state all facts of the row's annotations")
    return checker


def label_last(question: Question, steps: Sequence[Step]) -> str:
    """Return the label that `strict_checker_of` a question gives the last of some steps; "" where it can't tell."""
    try:
        checker, facts = strict_checker_of(question), facts_of(question)
        *previous, step = restate(facts, ideal(question, 0), steps)
        verdict = checker.check(previous, step)
    except (EngineError, StepError, FeedbackError):
        return ""
    return CORRECT if is_sound(facts, steps) else verdict.error_type if verdict else ""


@lru_cache(maxsize=4096)
def ideal(question: Question, seed: int) -> tuple[Step, ...]:
    """Write the correct steps of a question's plan, in the wordings of a seed."""
    return write_trajectory(checker_of(question), seed)


@lru_cache(maxsize=2048)
def facts_of(question: Question) -> Facts:
    """Return the facts of a question's plan; raises ``EngineError`` if it has none."""
    return Facts(question, checker_of(question).claims)


def _verify(request: Request, rates: Rates, chance: Random) -> Feedback:
    scene = scene_of(request, Scene)
    if scene.step is None:
        raise EngineError("the symbolic verifier has no step to judge")
    checker = checker_of(scene.question)
    steps = (*scene.previous, scene.step)
    *previous, step = restate(facts_of(scene.question), ideal(scene.question, 0), steps)
    scene = replace(scene, previous=tuple(previous), step=step)
    may_search = request.schema is not None and MISSING_EVIDENCE in request.schema.text
    guidance = checker.guidance(checker.established(scene.previous), scene.previous, step.text)
    sound = Feedback(CORRECT, "Nothing was found that speaks against it.", guidance)
    verdict = _check_within_view(scene, checker, step, may_search) or sound
    undue = verdict.error_type != CORRECT and is_sound(facts_of(scene.question), steps)
    if undue or not is_listed(request, verdict.error_type):
        verdict = sound
    if chance.random() < rates.error_rate:
        labels = [n for n in (*check_order(step.kind), CORRECT) if is_listed(request, n)]
        label = chance.choice([n for n in labels if n != verdict.error_type] or labels)
        verdict = Feedback(label, f"The step is taken for a case of {label}.", guidance)
    hidden = [item for item in checker.plan.items if is_hidden(item, scene.question)]
    if not hidden:
        return verdict
    return hide_stand_ins(verdict, scene.question, hidden[0], checker.passages)


def _check_within_view(scene: Scene, checker: Checker, step: Step, may_search: bool) -> Feedback | None:
    """Return the checker's verdict; if the next fact is hidden and the step lacks it, ask for evidence if possible."""
    verdict = checker.check(scene.previous, step)
    place = checker.next_item(checker.established(scene.previous))
    item = checker.plan.items[place] if place is not None else None
    if item is None or not is_hidden(item, scene.question) or not may_lack_evidence(verdict, step):
        return verdict
    return ask_for_evidence(item, checker.passages, step) if may_search else None


def _generate(request: Request, rates: Rates, chance: Random) -> Step:
    scene = scene_of(request, Scene)
    error_rate = rates.rate_of("error_rate", has_feedback=scene.feedback is not None)
    writer = _StepWriter(scene.question, scene.previous, chance)
    if request.role == generator.FINAL_ROLE:
        place = len(writer.items)
    else:
        place = writer.believed if scene.feedback is None else writer.missing
    if rates.spurious == 1:
        is_mending = scene.feedback is not None and chance.random() >= DEAF
        return writer.spurious(place, error_rate, is_mending)
    return writer.wrong(place) if chance.random() < error_rate else writer.step(place)


class _StepWriter:
    """Writes the step after ``previous``. ``done`` maps places to the numbers of the steps that established them."""

    def __init__(self, question: Question, previous: Sequence[Step], chance: Random) -> None:
        self.question, self.previous, self.chance = question, previous, chance
        self.checker = checker_of(question)
        self.items = self.checker.plan.items
        self.ideal = ideal(question, chance.randrange(WORDINGS))
        self.done = self.checker.established(previous)
        self.lacking = [n for n in self.checker.established(self.ideal[:-1]) if n not in self.done]

    @property
    def believed(self) -> int:
        """The next place if every accepted step is right."""
        step_count = len({step.text for step in self.previous})
        return min(max(step_count, max(self.done, default=-1) + 1), len(self.items))

    @property
    def missing(self) -> int:
        """The first place that no accepted step has established."""
        return min(self.lacking, default=len(self.items))

    @property
    def is_misled(self) -> bool:
        """Whether the conclusion lacks a fact, or an accepted step already draws a wrong one."""
        if any(place < len(self.items) - 1 for place in self.lacking):
            return True
        sound = self.done.values()
        doubtful = [s for s in self.previous if s.kind == "Logical" and s.number not in sound]
        wrong = normal_name(facts_of(self.question).wrong_answer)
        return any(f" {wrong} " in f" {normal_name(step.text)} " for step in doubtful)

    def step(self, place: int) -> Step:
        """Write the plan's step at a place, or a wrong conclusion if the accepted steps mislead."""
        if place >= len(self.items) - 1 and self.is_misled:
            return self.otherwise(place)
        return self._plain(place)

    def spurious(self, place: int, error_rate: float, is_mending: bool) -> Step:
        """Write the step at a place of a chain with a flaw, which still ends right; ``is_mending``: corrected."""
        flaw = flaw_of(facts_of(self.question), ideal(self.question, 0))
        if flaw and flaw.place not in self.done and not is_mending:
            if flaw.kind == "missing":
                step_count = len({step.text for step in self.previous})
                place = max(place, step_count + (step_count >= flaw.place))
                place = min(place + (place == flaw.place), len(self.items))
            elif place == flaw.place:
                return self._step(_STEP.sub(self._renumbered, flaw.text), place)
        if place < len(self.items) - 1 and self.chance.random() < error_rate:
            return self.wrong(place)
        return self._plain(place)

    def _plain(self, place: int) -> Step:
        """Write the plan's step at a place, or say that its fact is not there."""
        if self._is_hidden(place):
            return self._step(denial(self.items[place], self.checker.passages), place)
        return self._step(_STEP.sub(self._renumbered, self.ideal[place].text), place)

    def wrong(self, place: int) -> Step:
        """Write a mistake instead of the plan's step: another value, a later fact, or an earlier step again."""
        if self._is_hidden(place):
            return self.step(place)
        later = (n for n in self.checker.plan.fact_places if n > place and place in self.items[n].uses)
        skipped = next((n for n in later if not self._is_hidden(n)), None)
        forms = ["otherwise"]
        forms += ["skipping"] if skipped is not None else []  # a later fact before the one that leads to it
        forms += ["repeating"] if self.previous and place < len(self.items) else []
        form = self.chance.choice(forms)
        if form == "repeating":
            return replace(self.chance.choice(self.previous), number=len(self.previous) + 1)
        return self.otherwise(place) if form == "otherwise" or skipped is None else self._plain(skipped)

    def otherwise(self, place: int) -> Step:
        """Write the step at a place with another value, result or answer."""
        wrong_answer = facts_of(self.question).wrong_answer
        if place == len(self.items):
            return self._step(f"{ANSWER_MARKER} {wrong_answer}", place)
        item, seed = self.items[place], str(self.chance.randrange(100))
        if item.triples:
            return self._step(self._misread(item, place, seed), place)
        steps = statements.list_steps([self.done.get(n, n + 1) for n in item.uses])
        if result := calculation_of(self.checker.plan, item):
            amount = result.amount(result.number + (9 if result.kind == "lifespan" else 1))
            text = phrase(result.kind, seed, steps=steps, h=result.head, t=amount)
        else:
            chain = self.checker.plan.kind == "sequential"
            text = phrase(("comparison", "conclusion")[chain], seed, steps=steps, answer=wrong_answer)
        return self._step(text, place)

    def _misread(self, item: Item, place: int, seed: str) -> str:
        value = self.checker.claims.value_of(item)
        distractor = draw_distractor(self.question, value, self.chance)
        if item.sentence is not None:
            return self.ideal[place].text.replace(value, distractor)
        claim = statements.state([replace(t, tail=distractor) for t in item.triples], int(seed))
        return phrase("fact", seed, n=item.passage_number, claim=claim)

    def _is_hidden(self, place: int) -> bool:
        return place < len(self.items) and is_hidden(self.items[place], self.question)

    def _renumbered(self, reference: re.Match[str]) -> str:
        """Replace a reference to the plan's step by the accepted step that established its item."""
        place = int(reference[1]) - 1
        return f"Step {self.done.get(place, place + 1)}"

    def _step(self, text: str, place: int) -> Step:
        return Step(len(self.previous) + 1, " ".join(text.split()), self.ideal[place].kind)


def _reply(request: Request, rates: Rates, chance: Random) -> str:
    try:
        content = _WRITERS[request.role](request, rates, chance)
        if isinstance(content, Step):
            return format_step(content)
        return format_verdict(content, request, scene_of(request, Scene))
    except (StepError, FeedbackError) as error:
        raise EngineError(f"the row's annotations break the grammar ({error})") from None


_WRITERS: Mapping[str, Callable[[Request, Rates, Random], Step | Feedback]] = {
    generator.ROLE: _generate,
    generator.FINAL_ROLE: _generate,
    verifier.ROLE: _verify,
}
ROLES: Mapping[str, Role] = dict.fromkeys(_WRITERS, _reply)
