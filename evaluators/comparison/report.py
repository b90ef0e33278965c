"""A run's report: tables and figures in a folder, and the numbers behind them as one object.

| file | holds |
| --- | --- |
| ``comparison.md``, ``comparison.csv`` | scores in the layout of SAFE v1, Table 3, with margins |
| ``tests.csv`` | every paired difference and its tests |
| ``cost.md``, ``cost.csv`` | calls and tokens by role (Table 8), and how questions ended |
| ``error_types.*``, ``error_positions.*`` | where a verifier found errors (Figures 3, 4) |
| ``sweep.csv``, ``sweep.png`` | scores and cost by option, as of several K or N (Figures 2, 10) |
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluators.comparison import cost_tables, plots, score_tables
from evaluators.comparison.comparing import compare
from evaluators.comparison.scores import Comparison, Metric, Row
from evaluators.comparison.significance import CONFIDENCE
from evaluators.comparison.systems import System, common_options, swept, values_by_name
from evaluators.comparison.tables import csv_bytes, escaped, mark, markdown
from evaluators.outcomes import Outcome
from safe_stepwise.errors import UserError
from safe_stepwise.methods.running import LoopStatistics
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import COMPARISON

FILES = (
    COMPARISON, "comparison.csv", "tests.csv", "cost.md", "cost.csv", "error_types.csv",
    "error_types.png", "error_positions.csv", "error_positions.png", "sweep.csv", "sweep.png",
)  # fmt: skip
"""All that a report may consist of."""

_SIMULATED = (
    "> **Simulated.** An engine without a model took part in the rows so marked: they show that "
    "the loop works, and nothing about how well a model reasons."
)


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to."""

    text: str
    """``comparison.md``."""
    results: dict[str, Any]
    """All numbers, for ``results.json``; shares are 0-1."""
    files: dict[str, bytes]
    """The report's files by name."""


def write(outcomes: Iterable[Outcome], folder: Path, seed: int = 0) -> Report:
    """Write the report on ``outcomes`` into ``folder`` and return it; same outcomes, same bytes.

    Files of an earlier report that this one has not are removed. ``seed`` is that of the intervals
    and tests. Raises ``UserError`` for outcomes that cannot be compared or a folder that cannot be
    written.
    """
    made = report(outcomes, seed)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if name in made.files:
                write_atomically(folder / name, made.files[name])
            else:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror}); choose another --output"
        ) from None
    return made


def report(outcomes: Iterable[Outcome], seed: int = 0) -> Report:
    """The report on ``outcomes``, not yet written."""
    comparison = compare(outcomes, seed)
    text = _comparison_text(comparison)
    files = {
        COMPARISON: text.encode(),
        "comparison.csv": csv_bytes(score_tables.score_csv(comparison)),
        "tests.csv": csv_bytes(score_tables.difference_csv(comparison)),
        "cost.md": _cost_text(comparison).encode(),
        "cost.csv": csv_bytes(cost_tables.cost_csv(comparison)),
        **_error_files(comparison),
        **_sweep_files(comparison),
    }
    return Report(text, _results(comparison), files)


def _results(comparison: Comparison) -> dict[str, Any]:
    return {
        "simulated": comparison.simulated,
        "benchmarks": list(comparison.benchmarks),
        "seed": comparison.seed,
        "resamples": comparison.resamples,
        "confidence": CONFIDENCE,
        "systems": [
            {
                **row.system.as_json(),
                "simulated": row.simulated,
                "benchmarks": {
                    name: {**{k: v for k, v in asdict(cell).items() if k != "estimates"},
                           **asdict(cell)["estimates"]}
                    for name, cell in row.cells.items()
                },
                "average": asdict(row)["average"],
                "loop": _plain(row.loop),
            }
            for row in comparison.rows
        ],
        "differences": [
            {**asdict(d), "first": d.first.as_json(), "second": d.second.as_json()}
            for d in comparison.differences
        ],
    }  # fmt: skip


def _plain(loop: LoopStatistics) -> dict[str, Any]:
    """With texts as keys, as JSON will have them."""
    positions = {str(number): count for number, count in loop.error_positions.items()}
    return {**asdict(loop), "error_positions": positions}


def _comparison_text(comparison: Comparison) -> str:
    marked = mark(comparison.simulated)
    systems = [row.system for row in comparison.rows]
    options = common_options(systems)
    about = [*_players(systems), *([f"{options}."] if options else [])]
    about.append(f"Percentages; {len(comparison.benchmarks)} benchmark(s) and their mean.")
    return _page(
        "Comparison",
        comparison,
        " ".join(about),
        markdown(score_tables.score_table(comparison)),
        "± is half the width of the 95% bootstrap interval over questions. Δ is in percentage "
        "points, on the questions that both systems have, over the baseline that is better on "
        "average. Where all questions are right, or all wrong, no resample differs: ±0.0 is no "
        "certainty.",
        *_counts(comparison),
        f"## 95% confidence intervals{marked}",
        markdown(score_tables.interval_table(comparison)),
        f"## Paired tests{marked}",
        markdown(score_tables.difference_table(comparison)),
        "EM and Acc in one benchmark: McNemar's exact test. F1, and averages of several: random "
        f"flips of signs ({comparison.resamples:,}, seed {comparison.seed}). Holm's p counts all "
        "tests of one measure in one column of the first table. Pairs and unpaired questions are "
        "those of EM; Acc pairs only what the judge scored in both.",
    )


def _page(title: str, comparison: Comparison, *parts: str) -> str:
    marks = [_SIMULATED] if comparison.simulated else []
    return "\n\n".join([f"# {title}{mark(comparison.simulated)}", *marks, *parts]) + "\n"


def _players(systems: Iterable[System]) -> list[str]:
    """Who plays the other roles of a method, where that is one and the same for all."""
    known = values_by_name((f"{s.title}'s {r}", name) for s in systems for r, name in s.players[1:])
    return [escaped(f"{who}: {names[0]}.") for who, names in known.items() if len(names) == 1]


def _counts(comparison: Comparison) -> list[str]:
    """What the scores leave out or hold against a system, a line each."""
    names = comparison.names
    lines = []
    for row in comparison.rows:
        cells = row.cells.values()
        judged = any(cell.scored for cell in cells)
        counts = {
            "unscored by the judge (in no Acc)": sum(c.unscored for c in cells),
            "never judged (in no Acc)": sum(c.unjudged for c in cells) if judged else 0,
            "failed for good (wrong in EM and F1)": sum(c.failed for c in cells),
        }
        said = [f"{count:,} {what}" for what, count in counts.items() if count]
        lacking = [name for name in comparison.benchmarks if name not in row.cells]
        if lacking:
            said.append(f"none of {', '.join(lacking)}, so it has no average")
        if said:
            total = sum(cell.questions for cell in cells)
            name = f"{row.system.answering}, {names[row.system]}"
            lines.append(escaped(f"{name}: of {total:,} questions {'; '.join(said)}"))
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def _cost_text(comparison: Comparison) -> str:
    return _page(
        "Cost",
        comparison,
        "Tokens as the engines reported them; computed are the prompt tokens that no prefix cache "
        "held. Replies that the response cache gave count with what they cost at first. The judge "
        "is not in it.",
        markdown(cost_tables.cost_table(comparison)),
        f"## How questions ended{mark(comparison.simulated)}",
        markdown(cost_tables.ending_table(comparison)),
    )


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
