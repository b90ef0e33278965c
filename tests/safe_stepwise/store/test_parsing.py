"""JSON of strangers: read as `json` does, or a ``ValueError``; and its form."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.errors import UserError
from safe_stepwise.records import Attempt, Feedback, Step, Trajectory, Usage
from safe_stepwise.store import boundary
from safe_stepwise.store.boundary import MAX_DEPTH, MAX_JSON_BYTES, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=9,
)


@given(VALUES)
def test_a_document_is_read_as_json_reads_it(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value
    assert (
        parse_json(
            b"\xef\xbb\xbf" + json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b" \r\n"
        )
        == value
    )


@given(st.binary() | st.text().map(str.encode))
def test_anything_else_is_a_value_error(content: bytes) -> None:
    with suppress(ValueError):
        json.dumps(parse_json(content), allow_nan=False)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 100_000, "nested more than 100 deep"),
        (b'{"a":' * 100_000, "nested more than 100 deep"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested more than 100 deep"),
        (b"[NaN]", "NaN is no JSON"),
        (b"[-Infinity]", "-Infinity is no JSON"),
        (b"1e999", "1e999 is too large a number"),
        (b"-1e" + b"9" * 10_000, "too large a number"),
        (b"1" * 10_000, "digits"),
        (b'"\xff"', "utf-8"),
        (b'"\x00"', "control character"),
        (b"", "Expecting value"),
        (b"{} {}", "Extra data"),
    ],
)
def test_what_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(content)


def test_the_deepest_is_read() -> None:
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)


@pytest.mark.parametrize(
    ("content", "reason"), [(b"[]", "the record is not an object"), (b"{", "Expecting"), (b"\xff", "utf-8")]
)
def test_a_record_that_is_none_is_named(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(UserError, match=rf"r\.json: cannot be read \(.*{reason}.*\); mend it"):
        boundary.read_file(dict[str, Any], tmp_path / "r.json", "the record", "mend it")
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\)"):
        boundary.read_file(dict[str, Any], tmp_path, "the record", "mend it")


def test_a_record_beyond_all_records_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "r.json").open("wb") as file:
        file.truncate(900_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=r"\(it has more than 67,108,864 bytes\); mend it"):
            boundary.read_file(dict[str, Any], tmp_path / "r.json", "the record", "mend it")
        assert tracemalloc.get_traced_memory()[1] < 2 * MAX_JSON_BYTES
    finally:
        tracemalloc.stop()


RUN = Trajectory(
    "q1",
    "safe",
    (Step(1, "Oru is in Marn.", "Final Answer"),),
    (Attempt(1, "Step 1", Feedback("Correct", "", ""), True, {"generator": Usage(1, 0, 2)}),),
    "Marn",
    "answered",
)


@given(st.data())
def test_a_field_of_another_type_is_found(data: st.DataObject) -> None:
    plain = json.loads(json.dumps(asdict(RUN)))
    assert boundary.read(Trajectory, plain) == RUN
    holder, key = plain, data.draw(st.sampled_from([*plain]))
    while isinstance(holder[key], dict | list) and holder[key] and data.draw(st.booleans()):
        holder = holder[key]
        key = data.draw(st.sampled_from([*(holder if isinstance(holder, dict) else range(len(holder)))]))
    if key in ("read", "query"):
        return
    holder[key] = data.draw(st.sampled_from([float("nan"), 2**70, b"x", object()]))
    with pytest.raises(ValueError, match=r"is not"):
        boundary.read(Trajectory, plain)
