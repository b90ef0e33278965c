"""How far noise labels agree with known ones: measured by builds and evaluations, told by cards."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.files import read_lines
from safe_stepwise.store.names import marked

SOUND = ("none", "unparsed")
"""Noise types that do not call a row unverifiable."""
BINS = ((0.9, "0.9 to 1"), (0.7, "0.7 to 0.9"), (0.5, "0.5 to 0.7"), (0.0, "under 0.5"))
"""Confidence from which on a label is in a bin, and the bin's name; the surest first."""
NOT_SAID = "not said"

Seen = tuple[bool, str, float | None]
"""Of a row: whether it is known to be noise; the noise type found, with its confidence."""


@dataclass(frozen=True, slots=True)
class Score:
    """How often two labellings agree on one name: rows in ``both``, in the ``true`` one, ``found``.

    >>> score = Score("unverifiable", both=3, true=4, found=6)
    >>> score.precision, score.recall, round(score.f1, 3)
    (0.5, 0.75, 0.6)
    """

    name: str
    both: int
    true: int
    found: int

    @property
    def precision(self) -> float:
        """Share of the found rows that are true; 0 where nothing was found."""
        return self.both / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of the true rows that were found; 0 where there are none."""
        return self.both / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.both / (self.true + self.found) if self.true + self.found else 0.0

    @property
    def shares(self) -> dict[str, float | None]:
        """Precision, recall and F1 by name, None where there is nothing to divide by."""
        return {
            "precision": self.precision if self.found else None,
            "recall": self.recall if self.true else None,
            "f1": self.f1 if self.true or self.found else None,
        }


@dataclass(frozen=True, slots=True)
class Bin:
    """Labels of about one confidence, of noise and of sound rows, and how many are right."""

    confidence: str
    noise: int
    noise_confirmed: int
    sound: int
    sound_confirmed: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Labels beside those known of ``rows`` rows, of which ``noise`` are noise; ``found`` by us.

    Precision, recall and F1 (0-1, four digits) are of *unverifiable*; 0 where there is nothing to
    divide by. ``calibration`` has the bins with rows, the surest first; a row that was not judged
    has no label to confirm, and is in none.
    """

    rows: int
    noise: int
    found: int
    precision: float
    recall: float
    f1: float
    calibration: tuple[Bin, ...]


def agreement_of(seen: Mapping[Seen, int]) -> Agreement:
    """The agreement of rows, counted by what was seen of them.

    >>> made = agreement_of({(True, "wrong_answer", 0.9): 2, (False, "none", 0.4): 6})
    >>> made.precision, made.calibration[0].noise_confirmed, made.calibration[1].confidence
    (1.0, 2, 'under 0.5')
    """
    counts: Counter[tuple[bool, bool]] = Counter()
    bins: dict[str, Counter[tuple[bool, bool]]] = {name: Counter() for _, name in BINS}
    bins[NOT_SAID] = Counter()
    for (known, type_, confidence), rows in seen.items():
        found = type_ not in SOUND
        counts[known, found] += rows
        if type_ != "unparsed":
            name = NOT_SAID if confidence is None else next(name for least, name in BINS if confidence >= least)
            bins[name][known, found] += rows
    score = _score(counts)
    return Agreement(
        rows=counts.total(),
        noise=score.true,
        found=score.found,
        precision=round(score.precision, 4),
        recall=round(score.recall, 4),
        f1=round(score.f1, 4),
        calibration=tuple(_filled(name, those) for name, those in bins.items() if those.total()),
    )


def _score(counts: Counter[tuple[bool, bool]]) -> Score:
    both, missed, false = counts[True, True], counts[True, False], counts[False, True]
    return Score("unverifiable", both, both + missed, both + false)


def _filled(name: str, counts: Counter[tuple[bool, bool]]) -> Bin:
    noise, sound = _score(counts), counts[True, False] + counts[False, False]
    return Bin(name, noise.found, noise.both, sound, counts[False, False])


MEASURES: Mapping[str, tuple[str, str]] = {
    "accuracy": ("accuracy", "Error-type accuracy"),
    "macro_f1": ("f1", "Error-type macro F1"),
    "error_precision": ("precision", "Error detection precision"),
    "error_recall": ("recall", "Error detection recall"),
    "error_f1": ("f1", "Error detection F1"),
    "first_error_erroneous": ("accuracy", "First error found (erroneous trajectories)"),
    "first_error_correct": ("accuracy", "None flagged (correct trajectories)"),
    "first_error_f1": ("f1", "First-error localisation F1 (ProcessBench)"),
    "parse_rate": ("accuracy", "Readable replies"),
}
"""Each measure's type, as a model card names it, and its title."""


def title_of(verifier: Mapping[str, Any]) -> str:
    """The name of a verifier that was measured, marked if it only plays a model."""
    return marked(str(verifier["name"]), bool(verifier["simulated"]))


PUBLISHED = "published"
"""The kind of teacher whose spec names lists of questions, ``published:FILE[,FILE]``."""


def read_published(path: Path) -> dict[str, bool]:
    """Whether each id is unverifiable, from JSONL; raises ``UserError`` with file and line."""
    mend = 'each is a JSON object with "id" and "unverifiable" (true or false), or "truth" (a noise type)'
    return dict(label for _, label in read_lines(path, _published_label, "label", mend))


def _published_label(line: bytes) -> tuple[str, bool]:
    row = parse_json(line)
    if isinstance(row.get("unverifiable"), bool):
        return str(row["id"]), row["unverifiable"]
    if row["truth"] not in NOISE_TYPES:
        raise ValueError(f"truth {row['truth']!r}")
    return str(row["id"]), row["truth"] not in SOUND
