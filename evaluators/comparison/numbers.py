"""All numbers of a comparison, for JSON; shares are 0-1."""

from dataclasses import asdict
from typing import Any

from evaluators.comparison.scores import Comparison, Row
from evaluators.comparison.significance import CONFIDENCE
from safe_stepwise.methods.running import LoopStatistics


def results(comparison: Comparison) -> dict[str, Any]:
    """The numbers of a comparison."""
    return {
        "simulated": comparison.simulated,
        "benchmarks": list(comparison.benchmarks),
        "seed": comparison.seed,
        "resamples": comparison.resamples,
        "confidence": CONFIDENCE,
        "systems": [_plain_row(row) for row in comparison.rows],
        "totals": [_plain_row(row) for row in comparison.totals],
        "differences": [
            {**asdict(d), "first": d.first.as_json(), "second": d.second.as_json()} for d in comparison.differences
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
