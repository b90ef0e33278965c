"""Answer by the verified loop, as an OpenAI-compatible endpoint.

``POST /v1/chat/completions`` takes one question (the last message of the user) and, beside the protocol's fields,
``passages``: texts, or objects with title and text. The content of the reply is the answer; one that is not verified
says so there, with the reasons, and in ``verification``. There, ``"check": true`` in the request adds what the
passages say of each step, without a model. Attempts at steps come as ``reasoning_content``, in a stream as they end. A
question whose request to a model failed gets an error.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from safe_stepwise.commands import reading, serving, transcript
from safe_stepwise.commands.check import report_row
from safe_stepwise.commands.command import command
from safe_stepwise.commands.loop import ROLES, Loop, OnAttempt
from safe_stepwise.commands.serving import ChatReply, HttpRefusal
from safe_stepwise.commands.values import Count, Natural, Port, Seconds
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verified import doubts
from safe_stepwise.records import FAILED, Attempt, Question, Trajectory, Usage
from safe_stepwise.steps import format_step
from safe_stepwise.store.progress import note
from safe_stepwise.store.sizes import MAX_PASSAGES
from safe_stepwise.store.terminal import printable, sanitize

MODEL = "safe-stepwise"
OWNER = "safe-stepwise"
MARK = "[not verified: {}]"
"""The warning before an answer that is not verified."""
ALIVE_S = 10.0
"""Seconds of silence in a stream after which a comment says that work goes on."""
ALIVE = b": still at work\n\n"
RETRY_AFTER_S = 5
OUTCOMES = ("verified", "not verified", "failed", "refused", "gone")
"""What became of questions, for the line at the end; *gone*: their client left before the end."""
Answer = Callable[[Question, Mapping[str, Client], OnAttempt], Awaitable[Trajectory]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a server."""

    at_once: Count = 32
    """The most questions that are answered at once."""
    waiting: Natural = 256
    """The most questions that wait; further ones are refused (status 429)."""
    seconds: Seconds = 600.0
    """The time limit of a question, its wait included."""
    most_bytes: Count = 4 << 20
    """The longest body of a request."""


