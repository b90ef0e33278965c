"""A mock OpenAI server in a thread: real HTTP, replies from a function, faults on purpose.

It counts what it was asked, by the content of the request, and what it answered in full, so that a
test can tell a call that was repeated from one that was owed.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import math
import random
import re
import socket
import struct
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Fault = Literal[
    "429",
    "500",
    "hang",
    "truncated",
    "cut",
    "reset",
    "unsized",
    "garbage",
    "503",
    "drip",
    "huge",
    "bomb",
    "wrong",
    "deep",
    "empty",
    "bytes",
    "400",
    "redirect",
]
EVERY_FAULT: tuple[Fault, ...] = get_args(Fault)
ALL_FAULTS = EVERY_FAULT[:-2]
"""Those that may pass."""
WAITS = ("hang", "drip")
"""They last until the client gives up."""
FAULTS = ALL_FAULTS[:6]
"""Unless others are asked for. Half the JSON comes as ``truncated`` (declared as whole), ``cut``
(fewer bytes than declared) or ``unsized`` (no length declared, the connection closed);
``garbage`` is no HTTP. 400 MB come as they are (``huge``) and in 400 kB of gzip (``bomb``)."""
_BODIES: Mapping[str, bytes] = {
    "wrong": b'{"choices": [{"message": {"content": ["no text"]}}]}',
    "deep": b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "empty": b'{"choices": []}',
    "bytes": b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
}
_MEGABYTE = 1 << 20
_PORTS: set[int] = set()
"""Ports of this process's servers. A later one on the same port would be served from the former's stored replies."""


_KNOWN = frozenset(
    "model messages temperature top_p max_completion_tokens seed stop response_format reasoning_effort".split()
)


class Cut(str):
    """A reply that broke off at its limit; an empty one while the model still thought."""


class Thoughtful(str):
    """A reply before which the model thought, as the server tells in a field of its own."""

    thought = ""

    @classmethod
    def of(cls, text: str, thought: str) -> Thoughtful:
        reply = cls(text)
        reply.thought = thought
        return reply


@dataclass
class MockServer:
    """Serves ``/v1/models`` and ``/v1/chat/completions``; a context manager.

    ``reply`` makes the text for a request body, `Cut` where it breaks off there. Of the calls a
    share ``fault_rate`` goes wrong, drawn from a seeded sequence; ``latency`` and ``retry_after``
    (what a 429 asks for) are in seconds; ``hang`` lasts until the client gives up. With ``status``
    every call gets that error, with ``raw`` everything is answered by these bytes. One that is
    ``strict`` refuses what OpenAI's own API does not know. Calls after the first ``last`` hang:
    however fast the machine is, a client that is to be killed can't be done before.
    """

    reply: Callable[[Mapping[str, Any]], str]
    model: str = "mock"
    fault_rate: float = 0.0
    faults: tuple[Fault, ...] = FAULTS
    seed: int = 0
    latency: float = 0.0
    retry_after: float = 0.0
    last: float = math.inf
    status: int = 0
    raw: bytes | None = None
    key: str | None = None
    """The bearer token that is asked for, if any."""
    echo: bool = False
    """Repeat the header with the key, in all that is said."""
    models_status: int = 200
    owner: str = "vllm"
    """Who serves the model, by the list of models."""
    strict: bool = False
    refuses: Callable[[Mapping[str, Any]], tuple[int, Any] | None] = lambda body: None
    """The status and body of a refusal of a request, if it is refused."""
    refusals: int = 0
    unlisted: tuple[str, ...] | None = None
    """Models that are served beside ``model``, though no list names them; None: any."""
    usage: Any = None
    """In place of the true one."""
    finish: str = "stop"
    logprobs: Callable[[str], Any] | None = None
    """What a choice has as its ``logprobs`` for a reply, if the request asks for them."""
    asked: Counter[str] = field(default_factory=Counter)
    """Calls by the SHA-256 of their body's JSON, sorted."""
    answered: Counter[str] = field(default_factory=Counter)
    """The same of those whose response was written to the end."""
    faulted: Counter[str] = field(default_factory=Counter)
    """Faults by kind."""
    calls: int = 0
    refused: int = 0
    """Calls with another key."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keep_bodies: bool = False
    port: int = 0

    def __enter__(self) -> MockServer:
        self._random = random.Random(self.seed)
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def spec(self) -> str:
        """How a command line names this server."""
        return f"openai:{self.model}@{self.url}"

    def _run(self, ready: threading.Event) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(ready))

    async def _serve(self, ready: threading.Event) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, backlog=4096)
        while not self.port and server.sockets[0].getsockname()[1] in _PORTS:
            server.close()
            server = await asyncio.start_server(self._connection, "127.0.0.1", backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        _PORTS.add(self.port)
        ready.set()
        await self._stop.wait()
        server.close()  # the runner cancels the connections that are open

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {n.lower(): v for n, v in (line.split(": ", 1) for line in head[1:] if line)}
        told = f" (you sent {headers.get('authorization')})" if self.echo else ""
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            self.refused += 1
            await _respond(writer, 401, {"error": {"message": f"no such key{told}"}})
            return True
        if self.raw is not None:
            writer.write(_head(200, len(self.raw), {}) + self.raw)
            await writer.drain()
            return True
        if "/models" in head[0]:
            models = [self.model, *([told] * self.echo)]
            listed = {"object": "list", "data": [_model(name, self.owner) for name in models]}
            error = {"error": {"message": f"no list{told}"}}
            found = listed if self.models_status == 200 else error
            await _respond(writer, self.models_status, found)
            return True
        body = json.loads(raw)
        name = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        self.asked[name] += 1
        if self.keep_bodies:
            self.bodies.append(body)
        self.calls += 1
        if self.calls > self.last:
            await asyncio.sleep(3600)
        if self.latency:
            await asyncio.sleep(self.latency)
        if self.strict and (strange := sorted(body.keys() - _KNOWN)):
            refusal = {"error": {"message": f"Unrecognized request argument: {strange[0]}"}}
            await _respond(writer, 400, refusal)
            return True
        if self.unlisted is not None and body["model"] not in (self.model, *self.unlisted):
            await _respond(writer, 404, {"error": {"message": f"no such model{told}"}})
            return True
        if refusal := self.refuses(body):
            self.refusals += 1
            await _respond(writer, *refusal)
            return True
        if self.status:
            await _respond(writer, self.status, {"error": {"message": f"as you wish{told}"}})
            return True
        if self._random.random() < self.fault_rate:
            fault = self._random.choice(self.faults)
            self.faulted[fault] += 1
            return await self._fail(fault, writer, told)
        await _respond(writer, 200, self._completion(body, told))
        self.answered[name] += 1
        return True

    def _completion(self, body: Mapping[str, Any], told: str) -> dict[str, Any]:
        text = self.reply(body)
        cut = isinstance(text, Cut)
        apart = getattr(text, "thought", "")
        noted = re.sub(r'"(explanation|diagnosis)": "', lambda m: m[0] + told, text)
        text = noted if text.startswith("{") else text + told
        apart = apart or ("Let me see. " * 9 if cut and not text else "")
        thought = {"reasoning_content": apart} if apart else {}
        prompt = sum(len(m["content"]) for m in body["messages"]) // 4
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": self.model,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "length" if cut else self.finish,
                    "message": {"role": "assistant", "content": (text or None) if thought else text} | thought,
                    **({"logprobs": self.logprobs(text)} if self.logprobs and body.get("logprobs") else {}),
                }
            ],
            "usage": self.usage
            or {
                "prompt_tokens": prompt,
                "completion_tokens": len(text) // 4,
                "total_tokens": prompt + len(text) // 4,
                "prompt_tokens_details": {"cached_tokens": prompt // 2},
            },
        }

    async def _fail(self, fault: Fault, writer: asyncio.StreamWriter, told: str) -> bool:
        if fault in ("400", "429", "500", "503"):
            extra = {"retry-after": f"{self.retry_after:g}"} if fault == "429" else {}
            await _respond(writer, int(fault), {"error": {"message": f"try again{told}"}}, extra)
            return True
        if fault == "redirect":
            await _respond(writer, 307, {}, {"location": "/v1/chat/completions"})
            return True
        if fault == "hang":
            await asyncio.sleep(3600)
        if fault == "drip":
            writer.write(_head(200, 1_000_000, {}))
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        if fault in ("huge", "bomb"):
            await _send_much(writer, zipped=fault == "bomb")
            return False
        if fault in _BODIES:
            writer.write(_head(200, len(_BODIES[fault]), {}) + _BODIES[fault])
            await writer.drain()
            return True
        if fault == "reset":
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        half = b'{"id": "chatcmpl-1", "choices": [{"mess'
        heads = {
            "truncated": _head(200, len(half), {}),
            "cut": _head(200, len(half) + 100, {}),
            "unsized": _head(200, None, {"connection": "close"}),
            "garbage": b"<!DOCTYPE html>\r\n\r\n",
        }
        writer.write(heads[fault] + half)
        await writer.drain()
        return fault == "truncated"


async def _send_much(writer: asyncio.StreamWriter, *, zipped: bool) -> None:
    coding = {"content-encoding": "gzip"} if zipped else {}
    writer.write(_head(200, None, {"connection": "close", **coding}))
    if zipped:
        writer.write(_bomb())
    for _ in range(0 if zipped else 400):
        writer.write(b" " * _MEGABYTE)
        await writer.drain()
    await writer.drain()


@functools.cache
def _bomb() -> bytes:
    pressed = zlib.compressobj(wbits=31)
    return b"".join([*(pressed.compress(b" " * _MEGABYTE) for _ in range(400)), pressed.flush()])


def _model(name: str, owner: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1, "owned_by": owner}


def _head(status: int, length: int | None, extra: Mapping[str, str]) -> bytes:
    headers = {"content-type": "application/json", **extra}
    if length is not None:
        headers["content-length"] = str(length)
    lines = [f"HTTP/1.1 {status} Said", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _respond(
    writer: asyncio.StreamWriter, status: int, content: Any, extra: Mapping[str, str] | None = None
) -> None:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    writer.write(_head(status, len(raw), extra or {}) + raw)
    await writer.drain()
