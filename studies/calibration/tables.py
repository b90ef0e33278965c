"""The results of a calibration: judges, their tables of what passes, thresholds and distances."""

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
"""The thresholds that are tried on the paper's rule."""


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
    """The shares of ``cases`` of one kind that a judge calls faithful (None without cases) or can't judge.

    ``repaired``: the share for which retrieval takes the true triple; the paper's rule alone has it.
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
        """The share that passes, by kind that has cases."""
        return {row.kind: row.passed.value for row in self.rows if row.passed}

    @property
    def balanced(self) -> float | None:
        """Balanced accuracy: the mean share of true cases that pass and of false cases that fail."""
        return balanced(self.shares)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "balanced_accuracy": self.balanced}


def list_judges(retrievals: Iterable[str]) -> list[Judge]:
    """List the judges: the house rule, and the paper's with each retrieval."""
    return [Judge("house"), *(Judge("paper", name) for name in dict.fromkeys(retrievals))]


def balanced(shares: dict[str, float]) -> float | None:
    """Compute balanced accuracy from the shares that pass, by kind; None without true or false cases.

    >>> balanced({"true": 1.0, "wrong tail": 0.5, "reversed": 0.9})
    0.65
    """
    wrong = [1 - shares[kind] for kind in WRONG if kind in shares]
    if "true" not in shares or not wrong:
        return None
    return round((shares["true"] + sum(wrong) / len(wrong)) / 2, 6)


@dataclass(frozen=True, slots=True)
class Threshold:
    """The paper's rule by its threshold, on statements that stand alone.

    ``curve``: balanced accuracy at each of `SIGMAS` on the half that σ is chosen on; ``chosen``: the σ of its
    highest point, of equals the nearest to the paper's. The other fields are measured on the other half;
    ``youden`` is the share of true cases that pass less that of false ones (kinds weigh alike).
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
    annotator_shares: Mapping[str, float] = field(default_factory=dict)
    """By judge, the share of people's derivations that are faithful to the other annotators'."""

    def as_json(self) -> dict[str, Any]:
        return {
            "questions": self.questions,
            "left_out": dict(sorted(self.left_out.items())),
            "not_made": {f"{s}: {kind}": n for (s, kind), n in sorted(self.not_made.items())},
            "tables": [table.as_json() for table in self.tables],
            "reported_half": [table.as_json() for table in self.reported],
            "faithful_to_other_annotators": dict(sorted(self.annotator_shares.items())),
            "thresholds": [asdict(threshold) for threshold in self.thresholds],
        }


@dataclass(frozen=True, slots=True)
class Distance:
    """Mean distances over questions (0-1) of ``pairs`` of derivations.

    ``nearest``: to the nearer of two; ``once``: if a sentence counts only the first time; ``unordered``: whatever
    the order of the facts.
    """

    who: str
    against: str
    pairs: int
    mean: float
    nearest: float
    once: float
    unordered: float
