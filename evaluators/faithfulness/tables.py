"""The numbers of `evaluators.faithfulness` as tables: on the console, and as a report's page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from evaluators.faithfulness.figures import BREAKS, FIGURES, GAPS, PATHS, figures
from evaluators.faithfulness.lines import COLUMNS
from safe_stepwise.checking.faithfulness.chains import Verdict
from safe_stepwise.store.tables import NOTHING, Table, csv_bytes, escaped, mark, markdown, p_value, percent, table

PAGE, CSV = "faithfulness.md", "faithfulness.csv"
FILES = (PAGE, CSV, *FIGURES)
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
    "unfaithful; unearned are unfaithful chains where both answered rightly. McNemar's exact test, "
    "Holm's p over the pairs of one rule and measure. Undecided questions of either are left out."
)
_HEADER = ("method", "rule", "questions", "right", "faithful", "unfaithful", "unjudgeable",
           "no chain", "spurious, %", "gap, points", "edits")  # fmt: skip

_WHERE = {"spurious": "itself right", "unearned": "both right"}


def said_of(found: Mapping[str, Any], with_tests: bool = False) -> str:
    """What there is to say on the console; ``with_tests`` also of each pair, by the first rule."""
    rows: Table = [_HEADER, *_rows(found["systems"], "all")]
    lines = [table(rows)]
    told = [one for one in found["paired"] if _is_told(one, found["settings"]["rules"][0])]
    if with_tests and told:
        lines += ["", table(_tests(found["systems"], told))]
    if lacking := found["settings"]["without_evidence"]:
        lines += ["", f"questions without evidence, whose chains nothing can judge: {lacking:,}"]
    return "\n".join(lines)


def _is_told(one: Mapping[str, Any], rule: str) -> bool:
    told = one["rule"], one["benchmark"], one["answer"]
    return told == (rule, None, "exact_match")


def _tests(systems: Sequence[Mapping[str, Any]], told: Sequence[Mapping[str, Any]]) -> Table:
    header = ("unfaithful", "alone", "against", "alone", "where", "pairs", "left out", "p")
    found: Table = [header]
    for one in told:
        names = [_name(systems[one[which]], systems) for which in ("first", "second")]
        counts = [one[name] for name in ("first_only", "second_only", "pairs", "left_out")]
        where = _WHERE[one["what"]]
        found.append([names[0], counts[0], names[1], counts[1], where, *counts[2:], p_value(one["p_holm"])])
    return found


def files(found: Mapping[str, Any]) -> dict[str, bytes]:
    """The report's files by name."""
    drawn = figures(found)
    page = _page(found, drawn)
    return {PAGE: page.encode(), CSV: csv_bytes(_csv(found["systems"])), **drawn}


def _page(found: Mapping[str, Any], drawn: Mapping[str, bytes]) -> str:
    marked = mark(found["simulated"])
    parts = [f"# Were right answers earned?{marked}", SAID]
    benchmarks = dict.fromkeys(name for one in found["systems"] for name in one["benchmarks"])
    for name in ["all"] if len(benchmarks) == 1 else ["all", *benchmarks]:
        title = next(iter(benchmarks)) if len(benchmarks) == 1 else name
        rows: Table = [_HEADER, *_rows(found["systems"], name)]
        parts += [f"## {escaped(title)}{marked}", markdown(rows)]
    parts.append(_figure(GAPS))
    parts += [f"## Answer and path{marked}", markdown(_two_by_two(found["systems"]))]
    parts.append(_figure(PATHS))
    broken: Table = [("method", "rule", "step", "fault", "chains", "of them right")]
    broken += _broken(found["systems"])
    if len(broken) > 1:
        parts += [f"## Where chains break{marked}", markdown(broken)]
        parts += [_figure(BREAKS)] if BREAKS in drawn else []
    if found["paired"]:
        parts += [f"## Paired tests{marked}", PAIRED, markdown(_paired(found))]
    lacking = found["settings"]["without_evidence"]
    if lacking:
        parts.append(f"{lacking:,} questions have no evidence: their chains are unjudgeable.")
    return "\n\n".join(parts) + "\n"


def _figure(name: str) -> str:
    return f"![{FIGURES[name]}]({name})"


def _rows(systems: Sequence[Mapping[str, Any]], benchmark: str) -> Iterator[Sequence[object]]:
    """By exact match; the counts are of right answers."""
    for system in systems:
        part = _part(system, benchmark)
        for rule, ruled in (part["rules"] if part else {}).items():
            told = ruled["answers"]["exact_match"]
            right, name = told["right"], _name(system, systems)
            paths = [right[path] for path in get_args(Verdict)]
            answered = sum(right.values())
            counts = [part["questions"], answered, *paths, answered - sum(paths)]
            shares = [_spurious(told["spurious"]), _gap(told["gap"]), _edits(ruled["edits"])]
            yield (name, rule, *counts, *shares)


def _two_by_two(systems: Sequence[Mapping[str, Any]]) -> Table:
    rows: Table = [("method", "rule", "right by", "answer", *COLUMNS, "unscored")]
    for system in systems:
        for rule, ruled in system["all"]["rules"].items():
            for by, told in ruled["answers"].items():
                for answer in ("right", "wrong"):
                    counts = [told[answer][column] for column in COLUMNS]
                    said = by.replace("_", " ")
                    rows.append([_name(system, systems), rule, said, answer, *counts, told["unscored"]])
    return rows


def _broken(systems: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[object]]:
    for system in systems:
        for rule, ruled in system["all"]["rules"].items():
            for one in ruled["breaks"]:
                place = one["position"] or "whole"
                yield (_name(system, systems), rule, place, one["fault"], one["chains"], one["right"])


def _paired(found: Mapping[str, Any]) -> Table:
    systems = found["systems"]
    rows: Table = [("first", "second", "rule", "on", "what", "right by", "pairs", "left out",
                     "first alone", "second alone", "p", "Holm's p")]  # fmt: skip
    for one in found["paired"]:
        names = [_name(systems[one[which]], systems) for which in ("first", "second")]
        by = (one["answer"] or NOTHING).replace("_", " ")
        counts = [one[name] for name in ("pairs", "left_out", "first_only", "second_only")]
        where = one["benchmark"] or "all"
        tests = [p_value(one["p"]), p_value(one["p_holm"])]
        rows.append([*names, one["rule"], where, one["what"], by, *counts, *tests])
    return rows


def _csv(systems: Sequence[Mapping[str, Any]]) -> Table:
    """A line a system, benchmark, rule and measure of answers."""
    numbers = ("of", "value", "low", "high", "least", "most")
    gaps = ("answer", "reasoning", "low", "high")
    both = [f"{answer}_{column}" for answer in ("right", "wrong") for column in COLUMNS]
    rows: Table = [
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
                    about = [_name(system, systems), name, rule, by, part["questions"]]
                    last = [edits["count"], edits["normalised"], str(system["simulated"]).lower()]
                    rows.append([*about, *counts, told["unscored"], *plain, *last])
    return rows


def _part(system: Mapping[str, Any], benchmark: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = system["all"] if benchmark == "all" else system["benchmarks"].get(benchmark, {})
    return found


def _name(system: Mapping[str, Any], systems: Sequence[Mapping[str, Any]]) -> str:
    """With who answers, where several do."""
    answering = [next(iter(one["players"].values()), "") for one in (system, *systems)]
    several = len(set(answering)) > 1
    return f"{answering[0]}, {system['name']}" if several else str(system["name"])


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
