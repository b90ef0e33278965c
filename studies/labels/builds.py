"""Compare the noise labels of two builds, row by row; a build is the output of ``build_verified``.

The first build is scored against the second, the reference. Rows match by benchmark, split, id and the text of the
question. A row that either build did not judge is left out of the scores.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from evaluators.comparison.significance import cohens_kappa
from safe_stepwise.errors import UserError
from safe_stepwise.records import NO_NOISE, NOISE_TYPES
from safe_stepwise.store import boundary, codec, names, parquet, terminal
from safe_stepwise.store.agreement import Score
from safe_stepwise.store.files import json_bytes, report_unwritable, write_atomically
from safe_stepwise.store.tables import Column, Sheet, Table, decimal, fill

_COLUMNS = ("id", "question_sha256", "noise_type", "teacher")
_UNJUDGED = "unparsed"
SplitKey = tuple[str, str]
"""A benchmark and a split."""


@dataclass(frozen=True, slots=True)
class RowLabel:
    """A row's noise type, the teacher that gave it, and the SHA-256 of its question."""

    question: str
    noise_type: str
    teacher: str


@dataclass(frozen=True, slots=True)
class LabelledBuild:
    """The noise labels of a build, by benchmark and split, then by id."""

    folder: Path
    rows: Mapping[SplitKey, Mapping[str, RowLabel]]

    @property
    def title(self) -> str:
        return terminal.printable(f"{self.folder} ({', '.join(self.teachers)})")

    @property
    def teachers(self) -> list[str]:
        return sorted({row.teacher for rows in self.rows.values() for row in rows.values()})


BuildComparison = Mapping[str, Any]
"""Counts and scores of two builds on a ``benchmark``'s ``split``, or on all (where both names are empty).

A row is in ``both`` builds, ``only_one`` (the first), ``only_other`` (the second), or has another text in the second
(``other_question``). Of the rows that both ``judged``, ``noise_one``, ``noise_other`` and ``noise_both`` count those
that the first, the second and both call unverifiable. ``agreement`` (the share with equal verdicts), ``kappa``
(Cohen's), ``precision``, ``recall`` and ``f1`` (of the first build's *unverifiable* against the second's) are None if
undefined. ``types`` counts the rows of ``both`` by the first build's noise type, then by the second's.
"""


def read_labels(folder: Path) -> LabelledBuild:
    """Read the noise labels in a folder of `build_verified` or `regenerate`; raise ``UserError`` without any."""
    files = parquet.find_files(folder, names.NOISE_LABELS, "*", "give the --output of build_verified or regenerate")
    rows: dict[SplitKey, dict[str, RowLabel]] = {}
    for file in files:
        labels = rows.setdefault((file.parent.name, file.name.partition("-")[0]), {})
        for id_, label in parquet.read_rows(file, _label, _COLUMNS):
            labels.setdefault(id_, label)
    return LabelledBuild(folder, rows)


def _label(row: Mapping[str, Any]) -> tuple[str, RowLabel]:
    id_, question, teacher = (boundary.read(str, row[name], name) for name in ("id", "question_sha256", "teacher"))
    return id_, RowLabel(question, codec.class_of(row, "noise_type", NOISE_TYPES), teacher)


def compare(build: LabelledBuild, reference: LabelledBuild) -> list[BuildComparison]:
    """Compare two builds by each split, last all rows; raise ``UserError`` for builds without a row in common."""
    pairs: dict[SplitKey, list[_Pair]] = {}
    for place in sorted({*build.rows, *reference.rows}):
        rows, reference_rows = build.rows.get(place, {}), reference.rows.get(place, {})
        pairs[place] = [(rows.get(id_), reference_rows.get(id_)) for id_ in dict.fromkeys((*rows, *reference_rows))]
    if not any(a and b for labels in pairs.values() for a, b in labels):
        raise UserError(
            f"{build.folder} and {reference.folder}: no benchmark, split and id is in both: builds of other rows?"
        )
    comparisons = [_compare_rows(*place, labels) for place, labels in pairs.items()]
    return [*comparisons, _compare_rows("", "", [pair for labels in pairs.values() for pair in labels])]


_Pair = tuple[RowLabel | None, RowLabel | None]


