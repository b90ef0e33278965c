"""Write the calibration as files: ``calibration.json``, ``calibration.md`` and ``curve.svg``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safe_stepwise.checking.faithfulness.paper import SIGMA
from safe_stepwise.store.figures import panels, svg
from safe_stepwise.store.files import json_bytes, write_files
from safe_stepwise.store.tables import Column, Sheet, Table, decimal, fill, format_cell
from studies.calibration.cases import WRONG, StepContext
from studies.calibration.passing import SIGMAS, Calibration, Threshold

JSON, PAGE, CURVE = "calibration.json", "calibration.md", "curve.svg"
FILES = (JSON, PAGE, CURVE)


def write(measured: Sequence[Calibration], seed: int, folder: Path) -> str:
    """Write the files into a folder, byte for byte reproducible; return the page. Raises ``UserError`` if it can't."""
    text = page(measured, seed)
    numbers = {
        "seed": seed,
        "paper_sigma": SIGMA,
        "benchmarks": {benchmark.benchmark: benchmark.as_json() for benchmark in measured},
    }
    files = {JSON: json_bytes(numbers), PAGE: text.encode("utf-8", "backslashreplace")}
    if any(benchmark.thresholds for benchmark in measured):
        files[CURVE] = curve_figure(measured)
    write_files(folder, FILES, files)
    return text


def page(measured: Sequence[Calibration], seed: int) -> str:
    return fill(
        Path(__file__).parent / "templates",
        "calibration.md.jinja",
        seed=seed,
        benchmarks=[_section(benchmark) for benchmark in measured],
        has_curve=any(benchmark.thresholds for benchmark in measured),
    )


def _section(measured: Calibration) -> dict[str, Any]:
    excluded = "; ".join(f"{count:,} left out: {reason}" for reason, count in sorted(measured.left_out.items()))
    impossible = ", ".join(f"{kind} {n:,}" for (s, kind), n in sorted(measured.not_made.items()) if s == "alone")
    repairs: Table = [("rule", *WRONG)]
    for judged in measured.tables:
        if judged.setting == "alone" and judged.sigma is not None:
            repairs.append(
                (judged.judge, *(format_cell(row.repaired, decimal(3)) for row in judged.rows if row.kind in WRONG))
            )
    return {
        "name": measured.benchmark,
        "counts": f"{measured.questions:,} questions{f' ({excluded})' if excluded else ''}."
        + (f" Facts that such an error cannot befall: {impossible}." if impossible else ""),
        "alone": _pass_table(measured, "alone"),
        "in_paths": _pass_table(measured, "in its path"),
        "repairs": repairs,
        "thresholds": Sheet(_THRESHOLDS, measured.thresholds),
    }


def _pass_table(measured: Calibration, setting: StepContext) -> Table:
    judges = [judged for judged in measured.tables if judged.setting == setting]
    kinds = [f"{row.kind} ({row.cases:,})" for row in judges[0].rows]
    table: Table = [("rule", *kinds, "balanced", "unjudgeable")]
    for judged in judges:
        cases = sum(row.cases for row in judged.rows)
        unsure = sum(row.unjudgeable * row.cases for row in judged.rows) / max(1, cases)
        name = judged.judge if judged.sigma is None else f"{judged.judge}, σ {judged.sigma:g}"
        shares = [row.passed.value if row.passed else None for row in judged.rows]
        table.append((name, *(format_cell(share, decimal(3)) for share in (*shares, judged.balanced, unsure))))
    return table


_THRESHOLDS: tuple[Column[Threshold], ...] = (
    Column("rule", lambda threshold: threshold.judge),
    Column("σ", lambda threshold: threshold.chosen, decimal(2)),
    Column("balanced at it", lambda threshold: threshold.of_chosen, decimal(3)),
    Column(f"balanced at {SIGMA}", lambda threshold: threshold.of_paper, decimal(3)),
    Column("Youden", lambda threshold: threshold.youden, decimal(3)),
    Column("true pass", lambda threshold: threshold.true_passes, decimal(3)),
    Column("wrong tail pass", lambda threshold: threshold.wrong_tail_passes, decimal(3)),
)

_COLORS = ("#4477aa", "#ee7733", "#228833", "#aa3377")


def curve_figure(measured: Sequence[Calibration]) -> bytes:
    """Draw balanced accuracy by σ as SVG, a panel for each benchmark that has thresholds; return the file's bytes.

    The dashed line is the paper's σ, the point on each curve the chosen σ, and the dotted level the accuracy of the
    house rule, which has no threshold.
    """
    return panels(_panel, [[benchmark] for benchmark in measured if benchmark.thresholds], (9.0, 3.0), svg)


def _panel(axes: Any, measured: Calibration) -> None:
    for color, threshold in zip(_COLORS, measured.thresholds, strict=False):
        curve = [100 * value for value in threshold.curve]
        label = f"{threshold.judge}: {threshold.chosen:.2f} chosen"
        axes.plot(SIGMAS, curve, color=color, label=label, linewidth=1.2)
        best = 100 * threshold.curve[SIGMAS.index(threshold.chosen)]
        axes.plot([threshold.chosen], [best], marker="o", color=color)
    if (house := next((t.balanced for t in measured.tables if t.judge == "house"), None)) is not None:
        axes.axhline(100 * house, color="#777777", linestyle=":", linewidth=1, label="house")
    axes.axvline(SIGMA, color="#777777", linestyle="--", linewidth=1, label=f"the paper's {SIGMA}")
    axes.set_xlim(0, 1)
    axes.set_ylim(45, 101)
    axes.set_xlabel("threshold σ")
    axes.set_ylabel("balanced accuracy, %")
    axes.set_title(f"{measured.benchmark}: true and false statements told apart", fontsize=9)
    # The legend stands beside the curves, as it would cover some of them.
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
