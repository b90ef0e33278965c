"""A vote over CoT replies that costs what a machine costs: the fair baseline (self-consistency).

A machine asks many times, so that it has to beat as many tokens of plain prompting. What a sample
costs is measured: the first one computes the prompt, the further ones are mostly written, as the
prefix cache holds what they have in common.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluators.comparison.scores import Comparison
from evaluators.comparison.systems import System
from evaluators.comparison.tables import NOTHING, Table, p_text, percent
from evaluators.outcomes import Outcome, asked_under
from safe_stepwise.methods.asking import ANSWERING
from safe_stepwise.records import Attempt

VOTING = "samples"
"""The option of methods that vote."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens a question, computed and written: all, the first reply's, and each further one's."""

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
        """How many samples cost at most that, one at least.

        >>> Cost(System("cot", (), ()), 900.0, 500.0, 100.0).as_many_as(1230)
        8
        """
        return 1 + max(0, int((tokens - self.first) / self.further)) if self.further else 1


def costs(outcomes: Iterable[Outcome]) -> list[Cost]:
    """What each system costs, in the order in which they come."""
    groups: dict[System, list[Sequence[Attempt]]] = {}
    for o in outcomes:
        system = System.of(o.method, o.players, o.options, o.conditions)
        groups.setdefault(system, []).append(o.trajectory.attempts)
    return [_cost(system, found) for system, found in groups.items()]


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


def equal_cost_table(comparison: Comparison, found: Sequence[Cost]) -> Table:
    """Each system that asks step by step beside the votes of the same who answers; no row without.

    Δ is over the vote, in percentage points of exact match.
    """
    header = (comparison.answering, "method", "tokens / question", "vote", "its tokens / question",
              "share of the cost, %", "samples at equal cost", "Δ EM", "p")  # fmt: skip
    table: Table = [header]
    for one in found:
        if one.samples or one.first:
            continue
        votes = [v for v in found if v.samples and _is_asked_alike(v.system, one.system)]
        for vote in sorted(votes, key=lambda v: (v.system.method, v.samples)):
            share = percent(vote.whole / one.whole) if one.whole else NOTHING
            names = comparison.names
            table.append(
                [one.system.answering, names[one.system], f"{one.whole:.1f}", names[vote.system],
                 f"{vote.whole:.1f}", share, vote.as_many_as(one.whole),
                 *_gain(comparison, one.system, vote.system)]
            )  # fmt: skip
    return table


def _is_asked_alike(one: System, other: System) -> bool:
    """Whether the same model was asked, and shown the same."""
    shown, others = (asked_under(dict(system.conditions)) for system in (one, other))
    return one.answering == other.answering and shown == others


def _gain(comparison: Comparison, system: System, vote: System) -> list[str]:
    """By how much a system is better than a vote, where the two were paired."""
    for first, second, sign in ((system, vote, 1), (vote, system, -1)):
        if found := comparison.difference(first, second, None, "exact_match"):
            return [percent(sign * found.estimate.value, "+"), p_text(found.p)]
    return [NOTHING, NOTHING]
