"""The calibration as files: ``calibration.json``, ``calibration.md`` and ``curve.svg``."""

import json
from collections.abc import Sequence
from pathlib import Path

from safe_stepwise.checking.faithfulness.paper import SIGMA
from safe_stepwise.store.files import write_files
from safe_stepwise.store.tables import NOTHING, escaped, markdown
from studies.calibration.distances import HEADER, Distance
from studies.calibration.plots import curve_figure
from studies.calibration.tables import SETTINGS, WRONG, Measured, Passed, Table

JSON, PAGE, CURVE = "calibration.json", "calibration.md", "curve.svg"
FILES = (JSON, PAGE, CURVE)
CEILING = 0.21
"""How far two people's derivations are from each other (R4C, measured once; see FAITHFULNESS)."""
_SAID = {
    "alone": "Every fact of a gold path stated in a sentence of its own; the share that passes.",
    "in its path": ("Gold paths told whole (true), and with one fact exchanged; the share of chains that pass."),
}


def write(measured: Sequence[Measured], distances: Sequence[Distance], seed: int, folder: Path) -> str:
    """Write the files and return the page; same measurements, same bytes.

    Raises ``UserError`` where the folder cannot be written.
    """
    text = page(measured, distances, seed)
    numbers = {
        "seed": seed,
        "paper_sigma": SIGMA,
        "benchmarks": {one.benchmark: one.as_json() for one in measured},
        "distances": [
            {"who": d.who, "against": d.against, "pairs": d.pairs, "mean": d.mean,
             "nearest": d.nearest, "once": d.once, "unordered": d.unordered}
            for d in distances
        ],
    }  # fmt: skip
    content = json.dumps(numbers, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    files = {JSON: content.encode(), PAGE: text.encode("utf-8", "backslashreplace")}
    if any(one.thresholds for one in measured):
        files[CURVE] = curve_figure(measured)
    write_files(folder, FILES, files)
    return text


def page(measured: Sequence[Measured], distances: Sequence[Distance], seed: int) -> str:
    """All as Markdown."""
    parts = ["# Calibration of the judges of reasoning chains", _about(seed)]
    for one in measured:
        parts += [f"## {escaped(one.benchmark)}", _counted(one)]
        for setting in SETTINGS:
            rows = [_row(table) for table in one.tables if table.setting == setting]
            parts += [_SAID[setting], markdown([_header(one, setting), *rows])]
        parts += [*_others(one), *_repairs(one), *_thresholds(one)]
    if any(one.thresholds for one in measured):
        parts.append(f"![balanced accuracy by threshold]({CURVE})")
    if distances:
        parts += _distances(distances)
    return "\n\n".join(parts) + "\n"


def _about(seed: int) -> str:
    return (
        f"Errors are seeded (seed {seed}): a wrong value, head or relation is another question's, "
        "of the same sort, and false by the graph; none is a near-synonym of the right one. "
        "Whoever judges well passes 1.000 of true and 0.000 of the rest. Intervals (Wilson, 95%) "
        f"stand in {JSON}."
    )


def _counted(one: Measured) -> str:
    left = "; ".join(f"{count:,} left out: {why}" for why, count in sorted(one.left_out.items()))
    none = ", ".join(f"{kind} {n:,}" for (s, kind), n in sorted(one.not_made.items()) if s == "alone")
    said = f"{one.questions:,} questions{f' ({left})' if left else ''}."
    return escaped(said + (f" Facts that such an error cannot befall: {none}." if none else ""))


def _header(one: Measured, setting: str) -> tuple[str, ...]:
    known = next(t.rows for t in one.tables if t.setting == setting)
    return ("rule", *(f"{row.kind} ({row.cases:,})" for row in known), "balanced", "unjudgeable")


def _row(table: Table) -> tuple[str, ...]:
    cases = sum(row.cases for row in table.rows)
    unsure = sum(row.unjudgeable * row.cases for row in table.rows) / max(1, cases)
    name = table.judge if table.sigma is None else f"{table.judge}, σ {table.sigma:g}"
    shares = (_share(row.passed.value if row.passed else None) for row in table.rows)
    return (name, *shares, _share(table.balanced), _share(unsure))


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _others(one: Measured) -> list[str]:
    """How people's derivations do where only other people's are gold."""
    if not one.others:
        return []
    told = "; ".join(f"{judge} {share:.3f}" for judge, share in one.others.items())
    said = "An annotator's derivation told whole, those of the others being gold: faithful"
    return [escaped(f"{said} by {told}.")]


def _repairs(one: Measured) -> list[str]:
    """How often the paper's retrieval puts the true triple in the place of a false statement."""
    tables = [t for t in one.tables if t.setting == "alone" and t.sigma is not None]
    if not tables:
        return []

    def cell(row: Passed) -> str:
        return _share(row.repaired)

    rows = [(t.judge, *(cell(r) for r in t.rows if r.kind in WRONG)) for t in tables]
    said = (
        "**Repaired**: share of false statements, whether they pass or not, for which the paper's "
        "retrieval takes the true triple."
    )
    return [said, markdown([("rule", *WRONG), *rows])]


def _thresholds(one: Measured) -> list[str]:
    if not one.thresholds:
        return []
    header = (
        "rule", "σ", "balanced at it", f"balanced at {SIGMA}", "Youden", "true pass",
        "wrong tail pass",
    )  # fmt: skip
    rows = [
        (t.judge, f"{t.chosen:.2f}", *map(_share, (t.of_chosen, t.of_paper, t.youden)),
         _share(t.true_passes), _share(t.wrong_tail_passes))
        for t in one.thresholds
    ]  # fmt: skip
    said = (
        "**σ** by balanced accuracy (kinds of error alike) on half of the questions (SHA-256 of the"
        " id opens with an even byte), and what it comes to on the other half."
    )
    return [said, markdown([header, *rows])]


def _distances(distances: Sequence[Distance]) -> list[str]:
    said = (
        "Edits between two derivations over the longer of both (0-1), a fact being the sentence it "
        f"was read from; people are {CEILING} from each other on all of R4C's rows. An ideal "
        "trajectory's step stands for the sentence, of the passage it cites, that shares most "
        "words with it. Both are held against two people at a time; *of the nearest*: the nearer "
        "of the two; *once a sentence*: one that several facts come from counts the first time; "
        "*in any order*: orders left out of account."
    )
    rows = [tuple(str(value) for value in distance.row) for distance in distances]
    return ["## R4C: people, and ideal trajectories", said, markdown([HEADER, *rows])]
