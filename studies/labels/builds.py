"""The noise labels of two builds, row by row: how far they agree, and how their types go together.

The first is scored, the second is what it is scored against. Rows are the same by benchmark, split,
id and the text of the question. What one of them did not judge has no label to agree on.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from evaluators.comparison.significance import cohens_kappa
from safe_stepwise.errors import UserError
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store import boundary
from safe_stepwise.store.agreement import SOUND, Score
from safe_stepwise.store.files import json_bytes, named_by_user, write_atomically
from safe_stepwise.store.names import NOISE_LABELS
from safe_stepwise.store.parquet import dataset_folder, parquet_files, read_rows
from safe_stepwise.store.tables import Column, Sheet, Table, decimal, fill
from safe_stepwise.store.terminal import printable

_COLUMNS = ("id", "question_sha256", "noise_type", "teacher")
_UNJUDGED = "unparsed"
Place = tuple[str, str]
"""A benchmark and a split."""


@dataclass(frozen=True, slots=True)
class Found:
    """A row's label: its question by its SHA-256, what was found, by whom."""

    question: str
    noise_type: str
    teacher: str


@dataclass(frozen=True, slots=True)
class Built:
    """The labels of a build, by place and id."""

    folder: Path
    rows: Mapping[Place, Mapping[str, Found]]

    @property
    def title(self) -> str:
        return printable(f"{self.folder} ({', '.join(self.teachers)})")

    @property
    def teachers(self) -> list[str]:
        return sorted({row.teacher for rows in self.rows.values() for row in rows.values()})


Part = Mapping[str, Any]
"""Two builds on a ``benchmark``'s ``split``, or on all (where both names are empty).

Rows are in ``both``, in ``only_one``, in ``only_other``, or of one id with an ``other_question``, which are in none of
the other counts. Of the rows that both ``judged``, ``noise_one``, ``noise_other`` and ``noise_both`` count those that
the first, the second and both call unverifiable. ``agreement`` (their share with one verdict), ``kappa`` (Cohen's),
``precision``, ``recall`` and ``f1`` (of the first's *unverifiable* against the second's) are None where they are not
defined. ``types`` are rows of ``both`` by the first's noise type, then the second's.
"""


def read_labels(folder: Path) -> Built:
    """The noise labels in a folder that `build_verified` or `regenerate` wrote.

    Raises ``UserError`` where there are none.
    """
    dataset = dataset_folder(folder, NOISE_LABELS)
    files = parquet_files(dataset, "*") if dataset else []
    if not files:
        raise UserError(f"{folder}: no {NOISE_LABELS} in it; give the --output of build_verified or regenerate")
    rows: dict[Place, dict[str, Found]] = {}
    for file in files:
        of = rows.setdefault((file.parent.name, file.name.partition("-")[0]), {})
        for id_, found in read_rows(file, _label, _COLUMNS):
            of.setdefault(id_, found)
    return Built(folder, rows)


def _label(row: Mapping[str, Any]) -> tuple[str, Found]:
    number = boundary.read(int, row["noise_type"], "noise_type")
    if not 0 <= number < len(NOISE_TYPES):
        raise ValueError(f"noise_type {number} is none of {len(NOISE_TYPES)}")
    id_, question, teacher = (boundary.read(str, row[name], name) for name in ("id", "question_sha256", "teacher"))
    return id_, Found(question, NOISE_TYPES[number], teacher)


def compared(one: Built, other: Built) -> list[Part]:
    """The two on each benchmark's split that either has, then on all of them.

    Raises ``UserError`` for builds without a row in common.
    """
    places = sorted({*one.rows, *other.rows})
    pairs = {place: _pairs(one.rows.get(place, {}), other.rows.get(place, {})) for place in places}
    if not any(a and b for rows in pairs.values() for a, b in rows):
        raise UserError(
            f"{one.folder} and {other.folder}: no benchmark, split and id is in both: builds of other rows?"
        )
    parts = [_part(*place, rows) for place, rows in pairs.items()]
    return [*parts, _part("", "", [pair for rows in pairs.values() for pair in rows])]


_Pair = tuple[Found | None, Found | None]


