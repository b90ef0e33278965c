"""The nouns of a comparison: what each system scored, and how much better one is than another."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from evaluators.comparison.significance import CONFIDENCE, Estimate
from evaluators.comparison.systems import System, conditions_of, names, notable
from evaluators.outcomes import METRICS, Metric
from safe_stepwise.methods.running import LoopStatistics
from safe_stepwise.store.names import marked
from safe_stepwise.store.tables import Column, percent
from safe_stepwise.taxonomy import CATEGORIES, CORRECT, ERROR_TYPES, MISSING_EVIDENCE, category

AVERAGE = "average"
Test = Literal["mcnemar", "sign_flip"]
EARLY = 3
"""The steps that the papers call early (Figure 4)."""
Estimates = dict[Metric, Estimate | None]
"""None where nothing was measured."""


def bounds(estimate: Estimate | None) -> list[str]:
    """A value, its lower and its upper bound in percent; empty where nothing was measured."""
    if estimate is None:
        return ["", "", ""]
    return [percent(number) for number in (estimate.value, estimate.low, estimate.high)]


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

    @property
    def subject(self) -> tuple[Column[Any], ...]:
        """What tables tell systems apart by, of rows that have a ``system``: on pages, and for machines."""
        names, cells = self.names, {row.system: self.described(row) for row in (*self.rows, *self.totals)}

        def described(place: int, key: str) -> Column[Any]:
            return Column("", lambda row: cells[row.system][place], key=key)

        return (
            Column(self.answering, lambda row: row.system.answering),
            Column("method", lambda row: names[row.system]),
            *(described(place, key) for place, key in enumerate(self.columns)),
        )

    def difference(self, first: System, second: System, benchmark: str | None, metric: Metric) -> Difference | None:
        """That one, if the two have a question in common."""
        key = (first, second, benchmark, metric)
        return next((d for d in self.differences if (d.first, d.second, d.benchmark, d.metric) == key), None)

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


def error_types(names: Iterable[str]) -> list[str]:
    """The taxonomy's ten, and `Missing Evidence` where it is among ``names``."""
    return [e.name for e in ERROR_TYPES] + [MISSING_EVIDENCE] * (MISSING_EVIDENCE in set(names))


@dataclass(frozen=True, slots=True)
class Failures:
    """The steps at fault of one method with its players, whoever answered."""

    name: str
    simulated: bool
    answering: tuple[str, ...]
    types: Counter[str]
    positions: Counter[int]

    def share(self, steps: int) -> float:
        """Of the steps at fault, so many."""
        return steps / max(1, self.types.total())

    def category_share(self, name: str) -> float:
        """The share of the steps whose fault is of a category."""
        return self.share(sum(steps for type_, steps in self.types.items() if category(type_) == name))

    @property
    def early(self) -> float:
        """The share of the first `EARLY` steps."""
        return self.share(sum(steps for position, steps in self.positions.items() if position <= EARLY))


def categories(methods: Iterable[Failures]) -> list[str]:
    """Those of errors; of missing evidence only where some was missing."""
    missing = any(method.types[MISSING_EVIDENCE] for method in methods)
    left_out = {CORRECT, *([] if missing else [MISSING_EVIDENCE])}
    return [name for name in CATEGORIES if name not in left_out]


def results(comparison: Comparison) -> dict[str, Any]:
    """All numbers of a comparison, for JSON; shares are 0-1."""
    return {
        "simulated": comparison.simulated,
        "benchmarks": list(comparison.benchmarks),
        "seed": comparison.seed,
        "resamples": comparison.resamples,
        "confidence": CONFIDENCE,
        "systems": [_row_record(row) for row in comparison.rows],
        "totals": [_row_record(row) for row in comparison.totals],
        "differences": [
            {**asdict(d), "first": d.first.as_json(), "second": d.second.as_json()} for d in comparison.differences
        ],
    }


def _row_record(row: Row) -> dict[str, Any]:
    record = asdict(row)
    # With texts as keys, as JSON will have them.
    positions = {str(number): count for number, count in row.loop.error_positions.items()}
    return {
        **row.system.as_json(),
        "simulated": row.simulated,
        "benchmarks": {name: cell | cell.pop("estimates") for name, cell in record["cells"].items()},
        "average": record["average"],
        "loop": {**row.loop.as_json(), "error_positions": positions},
    }
