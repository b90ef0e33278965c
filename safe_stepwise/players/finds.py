"""What a machine's searcher found, as steps that the checker can judge.

`methods.sg_fsm_safe` has a find judged as a step that holds a question and its answer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from safe_stepwise.checking import statements
from safe_stepwise.checking.phrases import phrase
from safe_stepwise.methods.scene import Found
from safe_stepwise.players.facts import Facts
from safe_stepwise.records import Step

_FIND = re.compile(r"According to Passage (\d+), the answer to “([^“”]*)” is (.*)\.")
_STEP = re.compile(r"\bStep (\d+)\b")


def restated(facts: Facts, ideal: Sequence[Step], steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps as the checker knows them: a find that answers a plan's own question says its fact.

    ``ideal`` are the steps that carry out the plan.

    A find holds a question and an answer, too little for the checker where it goes by what a
    passage's sentence says. A question in words, which the checker knows, and all others stay.
    """
    known, told = dict[int, Found](), list[Step]()
    numbers: dict[int, int] = {}
    for step in steps:
        found = _find_in(step)
        place = facts.place_of(found.question, known) if found else None
        if found is None or place is None:
            told.append(step)
            continue
        known[place] = found
        numbers.setdefault(place, step.number)
        item = facts.plan.items[place]
        text = step.text if statements.is_free(item.triples[0]) else _claim(facts, ideal[place].text, place, known)
        text = _STEP.sub(lambda m: f"Step {numbers.get(int(m[1]) - 1, m[1])}", text)
        told.append(replace(step, text=" ".join(text.split())))
    return tuple(told)


def is_sound(facts: Facts, steps: Sequence[Step]) -> bool:
    """Whether the last of some steps is the right find of a fact that was due, in its passage.

    The checker may take two facts of like names for one.
    """
    *before, found = [one for step in steps if (one := _find_in(step))] or [Found("", 0, "")]
    known = facts.known(before)
    place = facts.place_of(found.question, known) if _find_in(steps[-1]) else None
    if place is None or place in known or facts.is_misled(place, known):
        return False
    is_due = all(use in known for use in facts.plan.items[place].uses)
    is_right = facts.is_right(place, {**known, place: found})
    return is_due and is_right and found.passage == facts.passage(place)


def _find_in(step: Step) -> Found | None:
    match = _FIND.fullmatch(step.text)
    return Found(match[2], int(match[1]), match[3]) if match else None


def _claim(facts: Facts, text: str, place: int, known: Mapping[int, Found]) -> str:
    item, found = facts.plan.items[place], known[place]
    if not facts.is_misled(place, known) and facts.is_right(place, known):
        return re.sub(rf"\bPassage {item.passage}\b", f"Passage {found.passage}", text)
    if item.sentence is not None and (value := facts.answer(place)) in text:
        told = text.replace(value, found.answer)
        return re.sub(rf"\bPassage {item.passage}\b", f"Passage {found.passage}", told)
    asked = facts.asked(place, known)
    if item.sentence is not None:
        claim = f"the answer to “{asked}” is {found.answer}"
    elif facts.asks_for_head(item):
        claim = statements.state([replace(t, head=found.answer) for t in item.triples], 0)
    else:
        claim = statements.state([replace(t, tail=found.answer) for t in item.triples], 0)
    return phrase("fact", "0", n=found.passage, claim=claim)
