"""Render the measures of `evaluators.faithfulness` as tables and figures, for the console and for a report's page.

Figures are SVG, and equal numbers give equal bytes. They have a panel for each rule, or for each system and rule.
Names and faults are drawn as outlines, so that no text of a run becomes part of a page.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from evaluators.faithfulness.judged_outcomes import COLUMNS
from safe_stepwise.checking.faithfulness.grounds import FAULTS, Verdict
from safe_stepwise.checking.faithfulness.groups import SCORED, SHARES
from safe_stepwise.store.figures import panels, svg
from safe_stepwise.store.published_tables import published
from safe_stepwise.store.tables import NOTHING, Table, csv_bytes, fill, format_cell, mark, p_value, percent, text_table

GAPS, BREAKS, PATHS = (f"faithfulness_{name}.svg" for name in ("gaps", "breaks", "paths"))
FIGURES = {
    GAPS: "Right answers by the chain that reached them",
    BREAKS: "Where chains break",  # unfaithful chains by first bad step and fault
    PATHS: "Answer and path",  # a mosaic: widths are of answers, heights of paths
}
"""Titles of the figures by file."""
COLORS = {"faithful": "#228833", "unfaithful": "#cc3311", "unjudgeable": "#ccbb44", "no chain": "#bbbbbb"}
_TEXT = {"faithful": "white", "unfaithful": "white", "unjudgeable": "black", "no chain": "black"}
_MAX_NAME_LENGTH = 56
"""Characters of a system's name in a figure."""
Record = Mapping[str, Any]


def draw_figures(measured: Record) -> dict[str, bytes]:
    """Draw the figures of ``faithfulness.json``, by file; leave out that of breaks if no chain breaks."""
    systems, rules = measured["systems"], measured["settings"]["rules"]
    cells = [[(system, rule) for rule in rules] for system in systems]
    is_broken = any(_rule_record(*cell)["breaks"] for row in cells for cell in row)
    return {
        GAPS: _gaps(measured, systems, rules),
        **({BREAKS: _draw_breaks(cells)} if is_broken else {}),
        PATHS: panels(_mosaic_panel, cells, (5.2, 2.6), svg),
    }


def _rule_record(system: Record, rule: str) -> Record:
    record: Record = system["all"]["rules"][rule]
    return record


def count_paths(counts: Mapping[str, int]) -> dict[str, int]:
    """Sum up the counts of results without a chain, and return them after those of the verdicts.

    >>> count_paths({"faithful": 3, "unfaithful": 1, "unjudgeable": 0, "abstained": 2, "failed": 1})
    {'faithful': 3, 'unfaithful': 1, 'unjudgeable': 0, 'no chain': 3}
    """
    paths = get_args(Verdict)
    without_chain = sum(count for name, count in counts.items() if name not in paths)
    return {**{path: counts[path] for path in paths}, "no chain": without_chain}


def _label(system: Record) -> str:
    texts = str(system["name"]), str(next(iter(system["players"].values()), ""))
    names = ("".join(char if char.isprintable() else " " for char in text) for text in texts)
    lines = (name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 1]}…" for name in names)
    return "\n".join(filter(None, lines))


def _gaps(measured: Record, systems: Sequence[Any], rules: Sequence[str]) -> bytes:
    def panel(axes: Any, rule: str) -> None:
        starts = [0.0] * len(systems)
        answers = [_rule_record(system, rule)["answers"]["exact_match"] for system in systems]
        right = [count_paths(record["right"]) for record in answers]
        for path, color in COLORS.items():
            pairs = zip(systems, right, strict=True)
            shares = [100 * counts[path] / max(1, system["all"]["questions"]) for system, counts in pairs]
            axes.barh(range(len(systems)), shares, 0.62, starts, color=color, label=path)
            starts = [start + share for start, share in zip(starts, shares, strict=True)]
        for row, record in enumerate(answers):
            low, high = (100 * (record["gap"][end] or 0) for end in ("low", "high"))
            gap = f"gap {low:.1f}" if low == high else f"gap {low:.1f} to {high:.1f}"
            axes.text(starts[row] + 1, row, gap, va="center", fontsize=7)
        axes.set_yticks(range(len(systems)), [_label(system) for system in systems], fontsize=7)
        axes.invert_yaxis()
        axes.set_xlim(0, 130)
        axes.set_xticks(range(0, 101, 20))
        axes.set_xlabel("right answers, % of all questions", fontsize=8)
        axes.set_title(f"{rule} rule{mark(measured['simulated'])}", fontsize=9)
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))

    return panels(panel, [[rule] for rule in rules], (8.4, 1.5 + 0.5 * len(systems)), svg)


