"""By how many points one arm answers more questions rightly than another, question by question."""

from collections.abc import Iterable, Sequence

from evaluators.comparison.comparing import compare
from evaluators.comparison.systems import System, in_order
from evaluators.outcomes import Outcome
from studies.experiment.arms import Gain, Gains


def system_of(outcome: Outcome) -> System:
    """What made it."""
    return System.of(outcome.method, outcome.players, outcome.options, outcome.conditions)


def gains(outcomes: Iterable[Outcome], systems: Sequence[System], references: Sequence[System], seed: int) -> Gains:
    """Those of ``systems`` over each of ``references``, on the questions that both have.

    With one benchmark they are its own, with several those of the mean of benchmarks
    (`evaluators.comparison.comparing`).
    """
    wanted = [frozenset((one, other)) for other in references for one in systems if one != other]

    def paired(known: Sequence[System]) -> list[tuple[System, System]]:
        found = [pair for pair in dict.fromkeys(wanted) if pair <= {*known}]
        return [(one, other) for one, other in map(in_order, found)]

    found = compare(outcomes, seed, paired=paired)
    of = found.benchmarks[0] if len(found.benchmarks) == 1 else None
    both: dict[tuple[System, System], Gain] = {}
    for one in found.differences:
        if (one.metric, one.benchmark) == ("exact_match", of):
            gain = Gain(one.estimate, one.p, one.p_holm)
            both |= {(one.first, one.second): gain, (one.second, one.first): gain.turned()}
    return both
