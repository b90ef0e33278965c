"""The nouns of a comparison: what each system scored, and how much better one is than another."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from evaluators.comparison.significance import CONFIDENCE, Estimate
from evaluators.comparison.systems import System, conditions_of, names, notable
from evaluators.outcomes import METRICS, Metric
from safe_stepwise.methods.running import LoopStatistics
from safe_stepwise.records import as_object
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
    """Return a value, its lower and upper bound in percent; empty where nothing was measured."""
    if estimate is None:
        return ["", "", ""]
    return [percent(number) for number in (estimate.value, estimate.low, estimate.high)]


@dataclass(frozen=True, slots=True)
class Cell:
    """A system's questions in one benchmark."""

    questions: int
    scored: int
    unscored: int
    """Questions whose verdict could not be read."""
    unjudged: int
    """Questions that no judge saw."""
    failed: int
    """Questions whose engine failed for good; EM and F1 count them as wrong."""
    estimates: Estimates


@dataclass(frozen=True, slots=True)
class Row:
    """A system's scores."""

    system: System
    simulated: bool
    verified: bool
    """Whether anybody judged its steps."""
    players: dict[str, str]
    """The engine of each role; the answerer's where a role has no player of its own."""
    cells: dict[str, Cell]
    """By benchmark."""
    average: Estimates
    loop: LoopStatistics
    """The statistics of its trajectories."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of ``first`` over ``second`` on the questions that both have."""

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
    """Differences of systems, then of totals."""
    seed: int
    resamples: int
    totals: tuple[Row, ...] = ()
    """Means over all answerers, of systems that ran with each; none with one answerer."""
    references: Mapping[System, System] | None = None
    """Each system's reference, if not the better baseline."""

    @property
    def simulated(self) -> bool:
        return any(row.simulated for row in self.rows)

    @property
    def names(self) -> dict[System, str]:
        """The name of each system beside its answerer; simulated systems are marked."""
        labels = names([row.system for row in self.rows])
        labels |= names([row.system for row in self.totals])
        rows = (*self.rows, *self.totals)
        return {row.system: marked(labels[row.system], row.simulated) for row in rows}

    @property
    def answering(self) -> str:
        roles = [role for row in self.rows for role, _ in row.system.players[:1]]
        return " / ".join(dict.fromkeys(roles))

    @property
    def columns(self) -> list[str]:
        """The CSV columns that identify systems; `described` returns the cells."""
        return [*self._roles, "method", *self._options, "simulated"]

    def described(self, row: Row) -> list[object]:
        """Return a row's cells of ``columns``."""
        players = [row.players.get(role, "") for role in self._roles]
        values = dict((*row.system.options, *row.system.conditions))
        options = [_as_text(values.get(name, "")) for name in self._options]
        return [*players, row.system.method, *options, _as_text(row.simulated)]

    @property
    def _roles(self) -> list[str]:
        answering = [role for row in self.rows for role, _ in row.system.players[:1]]
        return list(dict.fromkeys([*answering, *(r for row in self.rows for r in row.players)]))

    @property
    def _options(self) -> list[str]:
        systems = [row.system for row in self.rows]
        notable_options = notable(systems)
        options = dict.fromkeys(n for s in systems for n, _ in s.options if n in notable_options)
        return [*options, *sorted(conditions_of(systems) - options.keys())]

    @property
    def subject(self) -> tuple[Column[Any], ...]:
        """The columns that identify the system of a row, on pages and in CSV files."""
        names, cells = self.names, {row.system: self.described(row) for row in (*self.rows, *self.totals)}

        def described(place: int, key: str) -> Column[Any]:
            return Column("", lambda row: cells[row.system][place], key=key)

        return (
            Column(self.answering, lambda row: row.system.answering),
            Column("method", lambda row: names[row.system]),
            *(described(place, key) for place, key in enumerate(self.columns)),
        )

    def difference(self, later: System, earlier: System, benchmark: str | None, metric: Metric) -> Difference | None:
        """Return the difference of two systems, None if they share no question."""
        key = (later, earlier, benchmark, metric)
        return next((d for d in self.differences if (d.first, d.second, d.benchmark, d.metric) == key), None)

    def against(self, system: System) -> dict[Metric, System | None]:
        """Return the baseline of a system's gain in each measure; empty for a system without one."""
        if self.references is not None:
            reference = self.references.get(system)
            return dict.fromkeys(METRICS, reference) if reference else {}
        if system.is_baseline:
            return {}
        return {metric: self.better_baseline(system, metric) for metric in METRICS}

    def better_baseline(self, system: System, metric: Metric) -> System | None:
        """Return the baseline that is better on average: the one that ``system`` beats by less."""
        differences = [
            d
            for d in self.differences
            if d.first == system and d.benchmark is None and d.metric == metric
            if d.second.is_baseline
        ]
        return min(differences, key=lambda d: d.estimate.value).second if differences else None


def _as_text(value: object) -> object:
    """Write booleans as other languages do."""
    return str(value).lower() if isinstance(value, bool) else value


def error_types(names: Iterable[str]) -> list[str]:
    """Return the taxonomy's ten error types, and `Missing Evidence` where ``names`` has it."""
    return [e.name for e in ERROR_TYPES] + [MISSING_EVIDENCE] * (MISSING_EVIDENCE in set(names))


@dataclass(frozen=True, slots=True)
class Failures:
    """The steps at fault of one method with its players, over all answerers."""

    name: str
    simulated: bool
    answering: tuple[str, ...]
    types: Counter[str]
    positions: Counter[int]

    def share(self, steps: int) -> float:
        """Return a number of steps as a share of the steps at fault."""
        return steps / max(1, self.types.total())

    def category_share(self, name: str) -> float:
        """Return the share of the steps at fault whose fault is of a category."""
        return self.share(sum(steps for type_, steps in self.types.items() if category(type_) == name))

    @property
    def early(self) -> float:
        """The share of the steps at fault among the first `EARLY`."""
        return self.share(sum(steps for position, steps in self.positions.items() if position <= EARLY))


def categories(methods: Iterable[Failures]) -> list[str]:
    """Return the categories of errors; missing evidence only where it occurs."""
    missing = any(method.types[MISSING_EVIDENCE] for method in methods)
    left_out = {CORRECT, *([] if missing else [MISSING_EVIDENCE])}
    return [name for name in CATEGORIES if name not in left_out]


def results(comparison: Comparison) -> dict[str, Any]:
    """Return all numbers of a comparison, for JSON; shares are 0-1."""
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
    # JSON's keys are texts.
    positions = {str(number): count for number, count in row.loop.error_positions.items()}
    return {
        **row.system.as_json(),
        "simulated": row.simulated,
        "benchmarks": {name: cell | cell.pop("estimates") for name, cell in record["cells"].items()},
        "average": record["average"],
        "loop": {**as_object(row.loop), "error_positions": positions},
    }
