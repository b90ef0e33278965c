"""Parses what a logical step concludes, and decides whether the facts that it rests on support that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from safe_stepwise.checking.plans import Item, Plan
from safe_stepwise.checking.statements import count_phrase
from safe_stepwise.checking.step_reading import Reading, read_step
from safe_stepwise.graphs.comparisons import Side, count_values, is_yes_or_no
from safe_stepwise.language.mentions import first_mention, mentions
from safe_stepwise.language.reading import read
from safe_stepwise.language.text import Date, as_date, as_number, dates_in, fold, normal_name, without_qualifier
from safe_stepwise.language.vocabulary import load, wording
from safe_stepwise.records import Passage, Question, Triple

_MARKER = wording("inference", "marker", re.IGNORECASE)
_THE_ANSWER = wording("inference", "the_answer", re.IGNORECASE)
_CALLED_ANSWER = re.compile(r"\banswer\b", re.IGNORECASE)
_YES_NO = re.compile(r"^\W*(yes|no)\b(?=\W)|\b(yes|no)\b[.\s]*$", re.IGNORECASE)
_SAYS_YES_NO = re.compile(r"\b(?:yes|no)\b(?=\W*$|,)", re.IGNORECASE)
_DIFFERENT = wording("inference", "different", re.IGNORECASE)
_ALIKE = re.compile(r"\b(?:same|both|share[sd]?|agree[sd]?|identical|match(?:es)?|alike)\b", re.IGNORECASE)
_COMPARATIVE = wording("inference", "comparative", re.IGNORECASE)
_PREDICATE = wording("inference", "predicate", re.IGNORECASE)
"""The words before a comparative that applies to the clause's only name: "is the" before "older"."""
_THAN = re.compile(r"(?: [\w-]+){0,3} than\b", re.IGNORECASE)
_EVENTS = {name: re.compile(text, re.IGNORECASE) for name, text in load("patterns")["events"].items()}
_FIRST_MARK = 0xE000  # the first of the private characters that replace names
_MARK = re.compile("[\ue000-\uf8ff]")
_CLAUSE = re.compile(r";|\. |,? (?:so|thus|hence|therefore|but|while|whereas)\b,?|, (?=[\ue000-\uf8ff]|the |it |and )")
_IDLE = re.compile(r"\W*(?:and |when |by )?(?:comparing|between|given|of|from)\b", re.IGNORECASE)
_DENIAL = re.compile(r"\b(?:not|never|no|neither|nor)\b|n['’]t\b", re.IGNORECASE)
_AMOUNT = re.compile(r"\b\d[\d,.]*(?: (?:million|billion|thousand))?")
_DIFFERENCE = re.compile(r"(?:\b([\w,]+) (?:full )?(?:(years?)|(?:month|week|day|decade)s?)|\b(\d[\d,]*)) $")
_DATED_NAME = re.compile(r"([\ue000-\uf8ff]) ?\(([^()]*)\)")
_NUMBERS = wording("inference", "numbers", re.IGNORECASE)
_YEARS = wording("inference", "years", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion of a step: whether it is right (None: no conclusion could be parsed), and what it claims."""

    right: bool | None
    claimed: str = ""


@dataclass(frozen=True, slots=True)
class Lifespan:
    """A life between two dates, in full years; ``kind`` and ``fault`` name the wordings of right and wrong results."""

    head: str
    born: str
    died: str
    number: int
    kind: ClassVar = "lifespan"
    fault: ClassVar = "false_calculation"

    def amount(self, years: int) -> str:
        """Write a number of years for the wordings of this kind, which have the unit."""
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
        """Whether a step gives the right life span, to a year if a day is unknown; None if it gives none."""
        match = _YEARS.search(reading.claim)
        if match is None or not reading.mentions(self.head):
            return None
        are_days = all((date := as_date(text)) and date.day for text in (self.born, self.died))
        return abs(int(match[1] or match[2]) - self.number) <= (0 if are_days else 1)


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
        """Write a number of the things that are counted."""
        return count_phrase(self.relation, number)

    @property
    def claim(self) -> str:
        """The clause that states the result."""
        return f"{self.head} has {self.amount(self.number)}"

    def is_stated(self, reading: Reading) -> bool | None:
        """Whether a step gives the right count; None if it does not name the head with exactly one number."""
        if not reading.mentions(self.head):
            return None
        remaining = re.sub(re.escape(without_qualifier(self.head)), " ", reading.claim, flags=re.IGNORECASE)
        numbers = {as_number(number) for number in _NUMBERS.findall(remaining)}
        return None if len(numbers) != 1 else numbers == {float(self.number)}


def lifespan_of(facts: Sequence[Triple]) -> Lifespan:
    """Return the life between the dates of birth and death; 0 years if a date can't be parsed.

    >>> lifespan_of([Triple("Ana", "date of birth", "3 May 1901"),
    ...              Triple("Ana", "date of death", "2 May 1970")]).number
    68
    """
    by_relation = {triple.relation: triple for triple in facts}
    born, died = by_relation["date of birth"], by_relation["date of death"]
    first, last = as_date(born.tail), as_date(died.tail)
    years = 0
    if first and last:
        is_before_birthday = bool(first.day and last.day) and last[1:3] < first[1:3]
        years = last.year - first.year - is_before_birthday
    return Lifespan(born.head, born.tail, died.tail, years)


def calculation_of(plan: Plan, item: Item) -> Lifespan | Count | None:
    """Return the life span or count that an item of a plan derives; None for other items."""
    facts = [plan.items[use].triples[0] for use in item.uses if plan.items[use].triples]
    if item.derivation == "life span":
        return lifespan_of(facts)
    if item.derivation == "count":
        tails = Side(facts[0].head, tuple(triple.tail for triple in facts))
        return Count(facts[0].head, facts[0].relation, count_values(tails))
    return None


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
    clause = conclusion_of(reading.claim)
    return bool(clause and (_YES_NO.search(clause) or read_step(clause).values))


def parse_conclusion(reading: Reading, question: Question, plan: Plan, names: Sequence[str]) -> Conclusion:
    """Parse what a step concludes about the question. ``names`` are answers that it could wrongly give.

    If a step refers to earlier ones and marks no conclusion, all of its claim counts as the conclusion.
    """
    clause = conclusion_of(reading.claim)
    says_yes_or_no = _SAYS_YES_NO.search(reading.claim) is not None
    is_idle = reading.announces and not says_yes_or_no
    is_unmarked = reading.refers and not is_idle and not _YEARS.search(reading.claim)
    if not clause and is_unmarked:
        clause = reading.claim
    if not clause:
        return Conclusion(None)
    if is_yes_or_no(question.answer):
        return _parse_yes_or_no(reading, clause, question.answer.lower(), asks_sameness=plan.operation == "same")
    conclusion = _parse_named_answer(clause, question, names)
    if conclusion.right and comparisons_hold(reading.claim) is False:
        return Conclusion(False, question.answer)
    return conclusion


def conclusion_of(claim: str) -> str:
    """Return the clause of a claim that draws the conclusion; "" if none is marked.

    >>> conclusion_of("Ana was born in Oru, so it is Oru."), conclusion_of("Ana was born in Oru.")
    (' it is Oru.', '')
    """
    if match := _THE_ANSWER.search(claim):
        return match[1]
    markers = list(_MARKER.finditer(claim))
    return claim[markers[-1].end() :] if markers else ""


def _parse_yes_or_no(reading: Reading, clause: str, answer: str, *, asks_sameness: bool) -> Conclusion:
    premise = claim_polarity(reading.claim[: len(reading.claim) - len(clause)]) if asks_sameness else None
    explicit_match = _YES_NO.search(clause)
    verdict = (explicit_match[1] or explicit_match[2]).lower() if explicit_match else claim_polarity(clause)
    if verdict is None:
        return Conclusion(None)
    is_consistent = premise in (None, answer) and comparisons_hold(reading.claim) is not False
    return Conclusion(verdict == answer and is_consistent, verdict)


def claim_polarity(text: str) -> str | None:
    """Return "yes" if a text says that things are alike, "no" if it says that they differ; else None.

    >>> claim_polarity("both are poets"), claim_polarity("they are not the same")
    ('yes', 'no')
    """
    if _DIFFERENT.search(text):
        return "no"
    return "yes" if _ALIKE.search(text) else None


def _parse_named_answer(clause: str, question: Question, names: Sequence[str]) -> Conclusion:
    reading = read_step(clause)
    places = [offset for a in question.accepted if (offset := first_mention(reading.text, a)) is not None]
    words = {word for answer in question.accepted for word in normal_name(answer).split()}
    rivals: dict[str, int] = {}
    question_text = read(Passage("", (question.question,)))
    for name in dict.fromkeys([*names, *reading.values]):
        offset = first_mention(reading.text, name)
        if offset is not None and not set(normal_name(name).split()) & words:
            rivals.setdefault(name, offset)
    if places:
        earliest = min(places)
        sides = {n: p for n, p in rivals.items() if p < earliest and not mentions(question_text, n)}
        return Conclusion(not sides, next(iter(sides), question.answer))
    return Conclusion(False, next(iter(rivals))) if rivals else Conclusion(None)


class Measure(NamedTuple):
    """A date (year, month, day) or a number that a fact gives for a name; ``event`` is "" if it is unknown."""

    name: str
    value: tuple[float, ...]
    event: str

    def is_like(self, measure: Measure) -> bool:
        """Whether two measures can be compared, as they are of the same event and kind."""
        return self.event == measure.event and len(self.value) == len(measure.value)


def measure_of(name: str, value: str, relation: str) -> Measure | None:
    """Return what a fact measures; None if its value is not a date or number. ``relation`` may be a whole sentence.

    >>> measure_of("Ana", "3 May 1901", "date of birth")
    Measure(name='Ana', value=(1901, 5, 3), event='birth')
    """
    date, number = as_date(value), as_number(value)
    if date is None and number is None:
        return None
    return Measure(name, date[:3] if date else (number or 0.0,), _find_event(relation))


def _find_event(text: str) -> str:
    return next((event for event, pattern in _EVENTS.items() if pattern.search(text)), "")


def tells_event(text: str) -> bool:
    """Whether a text says of which event the dates are that it compares: "born before", "is older"."""
    return bool(_find_event(text)) or any(cue.startswith(("old", "young")) for cue in comparatives_in(text))


def comparatives_in(text: str) -> tuple[str, ...]:
    """Return the words of a text that compare dates or numbers.

    >>> comparatives_in("So Dune Rain came out first.")
    ('first',)
    """
    return tuple(match[0].lower() for match in _COMPARATIVE.finditer(text))


def comparisons_hold(claim: str, measures: Sequence[Measure] = ()) -> bool | None:
    """Whether the comparisons of a claim hold; None if it has none, or if one can't be decided.

    A name stands for its measure ("Ana is older than Edo", "Ana is the older one").

    >>> ana, edo = (measure_of(name, date, "born") for name, date in (("Ana", "1901"), ("Edo", "1950")))
    >>> comparisons_hold("Since 1901 is earlier than 1950, Edo is older.", [ana, edo])
    False
    """
    by_mark: dict[str, list[Measure]] = {}
    claim = _MARK.sub("", claim)
    for name in sorted({measure.name for measure in measures}, key=len, reverse=True):
        mark = chr(_FIRST_MARK + len(by_mark))
        by_mark[mark] = [measure for measure in measures if measure.name == name]
        claim = re.sub(rf"(?<!\w){re.escape(without_qualifier(fold(name)))}(?!\w)", mark, claim, flags=re.IGNORECASE)
    clauses = [clause for clause in _CLAUSE.split(claim) if clause and not _is_idle(clause)]
    verdicts = [verdict for clause in clauses for verdict in _judge_comparisons(clause, by_mark)]
    if False in verdicts:
        return False
    return True if verdicts and all(verdicts) else None


def _is_idle(clause: str) -> bool:
    """Whether a clause compares and concludes nothing ("Comparing 1962 and 1971")."""
    says_more = any(pattern.search(clause) for pattern in (_COMPARATIVE, _CALLED_ANSWER, _YES_NO))
    return not says_more and bool(_IDLE.match(clause) or not _MARK.search(clause))


def _judge_comparisons(clause: str, by_mark: Mapping[str, Sequence[Measure]]) -> Iterator[bool | None]:
    """Yield whether each comparison of a clause holds, or None if it can't be decided; one None if there is none."""
    cues = list(_COMPARATIVE.finditer(clause))
    if not cues or _DENIAL.search(clause):
        yield None
        return
    for mark, brackets in _DATED_NAME.findall(clause):
        dates, own = dates_in(brackets), [measure for measure in by_mark.get(mark, ()) if len(measure.value) == 3]
        if len(dates) == 1 and own and not any(Date(*map(int, measure.value)).agrees(dates[0]) for measure in own):
            yield False
    for cue in cues:
        marks = list(_marks(clause, cue, by_mark))
        before = [measure for offset, measure in marks if offset < cue.start()]
        after = [measure for offset, measure in marks if offset > cue.start()]
        with_names = [measure for _, measure in marks if measure.name]
        pairs: list[tuple[Measure, Measure]] = []
        if cue["before"] or cue["after"] or _THAN.match(clause, cue.end()):
            pairs = [(before[-1], after[0])] if before and after else []
        elif len(with_names) == 1 and _PREDICATE.search(clause[: cue.start()]):
            rivals = (measure for same_name in by_mark.values() for measure in same_name)
            first = with_names[0]
            pairs = [(first, rival) for rival in rivals if rival.name != first.name and rival.is_like(first)]
        yield from [_comparison_holds(clause, cue, *pair) for pair in pairs] or [None]


def _marks(clause: str, cue: re.Match[str], by_mark: Mapping[str, Sequence[Measure]]) -> Iterator[tuple[int, Measure]]:
    """Yield the offsets of the measures that a cue can compare: dates or numbers, and names that have one of these."""
    is_timed = bool(cue["early"] or cue["late"] or cue["before"] or cue["after"])
    event = _find_event(clause)
    dates = [d for d in dates_in(clause) if d.year and not clause.startswith(" year", d.end)]
    marks = [(d.start, Measure("", d[:3], event)) for d in dates]
    if not is_timed:
        dated = [d for d in dates if d.month or clause.endswith((" in ", " since "), 0, d.start)]
        places = {offset for d in dated for offset in range(d.start, d.end)}
        numbers = ((match.start(), as_number(match[0])) for match in _AMOUNT.finditer(clause))
        marks = [(n, Measure("", (number,), event)) for n, number in numbers if number is not None and n not in places]
    events = {event, ""} if event else {*_EVENTS, ""}
    if not event and cue[0].lower().startswith(("old", "young")):
        events.remove("death")
    for offset, mark in enumerate(clause):
        measures = [measure for measure in by_mark.get(mark, ()) if (len(measure.value) == 3) == is_timed]
        fitting = [measure for measure in measures if measure.event in events]
        marks += [(offset, measure) for measure in fitting if len(fitting) == 1]
    yield from sorted(marks)


def _comparison_holds(clause: str, cue: re.Match[str], left: Measure, right: Measure) -> bool | None:
    """Whether two measures have the order and difference that a clause states; None if they can't be compared."""
    is_dated = len(left.value) == 3
    size = min(3 - value.count(0) for value in (left.value, right.value)) if is_dated else 1
    left_value, right_value = left.value[:size], right.value[:size]
    if left_value == right_value or not (left.is_like(right) or "" in (left.name, right.name)):
        return None
    is_less = bool(cue["early"] or cue["before"] or cue["small"])
    if (left_value < right_value) != is_less:
        return False
    difference = _DIFFERENCE.search(clause[: cue.start()])
    if difference is None or (is_dated and difference[3]):
        return True
    number, (first, last) = as_number(difference[0]), sorted((left_value, right_value))
    if number is None or (is_dated and not difference[2]):
        return None
    return number in (last[0] - first[0], last[0] - first[0] - (last[1:] < first[1:]))
