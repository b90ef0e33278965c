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
"""What a report has of it."""
_WHERE = {"spurious": "itself right", "unearned": "both right"}
_SPURIOUS = ("of", "value", "low", "high", "least", "most")
_GAP = ("answer", "reasoning", "low", "high")


def console_text(measured: Record, with_tests: bool = False) -> str:
    """What a command says of measured faithfulness; ``with_tests`` also of each pair, by the first rule."""
    systems = measured["systems"]
    lines = [text_table(_summary(systems, "all"))]
    tests: Table = [("unfaithful", "alone", "against", "alone", "where", "pairs", "left out", "p")]
    key = measured["settings"]["rules"][0], None, "exact_match"
    for pair in measured["paired"]:
        if (pair["rule"], pair["benchmark"], pair["answer"]) == key:
            first, second = (_name(systems[pair[side]], systems) for side in ("first", "second"))
            numbers = _WHERE[pair["what"]], pair["pairs"], pair["left_out"], p_value(pair["p_holm"])
            tests.append([first, pair["first_only"], second, pair["second_only"], *numbers])
    if with_tests and len(tests) > 1:
        lines += ["", text_table(tests)]
    if lacking := measured["settings"]["without_evidence"]:
        lines += ["", f"questions without evidence, whose chains nothing can judge: {lacking:,}"]
    return "\n".join(lines)


def files(measured: Record) -> dict[str, bytes]:
    """The report's files by name."""
    systems, drawn = measured["systems"], figures(measured)
    benchmarks = dict.fromkeys(name for system in systems for name in system["benchmarks"])
    titles = {next(iter(benchmarks)): "all"} if len(benchmarks) == 1 else {name: name for name in ("all", *benchmarks)}
    page = fill(
        Path(__file__).parent / "templates",
        "faithfulness.md.jinja",
        simulated=measured["simulated"],
        summaries=[(title, _summary(systems, name)) for title, name in titles.items()],
        crossed=_crossed(systems),
        breaks=_breaks(systems),
        breaks_are_drawn=BREAKS in drawn,
        paired=_paired(measured),
        lacking=measured["settings"]["without_evidence"],
    )
    return {PAGE: page.encode(), CSV: csv_bytes(_csv(systems)), **drawn}


def _ruled(systems: Sequence[Record], benchmark: str) -> Iterator[tuple[str, str, Record, Record]]:
    """Of each system and rule: their names, what the questions came to, and that by the rule."""
    for system in systems:
        part = system["all"] if benchmark == "all" else system["benchmarks"].get(benchmark, {})
        for rule, ruled in part.get("rules", {}).items():
            yield _name(system, systems), rule, part, ruled


def _name(system: Record, systems: Sequence[Record]) -> str:
    """With who answers, where several do."""
    answering = [next(iter(one["players"].values()), "") for one in (system, *systems)]
    several = len(set(answering)) > 1
    return f"{answering[0]}, {system['name']}" if several else str(system["name"])


def _summary(systems: Sequence[Record], benchmark: str) -> Table:
    """By exact match; the counts are of right answers."""
    table: Table = [("method", "rule", "questions", "right", "faithful", "unfaithful", "unjudgeable",
                     "no chain", "spurious, %", "gap, points", "edits")]  # fmt: skip
    for name, rule, part, ruled in _ruled(systems, benchmark):
        answers = ruled["answers"]["exact_match"]
        right = answers["right"]
        paths, answered = [right[path] for path in get_args(Verdict)], sum(right.values())
        counts = [part["questions"], answered, *paths, answered - sum(paths)]
        table.append(
            [name, rule, *counts, _spurious(answers["spurious"]), _gap(answers["gap"]), shown(ruled["edits"], _edits)]
        )
    return table


def _crossed(systems: Sequence[Record]) -> Table:
    table: Table = [("method", "rule", "right by", "answer", *COLUMNS, "unscored")]
    for name, rule, _, ruled in _ruled(systems, "all"):
        for by, counts in ruled["answers"].items():
            for answer in ("right", "wrong"):
                paths = [counts[answer][column] for column in COLUMNS]
                table.append([name, rule, by.replace("_", " "), answer, *paths, counts["unscored"]])
    return table


def _breaks(systems: Sequence[Record]) -> Table:
    table: Table = [("method", "rule", "step", "fault", "chains", "of them right")]
    for name, rule, _, ruled in _ruled(systems, "all"):
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
        by = (pair["answer"] or NOTHING).replace("_", " ")
        counts = [pair[name] for name in ("pairs", "left_out", "first_only", "second_only")]
        tests = [p_value(pair["p"]), p_value(pair["p_holm"])]
        table.append([*names, pair["rule"], pair["benchmark"] or "all", pair["what"], by, *counts, *tests])
    return table


def _csv(systems: Sequence[Record]) -> Table:
    both = [(answer, column) for answer in ("right", "wrong") for column in COLUMNS]
    table: Table = [
        ("method", "benchmark", "rule", "right_by", "questions", *map("_".join, both), "unscored",
         *(f"spurious_{name}" for name in _SPURIOUS), *(f"gap_{name}" for name in _GAP),
         "edits", "edits_normalised", "simulated")
    ]  # fmt: skip
    for system in systems:
        for benchmark in ("all", *system["benchmarks"]):
            part = system["all"] if benchmark == "all" else system["benchmarks"][benchmark]
            about = [_name(system, systems), benchmark]
            for rule, ruled in part["rules"].items():
                edits = [(ruled["edits"] or {}).get(name, "") for name in ("count", "normalised")]
                last = [*edits, str(system["simulated"]).lower()]
                for by, counts in ruled["answers"].items():
                    numbers = [counts[answer][column] for answer, column in both]
                    shares = [counts["spurious"][n] for n in _SPURIOUS] + [counts["gap"][n] for n in _GAP]
                    cells = [*numbers, counts["unscored"], *(shown(share, missing="") for share in shares)]
                    table.append([*about, rule, by, part["questions"], *cells, *last])
    return table


def _spurious(share: Record) -> str:
    value, low, high, least, most = (shown(share[name], percent) for name in _SPURIOUS[1:])
    return f"{value} [{least}, {most}]" if share["value"] is None else f"{value} ({low} to {high}) [{least}, {most}]"


def _gap(gap: Record) -> object:
    low, high = (shown(gap[end], percent) for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def _edits(edits: Record) -> str:
    return f"{edits['count']:.2f} ({edits['normalised']:.1f})"
