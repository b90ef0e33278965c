"""Parquet columns of every type: those that no reader needs are no matter, others are named."""

from __future__ import annotations

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.benchmarks import parse_row, sources
from builders.benchmarks.sources import RawRow, decode
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.store.parquet import read_rows

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
STRANGE: dict[str, pa.Array] = {
    "timestamp": pa.array([NOW], pa.timestamp("us")),
    "nanoseconds": pa.array([1], pa.timestamp("ns")),
    "date": pa.array([NOW.date()], pa.date32()),
    "time": pa.array([NOW.time()], pa.time64("us")),
    "duration": pa.array([5], pa.duration("us")),
    "decimal": pa.array([decimal.Decimal("1.50")], pa.decimal128(5, 2)),
    "binary": pa.array([b"\xff\x00"], pa.binary()),
    "fixed": pa.array([b"ab"], pa.binary(2)),
    "nan": pa.array([float("nan")], pa.float64()),
    "infinite": pa.array([float("inf")], pa.float32()),
    "half": pa.array([1.5], pa.float16()),
    "list": pa.array([[NOW]], pa.list_(pa.timestamp("ms"))),
    "struct": pa.array([{"a": {"b": b"x"}}], pa.struct({"a": pa.struct({"b": pa.binary()})})),
    "map": pa.array([[("a", NOW.date())]], pa.map_(pa.string(), pa.date32())),
    "null": pa.array([None], pa.null()),
    "dictionary": pa.array(["x"]).dictionary_encode(),
    "large": pa.array(["x"], pa.large_string()),
}
UNREADABLE: dict[str, pa.Array] = {
    "zone": pa.array([1], pa.timestamp("us", "Nowhere/Never")),
    "year 300000": pa.array([2**62], pa.timestamp("us")),
    "bad text": pa.array([b"\xff"], pa.binary()).view(pa.string()),
}
NO_TEXT = set(STRANGE) - {"dictionary", "large"}


def row() -> dict[str, Any]:
    pages = [{"idx": 0, "title": "Oru", "paragraph_text": "In Marn.", "is_supporting": True}]
    hops = [{"question": "Oru >> country", "answer": "Marn", "paragraph_support_idx": 0}]
    told = {"id": "2hop__1_2", "question": "Where is Oru?", "answer": "Marn"}
    return {**told, "paragraphs": pages, "question_decomposition": hops}


def read(file: Path) -> RawRow:
    (found,) = sources.read_rows(str(file), "train")
    return found


@pytest.mark.parametrize("kind", STRANGE)
def test_a_column_that_nobody_needs_is_passed_over(kind: str, tmp_path: Path) -> None:
    table = pa.Table.from_pylist([row()]).append_column("made", STRANGE[kind])
    pq.write_table(table, tmp_path / "x.parquet")
    found = decode(read(tmp_path / "x.parquet"))
    assert parse_row(found, "musique", "train").answer == "Marn"
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert canonical_json(found)


@pytest.mark.parametrize("kind", sorted(STRANGE))
def test_a_column_that_is_needed_has_to_be_text(kind: str, tmp_path: Path) -> None:
    table = pa.Table.from_pylist([row()]).drop_columns("question")
    pq.write_table(table.append_column("question", STRANGE[kind]), tmp_path / "x.parquet")
    found = decode(read(tmp_path / "x.parquet"))
    if kind in NO_TEXT:
        with pytest.raises(RowError, match="question") as error:
            parse_row(found, "musique", "train")
        assert "expected a string" in str(error.value) or kind == "null"
    else:
        assert parse_row(found, "musique", "train").question == "x"


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_column_of_values_that_no_python_has_is_one_line(kind: str, tmp_path: Path) -> None:
    table = pa.Table.from_pylist([row()]).append_column("made", UNREADABLE[kind])
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(UserError, match=r"x\.parquet: damaged or cut short, row 0 or after") as error:
        read(tmp_path / "x.parquet")
    assert "\n" not in str(error.value)


def test_the_type_is_said(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([row()]).drop_columns("answer")
    pq.write_table(table.append_column("answer", STRANGE["decimal"]), tmp_path / "x.parquet")
    with pytest.raises(RowError, match="answer is of type Decimal, expected a string"):
        parse_row(decode(read(tmp_path / "x.parquet")), "musique", "train")


def test_a_name_that_is_no_utf_8_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"level": ["hard"]}), file, store_schema=False, compression="none")
    file.write_bytes(file.read_bytes().replace(b"level", b"l\xff\xfeel"))
    with pytest.raises(UserError, match=r"x\.parquet: .* cut short, row 0 .*utf-8") as error:
        read(file)
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match=r"x\.parquet: cannot be read \(.*utf-8"):
        list(read_rows(file, dict))
