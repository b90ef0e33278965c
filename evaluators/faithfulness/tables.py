"""The numbers of `evaluators.faithfulness` as tables: on the console, and as a report's page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluators.comparison.tables import (
    NOTHING,
    Table,
    csv_bytes,
    escaped,
    mark,
    markdown,
    p_text,
    percent,
)
from evaluators.faithfulness.summary import COLUMNS

PAGE, CSV = "faithfulness.md", "faithfulness.csv"
FILES = (PAGE, CSV)
"""What a report has of it."""
SAID = (
    "Of each chain of reasoning: does it follow the question's annotated path? *House*: what each "
    "step states, directed, against that path and the passages. *Paper*: the rule of "
    "arXiv 2402.11199, whose retrieval puts the true triple in a false one's place, so that it "
    "passes much that is wrong. Spurious: the share of right answers whose chain is unfaithful, "
    "with Wilson's 95% interval; in brackets its bounds if all unjudgeable chains were faithful, "
    "or unfaithful. Gap: answers less those reached by a faithful chain, in percentage points of "
    "all questions; the first number counts what is shown to be unfaithful alone. Edits: to the "
    "nearest gold path, a chain; and out of 100, over the longer of both."
)
PAIRED = (
    "Questions on which the one system alone is spurious (right by an unfaithful chain), or "
    "unfaithful; McNemar's exact test, Holm's p over the pairs of one rule and measure. Undecided "
    "questions of either are left out."
)
_HEADER = ("method", "rule", "questions", "right", "faithful", "unfaithful", "unjudgeable",
           "spurious, %", "gap, points", "edits")  # fmt: skip


def said_of(found: Mapping[str, Any]) -> str:
    """What there is to say on the console: text without marks."""
    rows = [_HEADER, *_rows(found["systems"], "all")]
    lines = [_console(rows), ""]
    lines += [_tested(found, one) for one in found["paired"] if _is_told(one)]
    lacking = found["settings"]["without_evidence"]
    if lacking:
        lines.append(f"questions without evidence, whose chains nothing can judge: {lacking:,}")
    if found["simulated"]:
        lines.append("simulated: an engine without a model took part, so no number is a result")
    return "\n".join(lines).rstrip()


def _console(rows: Sequence[Sequence[object]]) -> str:
    from safe_stepwise.store.tables import table

    return table(rows)


def _is_told(one: Mapping[str, Any]) -> bool:
    """On the console: the house's rule, if it was measured, exact matches, all benchmarks."""
    return one["benchmark"] is None and one["what"] == "spurious" and one["answer"] == "exact_match"


