"""What a calibration comes to: tables of what passes, thresholds, and whom they are of."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from evaluators.comparison.significance import Estimate
from safe_stepwise.checking.faithfulness.grounds import Rule

Kind = Literal["true", "wrong tail", "wrong head", "wrong relation", "reversed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
WRONG = KINDS[1:]
Setting = Literal["alone", "in its path"]
SETTINGS: tuple[Setting, ...] = get_args(Setting)
SIGMAS = tuple(n / 100 for n in range(101))
"""The thresholds that are tried."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A rule, with the retrieval that the paper's needs."""

    rule: Rule
    retrieval: str = ""

    @property
    def name(self) -> str:
        return f"{self.rule}, {self.retrieval}" if self.retrieval else self.rule


@dataclass(frozen=True, slots=True)
class Passed:
    """Of ``cases`` of a kind, the share that is called faithful (None without any), and not judged.

    ``repaired``: the share for which retrieval takes the true triple; the paper's rule alone.
    """

    kind: Kind
    cases: int
    passed: Estimate | None
    unjudgeable: float
    repaired: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One judge's confusion table in a setting, at a threshold (None for the house rule)."""

    judge: str
    setting: Setting
    sigma: float | None
    rows: tuple[Passed, ...]

    @property
    def shares(self) -> dict[str, float]:
        """The share of each kind that passes, where there are cases of it."""
        return {row.kind: row.passed.value for row in self.rows if row.passed}

    @property
    def balanced(self) -> float | None:
        """Balanced accuracy: the mean of what passes of true, and fails of false (kinds alike)."""
        return balanced(self.shares)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "balanced_accuracy": self.balanced}


def judges_of(retrievals: Iterable[str]) -> list[Judge]:
    """The house rule, and the paper's with each retrieval."""
    return [Judge("house"), *(Judge("paper", name) for name in dict.fromkeys(retrievals))]


def balanced(shares: dict[str, float]) -> float | None:
    """Balanced accuracy of the shares that pass, by kind; None without true or without false ones.

    >>> balanced({"true": 1.0, "wrong tail": 0.5, "reversed": 0.9})
    0.65
    """
    wrong = [1 - shares[kind] for kind in WRONG if kind in shares]
    if "true" not in shares or not wrong:
        return None
    return round((shares["true"] + sum(wrong) / len(wrong)) / 2, 6)


@dataclass(frozen=True, slots=True)
class Threshold:
    """How the paper's rule does by its threshold, on statements that stand alone.

    ``curve``: balanced accuracy at each of `SIGMAS`, of the half that σ is chosen on; ``chosen``:
    the σ of its highest point, of equals the nearest to the paper's. Then what both come to on the
    other half, ``youden`` being the true that pass less the false (means of kinds).
    """

    judge: str
    chosen: float
    curve: tuple[float, ...]
    of_chosen: float
    of_paper: float
    youden: float
    true_passes: float
    wrong_tail_passes: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What a benchmark came to. ``reported``: the tables of the half that no σ was chosen on.

    ``left_out`` counts questions by why they were; ``not_made`` errors that no fact could have.
    """

    benchmark: str
    questions: int
    left_out: Mapping[str, int]
    not_made: Counter[tuple[Setting, Kind]]
    tables: tuple[Table, ...]
    reported: tuple[Table, ...]
    thresholds: tuple[Threshold, ...]
    others: Mapping[str, float] = field(default_factory=dict)
    """By judge, the share of people's derivations that is faithful to the other annotators'."""

    def as_json(self) -> dict[str, Any]:
        return {
            "questions": self.questions,
            "left_out": dict(sorted(self.left_out.items())),
            "not_made": {f"{s}: {kind}": n for (s, kind), n in sorted(self.not_made.items())},
            "tables": [table.as_json() for table in self.tables],
            "reported_half": [table.as_json() for table in self.reported],
            "faithful_to_other_annotators": dict(sorted(self.others.items())),
            "thresholds": [asdict(threshold) for threshold in self.thresholds],
        }


@dataclass(frozen=True, slots=True)
class Distance:
    """Means over questions, each from 0 to 1; ``pairs`` of derivations were compared.

    ``nearest``: to the nearer of two; ``once``: where a sentence counts but the first time;
    ``unordered``: where the order in which facts are told is left out of account.
    """

    who: str
    against: str
    pairs: int
    mean: float
    nearest: float
    once: float
    unordered: float
