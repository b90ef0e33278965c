"""The paper's threshold σ, chosen on seeded errors of half of the questions, told of the others."""

from collections.abc import Sequence

from safe_stepwise.checking.faithfulness.paper import SIGMA
from studies.calibration.passing import Found, table_of
from studies.calibration.tables import SIGMAS, Judge, Threshold


def threshold_of(judge: Judge, found: Sequence[Found]) -> Threshold | None:
    """σ for a judge by the paper's rule; None where a half has no true or no false statements."""
    halves: tuple[list[Found], list[Found]] = ([], [])
    for one in found:
        halves[one.case.source.is_reported].append(one)
    developed, reported = halves
    curve = [_accuracy(judge, developed, sigma) for sigma in SIGMAS]
    if None in curve or _accuracy(judge, reported, SIGMA) is None:
        return None
    known = [accuracy or 0.0 for accuracy in curve]
    best = max(known)
    at_best = (sigma for sigma, value in zip(SIGMAS, known, strict=True) if value == best)
    chosen = min(at_best, key=lambda sigma: (abs(sigma - SIGMA), sigma))
    of_chosen = _accuracy(judge, reported, chosen) or 0.0
    shares = table_of(judge, reported, "alone", chosen).shares
    return Threshold(
        judge.name,
        chosen,
        tuple(known),
        of_chosen,
        _accuracy(judge, reported, SIGMA) or 0.0,
        round(2 * of_chosen - 1, 6),
        shares["true"],
        shares.get("wrong tail", 0.0),
    )


def _accuracy(judge: Judge, found: Sequence[Found], sigma: float) -> float | None:
    return table_of(judge, found, "alone", sigma).balanced
