"""Define the results of a comparison: the scores of each system, and the differences of pairs of systems.

A `Row` has the scores of a system, a `Cell` those on one benchmark. An *answerer* is the engine in the answering role;
a *total* is the mean of one method over all answerers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from evaluators.comparison.significance import CONFIDENCE, Estimate
from evaluators.comparison.systems import System, conditions_of, list_notable, name_systems
from evaluators.outcomes import Metric
from safe_stepwise.methods.running import LoopStatistics
from safe_stepwise.store.names import SIMULATED, marked
from safe_stepwise.store.tables import Column, percent
from safe_stepwise.taxonomy import CATEGORIES, CORRECT, ERROR_TYPES, MISSING_EVIDENCE, category

AVERAGE = "average"
CSV_ONLY = ""
"""The title of a column that only the CSV file has."""
Test = Literal["mcnemar", "sign_flip"]
EARLY = 3
"""Steps up to this number are early ones (SAFE v1, Figure 4)."""
Estimates = dict[Metric, Estimate | None]
"""By metric; None if nothing was measured."""


def bounds(estimate: Estimate | None) -> list[str]:
    """Return value, lower and upper bound in percent; three empty texts if nothing was measured."""
    if estimate is None:
        return ["", "", ""]
    return [percent(number) for number in (estimate.value, estimate.low, estimate.high)]


@dataclass(frozen=True, slots=True)
class Cell:
    """The scores of a system on one benchmark."""

    questions: int
    scored: int
    """Questions whose answer the judge called correct or incorrect."""
    unscored: int
    """Questions whose verdict could not be read."""
    unjudged: int
    """Questions that no judge has judged."""
    failed: int
    """Questions whose requests failed even when repeated; EM and F1 count them as wrong."""
    estimates: Estimates


@dataclass(frozen=True, slots=True)
class Row:
    """The scores of a system on each benchmark, their average, and the statistics of its trajectories."""

    system: System
    simulated: bool
    verified: bool
    """Whether a verifier judged its steps."""
    players: dict[str, str]
    """The engine of each role; a role without a player has the answerer's."""
    cells: dict[str, Cell]
    """By benchmark."""
    average: Estimates
    loop: LoopStatistics
    uptake: Mapping[str, Mapping[str, int]]
    """Its retries, by the error type of the rejection (`evaluators.uptake`)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of ``first`` minus that of ``second`` on the questions that both have, with its test."""

    first: System
    second: System
    benchmark: str | None
    """None: the mean of the benchmarks."""
    metric: Metric
    simulated: bool
    pairs: int
    unpaired: int
    """Questions for which only one of the two has a score."""
    estimate: Estimate
    test: Test
    p: float
    p_holm: float = 1.0

    def inverse(self) -> "Difference":
        """Return the difference of ``second`` over ``first``."""
        estimate = Estimate(-self.estimate.value, -self.estimate.high, -self.estimate.low)
        return replace(self, first=self.second, second=self.first, estimate=estimate)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All scores and all differences."""

    benchmarks: tuple[str, ...]
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    """The differences of pairs of systems, then of pairs of totals."""
    seed: int
    resamples: int
    totals: tuple[Row, ...] = ()
    """Means over all answerers, for systems that ran with each of them; empty if there is one answerer."""
    references: Mapping[System, System] | None = None
    """The system that each system's gain is measured against; None: the better baseline."""

    @property
    def simulated(self) -> bool:
        return any(row.simulated for row in self.rows)

    @property
    def names(self) -> dict[System, str]:
        """The name of each system, without its answerer; simulated ones are marked, unless the answerer's name is."""
        labels = name_systems([row.system for row in self.rows])
        labels |= name_systems([row.system for row in self.totals])
        rows = (*self.rows, *self.totals)
        unsaid = {row.system: row.simulated and SIMULATED not in row.system.answering for row in rows}
        return {system: marked(labels[system], is_unsaid) for system, is_unsaid in unsaid.items()}

    @property
    def places(self) -> tuple[str | None, ...]:
        """What pages have scores of: the benchmarks, and None for their average if there are several."""
        return (*self.benchmarks, *([None] if len(self.benchmarks) > 1 else []))

    @property
    def answering(self) -> str:
        return " / ".join(dict.fromkeys([role for row in self.rows for role, _ in row.system.players[:1]]))

    @property
    def columns(self) -> list[str]:
        """The CSV columns that identify a system; `identify` returns their cells."""
        return [*self._roles, "method", *self._options, "simulated"]

    def identify(self, row: Row) -> list[object]:
        """Return the cells of ``columns`` that identify a row's system."""
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
        notable_options = list_notable(systems)
        options = dict.fromkeys(n for s in systems for n, _ in s.options if n in notable_options)
        return [*options, *sorted(conditions_of(systems) - options.keys())]

    @property
    def subject(self) -> tuple[Column[Any], ...]:
        """The columns that identify the system of a row, on pages and in CSV files."""
        names, cells = self.names, {row.system: self.identify(row) for row in (*self.rows, *self.totals)}

        def identifying(index: int, key: str) -> Column[Any]:
            return Column(CSV_ONLY, lambda row: cells[row.system][index], key=key)

        return (
            Column(self.answering, lambda row: row.system.answering),
            Column("method", lambda row: names[row.system]),
            *(identifying(index, key) for index, key in enumerate(self.columns)),
        )

    def difference(self, rival: System, baseline: System, benchmark: str | None, metric: Metric) -> Difference | None:
        """Return the difference of a pair on a benchmark (None: the mean of all), or None if it was not compared."""
        key = (rival, baseline, benchmark, metric)
        return next((d for d in self.differences if (d.first, d.second, d.benchmark, d.metric) == key), None)

    def gain(self, system: System, rival: System, benchmark: str | None, metric: Metric) -> Difference | None:
        """Return the difference of a system over a rival, whichever is first in their pair; None as `difference`."""
        inverse = self.difference(rival, system, benchmark, metric)
        return self.difference(system, rival, benchmark, metric) or (inverse and inverse.inverse())

    @property
    def headline(self) -> Metric:
        """The metric that stands for a system: accuracy, or exact match where a system was not judged."""
        judged = all(cell.scored for row in self.rows for cell in row.cells.values())
        return "accuracy" if judged else "exact_match"

    def reference_of(self, system: System) -> System | None:
        """Return its reference; without ``references``, the baseline that the system beats by the least on average."""
        if self.references is not None or system.is_baseline:
            return (self.references or {}).get(system)
        compared = [d for d in self.differences if (d.first, d.benchmark, d.metric) == (system, None, self.headline)]
        over_baselines = [d for d in compared if d.second.is_baseline]
        return min(over_baselines, key=lambda d: d.estimate.value).second if over_baselines else None


