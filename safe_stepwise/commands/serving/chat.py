"""Chat completions of the OpenAI protocol: the parts that both servers use."""

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from safe_stepwise.records import Usage


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

    def __init__(self, model: str, marks: Mapping[str, Any]) -> None:
        self.model, self.marks = model, marks
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def completion(self, message: Mapping[str, Any], usage: Usage, finish: str = "stop") -> bytes:
        """Write the body of a reply that is not a stream."""
        choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": finish}
        content = self._head("chat.completion") | {"choices": [choice], "usage": usage_object(usage)}
        return json.dumps(content).encode()

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **fields: Any) -> bytes:
        """Write an event of a stream; ``fields`` are added to it."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event(self._head("chat.completion.chunk") | {"choices": [choice]} | fields)

    def usage_chunk(self, usage: Usage) -> bytes:
        """Write the event of a stream that counts its tokens."""
        return event(self._head("chat.completion.chunk") | {"choices": [], "usage": usage_object(usage)})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self.model, **self.marks}


STREAM_END = b"data: [DONE]\n\n"


def event(content: Mapping[str, Any]) -> bytes:
    """Write an event of a stream, in ASCII JSON, which has no line break in it."""
    return f"data: {json.dumps(content)}\n\n".encode()


def usage_object(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        **({"completion_tokens_details": {"reasoning_tokens": usage.thought}} if usage.thought else {}),
    }


def list_models(names: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Make the list of models; ``names`` maps each to its further fields."""
    head = {"object": "model", "created": 0, "owned_by": owner}
    return {"object": "list", "data": [{"id": name, **head, **fields} for name, fields in names.items()]}


def check_model(name: Any, names: Iterable[str]) -> str:
    """Return the name of a model that the server has; raises `HttpRefusal` for any other."""
    if name not in names:
        raise HttpRefusal(404, f"no such model: this server has {', '.join(names)} alone")
    return str(name)


def message_text(message: Any) -> str:
    """Return the text of a message; its content is a text or a list of text parts, else `HttpRefusal` is raised."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        texts = [item["text"] for item in content if isinstance(item, Mapping) and isinstance(item.get("text"), str)]
        content = "\n".join(texts) if texts and len(texts) == len(content) else None
    if not isinstance(content, str):
        raise HttpRefusal(400, "a message's content has to be text")
    return content


def request_messages(body: Mapping[str, Any], model: str) -> list[Any]:
    """Return the messages of a request for a ``model``; raises `HttpRefusal` for a request that is not valid."""
    check_model(body.get("model"), [model])
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise HttpRefusal(400, "messages has to be a list of at least one")
    if body.get("n") not in (None, 1):
        raise HttpRefusal(400, "n can't be but 1: the answer is always the same")
    return messages
