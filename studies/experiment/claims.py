"""What the experiment is to show, and whether it does: by its numbers, whichever way they fall."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.comparison.significance import Estimate
from safe_stepwise.store.tables import NOTHING, p_value, signed
from studies.experiment.experiment import CHANCE, LEARNED, PLAIN, Experiment, one_of
from studies.experiment.verdicts import ERROR_F1, difference

POINTS, LEVEL, F1_MARGIN = 0.05, 0.01, 0.10


@dataclass(frozen=True, slots=True)
class Claim:
    """What was to be shown, and what was measured."""

    text: str
    measured: str
    holds: bool | None
    """None where it was not measured."""

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "**does not hold**", None: "not measured"}[self.holds]


def claims(experiment: Experiment) -> Iterator[Claim]:
    """All of them, in their order."""
    learned = one_of(experiment.own.arms, LEARNED)
    assert learned is not None
    for name, text, least, level in (
        (PLAIN, "at least 5 points of EM above no verification", POINTS, LEVEL),
        (CHANCE, "above one that rejects as often by chance", 0.0, 0.05),
    ):
        arm = one_of(experiment.own.arms, name)
        gain = experiment.gains[experiment.own.place].get((learned.key, arm.key)) if arm else None
        text = f"SAFE with the learned verifier is {text} (p < {level})"
        if gain is None:
            yield Claim(text, NOTHING, None)
        else:
            holds = gain.estimate.value >= least and gain.estimate.value > 0 and gain.p < level
            yield Claim(text, f"{points(gain.estimate)}, p {p_value(gain.p)}", holds)
    text = f"its error F1 is {F1_MARGIN:.2f} or more above that of a probe without passages"
    if experiment.probe is None or experiment.own.said is None:
        yield Claim(text, NOTHING, None)
    else:
        margin = difference(experiment.steps, experiment.own.said, experiment.probe, ERROR_F1)
        yield Claim(text, shares(margin), margin.value >= F1_MARGIN)


def points(gain: Estimate) -> str:
    """A difference of shares with its interval, in points.

    >>> points(Estimate(0.083, 0.02, 0.15))
    '+8.3 [+2.0, +15.0]'
    """
    return f"{signed(gain.value)} [{signed(gain.low)}, {signed(gain.high)}]"


def shares(gain: Estimate) -> str:
    """A difference of shares with its interval, as they are.

    >>> shares(Estimate(0.083, -0.02, 0.15))
    '+0.083 [-0.020, +0.150]'
    """
    return NOTHING if math.isnan(gain.value) else f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
