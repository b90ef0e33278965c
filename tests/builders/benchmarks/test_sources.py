from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import pickle
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import huggingface_hub
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.benchmarks import hotpotqa, musique, sources, twowiki
from builders.benchmarks.hub import HubSource, resolve_commit, stream
from safe_stepwise.errors import RowError, UserError

Row = dict[str, Any]
ROWS: list[Row] = [
    {"id": "a", "score": 1.5, "words": ["é", None], "nested": {"n": 1}},
    {"id": "b\u2028", "score": 2.0, "words": [], "nested": {"n": -3}},
    {"id": "c", "score": 1e-9, "words": ['"', "\\"], "nested": {"n": 0}},
]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()
ARRAY = json.dumps(ROWS, ensure_ascii=False, indent=1).encode()
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, bytes], str]:
    def write(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    return write


def raw_rows(source: str, limit: int | None = None) -> list[sources.RawRow]:
    return list(sources.read_rows(source, "dev", limit))


def read(source: str, limit: int | None = None) -> list[Row]:
    return [dict(sources.decode(row)) for row in raw_rows(source, limit=limit)]


def assert_one_line(error: pytest.ExceptionInfo[Exception]) -> None:
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.jsonl", LINES),
        ("x.json", LINES),
        ("x.json", ARRAY),
        ("x.jsonl", ARRAY),
        ("x.json", b"\xef\xbb\xbf" + ARRAY),
        ("x.jsonl", b"\xef\xbb\xbf" + LINES),
        ("x.jsonl", LINES.replace(b"\n", b"\r\n\r\n \n")),
        ("x.jsonl", b"\n \n" + LINES.rstrip()),
        ("x.json", b" " * 5000 + ARRAY),
        ("x.json.gz", gzip.compress(ARRAY, mtime=0)),
        ("x.jsonl.gz", gzip.compress(LINES, mtime=0)),
        ("x.json.gz", gzip.compress(b"\xef\xbb\xbf" + ARRAY, mtime=0)),
        ("x.jsonl", gzip.compress(LINES, mtime=0)),
    ],
)
def test_reads_every_kind_of_json_file(save: Callable[[str, bytes], str], name: str, content: bytes) -> None:
    rows = read(save(name, content))
    assert rows == ROWS
    assert isinstance(rows[1]["score"], float)


def test_reads_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    datasets.Dataset.from_list(ROWS).to_parquet(path)
    assert read(str(path)) == ROWS
    assert [row.location for row in raw_rows(str(path))] == [f"x.parquet[{n}]" for n in range(3)]


def test_locations_and_starts(save: Callable[[str, bytes], str]) -> None:
    lines = save("x.jsonl", b"\n" + LINES)
    assert [row.location for row in raw_rows(lines)] == ["x.jsonl:2", "x.jsonl:3", "x.jsonl:4"]
    assert [row.location for row in raw_rows(save("x.json", ARRAY))] == ["x.json[0]", "x.json[1]", "x.json[2]"]
    found = list(sources.in_chunks(sources.read_rows(lines, "train"), 2))
    assert [(start, len(rows)) for start, rows in found] == [(0, 2), (2, 1)]
    assert pickle.loads(pickle.dumps(found)) == found
    assert all(isinstance(row.payload, str) for _, rows in found for row in rows)


