"""The results of a calibration: judges, their tables of what passes, thresholds and distances."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from evaluators.comparison.significance import Estimate
from safe_stepwise.checking.faithfulness.grounds import Rule

ClaimKind = Literal["true", "wrong tail", "wrong head", "wrong relation", "reversed"]
KINDS: tuple[ClaimKind, ...] = get_args(ClaimKind)
WRONG = KINDS[1:]
StepContext = Literal["alone", "in its path"]
SETTINGS: tuple[StepContext, ...] = get_args(StepContext)
SIGMAS = tuple(n / 100 for n in range(101))
"""The thresholds that are tried on the paper's rule."""


@dataclass(frozen=True, slots=True)
class ChainJudge:
    """A rule, with the retrieval that the paper's needs."""

    rule: Rule
    retrieval: str = ""

    @property
    def name(self) -> str:
        return f"{self.rule}, {self.retrieval}" if self.retrieval else self.rule


@dataclass(frozen=True, slots=True)
class PassRates:
    """The shares (0-1) of ``cases`` of one kind that a judge calls faithful (None without cases) or can't judge.

    ``repaired``: the share of false statements that retrieval matched to the true triple; None except for the paper's
    rule.
    """

    kind: ClaimKind
    cases: int
    passed: Estimate | None
    unjudgeable: float
    repaired: float | None = None


@dataclass(frozen=True, slots=True)
class ConfusionTable:
    """One judge's confusion table in a setting, at a threshold (None for the house rule)."""

    judge: str
    setting: StepContext
    sigma: float | None
    rows: tuple[PassRates, ...]

    @property
    def shares(self) -> dict[str, float]:
        """The share of cases that pass, by kind; kinds without cases are left out."""
        return {row.kind: row.passed.value for row in self.rows if row.passed}

    @property
    def balanced(self) -> float | None:
        """Balanced accuracy: the mean share of true cases that pass and of false ones that fail; None without both."""
        shares = self.shares
        wrong = [1 - shares[kind] for kind in WRONG if kind in shares]
        if "true" not in shares or not wrong:
            return None
        return round((shares["true"] + sum(wrong) / len(wrong)) / 2, 6)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "balanced_accuracy": self.balanced}


def list_judges(retrievals: Iterable[str]) -> list[ChainJudge]:
    """List the judges: the house rule, and the paper's with each retrieval."""
    return [ChainJudge("house"), *(ChainJudge("paper", name) for name in dict.fromkeys(retrievals))]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold σ that was chosen for the paper's rule, on cases of a single statement.

    ``curve``: balanced accuracy at each of `SIGMAS` on the half that σ is chosen on; ``chosen``: the σ with the
    highest (if several, the nearest to the paper's). The other fields are measured on the other half: balanced
    accuracy at the chosen σ and at the paper's; ``youden``: the share of true cases that pass minus the mean share of
    false ones.
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
class Calibration:
    """The results on one benchmark: ``tables`` of all questions, ``reported`` of the half on which no σ was chosen.

    ``left_out``: numbers of questions by the reason that they were left out; ``not_made``: numbers of cases that could
    not be made, by context and kind.
    """

    benchmark: str
    questions: int
    left_out: Mapping[str, int]
    not_made: Counter[tuple[StepContext, ClaimKind]]
    tables: tuple[ConfusionTable, ...]
    reported: tuple[ConfusionTable, ...]
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

    ``mean``: to all derivations that it is compared with; ``nearest``: to the nearest of them; ``once``: if a repeated
    sentence counts only the first time; ``unordered``: ignoring the order of the facts.
    """

    who: str
    against: str
    pairs: int
    mean: float
    nearest: float
    once: float
    unordered: float
