"""A verifier's results as a page to read, and its confusion matrix as table and picture."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluators.verifier.quality import OF_ROWS, UNPARSED
from safe_stepwise.records import FAILED
from safe_stepwise.store.agreement import title_of
from safe_stepwise.store.figures import png
from safe_stepwise.store.tables import Table, csv_bytes, decimal, fill, shown, text_table
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
    verifiers, dropped = found["verifiers"], found["steps"].get("drop_category")
    golds = verifiers[0]["confusion"].items()
    return fill(
        Path(__file__).parent / "templates",
        "verifier.md.jinja",
        **found,
        titles={name: _short(name) for name in SHOWN},
        row_titles={name: _short(name) for name in OF_ROWS},
        dropped=dropped,
        dropped_rows=sum(sum(said.values()) for gold, said in golds if category(gold) == dropped),
        is_symbolic=any(verifier["name"].startswith("symbolic:") for verifier in verifiers),
        categories={label["name"]: category(label["name"]) for label in verifiers[0]["types"]},
        agreement_table=agreement_rows(found),
    )


def summary(found: Mapping[str, Any]) -> str:
    """The results in short: a table of the measures, the agreement of each two verifiers."""
    header = ("", "verifier", *(name.replace("first_error_f1", "first error") for name in SHOWN))
    rows = [(v["role"], title_of(v), *(_number(v["measures"][name]) for name in SHOWN)) for v in found["verifiers"]]
    first = found["verifiers"][0]
    lines = [
        text_table([header, *rows]),
        f"\n{first['rows']:,} rows of {first['questions']:,} questions; unparsed "
        f"{first['unparsed']:,}, failed {first['failed']:,}; first error: "
        f"{first['erroneous']:,} trajectories with an error, {first['correct']:,} without",
    ]
    if found["agreement"]:
        lines += ["", text_table(agreement_rows(found))]
    return "\n".join(lines)


def margins(found: Mapping[str, Any]) -> Iterator[str]:
    """A line a baseline: by how much the first verifier is better (+) or worse, by measure."""
    first, *others = found["verifiers"]
    for other in others:
        pairs = ((name, first["measures"][name], other["measures"][name]) for name in SHOWN)
        shown = [f"{name} {a - b:+.3f}" for name, a, b in pairs if None not in (a, b)]
        yield f"trained against {title_of(other)}: {', '.join(shown)}"


def agreement_rows(found: Mapping[str, Any]) -> Table:
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


def _short(name: str) -> str:
    return name.replace("first_error_f1", "first error F1").replace("_", " ").replace("f1", "F1")


def _number(value: float | None) -> object:
    return shown(value, decimal(3))
