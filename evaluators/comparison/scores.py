"""The nouns of a comparison: what each system scored, and how much better one is than another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from evaluators.comparison.significance import Estimate
from evaluators.comparison.systems import System, conditions_of, names, notable
from evaluators.comparison.tables import METRIC_NAMES, METRICS, Metric
from safe_stepwise.methods.running import LoopStatistics
from safe_stepwise.store.names import marked

Test = Literal["mcnemar", "sign_flip"]
__all__ = (
    "METRICS", "METRIC_NAMES", "Cell", "Comparison", "Difference", "Estimates", "Metric", "Row",
    "Test",
)  # fmt: skip

Estimates = dict[Metric, Estimate | None]
"""None where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A system's questions in one benchmark."""

    questions: int
    scored: int
    unscored: int
    """The judge was asked, and its verdict could not be read."""
    unjudged: int
    """No judge was asked."""
    failed: int
    """The engine failed for good; they count as answered wrongly by EM and F1."""
    estimates: Estimates


@dataclass(frozen=True, slots=True)
class Row:
    """A system's scores."""

    system: System
    simulated: bool
    verified: bool
    """Whether anybody judged its steps."""
    players: dict[str, str]
    """Who was asked, by role; where a role has no player of its own, it is the answering one."""
    cells: dict[str, Cell]
    """By benchmark."""
    average: Estimates
    loop: LoopStatistics
    """What its questions came to."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better ``first`` is than ``second`` on the questions that both have."""

    first: System
    second: System
    benchmark: str | None
    """None: the mean of the benchmarks."""
    metric: Metric
    simulated: bool
    pairs: int
    unpaired: int
    """Questions that only one of the two has, or has scored."""
    estimate: Estimate
    test: Test
    p: float
    p_holm: float = 1.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """All scores and all differences."""

    benchmarks: tuple[str, ...]
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    """Of systems, then of totals."""
    seed: int
    resamples: int
    totals: tuple[Row, ...] = ()
    """Means over all who answer, of what ran with each; none where one alone answers."""
    references: Mapping[System, System] | None = None
    """What each system is set against, if not the better baseline."""

    @property
    def simulated(self) -> bool:
        """Whether any outcome is."""
        return any(row.simulated for row in self.rows)

    @property
    def names(self) -> dict[System, str]:
        """What each system is called beside who answers; what is simulated says so."""
        known = names([row.system for row in self.rows])
        known |= names([row.system for row in self.totals])
        rows = (*self.rows, *self.totals)
        return {row.system: marked(known[row.system], row.simulated) for row in rows}

    @property
    def answering(self) -> str:
        """The name of the role that answers, or the names."""
        roles = [role for row in self.rows for role, _ in row.system.players[:1]]
        return " / ".join(dict.fromkeys(roles))

    @property
    def columns(self) -> list[str]:
        """What tables for machines tell systems apart by; `described` has the cells."""
        return [*self._roles, "method", *self._options, "simulated"]

    def described(self, row: Row) -> list[object]:
        """The cells of ``columns``."""
        players = [row.players.get(role, "") for role in self._roles]
        known = dict((*row.system.options, *row.system.conditions))
        options = [_cell(known.get(name, "")) for name in self._options]
        return [*players, row.system.method, *options, _cell(row.simulated)]

    @property
    def _roles(self) -> list[str]:
        answering = [role for row in self.rows for role, _ in row.system.players[:1]]
        return list(dict.fromkeys([*answering, *(r for row in self.rows for r in row.players)]))

    @property
    def _options(self) -> list[str]:
        systems = [row.system for row in self.rows]
        told = notable(systems)
        options = dict.fromkeys(n for s in systems for n, _ in s.options if n in told)
        return [*options, *sorted(conditions_of(systems) - options.keys())]

    def difference(self, first: System, second: System, benchmark: str | None, metric: Metric) -> Difference | None:
        """That one, if the two have a question in common."""
        wanted = (first, second, benchmark, metric)
        known = ((d, (d.first, d.second, d.benchmark, d.metric)) for d in self.differences)
        return next((d for d, key in known if key == wanted), None)

    def against(self, system: System) -> dict[Metric, System | None]:
        """What a system's gain in each measure is over; nothing for who is set against nobody."""
        if self.references is not None:
            found = self.references.get(system)
            return dict.fromkeys(METRICS, found) if found else {}
        if system.is_baseline:
            return {}
        return {metric: self.better_baseline(system, metric) for metric in METRICS}

    def better_baseline(self, system: System, metric: Metric) -> System | None:
        """The baseline that is better on average: the one that ``system`` beats by less."""
        against = [
            d
            for d in self.differences
            if d.first == system and d.benchmark is None and d.metric == metric
            if d.second.is_baseline
        ]
        return min(against, key=lambda d: d.estimate.value).second if against else None


def _cell(value: object) -> object:
    """As other languages write it."""
    return str(value).lower() if isinstance(value, bool) else value