def _pairs(one: Mapping[str, Found], other: Mapping[str, Found]) -> list[_Pair]:
    return [(one.get(id_), other.get(id_)) for id_ in dict.fromkeys((*one, *other))]


def _part(benchmark: str, split: str, pairs: Iterable[_Pair]) -> Part:
    types, counts = Counter[tuple[str, str]](), Counter[str]()
    for one, other in pairs:
        if one is None or other is None:
            counts["only_other" if one is None else "only_one"] += 1
        elif one.question != other.question:
            counts["other_question"] += 1
        else:
            types[one.noise_type, other.noise_type] += 1
    return {
        "benchmark": benchmark,
        "split": split,
        "both": types.total(),
        **{name: counts[name] for name in ("only_one", "only_other", "other_question")},
        **_agreement(types),
        "types": {
            name: {b: types[name, b] for b in NOISE_TYPES if types[name, b]}
            for name in NOISE_TYPES
            if any(types[name, b] for b in NOISE_TYPES)
        },
    }


def _agreement(types: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    verdicts = Counter[tuple[bool, bool]]()
    for (one, other), rows in types.items():
        if _UNJUDGED not in (one, other):
            verdicts[one not in SOUND, other not in SOUND] += rows
    judged, both = verdicts.total(), verdicts[True, True]
    score = Score("", both, both + verdicts[False, True], both + verdicts[True, False])
    agreed = (both + verdicts[False, False]) / judged if judged else None
    kappa = cohens_kappa([(str(a), str(b)) for a, b in verdicts.elements()])
    shares = {"agreement": agreed, "kappa": kappa, **score.shares}
    return {
        "judged": judged,
        "noise_one": score.found,
        "noise_other": score.true,
        "noise_both": both,
        **{name: None if share is None else round(share, 4) for name, share in shares.items()},
    }


_PLACE: tuple[Column[Part], ...] = (
    Column("benchmark", lambda part: part["benchmark"] or "all"),
    Column("split", itemgetter("split")),
)
_ROWS: tuple[Column[Part], ...] = (
    *_PLACE,
    Column("in both", itemgetter("both")),
    Column("only in the first", itemgetter("only_one")),
    Column("only in the second", itemgetter("only_other")),
    Column("other text", itemgetter("other_question")),
)
_SCORES: tuple[Column[Part], ...] = (
    *_PLACE,
    Column("judged by both", itemgetter("judged")),
    Column("noise: first", itemgetter("noise_one")),
    Column("second", itemgetter("noise_other")),
    Column("both", itemgetter("noise_both")),
    Column("agreement", itemgetter("agreement"), decimal(3)),
    Column("kappa", itemgetter("kappa"), decimal(3)),
    Column("precision", itemgetter("precision"), decimal(3)),
    Column("recall", itemgetter("recall"), decimal(3)),
    Column("f1", itemgetter("f1"), decimal(3)),
)


def told(first: Built, second: Built, parts: Sequence[Part]) -> str:
    """The comparison as Markdown."""
    folder, sheets = (
        Path(__file__).parent / "templates",
        {"rows": Sheet(_ROWS, parts), "scores": Sheet(_SCORES, parts)},
    )
    page = fill(folder, "builds.md.jinja", first=first, second=second, crossed=list(_crossed(parts)), **sheets)
    return page.rstrip("\n")


def _crossed(parts: Sequence[Part]) -> Iterator[tuple[str, Table]]:
    """Noise types against each other: rows the first's, columns the second's."""
    for part in parts:
        if part["both"]:
            types = part["types"]
            columns = [name for name in NOISE_TYPES if any(name in row for row in types.values())]
            rows = [(name, *(row.get(column, 0) for column in columns)) for name, row in types.items()]
            title = f"{part['benchmark'] or 'all'} {part['split']}".strip()
            yield title, [("first, by the second's", *columns), *rows]


def write(first: Built, second: Built, parts: Sequence[Part], path: Path) -> None:
    """Write the comparison as JSON; ``UserError`` for a file that can't be written."""
    *those, every = parts
    builds = {
        name: {"folder": str(build.folder), "teachers": build.teachers}
        for name, build in (("first", first), ("second", second))
    }
    content = json_bytes({**builds, "parts": those, "all": every}, sort_keys=False)
    with named_by_user(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
