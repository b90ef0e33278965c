"""What every symbolic player knows of a question: the checker of its plan, and what to mistake."""

import re
from functools import lru_cache
from random import Random

from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.engines.base import EngineError
from safe_stepwise.language.text import as_date, as_number, normal_name
from safe_stepwise.players.evidence import with_stand_ins
from safe_stepwise.records import Question, Step
from safe_stepwise.scoring import exact_match

BRACKETS = re.compile(r"\s*\([^()]*\)$")


@lru_cache(maxsize=2048)
def checker_of(question: Question) -> Checker:
    """The checker of a question's annotated path; raises EngineError if it has none.

    Passages that the row lacks have stand-ins there (`players.evidence`).
    """
    whole, path = with_stand_ins(question)
    try:
        return Checker(whole, path, path)
    except PlanError as error:
        raise EngineError(f"the row's annotations give no plan ({error})") from None


@lru_cache(maxsize=4096)
def ideal(question: Question, seed: int) -> tuple[Step, ...]:
    """The steps that carry out a question's plan, in the wordings of a seed."""
    return write_trajectory(checker_of(question), seed)


def other_answer(question: Question) -> str:
    """The wrong answer that a question leads to; always the same one."""
    answer, plan = question.answer, checker_of(question).plan
    if answer.lower() in ("yes", "no"):
        return "no" if answer.lower() == "yes" else "yes"
    if plan.kind != "sequential":
        for head in (t.head for item in plan.items for t in item.triples):
            name = BRACKETS.sub("", head)
            if exact_match(name, question.accepted) != 1:
                return name
    return another(question, answer, Random(question.id))


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
