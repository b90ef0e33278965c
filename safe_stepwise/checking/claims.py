"""What a step's claim does with the facts of a plan: other values, relations, topics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from safe_stepwise.checking.plans import Item, Plan
from safe_stepwise.checking.statements import asked_of, is_free
from safe_stepwise.checking.step_reading import (
    Reading,
    answers_question,
    content_words,
    coverage,
    has_cue,
    holds,
    names,
    names_key,
    quoted_share,
    repeats_question,
    says,
    states,
    values,
)
from safe_stepwise.language.grounding import ground
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.text import as_date, normal_name
from safe_stepwise.records import Passage, Question, Step, Triple

IN_ONE_SENTENCE = 0.8
"""Share of a claim's content words that one passage must hold for the claim to be taken from it."""
MOST_OF_A_QUOTE = 0.7
"""Share of a sentence's words from which on a step with another name in it misquotes it."""


class Claims:
    """Claims of steps, held against the facts of one question's plan and its passages."""

    def __init__(self, question: Question, plan: Plan) -> None:
        self.question, self.plan, self.passages = question, plan, question.passages
        self.facts = [plan.items[place] for place in plan.facts]
        self._stated: dict[tuple[object, ...], bool] = {}

    def states(self, reading: Reading, place: int) -> bool:
        """Whether a claim states the fact at a place of the plan; each is looked at once."""
        key = (reading.claim, reading.cited, reading.refers, place)
        if key not in self._stated:
            self._stated[key] = states(reading, self.plan.items[place], self.passages)
        return self._stated[key]

    def held(self, value: str) -> bool:
        """Whether some passage has a value."""
        return any(holds(page, value) for page in self.passages)

    def known(self, previous: Sequence[Step]) -> Passage:
        """The question and the accepted steps, as a text to search."""
        return Passage("", (self.question.question, *(step.text for step in previous)))

    def value_of(self, item: Item) -> str:
        """What a fact adds: its tail, or the name that makes a quoted sentence a link."""
        if item.sentence is not None:
            assert item.passage is not None
            keys = names_key(self.passages[item.passage - 1], item)
            return keys[0] if keys else self.passages[item.passage - 1].title
        return item.triples[0].tail

    def joint(self, item: Item, earlier: Item) -> str:
        """The name under which an item goes on from an earlier one."""
        ends = {normal_name(name) for t in earlier.triples for name in (t.tail, t.head)}
        for triple in item.triples:
            for name in (triple.head, triple.tail):
                if normal_name(name) in ends:
                    return name
        return item.triples[0].head

    def other_value(self, reading: Reading, item: Item) -> str | None:
        """What a step gives in the place of an item's value, where the text has another one."""
        triple = item.triples[0]
        if item.sentence is not None:
            return self._altered(reading, item)
        others = [v for v in values(reading) if not self._is_end(v, triple)]
        if not others or names(reading, triple.tail):
            return None
        if triple.relation in RELATIONS:
            if not has_cue(reading, triple.relation):
                return None
            for value in others:
                claim = Triple(triple.head, triple.relation, value)
                if says(reading, claim) and not self._stated_somewhere(claim):
                    return value
            return None
        if reading.cited and item.passage not in reading.cited:
            return None
        if is_free(triple):
            asked = content_words(asked_of(item.triples))
            others = [v for v in others if not content_words(v) <= asked]
            return others[-1] if others and repeats_question(reading, item) else None
        relation = content_words(triple.relation)
        about = names(reading, triple.head) and relation <= reading.words
        return others[-1] if about else None

    def _altered(self, reading: Reading, item: Item) -> str | None:
        """What stands in a quoted sentence in the place of the name that makes it a link."""
        assert item.passage is not None
        page = self.passages[item.passage - 1]
        keys = names_key(page, item)
        if keys and all(names(reading, key) for key in keys):
            return None
        if quoted_share(reading, item, self.passages) < MOST_OF_A_QUOTE:
            return None
        others = [v for v in values(reading) if not holds(page, v)]
        return others[0] if others else None

    def _is_end(self, value: str, triple: Triple) -> bool:
        """Whether a value is a triple's head or tail, or a part of its name."""
        date, tail = as_date(value), as_date(triple.tail)
        if date and tail:
            return date.agrees(tail)
        words = set(normal_name(value).split())
        return any(words <= set(normal_name(end).split()) for end in (triple.head, triple.tail))

    def _stated_somewhere(self, claim: Triple) -> bool:
        pages = tuple(enumerate(self.passages, 1))
        return ground(claim.head, claim.relation, claim.tail, pages).status == "stated"

    def other_relation(self, reading: Reading, item: Item) -> bool:
        """Whether a step joins both ends of a fact by a relation that no passage states."""
        triple = item.triples[0]
        if item.sentence is not None or triple.relation not in RELATIONS:
            return False
        if not (names(reading, triple.head) and names(reading, triple.tail)):
            return False
        own = RELATIONS[triple.relation]
        for name, relation in RELATIONS.items():
            if not relation.group or relation.kind != own.kind or name == triple.relation:
                continue
            claim = Triple(triple.head, name, triple.tail)
            if says(reading, claim) and not self._stated_somewhere(claim):
                return True
        return False

    def taken_from(self, reading: Reading, number: int) -> bool:
        """Whether a claim is a passage's own, and not from a sentence that the plan needs."""
        page = self.passages[number - 1]
        if any(not holds(page, name) for name in values(reading)):
            return False
        if coverage(reading.words, f"{page.title} {page.text}") < IN_ONE_SENTENCE:
            return False
        if any(self._speaks_of(reading, item) for item in self.facts):
            return False
        needed = [item for item in self.facts if item.passage == number]
        shares = [coverage(reading.words, f"{page.title} {s}") for s in page.sentences]
        best = max(range(len(shares)), key=shares.__getitem__)
        if not needed:
            return True
        told = any(names(reading, self.value_of(item)) for item in needed)
        return shares[best] >= IN_ONE_SENTENCE and not told

    def _speaks_of(self, reading: Reading, item: Item) -> bool:
        """Whether a claim is about the very thing that a fact of the plan is about."""
        triple = item.triples[0]
        if item.sentence is not None:
            return False
        if is_free(triple):
            question = content_words(asked_of(item.triples))
            return len(question & reading.words) >= max(2, 0.8 * len(question))
        return self.other_value(reading, item) is not None

    def asks_for(self, reading: Reading, item: Item) -> bool:
        triple = item.triples[0]
        if item.sentence is not None:
            assert item.passage is not None
            return names(reading, self.passages[item.passage - 1].title)
        if is_free(triple):
            return answers_question(reading, item)
        return names(reading, triple.head) or names(reading, triple.tail)

    @cached_property
    def entities(self) -> tuple[str, ...]:
        ends = [name for item in self.facts for t in item.triples for name in (t.head, t.tail)]
        titles = [page.title for _, page in self.question.gold]
        return tuple(dict.fromkeys([*ends, *titles]))
