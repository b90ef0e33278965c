"""Scores labels: noise labels by reference labels, and the measures of a verifier, which cards name and print."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.records import NO_NOISE
from safe_stepwise.store.names import marked
from safe_stepwise.store.packaged import read_yaml

BINS = ((0.9, "0.9 to 1"), (0.7, "0.7 to 0.9"), (0.5, "0.5 to 0.7"), (0.0, "under 0.5"))
"""The lowest confidence in each bin and the bin's name, in descending order."""
NO_CONFIDENCE = "not said"
"""The name of the bin for labels without a confidence."""

Outcome = tuple[bool, str, float | None]
"""A row's outcome: whether the reference calls it noise; the noise type and confidence of our label."""


@dataclass(frozen=True, slots=True)
class Score:
    """The agreement on the label ``name``: the numbers of rows that have it in the reference (``gold``), in our labels
    (``predicted``) and in both (``hits``).

    >>> score = Score("unverifiable", hits=3, gold=4, predicted=6)
    >>> score.precision, score.recall, round(score.f1, 3)
    (0.5, 0.75, 0.6)
    """

    name: str
    hits: int
    gold: int
    predicted: int

    @property
    def precision(self) -> float:
        """The share of the predicted rows that are gold; 0 if nothing was predicted."""
        return self.hits / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of the gold rows that were predicted; 0 if there are none."""
        return self.hits / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.hits / (self.gold + self.predicted) if self.gold + self.predicted else 0.0

    @property
    def shares(self) -> dict[str, float | None]:
        """Precision, recall and F1 by name; None if there is nothing to divide by."""
        return {
            "precision": self.precision if self.predicted else None,
            "recall": self.recall if self.gold else None,
            "f1": self.f1 if self.gold or self.predicted else None,
        }


@dataclass(frozen=True, slots=True)
class Bin:
    """Labels of similar confidence: how many call a row noise or sound, and how many the reference confirms."""

    confidence: str
    noise: int
    noise_confirmed: int
    sound: int
    sound_confirmed: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of our labels with reference labels of the same rows.

    Of the ``rows``, the reference calls ``noise`` of them noise, and our labels ``found`` of them. Precision, recall
    and F1 (0-1, four digits) are those of *unverifiable*; 0 if there is nothing to divide by. ``calibration`` has the
    bins with rows, highest confidence first. A row that was not judged or not decided is in no bin and not in
    ``found``.
    """

    rows: int
    noise: int
    found: int
    precision: float
    recall: float
    f1: float
    calibration: tuple[Bin, ...]


def measure_agreement(outcomes: Mapping[Outcome, int]) -> Agreement:
    """Compute the agreement of labelled rows with their reference, from the number of rows of each outcome."""
    counts: Counter[tuple[bool, bool]] = Counter()  # by whether the reference and our label say noise
    bins: dict[str, Counter[tuple[bool, bool]]] = {name: Counter() for _, name in BINS}
    bins[NO_CONFIDENCE] = Counter()
    for (is_noise, noise_type, confidence), rows in outcomes.items():
        is_flagged = noise_type not in NO_NOISE
        counts[is_noise, is_flagged] += rows
        if noise_type not in ("unparsed", "undecided"):
            name = NO_CONFIDENCE if confidence is None else next(name for least, name in BINS if confidence >= least)
            bins[name][is_noise, is_flagged] += rows
    score = _score_noise(counts)
    return Agreement(
        rows=counts.total(),
        noise=score.gold,
        found=score.predicted,
        precision=round(score.precision, 4),
        recall=round(score.recall, 4),
        f1=round(score.f1, 4),
        calibration=tuple(_make_bin(name, verdicts) for name, verdicts in bins.items() if verdicts.total()),
    )


def _score_noise(counts: Counter[tuple[bool, bool]]) -> Score:
    hits, misses, false_alarms = counts[True, True], counts[True, False], counts[False, True]
    return Score("unverifiable", hits, hits + misses, hits + false_alarms)


def _make_bin(name: str, counts: Counter[tuple[bool, bool]]) -> Bin:
    noise = _score_noise(counts)
    return Bin(name, noise.predicted, noise.hits, counts.total() - noise.predicted, counts[False, False])


MEASURES: Mapping[str, Sequence[str]] = read_yaml(Path(__file__).with_name("measures.yaml"))
"""The type of each measure, as a model card names it, and its title."""


def title_of(verifier: Mapping[str, Any]) -> str:
    """Return the name of a measured verifier, with `SIMULATED` if no model made its verdicts."""
    return marked(str(verifier["name"]), bool(verifier["simulated"]))
