"""Proposes steps with an intended error: one function for each error type, for every position of a plan.

An error is usually a good step at the wrong position. The grammar of the ideal steps words it. If passages decide a
label, the same words are right in another context (`contexts`). `making.inject` checks whether a step has the intended
error (SAFE v1, section 3.3).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from builders.steps import contexts
from builders.steps.contexts import StepSource
from builders.steps.values import WORDS
from builders.steps.wrong_values import of_sort, sort_of, unstated_year, value_in, wrong_values
from safe_stepwise.checking import inference, step_reading
from safe_stepwise.checking.plans import DESCRIBED, Item
from safe_stepwise.checking.statements import fill, is_free, is_noun, list_steps, quote_sentence, state
from safe_stepwise.checking.wordings import choice_for, missing
from safe_stepwise.checking.writing import Writer
from safe_stepwise.graphs.comparisons import is_yes_or_no
from safe_stepwise.language.mentions import names_in
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.text import as_date, as_number, normal_name, without_qualifier
from safe_stepwise.records import StepKind, Triple
from safe_stepwise.steps import ANSWER_MARKER

Wordings = Mapping[str, Mapping[str, Sequence[str]]]
"""Wordings by error type and kind of mistake, for authors who word errors themselves."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A step with an intended error; ``context`` is a changed question, or None for the original."""

    text: str
    kind: StepKind
    context: contexts.Context | None = None


@dataclass(frozen=True, slots=True)
class _Draft:
    """A kind of mistake, and the values for its wording."""

    wording: str
    kind: StepKind
    values: Mapping[str, Any]
    context: contexts.Context | None = None
    item: Item | None = None
    """The fact that the step states, if that is not the item at the position."""


