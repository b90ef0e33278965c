"""A page of labels to read: each row with its label, the reason, the path and the passages, in one HTML file.

A large set is cut to a part that is balanced over benchmark, split and label; the page says how many rows it lacks.
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
"""The most rows of a page, unless a user says otherwise."""
MAX_BYTES = 30_000_000
"""The size from which on a page gets no more rows."""
_TEMPLATES = Path(__file__).parent / "templates"
_QUOTE = re.compile(r"\(“(.+?)”\)", re.DOTALL)
"""A sentence, or a part of it, that an explanation quotes from a passage."""
_WORDS = {"none": "sound", "unparsed": "not judged"}


@dataclass(frozen=True, slots=True)
class PageOfLabels:
    """The rows of a page and the number of rows in the whole set, by label."""

    rows: Sequence[Mapping[str, Any]]
    totals: Mapping[str, int]


def read_page(folder: Path, size: int = ROWS) -> PageOfLabels:
    """Read the labelled rows of a built folder, at most ``size`` and about `MAX_BYTES` of them.

    Raises ``UserError`` for a folder that holds no verified benchmark, and for a row that can't be read.
    """
    splits = labeled_splits(folder)
    strata: dict[Key, Stratum] = {}
    for benchmark, split, file in splits:
        for (_, id_), (_, label) in parquet.read_rows(file, partial(read_place, benchmark), ("id", "noise_type")):
            strata[f"{benchmark} {split}", id_] = (benchmark, split, label)
    chosen = balance_keys(grouped(strata, strata.__getitem__), size, seed=0)
    rows: dict[Key, dict[str, Any]] = {}
    for benchmark, split, file in splits:
        is_chosen = has_id(id_ for place, id_ in chosen if place == f"{benchmark} {split}")
        for row in parquet.read_rows(file, partial(_row, benchmark, split), select=is_chosen):
            rows[f"{benchmark} {split}", row["id"]] = row
    shown, total_size = set[Key](), 0
    for key in chosen:
        total_size += len(page.embedded(rows[key]).encode("utf-8", "backslashreplace"))
        if shown and total_size > MAX_BYTES:
            break
        shown.add(key)
    totals = Counter(label for *_, label in strata.values())
    return PageOfLabels([row for key, row in rows.items() if key in shown], totals)


def _row(benchmark: str, split: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the sentences that its label rests on: the path's ("stated") and those that it quotes."""
    content = label_content(benchmark, row)
    quotes = [quote.strip("… ") for quote in _QUOTE.findall(content["explanation"])]
    path = {(t["head"], t["relation"], t["tail"], t["passage"]) for t in content["path"]}
    facts = [t for t in content["graph"] if (t["head"], t["relation"], t["tail"], t["passage"]) in path]
    for number, passage in enumerate(content["passages"], 1):
        passage["stated"] = sorted({t["sentence"] for t in facts if t["passage"] == number} - {None})
        passage["quoted"] = [n for n, text in enumerate(passage["sentences"]) if any(q in text for q in quotes)]
    return {"benchmark": benchmark, "split": split, "id": row["id"], **content}


def write(folder: Path, output: Path, meanings: Mapping[str, str], size: int = ROWS) -> PageOfLabels:
    """Write the page of a built folder to ``output`` and return it; ``meanings`` says what each label means.

    The same folder gives the same bytes. Raises the errors of `read_page`, and ``UserError`` for an ``output`` that
    can't be written or is a file of the folder.
    """
    page.check_output(output, *(file for *_, file in labeled_splits(folder)))
    labels = read_page(folder, size)
    data = {
        "labels": [[name, _WORDS.get(name, name.replace("_", " ")), _tone(name)] for name in NOISE_TYPES],
        "meanings": dict(meanings),
        "totals": dict(labels.totals),
        "rows": labels.rows,
    }
    name, styles = folder.resolve().name, ("list", "row", "labels")
    page.write_page(output, page.render_page(_TEMPLATES, name, ("list", "rows", "labels"), data, styles, "labels"))
    return labels


def _tone(noise_type: str) -> str:
    return "good" if noise_type == "none" else "warn" if noise_type in NO_NOISE else "bad"
