"""A server without a model: a symbolic player, or a script, behind the OpenAI protocol.

Everything that it says is marked as simulated: its models are called ``simulated``, which engines
and their names go by, and each reply has ``"simulated": true``, a fingerprint and a header.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from aiohttp import web

from safe_stepwise.commands.serving import chat
from safe_stepwise.commands.serving.chat import Refused, Reply
from safe_stepwise.commands.serving.http import answer_json, application, begin_stream, body_of, model_routes
from safe_stepwise.commands.serving.scenes import Known, request_of
from safe_stepwise.engines.base import NO_USAGE, Engine, EngineError
from safe_stepwise.engines.client import complete_once
from safe_stepwise.engines.mock import prompt_tokens, split_tokens
from safe_stepwise.engines.openai import STAND_IN
from safe_stepwise.errors import UserError
from safe_stepwise.open import open_engine
from safe_stepwise.records import Question, Usage, identity
from safe_stepwise.store.terminal import credentials

MARKS = {"simulated": True, "system_fingerprint": STAND_IN}
HEADERS = {"X-Simulated": "true"}
OWNER = "safe-stepwise stand-in, simulated"
_PLAIN = "symbolic"


class StandIn:
    """What stands in, and the name of the model that it serves.

    Other settings or another script is another name: who keeps replies keeps them by it. What is
    annotated of a question is not in it, so whoever mends that asks with another cache.
    """

    def __init__(self, spec: str, questions: Iterable[Question]) -> None:
        """Raises ``UserError`` for a spec that is not of a simulated engine."""
        self._engine: Engine = open_engine(spec)
        if not self._engine.simulated or spec.startswith("openai:"):
            raise UserError(f"{spec}: a stand-in has no model: write symbolic, or mock:FILE")
        self._known = Known(questions)
        self._is_script = spec.partition(":")[0] == "mock"
        digest = identity(dict(self._engine.identity))[:8]
        self.model = STAND_IN if spec == _PLAIN else f"{STAND_IN}-{digest}"

    def application(self, most_bytes: int, host: str = "127.0.0.1") -> web.Application:
        """The application at a host; each request is answered by itself."""
        routes = [*model_routes({self.model: MARKS}, OWNER), web.post("/v1/chat/completions", self._complete)]
        return application(routes, most_bytes, host)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request)
        message, usage, finish = await self._reply(body)
        reply = Reply(self.model, MARKS)
        if not body.get("stream"):
            response = answer_json(reply.whole(message, usage, finish))
            response.headers.update(HEADERS)
            return response
        stream = await begin_stream(request, HEADERS)
        await stream.write(reply.chunk({"role": "assistant", **message}))
        await stream.write(reply.chunk({}, finish) + reply.spent(usage) + chat.DONE)
        return stream

    async def _reply(self, body: dict[str, Any]) -> tuple[dict[str, str], Usage, str]:
        asked = request_of(body, chat.messages_of(body, self.model))
        if not self._is_script:
            scene = self._known.scene(asked.role, asked.messages[-1].content)
            asked = replace(asked, scene=scene)
        try:
            reply = await complete_once(self._engine, asked, tuple(credentials().values()))
        except EngineError as error:
            wait = None if error.retry_after is None else max(1, round(error.retry_after))
            raise Refused(503 if error.transient else 400, str(error), wait) from None
        usage, message = reply.usage, {"content": reply.transcript}
        if usage == NO_USAGE:
            thought, said = len(split_tokens(reply.thought)), len(split_tokens(reply.transcript))
            usage = Usage(len(prompt_tokens(asked)), 0, thought + said, thought)
        if reply.thought:
            message["reasoning_content"] = reply.thought
        return message, usage, "stop" if reply.ending == "whole" else "length"
