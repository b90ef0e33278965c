"""Write a page of labels to read: each row with its label, the reason, the path and the passages, in one HTML file.

Of a large set the page has a sample that is balanced over benchmark, split and label; it says how many rows it lacks.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evaluators.audit.rows import Key, Stratum, balance_keys, has_id, label_content, labeled_splits, read_place
from evaluators.outcomes import grouped
from safe_stepwise.records import NO_NOISE, NOISE_TYPES
from safe_stepwise.store import page, parquet

ROWS = 2_000
"""The default maximum of rows on a page."""
_TEMPLATES = Path(__file__).parent / "templates"
_QUOTE = re.compile(r"\(“(.+?)”\)", re.DOTALL)
"""A sentence, or a part of it, that an explanation quotes from a passage."""
_WORDS = {"none": "verified", "unparsed": "not judged"}


@dataclass(frozen=True, slots=True)
class LabelPage:
    """The rows of a page, and the number of rows of the whole set by label."""

    rows: Sequence[Mapping[str, Any]]
    totals: Mapping[str, int]


def read_page(folder: Path, size: int = ROWS) -> LabelPage:
    """Read the labelled rows of a built folder, at most ``size``; raise ``UserError`` for none, or a bad row."""
    splits = labeled_splits(folder)
    strata: dict[Key, Stratum] = {}
    for benchmark, split, file in splits:
        for (_, id_), (_, label) in parquet.read_rows(file, partial(read_place, benchmark), ("id", "noise_type")):
            strata[f"{benchmark} {split}", id_] = (benchmark, split, label)
    chosen = balance_keys(grouped(strata, strata.__getitem__), size, seed=0)
    rows: dict[Key, dict[str, Any]] = {}
    for benchmark, split, file in splits:
        is_chosen = has_id(id_ for part, id_ in chosen if part == f"{benchmark} {split}")
        for row in parquet.read_rows(file, partial(_row_content, benchmark, split), select=is_chosen):
            rows[f"{benchmark} {split}", row["id"]] = row
    return LabelPage([*rows.values()], Counter(label for *_, label in strata.values()))


def _row_content(benchmark: str, split: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a row; passages list sentences ``stated`` by its path, ``quoted`` as reasons."""
    content = label_content(benchmark, row)
    quotes = [quote.strip("… ") for quote in _QUOTE.findall(content["explanation"])]
    path = {(t["head"], t["relation"], t["tail"], t["passage"]) for t in content["path"]}
    facts = [t for t in content["graph"] if (t["head"], t["relation"], t["tail"], t["passage"]) in path]
    for number, passage in enumerate(content["passages"], 1):
        passage["stated"] = sorted({t["sentence"] for t in facts if t["passage"] == number} - {None})
        passage["quoted"] = [n for n, text in enumerate(passage["sentences"]) if any(q in text for q in quotes)]
    return {"benchmark": benchmark, "split": split, "id": row["id"], **content}


def write_labels(folder: Path, output: Path, meanings: Mapping[str, str], size: int = ROWS) -> LabelPage:
    """Write the page of a built folder to ``output`` and return it; ``meanings`` are the definitions of the labels.

    The same folder gives the same bytes. Raises the errors of `read_page`, and ``UserError`` for an ``output`` that
    can't be written or is a file of the folder.
    """
    page.check_output(output, *(file for *_, file in labeled_splits(folder)))
    labels = read_page(folder, size)
    tones = {name: "good" if name == "none" else "warn" if name in NO_NOISE else "bad" for name in NOISE_TYPES}
    notes = {name: f" (in the column noise_type: {name})" for name in _WORDS}
    data = {
        "labels": [[name, _WORDS.get(name, name.replace("_", " ")), tone] for name, tone in tones.items()],
        "meanings": {name: f"{text}{notes.get(name, '')}" for name, text in meanings.items()},
        "totals": dict(labels.totals),
        "rows": labels.rows,
    }
    name, styles = folder.resolve().name, ("list", "row", "labels")
    page.write_page(output, page.render_page(_TEMPLATES, name, ("list", "rows", "labels"), data, styles, "labels"))
    return labels
