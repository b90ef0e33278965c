"""A server that answers with the verified loop: passages in the request, steps as reasoning.

``POST /v1/chat/completions`` takes one question (the last message of the user) and, beside the
protocol's fields, ``passages``: texts, or objects with title and text. The content of the reply is
the answer; one that is not verified says so in it, with the reasons, and in ``verification``. Tries
at steps come as ``reasoning_content``, in a stream as they end. A question that a failed request
ended has no answer but an error.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from safe_stepwise.commands.ending import warn
from safe_stepwise.commands.reading import passage_of, unannotated
from safe_stepwise.commands.serving import chat
from safe_stepwise.commands.serving.chat import Refused, Reply
from safe_stepwise.commands.serving.http import (
    answer_json,
    application,
    begin_stream,
    body_of,
    fault,
    log_line,
    model_routes,
)
from safe_stepwise.commands.telling import lines_of_attempt, tokens
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verified import doubts
from safe_stepwise.records import FAILED, Attempt, Question, Trajectory, Usage
from safe_stepwise.store.sizes import PASSAGES
from safe_stepwise.store.terminal import printable, sanitize

MODEL = "safe-stepwise"
OWNER = "safe-stepwise"
MARK = "[not verified: {}]"
"""What stands before an answer that is not."""
ALIVE_S = 10.0
"""Seconds of silence in a stream after which a comment says that work goes on."""
ALIVE = b": still at work\n\n"
RETRY_AFTER_S = 5
Heard = Callable[[Attempt], None]
Answer = Callable[[Question, Mapping[str, Client], Heard], Awaitable[Trajectory]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a server takes upon itself at most."""

    at_once: int = 32
    """Questions under way."""
    waiting: int = 256
    """More of them, that wait for a place; whoever comes then is told to come again."""
    seconds: float = 600.0
    """For one question, its wait included."""
    most_bytes: int = 4 << 20
    """Of a request's body."""


@dataclass
class Served:
    """How many questions came to what, for the line at the end."""

    verified: int = 0
    unverified: int = 0
    failed: int = 0
    refused: int = 0
    gone: int = 0
    """Whose client left before the end."""

    def __str__(self) -> str:
        return (
            f"verified {self.verified}, not verified {self.unverified}, failed {self.failed}, "
            f"refused {self.refused}, gone {self.gone}"
        )


@dataclass
class VerifiedLoop:
    """The server's state: players that are opened once, and who is waiting for them."""

    answer: Answer
    players: Mapping[str, Client]
    bounds: Bounds = Bounds()
    served: Served = field(default_factory=Served)
    log: bool = True
    _here: int = 0

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.bounds.at_once)
        simulated = any(client.engine.simulated for client in self.players.values())
        self._marks = {"simulated": True} if simulated else {}

    def application(self, host: str = "127.0.0.1") -> web.Application:
        """The application of the server at a host."""
        routes = [
            *model_routes({MODEL: self._marks}, OWNER),
            web.get("/health", self._health),
            web.post("/v1/chat/completions", self._complete),
        ]
        return application(routes, self.bounds.most_bytes, host)

    async def _health(self, _: web.Request) -> web.Response:
        return answer_json({"status": "ok", "under_way": self._here})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        with log_line(self.log) as line:
            # A place is taken once the question is here: else who sends none would keep it.
            body = await body_of(request)
            question, unread = await asyncio.to_thread(question_of, body)
            async with self._admitted():
                marks = self._marks | ({"messages_not_read": unread} if unread else {})
                reply = Reply(MODEL, marks)
                if body.get("stream"):
                    stream = await begin_stream(request, {})
                    await self._stream(stream, body, question, reply, line)
                    return stream
                told: list[str] = []
                trajectory = await self._ended(question, lambda tried: told.extend(lines_of_attempt(tried)), line)
                message = {"content": content_of(trajectory), "reasoning_content": "\n".join(told)}
                reply.marks = marks | {"verification": verification(trajectory)}
                return answer_json(reply.whole(message, _spent(trajectory)))

    async def _stream(
        self, stream: web.StreamResponse, body: Mapping[str, Any], question: Question, reply: Reply, line: list[str]
    ) -> None:
        """Each try as it ends, then the answer, or the error: the head of the reply is sent."""
        await stream.write(reply.chunk({"role": "assistant", "content": ""}))
        said: asyncio.Queue[Attempt | None] = asyncio.Queue()
        answering = asyncio.ensure_future(self._ended(question, said.put_nowait, line))
        answering.add_done_callback(lambda _: said.put_nowait(None))
        try:
            async for attempt in _heard(said):
                tried = lines_of_attempt(attempt) if attempt is not None else ()
                reasons = {"reasoning_content": "".join(f"{told}\n" for told in tried)}
                await stream.write(ALIVE if attempt is None else reply.chunk(reasons))
            trajectory = await answering
        except Refused as error:
            line.append(f"refused with {error.status}")
            await stream.write(chat.event(error.body))
            return
        except Exception:  # no second response can be sent
            ours = fault()
            line.append(str(ours))
            await stream.write(chat.event(ours.body))
            return
        finally:
            answering.cancel()
        told = {"verification": verification(trajectory)}
        await stream.write(reply.chunk({"content": content_of(trajectory)}))
        await stream.write(reply.chunk({}, "stop", **told))
        if _wants_usage(body):
            await stream.write(reply.spent(_spent(trajectory)))
        await stream.write(chat.DONE)

    @asynccontextmanager
    async def _admitted(self) -> AsyncIterator[None]:
        """Room for one more; raises `Refused` where there is none."""
        if self._here >= self.bounds.at_once + self.bounds.waiting:
            self.served.refused += 1
            said = f"{self._here} questions are here already: come again"
            raise Refused(429, said, RETRY_AFTER_S)
        self._here += 1
        try:
            yield
        except asyncio.CancelledError:
            self.served.gone += 1
            raise
        finally:
            self._here -= 1

    async def _ended(self, question: Question, heard: Heard, line: list[str]) -> Trajectory:
        """The trajectory of a question that did not fail, counted; raises `Refused`."""
        trajectory = await self._timed(question, heard)
        if trajectory.stop_reason == FAILED:
            self.served.failed += 1
            said = f"a request to the model failed ({sanitize(trajectory.failure)}); ask again"
            raise Refused(502, said)
        why = doubts(trajectory)
        self.served.unverified += bool(why)
        self.served.verified += not why
        line.append("not verified" if why else "verified")
        line.append(f"{len(trajectory.steps)} steps, {len(trajectory.attempts)} tries")
        return trajectory

    async def _timed(self, question: Question, heard: Heard) -> Trajectory:
        """The trajectory of a question, in its time; raises `Refused`."""
        try:
            async with asyncio.timeout(self.bounds.seconds), self._places:
                return await self._asked(question, heard)
        except TimeoutError:
            self.served.failed += 1
            said = f"no answer within {self.bounds.seconds:g} s; what was done is kept: ask again"
            raise Refused(504, said) from None

    async def _asked(self, question: Question, heard: Heard) -> Trajectory:
        try:
            return await self.answer(question, self.players, heard)
        except UserError as error:
            # A client that gave a run up answers nobody any more; a server goes on.
            self.players = {role: _anew(client) for role, client in self.players.items()}
            self.served.failed += 1
            warn(str(error))
            raise Refused(503, sanitize(error), RETRY_AFTER_S) from None


