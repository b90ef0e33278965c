"""What both servers of the OpenAI protocol share: its forms, limits of a request, errors, a log without keys.

The library is aiohttp, which is here already (`datasets` reads remote files by it, and so is the
client of `openai:` engines): it parses HTTP, holds bodies to their limit and streams.
"""

import asyncio
import json
import logging
import sys
import time
import traceback
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from safe_stepwise.commands.ending import strip_keys
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.names import LOOPBACK


class HttpRefusal(Exception):
    """The refusal of a request: an HTTP ``status``, and a message of one line that says why."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after

    @property
    def body(self) -> dict[str, Any]:
        """The error in the protocol's form."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.status}}


class ChatReply:
    """Writes one reply in the protocol's forms, all with the same id."""

    def __init__(self, model: str, extra_fields: Mapping[str, Any]) -> None:
        self.model, self.extra_fields = model, extra_fields
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def completion(self, messages: Sequence[Mapping[str, Any]], usage: Usage, finish: str = "stop") -> bytes:
        """Return the body of a reply that is not a stream, with one choice for each message."""
        choices = [
            {"index": n, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": finish}
            for n, message in enumerate(messages)
        ]
        content = self._envelope("chat.completion") | {"choices": choices, "usage": usage_object(usage)}
        return json.dumps(content).encode()

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **fields: Any) -> bytes:
        """Return an event of a stream; ``fields`` are added to it."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event(self._envelope("chat.completion.chunk") | {"choices": [choice]} | fields)

    def usage_chunk(self, usage: Usage) -> bytes:
        """Return the event of a stream that counts its tokens."""
        return event(self._envelope("chat.completion.chunk") | {"choices": [], "usage": usage_object(usage)})

    def _envelope(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self.model, **self.extra_fields}


STREAM_END = b"data: [DONE]\n\n"


def event(content: Mapping[str, Any]) -> bytes:
    """Return an event of a stream, in ASCII JSON, which has no line break in it."""
    return f"data: {json.dumps(content)}\n\n".encode()


def usage_object(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        **({"completion_tokens_details": {"reasoning_tokens": usage.thought}} if usage.thought else {}),
    }


def check_model(name: Any, model: str) -> None:
    """Raise `HttpRefusal` for any other than the server's model."""
    if name != model:
        raise HttpRefusal(404, f"no such model: this server serves only {model}")


def message_text(message: Any) -> str:
    """Return the text of a message; its content is a text or a list of text parts, else `HttpRefusal` is raised."""
    content = message.get("content") if isinstance(message, Mapping) else None
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = [block.get("text") if isinstance(block, Mapping) else None for block in blocks]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise HttpRefusal(400, "a message's content has to be text")
    return "\n".join(map(str, texts))


def validated_messages(body: Mapping[str, Any], model: str) -> list[Any]:
    """Return the messages of a request for a ``model``; raises `HttpRefusal` for a request that is not valid."""
    check_model(body.get("model"), model)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise HttpRefusal(400, "messages has to be a list of at least one")
    return messages


def choice_count(body: Mapping[str, Any], most: int) -> int:
    """Return how many choices a request wants; raises `HttpRefusal` above ``most``, and for several in a stream."""
    number = 1 if body.get("n") is None else body["n"]
    if type(number) is not int or not 1 <= number <= most:
        raise HttpRefusal(400, f"n is {'1' if most == 1 else f'from 1 to {most}'} here")
    if number > 1 and body.get("stream"):
        raise HttpRefusal(400, "several choices can't be streamed: leave out stream or n")
    return number


MAX_BODY_BYTES = 4 << 20
BODY_TIMEOUT_S = 30.0
"""Seconds in which the body of a request has to arrive."""
HEADER_TIMEOUT_S = 30.0
"""Seconds for its headers, from the start of the connection or the end of the previous answer."""
_SHUTDOWN_S = 5.0
_SHORT_BODY = 1 << 16
_ALL_INTERFACES = ("0.0.0.0", "::", "")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
OnStarted = Callable[[int], None]


def model_routes(name: str, extra_fields: Mapping[str, Any], owner: str) -> list[web.RouteDef]:
    """Make the routes to the list of models and to the single model; ``extra_fields`` are its further fields."""
    model = {"id": name, "object": "model", "created": 0, "owned_by": owner, **extra_fields}

    async def get_models(_: web.Request) -> web.Response:
        return answer_json({"object": "list", "data": [model]})

    async def get_model(request: web.Request) -> web.Response:
        check_model(request.match_info["name"], name)
        return answer_json(model)

    return [web.get("/v1/models", get_models), web.get("/v1/models/{name:.+}", get_model)]


