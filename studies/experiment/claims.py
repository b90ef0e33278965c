"""What the experiment is to show, and whether it does: by its numbers, whichever way they fall."""

from collections.abc import Iterator
from dataclasses import dataclass

from safe_stepwise.store.tables import NOTHING, p_value
from studies.experiment.arms import CHANCE, LEARNED, PLAIN, one_of
from studies.experiment.experiment import Experiment
from studies.experiment.spans import shares, span
from studies.experiment.verdicts import ERROR_F1, difference

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
    tested = experiment.gains[experiment.own.place]
    for name, said, least, level in (
        (PLAIN, "at least 5 points of EM above no verification", POINTS, LEVEL),
        (CHANCE, "above one that rejects as often by chance", 0.0, 0.05),
    ):
        other = one_of(found, name)
        gain = None if other is None else tested.get((learned.key, other.key))
        said = f"SAFE with the learned verifier is {said} (p < {level})"
        if gain is None:
            yield Claim(said, NOTHING, None)
        else:
            value = gain.estimate.value
            holds = value >= least and value > 0 and gain.p < level
            yield Claim(said, f"{span(gain.estimate)}, p {p_value(gain.p)}", holds)
    yield _over_the_probe(experiment)


def _over_the_probe(experiment: Experiment) -> Claim:
    said = f"its error F1 is {F1_MARGIN:.2f} or more above that of a probe without passages"
    if experiment.probe is None or experiment.own.said is None:
        return Claim(said, NOTHING, None)
    margin = difference(experiment.steps, experiment.own.said, experiment.probe, ERROR_F1)
    return Claim(said, shares(margin), margin.value >= F1_MARGIN)
