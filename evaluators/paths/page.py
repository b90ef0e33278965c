"""Verdicts on paths as a page to read, the paper's figures beside."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluators.paths.quality import PAPER
from safe_stepwise.methods.paths import WAYS
from safe_stepwise.store import published_tables
from safe_stepwise.store.agreement import title_of
from safe_stepwise.store.tables import table
from safe_stepwise.store.terminal import printable

SHOWN = {"balanced": "balanced", "paper_mean": "the paper's mean", "accuracy": "accuracy"}
"""Measures in the first table, with their titles."""
Run = Mapping[str, Any]
_READ = (
    "In brackets: 95% interval, bootstrap over questions. Balanced: the mean of the accuracy on "
    "valid and on corrupted paths; whoever always says NO gets 50%, and 75% by the paper's mean "
    "(of valid, factual, incoherent and misguided paths, the last of other questions). Replies "
    "without a readable verdict stand in no accuracy; with each of them wrong, balanced is "
)


def page(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    runs: Sequence[Run] = found["runs"]
    parts = [
        f"# Does {_cell(title_of(runs[0]))} tell valid paths from corrupted ones?",
        _what(found),
        _table(["prompt", *SHOWN.values(), "unreadable", "failed"], map(_overall, runs)),
        _READ + "; ".join(f"{r['prompt']} {_percent(r['measures']['least'])}" for r in runs) + ".",
        "## By kind",
        _table(["kind", "rows", *(run["prompt"] for run in runs)], _kinds(runs)),
        "## By benchmark",
        _table(["benchmark", "rows", *(run["prompt"] for run in runs)], _benchmarks(runs)),
        "Balanced accuracy.",
        "## Tokens",
        _table(["prompt", "requests", "prompt tokens", "of which cached", "replies"], _tokens(runs)),
        "## What the paper printed",
        "Another graph (CWQ over Freebase), other prompts: no measure of anything here. Table 2 of "
        "arXiv 2402.11199, mean over the four kinds; in brackets the accuracy on valid and on all "
        "corrupted kinds (Table 6), balanced as here.",
        _table(["model", *WAYS], published()),
    ]
    return "\n\n".join(parts) + "\n"


def summary(found: Mapping[str, Any]) -> str:
    """The results in short."""
    header = ("engine", "prompt", *SHOWN.values(), "unreadable", "failed")
    rows = [
        (
            *(title_of(run), run["prompt"]),
            *(_percent(run["measures"][name]) for name in SHOWN),
            *(run["said"]["unreadable"], run["said"]["failed"]),
        )
        for run in found["runs"]
    ]
    first = found["runs"][0]
    return f"{table([header, *rows])}\n\n{first['rows']:,} rows of {first['questions']:,} questions"


def published() -> list[list[str]]:
    """A row a model: Table 2's figures, and what Table 6 gives once the classes weigh alike."""
    found: dict[str, dict[str, str]] = {}
    for row in published_tables.published().path_judgements:
        wrong = [row.kinds[kind] for kind in PAPER if kind != "valid"]
        balanced = (row.kinds["valid"] + sum(wrong) / len(wrong)) / 2
        found.setdefault(row.model, {})[row.way] = f"{row.mean:.2f} ({balanced:.2f})"
    return [[model, *(of.get(way, "-") for way in WAYS)] for model, of in found.items()]


def _what(found: Mapping[str, Any]) -> str:
    probe, first = found["probe"], found["runs"][0]
    simulated = "> **Simulated**: no model was measured; the figures say nothing of one.\n\n"
    version = f" {probe['version']}" if probe["version"] else ""
    limits = sorted({run["max_tokens"] for run in found["runs"]})
    return (
        f"{simulated if found['simulated'] else ''}{first['rows']:,} rows of "
        f"{first['questions']:,} questions: split `{probe['split']}` of `{probe['name']}`{version}"
        f"{' (simulated)' if probe['simulated'] else ''}. A reply could have "
        f"{' or '.join(f'{limit:,}' for limit in limits)} tokens."
    )


def _overall(run: Run) -> list[str]:
    cells = [_with_span(run["measures"][name], run["intervals"][name]) for name in SHOWN]
    return [run["prompt"], *cells, *(f"{run['said'][what]:,}" for what in ("unreadable", "failed"))]


def _kinds(runs: Sequence[Run]) -> Iterable[list[str]]:
    for kind, first in runs[0]["kinds"].items():
        cells = [_with_span(r["kinds"][kind]["accuracy"], r["kinds"][kind]["interval"]) for r in runs]
        yield [f"`{kind}`", f"{first['rows']:,}", *cells]


def _benchmarks(runs: Sequence[Run]) -> Iterable[list[str]]:
    for name, first in runs[0]["benchmarks"].items():
        cells = [_percent(run["benchmarks"][name]["balanced"]) for run in runs]
        yield [_cell(name), f"{first['rows']:,}", *cells]


def _tokens(runs: Sequence[Run]) -> Iterable[list[str]]:
    for run in runs:
        counts = ("requests", "prompt", "cached", "completion")
        yield [run["prompt"], *(f"{run['tokens'][what]:,}" for what in counts)]


def _with_span(value: float | None, span: Sequence[float] | None) -> str:
    spread = f" [{100 * span[0]:.1f}, {100 * span[1]:.1f}]" if span else ""
    return f"{_percent(value)}{spread}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """A name that cannot break the table, nor carry markup."""
    escaped = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    return escaped.replace("`", "'").replace("[", "\\[")
