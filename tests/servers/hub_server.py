"""A Hugging Face Hub in a thread: the real HTTP protocol, for unmodified clients.

`huggingface_hub`, `datasets`, `evaluate`, `transformers` and `peft` push to it and load from it.
Clients read ``HF_ENDPOINT`` when they are imported: run them in a subprocess with `HubServer.env`.
Nothing is kept but in memory; every request is recorded, and any can be made to fail.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.servers.hub_routes import NEED_TOKEN, Call, Refusal, route
from tests.servers.hub_store import Repo, Store

TOKEN = "hf_" + "LocalTestsOnlyNotARealToken0123456"
NAMESPACE = "somebody"
WRITES = ("POST", "PUT", "DELETE", "PATCH")
READING_POSTS = ("paths-info", "validate-yaml", "preupload")
"""Kinds of POST that change nothing."""

How = Literal["500", "drop", "lost", "late", "hang", "drip", "loop"] | int


@dataclass(frozen=True)
class Asked:
    """A request, as it arrived; ``kind`` is the name of what handles it."""

    method: str
    path: str
    kind: str
    authorized: bool
    status: int

    @property
    def writes(self) -> bool:
        return self.method in WRITES and self.kind not in READING_POSTS


@dataclass
class Fault:
    """The ``nth`` request of a kind goes wrong (from 1), and ``times - 1`` after it.

    ``500`` (or another status) and ``drop`` (the connection breaks off) come before anything was
    done; with ``lost`` it was done, but the answer does not arrive; ``late`` is no fault, but comes
    after ``then``, which is called first. As long as the fault lasts, ``hang`` says nothing and
    ``drip`` a byte now and then. ``loop`` redirects to where it was asked. ``says`` is the error's
    message.
    """

    kind: str
    nth: int = 1
    how: How = "500"
    times: int = 1
    then: Callable[[], None] | None = None
    says: str = "as you wish"
    seen: int = 0

    def hits(self) -> bool:
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


@dataclass
class HubServer:
    """The server; a context manager. An account of `tokens` may write under its own name only."""

    tokens: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    store: Store = field(default_factory=Store)
    port: int = 0

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """As when it was new; the address stays."""
        self.store, self.asked, self.faults = Store(), [], []
        self.tokens = {TOKEN: NAMESPACE}

    def __enter__(self) -> HubServer:
        # asyncio sets TCP_NODELAY only where the protocol is named; without it, 40 ms a request.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        self.port = listening.getsockname()[1]
        settings = uvicorn.Config(
            self._app, log_level="critical", lifespan="off", interface="asgi3", timeout_keep_alive=60
        )
        self._server = uvicorn.Server(settings)
        serve = self._server.serve([listening])
        self._thread = threading.Thread(target=lambda: asyncio.run(serve), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def env(self, home: Path, token: str | None = TOKEN) -> dict[str, str]:
        """The environment of a client whose caches are in ``home``; a fresh one knows nothing."""
        settings = {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_TOKEN": token or "",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
        }
        return {name: value for name, value in settings.items() if value}

    def client(self, code: str, home: Path, token: str | None = TOKEN, python: str = sys.executable) -> Any:
        """What ``code``, run in a new interpreter, prints last, read as JSON."""
        ran = subprocess.run([python, "-c", code], env=self.env(home, token), cwd=home, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout.strip().splitlines()[-1])

    def repo(self, kind: str, name: str) -> Repo:
        return self.store.repos[kind, name]

    def written(self) -> list[Asked]:
        """The requests so far that may have changed something."""
        return [asked for asked in self.asked if asked.writes]

    @contextmanager
    def failing(self, *faults: Fault) -> Iterator[None]:
        self.faults = list(faults)
        yield
        self.faults = []

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        path = scope["raw_path"].decode()  # `path` has %2F decoded, which breaks release/1
        body = await request.body()
        kind, handler, parts = route(request.method, path)
        fault = next((f for f in self.faults if f.kind == kind and f.hits()), None)
        if fault is not None and fault.then is not None:
            fault.then()
        if fault is None or fault.how in ("lost", "late"):
            response = self._answer(handler, request, body, parts)
        else:
            response = self._failing(fault, path)
        authorized = "authorization" in request.headers
        self.asked.append(Asked(request.method, path, kind, authorized, response.status_code))
        while fault is not None and fault.how == "hang" and fault in self.faults:
            await asyncio.sleep(0.02)
        if fault is not None and fault.how in ("drop", "lost", "drip"):
            headers = [(b"content-length", b"1000")]  # the body ends early: uvicorn hangs up
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while fault.how == "drip" and fault in self.faults:
                await send({"type": "http.response.body", "body": b" ", "more_body": True})
                await asyncio.sleep(0.02)
            await send({"type": "http.response.body", "body": b"{", "more_body": False})
            return
        await response(scope, receive, send)

    def _failing(self, fault: Fault, path: str) -> Response:
        status = {"drop": 500, "drip": 200, "hang": 403, "loop": 307}.get(str(fault.how))
        headers = {"Location": f"{self.url}{path}"} if fault.how == "loop" else None
        return JSONResponse({"error": fault.says}, status or int(fault.how), headers)

    def _answer(self, handler: Any, request: Request, body: bytes, parts: Any) -> Response:
        try:
            account = self._account(request, handler)
            return handler(self, Call(request, body, parts, account))
        except Refusal as refusal:
            return refusal.response

    def _account(self, request: Request, handler: Any) -> str | None:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token and token not in self.tokens:
            raise Refusal(401, "Invalid credentials in Authorization header")
        if not token and handler in NEED_TOKEN:
            raise Refusal(401, "Invalid username or password.")
        return self.tokens.get(token)
