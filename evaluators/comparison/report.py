"""A run's report: tables and figures in a folder, and the numbers behind them as one object.

| file | holds |
| --- | --- |
| ``comparison.md``, ``comparison.csv`` | scores in the layout of SAFE v1, Table 3, with margins |
| ``tests.csv`` | every paired difference and its tests |
| ``cost.md``, ``cost.csv`` | calls and tokens by role (Table 8), and how questions ended |
| ``error_types.*``, ``error_positions.*`` | where a verifier found errors (Figures 3, 4) |
| ``failures.md``, ``.csv``, ``.png`` | the same by category, pooled over who answers (Figure 3) |
| ``sweep.csv``, ``sweep.png`` | scores and cost by option, as of several K or N (Figures 2, 10) |

On request the papers' own rows stand beside ours, marked as published and never tested.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluators.comparison import cost_tables, failures, pages, plots, score_tables
from evaluators.comparison.comparing import compare
from evaluators.comparison.scores import Comparison, Metric, Row
from evaluators.comparison.significance import CONFIDENCE
from evaluators.comparison.systems import swept
from evaluators.comparison.tables import csv_bytes
from evaluators.outcomes import Outcome
from safe_stepwise.errors import UserError
from safe_stepwise.methods.running import LoopStatistics
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import COMPARISON
from safe_stepwise.store.published_tables import PublishedScore

FILES = (
    COMPARISON, "comparison.csv", "tests.csv", "cost.md", "cost.csv", "error_types.csv",
    "error_types.png", "error_positions.csv", "error_positions.png", "failures.md", "failures.csv",
    "failures.png", "sweep.csv", "sweep.png",
)  # fmt: skip
"""All that a report may consist of."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to."""

    text: str
    """``comparison.md``."""
    results: dict[str, Any]
    """All numbers, for ``results.json``; shares are 0-1."""
    files: dict[str, bytes]
    """The report's files by name."""


def write(
    outcomes: Iterable[Outcome],
    folder: Path,
    seed: int = 0,
    published: Sequence[PublishedScore] = (),
) -> Report:
    """Write the report on ``outcomes`` into ``folder`` and return it; same outcomes, same bytes.

    Files of an earlier report that this one has not are removed. ``seed`` is that of the intervals
    and tests; ``published`` rows stand beside ours. Raises ``UserError`` for outcomes that cannot
    be compared or a folder that cannot be written.
    """
    made = report(outcomes, seed, published)
    write_files(folder, FILES, made.files)
    return made


def write_files(folder: Path, names: Iterable[str], files: Mapping[str, bytes]) -> None:
    """Write ``files`` and remove what else of ``names`` is there; ``UserError`` if it can't be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name in files:
                write_atomically(folder / name, files[name])
            else:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror}); choose another --output"
        ) from None


def report(
    outcomes: Iterable[Outcome], seed: int = 0, published: Sequence[PublishedScore] = ()
) -> Report:
    """The report on ``outcomes``, not yet written."""
    comparison = compare(outcomes, seed)
    text = pages.comparison_text(comparison, published)
    papers = tuple(dict.fromkeys(row.paper for row in published))
    files = {
        COMPARISON: text.encode(),
        "comparison.csv": csv_bytes(score_tables.score_csv(comparison, published)),
        "tests.csv": csv_bytes(score_tables.difference_csv(comparison)),
        "cost.md": pages.cost_text(comparison, papers).encode(),
        "cost.csv": csv_bytes(cost_tables.cost_csv(comparison)),
        **_error_files(comparison),
        **_failure_files(comparison, papers),
        **_sweep_files(comparison),
    }
    return Report(text, results(comparison), files)


def results(comparison: Comparison) -> dict[str, Any]:
    """All numbers of a comparison, for JSON; shares are 0-1."""
    return {
        "simulated": comparison.simulated,
        "benchmarks": list(comparison.benchmarks),
        "seed": comparison.seed,
        "resamples": comparison.resamples,
        "confidence": CONFIDENCE,
        "systems": [_plain_row(row) for row in comparison.rows],
        "totals": [_plain_row(row) for row in comparison.totals],
        "differences": [
            {**asdict(d), "first": d.first.as_json(), "second": d.second.as_json()}
            for d in comparison.differences
        ],
    }


def _plain_row(row: Row) -> dict[str, Any]:
    cells = {name: asdict(cell) for name, cell in row.cells.items()}
    return {
        **row.system.as_json(),
        "simulated": row.simulated,
        "benchmarks": {name: cell | cell.pop("estimates") for name, cell in cells.items()},
        "average": dict(asdict(row)["average"]),
        "loop": _plain(row.loop),
    }


def _plain(loop: LoopStatistics) -> dict[str, Any]:
    """With texts as keys, as JSON will have them."""
    positions = {str(number): count for number, count in loop.error_positions.items()}
    return {**asdict(loop), "error_positions": positions}


def _error_files(comparison: Comparison) -> dict[str, bytes]:
    verified = [row for row in comparison.rows if row.verified]
    if not verified:
        return {}
    names, shown = comparison.names, _drawn(verified)
    return {
        "error_types.csv": csv_bytes(cost_tables.error_type_csv(comparison, verified)),
        "error_types.png": plots.error_types_figure(shown, names),
        "error_positions.csv": csv_bytes(cost_tables.error_position_csv(comparison, verified)),
        "error_positions.png": plots.error_positions_figure(shown, names),
    }


def _failure_files(comparison: Comparison, papers: Iterable[str]) -> dict[str, bytes]:
    found = failures.failures(comparison)
    if not any(one.types for one in found):
        return {}
    return {
        "failures.md": pages.failure_text(comparison, found, papers).encode(),
        "failures.csv": csv_bytes(failures.failure_csv(found)),
        "failures.png": failures.failures_figure(found),
    }


def _drawn(rows: list[Row]) -> list[Row]:
    """Of each method with its players one: with its own options if it so ran, else the last."""
    chosen: dict[object, Row] = {}
    for row in rows:
        key = row.system.method, row.system.players
        if key not in chosen or chosen[key].system.departures:
            chosen[key] = row
    return [row for row in rows if row in chosen.values()]


def _sweep_files(comparison: Comparison) -> dict[str, bytes]:
    rows = comparison.rows
    if not swept([row.system for row in rows]):
        return {}
    judged = any(row.average["accuracy"] for row in rows)
    metric: Metric = "accuracy" if judged else "exact_match"
    files = {"sweep.csv": csv_bytes(cost_tables.sweep_csv(comparison))}
    drawn = [row for row in rows if row.average[metric]]
    if swept([row.system for row in drawn]):
        files["sweep.png"] = plots.sweep_figure(drawn, metric)
    return files