def application(routes: list[web.RouteDef], most_bytes: int, host: str = "127.0.0.1") -> web.Application:
    """Make the application of some routes; it answers their errors in the protocol's form.

    It refuses requests that name another host than ``host`` or this machine, or that come from a page of another site
    (DNS rebinding).
    """
    names = None if host in _ALL_INTERFACES else frozenset((*LOOPBACK, host.lower()))
    app = web.Application(client_max_size=most_bytes, middlewares=[_errors_as_json, _host_guard(names)])
    app.add_routes(routes)
    return app


def _host_guard(names: frozenset[str] | None) -> Any:
    """Make a middleware that refuses requests to other host names (None: none) and from pages of other sites."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = _hostname(f"//{request.headers.get('Host', '')}")
        if names is not None and host not in names:
            raise HttpRefusal(
                403, f"this server answers to {', '.join(sorted(names))} alone: start it with --host NAME"
            )
        origin = request.headers.get("Origin")
        if origin is not None and _hostname(origin) not in (names or {host}):
            raise HttpRefusal(403, "requests from pages of another site are refused")
        return await handler(request)

    return guard


def _hostname(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


async def read_body(request: web.Request) -> dict[str, Any]:
    """Read the JSON object in the body of a request; raises `HttpRefusal` for a late, long, compressed or other body.

    The content type has to be JSON: a web page cannot send that to a foreign server without its leave (CORS), which is
    never given. A compressed body could unpack to a thousand times its size. A long body is parsed in another thread,
    so that the event loop goes on.
    """
    if request.content_type != "application/json":
        raise HttpRefusal(415, "send Content-Type: application/json")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise HttpRefusal(415, "send the body as it is, without Content-Encoding")
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            raw = await request.read()
    except TimeoutError:
        raise HttpRefusal(408, f"the body did not arrive within {BODY_TIMEOUT_S:g} s") from None
    except web.RequestPayloadError:
        raise HttpRefusal(400, "the body is incomplete") from None
    try:
        body = parse_json(raw) if len(raw) <= _SHORT_BODY else await asyncio.to_thread(parse_json, raw)
    except ValueError as error:
        raise HttpRefusal(400, f"the body is not JSON ({error})") from None
    if not isinstance(body, dict):
        raise HttpRefusal(400, "the body is not a JSON object")
    return body


def log_fault() -> HttpRefusal:
    """Print the current exception to the log, and return the refusal that tells the client of a fault."""
    traceback.print_exc()
    return HttpRefusal(500, "internal error; see the server's log")


def answer_json(content: Any, status: int = 200) -> web.Response:
    """Make a response of JSON; ``content`` is a JSON value, or bytes of JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return web.Response(body=body, status=status, content_type="application/json")


async def begin_stream(request: web.Request, headers: dict[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Cache-Control": "no-cache", **headers})
    response.content_type = "text/event-stream"
    await response.prepare(request)
    return response


async def serve(app: web.Application, host: str, port: int, started: OnStarted) -> None:
    """Serve until cancelled; ``started`` is called with the port. Raises ``UserError`` where the port can't be had."""
    silent = logging.Logger("safe_stepwise.serving")  # aiohttp would log unreadable headers, which may hold a key
    silent.addHandler(logging.NullHandler())
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=silent,
        handler_cancellation=True,
        shutdown_timeout=_SHUTDOWN_S,
        auto_decompress=False,
        keepalive_timeout=HEADER_TIMEOUT_S,  # aiohttp also closes a connection whose head is not complete by then
    )
    await runner.setup()
    try:
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"{host}:{port}: cannot listen there ({reason})") from None
        started(runner.addresses[0][1])
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def run_server(serving: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    with suppress(KeyboardInterrupt):
        asyncio.run(serving())


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except HttpRefusal as error:
        response = answer_json(error.body, error.status)
        if error.retry_after is not None:
            response.headers["Retry-After"] = str(error.retry_after)
        return response
    except web.HTTPRequestEntityTooLarge:
        limit = f"{request.client_max_size:,} bytes"
        return answer_json(HttpRefusal(413, f"the body is longer than {limit}").body, 413)
    except web.HTTPException as error:
        reason = f"{request.method} {request.path}: {error.reason.lower()}"
        return answer_json(HttpRefusal(error.status, reason).body, error.status)
    except Exception:
        return answer_json(log_fault().body, 500)


@contextmanager
def log_line(is_enabled: bool) -> Iterator[list[str]]:
    """Log one line when a request ends: its context's notes, a refusal, its duration; no headers, no question."""
    start, notes = time.monotonic(), list[str]()
    try:
        yield notes
    except HttpRefusal as error:
        notes.append(f"refused with {error.status}")
        raise
    except asyncio.CancelledError:
        notes.append("client disconnected")
        raise
    finally:
        if is_enabled:
            line = f"{', '.join(notes)} in {time.monotonic() - start:.1f} s"
            print(strip_keys(line), file=sys.stderr, flush=True)
