"""Writes the steps that carry out a plan, in our own words: one for each plan item, then the final answer.

The plan decides the content of a step; question and seed select its wording (`wordings`) or a quotation.
"""

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any, Protocol

from safe_stepwise.checking import statements
from safe_stepwise.checking.claims import Claims
from safe_stepwise.checking.inference import calculation_of, lifespan_of
from safe_stepwise.checking.plans import DESCRIBED, Item
from safe_stepwise.checking.statements import list_steps
from safe_stepwise.checking.step_reading import content_words
from safe_stepwise.checking.wordings import WordingStyle, choice_for, missing, phrase
from safe_stepwise.graphs.comparisons import Side, compare, find_common_values, is_by_size
from safe_stepwise.language.clauses import shorten
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.language.text import as_date, normal_name, without_qualifier
from safe_stepwise.records import Passage, Step
from safe_stepwise.steps import ANSWER_MARKER

_MAX_WORDINGS = 16  # that are tried until one passes the checker
_QUOTE_ONE_FACT_IN = 14  # of those that have a wording
_WORD_ONE_FREE_HOP_IN = 4  # of the hops whose relation is a question; the others are quoted
_QUOTE_ONE_SENTENCE_IN = 6  # of those that can be shortened
_SHORT_FORMS = 2  # the claim is one of so many shortest forms of a sentence
_MAX_RECALLED_WORDS = 5  # words of an earlier fact's value that a step repeats

_DETAIL = "(?:in|on|at|by|from|with|during|after|before|until|between)"
_BREAK_BEFORE_DETAIL = re.compile(rf"(?<![\w’'])[a-z]{{4,}}(?= {_DETAIL} )")
"""A word before a detail of place, time or manner."""


class StepChecker(Protocol):
    """The part of `checking.checker.Checker` that writing needs; importing that class would lengthen import chains."""

    claims: Claims
    style: WordingStyle

    def passes(self, previous: Sequence[Step], step: Step) -> bool: ...
    def established(self, previous: Sequence[Step]) -> dict[int, int]: ...


def write_trajectory(checker: StepChecker, seed: int) -> tuple[Step, ...]:
    """Write the steps of a question's plan in wordings that pass the checker; if none passes, the last one is used."""
    writer = Writer(checker.claims, f"{seed} {checker.claims.question.id}", style=checker.style)
    steps: list[Step] = []
    for item in writer.plan.items:
        for attempt in range(_MAX_WORDINGS):
            text = writer.write(item, len(steps) + 1, str(attempt))
            step = Step(len(steps) + 1, _join_words(text), item.kind)
            establishes_only_its_item = len(checker.established([*steps, step])) == len(steps) + 1
            if establishes_only_its_item and checker.passes(steps, step):
                break
        steps.append(step)  # the last wording, if none passes
    answer = f"{ANSWER_MARKER} {_join_words(writer.question.answer)}"
    return (*steps, Step(len(steps) + 1, answer, "Final Answer"))


def _join_words(text: str) -> str:
    return " ".join(text.split())