def _draw_breaks(cells: Sequence[Sequence[tuple[Any, str]]]) -> bytes:
    all_breaks = [_rule_record(*cell)["breaks"] for row in cells for cell in row]
    # One scale for all panels; counts can be read on the darkest.
    darkest = 1.6 * max(place["chains"] for breaks in all_breaks for place in breaks)

    def panel(axes: Any, cell: tuple[Any, str]) -> None:
        breaks = {(place["fault"], place["position"]): place for place in _rule_record(*cell)["breaks"]}
        axes.set_title(_title(*cell), fontsize=8)
        if not breaks:
            axes.set_axis_off()
            axes.text(0.5, 0.5, "no chain breaks", ha="center", va="center", fontsize=8)
            return
        positions = sorted({position for _, position in breaks}, key=lambda position: (position is None, position))
        faults = [fault for fault in FAULTS if any(fault == broken for broken, _ in breaks)]
        chains = {key: place["chains"] for key, place in breaks.items()}
        grid = [[chains.get((fault, position), 0) for position in positions] for fault in faults]
        axes.pcolormesh(grid, cmap="Reds", vmin=0, vmax=darkest)
        axes.invert_yaxis()
        for y, fault in enumerate(faults):
            for x, position in enumerate(positions):
                if place := breaks.get((fault, position)):
                    text = f"{place['chains']}\n{place['right']} right"
                    axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=7)
        names = ["whole\nchain" if position is None else f"step {position}" for position in positions]
        axes.set_xticks([n + 0.5 for n in range(len(positions))], names, fontsize=7)
        axes.set_yticks([n + 0.5 for n in range(len(faults))], faults, fontsize=8)

    tallest = max(len({place["fault"] for place in breaks}) for breaks in all_breaks)
    return panels(panel, cells, (5.2, 1.3 + 0.5 * tallest), svg)


def _mosaic_panel(axes: Any, cell: tuple[Any, str]) -> None:
    for answer, left_edge, width, path, bottom, height, count in lay_out_mosaic(_rule_record(*cell)):
        axes.bar(left_edge, height, width, bottom, align="edge", color=COLORS[path], edgecolor="w")
        if width > 0.06 and height > 0.06:
            center = left_edge + width / 2, bottom + height / 2
            axes.text(*center, f"{path} {count}", ha="center", va="center", fontsize=7, color=_TEXT[path])
        if not bottom:
            axes.text(left_edge + width / 2, -0.06, answer, ha="center", va="top", fontsize=8)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_title(_title(*cell), fontsize=8)


def lay_out_mosaic(record: Record) -> Iterator[tuple[str, float, float, str, float, float, int]]:
    """Yield the boxes of answer × path in a unit square: answer, left, width, path, bottom, height, count."""
    table = record["answers"]["exact_match"]
    columns = {answer: count_paths(table[answer]) for answer in ("right", "wrong")}
    total = sum(sum(counts.values()) for counts in columns.values())
    left_edge = 0.0
    for answer, counts in columns.items():
        answer_count, bottom = sum(counts.values()), 0.0
        for path, count in counts.items():
            if count:
                yield answer, left_edge, answer_count / total, path, bottom, count / answer_count, count
                bottom += count / answer_count
        left_edge += answer_count / max(1, total)


def _title(system: Record, rule: str) -> str:
    return f"{_label(system)}\n{rule} rule"


PAGE, CSV = "faithfulness.md", "faithfulness.csv"
FILES = (PAGE, CSV, *FIGURES)
"""The files of faithfulness in a report."""
_BASES = {"spurious": "itself right", "unearned": "both right"}
_SPURIOUS = ("of", "value", "low", "high", "least", "most")
_GAP = ("answer", "reasoning", "low", "high")


def render_text(measured: Record, with_tests: bool = False) -> str:
    """Render the summary for the console; ``with_tests`` adds the tests of pairs by the first rule."""
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


