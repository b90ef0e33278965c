"""A vote over CoT replies that costs what a machine costs: the fair baseline (self-consistency).

A machine asks many times, so that it has to beat as many tokens of plain prompting. What a sample
costs is measured: the first one computes the prompt, the further ones are mostly written, as the
prefix cache holds what they have in common. All are means over the questions that a system
answered: one that failed broke off amid its requests, and would make a method look cheaper.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from evaluators.comparison.scores import Comparison
from evaluators.comparison.systems import System, system_of
from evaluators.outcomes import Outcome, asked_under
from safe_stepwise.methods.asking import ANSWERING
from safe_stepwise.records import FAILED, Attempt
from safe_stepwise.store.tables import Column, Sheet, decimal, p_value, percent, signed

VOTING = "samples"
"""The option of methods that vote."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens an answered question, computed and written: all, the first reply's, each further's."""

    system: System
    whole: float
    first: float
    further: float
    """Where but one was drawn: what is written in it, as a cache would hold the prompt."""

    @property
    def samples(self) -> int:
        """How many replies are put to the vote; 0 of a method that has no such option."""
        return int(dict(self.system.options).get(VOTING, 0))

    def as_many_as(self, tokens: float) -> int:
        """How many samples cost at most that; 0 where one costs more.

        >>> Cost(System("cot", (), ()), 900.0, 500.0, 100.0).as_many_as(1230)
        8
        """
        if tokens < self.first:
            return 0
        return 1 + int((tokens - self.first) / self.further) if self.further else 1


def costs(outcomes: Iterable[Outcome]) -> list[Cost]:
    """What each system costs, in the order in which they come; one that answered nothing, none."""
    groups: dict[System, list[Sequence[Attempt]]] = {}
    for outcome in outcomes:
        if outcome.trajectory.stop_reason != FAILED:
            groups.setdefault(system_of(outcome), []).append(outcome.trajectory.attempts)
    return [_cost(system, trajectories) for system, trajectories in groups.items()]


def _cost(system: System, found: Sequence[Sequence[Attempt]]) -> Cost:
    size = len(found)
    whole = sum(map(_tokens, (attempt for attempts in found for attempt in attempts))) / size
    answers = [[a for a in attempts if a.state == ANSWERING] for attempts in found]
    first = sum(_tokens(own[0]) for own in answers if own) / size
    behind = [_tokens(attempt) for own in answers for attempt in own[1:]]
    written = [sum(u.completion for u in own[0].usage.values()) for own in answers if own]
    each = behind or written
    return Cost(system, whole, first, sum(each) / len(each) if each else 0.0)


def _tokens(attempt: Attempt) -> int:
    used = attempt.usage.values()
    return sum(one.prompt - one.cached + one.completion for one in used)


def equal_cost_sheet(comparison: Comparison, systems: Sequence[Cost]) -> Sheet[tuple[Cost, Cost]]:
    """Each system that asks step by step beside the votes of the same who answers; no row without.

    Δ is over the vote, in percentage points of exact match; its p is of this pair alone.
    """
    names = comparison.names
    gain = partial(_gain, comparison)
    columns: list[Column[tuple[Cost, Cost]]] = [
        Column(comparison.answering, lambda pair: pair[0].system.answering),
        Column("method", lambda pair: names[pair[0].system]),
        Column("tokens / answered question", lambda pair: pair[0].whole, decimal(1)),
        Column("vote, or one reply", lambda pair: names[pair[1].system]),
        Column("its tokens / answered question", lambda pair: pair[1].whole, decimal(1)),
        Column("its cost in % of the method's", lambda p: p[1].whole / p[0].whole if p[0].whole else None, percent),
        Column("samples at equal cost", lambda pair: pair[1].as_many_as(pair[0].whole) or "< 1"),
        Column("Δ EM", lambda pair: gain(*pair)[0], signed),
        Column("p, unadjusted", lambda pair: gain(*pair)[1], p_value),
    ]
    stepwise = [cost for cost in systems if not (cost.samples or cost.first)]
    return Sheet(columns, [(cost, vote) for cost in stepwise for vote in _votes_beside(cost, systems)])


def _votes_beside(cost: Cost, systems: Iterable[Cost]) -> list[Cost]:
    """The votes asked as the system of ``cost`` was; a single reply, which is no vote, where there is no other.

    Of a vote it is measured what further samples cost, so that the single reply has nothing to add.
    """
    alike = [vote for vote in systems if vote.samples and _asked(vote.system) == _asked(cost.system)]
    several = {_kind(vote) for vote in alike if vote.samples > 1}
    shown = [vote for vote in alike if vote.samples > 1 or _kind(vote) not in several]
    return sorted(shown, key=lambda vote: (vote.system.method, vote.samples))


def _kind(vote: Cost) -> tuple[object, ...]:
    return vote.system.method, vote.system.players, vote.system.conditions


def _asked(system: System) -> tuple[object, ...]:
    """Who answers, what it was shown, and whether it was to name facts and triples, too."""
    shown = asked_under(dict(system.conditions))
    return system.answering, shown, bool(dict(system.options).get("evidence"))


def _gain(comparison: Comparison, cost: Cost, vote: Cost) -> tuple[float | None, float | None]:
    """By how much a system is better than a vote, and the p of that, where the two were paired."""
    for first, second, sign in ((cost.system, vote.system, 1), (vote.system, cost.system, -1)):
        if difference := comparison.difference(first, second, None, "exact_match"):
            return sign * difference.estimate.value, difference.p
    return None, None