def _as_text(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def error_types(names: Iterable[str]) -> list[str]:
    """Return the taxonomy's ten error types, and also Missing Evidence if ``names`` contains it."""
    return [e.name for e in ERROR_TYPES] + [MISSING_EVIDENCE] * (MISSING_EVIDENCE in set(names))


@dataclass(frozen=True, slots=True)
class Failures:
    """Attempts with an error, of one method with its verifiers; ``answering`` are the models summed over."""

    name: str
    simulated: bool
    answering: tuple[str, ...]
    types: Counter[str]
    """Attempts by error type."""
    positions: Counter[int]
    """Attempts by the number of their step, from 1."""

    def share(self, steps: int) -> float:
        """Return a number of attempts as a share of all attempts with an error."""
        return steps / max(1, self.types.total())

    def category_share(self, name: str) -> float:
        return self.share(sum(steps for type_, steps in self.types.items() if category(type_) == name))

    @property
    def early(self) -> float:
        """The share of errors in the first `EARLY` steps."""
        return self.share(sum(steps for position, steps in self.positions.items() if position <= EARLY))


def categories(methods: Iterable[Failures]) -> list[str]:
    """Return the categories of errors; missing evidence only if it occurs."""
    missing = any(method.types[MISSING_EVIDENCE] for method in methods)
    left_out = {CORRECT, *([] if missing else [MISSING_EVIDENCE])}
    return [name for name in CATEGORIES if name not in left_out]


def render_results(comparison: Comparison) -> dict[str, Any]:
    """Return all numbers of a comparison as a JSON object; shares are 0-1."""
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
    return {
        **row.system.as_json(),
        "simulated": row.simulated,
        "benchmarks": {name: cell | cell.pop("estimates") for name, cell in record["cells"].items()},
        "average": record["average"],
        "loop": row.loop.as_json(),
    }
