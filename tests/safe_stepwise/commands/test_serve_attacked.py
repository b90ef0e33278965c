"""Half headers are closed in time, for both servers, and a huge request holds up nobody's /health."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.commands import serving as http
from tests.safe_stepwise.commands.test_serve import asked, client_of
from tests.servers.openai_server import MockServer
from tests.servers.serving import stand_in, verified_loop
from tests.servers.stepper import Stepper

HALF = {
    "nothing": b"",
    "a line": b"POST /v1/chat/completions HTTP/1.1\r\n",
    "half a line": b"POST /v1/chat",
    "headers that go on": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n",
}


def wire(url: str, head: bytes) -> socket.socket:
    port = int(url.rpartition(":")[2].partition("/")[0])
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(head)
    return connection


def closed_within(connection: socket.socket) -> float:
    """Seconds till the other side ends a connection."""
    begun = time.monotonic()
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass
    return time.monotonic() - begun


@contextmanager
def loop(folder: Path, model: MockServer) -> Iterator[str]:
    with model, verified_loop(model.spec, model.spec, folder / "c.sqlite") as url:
        yield url


@contextmanager
def player(_: Path, __: MockServer) -> Iterator[str]:
    with stand_in("symbolic", []) as spec:
        yield spec.partition("@")[2]


@pytest.mark.parametrize("server", [loop, player])
def test_a_head_that_never_ends_is_closed_and_others_are_answered(
    server: Callable[[Path, MockServer], AbstractContextManager[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "HEADER_TIMEOUT_S", 2.0)
    with server(tmp_path, MockServer(Stepper(flawed=0.0))) as url:
        slow = [wire(url, head) for head in HALF.values() for _ in range(50)]
        assert client_of(url).models.list().data
        assert max(map(closed_within, slow)) < 30
        dripping = wire(url, HALF["headers that go on"])
        begun = time.monotonic()
        with suppress(OSError):  # reset, or a broken pipe
            while time.monotonic() - begun < 60:
                dripping.sendall(b"X-B: 2\r\n")
                time.sleep(0.1)
        assert time.monotonic() - begun < 30
        for connection in (*slow, dripping):
            connection.close()


def test_who_waits_for_an_answer_is_not_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question may take longer than a head may."""
    monkeypatch.setattr(http, "HEADER_TIMEOUT_S", 0.5)
    with loop(tmp_path, MockServer(Stepper(flawed=0.0), latency=0.4)) as url, client_of(url) as client:
        begun = time.monotonic()
        assert client.chat.completions.create(**asked("A1")).choices[0].message.content == "A1"
        assert time.monotonic() - begun > 1
        time.sleep(1)  # kept alive no longer: the next one connects anew
        assert client.chat.completions.create(**asked("A2")).choices[0].message.content == "A2"


@pytest.mark.parametrize("page", ["", {"text": ""}, {}, [], 7])
def test_200_000_empty_passages_do_not_block_health(tmp_path: Path, page: Any) -> None:
    body = asked("A1")
    content = json.dumps({**body, "passages": [page] * 200_000, "extra_body": None}).encode()
    longest, stop = [0.0], threading.Event()

    def look(url: str) -> None:
        while not stop.is_set():
            begun = time.monotonic()
            with urllib.request.urlopen(url.replace("/v1", "/health"), timeout=60) as reply:
                assert json.load(reply)["status"] == "ok"
            longest.append(time.monotonic() - begun)

    with loop(tmp_path, MockServer(Stepper(flawed=0.0))) as url:
        watcher = threading.Thread(target=look, args=(url,))
        watcher.start()
        refusals = []
        for _ in range(3):
            request = urllib.request.Request(f"{url}/chat/completions", content, {"Content-Type": "application/json"})
            with pytest.raises(urllib.request.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=60)
            refusals.append(refused.value.read().decode())
        stop.set()
        watcher.join(60)
        assert all("passages has 200000 entries, at most 200 are read" in said for said in refusals), refusals
        assert len(longest) > 3
        assert max(longest) < 5  # on a machine that may stand still; it took minutes
        assert client_of(url).chat.completions.create(**body).choices[0].message.content == "A1"
