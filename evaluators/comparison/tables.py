"""What the report's tables have in common: measures, rows of means, bounds."""

from collections.abc import Iterable
from typing import Literal

from evaluators.comparison.significance import Estimate
from safe_stepwise.store.tables import percent
from safe_stepwise.taxonomy import ERROR_TYPES, MISSING_EVIDENCE

AVERAGE = "average"
EVERY = "Total average"
"""Who answers in the mean over all who answer (SAFE v1, Table 3)."""
EARLY = 3
"""The steps that the papers call early (Figure 4)."""

Metric = Literal["exact_match", "f1", "accuracy"]
METRIC_NAMES: dict[Metric, str] = {"exact_match": "EM", "f1": "F1", "accuracy": "Acc"}
METRICS = tuple(METRIC_NAMES)


def bounds(estimate: Estimate | None) -> list[str]:
    """A value, its lower and its upper bound in percent; empty where nothing was measured."""
    if estimate is None:
        return ["", "", ""]
    return [percent(number) for number in (estimate.value, estimate.low, estimate.high)]


def error_types(found: Iterable[str]) -> list[str]:
    """The taxonomy's ten, and `Missing Evidence` where it was found."""
    return [e.name for e in ERROR_TYPES] + [MISSING_EVIDENCE] * (MISSING_EVIDENCE in set(found))
