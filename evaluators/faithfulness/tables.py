"""The numbers of `evaluators.faithfulness` as tables: on the console, and as a report's page."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from evaluators.faithfulness.figures import BREAKS, FIGURES, figures
from evaluators.faithfulness.lines import COLUMNS
from safe_stepwise.checking.faithfulness.grounds import Verdict
from safe_stepwise.store.tables import NOTHING, Table, csv_bytes, fill, p_value, percent, shown, text_table

Record = Mapping[str, Any]
PAGE, CSV = "faithfulness.md", "faithfulness.csv"
FILES = (PAGE, CSV, *FIGURES)
"""The files of faithfulness in a report."""
_BASES = {"spurious": "itself right", "unearned": "both right"}
_SPURIOUS = ("of", "value", "low", "high", "least", "most")
_GAP = ("answer", "reasoning", "low", "high")


def console_text(measured: Record, with_tests: bool = False) -> str:
    """Return a command's text on measured faithfulness; ``with_tests`` adds pairs, by the first rule."""
    systems = measured["systems"]
    lines = [text_table(_summary(systems, "all"))]
    tests: Table = [("unfaithful", "alone", "against", "alone", "where", "pairs", "left out", "p")]
    key = measured["settings"]["rules"][0], None, "exact_match"
    for pair in measured["paired"]:
        if (pair["rule"], pair["benchmark"], pair["answer"]) == key:
            first, peer = (_name(systems[pair[side]], systems) for side in ("first", "second"))
            numbers = _BASES[pair["what"]], pair["pairs"], pair["left_out"], p_value(pair["p_holm"])
            tests.append([first, pair["first_only"], peer, pair["second_only"], *numbers])
    if with_tests and len(tests) > 1:
        lines += ["", text_table(tests)]
    if lacking := measured["settings"]["without_evidence"]:
        lines += ["", f"questions without evidence, whose chains nothing can judge: {lacking:,}"]
    return "\n".join(lines)


def files(measured: Record) -> dict[str, bytes]:
    """Return the report's files by name."""
    systems, drawings = measured["systems"], figures(measured)
    benchmarks = dict.fromkeys(name for system in systems for name in system["benchmarks"])
    titles = {next(iter(benchmarks)): "all"} if len(benchmarks) == 1 else {name: name for name in ("all", *benchmarks)}
    page = fill(
        Path(__file__).parent / "templates",
        "faithfulness.md.jinja",
        simulated=measured["simulated"],
        summaries=[(title, _summary(systems, name)) for title, name in titles.items()],
        crossed=_crossed(systems),
        breaks=_breaks(systems),
        breaks_are_drawn=BREAKS in drawings,
        paired=_paired(measured),
        lacking=measured["settings"]["without_evidence"],
    )
    return {PAGE: page.encode(), CSV: csv_bytes(_csv(systems)), **drawings}


def _rule_records(systems: Sequence[Record], benchmark: str) -> Iterator[tuple[str, str, Record, Record]]:
    """Yield each system's name and rule, with the record of its questions, and that of the rule."""
    for system in systems:
        counts_ = system["all"] if benchmark == "all" else system["benchmarks"].get(benchmark, {})
        for rule, ruled in counts_.get("rules", {}).items():
            yield _name(system, systems), rule, counts_, ruled


def _name(system: Record, systems: Sequence[Record]) -> str:
    """Return a system's name, with its answerer where there are several."""
    answering = [next(iter(record["players"].values()), "") for record in (system, *systems)]
    has_several = len(set(answering)) > 1
    return f"{answering[0]}, {system['name']}" if has_several else str(system["name"])


def _summary(systems: Sequence[Record], benchmark: str) -> Table:
    """Return the summary by exact match; its counts are of right answers."""
    table: Table = [("method", "rule", "questions", "right", "faithful", "unfaithful", "unjudgeable",
                     "no chain", "spurious, %", "gap, points", "edits")]  # fmt: skip
    for name, rule, group, ruled in _rule_records(systems, benchmark):
        answers = ruled["answers"]["exact_match"]
        right = answers["right"]
        paths, answered = [right[path] for path in get_args(Verdict)], sum(right.values())
        counts = [group["questions"], answered, *paths, answered - sum(paths)]
        low, high = (shown(answers["gap"][end], percent) for end in ("low", "high"))
        gap = low if low == high else f"{low} to {high}"
        edits = shown(ruled["edits"], lambda edits: f"{edits['count']:.2f} ({edits['normalised']:.1f})")
        table.append([name, rule, *counts, _spurious(answers["spurious"]), gap, edits])
    return table


def _crossed(systems: Sequence[Record]) -> Table:
    table: Table = [("method", "rule", "right by", "answer", *COLUMNS, "unscored")]
    for name, rule, _, ruled in _rule_records(systems, "all"):
        for measure, counts in ruled["answers"].items():
            for answer in ("right", "wrong"):
                paths = [counts[answer][column] for column in COLUMNS]
                table.append([name, rule, measure.replace("_", " "), answer, *paths, counts["unscored"]])
    return table


def _breaks(systems: Sequence[Record]) -> Table:
    table: Table = [("method", "rule", "step", "fault", "chains", "of them right")]
    for name, rule, _, ruled in _rule_records(systems, "all"):
        for place in ruled["breaks"]:
            step = place["position"] or "whole"
            table.append([name, rule, step, place["fault"], place["chains"], place["right"]])
    return table


def _paired(measured: Record) -> Table:
    systems = measured["systems"]
    table: Table = [("first", "second", "rule", "on", "what", "right by", "pairs", "left out",
                     "first alone", "second alone", "p", "Holm's p")]  # fmt: skip
    for pair in measured["paired"]:
        names = [_name(systems[pair[side]], systems) for side in ("first", "second")]
        measure = (pair["answer"] or NOTHING).replace("_", " ")
        counts = [pair[name] for name in ("pairs", "left_out", "first_only", "second_only")]
        tests = [p_value(pair["p"]), p_value(pair["p_holm"])]
        table.append([*names, pair["rule"], pair["benchmark"] or "all", pair["what"], measure, *counts, *tests])
    return table


def _csv(systems: Sequence[Record]) -> Table:
    cells_ = [(answer, column) for answer in ("right", "wrong") for column in COLUMNS]
    table: Table = [
        ("method", "benchmark", "rule", "right_by", "questions", *map("_".join, cells_), "unscored",
         *(f"spurious_{name}" for name in _SPURIOUS), *(f"gap_{name}" for name in _GAP),
         "edits", "edits_normalised", "simulated")
    ]  # fmt: skip
    for system in systems:
        for benchmark in ("all", *system["benchmarks"]):
            group = system["all"] if benchmark == "all" else system["benchmarks"][benchmark]
            subject = [_name(system, systems), benchmark]
            for rule, ruled in group["rules"].items():
                edits = [(ruled["edits"] or {}).get(name, "") for name in ("count", "normalised")]
                ending = [*edits, str(system["simulated"]).lower()]
                for measure, counts in ruled["answers"].items():
                    numbers = [counts[answer][column] for answer, column in cells_]
                    shares = [counts["spurious"][n] for n in _SPURIOUS] + [counts["gap"][n] for n in _GAP]
                    cells = [*numbers, counts["unscored"], *(shown(share, missing="") for share in shares)]
                    table.append([*subject, rule, measure, group["questions"], *cells, *ending])
    return table


def _spurious(share: Record) -> str:
    value, low, high, lower, upper = (shown(share[name], percent) for name in _SPURIOUS[1:])
    return f"{value} [{lower}, {upper}]" if share["value"] is None else f"{value} ({low} to {high}) [{lower}, {upper}]"
