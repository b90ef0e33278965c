from __future__ import annotations

import asyncio
import multiprocessing
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise.engines.base import Completion, Message, Request, request_key
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage

SPAWN = multiprocessing.get_context("spawn")


def echo(request: Request) -> str:
    return f"said: {request.messages[-1].content}"


def numbered(n: int) -> Request:
    return Request((Message("user", f"question {n}"),))


def stored(cache: ResponseCache, n: int) -> bool:
    found = cache.get(request_key(MockEngine(echo), numbered(n)))
    return found is not None and found.text == f"said: question {n}"


@settings(deadline=None)
@given(st.text(st.characters(), max_size=40), st.integers(0, 9), st.text(st.characters(), max_size=40))
def test_any_text_comes_back(text: str, tokens: int, thought: str) -> None:
    with closing(ResponseCache(Path(":memory:"))) as cache:
        said = Completion(text + "\ud800", Usage(tokens, tokens // 2, 3), thought=thought)
        cache.store([("key", said)])
        assert cache.get("key") == said
        assert cache.get("other") is None


def test_the_first_reply_stays(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "c.sqlite")
    cache.store([("key", Completion("first"))])
    cache.store([("key", Completion("second")), ("other", Completion("new"))])
    again = ResponseCache(tmp_path / "c.sqlite")
    assert [one.text for key in ("key", "other") if (one := again.get(key))] == ["first", "new"]
    assert len(again) == 2


# Files that are no cache


@pytest.mark.parametrize("what", ["a folder", "no database", "another database", "below a file"])
def test_a_file_that_is_no_cache_is_one_line(tmp_path: Path, what: str) -> None:
    path = tmp_path / "c.sqlite"
    if what == "a folder":
        path.mkdir()
    elif what == "no database":
        path.write_bytes(b"no database at all, but long enough" * 100)
    elif what == "below a file":
        path.touch()
        path = path / "below.sqlite"
    else:
        with closing(sqlite3.connect(path)) as db:
            db.execute("create table completions (other text)")
    with pytest.raises(UserError, match=r"c\.sqlite.*choose another --cache") as caught:
        ResponseCache(path)
    assert "\n" not in str(caught.value)


def test_a_full_disk_is_one_line_and_stores_all_or_none(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "c.sqlite")
    cache.store([("before", Completion("x"))])
    (pages,) = cache._db.execute("pragma page_count").fetchone()
    cache._db.execute(f"pragma max_page_count = {pages + 3}")
    with pytest.raises(UserError, match=r"c\.sqlite: cannot be written \(.*full"):
        cache.store([(f"{n}", Completion("x" * 1000)) for n in range(100)])
    assert len(cache) == 1
    cache.store([("after", Completion("y"))])
    assert len(cache) == 2


@pytest.mark.parametrize("pages", [8, 22, 24])
def test_a_damaged_file_is_one_line(tmp_path: Path, pages: int) -> None:
    path = tmp_path / "c.sqlite"
    with closing(ResponseCache(path)) as cache:
        cache.store([(f"{n:04}", Completion("x" * 1000)) for n in range(100)])
    damaged = pages * 4096
    path.write_bytes(path.read_bytes()[:-damaged] + b"\xff" * damaged)
    with pytest.raises(UserError, match=r"c\.sqlite: cannot be.*choose another --cache") as caught:
        _read_all(path)
    assert "\n" not in str(caught.value)


def _read_all(path: Path) -> None:
    cache = ResponseCache(path)
    for n in range(100):
        cache.get(f"{n:04}")


def test_a_row_that_is_no_reply_is_one_line(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "c.sqlite")
    cache._db.execute("insert into completions values ('key', 'no JSON', 'stop', 1, 1, 1)")
    with pytest.raises(UserError, match="cannot be read"):
        cache.get("key")


# Several processes


def _write(path: str, start: int, number: int) -> None:
    client = Client(MockEngine(echo), ResponseCache(Path(path)))
    for n in range(start, start + number):
        asyncio.run(client.complete(numbered(n)))


def test_several_processes_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    workers = [SPAWN.Process(target=_write, args=(str(path), start, 100)) for start in (0, 0, 50, 100)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    cache = ResponseCache(path)
    assert len(cache) == 200
    assert all(stored(cache, n) for n in range(200))


def test_a_new_file_is_opened_by_several_at_once(tmp_path: Path) -> None:
    """SQLite sends all but one away who switch a file to WAL at the same time."""
    for number in range(40):
        barrier = Barrier(8)

        def opened(file: Path = tmp_path / f"{number}.sqlite", start: Barrier = barrier) -> bool:
            start.wait()
            return len(ResponseCache(file)) == 0

        with ThreadPoolExecutor(8) as pool:
            assert all(ended.result() for ended in [pool.submit(opened) for _ in range(8)])


def _write_and_tell(path: str, told: str, start: int) -> None:
    client = Client(MockEngine(echo), ResponseCache(Path(path)))
    with open(told, "a", buffering=1) as file:
        for n in range(start, 1_000_000):
            asyncio.run(client.complete(numbered(n)))
            file.write(f"{n}\n")


def test_killed_writers_have_stored_all_that_they_returned(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    tolds = [tmp_path / "told-0", tmp_path / "told-1"]
    workers = [
        SPAWN.Process(target=_write_and_tell, args=(str(path), str(told), n * 500_000)) for n, told in enumerate(tolds)
    ]
    for worker in workers:
        worker.start()
    for worker, told in zip(workers, tolds, strict=True):
        _wait_for_lines(worker, told, 50)
    for worker in workers:
        worker.kill()
        worker.join()
        assert worker.exitcode == -signal.SIGKILL
    cache = ResponseCache(path)
    seen = [int(line) for told in tolds for line in _whole_lines(told)]
    assert len(seen) >= 100
    assert all(stored(cache, n) for n in seen)
    assert cache._db.execute("pragma integrity_check").fetchall() == [("ok",)]
    cache.store([("more", Completion("still writable"))])


def _wait_for_lines(worker: BaseProcess, file: Path, number: int) -> None:
    while not file.exists() or len(_whole_lines(file)) < number:
        assert worker.exitcode is None
        time.sleep(0.005)


def _whole_lines(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
