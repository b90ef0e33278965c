"""A difference in words, with its interval."""

import math

from evaluators.comparison.significance import Estimate
from safe_stepwise.store.tables import NOTHING, percent


def span(one: Estimate) -> str:
    """Of shares, in points.

    >>> span(Estimate(0.083, 0.02, 0.15))
    '+8.3 [+2.0, +15.0]'
    """
    low, high = (percent(bound, "+") for bound in (one.low, one.high))
    return f"{percent(one.value, '+')} [{low}, {high}]"


def shares(one: Estimate) -> str:
    """Of shares, as they are.

    >>> shares(Estimate(0.083, -0.02, 0.15))
    '+0.083 [-0.020, +0.150]'
    """
    if math.isnan(one.value):
        return NOTHING
    return f"{one.value:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"
