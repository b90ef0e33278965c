"""What the experiment is to show, and whether it does: by its numbers, whichever way they fall."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.comparison.significance import Estimate
from evaluators.comparison.tables import NOTHING, p_text, percent
from evaluators.experiment.arms import CHANCE, LEARNED, NAMES, gain, one_of
from evaluators.experiment.experiment import Experiment
from evaluators.experiment.verdicts import ERROR_F1, difference

POINTS, LEVEL, F1_MARGIN = 0.05, 0.01, 0.10


@dataclass(frozen=True, slots=True)
class Claim:
    """One of them."""

    said: str
    found: str
    holds: bool | None
    """None where it was not measured."""

    @property
    def verdict(self) -> str:
        """In words."""
        return {True: "holds", False: "**does not hold**", None: "not measured"}[self.holds]


def claims(experiment: Experiment) -> Iterator[Claim]:
    """All of them, in their order."""
    found = experiment.own.arms
    learned = one_of(found, LEARNED)
    assert learned is not None
    for name, said, least, level in (
        (NAMES["no_verification"], "at least 5 points of EM above no verification", POINTS, LEVEL),
        (CHANCE, "above one that rejects as often by chance", 0.0, 0.05),
    ):
        other = one_of(found, name)
        tested = None if other is None else gain(experiment.results, learned, other)
        said = f"SAFE with the learned verifier is {said} (p < {level})"
        if tested is None:
            yield Claim(said, "–", None)
        else:
            estimate, p, _ = tested
            holds = estimate.value >= least and estimate.value > 0 and p < level
            yield Claim(said, f"{span(estimate)}, p {p_text(p)}", holds)
    yield _over_the_probe(experiment)


def _over_the_probe(experiment: Experiment) -> Claim:
    said = f"its error F1 is {F1_MARGIN:.2f} or more above that of a probe without passages"
    if experiment.probe is None or experiment.own.said is None:
        return Claim(said, "–", None)
    margin = difference(experiment.steps, experiment.own.said, experiment.probe, ERROR_F1)
    return Claim(said, shares(margin), margin.value >= F1_MARGIN)


def span(one: Estimate) -> str:
    """A difference of shares in points, with its interval.

    >>> span(Estimate(0.083, 0.02, 0.15))
    '+8.3 [+2.0, +15.0]'
    """
    low, high = (percent(bound, "+") for bound in (one.low, one.high))
    return f"{percent(one.value, '+')} [{low}, {high}]"


def shares(one: Estimate) -> str:
    """The same as shares.

    >>> shares(Estimate(0.083, -0.02, 0.15))
    '+0.083 [-0.020, +0.150]'
    """
    if math.isnan(one.value):
        return NOTHING
    return f"{one.value:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"
