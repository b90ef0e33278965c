"""Parses what a logical step concludes, and decides whether the facts that it rests on support that."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from safe_stepwise.checking.plans import Item, Plan
from safe_stepwise.checking.statements import count_phrase
from safe_stepwise.checking.step_reading import Reading, read_step
from safe_stepwise.graphs.comparisons import Side, count_values, is_yes_or_no
from safe_stepwise.language.mentions import first_mention, mentions
from safe_stepwise.language.reading import read
from safe_stepwise.language.text import as_date, as_number, dates_in, normal_name, without_qualifier
from safe_stepwise.language.vocabulary import wording
from safe_stepwise.records import Passage, Question, Triple

_MARKER = wording("inference", "marker", re.IGNORECASE)
_THE_ANSWER = wording("inference", "the_answer", re.IGNORECASE)
_CALLED_ANSWER = re.compile(r"\banswer\b", re.IGNORECASE)
_YES_NO = re.compile(r"^\W*(yes|no)\b(?=\W)|\b(yes|no)\b[.\s]*$", re.IGNORECASE)
_SAYS_YES_NO = re.compile(r"\b(?:yes|no)\b(?=\W*$|,)", re.IGNORECASE)
_DIFFERENT = wording("inference", "different", re.IGNORECASE)
_ALIKE = re.compile(r"\b(?:same|both|share[sd]?|agree[sd]?|identical|match(?:es)?|alike)\b", re.IGNORECASE)
_COMPARATOR = wording("inference", "comparator", re.IGNORECASE)
_SMALLER_FIRST = frozenset(
    ("earlier than", "before", "precedes", "shorter than", "fewer than", "less than", "smaller than", "older than")
)
_NUMBERS = wording("inference", "numbers", re.IGNORECASE)
_YEARS = re.compile(
    r"\b(\d{1,3}) years\b|\b(?:age[ds]?|life(?:span| span)?|lived)\b.{0,300}\b(\d{1,3})\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion of a step: whether it is right (None: no conclusion could be parsed), and what it claims."""

    right: bool | None
    claimed: str = ""


@dataclass(frozen=True, slots=True)
class Lifespan:
    """A life between two dates, in full years; ``kind`` is its wordings' name, ``fault`` that of a wrong result."""

    head: str
    born: str
    died: str
    number: int
    kind: ClassVar = "lifespan"
    fault: ClassVar = "false_calculation"

    def amount(self, years: int) -> str:
        """Word a number of years for the wordings of this kind, which have the unit."""
        return str(years)

    @property
    def claim(self) -> str:
        """The clause that states the result."""
        return f"{self.head} lived for {self.number} years"

    @property
    def grounds(self) -> str:
        """The values that the result follows from, to be added to the claim."""
        return f", from {self.born} to {self.died}"

    def is_stated(self, reading: Reading) -> bool | None:
        """Whether a step gives the life span right; None if it gives no number of years for that person.

        If a date has no day, one year more or less is right, too.
        """
        match = _YEARS.search(reading.claim)
        if match is None or not reading.mentions(self.head):
            return None
        full = all((date := as_date(text)) and date.day for text in (self.born, self.died))
        return abs(int(match[1] or match[2]) - self.number) <= (0 if full else 1)


@dataclass(frozen=True, slots=True)
class Count:
    """The number of distinct tails that a head has for a relation; ``kind`` and ``fault`` as of `Lifespan`."""

    head: str
    relation: str
    number: int
    kind: ClassVar = "count"
    fault: ClassVar = "false_inference"
    grounds: ClassVar = ""

    def amount(self, number: int) -> str:
        """Word a number of the things that are counted."""
        return count_phrase(self.relation, number)

    @property
    def claim(self) -> str:
        """The clause that states the result."""
        return f"{self.head} has {self.amount(self.number)}"

    def is_stated(self, reading: Reading) -> bool | None:
        """Whether a step gives the count right; None if it does not name the head with one number.

        >>> two = Count("Dune Rain", "director", 2)
        >>> two.is_stated(read_step("By Step 1 and Step 2, Dune Rain has three directors."))
        False
        """
        if not reading.mentions(self.head):
            return None
        bare = without_qualifier(self.head)
        remaining = re.sub(re.escape(bare), " ", reading.claim, flags=re.IGNORECASE)
        numbers = {as_number(number) for number in _NUMBERS.findall(remaining)}
        return None if len(numbers) != 1 else numbers == {float(self.number)}


def lifespan_of(facts: Sequence[Triple]) -> Lifespan:
    """Return the life between a fact of birth and a fact of death; 0 years if a date can't be parsed.

    >>> lifespan_of([Triple("Ana", "date of birth", "3 May 1901"),
    ...              Triple("Ana", "date of death", "2 May 1970")]).number
    68
    """
    by_relation = {triple.relation: triple for triple in facts}
    born, died = by_relation["date of birth"], by_relation["date of death"]
    first, last = as_date(born.tail), as_date(died.tail)
    years = 0
    if first and last:
        early = bool(first.day and last.day) and last[1:3] < first[1:3]
        years = last.year - first.year - early
    return Lifespan(born.head, born.tail, died.tail, years)