def test_limit_reads_no_further(save: Callable[[str, bytes], str]) -> None:
    source = save("x.json", ARRAY)
    assert read(source, limit=2) == ROWS[:2]
    assert read(source, limit=99) == ROWS
    with pytest.raises(UserError, match="--limit 0"):
        read(source, limit=0)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.json", b"", "is empty"),
        ("x.jsonl", b" \n\n", "is empty"),
        ("x.jsonl.gz", gzip.compress(b"", mtime=0), "is empty"),
        ("x.json", b"[ ]", "holds no rows"),
        ("x.json", b"\xff\xfe[\x00]\x00", "is UTF-16"),
        ("x.json", b"id,question\n", r"is neither JSON, JSON lines, CSV \(named \.csv\) nor Parquet"),
        ("x.json", b"PK\x03\x04rest", "is a zip archive: unpack it"),
        ("x.json", b'{\n "data": []\n}', "one JSON object over many lines"),
        ("x.json", b'[{"id": "a"}] {"id": "b"}', r"element \[1\]: more text after the array"),
        ("x.json", b'[{"id": "a"} {"id": "b"}]', r"element \[1\]: expected ,"),
        ("x.parquet", b"PAR1 and then nothing of the kind", "damaged or cut short"),
    ],
)
def test_a_bad_file_is_one_line(save: Callable[[str, bytes], str], name: str, content: bytes, reason: str) -> None:
    with pytest.raises(UserError, match=reason) as error:
        read(save(name, content))
    assert name in str(error.value)
    assert_one_line(error)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "b"', "bad JSON: Expecting ',' delimiter: line 1 column 11"),
        (b'{"id": "\xff"}', "not UTF-8 at column 9"),
        (b'["b"]', "not a JSON object"),
        (b'{"id": ' + b"1" * 5000 + b"}", "bad JSON: a whole number has too many digits"),
        (b'{"id": ' + b"[" * 200_000, "bad JSON: "),
    ],
)
def test_a_bad_line_spoils_only_its_row(save: Callable[[str, bytes], str], line: bytes, reason: str) -> None:
    rows = raw_rows(save("x.jsonl", b'{"id": "a"}\n' + line + b'\n{"id": "c"}\n'))
    assert [row.location for row in rows] == ["x.jsonl:1", "x.jsonl:2", "x.jsonl:3"]
    with pytest.raises(RowError, match=reason) as error:
        sources.decode(rows[1])
    assert_one_line(error)
    assert sources.decode(rows[2]) == {"id": "c"}


def test_an_element_that_is_no_object_spoils_only_its_row(save: Callable[[str, bytes], str]) -> None:
    rows = raw_rows(save("x.json", b'[{"id": "a"}, "{}", 7, {"id": "c"}]'))
    for row in rows[1:3]:
        with pytest.raises(RowError, match="not a JSON object"):
            sources.decode(row)
    assert sources.decode(rows[3]) == {"id": "c"}


@pytest.mark.parametrize("name", ["x.json", "x.json.gz", "x.parquet"])
def test_a_file_cut_anywhere_is_refused(save: Callable[[str, bytes], str], tmp_path: Path, name: str) -> None:
    datasets.Dataset.from_list(ROWS).to_parquet(tmp_path / "whole.parquet")
    whole = {
        "x.json": ARRAY,
        "x.json.gz": gzip.compress(ARRAY, mtime=0),
        "x.parquet": (tmp_path / "whole.parquet").read_bytes(),
    }[name]
    for end in range(len(whole)):
        with pytest.raises(UserError) as error:
            read(save(name, whole[:end]))
        assert_one_line(error)
    assert read(save(name, whole)) == ROWS


def test_lines_cut_anywhere_lose_no_row_in_silence(save: Callable[[str, bytes], str]) -> None:
    for end in range(len(LINES)):
        whole_lines = LINES[:end].count(b"\n")
        ends_a_line = LINES[end : end + 1] == b"\n" or LINES[end - 1 : end] == b"\n"
        source = save("x.jsonl", LINES[:end])
        if end and ends_a_line:
            assert read(source) == ROWS[: whole_lines + (LINES[end : end + 1] == b"\n")]
        else:
            with pytest.raises((UserError, RowError)):
                read(source)


