"""Writes the steps that carry out a plan, in our own words: one for each plan item, then the final answer.

The plan decides what a step says; `wordings` words it, by question and seed, in our words or as a quotation.
"""

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

_MAX_WORDINGS = 16  # wordings tried until one passes the checker
_QUOTED_IN = 14  # of this many facts with a wording, one is quoted instead
_WORDED_IN = 4  # of this many free hops, whose wording is a question, all but one are quoted
_QUOTED_WHOLE_IN = 6  # of this many sentences that can be shortened, one is quoted
_SHORT_FORMS = 2  # of a sentence, the shortest


class Checks(Protocol):
    """The interface of `checking.checker.Checker` that writing needs."""

    claims: Claims
    style: WordingStyle

    def passes(self, previous: Sequence[Step], step: Step) -> bool: ...
    def established(self, previous: Sequence[Step]) -> dict[int, int]: ...


def write_trajectory(checker: Checks, seed: int) -> tuple[Step, ...]:
    """Write the steps of a question's plan in wordings that pass the checker; if all tries fail, the last is taken."""
    writer = Writer(checker.claims, f"{seed} {checker.claims.question.id}", style=checker.style)
    steps: list[Step] = []
    for item in writer.plan.items:
        for attempt in range(_MAX_WORDINGS):
            text = writer.write(item, len(steps) + 1, str(attempt))
            step = Step(len(steps) + 1, _plain(text), item.kind)
            is_single = len(checker.established([*steps, step])) == len(steps) + 1
            if is_single and checker.passes(steps, step):
                break
        steps.append(step)  # the last wording, if none passes
    answer = f"{ANSWER_MARKER} {_plain(writer.question.answer)}"
    return (*steps, Step(len(steps) + 1, answer, "Final Answer"))


def _plain(text: str) -> str:
    return " ".join(text.split())