def _compare_rows(benchmark: str, split: str, pairs: Iterable[_Pair]) -> BuildComparison:
    """Compare two builds on the rows of a split, or on all (both names empty)."""
    types, counts = Counter[tuple[str, str]](), Counter[str]()
    for label, reference in pairs:
        if label is None or reference is None:
            counts["only_other" if label is None else "only_one"] += 1
        elif label.question != reference.question:
            counts["other_question"] += 1
        else:
            types[label.noise_type, reference.noise_type] += 1
    rows = {name: {b: n for b in NOISE_TYPES if (n := types[name, b])} for name in NOISE_TYPES}
    return {
        "benchmark": benchmark,
        "split": split,
        "both": types.total(),
        **{name: counts[name] for name in ("only_one", "only_other", "other_question")},
        **_agreement(types),
        "types": {name: row for name, row in rows.items() if row},
    }


def _agreement(types: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Score the first build's noise types against the second's; ``types`` counts rows by both."""
    verdicts = Counter[tuple[bool, bool]]()
    for (label, reference), rows in types.items():
        if _UNJUDGED not in (label, reference):
            verdicts[label not in NO_NOISE, reference not in NO_NOISE] += rows
    judged, both_flagged = verdicts.total(), verdicts[True, True]
    score = Score("", both_flagged, both_flagged + verdicts[False, True], both_flagged + verdicts[True, False])
    agreed = (both_flagged + verdicts[False, False]) / judged if judged else None
    kappa = cohens_kappa([(str(a), str(b)) for a, b in verdicts.elements()])
    shares = {"agreement": agreed, "kappa": kappa, **score.shares}
    return {
        "judged": judged,
        "noise_one": score.predicted,
        "noise_other": score.gold,
        "noise_both": both_flagged,
        **{name: None if share is None else round(share, 4) for name, share in shares.items()},
    }


_PLACE: tuple[Column[BuildComparison], ...] = (
    Column("benchmark", lambda comparison: comparison["benchmark"] or "all"),
    Column("split", itemgetter("split")),
)
_ROWS: tuple[Column[BuildComparison], ...] = (
    *_PLACE,
    Column("in both", itemgetter("both")),
    Column("only in the first", itemgetter("only_one")),
    Column("only in the second", itemgetter("only_other")),
    Column("other text", itemgetter("other_question")),
)
_SHARES = ("agreement", "kappa", "precision", "recall", "f1")
_SCORES: tuple[Column[BuildComparison], ...] = (
    *_PLACE,
    Column("judged by both", itemgetter("judged")),
    Column("noise: first", itemgetter("noise_one")),
    Column("second", itemgetter("noise_other")),
    Column("both", itemgetter("noise_both")),
    *(Column[BuildComparison](name, itemgetter(name), decimal(3)) for name in _SHARES),
)


def render(build: LabelledBuild, reference: LabelledBuild, comparisons: Sequence[BuildComparison]) -> str:
    crossed: list[tuple[str, Table]] = []
    for comparison in comparisons:
        if comparison["both"]:
            types = comparison["types"]
            columns = [name for name in NOISE_TYPES if any(name in row for row in types.values())]
            rows = [(name, *(row.get(column, 0) for column in columns)) for name, row in types.items()]
            title = f"{comparison['benchmark'] or 'all'} {comparison['split']}".strip()
            crossed.append((title, [("first, by the second's", *columns), *rows]))
    folder = Path(__file__).parent / "templates"
    sheets = {"rows": Sheet(_ROWS, comparisons), "scores": Sheet(_SCORES, comparisons)}
    return fill(folder, "builds.md.jinja", first=build, second=reference, crossed=crossed, **sheets).rstrip("\n")


def write(build: LabelledBuild, reference: LabelledBuild, comparisons: Sequence[BuildComparison], path: Path) -> None:
    """Write the comparisons to a JSON file; raise ``UserError`` if it can't be written."""
    *splits, total = comparisons
    builds = {
        name: {"folder": str(labels.folder), "teachers": labels.teachers}
        for name, labels in (("first", build), ("second", reference))
    }
    content = json_bytes({**builds, "parts": splits, "all": total}, sort_keys=False)
    with report_unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
