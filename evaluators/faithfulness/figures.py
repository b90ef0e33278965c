"""The figures of measured faithfulness as SVG; equal numbers give equal bytes.

==========================  ========================================================================
``faithfulness_gaps``       right answers of each system, by the kind of chain that reached them
``faithfulness_breaks``     where chains break: unfaithful chains by first bad step and fault
``faithfulness_paths``      answer × path as a mosaic: widths are of answers, heights of paths
==========================  ========================================================================

One panel a rule; or a row a system, a column a rule. Names and faults are drawn as outlines, so
that no text of a run becomes part of a page.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from safe_stepwise.checking.faithfulness.grounds import FAULTS, Verdict
from safe_stepwise.store.figures import panels, svg
from safe_stepwise.store.tables import mark

GAPS, BREAKS, PATHS = (f"faithfulness_{name}.svg" for name in ("gaps", "breaks", "paths"))
FIGURES = {
    GAPS: "Right answers by the chain that reached them",
    BREAKS: "Where chains break",
    PATHS: "Answer and path",
}
"""Titles of the figures by file."""
COLORS = {"faithful": "#228833", "unfaithful": "#cc3311", "unjudgeable": "#ccbb44", "no chain": "#bbbbbb"}
_TEXT = {"faithful": "white", "unfaithful": "white", "unjudgeable": "black", "no chain": "black"}
_LONGEST = 56
"""The maximum of characters of a system's name."""
Record = Mapping[str, Any]


def figures(measured: Record) -> dict[str, bytes]:
    """Draw the figures of ``faithfulness.json``, by file; breaks only where there are any."""
    systems, rules = measured["systems"], measured["settings"]["rules"]
    cells = [[(system, rule) for rule in rules] for system in systems]
    is_broken = any(_rule_record(*cell)["breaks"] for row in cells for cell in row)
    return {
        GAPS: _gaps(measured, systems, rules),
        **({BREAKS: _breaks(cells)} if is_broken else {}),
        PATHS: panels(_mosaic_panel, cells, (5.2, 2.6), svg),
    }


def _rule_record(system: Record, rule: str) -> Record:
    record: Record = system["all"]["rules"][rule]
    return record


def path_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Reduce one row of answer × path to the verdicts on chains and one count without chain.

    >>> path_counts({"faithful": 3, "unfaithful": 1, "unjudgeable": 0, "abstained": 2, "failed": 1})
    {'faithful': 3, 'unfaithful': 1, 'unjudgeable': 0, 'no chain': 3}
    """
    paths = get_args(Verdict)
    without_chain = sum(count for name, count in counts.items() if name not in paths)
    return {**{path: counts[path] for path in paths}, "no chain": without_chain}


def _label(system: Record) -> str:
    texts = str(system["name"]), str(next(iter(system["players"].values()), ""))
    names = ("".join(char if char.isprintable() else " " for char in text) for text in texts)
    lines = (name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names)
    return "\n".join(filter(None, lines))


def _gaps(measured: Record, systems: Sequence[Any], rules: Sequence[str]) -> bytes:
    def panel(axes: Any, rule: str) -> None:
        starts = [0.0] * len(systems)
        answers = [_rule_record(system, rule)["answers"]["exact_match"] for system in systems]
        right = [path_counts(record["right"]) for record in answers]
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


def _breaks(cells: Sequence[Sequence[tuple[Any, str]]]) -> bytes:
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
    for answer, left_edge, width, path, bottom, height, count in mosaic(_rule_record(*cell)):
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


def mosaic(record: Record) -> Iterator[tuple[str, float, float, str, float, float, int]]:
    """Yield the boxes of answer × path (exact match), in a unit square.

    A box is answer, left edge, width, path, bottom edge, height and count.
    """
    table = record["answers"]["exact_match"]
    columns = {answer: path_counts(table[answer]) for answer in ("right", "wrong")}
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