class Writer:
    """Words the items of one plan as steps, right or wrong; ``seed`` varies the wording."""

    def __init__(self, claims: Claims, seed: str, *, style: WordingStyle = "seen") -> None:
        self.claims, self.plan, self.question = claims, claims.plan, claims.question
        self.seed, self.style = seed, style

    def write(self, item: Item, position: int, seed: str = "") -> str:
        """Word the step, with that number (from 1), that carries out an item."""
        seed = f"{seed} {self.plan.items.index(item)}"
        if item.triples:
            return self.fact(item, position, seed)
        steps = list_steps([use + 1 for use in item.uses])
        if result := calculation_of(self.plan, item):
            return self.render(result.kind, seed, steps=steps, h=result.head, t=result.amount(result.number))
        if self.plan.kind == "sequential":
            facts = list_steps([n + 1 for n in self.plan.facts])
            return self.render("conclusion", seed, steps=facts, answer=self.question.answer)
        return self.comparison(item, self.question.answer, seed)

    def render(self, kind: str, seed: str, **values: object) -> str:
        """Word a step of a kind (an entry of ``phrases.yaml``) with the given values."""
        if "answer" in values:
            values["answer"] = str(values["answer"]).removesuffix(".")
        return phrase(kind, f"{self.seed} {seed}", style=self.style, **values)

    def fact(self, item: Item, position: int, seed: str) -> str:
        """Word the step, with that number (from 1), that reads a fact."""
        assert item.passage is not None
        content = self.state_or_quote(item, seed)
        if "claim" in content:
            return self.claim(content["claim"], item.passage, item, position, seed)
        page = item.page(self.question.passages)
        return self.quotation(content["sentence"], page, item.passage, item, position, seed)

    def state_or_quote(self, item: Item, seed: str) -> dict[str, str]:
        """Return a fact as a ``claim`` in our words or a ``sentence`` of its passage; as both if this is shortened."""
        place = self.claims.place_of(item)
        choice, is_free = choice_for(self.seed, seed, "quoted"), statements.is_free(item.triples[0])
        in_our_words = item.sentence is None and (choice % _WORDED_IN == 0 if is_free else choice % _QUOTED_IN > 0)
        if place is None or in_our_words:
            choice = choice_for(self.seed, seed, "claim")
            return {"claim": statements.state(item.triples, choice)}
        page, value = item.page(self.question.passages), self.claims.value_of(item)
        sentence = statements.quote_sentence(page, place, value)
        if item.sentence is None and not is_free:  # a fact with a wording is quoted as it stands
            return {"sentence": sentence}
        question_words = self.claims.question_words(page)
        is_described = item.triples[0].relation == DESCRIBED
        if is_described and not question_words & content_words(sentence):  # nothing tells what of it is needed
            return {"sentence": sentence}
        needed = value if value in sentence and not is_described else ""
        return self.shorten_or_quote(sentence, page, seed, needed, question_words)

    def shorten_or_quote(
        self, sentence: str, page: Passage, seed: str, needed: str = "", question_words: Set[str] = frozenset()
    ) -> dict[str, str]:
        """Return a passage's ``sentence``, in most cases with a ``claim``: a shorter form.

        The form has the name ``needed``, and of the ``question_words`` those that the sentence has.
        """
        choice = choice_for(self.seed, seed, "shortened")
        forms = shorten(sentence, needed) if choice % _QUOTED_WHOLE_IN else ()
        required = question_words & content_words(sentence)
        forms = tuple(f for f in forms if required <= content_words(f) and statements.names_subject(page, f))
        if not forms:
            return {"sentence": sentence}
        claim = statements.pick(forms[-_SHORT_FORMS:], choice // _QUOTED_WHOLE_IN)
        return {"sentence": sentence, "claim": statements.as_clause(claim, without_qualifier(page.title))}

    def claim(self, claim: str, number: int, item: Item, position: int, seed: str) -> str:
        """Word the step that reads a clause in a passage (number from 1) when it is to find an item."""
        around = self.around(item, number, position, seed)
        return self.render("fact", seed, claim=claim.removesuffix("."), **around)

    def quotation(self, sentence: str, page: Passage, number: int, item: Item, position: int, seed: str) -> str:
        """Word the step that quotes a passage's sentence when it is to find an item."""
        title = without_qualifier(page.title)
        clause = statements.as_clause(sentence, title)
        values = {**self.around(item, number, position, seed), "sentence": sentence, "clause": clause, "title": title}
        return self.render(
            "quotation" if statements.names_subject(page, sentence) else "quotation_about", seed, **values
        )

    def around(self, item: Item, number: int, position: int, seed: str) -> dict[str, object]:
        """Return the values that a fact's wording may add: the target, an earlier step, a silent passage, a name."""
        return {
            "n": number,
            "k": position - 1 or None,
            "m": self._silent(item, number, seed),
            "what": missing(item, self.question.passages),
            "asked": self._absent_name(number),
        }

    def _absent_name(self, number: int) -> str | None:
        """Return the last name in the question that a passage (by number, from 1) lacks; None if it has all."""
        text = read(self.question.passages[number - 1])
        absent = [name for name in names_in_text(self.question.question) if first_mention(text, name) is None]
        return absent[-1] if absent else None

    def _silent(self, item: Item, number: int, seed: str) -> int | None:
        """Return the number (from 1) of a distractor that names neither end of a fact; None if there is none."""
        pages = self.question.passages
        start = choice_for(self.seed, seed, "silent")
        for step in range(len(pages)):
            number_ = (start + step) % len(pages) + 1
            text = read(pages[number_ - 1])
            free = number_ != number and not pages[number_ - 1].is_gold
            if free and all(first_mention(text, name) is None for name in item.ends):
                return number_
        return None

    def comparison(self, item: Item, answer: str, seed: str) -> str:
        """Word the result of a comparison with its values, for the right answer or a wrong one."""
        uses = [use + 1 for use in item.uses][-2:]
        steps = list_steps([use + 1 for use in item.uses])
        fields = {"steps": steps, "answer": answer}
        sides, operation = self.plan.sides, self.plan.operation
        if operation is None or len(sides) != 2 or len(uses) != 2:
            subjects = [f"{self._subject(use - 1)} (Step {use})" for use in uses]
            if len(subjects) == 2 and subjects[0] != subjects[1]:
                return self.render("comparison_open", seed, **fields, a=subjects[0], b=subjects[1])
            return self.render("comparison", seed, **fields)
        if len(item.uses) > 2:
            return self._of_sets(item, fields, seed)
        values = [self._compared(side, n) for side, n in zip(sides, uses, strict=True)]
        outcome: str = operation
        if outcome == "same" and answer.lower() == "no":
            outcome = "different"
        elif outcome not in ("same", "different") and self._is_second(answer):
            values.reverse()
        between = {"a": values[0], "b": values[1], "years": _years_apart(sides)}
        outcome_text = self.render(f"outcome_{outcome}", seed, **between)
        return self.render("comparison", seed, **fields, outcome=outcome_text)

    def _of_sets(self, item: Item, fields: Mapping[str, Any], seed: str) -> str:
        """Word the result of comparing two sets, with the member they share if the question asks for it."""
        shared = find_common_values(self.plan.sides) if self.plan.operation == "same" else None
        if shared is None or fields["answer"].lower() == "no":
            return self.render("comparison", seed, **fields)
        facts = [(self.plan.items[use].triples[0], use + 1) for use in item.uses]
        ends = zip(shared, (facts, facts[::-1]), strict=True)
        steps = [next(n for t, n in ends_facts if t.tail == value) for value, ends_facts in ends]
        values = [f"{value} (Step {n})" for value, n in zip(shared, steps, strict=True)]
        outcome_text = self.render("outcome_same", seed, a=values[0], b=values[1])
        return self.render("comparison", seed, **fields, outcome=outcome_text)

    def _is_second(self, answer: str) -> bool:
        sides, right = self.plan.sides, normal_name(answer) == normal_name(self.question.answer)
        assert self.plan.operation is not None
        won = compare(self.plan.operation, sides) if right else answer
        return normal_name(won or "") == normal_name(sides[1].entity)

    def _subject(self, place: int) -> str:
        item = self.plan.items[place]
        if item.sentence is None and item.triples:
            return without_qualifier(item.triples[0].head)
        return without_qualifier(item.page(self.question.passages).title)

    def _compared(self, side: Side, step: int) -> str:
        if side.since:
            facts = [t for n in self.plan.facts for t in self.plan.items[n].triples]
            bounds = [t for t in facts if t.tail in (*side.since, *side.values)]
            return f"{lifespan_of(bounds).number} years (Step {step})"
        if is_by_size(self.plan.operation, self.plan.sides):
            count = calculation_of(self.plan, self.plan.items[step - 1])
            return f"{count.amount(count.number)} (Step {step})" if count else ""
        return f"{side.values[0]} (Step {step})"


def _years_apart(sides: Sequence[Side]) -> int | None:
    """Return the years between the dates of two sides; None if one has none, or both are of one year."""
    dates = [as_date(side.values[0]) for side in sides if side.values and not side.since]
    years = [date.year for date in dates if date and date.year]
    return (abs(years[0] - years[1]) or None) if len(years) == 2 else None