class Writer:
    """Writes the items of one plan as steps, right or wrong; ``seed`` varies the wording."""

    def __init__(self, claims: Claims, seed: str, *, style: WordingStyle = "seen") -> None:
        self.claims, self.plan, self.question = claims, claims.plan, claims.question
        self.seed, self.style = seed, style

    def write(self, item: Item, position: int, seed: str = "") -> str:
        """Write the step that carries out an item; ``position`` is its number (from 1)."""
        seed = f"{seed} {self.plan.items.index(item)}"
        if item.triples:
            return self.write_fact(item, position, seed)
        steps = list_steps(item.used_steps)
        if result := calculation_of(self.plan, item):
            return self.render(result.kind, seed, steps=steps, h=result.head, t=result.amount(result.number))
        if self.plan.kind == "sequential":
            facts = list_steps([n + 1 for n in self.plan.fact_places])
            return self.render("conclusion", seed, steps=facts, answer=self.question.answer)
        return self.write_comparison(item, self.question.answer, seed)

    def render(self, kind: str, seed: str, **values: object) -> str:
        """Write a step of a kind (an entry of ``phrases.yaml``) with the given values."""
        if "answer" in values:
            values["answer"] = str(values["answer"]).removesuffix(".")
        return phrase(kind, f"{self.seed} {seed}", style=self.style, **values)

    def write_fact(self, item: Item, position: int, seed: str) -> str:
        """Write the step that reads a fact; ``position`` is its number (from 1)."""
        assert item.passage_number is not None
        content = self.content_of_fact(item, seed)
        if "claim" in content:
            return self.write_claim(content["claim"], item.passage_number, item, position, seed)
        page = item.page(self.question.passages)
        return self.write_quotation(content["sentence"], page, item.passage_number, item, position, seed)

    def content_of_fact(self, item: Item, seed: str) -> dict[str, str]:
        """Return a fact as a ``claim`` in our words, a ``sentence`` of its passage, or both if it is shortened."""
        place = self.claims.place_of(item)
        choice, is_free = choice_for(self.seed, seed, "quoted"), statements.is_free(item.triples[0])
        in_our_words = choice % _WORD_ONE_FREE_HOP_IN == 0 if is_free else choice % _QUOTE_ONE_FACT_IN > 0
        if place is None or (item.sentence is None and in_our_words):
            choice = choice_for(self.seed, seed, "claim")
            return {"claim": statements.state(item.triples, choice)}
        page, value = item.page(self.question.passages), self.claims.value_of(item)
        sentence = statements.quote_sentence(page, place, value)
        if item.sentence is None and not is_free:  # a fact with a wording is quoted as it stands
            return {"sentence": sentence}
        question_words = self.claims.question_words(page)
        is_described = item.triples[0].relation == DESCRIBED
        if is_described and not question_words & content_words(sentence):  # its needed part is unknown
            return {"sentence": sentence}
        needed = value if value in sentence and not is_described else ""
        return self.content_of_sentence(sentence, page, seed, needed, question_words)

    def content_of_sentence(
        self, sentence: str, page: Passage, seed: str, needed: str = "", question_words: Set[str] = frozenset()
    ) -> dict[str, str]:
        """Return a passage's ``sentence``, and in most cases a ``claim`` that is a shorter form of it.

        That form has the name ``needed`` and all ``question_words`` that the sentence has.
        """
        choice = choice_for(self.seed, seed, "shortened")
        forms = shorten(sentence, needed) if choice % _QUOTE_ONE_SENTENCE_IN else ()
        required = question_words & content_words(sentence)
        forms = tuple(f for f in forms if required <= content_words(f) and statements.names_subject(page, f))
        if not forms:
            return {"sentence": sentence}
        claim = statements.pick(forms[-_SHORT_FORMS:], choice // _QUOTE_ONE_SENTENCE_IN)
        claim = statements.reword(statements.as_clause(claim, without_qualifier(page.title)), choice)
        return {"sentence": sentence, "claim": claim}

    def write_claim(self, claim: str, number: int, item: Item, position: int, seed: str) -> str:
        """Write the step that reads a clause in a passage (number from 1) in search of an item."""
        optional_fields = self.optional_fields(item, number, position, seed)
        return self.render("fact", seed, claim=claim.removesuffix("."), **_split_clause(claim), **optional_fields)

    def write_quotation(self, sentence: str, page: Passage, number: int, item: Item, position: int, seed: str) -> str:
        """Write the step that quotes a passage's sentence in search of an item."""
        title = without_qualifier(page.title)
        clause = statements.reword(statements.as_clause(sentence, title), choice_for(self.seed, seed, "reworded"))
        kind = "quotation" if statements.names_subject(page, sentence) else "quotation_about"
        values = {"sentence": sentence, "clause": clause, "title": title, **_split_clause(clause)}
        return self.render(kind, seed, **self.optional_fields(item, number, position, seed), **values)

    def optional_fields(self, item: Item, number: int, position: int, seed: str) -> dict[str, object]:
        """Return what a wording may add: the target, an earlier step, its value, an unrelated passage, a name."""
        return {
            "n": number,
            "k": position - 1 or None,
            "m": self._find_unrelated_passage(item, number, seed),
            "what": missing(item, self.question.passages),
            "asked": self._absent_name(number),
            "earlier": self._earlier_value(item, position),
        }

    def _earlier_value(self, item: Item, position: int) -> str | None:
        """Return what the step before a position adds, if an item builds on that; None if it is long."""
        items = [self.plan.items[use] for use in item.uses if use == position - 2 and self.plan.items[use].triples]
        value = self.claims.value_of(items[0]) if items else ""
        return value if 0 < len(value.split()) <= _MAX_RECALLED_WORDS else None

    def _absent_name(self, number: int) -> str | None:
        """Return the last name in the question that a passage (by number, from 1) lacks; None if it has all."""
        text = read(self.question.passages[number - 1])
        absent = [name for name in names_in_text(self.question.question) if first_mention(text, name) is None]
        return absent[-1] if absent else None

    def _find_unrelated_passage(self, item: Item, number: int, seed: str) -> int | None:
        """Return the number (from 1) of a distractor that names neither end of a fact; None if there is none."""
        pages = self.question.passages
        start = choice_for(self.seed, seed, "silent")
        numbers = ((start + offset) % len(pages) + 1 for offset in range(len(pages)))
        distractors = ((n, read(pages[n - 1])) for n in numbers if n != number and not pages[n - 1].is_gold)
        return next((n for n, text in distractors if all(first_mention(text, end) is None for end in item.ends)), None)

    def write_comparison(self, item: Item, answer: str, seed: str) -> str:
        """Write the result of a comparison with its values, for the right answer or a wrong one."""
        last_steps = item.used_steps[-2:]
        fields = {"steps": list_steps(item.used_steps), "answer": answer}
        sides, operation = self.plan.sides, self.plan.operation
        if operation is None or len(sides) != 2 or len(last_steps) != 2:
            subjects = [f"{self._subject_of(step - 1)} (Step {step})" for step in last_steps]
            if len(subjects) == 2 and subjects[0] != subjects[1]:
                return self.render("comparison_open", seed, **fields, a=subjects[0], b=subjects[1])
            return self.render("comparison", seed, **fields)
        if len(item.uses) > 2:
            return self._compare_sets(item, fields, seed)
        values = [self._word_side(side, n) for side, n in zip(sides, last_steps, strict=True)]
        outcome: str = operation
        if outcome == "same" and answer.lower() == "no":
            outcome = "different"
        elif outcome not in ("same", "different") and self._names_second_side(answer):
            values.reverse()
        between = {"a": values[0], "b": values[1], "years": _years_apart(sides)}
        outcome_text = self.render(f"outcome_{outcome}", seed, **between)
        return self.render("comparison", seed, **fields, outcome=outcome_text)

    def _compare_sets(self, item: Item, fields: Mapping[str, Any], seed: str) -> str:
        """Write the result of comparing two sets, with the member that they share if the question asks for it."""
        shared = find_common_values(self.plan.sides) if self.plan.operation == "same" else None
        if shared is None or fields["answer"].lower() == "no":
            return self.render("comparison", seed, **fields)
        members = [(self.plan.items[step - 1].triples[0].tail, step) for step in item.used_steps]
        first = next(step for member, step in members if member == shared[0])
        last = next(step for member, step in reversed(members) if member == shared[1])
        members_shared = {"a": f"{shared[0]} (Step {first})", "b": f"{shared[1]} (Step {last})"}
        outcome_text = self.render("outcome_same", seed, **members_shared)
        return self.render("comparison", seed, **fields, outcome=outcome_text)

    def _names_second_side(self, answer: str) -> bool:
        sides, right = self.plan.sides, normal_name(answer) == normal_name(self.question.answer)
        assert self.plan.operation is not None
        winner = compare(self.plan.operation, sides) if right else answer
        return normal_name(winner or "") == normal_name(sides[1].entity)

    def _subject_of(self, place: int) -> str:
        item = self.plan.items[place]
        if item.sentence is None and item.triples:
            return without_qualifier(item.triples[0].head)
        return without_qualifier(item.page(self.question.passages).title)

    def _word_side(self, side: Side, step: int) -> str:
        if side.since:
            facts = [triple for item in self.claims.facts for triple in item.triples]
            bounds = [t for t in facts if t.tail in (*side.since, *side.values)]
            return f"{lifespan_of(bounds).number} years (Step {step})"
        if is_by_size(self.plan.operation, self.plan.sides):
            count = calculation_of(self.plan, self.plan.items[step - 1])
            return f"{count.amount(count.number)} (Step {step})" if count else ""
        return f"{side.values[0]} (Step {step})"


def _split_clause(clause: str) -> dict[str, str]:
    """Return the parts of a clause between which its source can be named, near the middle of its first sentence.

    >>> _split_clause("Dune Rain was directed by Ors Velt in Oru")
    {'start': 'Dune Rain was directed', 'rest': 'by Ors Velt in Oru'}
    >>> _split_clause("Ors Velt wrote Gone with the Wind"), _split_clause("Oru is “a town by the sea”")
    ({}, {})
    """
    first, _, _ = clause.partition(". ")
    ends = [match.end() for match in _BREAK_BEFORE_DETAIL.finditer(first) if _is_self_contained(clause[: match.end()])]
    if not ends:
        return {}
    end = min(ends, key=lambda n: abs(2 * n - len(first)))
    return {"start": clause[:end], "rest": clause[end + 1 :].removesuffix(".")}


def _is_self_contained(text: str) -> bool:
    """Whether a text has no open bracket or quotation, and no comma, after which a clause may be open."""
    return text.count("(") == text.count(")") and text.count("“") == text.count("”") and not set('",') & set(text)


def _years_apart(sides: Sequence[Side]) -> int | None:
    """Return the years between the dates of two sides; None if a date is missing or the years are equal."""
    dates = [as_date(side.values[0]) for side in sides if side.values and not side.since]
    years = [date.year for date in dates if date and date.year]
    return (abs(years[0] - years[1]) or None) if len(years) == 2 else None
