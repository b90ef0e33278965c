"""The elements of a JSON array as `json` reads them, however the file is cut into blocks."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.benchmarks import sources as module
from builders.benchmarks.sources import MAX_ROW_BYTES, array_elements, decode, read_rows
from safe_stepwise.errors import RowError, UserError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=9,
)


class Dripping(io.BytesIO):
    """A file that gives at most so many bytes at a time."""

    at_once = 1

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.at_once)


@given(st.lists(VALUES, max_size=5), st.integers(1, 7), st.sampled_from([None, 1]), st.booleans())
def test_the_elements_are_those_of_json(values: list[Any], at_once: int, indent: int | None, is_ascii: bool) -> None:
    file = Dripping(json.dumps(values, indent=indent, ensure_ascii=is_ascii).encode() + b" \n")
    file.at_once = at_once
    assert [json.loads(text) for text in array_elements(file, 10_000)] == values


@given(st.lists(VALUES, min_size=1, max_size=3), st.data())
def test_a_torn_array_is_an_error(values: list[Any], data: st.DataObject) -> None:
    whole = json.dumps(values).encode()
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(ValueError, match=r"\w"):
        list(array_elements(io.BytesIO(torn), 10_000))


@pytest.mark.parametrize(
    "content", [b"[1 2]", b"[,1]", b"[1,]", b"[1]]", b"[1] 2", b"{}", b"", b'["a]', b"[" * 100_000]
)
def test_what_is_no_array_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        list(array_elements(io.BytesIO(content), 10_000))


def test_an_element_is_scanned_a_few_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned = 0
    decoder = module._DECODER

    class Counting:
        def raw_decode(self, text: str, start: int) -> Any:
            nonlocal scanned
            scanned += len(text) - start
            return decoder.raw_decode(text, start)

    monkeypatch.setattr(module, "_DECODER", Counting())
    counts = []
    for size in (2**20, 2**21):
        scanned = 0
        content = json.dumps(["x" * size]).encode()
        assert len(list(array_elements(io.BytesIO(content), 2**23))) == 1
        counts.append(scanned)
    assert counts[1] < 3 * counts[0]


def write(path: Path, put: Callable[[str], str]) -> str:
    """A file of 50 MB, almost all of it one text."""
    path.write_text(put("x" * 50_000_000))
    return str(path)


@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_a_row_of_50_megabytes_is_refused_in_a_fraction_of_that(name: str, tmp_path: Path) -> None:
    is_array = name == "x.json"
    rows = '{{"id": "a"}}{0} {{"id": "{1}"}}{0} {{"id": "b"}}'
    form = f"[{rows}]" if is_array else rows
    source = write(tmp_path / name, lambda text: form.format("," if is_array else "\n", text))
    tracemalloc.start()
    try:
        if is_array:
            with pytest.raises(UserError, match=r"x\.json: damaged .*\[1\]: longer than 4,194,304"):
                list(read_rows(source, "train"))
        else:
            first, long, last = read_rows(source, "train")
            assert (decode(first), decode(last)) == ({"id": "a"}, {"id": "b"})
            assert (long.location, last.location) == ("x.jsonl:2", "x.jsonl:3")
            with pytest.raises(RowError, match="longer than 4,194,304 bytes"):
                decode(long)
        assert tracemalloc.get_traced_memory()[1] < 10 * MAX_ROW_BYTES
    finally:
        tracemalloc.stop()
