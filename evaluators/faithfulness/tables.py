"""Render the measures of `evaluators.faithfulness` as tables and a figure, for the console and for a report's page.

The figure is SVG, and equal numbers give equal bytes. Names are drawn as outlines, so that no text of a run becomes
part of a page.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from evaluators.faithfulness.judged_outcomes import COLUMNS
from safe_stepwise.checking.faithfulness import grounds, groups
from safe_stepwise.store.figures import panels, svg
from safe_stepwise.store.names import SIMULATED
from safe_stepwise.store.published_tables import published
from safe_stepwise.store.tables import NOTHING, Table, fill, format_cell, p_value, percent, text_table

PAGE, MOSAIC = "faithfulness.md", "faithfulness.svg"
FILES = (PAGE, MOSAIC)
"""The files of faithfulness in a report."""
COLORS = {"faithful": "#228833", "unfaithful": "#cc3311", "unjudgeable": "#ccbb44", "no chain": "#bbbbbb"}
_TEXT_COLORS = {"faithful": "white", "unfaithful": "white", "unjudgeable": "black", "no chain": "black"}
_MAX_NAME_CHARS = 48
"""The maximum number of characters of a system's name in a figure."""
Record = Mapping[str, Any]


def draw_mosaic(measured: Record) -> bytes:
    """Draw answer × path for each system and rule: widths are shares of answers, heights are shares of paths."""
    rules = measured["settings"]["rules"]
    return panels(_draw_panel, [[(s, rule) for rule in rules] for s in measured["systems"]], (5.2, 3.0), svg)


def count_paths(counts: Mapping[str, int]) -> dict[str, int]:
    """Sum up the counts of results without a chain, and return them after those of the verdicts.

    >>> count_paths({"faithful": 3, "unfaithful": 1, "unjudgeable": 0, "abstained": 2, "failed": 1})
    {'faithful': 3, 'unfaithful': 1, 'unjudgeable': 0, 'no chain': 3}
    """
    paths = get_args(grounds.Verdict)
    without_chain = sum(count for name, count in counts.items() if name not in paths)
    return {**{path: counts[path] for path in paths}, "no chain": without_chain}


def _title_panel(system: Record) -> str:
    player = str(next(iter(system["players"].values()), ""))
    texts = str(system["name"]).removesuffix(SIMULATED if SIMULATED in player else ""), player
    names = ("".join(char if char.isprintable() else " " for char in text) for text in texts)
    lines = (name if len(name) <= _MAX_NAME_CHARS else f"{name[: _MAX_NAME_CHARS - 1]}…" for name in names)
    return "\n".join(filter(None, lines))


def _draw_panel(axes: Any, cell: tuple[Any, str]) -> None:
    system, rule = cell
    for answer, left_edge, width, path, bottom, height, count in lay_out_mosaic(system["all"]["rules"][rule]):
        axes.bar(left_edge, height, width, bottom, align="edge", color=COLORS[path], edgecolor="w")
        if width > 0.06 and height > 0.1:
            center = left_edge + width / 2, bottom + height / 2
            text = f"{path} {count}" if width > 0.3 else str(count)
            axes.text(*center, text, ha="center", va="center", fontsize=11, color=_TEXT_COLORS[path])
        if not bottom:
            is_shown = width > 0.12
            axes.text(left_edge + width / 2, -0.06, answer * is_shown, ha="center", va="top", fontsize=11)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_title(f"{_title_panel(system)}\n{rule} rule", fontsize=11)


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


def render_text(measured: Record) -> str:
    """Render the summary for the console: right answers and their chains by the first rule; the page has the rest."""
    systems, rule = measured["systems"], measured["settings"]["rules"][0]
    table: Table = [("method", "right", *get_args(grounds.Verdict), "spurious, %")]
    for name, own_rule, _, ruled in _rule_records(systems, "all"):
        answers = ruled["answers"]["exact_match"]
        if own_rule == rule:
            right = answers["right"]
            paths = [right[path] for path in get_args(grounds.Verdict)]
            table.append([name, sum(right.values()), *paths, _format_spurious(answers["spurious"], with_bounds=False)])
    lines = [text_table(table), "", f"chains of right answers, by the rule {rule}; {PAGE} has more"]
    if lacking := measured["settings"]["without_evidence"]:
        lines += ["", f"questions without evidence, whose chains nothing can judge: {lacking:,}"]
    return "\n".join(lines)


