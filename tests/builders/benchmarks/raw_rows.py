"""What the readers' tests share: real rows, the Hub's columnar shapes, and rows gone wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]


def real_rows(folder: Path, benchmark: str) -> list[Row]:
    """Both splits' rows of a benchmark by its name."""
    files = [folder / f"{benchmark}_{split}.jsonl" for split in ("train", "dev")]
    return [json.loads(line) for file in files for line in file.open(encoding="utf-8")]


def columnar(row: Row) -> Row:
    """A HotpotQA-like row in the Hub's shape: ``id``, and one list a column."""
    hub = {key: value for key, value in row.items() if key != "_id"}
    hub["id"] = row["_id"]
    for name, columns in (("supporting_facts", ("title", "sent_id")), ("context", ("title", "sentences"))):
        hub[name] = {c: [item[i] for item in row[name]] for i, c in enumerate(columns)}
    return hub


_JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", " ", "[", '["x"]', "[[1, 2]]", "0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield (*path, key)
        if isinstance(value[key], dict | list):
            yield from _paths(value[key], (*path, key))


@st.composite
def spoilt(draw: st.DrawFn, row: Row) -> Row:
    """The row with one to three fields, at any depth, dropped or replaced by junk."""
    row = copy.deepcopy(row)
    for _ in range(draw(st.integers(1, 3))):
        *parents, last = draw(st.sampled_from(list(_paths(row)) or [("id",)]))
        holder: Any = row
        for key in parents:
            holder = holder[key]
        if draw(st.booleans()) and last in (holder if isinstance(holder, dict) else [last]):
            del holder[last]
        else:
            holder[last] = draw(_JUNK)
    return row