@dataclass
class VerifiedLoop:
    """The server's state: players that are opened once, and the number of requests that use them or wait."""

    answer: Answer
    players: Mapping[str, Client]
    bounds: Bounds = Bounds()
    tally: Counter[str] = field(default_factory=Counter)
    """The number of questions by outcome."""
    log: bool = True
    _active: int = 0

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.bounds.at_once)
        self._marks = {"simulated": True} if any(client.engine.simulated for client in self.players.values()) else {}

    def application(self, host: str = "127.0.0.1") -> web.Application:
        routes = [
            *serving.model_routes(MODEL, self._marks, OWNER),
            web.get("/health", self._health),
            web.post("/v1/chat/completions", self._complete),
        ]
        return serving.application(routes, self.bounds.most_bytes, host)

    async def _health(self, _: web.Request) -> web.Response:
        return serving.answer_json({"status": "ok", "under_way": self._active})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        with serving.log_line(self.log) as line:
            # A slot is taken only once the question is here, as a client that sends none would keep it.
            body = await serving.read_body(request)
            question, ignored = await asyncio.to_thread(parse_request, body)
            async with self._admission():
                marks = self._marks | ({"messages_not_read": ignored} if ignored else {})
                reply = ChatReply(MODEL, marks)
                if body.get("stream"):
                    stream = await serving.begin_stream(request, {})
                    await self._stream(stream, body, question, reply, line)
                    return stream
                lines: list[str] = []
                trajectory = await self._answer_counted(
                    question, lambda attempt: lines.extend(transcript.render_attempt(attempt)), line
                )
                message = {"content": render_content(trajectory), "reasoning_content": "\n".join(lines)}
                reply.marks = marks | {"verification": await _verification(body, question, trajectory)}
                return serving.answer_json(reply.completion(message, _total_usage(trajectory)))

    async def _stream(
        self,
        stream: web.StreamResponse,
        body: Mapping[str, Any],
        question: Question,
        reply: ChatReply,
        line: list[str],
    ) -> None:
        """Write each attempt as it ends, then the answer or the error, to a stream whose head is sent."""
        await stream.write(reply.chunk({"role": "assistant", "content": ""}))
        queue: asyncio.Queue[Attempt | None] = asyncio.Queue()
        answering = asyncio.ensure_future(self._answer_counted(question, queue.put_nowait, line))
        answering.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            async for attempt in _receive(queue):
                lines = transcript.render_attempt(attempt) if attempt is not None else ()
                reasons = {"reasoning_content": "".join(f"{text}\n" for text in lines)}
                await stream.write(ALIVE if attempt is None else reply.chunk(reasons))
            trajectory = await answering
            outcome = await _verification(body, question, trajectory)
        except HttpRefusal as error:
            line.append(f"refused with {error.status}")
            await stream.write(serving.event(error.body))
            return
        except Exception:  # no second response can be sent
            line.append(str(refusal := serving.log_fault()))
            await stream.write(serving.event(refusal.body))
            return
        finally:
            answering.cancel()
        await stream.write(reply.chunk({"content": render_content(trajectory)}))
        await stream.write(reply.chunk({}, "stop", verification=outcome))
        options = body.get("stream_options")
        if isinstance(options, Mapping) and options.get("include_usage") is True:
            await stream.write(reply.usage_chunk(_total_usage(trajectory)))
        await stream.write(serving.STREAM_END)

    @asynccontextmanager
    async def _admission(self) -> AsyncIterator[None]:
        """Count a question as active while it lasts; raises `HttpRefusal` where too many are."""
        if self._active >= self.bounds.at_once + self.bounds.waiting:
            self.tally["refused"] += 1
            raise HttpRefusal(429, f"{self._active} questions are here already: come again", RETRY_AFTER_S)
        self._active += 1
        try:
            yield
        except asyncio.CancelledError:
            self.tally["gone"] += 1
            raise
        finally:
            self._active -= 1

    async def _answer_counted(self, question: Question, on_attempt: OnAttempt, line: list[str]) -> Trajectory:
        """Answer a question and count its outcome; raises `HttpRefusal` where it failed."""
        trajectory = await self._answer_in_time(question, on_attempt)
        if trajectory.stop_reason == FAILED:
            self.tally["failed"] += 1
            raise HttpRefusal(502, f"a request to the model failed ({sanitize(trajectory.failure)}); ask again")
        outcome = "not verified" if doubts(trajectory) else "verified"
        self.tally[outcome] += 1
        line.append(outcome)
        line.append(f"{len(trajectory.steps)} steps, {len(trajectory.attempts)} tries")
        return trajectory

    async def _answer_in_time(self, question: Question, on_attempt: OnAttempt) -> Trajectory:
        """Answer a question within its time limit; raises `HttpRefusal` if it takes longer or no player can work."""
        try:
            async with asyncio.timeout(self.bounds.seconds), self._slots:
                return await self.answer(question, self.players, on_attempt)
        except TimeoutError:
            self.tally["failed"] += 1
            reason = f"no answer within {self.bounds.seconds:g} s; what was done is kept: ask again"
            raise HttpRefusal(504, reason) from None
        except UserError as error:
            # A client that has given up answers no more requests; the server needs new ones.
            self.players = {
                role: Client(client.engine, client.cache, client.in_flight, client.tries, client.allowance)
                for role, client in self.players.items()
            }
            self.tally["failed"] += 1
            note(str(error))
            raise HttpRefusal(503, sanitize(error), RETRY_AFTER_S) from None


async def _receive(queue: asyncio.Queue[Attempt | None]) -> AsyncIterator[Attempt | None]:
    """Yield the attempts in a queue until it holds None; yield None after each `ALIVE_S` seconds of silence."""
    while True:
        try:
            attempt = await asyncio.wait_for(queue.get(), ALIVE_S)
        except TimeoutError:
            yield None
            continue
        if attempt is None:
            return
        yield attempt


