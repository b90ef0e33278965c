"""A server without a model: a symbolic player, or a script, behind the OpenAI protocol.

All its replies are marked as simulated: its models are called ``simulated``, by which engines recognise them, and each
reply has ``"simulated": true``, a fingerprint and a header.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from aiohttp import web

from safe_stepwise.commands.serving import chat
from safe_stepwise.commands.serving.http import answer_json, application, begin_stream, model_routes, read_body
from safe_stepwise.commands.serving.scenes import QuestionIndex, request_of
from safe_stepwise.engines import client, openai
from safe_stepwise.engines.base import NO_USAGE, Engine, EngineError
from safe_stepwise.engines.mock import prompt_tokens, split_tokens
from safe_stepwise.errors import UserError
from safe_stepwise.open import open_engine
from safe_stepwise.records import Question, Usage, identity
from safe_stepwise.store.terminal import credentials

MARKS = {"simulated": True, "system_fingerprint": openai.STAND_IN}
HEADERS = {"X-Simulated": "true"}
OWNER = "safe-stepwise stand-in, simulated"
_PLAIN = "symbolic"


class StandIn:
    """The simulated engine, and the name of the model that it serves.

    Other settings, or another script, change the name, as clients cache replies by it. The annotations of the
    questions are no part of the name: who mends them has to use a new cache.
    """

    def __init__(self, spec: str, questions: Iterable[Question]) -> None:
        """Open the engine; raises ``UserError`` for a spec of an engine that is not simulated."""
        self._engine: Engine = open_engine(spec)
        if not self._engine.simulated or spec.startswith("openai:"):
            raise UserError(f"{spec}: a stand-in has no model: write symbolic, or mock:FILE")
        self._questions = QuestionIndex(questions)
        self._is_script = spec.partition(":")[0] == "mock"
        digest = identity(dict(self._engine.identity))[:8]
        self.model = openai.STAND_IN if spec == _PLAIN else f"{openai.STAND_IN}-{digest}"

    def application(self, most_bytes: int, host: str = "127.0.0.1") -> web.Application:
        routes = [*model_routes({self.model: MARKS}, OWNER), web.post("/v1/chat/completions", self._complete)]
        return application(routes, most_bytes, host)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await read_body(request)
        message, usage, finish = await self._reply(body)
        reply = chat.ChatReply(self.model, MARKS)
        if not body.get("stream"):
            response = answer_json(reply.completion(message, usage, finish))
            response.headers.update(HEADERS)
            return response
        stream = await begin_stream(request, HEADERS)
        await stream.write(reply.chunk({"role": "assistant", **message}))
        await stream.write(reply.chunk({}, finish) + reply.usage_chunk(usage) + chat.STREAM_END)
        return stream

    async def _reply(self, body: dict[str, Any]) -> tuple[dict[str, str], Usage, str]:
        prompt = request_of(body, chat.request_messages(body, self.model))
        if not self._is_script:
            prompt = replace(prompt, scene=self._questions.scene(prompt.role, prompt.messages[-1].content))
        try:
            reply = await client.complete_once(self._engine, prompt, tuple(credentials().values()))
        except EngineError as error:
            wait = None if error.retry_after is None else max(1, round(error.retry_after))
            raise chat.HttpRefusal(503 if error.transient else 400, str(error), wait) from None
        usage, message = reply.usage, {"content": reply.transcript}
        if usage == NO_USAGE:
            thought = len(split_tokens(reply.thought))
            usage = Usage(len(prompt_tokens(prompt)), 0, thought + len(split_tokens(reply.transcript)), thought)
        if reply.thought:
            message["reasoning_content"] = reply.thought
        return message, usage, "stop" if reply.ending == "whole" else "length"