class Injector:
    """Proposes erroneous steps by position; ``partner`` lends passages and facts, ``words`` are another's wordings."""

    def __init__(
        self, source: StepSource, seed: int, partner: StepSource | None = None, words: Wordings | None = None
    ) -> None:
        claims = source.checker.claims
        self.source, self.partner, self.words = source, partner, words
        self.claims, self.plan, self.passages = claims, claims.plan, claims.passages
        self.question = source.question
        self._seed = f"{seed} {claims.question.id}"
        self.writer = Writer(claims, self._seed, style=source.checker.style)

    def positions(self, error_type: str, steps: int) -> list[int]:
        """Return the positions of a trajectory (from 1), in a random order for each error type."""
        return self._shuffle(range(1, steps + 1), 0, error_type)

    def draw(self, number: int) -> int:
        """Return the place (from 0) of one of a number of facts, which a question and seed decide."""
        return self._choice(0, "fact") % max(1, number)

    def propose(self, error_type: str, position: int) -> Iterator[Proposal]:
        """Yield steps with an intended error of a type at a position (from 1)."""
        if error_type == "Wrong Conclusion":  # another answer, or one before any is reached
            for answer in self._answers(position):
                yield Proposal(f"{ANSWER_MARKER} {answer}", "Final Answer")
            return
        for draft in PROPOSALS[error_type](self, position):
            if text := self._word(draft, error_type, position):
                yield Proposal(text[:1].upper() + text[1:], draft.kind, draft.context)

    def _word(self, draft: _Draft, error_type: str, position: int) -> str:
        """Word a draft; return "" if another author's wordings have none for it."""
        if self.words is None:
            return self._render(draft, error_type, position)
        options = self.words.get(error_type, {}).get(draft.wording)
        if not options or draft.context is not None:
            return ""
        wording = options[self._choice(position, error_type + draft.wording) % len(options)]
        statement = {name: draft.values[key] for key in _FACT_KEYS if key in draft.values for name in _FACT_KEYS}
        for name, value in {**statement, **draft.values}.items():
            wording = wording.replace("{" + name + "}", str(value))
        return "" if re.search(r"{\w+}", wording) else wording

    def item_at(self, position: int, is_fact: bool = True) -> Item | None:
        """Return the plan's item at a position, if it is a fact or could be none."""
        items = self.plan.items[position - 1 : position]
        return next((item for item in items if item.triples or not is_fact), None)

    def is_reached(self, position: int) -> bool:
        """Whether the answer is there at a position, so that no more need be read."""
        return position > len(self.plan.items) - (self.plan.kind == "sequential")

    def _render(self, draft: _Draft, error_type: str, position: int) -> str:
        values, seed = draft.values, f"{error_type} {position} {draft.wording}"
        # What a step there would be about.
        item = draft.item or self.item_at(position) or self.plan.items[self.plan.fact_places[-1]]
        if "text" in values:
            return str(values["text"])
        if "claim" in values:
            return self.writer.write_claim(values["claim"], values["n"], item, position, seed)
        if "sentence" in values:
            pages = self.passages if draft.context is None else draft.context.question.passages
            page = values.get("page", pages[values["n"] - 1])
            return self.writer.write_quotation(values["sentence"], page, values["n"], item, position, seed)
        kind = WORDS["phrases"].get(draft.wording, draft.wording)
        around = self.writer.optional_fields(item, values.get("n", item.passage_number or 1), position, seed)
        return self.writer.render(kind, seed, **{**around, **values})

    def _overthinking(self, position: int) -> Iterator[_Draft]:
        """Yield drafts that read or derive on after the answer is reached."""
        choice = self._choice(position, "way") % 3
        if position > len(self.plan.items) and choice == 0:
            steps = list_steps([n + 1 for n in self.plan.fact_places])
            yield _Draft("deriving_on", "Logical", {"steps": steps, "answer": self._plain_answer})
        if choice == 1:
            yield from self._beside(position)
        if choice == 2:
            for index in self._shuffle(self.plan.fact_places, position, "again"):
                yield self._state_fact(self.plan.items[index], position)
        yield from self._read_beside("reading_on", position, gold=True)

    def _off_topic(self, position: int) -> Iterator[_Draft]:
        """Yield true sentences of other passages: facts that another question needs, or any sentence."""
        if self._choice(position, "beside") % 4:
            yield from self._beside(position)
        yield from self._read_beside("elsewhere", position, gold=False)

    def _read_beside(self, wording: str, position: int, *, gold: bool) -> Iterator[_Draft]:
        """Yield sentences that no fact needs, of passages with or without evidence."""
        for number, sentence in self._asides(gold=gold):
            content = self.writer.content_of_sentence(sentence, self.passages[number - 1], f"{position} {number}")
            yield _Draft(wording, "Attribution", {"n": number, **content})

    def _beside(self, position: int) -> Iterator[_Draft]:
        """Yield facts that the partner's plan needs, with their passage."""
        if self.partner is None:
            return
        claims = self.partner.checker.claims
        writer = Writer(claims, self._seed, style=self.writer.style)
        for index in self._shuffle(self.partner.checker.plan.fact_places, position, "partner"):
            item = self.partner.checker.plan.items[index]
            if not claims.is_grounded(item):
                continue
            if borrowing := contexts.add_passage(self.source, self.partner, item, f"{self._seed} {position}"):
                context, number = borrowing
                values = {**writer.content_of_fact(item, f"{self._seed} {position} beside"), "n": number}
                yield _Draft("elsewhere", "Attribution", values, context)

    def _redundancy(self, position: int) -> Iterator[_Draft]:
        """Yield facts that an earlier step states already."""
        for index in self._shuffle([n for n in self.plan.fact_places if n < position - 1], position, "earlier"):
            item = self.plan.items[index]
            draft = self._state_fact(item, position)
            wording = "repeated" if item.sentence is None else "quoted"
            yield replace(draft, wording=wording, values={**draft.values, "k": index + 1})

    def _inefficiency(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield remarks about the work in the place of a fact or a deduction."""
        if item.triples and self._choice(position, "vague") % 4:
            wording = "asked" if is_free(item.triples[0]) else "announced"
            yield _Draft(wording, item.kind, {"what": missing(item, self.passages)})
        yield _Draft("vague", item.kind, {})

    def _contradictory(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield facts with another value than the passage has: either the step or the passage is altered."""
        value = self._alterable(item)
        wrong = self._wrong_values(item, value, position)
        choice = self._choice(position, "way") % 5
        if choice == 0:
            for wrong_value in wrong:
                if context := contexts.alter_value(self.source, item, value, wrong_value):
                    yield replace(self._state_fact(item, position), context=context)
        elif choice == 1:
            yield from self._denied(item, position)
        elif choice == 2:
            yield from self._reversed(item, position)
        for wrong_value in wrong:
            draft = self._otherwise(item, value, wrong_value, position)
            if draft.wording != "misquoted" or wrong_value in draft.values.get("claim", draft.values["sentence"]):
                yield draft

    def _denied(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield the fact with its verb denied."""
        draft = self._state_fact(item, position)
        key = "claim" if "claim" in draft.values else "sentence"
        denied = _COPULA.sub(r"\g<0> not", draft.values[key], count=1)
        if denied != draft.values[key]:
            yield replace(draft, wording="denied", values={**draft.values, key: denied})

    def _reversed(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield the fact with its ends exchanged: "Ana was directed by Dune Rain"."""
        triple = item.triples[0]
        if item.sentence is not None or triple.relation not in WORDS["turnable"]:
            return
        claim = state([Triple(triple.tail, triple.relation, triple.head)], self._choice(position, "claim"))
        yield _Draft("reversed", "Attribution", {"n": item.passage_number, "claim": claim})

    def _alterable(self, item: Item) -> str:
        """Return the part of a fact that can be altered: its value, else a date or number of its sentence."""
        value = self.claims.value_of(item)
        if item.sentence is None:
            return value
        sentence = item.quoted(self.passages)
        return value if value in sentence else value_in(sentence) or value

    def _wrong_values(self, item: Item, value: str, position: int) -> list[str]:
        partner_pages = self.partner.question.passages if self.partner else ()
        return wrong_values(self.question, item, value, self._choice(position, "wrong"), partner_pages)

    def _otherwise(self, item: Item, value: str, wrong_value: str, position: int) -> _Draft:
        """Draft a fact with another value in the words of the true one."""
        draft = self._state_fact(item, position)
        if "sentence" not in draft.values:
            triples = [Triple(t.head, t.relation, wrong_value) for t in item.triples]
            claim = state(triples, self._choice(position, "claim"))
            return replace(draft, wording="other_value", values={**draft.values, "claim": claim})
        key = "claim" if "claim" in draft.values else "sentence"
        words = contexts.replace_value(draft.values[key], value, wrong_value)
        return replace(draft, wording="misquoted", values={**draft.values, key: words})

    def otherwise_right(self, item: Item, position: int) -> Proposal | None:
        """Propose a fact with another value in a context whose passage has that value."""
        value = self._alterable(item)
        if not contexts.ends(self.claims, item, value):
            return None
        for wrong_value in self._wrong_values(item, value, position):
            if context := contexts.alter_value(self.source, item, value, wrong_value):
                draft = self._otherwise(item, value, wrong_value, position)
                return Proposal(self._render(draft, "right", position), draft.kind, context)
        return None

    def _unsupported(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield claims that the passage, or all passages, lack, in random order; few only cite wrongly."""
        drafts = (self._without_passage, self._other_passage, *[self._with_invention] * 9, *[self._other_relation] * 4)
        for draft in self._shuffle(drafts, position, "unsupported"):
            yield from draft(item, position)

    def _with_invention(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield the true fact, and a sentence after it that no passage states."""
        for sentence in self._inventions(item, position)[:2]:
            yield self._followed_by(sentence, item, position)

    def invented_right(self, item: Item, position: int) -> Proposal | None:
        """Propose a fact with an invention after it in a context whose passage has this."""
        for sentence in self._inventions(item, position)[:1]:
            if context := contexts.add_sentence(self.source, item, sentence):
                draft = self._followed_by(sentence, item, position)
                return Proposal(self._render(draft, "right", position), draft.kind, context)
        return None

    def _followed_by(self, sentence: str, item: Item, position: int) -> _Draft:
        draft = self._state_fact(item, position)
        key = "claim" if "claim" in draft.values else "sentence"
        fact = draft.values[key].rstrip(". ")
        return replace(draft, wording="invented", values={**draft.values, key: f"{fact}. {sentence}"})

    def _inventions(self, item: Item, position: int) -> list[str]:
        """Return sentences on the subject of an item's passage that no passage states, in random order."""
        page = item.page(self.passages)
        known = {name for page in self.passages for name in (normal_name(page.title), *names_in(page))}
        lent = self.partner.question.passages if self.partner else ()
        values: dict[str, Any] = {"s": without_qualifier(page.title)}
        values["year"] = unstated_year(self.question, self._choice(position, "year"), page)
        for sort in ("person", "place"):
            names = [name for name in of_sort(sort, lent) if normal_name(name) not in known]
            if names:
                values[sort] = names[self._choice(position, sort) % len(names)]
        sentences = (fill(sentence, **values) for sentence in WORDS["inventions"][sort_of(page) or "thing"])
        return self._shuffle([s for s in sentences if "{" not in s], position, "invention")

    def _without_passage(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield the true fact in a context without its passage."""
        read_before = {earlier.passage_number for earlier in self.plan.items[: position - 1]}
        if self.partner is None or item.passage_number in read_before:
            return
        if context := contexts.exchange_passage(self.source, item, self.partner.question, self._seed):
            draft = self._state_fact(item, position)
            yield replace(draft, values={**draft.values, "page": item.page(self.passages)}, context=context)

    def _other_passage(self, item: Item, position: int) -> Iterator[_Draft]:
        distractors = [n for n, page in enumerate(self.passages, 1) if not page.is_gold]
        wording = "other_passage" if item.sentence is None else "misquoted_source"
        draft = self._state_fact(item, position)
        page = item.page(self.passages)
        for number in self._shuffle(distractors, position, "passage")[:2]:
            yield replace(draft, wording=wording, values={**draft.values, "n": number, "page": page})

    def _other_relation(self, item: Item, position: int) -> Iterator[_Draft]:
        triple = item.triples[0]
        if item.sentence is not None or triple.relation not in RELATIONS:
            return
        for name in self._shuffle(WORDS["swaps"].get(triple.relation, ()), position, "relation"):
            claim = state([Triple(triple.head, name, triple.tail)], position)
            yield _Draft("other_relation", "Attribution", {"n": item.passage_number, "claim": claim})

    def _information_miss(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield denials of a fact that the passage states and the plan needs."""
        if item.triples[0].relation == DESCRIBED:
            return
        wording = "not_there"
        if item.sentence is not None:
            wording = "nothing_about"
        elif is_free(item.triples[0]):
            wording = "no_answer"
        opening = " ".join(item.page(self.passages).sentences[0].split())
        needed = self.claims.place_of(item) == 0 or self.claims.value_of(item) in opening
        aside = None if needed or len(opening) > _MAX_ASIDE_CHARS else opening
        yield _Draft(
            wording, "Attribution", {"n": item.passage_number, "what": missing(item, self.passages), "aside": aside}
        )

    def _premature_attribution(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield a later fact before the fact that connects its entity with the question."""
        later = [n for n in self.plan.fact_places if position - 1 in self.plan.items[n].uses]
        for use in self._shuffle(later, position, "later"):
            ahead = self.plan.items[use]
            yield from self._bypassing(item, ahead, position)
            wording = "ahead" if ahead.sentence is None else "quoted_ahead"
            yield replace(self._state_fact(ahead, position), wording=wording, item=ahead)

    def _bypassing(self, item: Item, ahead: Item, position: int) -> Iterator[_Draft]:
        first_fact, next_fact = item.triples[0], ahead.triples[0]
        nouns = is_noun(first_fact.relation) and is_noun(next_fact.relation)
        joined = normal_name(first_fact.tail) == normal_name(next_fact.head)
        if item.sentence is None and nouns and joined and self._choice(position, "by") % 4 == 0:
            names = {"relation": next_fact.relation, "first": first_fact.relation, "entity": first_fact.head}
            claim = "the {relation} of the {first} of {entity} is {t}".format(t=next_fact.tail, **names)
            values = {"n": ahead.passage_number, "t": next_fact.tail, "claim": claim, **names}
            yield _Draft("bypassing", "Attribution", values)

    def _logical_fallacy(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield deductions that do not follow from the earlier steps, such as the right one too early."""
        if item.triples:
            if position > 1 and self.words is None:
                steps = list_steps(list(range(1, position)))
                wording = "wrong_end" if self.plan.kind == "sequential" or position == 2 else "wrong_result"
                yield _Draft(wording, "Logical", {"steps": steps, "answer": self._plain_answer})
            return
        steps = list_steps([use + 1 for use in item.uses])
        if item.derivation == "life span":
            span = inference.calculation_of(self.plan, item)
            assert span is not None
            off = (-11, 9, 14, -7)[self._choice(position, "off") % 4]
            years = span.number + off if span.number + off > 0 else span.number + 13
            yield _Draft("false_count", "Logical", {"steps": steps, "h": span.head, "t": years})
            return
        if item.derivation == "count":
            yield from self._miscounted(item, steps, position)
            return
        wrong = self._wrong_answers(position)
        for answer in wrong:
            values = {"steps": steps, "answer": answer.removesuffix(".")}
            if self.plan.kind == "sequential":
                values["steps"] = list_steps([n + 1 for n in self.plan.fact_places])
                yield _Draft("wrong_end", "Logical", values)
            else:
                text = self.writer.write_comparison(item, answer, f"{position} wrong")
                yield _Draft("wrong_result", "Logical", {**values, "text": text})

    def _miscounted(self, item: Item, steps: str, position: int) -> Iterator[_Draft]:
        """Yield a wrong count of the things that the steps give."""
        count = inference.calculation_of(self.plan, item)
        assert count is not None
        off = (1, 2, -1, 3)[self._choice(position, "off") % 4]
        amount = count.amount(count.number + off or count.number + 1)
        yield _Draft("miscount", "Logical", {"steps": steps, "h": count.head, "t": amount})

    def _answers(self, position: int) -> list[str]:
        """Return answers that are wrong at a position: the right one too early, or others."""
        wrong = self._wrong_answers(position)
        early = position < len(self.plan.items) and self.words is None
        if early and self._choice(position, "early") % 2:
            return [self.question.answer, *wrong]
        return wrong

    def _wrong_answers(self, position: int) -> list[str]:
        """Return names that could be mistaken for the answer: the other side, or entities on the way to it."""
        answer = self.question.answer
        if is_yes_or_no(answer):
            return ["no" if answer.lower() == "yes" else "yes"]
        words = set(normal_name(answer).split())
        facts = [self.plan.items[n] for n in self.plan.fact_places]
        exact = as_date(answer) or as_number(answer) is not None
        if exact and self.plan.kind == "sequential":
            return self._shuffle(self._wrong_values(facts[-1], answer, position), position, "answer")
        names = [side.entity for side in self.plan.sides]
        names += [item.triples[0].head if item.sentence is None else item.page(self.passages).title for item in facts]
        if self.plan.kind == "sequential":
            names += [self.claims.value_of(item) for item in facts]
        plain = dict.fromkeys(without_qualifier(name) for name in names)
        candidates = [n for n in plain if n and not words & set(normal_name(n).split())]
        candidates = [name for name in candidates if not name.startswith("List of ")]
        return self._shuffle(candidates, position, "answer")

    @property
    def _plain_answer(self) -> str:
        return self.question.answer.removesuffix(".")

    def _state_fact(self, item: Item, position: int) -> _Draft:
        """Draft a fact as an ideal step states it, as a claim or as a quotation."""
        content = self.writer.content_of_fact(item, f"{position} told")
        return _Draft("told", "Attribution", {"n": item.passage_number, **content})

    def _asides(self, *, gold: bool) -> list[tuple[int, str]]:
        """Return sentences that no fact needs, with their passage numbers, those most like the question first."""
        question_words = step_reading.content_words(self.question.question)
        ranked: list[tuple[int, int, str]] = []
        for number, page in enumerate(self.passages, 1):
            if page.is_gold != gold:
                continue
            used = {fact.sentence for fact in self.question.supporting_facts if fact.title == page.title}
            facts = [item for item in self.claims.facts if item.passage_number == number]
            locations = {*used, *(self.claims.place_of(item) for item in facts)}
            values = [self.claims.value_of(item) for item in facts]
            options = [
                n
                for n, sentence in enumerate(page.sentences)
                if len(sentence) <= _MAX_ASIDE_CHARS
                and len(sentence.split()) >= _SHORTEST_ASIDE
                and sentence.rstrip().endswith((".", "”", '"', ")"))
                and not (gold and (n in locations or any(value in sentence for value in values)))
            ]
            for n in options[:1] if not gold else options:
                sentence = quote_sentence(page, n, "")
                ranked.append((-len(question_words & step_reading.content_words(sentence)), number, sentence))
        ranked.sort()
        return [(number, sentence) for _, number, sentence in ranked]

    def _choice(self, position: int, purpose: str) -> int:
        return choice_for(self._seed, str(position), purpose)

    def _shuffle(self, options: Sequence[Any], position: int, purpose: str) -> list[Any]:
        ranked = sorted(range(len(options)), key=lambda n: self._choice(position, f"{purpose} {n}"))
        return [options[n] for n in ranked]


_COPULA = re.compile(r"\b(?:is|was|are|were|did|has|had|can|could)\b(?! not\b)")
_MAX_ASIDE_CHARS = 240
"""The most characters of an irrelevant sentence."""
_SHORTEST_ASIDE = 6
"""Words of an irrelevant sentence at least, so that it states something."""
_FACT_KEYS = ("claim", "sentence")
"""Placeholders for a fact, of which a draft may have one alone."""


Propose = Callable[[Injector, int], Iterable[_Draft]]


def _at_item(draft: Callable[[Injector, Item, int], Iterable[_Draft]], is_fact: bool = False) -> Propose:
    return lambda injector, n: draft(injector, item, n) if (item := injector.item_at(n, is_fact)) else ()


_at_fact = partial(_at_item, is_fact=True)
PROPOSALS: dict[str, Propose] = {
    "Overthinking": lambda injector, n: injector._overthinking(n) if injector.is_reached(n) else (),
    "Off-topic": lambda injector, n: () if injector.is_reached(n) else injector._off_topic(n),
    "Redundancy": lambda injector, n: () if injector.is_reached(n) else injector._redundancy(n),
    "Inefficiency": _at_item(Injector._inefficiency),
    "Contradictory": _at_fact(Injector._contradictory),
    "Unsupported": _at_fact(Injector._unsupported),
    "Information Miss": _at_fact(Injector._information_miss),
    "Premature Attribution": _at_fact(Injector._premature_attribution),
    "Logical Fallacy": _at_item(Injector._logical_fallacy),
}
"""The function that proposes each error type; a new type also needs a taxonomy entry, a check and wordings."""
