"""Decides what a comparison question asks, and what the values of its two sides answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import RELATIONS, same_nation
from safe_stepwise.language.text import as_date, as_number, normal_name
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Question, Triple

Operation = Literal["earliest", "latest", "longest", "same", "most", "fewest"]

_OPERATIONS: Mapping[Operation, str] = load("patterns")["comparisons"]

NUMBER_OF = "number of "
"""The beginning of a relation whose values are numbers."""
_MAX_SHORT_LETTERS = 2  # a word of so few letters can't identify a name: "of", "II"
_CHOICE = re.compile(r"\bX,? or X\b")
_BRACKETS = re.compile(r"(?<!\s)\s*+\([^()]*+\)")


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: an entity, and the values that its branch of the path ends in."""

    entity: str
    values: tuple[str, ...]
    since: tuple[str, ...] = ()
    """The first days of the span, if spans are compared (who lived longer)."""


@dataclass(frozen=True, slots=True)
class QuestionComparison:
    """A question's comparison; ``operation`` and ``result`` (of `compare`) are None if they can't be decided."""

    sides: tuple[Side, ...]
    operation: Operation | None = None
    result: str | None = None


def is_by_size(op: Operation | None, sides: Sequence[Side]) -> bool:
    """Whether sides are compared by their number of values: one side has several, and no value is an amount.

    >>> is_by_size("most", [Side("Dune Rain", ("Ana", "Ors")), Side("Oru", ("Edo",))])
    True
    """
    values = [value for side in sides for value in side.values]
    has_amounts = any(as_number(value) is not None for value in values)
    return op in ("most", "fewest") and len(values) > len(sides) and not has_amounts


def count_values(side: Side) -> int:
    """Count the different values of a side."""
    distinct: list[str] = []
    for value in side.values:
        if not any(_mean_same(value, earlier) for earlier in distinct):
            distinct.append(value)
    return len(distinct)


def find_common_values(sides: Sequence[Side]) -> tuple[str, str] | None:
    """Return the first value that two sides share, in each side's spelling; None if they share none."""
    pairs = product(*(side.values for side in sides))
    return next(((value, match) for value, match in pairs if _mean_same(value, match)), None)


def is_comparison(question: Question) -> bool:
    """Whether the benchmark calls a question a comparison, or its answer is yes or no."""
    return "comparison" in question.kind or is_yes_or_no(question.answer)


def is_yes_or_no(answer: str) -> bool:
    """Whether an answer is "yes" or "no", in any case."""
    return answer.lower() in ("yes", "no")


def answers_choice(question: Question, names: Sequence[str]) -> bool:
    """Whether the answer shares a word with one of the names, or the question does not offer a choice of them.

    >>> asked = Question("q", "b", "train", "Who did more, Ana Vorr or Ors Velt?", "singer, poet")
    >>> answers_choice(asked, ["Ana Vorr", "Ors Velt"])
    False
    """
    if not _CHOICE.search(without_names(question.question, names)) or is_yes_or_no(question.answer):
        return True
    words = (word for name in names for word in clean(name).split() if len(word) > _MAX_SHORT_LETTERS)
    answer = clean(question.answer)
    return any(word in answer for word in words)


def comparison_of(question: Question, branches: Sequence[Sequence[Triple]]) -> QuestionComparison:
    """Compare the values that the branches of a path end in, as a question asks.

    ``operation`` and ``result`` are None if the question's words name no operation, if a branch ends in an unknown
    relation, and for a yes/no question that does not ask for sameness.

    >>> born = [[Triple("Ana", "date of birth", "1901")], [Triple("Ors", "date of birth", "1899")]]
    >>> comparison_of(Question("q", "b", "train", "Who is older, Ana or Ors?", "Ors"), born).result
    'Ors'
    """
    sides = tuple(side_of(branch) for branch in branches)
    op = operation(without_names(question.question, [side.entity for side in sides]))
    is_comparable = all(b[-1].relation in RELATIONS or b[-1].relation.startswith(NUMBER_OF) for b in branches)
    if op is None or not is_comparable or (is_yes_or_no(question.answer) and op != "same"):
        return QuestionComparison(sides)
    return QuestionComparison(sides, op, compare(op, sides))


def side_of(branch: Sequence[Triple]) -> Side:
    """Return the compared values of a branch: those of its last relation, or both dates of a life."""
    last = branch[-1]
    values = tuple(t.tail for t in branch if t.relation == last.relation)
    born = tuple(t.tail for t in branch if t.relation == "date of birth")
    died = tuple(t.tail for t in branch if t.relation == "date of death")
    return Side(branch[0].head, died if born and died else values, born if died else ())


def operation(question: str) -> Operation | None:
    """Return the operation that a comparison question asks for; None if its words name none.

    >>> operation("Who was born first, Ana Vorr or Ors Velt?")
    'earliest'
    """
    text = question.lower().strip()
    return next((name for name, pattern in _OPERATIONS.items() if re.search(pattern, text)), None)


def without_names(text: str, names: Sequence[str]) -> str:
    """Replace the compared names in a question by X, as a title may have "first" or "last".

    >>> without_names("Which came out later, First Rain or Dune?", ["First Rain", "Dune (film)"])
    'Which came out later, X or X?'
    """
    for name in names:
        bare = _BRACKETS.sub("", name)
        text = text.replace(bare, "X")
        if bare and bare.lower() in text.lower():  # else no pattern is made for the name
            text = re.sub(re.escape(bare), "X", text, flags=re.IGNORECASE)
    return text


def compare(op: Operation, sides: Sequence[Side]) -> str | None:
    """Return the answer (an entity, "yes", "no" or "tie"); None if the values can't be compared.

    >>> compare("latest", [Side("Ana", ("3 May 1901",)), Side("Ors", ("1899",))])
    'Ana'
    """
    if len(sides) != 2 or not all(side.values for side in sides):
        return None
    if op == "same":
        return "yes" if find_common_values(sides) else "no"
    if op in ("earliest", "latest"):
        date, other_date = (as_date(side.values[0]) for side in sides)
        if date and other_date and date[:3] != other_date[:3] and date.agrees(other_date):
            return None
    is_by_count = is_by_size(op, sides)
    left_value, right_value = (count_values(side) if is_by_count else _sort_value(op, side) for side in sides)
    if left_value is None or right_value is None:
        return None
    if left_value == right_value:
        return "tie"
    return sides[(left_value > right_value) != (op in ("latest", "longest", "most"))].entity


def _sort_value(op: Operation, side: Side) -> float | None:
    """Return the number that a side is compared by: an amount, a date, or the span between two dates."""
    if op in ("most", "fewest"):
        return as_number(side.values[0])
    end = _date_value(side.values[0])
    if op != "longest" or end is None:
        return end
    start = _date_value(side.since[0]) if side.since else None
    return None if start is None else end - start


def _date_value(text: str) -> float | None:
    """Return a date as a number of years; an unknown month or day counts as the middle."""
    date = as_date(text)
    return date.year + (date.month or 6.5) / 13 + (date.day or 15) / 500 if date else None


def _mean_same(value: str, other_value: str) -> bool:
    """Whether two values mean the same: dates, names, or a nation and its demonym."""
    dates = as_date(value), as_date(other_value)
    if dates[0] and dates[1]:
        return dates[0].agrees(dates[1])
    return normal_name(value) == normal_name(other_value) or same_nation(clean(value), clean(other_value))