async def _heard(said: asyncio.Queue[Attempt | None]) -> AsyncIterator[Attempt | None]:
    """What comes until None does; None for every `ALIVE_S` in which nothing came."""
    while True:
        try:
            attempt = await asyncio.wait_for(said.get(), ALIVE_S)
        except TimeoutError:
            yield None
            continue
        if attempt is None:
            return
        yield attempt


def question_of(body: Mapping[str, Any]) -> tuple[Question, int]:
    """What is asked, and how many messages are not read; raises `Refused`.

    The loop takes one question: instructions of a system, and turns before, are none.
    """
    messages = chat.messages_of(body, MODEL)
    if body.get("tools") or body.get("functions"):
        raise Refused(400, "tools can't be called here: leave them out")
    last = messages[-1]
    if not isinstance(last, Mapping) or last.get("role") != "user":
        raise Refused(400, "the last message has to be the user's question")
    text = chat.text_of(last).strip()
    if not text:
        raise Refused(400, "the question is empty")
    given = body.get("passages")
    if not isinstance(given, list) or not given:
        raise Refused(
            400,
            'give the passages to answer from beside the messages, as "passages": a list of texts '
            "or of objects with title and text (openai: extra_body)",
        )
    if len(given) > PASSAGES:  # before each is looked at
        raise Refused(400, f"passages has {len(given)} entries, at most {PASSAGES} are read")
    try:
        pages = [passage_of(page, f"passages[{n}]") for n, page in enumerate(given)]
        return unannotated(text, pages), len(messages) - 1
    except UserError as error:
        raise Refused(400, str(error)) from None


def content_of(trajectory: Trajectory) -> str:
    """The answer as one line, and before it, where it is not verified, that and why: nothing in it can hide that.

    >>> content_of(Trajectory("q", "safe", (), (), "", "max_steps"))
    '[not verified: no answer was reached]'
    """
    why = printable("; ".join(doubts(trajectory)))
    return "\n\n".join(filter(None, [MARK.format(why) if why else "", printable(trajectory.answer)]))


def verification(trajectory: Trajectory) -> dict[str, Any]:
    """What is told of an answer beside it, as JSON values."""
    why = doubts(trajectory)
    return {
        "verified": not why,
        "doubts": list(why),
        "answer": trajectory.answer,
        "stop_reason": trajectory.stop_reason,
        "steps": len(trajectory.steps),
        "tries": len(trajectory.attempts),
        "tokens": tokens(trajectory),
    }


def _anew(client: Client) -> Client:
    """A client of the same engine and cache that has given nothing up."""
    return Client(client.engine, client.cache, client.in_flight, client.tries, client.allowance)


def _spent(trajectory: Trajectory) -> Usage:
    by_role = tokens(trajectory).values()
    sums = (sum(used.get(name, 0) for used in by_role) for name in ("prompt", "cached", "completion", "thought"))
    return Usage(*sums)


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True