@given(st.binary(max_size=40), st.sampled_from(["x.json", "x.jsonl", "x.parquet"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str) -> None:
    path = tmp_path_factory.getbasetemp() / name
    for start in (b"", b"[", b"{", b"\x1f\x8b", b"PAR1", b'[{"a": '):
        path.write_bytes(start + content)
        with contextlib.suppress(UserError, RowError):
            assert all(isinstance(row, dict) for row in read(str(path)))


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_memory_does_not_grow_with_the_file(save: Callable[[str, bytes], str], name: str) -> None:
    rows = [json.dumps({"id": str(n), "text": "word " * 200}) for n in range(5000)]
    text = "\n".join(rows) if name == "x.jsonl" else "[" + ",".join(rows) + "]"
    source = save(name, text.encode())
    tracemalloc.start()
    try:
        count = sum(1 for _ in sources.read_rows(source, "train"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 5000
    assert peak < len(text) / 5


@pytest.mark.parametrize("benchmark", [hotpotqa, twowiki, musique])
def test_real_rows_are_the_same_from_every_kind_of_file(real_data: Path, tmp_path: Path, benchmark: Any) -> None:
    original = real_data / f"{benchmark.NAME}_train.jsonl"
    rows = read(str(original))
    assert len(rows) == sum(1 for _ in original.open("rb"))
    (tmp_path / "x.json").write_text(json.dumps(rows), encoding="utf-8")
    assert read(str(tmp_path / "x.json")) == rows


def test_names_what_is_missing_or_no_file(tmp_path: Path) -> None:
    for source, reason in (
        (str(tmp_path / "no.jsonl"), "no.jsonl: no such file"),
        (str(tmp_path), "is no regular file: name a file"),
        ("/dev/null", "is no regular file: name a file"),
        ("data/no.json", "data/no.json: no such file"),
        ("x" * 5000, "no such file"),
        ("a\0b", "no such file"),
    ):
        for use in (read, sources.digest):
            with pytest.raises(UserError, match=reason):
                use(source)


def test_splits_have_one_name() -> None:
    assert [sources.canonical_split(s) for s in ("train", "dev", "validation", "test")] == [
        "train",
        "validation",
        "validation",
        "test",
    ]
    with pytest.raises(UserError, match="no split 'Dev': write one of train, validation, dev"):
        sources.canonical_split("Dev")


def test_digest_of_a_file(save: Callable[[str, bytes], str]) -> None:
    assert sources.digest(save("x.jsonl", LINES)) == hashlib.sha256(LINES).hexdigest()


@pytest.mark.parametrize("source", ["some/set", "some/set:config", "data/hotpot"])
def test_a_hub_dataset_must_be_pinned(source: str) -> None:
    for use in (read, sources.digest):
        with pytest.raises(UserError, match=f"must be pinned.*write {source}@<commit or tag>"):
            use(source)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A Hub with one dataset, tagged v1; returns what load_dataset was asked for."""
    asked: list[tuple[Any, ...]] = []

    def load(repo: str, config: str | None, *, revision: str, streaming: bool) -> Any:
        asked.append((repo, config, revision, streaming))
        rows = datasets.Dataset.from_list(ROWS).to_iterable_dataset()
        return {"train": rows.take(1), "dev": rows}

    tag = SimpleNamespace(name="v1", ref="refs/tags/v1")
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: SimpleNamespace(sha=SHA))
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_refs", lambda *_, **__: SimpleNamespace(tags=[tag]))
    monkeypatch.setattr(datasets, "load_dataset", load)
    return asked


@pytest.mark.parametrize("revision", ["v1", SHA, SHA[:7]])
def test_streams_a_pinned_hub_dataset(hub: list[tuple[Any, ...]], revision: str) -> None:
    source = f"some/set:config@{revision}"
    assert read(source) == ROWS
    assert hub == [("some/set", "config", SHA, True)]
    assert raw_rows(source)[2].location == f"{source}[2]"
    assert sources.digest(source) == SHA


def test_a_branch_is_no_pin(hub: list[tuple[Any, ...]]) -> None:
    with pytest.raises(
        UserError, match=f"'main' is neither a tag nor a commit of 7 digits, so it may move: write some/set@{SHA}"
    ):
        read("some/set@main")
    assert hub == []


def test_a_split_that_the_dataset_lacks(hub: list[tuple[Any, ...]]) -> None:
    with pytest.raises(UserError, match="some/set has no test split, only train, dev"):
        next(sources.read_rows("some/set@v1", "test"))


def test_a_folder_that_hides_the_dataset(
    hub: list[tuple[Any, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some/set").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="hides the Hub dataset"):
        read("some/set@v1")


def test_a_hub_that_breaks_off_is_one_line(hub: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        yield ROWS[0]
        raise ConnectionError("line dropped\nwith details")

    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: {"dev": broken()})
    reason = r"some/set@v1: can't be read from the Hub \(is there a network\? .*\): line dropped with details$"
    with pytest.raises(UserError, match=reason):
        read("some/set@v1")


def test_an_unreachable_hub_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    for use in (read, sources.digest):
        with pytest.raises(UserError, match="some/set@v1: can't be read from the Hub") as error:
            use("some/set@v1")
        assert_one_line(error)


def test_a_hub_that_hangs_is_given_up(hub: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    """At the question for the commit, and in the middle of the rows."""
    ended = threading.Event()
    monkeypatch.setattr("builders.benchmarks.hub.TIMEOUT", 0.2)

    def rows() -> Iterator[Any]:
        yield from ({"id": number} for number in range(250))
        ended.wait()

    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: {"train": rows()})
    read: list[Any] = []
    source = HubSource("some/set", None, "v1")
    with pytest.raises(UserError, match=r"some/set@v1: .*: no answer within 0 s$"):
        read.extend(stream(source, "train"))
    assert len(read) == 200
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: ended.wait())
    with pytest.raises(UserError, match="no answer within 0 s"):
        resolve_commit(source)
    ended.set()
