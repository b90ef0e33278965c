"""Steps that are meant to have an error: one function an error type, for every position of a plan.

Each proposes steps in the place of the ideal one (SAFE v1, section 3.3); whether a step has the
error that was meant is for `injection` to find out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from builders.steps.wrong_values import wrong_values
from safe_stepwise.checking.claims import Claims
from safe_stepwise.checking.inference import lifespan
from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.statements import is_free, is_noun, quote, state, steps_named
from safe_stepwise.checking.step_reading import content_words
from safe_stepwise.checking.wordings import choice_for, sought
from safe_stepwise.graphs.comparisons import is_yes_or_no
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.text import normal_name, without_qualifier
from safe_stepwise.records import Passage, StepKind, Triple
from safe_stepwise.steps import ANSWER_MARKER

Wordings = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A step that is meant to have an error: its text and kind."""

    text: str
    kind: StepKind


class Injector:
    """Proposes erroneous steps in the places of the ideal ones of a plan."""

    def __init__(self, claims: Claims, seed: int, words: Wordings) -> None:
        self.claims, self.words = claims, words
        self.plan, self.question, self.passages = claims.plan, claims.question, claims.passages
        self._seed = f"{seed} {claims.question.id}"

    def propose(self, error_type: str, position: int) -> Iterator[Proposal]:
        """Steps meant to have an error of that type at a position (from 1)."""
        functions: dict[str, Callable[[int], Iterator[Proposal]]] = {
            "Overthinking": self.overthinking,
            "Off-topic": self.off_topic,
            "Redundancy": self.redundancy,
            "Inefficiency": self.inefficiency,
            "Contradictory": self.contradictory,
            "Unsupported": self.unsupported,
            "Information Miss": self.information_miss,
            "Premature Attribution": self.premature_attribution,
            "Logical Fallacy": self.logical_fallacy,
            "Wrong Conclusion": self.wrong_conclusion,
        }
        return functions[error_type](position)

    # ------------------------------------------------------------------------------- procedural

    def overthinking(self, position: int) -> Iterator[Proposal]:
        """Reading or deriving on once the answer is reached."""
        last = len(self.plan.items)
        if not self._reached(position):
            return
        facts = [n + 1 for n in self.plan.facts]
        if position > last and self._choice(position, "way") % 3 == 0:
            told = {"steps": steps_named(facts), "answer": self.question.answer}
            yield from self._say("Overthinking", "deriving_on", position, "Logical", **told)
        for number, sentence in self._asides(gold=True):
            values = {"n": number, "sentence": sentence}
            yield from self._say("Overthinking", "reading_on", position, "Attribution", **values)

    def off_topic(self, position: int) -> Iterator[Proposal]:
        """A true sentence of a passage that the question has no use for."""
        if self._reached(position):
            return
        for number, sentence in self._asides(gold=self._choice(position, "gold") % 4 == 0):
            values = {"n": number, "sentence": sentence}
            yield from self._say("Off-topic", "elsewhere", position, "Attribution", **values)

    def redundancy(self, position: int) -> Iterator[Proposal]:
        """A fact of an earlier step once more."""
        if self._reached(position):
            return
        earlier = [n for n in self.plan.facts if n < position - 1]
        for place in self._shuffled(earlier, position, "earlier"):
            item = self.plan.items[place]
            kind: StepKind = "Attribution"
            if item.sentence is not None:
                values = {"k": place + 1, "n": item.passage, "sentence": self._sentence(item)}
                yield from self._say("Redundancy", "quoted", position, kind, **values)
            else:
                claim = state(item.triples, self._choice(position, "claim"))
                values = {"k": place + 1, "n": item.passage, "claim": claim}
                yield from self._say("Redundancy", "repeated", position, kind, **values)

    def inefficiency(self, position: int) -> Iterator[Proposal]:
        """Words about the work instead of a fact or a deduction."""
        if position > len(self.plan.items):
            return
        item = self.plan.items[position - 1]
        if item.triples and item.sentence is None:
            way = "asked" if is_free(item.triples[0]) else "announced"
            what = sought(item, self.passages)
            yield from self._say("Inefficiency", way, position, item.kind, what=what)
        yield from self._say("Inefficiency", "vague", position, item.kind)

    # ------------------------------------------------------------------------------- attribution

    def contradictory(self, position: int) -> Iterator[Proposal]:
        """Another value than the one the passage gives, from the other passages if it can be."""
        item = self._fact(position)
        if item is None:
            return
        value = self.claims.value_of(item)
        for wrong in wrong_values(self.question, item, value, self._choice(position, "wrong")):
            if item.sentence is not None:
                told = re.sub(re.escape(value), wrong.replace("\\", ""), self._sentence(item))
                values = {"n": item.passage, "sentence": told}
                yield from self._say(
                    "Contradictory", "misquoted", position, "Attribution", **values
                )
            else:
                triples = [Triple(t.head, t.relation, wrong) for t in item.triples]
                claim = state(triples, self._choice(position, "claim"))
                values = {"n": item.passage, "claim": claim}
                yield from self._say(
                    "Contradictory", "other_value", position, "Attribution", **values
                )

    def unsupported(self, position: int) -> Iterator[Proposal]:
        """A claim that the passage, or all passages, lack: three ways, in turn."""
        item = self._fact(position)
        if item is None:
            return
        ways = [self._other_passage, self._invented, self._other_relation]
        for way in self._shuffled(ways, position, "unsupported"):
            yield from way(item, position)

    def _other_passage(self, item: Item, position: int) -> Iterator[Proposal]:
        others = [n for n, page in enumerate(self.passages, 1) if not page.is_gold]
        for number in self._shuffled(others, position, "passage")[:2]:
            told = item.sentence is not None
            way = "misquoted_source" if told else "other_passage"
            said = self._sentence(item) if told else state(item.triples, position)
            values = {"n": number, "claim": said, "sentence": said}
            yield from self._say("Unsupported", way, position, "Attribution", **values)

    def _invented(self, item: Item, position: int) -> Iterator[Proposal]:
        values = {"n": item.passage, "h": without_qualifier(self._subject(item))}
        yield from self._say("Unsupported", "invented", position, "Attribution", **values)

    def _other_relation(self, item: Item, position: int) -> Iterator[Proposal]:
        triple = item.triples[0]
        if item.sentence is not None or triple.relation not in RELATIONS:
            return
        for name in self._shuffled(_SWAPS.get(triple.relation, ()), position, "relation"):
            claim = state([Triple(triple.head, name, triple.tail)], position)
            values = {"n": item.passage, "claim": claim}
            yield from self._say("Unsupported", "other_relation", position, "Attribution", **values)

    def information_miss(self, position: int) -> Iterator[Proposal]:
        """A fact that is there, declared absent."""
        item = self._fact(position)
        if item is None:
            return
        way = "not_there"
        if item.sentence is not None:
            way = "nothing_about"
        elif is_free(item.triples[0]):
            way = "no_answer"
        values = {"n": item.passage, "what": sought(item, self.passages)}
        yield from self._say("Information Miss", way, position, "Attribution", **values)

    def premature_attribution(self, position: int) -> Iterator[Proposal]:
        """A later fact before what ties its entity to the question."""
        item = self._fact(position)
        if item is None:
            return
        place = position - 1
        later = [n for n in self.plan.facts if place in self.plan.items[n].uses]
        for use in self._shuffled(later, position, "later"):
            ahead = self.plan.items[use]
            yield from self._bypassing(item, ahead, position)
            if ahead.sentence is not None:
                way, values = "quoted_ahead", {"sentence": self._sentence(ahead)}
            else:
                way, values = "ahead", {"claim": state(ahead.triples, position)}
            values = {**values, "n": ahead.passage}
            yield from self._say("Premature Attribution", way, position, "Attribution", **values)

    def _bypassing(self, item: Item, ahead: Item, position: int) -> Iterator[Proposal]:
        first, second = item.triples[0], ahead.triples[0]
        nouns = is_noun(first.relation) and is_noun(second.relation)
        joined = normal_name(first.tail) == normal_name(second.head)
        if item.sentence is None and nouns and joined and self._choice(position, "by") % 2:
            values = {"relation": second.relation, "first": first.relation, "entity": first.head}
            yield from self._say(
                "Premature Attribution",
                "bypassing",
                position,
                "Attribution",
                n=ahead.passage,
                t=second.tail,
                **values,
            )

    # ---------------------------------------------------------------------------- logic, answer

    def logical_fallacy(self, position: int) -> Iterator[Proposal]:
        """A deduction that the earlier steps do not give."""
        if position > len(self.plan.items) or self.plan.items[position - 1].triples:
            return
        item = self.plan.items[position - 1]
        steps = steps_named([use + 1 for use in item.uses])
        if item.derivation == "life span":
            yield from self._false_count(item, steps, position)
            return
        ordered = self.plan.operation in _ORDERS and len(self.plan.sides) == 2
        if ordered and self._choice(position, "order") % 2:
            yield from self._false_order(steps, position)
        way = "wrong_end" if self.plan.kind == "sequential" else "wrong_result"
        facts = steps_named([n + 1 for n in self.plan.facts])
        for answer in self._wrong_answers(position):
            values = {"steps": facts if way == "wrong_end" else steps, "answer": answer}
            yield from self._say("Logical Fallacy", way, position, "Logical", **values)

    def _false_count(self, item: Item, steps: str, position: int) -> Iterator[Proposal]:
        span = lifespan([self.plan.items[use].triples[0] for use in item.uses])
        off = (-11, 9, 14, -7)[self._choice(position, "off") % 4]
        years = span.years + off if span.years + off > 0 else span.years + 13
        values = {"steps": steps, "h": span.head, "t": years}
        yield from self._say("Logical Fallacy", "false_count", position, "Logical", **values)

    def _false_order(self, steps: str, position: int) -> Iterator[Proposal]:
        """Both values rightly named, their order turned, and the wrong side for an answer."""
        operation = self.plan.operation
        assert operation is not None
        values = [f"{side.values[0]}" for side in self.plan.sides]
        rivals = [side.entity for side in self.plan.sides]
        wrong = self._wrong_answers(position)
        if not wrong or self.plan.kind == "calculated comparison":
            return
        at = next(
            (n for n, r in enumerate(rivals) if normal_name(r) == normal_name(wrong[0])), None
        )
        if at is None:
            return
        a, b = values[at], values[1 - at]
        said = {"steps": steps, "a": a, "b": b, "order": _ORDERS[operation], "answer": wrong[0]}
        yield from self._say("Logical Fallacy", "false_order", position, "Logical", **said)

    def wrong_conclusion(self, position: int) -> Iterator[Proposal]:
        """An answer other than the one reached, or before one is."""
        for answer in self._wrong_answers(position):
            yield Proposal(f"{ANSWER_MARKER} {answer}", "Final Answer")

    def _wrong_answers(self, position: int) -> list[str]:
        """What could be mistaken for the answer: the other side, or what lies on the way."""
        answer = self.question.answer
        if is_yes_or_no(answer):
            return ["no" if answer.lower() == "yes" else "yes"]
        words = set(normal_name(answer).split())
        facts = [self.plan.items[n] for n in self.plan.facts]
        names = [side.entity for side in self.plan.sides]
        names += [self._subject(item) for item in facts]
        if self.plan.kind == "sequential":
            names += [self.claims.value_of(item) for item in facts]
        plain = dict.fromkeys(without_qualifier(name) for name in names)
        others = [n for n in plain if n and not set(normal_name(n).split()) & words]
        return self._shuffled(others, position, "answer")

    # ---------------------------------------------------------------------------------- helpers

    def _reached(self, position: int) -> bool:
        """Whether the steps before a position reach the answer, so that no more need be read."""
        last = len(self.plan.items)
        return position > last or (position == last and self.plan.kind == "sequential")

    def _fact(self, position: int) -> Item | None:
        """The fact that the ideal step at a position reads, if it reads one."""
        if position > len(self.plan.items):
            return None
        item = self.plan.items[position - 1]
        return item if item.triples else None

    def _subject(self, item: Item) -> str:
        return item.page(self.passages).title if item.sentence is not None else item.triples[0].head

    def _sentence(self, item: Item) -> str:
        """A fact's sentence as a step would quote it, without the citation."""
        assert item.passage is not None
        assert item.sentence is not None
        page = item.page(self.passages)
        return quoted(page, item.passage, item.sentence, self.claims.value_of(item))

    @cached_property
    def _needed(self) -> frozenset[tuple[int | None, int | None]]:
        facts = [self.plan.items[n] for n in self.plan.facts]
        return frozenset((t.passage, t.sentence) for item in facts for t in item.triples)

    def _asides(self, *, gold: bool) -> list[tuple[int, str]]:
        """Sentences that no fact needs, nearest to the question's words first, one a passage."""
        asked = content_words(self.question.question)
        found: list[tuple[int, int, str]] = []
        for number, page in enumerate(self.passages, 1):
            if page.is_gold != gold:
                continue
            used = {
                fact.sentence for fact in self.question.supporting_facts if fact.title == page.title
            }
            free = [n for n in range(len(page.sentences)) if n not in used or not gold]
            options = [n for n in free if 20 <= len(page.sentences[n]) <= 240]
            for n in options[:1] if not gold else options:
                told = quoted(page, number, n, "")
                found.append((-len(asked & content_words(told)), number, told))
        found.sort()
        return [(number, told) for _, number, told in found]

    def _say(
        self, error_type: str, way: str, position: int, kind: StepKind, **values: object
    ) -> Iterator[Proposal]:
        """One wording of a way of going wrong."""
        options = self.words[error_type][way]
        said = options[self._choice(position, error_type + way) % len(options)]
        for name, value in values.items():
            said = said.replace("{" + name + "}", str(value))
        if "{" not in said:
            yield Proposal(said[:1].upper() + said[1:], kind)

    def _choice(self, position: int, purpose: str) -> int:
        return choice_for(self._seed, str(position), purpose)

    def _shuffled(self, options: Sequence[Any], position: int, purpose: str) -> list[Any]:
        """The options in an order of their own for each position."""
        numbers = range(len(options))
        ranked = sorted(numbers, key=lambda n: self._choice(position, f"{purpose} {n}"))
        return [options[n] for n in ranked]


def quoted(page: Passage, number: int, sentence: int, needed: str) -> str:
    """A sentence as an attribution step quotes it, citation aside."""
    said = quote(page, number, sentence, needed, 0)
    said = said.removeprefix(f"According to Passage {number}, ")
    return said.replace(f"Passage {number} says of ", "on ", 1)


_ORDERS = {
    "earliest": "earlier",
    "latest": "later",
    "longest": "longer",
    "most": "more",
    "fewest": "fewer",
}
_SWAPS = {
    "director": ("producer", "editor", "composer"),
    "producer": ("director", "editor"),
    "composer": ("director", "producer"),
    "performer": ("producer", "publisher"),
    "author": ("editor", "publisher"),
    "spouse": ("sibling",),
    "father": ("sibling", "spouse"),
    "mother": ("sibling", "spouse"),
    "child": ("sibling", "spouse"),
    "sibling": ("spouse",),
    "place of birth": ("place of burial", "place of death"),
    "place of death": ("place of birth",),
    "date of birth": ("date of death",),
    "date of death": ("date of birth",),
    "founded by": ("owned by", "editor"),
    "owned by": ("founded by",),
    "cast member": ("director", "producer"),
    "educated at": ("employer",),
}