def render_files(measured: Record) -> dict[str, bytes]:
    """Render the page and the figure, and return them by name."""
    systems = measured["systems"]
    benchmarks = dict.fromkeys(name for system in systems for name in system["benchmarks"])
    titles = {next(iter(benchmarks)): "all"} if len(benchmarks) == 1 else {name: name for name in ("all", *benchmarks)}
    page = fill(
        Path(__file__).parent / "templates",
        "faithfulness.md.jinja",
        simulated=measured["simulated"],
        summaries=[(t, _tabulate_summary(systems, n), _tabulate_scores(systems, n)) for t, n in titles.items()],
        crossed=_tabulate_answers(systems),
        breaks=_tabulate_breaks(systems),
        paired=_tabulate_pairs(measured),
        lacking=measured["settings"]["without_evidence"],
        published=published(),
    )
    return {PAGE: page.encode(), MOSAIC: draw_mosaic(measured)}


def _rule_records(systems: Sequence[Record], benchmark: str) -> Iterator[tuple[str, str, Record, Record]]:
    for system in systems:
        system_counts = system["all"] if benchmark == "all" else system["benchmarks"].get(benchmark, {})
        for rule, ruled in system_counts.get("rules", {}).items():
            yield _name_system(system, systems), rule, system_counts, ruled


def _name_system(system: Record, systems: Sequence[Record]) -> str:
    answering = [next(iter(record["players"].values()), "") for record in (system, *systems)]
    if len(set(answering)) == 1:
        return str(system["name"])
    name = str(system["name"]).removesuffix(SIMULATED if SIMULATED in answering[0] else "")
    return f"{answering[0]}, {name}"


def _tabulate_summary(systems: Sequence[Record], benchmark: str) -> Table:
    table: Table = [("method", "rule", "questions", "right", "faithful", "unfaithful", "unjudgeable",
                     "no chain", "spurious, %", "gap, points", "edits")]  # fmt: skip
    for name, rule, group, ruled in _rule_records(systems, benchmark):
        answers = ruled["answers"]["exact_match"]
        right = answers["right"]
        paths, answered = [right[path] for path in get_args(grounds.Verdict)], sum(right.values())
        counts = [group["questions"], answered, *paths, answered - sum(paths)]
        low, high = (format_cell(answers["gap"][end], percent) for end in ("low", "high"))
        gap = low if low == high else f"{low} to {high}"
        edits = format_cell(ruled["edits"], lambda edits: f"{edits['count']:.2f} ({edits['normalised']:.1f})")
        table.append([name, rule, *counts, _format_spurious(answers["spurious"]), gap, edits])
    return table


def _tabulate_scores(systems: Sequence[Record], benchmark: str) -> Table:
    """Make the table of the paper's scores, by the rule's own comparison of answers."""
    table: Table = [("method", "rule", "responses", "left out", "reasoning P", "R", "F1",
                     "answer P", "R", "F1", "gap of F1")]  # fmt: skip
    for name, rule, _, ruled in _rule_records(systems, benchmark):
        scores = ruled["answers"]["rule"]["scores"]
        shares = [scores[scored][share] for scored in groups.SCORED for share in groups.SHARES]
        cells = [format_cell(share, percent) for share in (*shares, scores["gap"])]
        table.append([name, rule, scores["of"], scores["left_out"], *cells])
    return table


def _tabulate_answers(systems: Sequence[Record]) -> Table:
    table: Table = [("method", "rule", "right by", "answer", *COLUMNS, "unscored")]
    for name, rule, _, ruled in _rule_records(systems, "all"):
        for measure, counts in ruled["answers"].items():
            for answer in ("right", "wrong"):
                paths = [counts[answer][column] for column in COLUMNS]
                table.append([name, rule, measure.replace("_", " "), answer, *paths, counts["unscored"]])
    return table


def _tabulate_breaks(systems: Sequence[Record]) -> Table:
    table: Table = [("method", "rule", "step", "fault", "chains", "of them right")]
    for name, rule, _, ruled in _rule_records(systems, "all"):
        for place in ruled["breaks"]:
            step = place["position"] or "whole"
            table.append([name, rule, step, place["fault"], place["chains"], place["right"]])
    return table


def _tabulate_pairs(measured: Record) -> Table:
    systems = measured["systems"]
    table: Table = [("first", "second", "rule", "on", "what", "right by", "pairs", "left out",
                     "first alone", "second alone", "p", "Holm's p")]  # fmt: skip
    for pair in measured["paired"]:
        names = [_name_system(systems[pair[side]], systems) for side in ("first", "second")]
        measure = (pair["answer"] or NOTHING).replace("_", " ")
        counts = [pair[name] for name in ("pairs", "left_out", "first_only", "second_only")]
        tests = [p_value(pair["p"]), p_value(pair["p_holm"])]
        table.append([*names, pair["rule"], pair["benchmark"] or "all", pair["what"], measure, *counts, *tests])
    return table


def _format_spurious(share: Record, *, with_bounds: bool = True) -> str:
    value, low, high, lower, upper = (
        format_cell(share[name], percent) for name in ("value", "low", "high", "least", "most")
    )
    interval = "" if share["value"] is None else f" ({low} to {high})"
    return f"{value}{interval}" + (f" [{lower}, {upper}]" if with_bounds or not interval else "")