def _tested(found: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    names = [_name(found["systems"][one[which]]) for which in ("first", "second")]
    return (
        f"{one['rule']}: {names[0]} is spurious alone on {one['first_only']} of {one['pairs']} "
        f"questions, {names[1]} on {one['second_only']} (p {p_text(one['p_holm'])}, "
        f"{one['left_out']} left out)"
    )


def files(found: Mapping[str, Any]) -> dict[str, bytes]:
    """The report's files by name."""
    return {PAGE: _page(found).encode(), CSV: csv_bytes(_csv(found["systems"]))}


def _page(found: Mapping[str, Any]) -> str:
    marked = mark(found["simulated"])
    parts = [f"# Were right answers earned?{marked}", SAID]
    benchmarks = dict.fromkeys(name for one in found["systems"] for name in one["benchmarks"])
    for name in ["all"] if len(benchmarks) == 1 else ["all", *benchmarks]:
        title = next(iter(benchmarks)) if len(benchmarks) == 1 else name
        rows: Table = [_HEADER, *_rows(found["systems"], name)]
        parts += [f"## {escaped(title)}{marked}", markdown(rows)]
    parts += [f"## Answer and path{marked}", markdown(_two_by_two(found["systems"]))]
    broken: Table = [("method", "rule", "step", "fault", "chains", "of them right")]
    broken += _broken(found["systems"])
    if len(broken) > 1:
        parts += [f"## Where chains break{marked}", markdown(broken)]
    if found["paired"]:
        parts += [f"## Paired tests{marked}", PAIRED, markdown(_paired(found))]
    lacking = found["settings"]["without_evidence"]
    if lacking:
        parts.append(f"{lacking:,} questions have no evidence: their chains are unjudgeable.")
    return "\n\n".join(parts) + "\n"


def _rows(systems: Sequence[Mapping[str, Any]], benchmark: str) -> Iterator[Sequence[object]]:
    for system in systems:
        part = _part(system, benchmark)
        for rule, ruled in (part["rules"] if part else {}).items():
            told = ruled["answers"]["exact_match"]
            right = told["right"]
            yield (
                _name(system), rule, part["questions"], sum(right.values()), right["faithful"],
                right["unfaithful"], right["unjudgeable"], _spurious(told["spurious"]),
                _gap(told["gap"]), _edits(ruled["edits"]),
            )  # fmt: skip


def _two_by_two(systems: Sequence[Mapping[str, Any]]) -> Table:
    table: Table = [("method", "rule", "right by", "answer", *COLUMNS, "unscored")]
    for system in systems:
        for rule, ruled in system["all"]["rules"].items():
            for by, told in ruled["answers"].items():
                for answer in ("right", "wrong"):
                    counts = [told[answer][column] for column in COLUMNS]
                    said = by.replace("_", " ")
                    table.append([_name(system), rule, said, answer, *counts, told["unscored"]])
    return table


def _broken(systems: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[object]]:
    for system in systems:
        for rule, ruled in system["all"]["rules"].items():
            for one in ruled["breaks"]:
                place = one["position"] or "whole"
                yield (_name(system), rule, place, one["fault"], one["chains"], one["right"])


def _paired(found: Mapping[str, Any]) -> Table:
    table: Table = [("first", "second", "rule", "on", "what", "right by", "pairs", "left out",
                     "first alone", "second alone", "p", "Holm's p")]  # fmt: skip
    for one in found["paired"]:
        names = [_name(found["systems"][one[which]]) for which in ("first", "second")]
        by = (one["answer"] or NOTHING).replace("_", " ")
        counts = [one[name] for name in ("pairs", "left_out", "first_only", "second_only")]
        where = one["benchmark"] or "all"
        tests = [p_text(one["p"]), p_text(one["p_holm"])]
        table.append([*names, one["rule"], where, one["what"], by, *counts, *tests])
    return table


def _csv(systems: Sequence[Mapping[str, Any]]) -> Table:
    """A line a system, benchmark, rule and measure of answers."""
    numbers = ("of", "value", "low", "high", "least", "most")
    gaps = ("answer", "reasoning", "low", "high")
    both = [f"{answer}_{column}" for answer in ("right", "wrong") for column in COLUMNS]
    table: Table = [
        ("method", "benchmark", "rule", "right_by", "questions", *both, "unscored",
         *(f"spurious_{name}" for name in numbers), *(f"gap_{name}" for name in gaps),
         "edits", "edits_normalised", "simulated")
    ]  # fmt: skip
    for system in systems:
        for name in ("all", *system["benchmarks"]):
            part = _part(system, name)
            for rule, ruled in part["rules"].items():
                edits = ruled["edits"] or {"count": "", "normalised": ""}
                for by, told in ruled["answers"].items():
                    counts = [told[a][c] for a in ("right", "wrong") for c in COLUMNS]
                    shares = [told["spurious"][n] for n in numbers] + [told["gap"][n] for n in gaps]
                    plain = ["" if share is None else share for share in shares]
                    about = [_name(system), name, rule, by, part["questions"]]
                    last = [edits["count"], edits["normalised"], str(system["simulated"]).lower()]
                    table.append([*about, *counts, told["unscored"], *plain, *last])
    return table


def _part(system: Mapping[str, Any], benchmark: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (
        system["all"] if benchmark == "all" else system["benchmarks"].get(benchmark, {})
    )
    return found


def _name(system: Mapping[str, Any]) -> str:
    """With who answers, where that is not the method's own business alone."""
    answering = next(iter(system["players"].values()), "")
    return f"{answering}, {system['name']}" if answering else str(system["name"])


def _spurious(found: Mapping[str, Any]) -> str:
    bounds = f"[{_share(found['least'])}, {_share(found['most'])}]"
    if found["value"] is None:
        return f"{NOTHING} {bounds}"
    return f"{_share(found['value'])} ({_share(found['low'])} to {_share(found['high'])}) {bounds}"


def _gap(found: Mapping[str, Any]) -> str:
    low, high = _share(found["low"]), _share(found["high"])
    return low if low == high else f"{low} to {high}"


def _share(value: float | None) -> str:
    return NOTHING if value is None else percent(value)


def _edits(found: Mapping[str, Any] | None) -> str:
    return f"{found['count']:.2f} ({found['normalised']:.1f})" if found else NOTHING