def render_files(measured: Record) -> dict[str, bytes]:
    """Render the page, the CSV file and the figures, and return them by name."""
    systems, drawings = measured["systems"], draw_figures(measured)
    benchmarks = dict.fromkeys(name for system in systems for name in system["benchmarks"])
    titles = {next(iter(benchmarks)): "all"} if len(benchmarks) == 1 else {name: name for name in ("all", *benchmarks)}
    page = fill(
        Path(__file__).parent / "templates",
        "faithfulness.md.jinja",
        simulated=measured["simulated"],
        summaries=[(title, _summary(systems, name), _scores(systems, name)) for title, name in titles.items()],
        crossed=_crossed(systems),
        breaks=_breaks(systems),
        breaks_are_drawn=BREAKS in drawings,
        paired=_paired(measured),
        lacking=measured["settings"]["without_evidence"],
        published=published(),
    )
    return {PAGE: page.encode(), CSV: csv_bytes(_csv(systems)), **drawings}


def _rule_records(systems: Sequence[Record], benchmark: str) -> Iterator[tuple[str, str, Record, Record]]:
    for system in systems:
        system_counts = system["all"] if benchmark == "all" else system["benchmarks"].get(benchmark, {})
        for rule, ruled in system_counts.get("rules", {}).items():
            yield _name(system, systems), rule, system_counts, ruled


def _name(system: Record, systems: Sequence[Record]) -> str:
    answering = [next(iter(record["players"].values()), "") for record in (system, *systems)]
    has_several = len(set(answering)) > 1
    return f"{answering[0]}, {system['name']}" if has_several else str(system["name"])


def _summary(systems: Sequence[Record], benchmark: str) -> Table:
    table: Table = [("method", "rule", "questions", "right", "faithful", "unfaithful", "unjudgeable",
                     "no chain", "spurious, %", "gap, points", "edits")]  # fmt: skip
    for name, rule, group, ruled in _rule_records(systems, benchmark):
        answers = ruled["answers"]["exact_match"]
        right = answers["right"]
        paths, answered = [right[path] for path in get_args(Verdict)], sum(right.values())
        counts = [group["questions"], answered, *paths, answered - sum(paths)]
        low, high = (format_cell(answers["gap"][end], percent) for end in ("low", "high"))
        gap = low if low == high else f"{low} to {high}"
        edits = format_cell(ruled["edits"], lambda edits: f"{edits['count']:.2f} ({edits['normalised']:.1f})")
        table.append([name, rule, *counts, _spurious(answers["spurious"]), gap, edits])
    return table


def _scores(systems: Sequence[Record], benchmark: str) -> Table:
    """Make the table of the paper's scores, by the rule's own comparison of answers."""
    table: Table = [("method", "rule", "responses", "left out", "reasoning P", "R", "F1",
                     "answer P", "R", "F1", "gap of F1")]  # fmt: skip
    for name, rule, _, ruled in _rule_records(systems, benchmark):
        scores = ruled["answers"]["rule"]["scores"]
        shares = [scores[scored][share] for scored in SCORED for share in SHARES]
        cells = [format_cell(share, percent) for share in (*shares, scores["gap"])]
        table.append([name, rule, scores["of"], scores["left_out"], *cells])
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
    answer_columns = [(answer, column) for answer in ("right", "wrong") for column in COLUMNS]
    table: Table = [
        ("method", "benchmark", "rule", "right_by", "questions", *map("_".join, answer_columns), "unscored",
         *(f"spurious_{name}" for name in _SPURIOUS), *(f"gap_{name}" for name in _GAP), "responses",
         *(f"{scored}_{share}" for scored in SCORED for share in SHARES), "gap_f1",
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
                    numbers = [counts[answer][column] for answer, column in answer_columns]
                    shares = [counts["spurious"][n] for n in _SPURIOUS] + [counts["gap"][n] for n in _GAP]
                    scores = counts["scores"]
                    shares += [scores["of"], *(scores[scored][share] for scored in SCORED for share in SHARES)]
                    shares.append(scores["gap"])
                    cells = [*numbers, counts["unscored"], *(format_cell(share, missing="") for share in shares)]
                    table.append([*subject, rule, measure, group["questions"], *cells, *ending])
    return table


def _spurious(share: Record) -> str:
    value, low, high, lower, upper = (format_cell(share[name], percent) for name in _SPURIOUS[1:])
    return f"{value} [{lower}, {upper}]" if share["value"] is None else f"{value} ({low} to {high}) [{lower}, {upper}]"
