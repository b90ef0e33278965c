"""The OpenAI protocol's chat completions, as far as a server of ours speaks it."""

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from safe_stepwise.records import Usage


class Refused(Exception):
    """A request that is not answered: an HTTP ``status`` and one line that says why."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after

    @property
    def body(self) -> dict[str, Any]:
        """The error as the protocol has it."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.status}}


class Reply:
    """One answer under way: its id, and its parts in the protocol's forms."""

    def __init__(self, model: str, marks: Mapping[str, Any]) -> None:
        self.model, self.marks = model, marks
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def whole(self, message: Mapping[str, Any], usage: Usage, finish: str = "stop") -> bytes:
        """The body of a reply that comes in one piece."""
        choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": finish}
        told = self._head("chat.completion") | {"choices": [choice], "usage": counted(usage)}
        return json.dumps(told).encode()

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        """An event of a stream."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event(self._head("chat.completion.chunk") | {"choices": [choice]} | more)

    def spent(self, usage: Usage) -> bytes:
        """The event of a stream that says what it took."""
        told = self._head("chat.completion.chunk") | {"choices": [], "usage": counted(usage)}
        return event(told)

    def _head(self, kind: str) -> dict[str, Any]:
        head = {"id": self._id, "object": kind, "created": self._created, "model": self.model}
        return head | dict(self.marks)


DONE = b"data: [DONE]\n\n"


def event(content: Mapping[str, Any]) -> bytes:
    """An event of a stream; JSON in ASCII has no line break of any sort in it."""
    return f"data: {json.dumps(content)}\n\n".encode()


def counted(usage: Usage) -> dict[str, Any]:
    """Tokens as the protocol counts them."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        **({"completion_tokens_details": {"reasoning_tokens": usage.thought}} if usage.thought else {}),
    }


def models(names: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """The list of models; of each name what else is told of it."""
    head = {"object": "model", "created": 0, "owned_by": owner}
    data = [{"id": name, **head, **more} for name, more in names.items()]
    return {"object": "list", "data": data}


def known_model(name: Any, names: Iterable[str]) -> str:
    """The name of a model that a server has; raises `Refused` for another."""
    if name not in names:
        raise Refused(404, f"no such model: this server has {', '.join(names)} alone")
    return str(name)


def text_of(message: Any) -> str:
    """The text of a message, whose content is one, or a list of parts that are text.

    Raises `Refused` for any other.
    """
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        texts = [part["text"] for part in content if _is_text(part)]
        content = "\n".join(texts) if texts and len(texts) == len(content) else None
    if not isinstance(content, str):
        raise Refused(400, "a message's content has to be text")
    return content


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("text"), str)


def messages_of(body: Mapping[str, Any], model: str) -> list[Any]:
    """The messages of a request for this ``model``; raises `Refused`."""
    known_model(body.get("model"), [model])
    found = body.get("messages")
    if not isinstance(found, list) or not found:
        raise Refused(400, "messages has to be a list of at least one")
    if body.get("n") not in (None, 1):
        raise Refused(400, "n can't be but 1: the answer is always the same")
    return found