def parse_request(body: Mapping[str, Any]) -> tuple[Question, int]:
    """Parse a request; return its question and the number of ignored messages, or raise `HttpRefusal`.

    The loop takes one question, the last message: a system's instructions and earlier messages are ignored.
    """
    messages = serving.request_messages(body, MODEL)
    if body.get("tools") or body.get("functions"):
        raise HttpRefusal(400, "tools can't be called here: leave them out")
    if not isinstance(body.get("check", False), bool):
        raise HttpRefusal(400, '"check" is true or false')
    last = messages[-1]
    if not isinstance(last, Mapping) or last.get("role") != "user":
        raise HttpRefusal(400, "the last message has to be the user's question")
    text = serving.message_text(last).strip()
    if not text:
        raise HttpRefusal(400, "the question is empty")
    passages = body.get("passages")
    if not isinstance(passages, list) or not passages:
        raise HttpRefusal(
            400,
            'give the passages to answer from beside the messages, as "passages": a list of texts '
            "or of objects with title and text (openai: extra_body)",
        )
    if len(passages) > MAX_PASSAGES:  # before each is looked at
        raise HttpRefusal(400, f"passages has {len(passages)} entries, at most {MAX_PASSAGES} are read")
    try:
        pages = [reading.parse_passage(page, f"passages[{n}]") for n, page in enumerate(passages)]
        return reading.unannotated_question(text, pages), len(messages) - 1
    except UserError as error:
        raise HttpRefusal(400, str(error)) from None


def render_content(trajectory: Trajectory) -> str:
    """Render the answer as one line, with a warning before it where it is not verified, which no answer can hide.

    >>> render_content(Trajectory("q", "safe", (), (), "", "max_steps"))
    '[not verified: no answer was reached]'
    """
    warning = printable("; ".join(doubts(trajectory)))
    return "\n\n".join(filter(None, [MARK.format(warning) if warning else "", printable(trajectory.answer)]))


def verification(trajectory: Trajectory) -> dict[str, Any]:
    """Make the object ``verification`` that comes with an answer."""
    reasons = doubts(trajectory)
    return {
        "verified": not reasons,
        "doubts": list(reasons),
        "answer": trajectory.answer,
        "stop_reason": trajectory.stop_reason,
        "steps": len(trajectory.steps),
        "tries": len(trajectory.attempts),
        "tokens": transcript.tokens_by_role(trajectory),
    }


async def _verification(body: Mapping[str, Any], question: Question, trajectory: Trajectory) -> dict[str, Any]:
    outcome = verification(trajectory)
    if body.get("check"):
        report = await asyncio.to_thread(report_row, question, list(map(format_step, trajectory.steps)))
        outcome["check"] = report.as_object()
    return outcome


def _total_usage(trajectory: Trajectory) -> Usage:
    counts = transcript.tokens_by_role(trajectory).values()
    names = ("prompt", "cached", "completion", "thought")
    return Usage(*(sum(count.get(name, 0) for count in counts) for name in names))


@dataclass(frozen=True, kw_only=True)
class Options(Loop):
    port: Port = 8002
    host: str = "127.0.0.1"
    bounds: Bounds = Bounds()


def serve_loop(options: Options) -> None:
    """Serve until Ctrl-C; raises ``UserError`` for symbolic players, as requests bring no annotations."""
    options.refuse_symbolic(
        None, "no request brings: start `safe-stepwise stand-in`, and name the model that it serves"
    )
    tally = Counter[str]()

    async def run() -> None:
        async with options.opened() as clients:
            loop = VerifiedLoop(options.answer, clients, options.bounds, tally)
            await serving.serve(loop.application(options.host), options.host, options.port, started)

    def started(port: int) -> None:
        print(f"{MODEL} answers at http://{options.host}:{port}/v1; Ctrl-C ends it", flush=True)

    serving.run_server(run, lambda: f"ended; {', '.join(f'{name} {tally[name]}' for name in OUTCOMES)}")


main = command(serve_loop, roles=ROLES)
