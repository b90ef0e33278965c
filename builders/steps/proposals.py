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
    """A step before it is worded: a kind of mistake, and the values for its wording."""

    wording: str
    kind: StepKind
    values: Mapping[str, Any]
    context: contexts.Context | None = None
    item: Item | None = None
    """The fact that the step states, if that is not the item at the position."""

    def reword(self, wording: str, change: Callable[[str], str]) -> "_Draft":
        """Return the draft with its claim or quotation changed."""
        key = "claim" if "claim" in self.values else "sentence"
        return replace(self, wording=wording, values={**self.values, key: change(self.values[key])})


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

    def _draft_overthinking(self, position: int) -> Iterator[_Draft]:
        """Yield drafts that read or derive on after the answer is reached."""
        choice = self._choice(position, "way") % 3
        if position > len(self.plan.items) and choice == 0:
            steps = list_steps([n + 1 for n in self.plan.fact_places])
            yield _Draft("deriving_on", "Logical", {"steps": steps, "answer": self._plain_answer})
        if choice == 1:
            yield from self._state_partner_facts(position)
        if choice == 2:
            for index in self._shuffle(self.plan.fact_places, position, "again"):
                yield self._state_fact(self.plan.items[index], position)
        yield from self._quote_aside("reading_on", position, gold=True)

    def _draft_off_topic(self, position: int) -> Iterator[_Draft]:
        """Yield true sentences of other passages: facts that another question needs, or any sentence."""
        if self._choice(position, "beside") % 4:
            yield from self._state_partner_facts(position)
        yield from self._quote_aside("elsewhere", position, gold=False)

    def _quote_aside(self, wording: str, position: int, *, gold: bool) -> Iterator[_Draft]:
        """Yield sentences that no fact needs, of passages with or without evidence."""
        for number, sentence in self._rank_asides(gold=gold):
            content = self.writer.content_of_sentence(sentence, self.passages[number - 1], f"{position} {number}")
            yield _Draft(wording, "Attribution", {"n": number, **content})

    def _state_partner_facts(self, position: int) -> Iterator[_Draft]:
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

    def _draft_redundancy(self, position: int) -> Iterator[_Draft]:
        """Yield facts that an earlier step states already."""
        for index in self._shuffle([n for n in self.plan.fact_places if n < position - 1], position, "earlier"):
            item = self.plan.items[index]
            draft = self._state_fact(item, position)
            wording = "repeated" if item.sentence is None else "quoted"
            yield replace(draft, wording=wording, values={**draft.values, "k": index + 1})

    def _draft_inefficiency(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield remarks about the work in the place of a fact or a deduction."""
        if item.triples and self._choice(position, "vague") % 4:
            wording = "asked" if is_free(item.triples[0]) else "announced"
            yield _Draft(wording, item.kind, {"what": missing(item, self.passages)})
        yield _Draft("vague", item.kind, {})

    def _draft_contradiction(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield facts with another value than the passage has: either the step or the passage is altered."""
        value = self._alterable_part(item)
        wrong = self._wrong_values(item, value, position)
        choice = self._choice(position, "way") % 5
        if choice == 0:
            for wrong_value in wrong:
                if context := contexts.alter_value(self.source, item, value, wrong_value):
                    yield replace(self._state_fact(item, position), context=context)
        elif choice == 1:
            yield from self._deny(item, position)
        elif choice == 2:
            yield from self._reverse(item, position)
        for wrong_value in wrong:
            draft = self._alter_fact(item, value, wrong_value, position)
            if draft.wording != "misquoted" or wrong_value in draft.values.get("claim", draft.values["sentence"]):
                yield draft

    def _deny(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield the fact with its verb denied."""
        draft = self._state_fact(item, position)
        denial = draft.reword("denied", lambda words: _COPULA.sub(r"\g<0> not", words, count=1))
        if denial.values != draft.values:
            yield denial

    def _reverse(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield the fact with its ends exchanged: "Ana was directed by Dune Rain"."""
        triple = item.triples[0]
        if item.sentence is not None or triple.relation not in WORDS["turnable"]:
            return
        claim = state([Triple(triple.tail, triple.relation, triple.head)], self._choice(position, "claim"))
        yield _Draft("reversed", "Attribution", {"n": item.passage_number, "claim": claim})

    def _alterable_part(self, item: Item) -> str:
        """Return the part of a fact that can be altered: its value, else a date or number of its sentence."""
        value = self.claims.value_of(item)
        if item.sentence is None:
            return value
        sentence = item.quoted(self.passages)
        return value if value in sentence else value_in(sentence) or value

    def _wrong_values(self, item: Item, value: str, position: int) -> list[str]:
        partner_pages = self.partner.question.passages if self.partner else ()
        return wrong_values(self.question, item, value, self._choice(position, "wrong"), partner_pages)

    def _alter_fact(self, item: Item, value: str, wrong_value: str, position: int) -> _Draft:
        """Draft a fact with another value in the words of the true one."""
        draft = self._state_fact(item, position)
        if "sentence" not in draft.values:
            triples = [Triple(t.head, t.relation, wrong_value) for t in item.triples]
            return draft.reword("other_value", lambda _: state(triples, self._choice(position, "claim")))
        return draft.reword("misquoted", lambda words: contexts.replace_value(words, value, wrong_value))

    def propose_true_value(self, item: Item, position: int) -> Proposal | None:
        """MakeDrafts a fact with another value in a context whose passage has that value."""
        value = self._alterable_part(item)
        if not contexts.ends(self.claims, item, value):
            return None
        for wrong_value in self._wrong_values(item, value, position):
            if context := contexts.alter_value(self.source, item, value, wrong_value):
                draft = self._alter_fact(item, value, wrong_value, position)
                return Proposal(self._render(draft, "right", position), draft.kind, context)
        return None

    def _draft_unsupported(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield claims that the passage, or all passages, lack, in random order; few only cite wrongly."""
        rare = (self._draft_without_passage, self._cite_other_passage)
        ways = (*rare, *[self._add_invention] * 9, *[self._exchange_relation] * 4)
        for way in self._shuffle(ways, position, "unsupported"):
            yield from way(item, position)

    def _add_invention(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield the true fact, and a sentence after it that no passage states."""
        for sentence in self._inventions(item, position)[:2]:
            yield self._state_with_addition(sentence, item, position)

    def propose_true_addition(self, item: Item, position: int) -> Proposal | None:
        """MakeDrafts a fact with an invention after it in a context whose passage has this."""
        for sentence in self._inventions(item, position)[:1]:
            if context := contexts.add_sentence(self.source, item, sentence):
                draft = self._state_with_addition(sentence, item, position)
                return Proposal(self._render(draft, "right", position), draft.kind, context)
        return None

    def _state_with_addition(self, sentence: str, item: Item, position: int) -> _Draft:
        return self._state_fact(item, position).reword("invented", lambda fact: f"{fact.rstrip('. ')}. {sentence}")

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

    def _draft_without_passage(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield the true fact in a context without its passage."""
        read_before = {earlier.passage_number for earlier in self.plan.items[: position - 1]}
        if self.partner is None or item.passage_number in read_before:
            return
        if context := contexts.exchange_passage(self.source, item, self.partner.question, self._seed):
            draft = self._state_fact(item, position)
            yield replace(draft, values={**draft.values, "page": item.page(self.passages)}, context=context)

    def _cite_other_passage(self, item: Item, position: int) -> Iterator[_Draft]:
        distractors = [n for n, page in enumerate(self.passages, 1) if not page.is_gold]
        wording = "other_passage" if item.sentence is None else "misquoted_source"
        draft = self._state_fact(item, position)
        page = item.page(self.passages)
        for number in self._shuffle(distractors, position, "passage")[:2]:
            yield replace(draft, wording=wording, values={**draft.values, "n": number, "page": page})

    def _exchange_relation(self, item: Item, position: int) -> Iterator[_Draft]:
        triple = item.triples[0]
        if item.sentence is not None or triple.relation not in RELATIONS:
            return
        for name in self._shuffle(WORDS["swaps"].get(triple.relation, ()), position, "relation"):
            claim = state([Triple(triple.head, name, triple.tail)], position)
            yield _Draft("other_relation", "Attribution", {"n": item.passage_number, "claim": claim})

    def _draft_information_miss(self, item: Item, position: int) -> Iterator[_Draft]:
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

    def _draft_premature_attribution(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield a later fact before the fact that connects its entity with the question."""
        later = [n for n in self.plan.fact_places if position - 1 in self.plan.items[n].uses]
        for use in self._shuffle(later, position, "later"):
            ahead = self.plan.items[use]
            yield from self._bypass_fact(item, ahead, position)
            wording = "ahead" if ahead.sentence is None else "quoted_ahead"
            yield replace(self._state_fact(ahead, position), wording=wording, item=ahead)

    def _bypass_fact(self, item: Item, ahead: Item, position: int) -> Iterator[_Draft]:
        first_fact, next_fact = item.triples[0], ahead.triples[0]
        nouns = is_noun(first_fact.relation) and is_noun(next_fact.relation)
        joined = normal_name(first_fact.tail) == normal_name(next_fact.head)
        if item.sentence is None and nouns and joined and self._choice(position, "by") % 4 == 0:
            names = {"relation": next_fact.relation, "first": first_fact.relation, "entity": first_fact.head}
            claim = "the {relation} of the {first} of {entity} is {t}".format(t=next_fact.tail, **names)
            values = {"n": ahead.passage_number, "t": next_fact.tail, "claim": claim, **names}
            yield _Draft("bypassing", "Attribution", values)

    def _draft_fallacy(self, item: Item, position: int) -> Iterator[_Draft]:
        """Yield deductions that do not follow from the earlier steps, such as the right one too early."""
        if item.triples:
            if position > 1 and self.words is None:
                steps = list_steps(list(range(1, position)))
                wording = "wrong_end" if self.plan.kind == "sequential" or position == 2 else "wrong_result"
                yield _Draft(wording, "Logical", {"steps": steps, "answer": self._plain_answer})
            return
        steps = list_steps([use + 1 for use in item.uses])
        if (calculation := inference.calculation_of(self.plan, item)) is not None:
            yield self._miscalculate(calculation, steps, position)
            return
        for answer in self._wrong_answers(position):
            values = {"steps": steps, "answer": answer.removesuffix(".")}
            if self.plan.kind == "sequential":
                values["steps"] = list_steps([n + 1 for n in self.plan.fact_places])
                yield _Draft("wrong_end", "Logical", values)
            else:
                text = self.writer.write_comparison(item, answer, f"{position} wrong")
                yield _Draft("wrong_result", "Logical", {**values, "text": text})

    def _miscalculate(self, calculation: inference.Lifespan | inference.Count, steps: str, position: int) -> _Draft:
        """Draft another life span or count than the steps give."""
        choice = self._choice(position, "off") % 4
        if isinstance(calculation, inference.Lifespan):
            years = calculation.number + (-11, 9, 14, -7)[choice]
            wording, result = "false_count", str(years if years > 0 else calculation.number + 13)
        else:
            amount = calculation.number + (1, 2, -1, 3)[choice]
            wording, result = "miscount", calculation.amount(amount or calculation.number + 1)
        return _Draft(wording, "Logical", {"steps": steps, "h": calculation.head, "t": result})

    def _answers(self, position: int) -> list[str]:
        """Return answers that are wrong at a position: the right one too early, or others."""
        is_early = position < len(self.plan.items) and self.words is None and self._choice(position, "early") % 2
        return [*([self.question.answer] if is_early else []), *self._wrong_answers(position)]

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

    def _rank_asides(self, *, gold: bool) -> list[tuple[int, str]]:
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


MakeDrafts = Callable[[Injector, int], Iterable[_Draft]]


def _at_item(make: Callable[[Injector, Item, int], Iterable[_Draft]], is_fact: bool = False) -> MakeDrafts:
    return lambda injector, n: make(injector, item, n) if (item := injector.item_at(n, is_fact)) else ()


_at_fact = partial(_at_item, is_fact=True)
PROPOSALS: dict[str, MakeDrafts] = {
    "Overthinking": lambda injector, n: injector._draft_overthinking(n) if injector.is_reached(n) else (),
    "Off-topic": lambda injector, n: () if injector.is_reached(n) else injector._draft_off_topic(n),
    "Redundancy": lambda injector, n: () if injector.is_reached(n) else injector._draft_redundancy(n),
    "Inefficiency": _at_item(Injector._draft_inefficiency),
    "Contradictory": _at_fact(Injector._draft_contradiction),
    "Unsupported": _at_fact(Injector._draft_unsupported),
    "Information Miss": _at_fact(Injector._draft_information_miss),
    "Premature Attribution": _at_fact(Injector._draft_premature_attribution),
    "Logical Fallacy": _at_item(Injector._draft_fallacy),
}
"""The function that proposes each error type; a new type also needs a taxonomy entry, a check and wordings."""
