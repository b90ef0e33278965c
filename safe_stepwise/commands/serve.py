"""Answer by the verified loop, as an OpenAI-compatible endpoint.

``POST /v1/chat/completions`` takes one question (the last message of the user) and, beside the protocol's fields,
``passages``: texts, or objects with title and text. The content of the reply is the answer; one that is not verified
says so there, with the reasons, and in ``verification``. There, ``"check": true`` in the request adds what the
passages say of each step, without a model. With ``"n": N`` N trajectories are sampled, and the reply has a choice for
each, the one that the verifier scores highest first; ``verification`` is about that one, and has all scores in this
order. Attempts at steps come as ``reasoning_content``, in a stream as they end. A question whose request to a model
failed gets an error.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from safe_stepwise.commands import check, reading, serving, transcript
from safe_stepwise.commands.command import command
from safe_stepwise.commands.loop import ROLES, Loop, OnAttempt
from safe_stepwise.commands.serving import ChatReply, HttpRefusal
from safe_stepwise.commands.values import Count, Natural, Port, Seconds
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import SCORED
from safe_stepwise.methods.verified import doubts
from safe_stepwise.records import FAILED, Attempt, Question, Sample, Trajectory, Usage
from safe_stepwise.steps import format_step
from safe_stepwise.store import progress, sizes
from safe_stepwise.store.terminal import printable, sanitize

MODEL = "safe-stepwise"
OWNER = "safe-stepwise"
MARK = "[not verified: {}]"
"""The warning before an answer that is not verified."""
RETRY_AFTER_S = 5
MAX_SAMPLES = 16
"""The most trajectories that a request may have sampled."""
Answer = Callable[[Question, Mapping[str, Client], OnAttempt, int], Awaitable[Trajectory]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a server."""

    at_once: Count = 32
    waiting: Natural = 256
    seconds: Seconds = 600.0
    most_bytes: Count = 4 << 20


@dataclass
class VerifiedLoop:
    """The server's state: players that are opened once, and the number of requests that use them or wait."""

    answer: Answer
    players: Mapping[str, Client]
    bounds: Bounds = Bounds()
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
            samples = serving.choice_count(body, MAX_SAMPLES)
            question, ignored = await asyncio.to_thread(parse_request, body)
            async with self._admission():
                extra_fields = self._marks | ({"messages_not_read": ignored} if ignored else {})
                reply = ChatReply(MODEL, extra_fields)
                if body.get("stream"):
                    stream = await serving.begin_stream(request, {})
                    await self._stream(stream, body, question, reply, line)
                    return stream
                trajectory = await self._answer_noted(question, lambda _: None, line, samples)
                messages = [_message(trajectory), *map(_message, rank_samples(trajectory)[1:])]
                reply.extra_fields = extra_fields | {"verification": await _verification(body, question, trajectory)}
                return serving.answer_json(reply.completion(messages, _total_usage(trajectory)))

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
        answering = asyncio.ensure_future(self._answer_noted(question, queue.put_nowait, line))
        answering.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (attempt := await queue.get()) is not None:
                lines = transcript.render_attempt(attempt)
                await stream.write(reply.chunk({"reasoning_content": "".join(f"{text}\n" for text in lines)}))
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
            raise HttpRefusal(429, f"{self._active} questions are here already: come again", RETRY_AFTER_S)
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1

    async def _answer_noted(
        self, question: Question, on_attempt: OnAttempt, line: list[str], samples: int = 1
    ) -> Trajectory:
        """Answer a question and note its outcome in the log's line; raises `HttpRefusal` where it failed."""
        trajectory = await self._answer_in_time(question, on_attempt, samples)
        if trajectory.stop_reason == FAILED:
            raise HttpRefusal(502, f"a request to the model failed ({sanitize(trajectory.failure)}); ask again")
        line.append("not verified" if doubts(trajectory) else "verified")
        line.append(f"{len(trajectory.steps)} steps, {len(trajectory.attempts)} tries")
        return trajectory

    async def _answer_in_time(self, question: Question, on_attempt: OnAttempt, samples: int) -> Trajectory:
        """Answer a question within its time limit; raises `HttpRefusal` if it takes longer or no player can work."""
        try:
            async with asyncio.timeout(self.bounds.seconds), self._slots:
                return await self.answer(question, self.players, on_attempt, samples)
        except TimeoutError:
            reason = f"no answer within {self.bounds.seconds:g} s; what was done is kept: ask again"
            raise HttpRefusal(504, reason) from None
        except UserError as error:
            # A client that has given up answers no more requests; the server needs new ones.
            self.players = {
                role: Client(client.engine, client.cache, client.in_flight, client.tries, client.allowance)
                for role, client in self.players.items()
            }
            progress.note(str(error))
            raise HttpRefusal(503, sanitize(error), RETRY_AFTER_S) from None


def parse_request(body: Mapping[str, Any]) -> tuple[Question, int]:
    """Parse a request: its question, the last message, and the number of ignored ones; raises `HttpRefusal`."""
    messages = serving.validated_messages(body, MODEL)
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
    if len(passages) > sizes.MAX_PASSAGES:  # before each is looked at
        raise HttpRefusal(400, f"passages has {len(passages)} entries, at most {sizes.MAX_PASSAGES} are read")
    try:
        pages = [reading.parse_passage(page, f"passages[{n}]") for n, page in enumerate(passages)]
        return reading.unannotated_question(text, pages), len(messages) - 1
    except UserError as error:
        raise HttpRefusal(400, str(error)) from None


def _message(answered: Trajectory | Sample) -> dict[str, str]:
    attempts = (attempt for attempt in answered.attempts if attempt.state != SCORED)
    lines = [text for attempt in attempts for text in transcript.render_attempt(attempt)]
    return {"content": render_content(answered), "reasoning_content": "\n".join(lines)}


def rank_samples(trajectory: Trajectory) -> list[Sample]:
    """Return a trajectory's samples, the best first; none if it was not chosen among several."""
    return sorted(trajectory.sampled, key=lambda sample: (not sample.answer, -(sample.score or 0.0)))


def render_content(trajectory: Trajectory | Sample) -> str:
    """Render the answer as one line, with a warning before it where it is not verified, which no answer can hide.

    >>> render_content(Trajectory("q", "safe", (), (), "", "max_steps"))
    '[not verified: no answer was reached]'
    """
    warning = printable("; ".join(doubts(trajectory)))
    return "\n\n".join(filter(None, [MARK.format(warning) if warning else "", printable(trajectory.answer)]))


async def _verification(body: Mapping[str, Any], question: Question, trajectory: Trajectory) -> dict[str, Any]:
    reasons = doubts(trajectory)
    outcome = {
        "verified": not reasons,
        "doubts": list(reasons),
        "answer": trajectory.answer,
        "stop_reason": trajectory.stop_reason,
        "steps": len(trajectory.steps),
        "tries": len(trajectory.attempts),
        "tokens": transcript.tokens_by_role(trajectory),
        **({"scores": [sample.score for sample in rank_samples(trajectory)]} if trajectory.sampled else {}),
    }
    if body.get("check"):
        report = await asyncio.to_thread(check.report_row, question, list(map(format_step, trajectory.steps)))
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

    async def run() -> None:
        async with options.opened() as clients:
            loop = VerifiedLoop(options.answer, clients, options.bounds)
            await serving.serve(loop.application(options.host), options.host, options.port, started)

    def started(port: int) -> None:
        print(f"{MODEL} answers at http://{options.host}:{port}/v1; Ctrl-C ends it", flush=True)

    serving.run_server(run)


main = command(serve_loop, roles=ROLES)
