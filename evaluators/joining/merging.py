"""Several evaluations as one: which of their systems are one system, and what each is called.

A run may be given a name, which tells its systems from those of other runs that are alike in
method, players, options and conditions: another adapter behind the same server, say. A system that
several runs hold with the same outcomes to the byte, as a baseline that was run beside each
variant, is one, and none's. What is alike and differs has to be told apart by names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from evaluators.comparison.systems import VARIANT, System, names
from evaluators.joining.runs import Asked, Run, shared
from evaluators.outcomes import Outcome, QuestionRecord
from safe_stepwise.errors import UserError

Held = Mapping[System, Mapping[Asked, Outcome]]
"""What a run holds of the questions that are shared."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What several runs came to together."""

    outcomes: tuple[Outcome, ...]
    """System by system, in the order of the runs."""
    questions: tuple[QuestionRecord, ...]
    left_out: Mapping[str, int]
    """By benchmark, the questions that not all runs were asked which have it."""
    held_twice: tuple[System, ...]
    """Those that several runs hold with the same outcomes."""


def joined(runs: Sequence[Run]) -> Joined:
    """The runs as one.

    Raises ``UserError`` for runs that were not asked the same (`shared`), and for systems that are
    alike in all but their outcomes.
    """
    common = shared(runs)
    held = [
        {
            system: {asked: o for asked, o in own.items() if asked in common[asked[0]]}
            for system, own in run.systems.items()
        }
        for run in runs
    ]
    found: dict[System, dict[Asked, Outcome]] = {}
    source: dict[tuple[System, Asked], Run] = {}
    twice: dict[System, None] = {}
    for n, run in enumerate(runs):
        for system, own in held[n].items():
            called = _called(system, _variant(system, n, runs, held))
            outcomes = found.setdefault(called, {})
            for asked, outcome in own.items():
                outcome = replace(outcome, conditions=dict(called.conditions))
                before = outcomes.setdefault(asked, outcome)
                if before is not outcome:
                    twice[called] = None
                if before != outcome:
                    raise _clash(called, asked, source[called, asked], run)
                source.setdefault((called, asked), run)
    every = {asked for run in runs for asked in run.asked}
    left_out = {name: sum(a[0] == name for a in every) - len(of) for name, of in common.items()}
    return Joined(
        tuple(outcome for own in found.values() for outcome in own.values()),
        _questions(runs, common),
        {name: count for name, count in left_out.items() if count},
        tuple(twice),
    )


def _variant(system: System, at: int, runs: Sequence[Run], held: Sequence[Held]) -> str:
    """The name that a system of a run gets from it."""
    holders = [n for n, own in enumerate(held) if system in own]
    if len({runs[n].name for n in holders}) == 1:
        return runs[at].name
    apart = [(a, b) for a, b in combinations(holders, 2) if runs[a].name != runs[b].name]
    same = all(_same(held[a][system], held[b][system]) for a, b in apart)
    return "" if same else runs[at].name


def _same(one: Mapping[Asked, Outcome], other: Mapping[Asked, Outcome]) -> bool:
    both = one.keys() & other.keys()
    return bool(both) and all(one[asked] == other[asked] for asked in both)


def _called(system: System, name: str) -> System:
    if not name:
        return system
    conditions = {**dict(system.conditions), VARIANT: name}
    return replace(system, conditions=tuple(sorted(conditions.items())))


def _clash(system: System, asked: Asked, first: Run, second: Run) -> UserError:
    what = f"{system.answering}, {names([system])[system]}"
    return UserError(
        f"{first.title} and {second.title}: both hold {what}, with other outcomes (the first on "
        f"{asked[0]} {asked[1]}); leave one out, or give them names of their own: "
        f"{first.title}=NAME {second.title}=NAME"
    )


def _questions(runs: Sequence[Run], common: Mapping[str, set[Asked]]) -> tuple[QuestionRecord, ...]:
    """What was asked, each once under the conditions that change it."""
    found: dict[tuple[Asked, str], QuestionRecord] = {}
    for run in runs:
        for asked, under in run.asked.items():
            if asked in common[asked[0]]:
                for conditions, question in under.items():
                    found.setdefault((asked, conditions), question)
    return tuple(found.values())
