"""Values to mistake for another, and how often who was told of a mistake makes it again."""

import re
from random import Random

from safe_stepwise.language.text import as_date, as_number, normal_name
from safe_stepwise.records import Question

DEAF = 0.2
"""How often, at most, feedback on what was said is of no use."""
BRACKETS = re.compile(r"\s*\([^()]*\)$")


def another(question: Question, value: str, chance: Random) -> str:
    """A value of the same sort: another date or number, the subject of another passage."""
    date = as_date(value)
    if date and date.year:
        return value.replace(str(abs(date.year)), str(abs(date.year) + chance.choice((3, 7, 11))))
    number = re.search(r"\d+", value) if as_number(value) is not None else None
    if number:
        return value.replace(number[0], str(int(number[0]) + chance.choice((1, 4, 9))))
    titles = [BRACKETS.sub("", page.title) for page in question.passages if not page.is_gold]
    words = set(normal_name(value).split())
    others = [t for t in titles if not words & set(normal_name(t).split())]
    return chance.choice(others) if others else f"{value} the Other"
