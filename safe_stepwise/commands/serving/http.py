"""What both servers share: limits of a request, errors in the protocol's form, a log without keys.

The library is aiohttp, which is here already (`datasets` reads remote files by it, and so is the
client of `openai:` engines): it parses HTTP, holds bodies to their limit and streams.
"""

import asyncio
import json
import logging
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from safe_stepwise.commands.ending import told
from safe_stepwise.commands.serving import chat
from safe_stepwise.commands.serving.chat import Refused
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.names import LOOPBACK

MOST_BYTES = 4 << 20
BODY_S = 30.0
"""Seconds in which a request's body has to be here."""
HEAD_S = 30.0
"""The same of its head, from the connection's begin or the end of the answer before."""
_LEAVE_S = 5.0
_SHORT_BODY = 1 << 16
_EVERYWHERE = ("0.0.0.0", "::", "")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Started = Callable[[int], None]


def model_routes(names: Mapping[str, Any], owner: str) -> list[web.RouteDef]:
    """The list of a server's models, and each of them; of each name what else is told of it."""

    async def listed(_: web.Request) -> web.Response:
        return answer_json(chat.models(names, owner))

    async def one(request: web.Request) -> web.Response:
        name = chat.known_model(request.match_info["name"], names)
        (found,) = chat.models({name: names[name]}, owner)["data"]
        return answer_json(found)

    return [web.get("/v1/models", listed), web.get("/v1/models/{name:.+}", one)]


def application(routes: list[web.RouteDef], most_bytes: int, host: str = "127.0.0.1") -> web.Application:
    """The application of some routes; what they raise is answered in the protocol's form.

    It answers to the name of the ``host`` it serves at, and to this machine's own: a page of another site reaches a
    server here by a name of its own, or says where it comes from.
    """
    names = None if host in _EVERYWHERE else frozenset((*LOOPBACK, host.lower()))
    app = web.Application(client_max_size=most_bytes, middlewares=[_answered, _by_name(names)])
    app.add_routes(routes)
    return app


def _by_name(names: frozenset[str] | None) -> Any:
    """A middleware that answers where a request names this server and comes from no other site; None: any name."""

    @web.middleware
    async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = _hostname(f"//{request.headers.get('Host', '')}")
        if names is not None and asked not in names:
            raise Refused(403, f"this server answers to {', '.join(sorted(names))} alone: start it with --host NAME")
        origin = request.headers.get("Origin")
        if origin is not None and _hostname(origin) not in (names or {asked}):
            raise Refused(403, "a page of another site may not ask here")
        return await handler(request)

    return answered


def _hostname(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


async def body_of(request: web.Request) -> dict[str, Any]:
    """The JSON object that a request brings; raises `Refused` for none, in time and size.

    It has to be called JSON: a page in the browser of whoever serves can send nothing so called
    without being asked for leave, which no server here gives. And it has to come as it is: what is packed may be a
    thousand times as long. A long one is parsed beside the event loop, which goes on.
    """
    if request.content_type != "application/json":
        raise Refused(415, "send Content-Type: application/json")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refused(415, "send the body as it is, without Content-Encoding")
    try:
        async with asyncio.timeout(BODY_S):
            raw = await request.read()
    except TimeoutError:
        raise Refused(408, f"the body was not here within {BODY_S:g} s") from None
    except web.RequestPayloadError:
        raise Refused(400, "the body breaks off") from None
    try:
        body = parse_json(raw) if len(raw) <= _SHORT_BODY else await asyncio.to_thread(parse_json, raw)
    except ValueError as error:
        raise Refused(400, f"the body is no JSON ({error})") from None
    if not isinstance(body, dict):
        raise Refused(400, "the body is no JSON object")
    return body


def fault() -> Refused:
    """What is said of the exception under way, which the log tells whole."""
    traceback.print_exc()
    return Refused(500, "a fault of ours, which its log tells of")


def answer_json(content: Any, status: int = 200) -> web.Response:
    """A response of JSON."""
    return web.Response(
        body=content if isinstance(content, bytes) else json.dumps(content).encode(),
        status=status,
        content_type="application/json",
    )


async def begin_stream(request: web.Request, headers: dict[str, str]) -> web.StreamResponse:
    """A response whose events are to follow."""
    response = web.StreamResponse(headers={"Cache-Control": "no-cache", **headers})
    response.content_type = "text/event-stream"
    await response.prepare(request)
    return response


async def serve(app: web.Application, host: str, port: int, started: Started) -> None:
    """Serve until cancelled; ``started`` hears the port. ``UserError`` where it can't be had.

    Who is gone is no longer answered: a client that leaves ends what is done for it.
    """
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=_silent(),
        handler_cancellation=True,
        shutdown_timeout=_LEAVE_S,
        auto_decompress=False,
        keepalive_timeout=HEAD_S,  # aiohttp goes by it till a whole head is here, though half of one is
    )
    await runner.setup()
    try:
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"{host}:{port}: cannot be served at ({reason})") from None
        started(runner.addresses[0][1])
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def run_server(serving: Callable[[], Awaitable[None]], end: Callable[[], str]) -> None:
    """Serve until Ctrl-C or SIGTERM, which is how a server ends."""

    async def whole() -> None:
        await serving()

    try:
        asyncio.run(whole())
    except KeyboardInterrupt:
        print(end(), file=sys.stderr)


def _silent() -> logging.Logger:
    """The library would log headers that it can't read, and a key may be among them."""
    silent = logging.Logger("safe_stepwise.serving")
    silent.addHandler(logging.NullHandler())
    return silent


@web.middleware
async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as error:
        response = answer_json(error.body, error.status)
        if error.retry_after is not None:
            response.headers["Retry-After"] = str(error.retry_after)
        return response
    except web.HTTPRequestEntityTooLarge:
        limit = f"{request.client_max_size:,} bytes"
        return answer_json(Refused(413, f"the body is longer than {limit}").body, 413)
    except web.HTTPException as error:
        said = f"{request.method} {request.path}: {error.reason.lower()}"
        return answer_json(Refused(error.status, said).body, error.status)
    except Exception:
        return answer_json(fault().body, 500)


@contextmanager
def log_line(is_wanted: bool) -> Iterator[list[str]]:
    """One line on a request that ends: what its context says of it, how it was refused, its time.

    Neither headers nor what was asked are in it.
    """
    begun, said = time.monotonic(), list[str]()
    try:
        yield said
    except Refused as error:
        said.append(f"refused with {error.status}")
        raise
    except asyncio.CancelledError:
        said.append("gone before its end")
        raise
    finally:
        if is_wanted:
            line = f"{', '.join(said)} in {time.monotonic() - begun:.1f} s"
            print(told(line), file=sys.stderr, flush=True)