def calculation_of(plan: Plan, item: Item) -> Lifespan | Count | None:
    """Return the life span or count that an item of a plan derives; None for another item."""
    facts = [plan.items[use].triples[0] for use in item.uses if plan.items[use].triples]
    if item.derivation == "life span":
        return lifespan_of(facts)
    if item.derivation == "count":
        tails = Side(facts[0].head, tuple(triple.tail for triple in facts))
        return Count(facts[0].head, facts[0].relation, count_values(tails))
    return None


def concludes(reading: Reading) -> bool:
    """Whether a step marks its claim as a conclusion ("so", "the answer is").

    >>> [concludes(read_step(text)) for text in ("So the answer is yes.", "Oru is a town.")]
    [True, False]
    """
    return bool(_conclusion(reading.claim))


def says_the_answer(reading: Reading) -> bool:
    """Whether a step calls its conclusion the answer to the question.

    >>> says_the_answer(read_step("So the answer is Oru.")), says_the_answer(read_step("Thus Vel was in Oru."))
    (True, False)
    """
    return _CALLED_ANSWER.search(reading.claim) is not None or _THE_ANSWER.search(reading.claim) is not None


def names_answer(reading: Reading) -> bool:
    """Whether a step concludes a name, a value, or yes or no.

    >>> names_answer(read_step("It is Oru that is asked for.")), names_answer(read_step("So no."))
    (False, True)
    """
    clause = _conclusion(reading.claim)
    return bool(clause and (_YES_NO.search(clause) or read_step(clause).values))


def parse_conclusion(reading: Reading, question: Question, plan: Plan, names: Sequence[str]) -> Conclusion:
    """Parse what a step concludes about the question. ``names`` are wrong answers that it could give.

    If a step refers to earlier ones and marks no conclusion, all of its claim counts as the conclusion.
    """
    clause = _conclusion(reading.claim)
    says_yes_or_no = _SAYS_YES_NO.search(reading.claim) is not None
    idle = reading.announces and not says_yes_or_no
    is_unmarked = reading.refers and not idle and not _YEARS.search(reading.claim)
    if not clause and is_unmarked:
        clause = reading.claim
    if not clause:
        return Conclusion(None)
    if is_yes_or_no(question.answer):
        return _yes_or_no(reading, clause, question.answer.lower(), asks_sameness=plan.operation == "same")
    conclusion = _named_answer(clause, question, names)
    if conclusion.right and has_false_premise(reading.claim):
        return Conclusion(False, question.answer)
    return conclusion


def _conclusion(claim: str) -> str:
    """Return the clause of a claim that draws the conclusion; "" if none is marked."""
    if match := _THE_ANSWER.search(claim):
        return match[1]
    markers = list(_MARKER.finditer(claim))
    return claim[markers[-1].end() :] if markers else ""


def _yes_or_no(reading: Reading, clause: str, answer: str, *, asks_sameness: bool) -> Conclusion:
    premise = claim_polarity(reading.claim[: len(reading.claim) - len(clause)]) if asks_sameness else None
    explicit = _YES_NO.search(clause)
    verdict = (explicit[1] or explicit[2]).lower() if explicit else claim_polarity(clause)
    if verdict is None:
        return Conclusion(None)
    consistent = premise in (None, answer) and not has_false_premise(reading.claim)
    return Conclusion(verdict == answer and consistent, verdict)


def claim_polarity(text: str) -> str | None:
    """Return "yes" if a text says that things are alike, "no" if it says that they differ; else None.

    >>> claim_polarity("both are poets"), claim_polarity("they are not the same")
    ('yes', 'no')
    """
    if _DIFFERENT.search(text):
        return "no"
    return "yes" if _ALIKE.search(text) else None


def _named_answer(clause: str, question: Question, names: Sequence[str]) -> Conclusion:
    reading = read_step(clause)
    places = [place for a in question.accepted if (place := first_mention(reading.text, a)) is not None]
    words = {word for answer in question.accepted for word in normal_name(answer).split()}
    rivals: dict[str, int] = {}
    question_text = read(Passage("", (question.question,)))
    for name in dict.fromkeys([*names, *reading.values]):
        place = first_mention(reading.text, name)
        if place is not None and not set(normal_name(name).split()) & words:
            rivals.setdefault(name, place)
    if places:
        earliest = min(places)
        sides = {n: p for n, p in rivals.items() if p < earliest and not mentions(question_text, n)}
        return Conclusion(not sides, next(iter(sides), question.answer))
    return Conclusion(False, next(iter(rivals))) if rivals else Conclusion(None)


def has_false_premise(claim: str) -> bool:
    """Whether a claim compares two dates or numbers wrongly ("1901 is later than 1950")."""
    for match in _COMPARATOR.finditer(claim):
        value = _value(claim[max(0, match.start() - 60) : match.start()], -1)
        other_value = _value(claim[match.end() : match.end() + 60], 0)
        if value is None or other_value is None or len(value) != len(other_value) or value == other_value:
            continue
        if (value < other_value) != (match[1].lower() in _SMALLER_FIRST):
            return True
    return False


def _value(near: str, place: int) -> tuple[float, ...] | None:
    """Return the first (0) or last (-1) date in the text near a comparator; else its number, or None."""
    if dates := [date for date in dates_in(near) if date.year]:
        return dates[place][:3]
    numbers = re.findall(r"\b\d[\d,.]*(?: (?:million|billion|thousand))?", near)
    number = as_number(numbers[place]) if numbers else None
    return None if number is None else (number,)
