"""Steps that are meant to have an error: one function an error type, for every position of a plan.

Each proposes steps in the place of the ideal one (SAFE v1, section 3.3); whether a step has the
error that was meant is for `injection` to find out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


_Draft = tuple[str, StepKind, Mapping[str, object]]
"""A way of going wrong, of which there are wordings, and the values that stand in them."""


class Injector:
    """Proposes erroneous steps in the places of the ideal ones of a plan."""

    def __init__(self, claims: Claims, seed: int, words: Wordings) -> None:
        self.claims, self.words = claims, words
        self.plan, self.question, self.passages = claims.plan, claims.question, claims.passages
        self._seed = f"{seed} {claims.question.id}"

    def propose(self, error_type: str, position: int) -> Iterator[Proposal]:
        """Steps meant to have an error of that type at a position (from 1)."""
        if error_type == "Wrong Conclusion":  # another answer, or one before any is reached
            for answer in self._wrong_answers(position):
                yield Proposal(f"{ANSWER_MARKER} {answer}", "Final Answer")
            return
        for way, kind, values in self._drafts(error_type, position):
            options = self.words[error_type][way]
            said = options[self._choice(position, error_type + way) % len(options)]
            for name, value in values.items():
                said = said.replace("{" + name + "}", str(value))
            if "{" not in said:
                yield Proposal(said[:1].upper() + said[1:], kind)

    def _drafts(self, error_type: str, position: int) -> Iterable[_Draft]:
        """Ways of making an error, none where it can't stand at a position."""
        items = self.plan.items
        item = items[position - 1] if position <= len(items) else None
        # Once the answer is reached no more need be read.
        reached = item is None or (position == len(items) and self.plan.kind == "sequential")
        fact, derived = (item, None) if item and item.triples else (None, item)
        drafts: dict[str, Iterable[_Draft]] = {
            "Overthinking": self._overthinking(position) if reached else (),
            "Off-topic": () if reached else self._off_topic(position),
            "Redundancy": () if reached else self._redundancy(position),
            "Inefficiency": self._inefficiency(item) if item else (),
            "Contradictory": self._contradictory(fact, position) if fact else (),
            "Unsupported": self._unsupported(fact, position) if fact else (),
            "Information Miss": self._information_miss(fact) if fact else (),
            "Premature Attribution": self._premature_attribution(fact, position) if fact else (),
            "Logical Fallacy": self._logical_fallacy(derived, position) if derived else (),
        }
        return drafts[error_type]

    # ------------------------------------------------------------------------------- procedural

    def _overthinking(self, position: int) -> Iterator[_Draft]:
        """Reading or deriving on once the answer is reached."""
        if position > len(self.plan.items) and self._choice(position, "way") % 3 == 0:
            steps = steps_named([n + 1 for n in self.plan.facts])
            yield "deriving_on", "Logical", {"steps": steps, "answer": self.question.answer}
        for number, sentence in self._asides(gold=True):
            yield "reading_on", "Attribution", {"n": number, "sentence": sentence}

    def _off_topic(self, position: int) -> Iterator[_Draft]:
        """A true sentence of a passage that the question has no use for."""
        for number, sentence in self._asides(gold=self._choice(position, "gold") % 4 == 0):
            yield "elsewhere", "Attribution", {"n": number, "sentence": sentence}

    def _redundancy(self, position: int) -> Iterator[_Draft]:
        """A fact of an earlier step once more."""
        earlier = [n for n in self.plan.facts if n < position - 1]
        for place in self._shuffled(earlier, position, "earlier"):
            item = self.plan.items[place]
            way = "repeated" if item.sentence is None else "quoted"
            told = self._told(item, self._choice(position, "claim"))
            yield way, "Attribution", {"k": place + 1, **told}

    def _inefficiency(self, item: Item) -> Iterator[_Draft]:
        """Words about the work instead of a fact or a deduction."""
        if item.triples and item.sentence is None:
            way = "asked" if is_free(item.triples[0]) else "announced"
            yield way, item.kind, {"what": sought(item, self.passages)}
        yield "vague", item.kind, {}

    # ------------------------------------------------------------------------------- attribution

    def _contradictory(self, item: Item, position: int) -> Iterator[_Draft]:
        """Another value than the one the passage gives, from the other passages if it can be."""
        value = self.claims.value_of(item)
        for wrong in wrong_values(self.question, item, value, self._choice(position, "wrong")):
            if item.sentence is not None:
                told = re.sub(re.escape(value), wrong.replace("\\", ""), self._sentence(item))
                yield "misquoted", "Attribution", {"n": item.passage, "sentence": told}
            else:
                triples = [Triple(t.head, t.relation, wrong) for t in item.triples]
                claim = state(triples, self._choice(position, "claim"))
                yield "other_value", "Attribution", {"n": item.passage, "claim": claim}

    def _unsupported(self, item: Item, position: int) -> Iterator[_Draft]:
        """A claim that the passage, or all passages, lack: three ways, in turn."""
        ways = [self._other_passage, self._invented, self._other_relation]
        for way in self._shuffled(ways, position, "unsupported"):
            yield from way(item, position)

    def _other_passage(self, item: Item, position: int) -> Iterator[_Draft]:
        others = [n for n, page in enumerate(self.passages, 1) if not page.is_gold]
        way = "other_passage" if item.sentence is None else "misquoted_source"
        for number in self._shuffled(others, position, "passage")[:2]:
            yield way, "Attribution", {**self._told(item, position), "n": number}

    def _invented(self, item: Item, position: int) -> Iterator[_Draft]:
        subject = without_qualifier(self._subject(item))
        yield "invented", "Attribution", {"n": item.passage, "h": subject}

    def _other_relation(self, item: Item, position: int) -> Iterator[_Draft]:
        triple = item.triples[0]
        if item.sentence is not None or triple.relation not in RELATIONS:
            return
        for name in self._shuffled(_SWAPS.get(triple.relation, ()), position, "relation"):
            claim = state([Triple(triple.head, name, triple.tail)], position)
            yield "other_relation", "Attribution", {"n": item.passage, "claim": claim}

    def _information_miss(self, item: Item) -> Iterator[_Draft]:
        """A fact that is there, declared absent."""
        way = "not_there"
        if item.sentence is not None:
            way = "nothing_about"
        elif is_free(item.triples[0]):
            way = "no_answer"
        yield way, "Attribution", {"n": item.passage, "what": sought(item, self.passages)}

    def _premature_attribution(self, item: Item, position: int) -> Iterator[_Draft]:
        """A later fact before what ties its entity to the question."""
        later = [n for n in self.plan.facts if position - 1 in self.plan.items[n].uses]
        for use in self._shuffled(later, position, "later"):
            ahead = self.plan.items[use]
            yield from self._bypassing(item, ahead, position)
            way = "ahead" if ahead.sentence is None else "quoted_ahead"
            yield way, "Attribution", self._told(ahead, position)

    def _bypassing(self, item: Item, ahead: Item, position: int) -> Iterator[_Draft]:
        first, second = item.triples[0], ahead.triples[0]
        nouns = is_noun(first.relation) and is_noun(second.relation)
        joined = normal_name(first.tail) == normal_name(second.head)
        if item.sentence is None and nouns and joined and self._choice(position, "by") % 2:
            of = {"relation": second.relation, "first": first.relation, "entity": first.head}
            yield "bypassing", "Attribution", {"n": ahead.passage, "t": second.tail, **of}

    # ------------------------------------------------------------------------------------- logic

    def _logical_fallacy(self, item: Item, position: int) -> Iterator[_Draft]:
        """A deduction that the earlier steps do not give."""
        steps = steps_named([use + 1 for use in item.uses])
        if item.derivation == "life span":
            span = lifespan([self.plan.items[use].triples[0] for use in item.uses])
            off = (-11, 9, 14, -7)[self._choice(position, "off") % 4]
            years = span.years + off if span.years + off > 0 else span.years + 13
            yield "false_count", "Logical", {"steps": steps, "h": span.head, "t": years}
            return
        wrong = self._wrong_answers(position)
        if wrong and self._choice(position, "order") % 2:
            yield from self._false_order(steps, wrong[0])
        way = "wrong_result"
        if self.plan.kind == "sequential":
            way, steps = "wrong_end", steps_named([n + 1 for n in self.plan.facts])
        for answer in wrong:
            yield way, "Logical", {"steps": steps, "answer": answer}

    def _false_order(self, steps: str, wrong: str) -> Iterator[_Draft]:
        """Both values rightly named, their order turned, and the wrong side for an answer."""
        order, sides = _ORDERS.get(self.plan.operation or ""), self.plan.sides
        if order is None or len(sides) != 2 or self.plan.kind == "calculated comparison":
            return
        for ours, other in (sides, sides[::-1]):
            if normal_name(ours.entity) == normal_name(wrong):
                said = {"steps": steps, "a": ours.values[0], "b": other.values[0]}
                yield "false_order", "Logical", {**said, "order": order, "answer": wrong}
                return

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

    def _subject(self, item: Item) -> str:
        return item.page(self.passages).title if item.sentence is not None else item.triples[0].head

    def _told(self, item: Item, choice: int) -> dict[str, object]:
        """A fact as a step would tell it, as a claim or in its passage's own words."""
        said = state(item.triples, choice) if item.sentence is None else self._sentence(item)
        return {"n": item.passage, "claim": said, "sentence": said}

    def _sentence(self, item: Item) -> str:
        """A fact's sentence as a step would quote it, without the citation."""
        assert item.passage is not None
        assert item.sentence is not None
        page = item.page(self.passages)
        return quoted(page, item.passage, item.sentence, self.claims.value_of(item))

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
