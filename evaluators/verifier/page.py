"""A verifier's results as a page to read, and its confusion matrix as table and picture."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluators.verifier.quality import OF_ROWS, UNPARSED
from safe_stepwise.records import FAILED
from safe_stepwise.store.agreement import title_of
from safe_stepwise.store.figures import png
from safe_stepwise.store.tables import csv_bytes, table
from safe_stepwise.taxonomy import category, labels

SHOWN = ("accuracy", "macro_f1", "error_precision", "error_recall", "error_f1", "first_error_f1")
"""Measures in the page's table of verifiers."""


Confusion = Mapping[str, Mapping[str, int]]


def confusion_csv(confusion: Confusion, incomplete_evidence: bool = False) -> bytes:
    """Gold labels of a setting down, what was said across."""
    golds = labels(incomplete_evidence)
    said = (*golds, UNPARSED, FAILED)
    counts = [[gold, *(confusion.get(gold, {}).get(one, 0) for one in said)] for gold in golds]
    return csv_bytes([["gold", *said], *counts])


def confusion_png(confusion: Confusion, title: str, incomplete_evidence: bool = False) -> bytes:
    """The matrix as a picture, each row shaded by the share of its gold label's rows."""
    golds = labels(incomplete_evidence)
    columns = [*golds, UNPARSED, *[FAILED] * any(FAILED in c for c in confusion.values())]
    counts = [[confusion.get(gold, {}).get(said, 0) for said in columns] for gold in golds]
    shares = [[n / max(1, sum(row)) for n in row] for row in counts]

    def draw(axes: Any) -> None:
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for y, row in enumerate(counts):
            for x, n in enumerate(row):
                if n:
                    color = "white" if shares[y][x] > 0.5 else "black"
                    axes.text(x, y, f"{n:,}", ha="center", va="center", color=color, fontsize=8)
        axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", fontsize=8)
        axes.set_yticks(range(len(golds)), golds, fontsize=8)
        axes.set_xlabel("said")
        axes.set_ylabel("gold")
        # A name may hold what matplotlib would take for a formula.
        axes.set_title(title, fontsize=9, parse_math=False, wrap=True)

    return png(lambda figure: draw(figure.add_subplot()), (8.4, 6.4))


