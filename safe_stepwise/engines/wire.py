"""What comes over the wire, which may be long, slow, nested or wrong so as to do harm."""

import asyncio
import os
import re
import socket
import ssl
import time
from contextlib import AsyncExitStack, aclosing
from email.utils import parsedate_to_datetime
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError
from safe_stepwise.records import Usage
from safe_stepwise.store.parsing import parse_json

LARGEST = 8 << 20
"""Bytes of a reply, decompressed: a hundred times the longest that a model is asked for."""
LARGEST_ERROR = 1 << 16
"""Of one that reports an error; the rest isn't read."""
LARGEST_COUNT = 1 << 31
"""Tokens of one call; no model comes near it."""
_LONG = 1 << 18
_LONG_AT_ONCE = 8


class Reader:
    """Reads a response to its end or its limit, before the library would without any.

    A hook of the HTTP client. Of replies that are long few are read at a time: with hundreds under
    way all of them together would take the memory that one may not.
    """

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_LONG_AT_ONCE)

    async def __call__(self, response: Any) -> None:
        """Raises ``EngineError`` for a reply beyond its limit."""
        content = bytearray()
        limit = LARGEST if response.is_success else LARGEST_ERROR
        async with AsyncExitStack() as turn, aclosing(response.aiter_bytes()) as parts:
            async for part in parts:
                if len(content) <= _LONG < len(content) + len(part):
                    await turn.enter_async_context(self._turns)
                content += part
                if len(content) > limit:
                    break
        if len(content) > limit:
            await response.aclose()
            del content[LARGEST_ERROR:], part  # or the error would hold it as long as it lives
            if response.is_success:
                raise EngineError(f"the reply is longer than {LARGEST >> 20} MB", transient=True)
        response.encoding = "utf-8"  # some codecs that a header may name take hours
        response._content = bytes(content)  # what is read already the library leaves be


def completion(content: bytes) -> Completion:
    """What a response says; ``ValueError``, ``LookupError`` or ``TypeError`` where it is none."""
    reply = parse_json(content)
    choice = reply["choices"][0]
    text = choice["message"].get("content") or ""
    if not isinstance(text, str):
        raise TypeError("the content is no text")
    usage = _mapping(reply.get("usage"))
    prompt = _count(usage.get("prompt_tokens"))
    cached = _count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    return Completion(
        text,
        Usage(prompt, min(cached, prompt), _count(usage.get("completion_tokens"))),
        "length" if choice.get("finish_reason") == "length" else "stop",
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    """A count of tokens; whatever can't be one is none.

    >>> _count(12), _count(True), _count("12"), _count(-1), _count(10**30), _count(None)
    (12, 0, 0, 0, 0, 0)
    """
    known = type(value) is int and 0 <= value < LARGEST_COUNT
    return value if known else 0


def fault(error: BaseException) -> str:
    """What went wrong underneath; the transport calls a refused connection a timeout, too."""
    while error.__cause__ is not None and not isinstance(error, TimeoutError):
        error = error.__cause__
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, socket.gaierror):
        return "no such host"
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.errno:
        return os.strerror(error.errno).lower()
    words = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return f"connection failed ({words})"


def wait(header: str | None) -> float | None:
    """Seconds that a Retry-After asks for, as a number or as a date.

    >>> wait("1.5"), wait("Wed, 21 Oct 2015 07:28:00 GMT"), wait("soon"), wait(None)
    (1.5, 0.0, None, None)
    """
    if header is None:
        return None
    try:
        return float(header)
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None