def page(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    verifiers, counted = found["verifiers"], ("erroneous", "correct", "f1")
    first = verifiers[0]
    parts = [
        f"# How good is the verifier {_cell(title_of(first))}?",
        _what(found),
        _table(
            ["role", "verifier", *(_short(name) for name in SHOWN), "readable"],
            [_summary(verifier) for verifier in verifiers],
        ),
        f"In brackets: {found['bootstrap']['level']:.0%} interval, bootstrap over questions. "
        "Readable: replies with a valid verdict; a row without one is never right. First error: "
        "ProcessBench's F1 over trajectories, put together from the rows.",
        _notes(verifiers),
        "## First error",
        _table(
            ["role", "found, of erroneous", "none flagged, of correct", "F1"],
            [[v["role"], *(_number(v["measures"][f"first_error_{n}"]) for n in counted)] for v in verifiers],
        ),
        f"## Labels of {_cell(title_of(first))}",
        _table(
            ["label", "category", "gold", "said", "precision", "recall", "F1"],
            [
                [
                    *(entry["name"], category(entry["name"])),
                    *(str(entry[what]) for what in ("gold", "said")),
                    *(_number(entry[what]) for what in ("precision", "recall", "f1")),
                ]
                for entry in first["types"]
            ],
        ),
        "![confusion matrix](confusion.png)",
        "## By benchmark",
        _table(
            ["role", "benchmark", *(_short(name) for name in SHOWN)],
            [
                [v["role"], _cell(name), *(_number(values[m]) for m in SHOWN)]
                for v in verifiers
                for name, values in v["benchmarks"].items()
            ],
        ),
        *_wordings(verifiers),
        "## Tokens",
        _table(
            ["role", "requests", "prompt", "of which cached", "replies"],
            [[v["role"], *_tokens(v["tokens"])] for v in verifiers if v["tokens"]["requests"]],
        ),
    ]
    if found["agreement"]:
        header, *rows = agreement_rows(found)
        parts += ["## Agreement", _table(header, [[*map(_cell, row)] for row in rows])]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(found: Mapping[str, Any]) -> str:
    """The results in short: a table of the measures, the agreement of each two verifiers."""
    header = ("", "verifier", *(name.replace("first_error_f1", "first error") for name in SHOWN))
    rows = [(v["role"], title_of(v), *(_number(v["measures"][name]) for name in SHOWN)) for v in found["verifiers"]]
    first = found["verifiers"][0]
    lines = [
        table([header, *rows]),
        f"\n{first['rows']:,} rows of {first['questions']:,} questions; unparsed "
        f"{first['unparsed']:,}, failed {first['failed']:,}; first error: "
        f"{first['erroneous']:,} trajectories with an error, {first['correct']:,} without",
    ]
    if found["agreement"]:
        lines += ["", table(agreement_rows(found))]
    return "\n".join(lines)


def margins(found: Mapping[str, Any]) -> Iterator[str]:
    """A line a baseline: by how much the first verifier is better (+) or worse, by measure."""
    first, *others = found["verifiers"]
    for other in others:
        pairs = ((name, first["measures"][name], other["measures"][name]) for name in SHOWN)
        shown = [f"{name} {a - b:+.3f}" for name, a, b in pairs if None not in (a, b)]
        yield f"trained against {title_of(other)}: {', '.join(shown)}"


def agreement_rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Equal labels of each two verifiers that were asked, as rows of a table with its header."""
    names = {v["role"]: f"{v['role']}: {title_of(v)}" for v in found["verifiers"]}
    return [
        ("one", "other", "rows", "no verdict", "equal labels", "Cohen's kappa"),
        *(
            (
                *(names[pair[side]] for side in "ab"),
                *(f"{pair[what]:,}" for what in ("rows", "left_out")),
                *(_number(pair[what]) for what in ("share", "kappa")),
            )
            for pair in found["agreement"]
        ),
    ]


def _summary(verifier: Mapping[str, Any]) -> list[str]:
    measures, intervals = verifier["measures"], verifier["intervals"]
    cells = [verifier["role"], _cell(title_of(verifier))]
    for name in SHOWN:
        span = intervals[name]
        spread = f" [{span[0]:.3f}, {span[1]:.3f}]" if span else ""
        cells.append(f"{_number(measures[name])}{spread}")
    return [*cells, _number(measures["parse_rate"])]


def _what(found: Mapping[str, Any]) -> str:
    """What was measured on."""
    steps, first = found["steps"], found["verifiers"][0]
    simulated = "> **Simulated**: no model was measured; the figures say nothing of one.\n\n"
    revision = f" at `{steps['revision']}`" if steps["revision"] else ""
    return (
        f"{simulated if found['simulated'] else ''}"
        f"{first['rows']:,} rows of {first['questions']:,} questions: split `{steps['split']}` of "
        f"`{steps['name']}`{revision}{' (simulated)' if steps['simulated'] else ''}; "
        f"{first['erroneous']:,} trajectories with an error, {first['correct']:,} without. "
        f"{_TWELVE if steps.get('incomplete_evidence') else ''}{_without(steps, first)}"
        f"A reply could have {steps['max_tokens']:,} tokens."
        + (f" Shown were worked examples ({steps['examples']})." if "examples" in steps else "")
    )


_TWELVE = "Asked with twelve labels, rows that lack evidence and their twins included. "


def _without(steps: Mapping[str, Any], verifier: Mapping[str, Any]) -> str:
    """That a category was not to choose from, and for how many rows that matters."""
    if (dropped := steps.get("drop_category")) is None:
        return ""
    golds = verifier["confusion"].items()
    rows = sum(sum(said.values()) for gold, said in golds if category(gold) == dropped)
    return (
        f"Asked by a prompt without {dropped} errors: {rows:,} rows have one, and count as not "
        "right whatever is said of them. "
    )


def _wordings(verifiers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The measures of rows by whether their wording is one of train; nothing where no row says."""
    lines = [
        [v["role"], name, f"{values['rows']:,}", *(_number(values[m]) for m in OF_ROWS)]
        for v in verifiers
        for name, values in v["wordings"].items()
    ]
    header = ["role", "wording", "rows", *map(_short, OF_ROWS)]
    told = "Unseen: no row of train has a step with the same words, names and numbers aside."
    return ["## By wording", told, _table(header, lines)] if lines else []


def _notes(verifiers: Sequence[Mapping[str, Any]]) -> str:
    """What stands in the way of the figures, a line each."""
    lines = [
        f"- {verifier['role']}: {verifier[what]:,} rows {what}."
        for verifier in verifiers
        for what in ("unparsed", "failed")
        if verifier[what]
    ]
    if any(verifier["name"].startswith("symbolic:") for verifier in verifiers):
        lines.append(
            "- The graph checker (symbolic) had to agree with each injected row before it was "
            "kept, there by the label's path, here by annotations: it is no fair competitor."
        )
    return "\n".join(lines)


def _tokens(used: Mapping[str, Any]) -> list[str]:
    share = used["cached_share"]
    return [
        *(f"{used[what]:,}" for what in ("requests", "prompt")),
        "-" if share is None else f"{share:.1%}",
        f"{used['completion']:,}",
    ]


def _short(name: str) -> str:
    return name.replace("first_error_f1", "first error F1").replace("_", " ").replace("f1", "F1")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
