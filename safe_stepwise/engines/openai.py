"""The engine for any OpenAI-compatible server: ``vllm serve``, SGLang, hosted APIs.

Spec: ``openai:MODEL@http://host:8000/v1``, or ``openai:MODEL`` for ``OPENAI_BASE_URL`` (else OpenAI's own). The key is
read from ``OPENAI_API_KEY`` and never stored. A server gives a LoRA adapter its own model name: write that as MODEL,
with its revision in the name.

Servers differ in the fields that they accept (`engines.dialect`). ``chat_template_kwargs`` turn thinking off; they are
sent if the server's list of models says that it is vLLM, SGLang or llama.cpp, which pass them to the model's template.
``?template=on`` at the end of a spec sends them to a server that does not identify itself (a proxy before vLLM),
``?template=off`` lets a model think. A request with a reasoning effort has ``reasoning_effort`` instead.
``?without=temperature,top_p,seed,schema,logprobs`` omits fields, ``?system=user`` puts a system turn into the user's,
``?max_tokens`` names the limit as older servers do; ``&`` joins several. Without switches the engine learns them from
the first refusal that names such a field.

A server that identifies itself as vLLM (0.11 or later) enforces a request's ``choices``; every other server receives
the request's schema instead.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import os
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager, suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from safe_stepwise.engines.base import Completion, EngineError, Message, Request, Sampling, completion
from safe_stepwise.engines.dialect import FIELD_NAMES, Complaint, Dialect
from safe_stepwise.engines.probability import label_probability
from safe_stepwise.errors import UserError, require_modules, server_hint
from safe_stepwise.records import Usage
from safe_stepwise.store import boundary, terminal
from safe_stepwise.store.names import LOOPBACK, SIMULATED
from safe_stepwise.store.progress import note

if TYPE_CHECKING:
    import openai

EXAMPLE = "openai:gpt-oss-120b@http://localhost:8000/v1"
STAND_IN = "simulated"
"""The model name of `safe-stepwise stand-in`, or its beginning before a hyphen."""
TIMEOUT_S = 600.0
"""Maximum seconds of one call, from its first byte to its last."""
CHECK_TIMEOUT_S = 30.0  # of a call that checks the server
_TRANSIENT = frozenset((408, 409, 425, 429))
_OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY = "none"
_PROBE = Request((Message("user", "Reply with one word."),), Sampling(max_tokens=16))
_NO_HEADERS: Mapping[str, str] = {}
_MAX_NAME_CHARS, _MAX_PLACE_CHARS, _MAX_NAMES = 100, 200, 5
_ADDRESS = re.compile(r"@(https?://\S+)$", re.IGNORECASE)
_BARE_ADDRESS = re.compile(r"@((?:localhost|[^@]*:\d+|(?:\d+\.){3}\d+|[^@]*/v1)(?:/\S*)?)$", re.I)
"""An address without its scheme: a host with a port, or another form that no revision of a model has."""


class OpenAIEngine:
    """An engine that sends requests to an OpenAI-compatible server; ``timeout`` is that of one call, in seconds.

    ``base_url``: None for ``OPENAI_BASE_URL`` or OpenAI's server; ``dialect``: the switches of a spec. Raises
    ``UserError`` for an invalid address or key. A missing extra is an error only at the first request.
    """

    def __init__(
        self, model: str, base_url: str | None = None, *, timeout: float | None = None, dialect: Dialect | None = None
    ) -> None:
        dialect = dialect or Dialect()
        self.model = model
        self.simulated = model == STAND_IN or model.startswith(f"{STAND_IN}-")
        self.name = f"openai:{model}{dialect.query}{SIMULATED if self.simulated else ''}"
        self.base_url = _check_address(base_url or os.environ.get("OPENAI_BASE_URL") or None)
        self._spec = dialect
        self._dialect = dialect if self.base_url else dialect.resolve("openai")
        self._learning = asyncio.Lock()
        _read_key()
        self.timeout = timeout or TIMEOUT_S
        self.identity: Mapping[str, Any] = {
            "engine": "openai",
            "model": model,
            "base_url": self.base_url,
            **dialect.non_default,
        }

    @classmethod
    def read(cls, spec: str) -> OpenAIEngine:
        """Make the engine of ``MODEL[@ADDRESS][?SWITCHES]``; raise ``UserError`` for anything else."""
        before, _, query = spec.rpartition("?")
        dialect = Dialect.read(query) if before else None
        spec = before if dialect else spec
        address = _ADDRESS.search(spec)
        model = spec[: address.start()] if address else spec
        if not model or "://" in model:
            raise UserError(f"'openai:{spec}' names no model, or its address can't be read: write {EXAMPLE}")
        if not address and (bare := _BARE_ADDRESS.search(spec)):
            corrected = f"openai:{spec[: bare.start()]}@http://{bare[1]}"
            raise UserError(f"'openai:{spec}': its address lacks http://; write {corrected}")
        return cls(model, address[1] if address else None, dialect=dialect)

    @functools.cached_property
    def _library(self) -> Any:
        # Its transport is aiohttp, which a bare `pip install openai` lacks.
        require_modules("the openai engine", "its client", "openai", "openai", "aiohttp")
        import openai

        return openai

    @functools.cached_property
    def _client(self) -> openai.AsyncOpenAI:
        client: openai.AsyncOpenAI = self._library.AsyncOpenAI(
            base_url=self.base_url or _OPENAI_URL,
            api_key=_read_key(),
            timeout=self.timeout,
            max_retries=0,  # the client of this package retries, counts and backs off
            # The default transport searches all its connections on every call. Redirects are not followed, as they
            # would send the key and the questions to a server that the user did not name.
            http_client=self._library.DefaultAioHttpClient(
                follow_redirects=False, event_hooks={"response": [Reader()]}
            ),
        )
        return client

    async def check(self) -> None:
        """Raise ``UserError`` if no server answers or it does not serve the model."""
        errors, server = self._library, f"openai:{self.model}@{self.base_url or _OPENAI_URL}"
        if self.base_url is None and _read_key() == _NO_KEY:
            raise UserError(
                f"openai:{self.model}: OpenAI's own server wants a key: set OPENAI_API_KEY, or "
                f"name another server as openai:{self.model}@http://localhost:8000/v1"
            )
        try:
            owners = _read_owners(await self._request_models())
        except errors.AuthenticationError:
            raise UserError(f"{server}: the key was refused; set OPENAI_API_KEY") from None
        except errors.APIStatusError as error:
            if 300 <= error.status_code < 400:
                raise UserError(f"{server}: the server {_redirect_advice(error.response.headers)}") from None
            return  # a server without a list of models may still answer
        except (errors.APIConnectionError, TimeoutError) as error:
            mend = "correct the address, or look to your network"
            if urlsplit(self.base_url or _OPENAI_URL).hostname in LOOPBACK:
                mend = f"{server_hint(self.model)}, or correct the address"
            raise UserError(f"{server}: no server answers there ({describe_cause(error)}); {mend}") from None
        except Exception:  # errors of aiohttp and of the JSON reader, which the client does not catch
            raise UserError(
                f"{server}: what answers there is no OpenAI-compatible server; "
                "correct the address, which usually ends in /v1"
            ) from None
        self._dialect = self._dialect.resolve(owners.get(self.model))
        if owners and self.model not in owners:
            await self._try_unlisted(server, owners)

    async def _try_unlisted(self, server: str, owners: Mapping[str, str]) -> None:
        """Send a short request for a model that the server does not list: many serve more than they list."""
        listed = [terminal.redact(name)[:_MAX_NAME_CHARS] for name in sorted(owners)[:_MAX_NAMES]]
        names = ", ".join([*listed, *(["..."] if len(owners) > _MAX_NAMES else [])])
        reply: Completion | EngineError | None = None
        with suppress(TimeoutError):  # it may take minutes to load
            async with asyncio.timeout(min(self.timeout, CHECK_TIMEOUT_S)):
                reply = await self._complete(_PROBE)
        if isinstance(reply, EngineError) and not reply.transient:
            raise UserError(f"{server}: the server lists {names}, not this model, and refuses it ({reply})")
        note(f"{server} lists {names}; asked for {self.model} all the same")

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """Make one call for each request, all at once."""
        return await asyncio.gather(*map(self._complete, requests))

    async def close(self) -> None:
        if (client := self.__dict__.pop("_client", None)) is not None:
            await client.close()

    async def _request_models(self) -> bytes:
        # The client's own timeout restarts with every byte that arrives.
        async with asyncio.timeout(min(self.timeout, CHECK_TIMEOUT_S)):
            content: bytes = await self._client.get("/models", cast_to=bytes)
            return content

    async def _learn_owner(self) -> None:
        """Resolve the dialect by the model's owner, once; raise ``EngineError`` if the server can't tell it now."""
        async with self._learning:
            if self._dialect.template is None or self._dialect.choices is None:
                self._dialect = self._dialect.resolve(await self._find_owner())

    async def _find_owner(self) -> str | None:
        """Return the model's owner in the list of models; None if there is no such list."""
        try:
            with self._engine_errors():
                content = await self._request_models()
                with suppress(LookupError, TypeError, AttributeError):  # JSON that is no list
                    return _read_owners(content).get(self.model)
        except EngineError as error:
            if error.transient and not str(error).startswith("HTTP 500"):  # which means that there is no list
                raise
        return None

    async def _complete(self, request: Request) -> Completion | EngineError:
        try:
            if self._dialect.template is None or (request.choices and self._dialect.choices is None):
                await self._learn_owner()
            dialect, learned = self._dialect, list[tuple[str, _Refusal]]()
            while True:
                body = dialect.make_body(self.model, request)
                try:
                    reply = await self._post(json.dumps(body, allow_nan=False).encode(), request.labels)
                except _Refusal as refusal:
                    lesson = dialect.relearn(refusal.complaint, body) if refusal.is_of_form else None
                    if lesson is None:
                        return refusal
                    field, dialect = lesson
                    learned.append((field, refusal))
                else:
                    self._adopt(learned)
                    return reply
        except EngineError as error:
            return error
        except ValueError as error:
            return EngineError(f"the request can't be sent ({error})")

    async def _post(self, content: bytes, labels: Sequence[str]) -> Completion:
        with self._engine_errors():
            async with asyncio.timeout(self.timeout):
                # The typed method would take longer to walk our data than everything else.
                reply = await self._client.post("/chat/completions", cast_to=bytes, content=content)
            return read_completion(reply, labels)

    def _adopt(self, learned: Sequence[tuple[str, _Refusal]]) -> None:
        """Omit the fields without which a request was answered from all later ones, and print a note on each."""
        for field, refusal in learned:
            if (dialect := self._dialect.without_field(field)) == self._dialect:  # another request has learned this
                continue
            self._dialect = dialect
            switches = replace(dialect, template=self._spec.template).query
            advice = f"; end the spec in {switches}, and records say so, too" if switches != self._spec.query else ""
            note(f"{self.name}: asked without {FIELD_NAMES.get(field, field)} from now on ({refusal}){advice}")

    @contextmanager
    def _engine_errors(self) -> Iterator[None]:
        errors = self._library
        try:
            yield
        except errors.APIStatusError as error:
            complaint = Complaint.read(error.response.content)
            raise self._make_refusal(error.status_code, complaint, error.response.headers) from None
        except (errors.APIConnectionError, TimeoutError) as error:
            raise EngineError(describe_cause(error), transient=True) from None
        except _ErrorInReply as error:
            raise self._make_refusal(error.complaint.status or 502, error.complaint, is_ok=True) from None
        except EngineError:
            raise
        except Exception as error:
            # The client does not catch a truncated body, a body without choices, or a reply that is not HTTP.
            raise EngineError(f"unreadable reply ({type(error).__name__})", transient=True) from None

    def _make_refusal(
        self, status: int, complaint: Complaint, headers: Mapping[str, str] = _NO_HEADERS, *, is_ok: bool = False
    ) -> EngineError:
        """Make a refused request's error (``is_ok``: with HTTP 200); raise ``UserError`` for key or account."""
        reason = "HTTP 200 with an error" if is_ok else f"HTTP {status}"
        reason += f": {complaint.text}" if complaint.text else ""
        if status == 401:
            raise UserError(
                f"{self.name}: the key was refused; set OPENAI_API_KEY, and run the same command again ({reason})"
            )
        if status == 402 or complaint.is_about_account:
            mend = "mend that, and run the same command again"
            raise UserError(f"{self.name}: the account is out of credit, or closed; {mend} ({reason})")
        if status == 404 and not re.search(r"/v\d+/?$", self.base_url or _OPENAI_URL):
            reason += " (the address usually ends in /v1)"
        if 300 <= status < 400:
            reason += f": {_redirect_advice(headers)}"
        return _Refusal(
            reason,
            complaint,
            # llama.cpp refuses a system turn with HTTP 500.
            is_of_form=(status in (400, 422) and not is_ok) or "raise_exception" in complaint.text,
            transient=status in _TRANSIENT or status >= 500,
            retry_after=retry_seconds(headers.get("retry-after")),
            refused=status == 403,
        )


class _Refusal(EngineError):
    """An error that a server sent; ``is_of_form``: whether the request's fields may be the reason."""

    def __init__(self, reason: str, complaint: Complaint, *, is_of_form: bool, **options: Any) -> None:
        super().__init__(reason, **options)
        self.complaint, self.is_of_form = complaint, is_of_form


class _ErrorInReply(Exception):
    """An error in a response with HTTP 200."""

    def __init__(self, error: Any) -> None:
        self.complaint = Complaint.read(json.dumps({"error": error}).encode()[:MAX_ERROR_BYTES])


def _check_address(text: str | None) -> str | None:
    """Return a server's address if it is valid, else raise ``UserError``; None means OpenAI's server."""
    if text is None:
        return None
    try:
        url = urlsplit(text)
        is_address = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:
        is_address = False
    if not is_address or not re.fullmatch("[!-~]+", text):
        raise UserError(f"{text!r} is not a server's address: write it as http://localhost:8000/v1")
    if url.username is not None or url.password is not None:
        raise UserError("a server's address must hold no user or password: set OPENAI_API_KEY")
    return text


def _read_key() -> str:
    key = os.environ.get("OPENAI_API_KEY", "").strip() or _NO_KEY
    if not (key.isascii() and key.isprintable()):
        raise UserError("OPENAI_API_KEY holds characters that no key has; set it anew")
    return key


def _read_owners(content: bytes) -> dict[str, str]:
    return {str(model["id"]): str(model.get("owned_by")) for model in boundary.parse_json(content)["data"]}


def _redirect_advice(headers: Mapping[str, str]) -> str:
    place = terminal.redact(str(headers.get("location")))[:_MAX_PLACE_CHARS]
    return f"redirects to {place}, which is not followed: name the address that answers"


MAX_REPLY_BYTES = 8 << 20
"""Maximum bytes of a decompressed reply: a hundred times the longest that a request allows."""
MAX_ERROR_BYTES = 1 << 16
"""Maximum bytes of an error message that are read."""
MAX_TOKEN_COUNT = 1 << 31
"""Bound of the tokens of one call, far beyond those of any model."""
_LONG_BYTES = 1 << 18
_LONG_AT_ONCE = 8
"""Maximum number of replies of over `_LONG_BYTES` that are read at the same time."""


class Reader:
    """A hook of the HTTP client that reads a response to its end or a limit in bytes, which the library lacks.

    It reads only a few long replies at a time, as hundreds of them would not fit into memory.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_LONG_AT_ONCE)

    async def __call__(self, response: Any) -> None:
        """Read a response; raise ``EngineError`` for a reply beyond the limit."""
        content = bytearray()
        limit = MAX_REPLY_BYTES if response.is_success else MAX_ERROR_BYTES
        async with AsyncExitStack() as stack, aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                if len(content) <= _LONG_BYTES < len(content) + len(chunk):
                    await stack.enter_async_context(self._slots)
                content += chunk
                if len(content) > limit:
                    break
        if len(content) > limit:
            await response.aclose()
            del content[MAX_ERROR_BYTES:], chunk  # or the error would keep it in memory
            if response.is_success:
                raise EngineError(f"the reply is longer than {MAX_REPLY_BYTES >> 20} MB", transient=True)
        response.encoding = "utf-8"  # a header may name a codec that takes hours
        response._content = bytes(content)  # the library does not read it again


def read_completion(content: bytes, labels: Sequence[str] = ()) -> Completion:
    """Read a response, with the probability of the first of ``labels`` if the response has it.

    Raises ``ValueError``, ``LookupError`` or ``TypeError`` for anything else.
    """
    reply = boundary.parse_json(content)
    if "choices" not in reply and reply.get("error"):
        raise _ErrorInReply(reply["error"])
    choice = reply["choices"][0]
    if choice.get("error"):
        raise _ErrorInReply(choice["error"])
    message = choice["message"]
    usage = _as_mapping(reply.get("usage"))
    prompt, generated = _read_count(usage.get("prompt_tokens")), _read_count(usage.get("completion_tokens"))
    cached = _read_count(_as_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    reasoning = _read_count(_as_mapping(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    if usage.get("total_tokens") == prompt + generated + reasoning:  # xAI counts a thought beside the completion
        generated += reasoning
    text, thought, refusal = _split_content(message.get("content"))
    for name in _THOUGHT_KEYS:
        thought = thought or "".join(_split_content(message.get(name))[:2])
    refusal = refusal or _split_content(message.get("refusal"))[0]
    if not (text or thought or refusal) and message.get("tool_calls"):
        refusal = "it calls a tool, and none was offered"
    tokens = Usage(prompt, min(cached, prompt), generated, min(reasoning, generated))
    read = completion(text, tokens, choice.get("finish_reason"), thought=thought, refusal=refusal)
    score = _read_score(choice.get("logprobs"), labels) if labels and read.ending == "whole" else None
    return read if score is None else replace(read, score=score)


def _read_score(logprobs: Any, labels: Sequence[str]) -> float | None:
    """Read a label's probability from a choice's ``logprobs``; None if there are none, or not in OpenAI's form."""
    try:
        tokens = logprobs["content"]
        alternatives = [
            [(str(likely["token"]), min(float(likely["logprob"]), 0.0)) for likely in (*token["top_logprobs"], token)]
            for token in tokens
        ]
        texts = [str(token["token"]) for token in tokens]
    except (LookupError, TypeError, ValueError, OverflowError):
        return None
    if any(math.isnan(log_probability) for likely in alternatives for _, log_probability in likely):
        return None
    return label_probability(texts, lambda index: dict(alternatives[index]).items(), labels)


_THOUGHT_KEYS = ("reasoning_content", "reasoning", "reasoning_details")
"""The keys of thoughts in replies of vLLM and DeepSeek, of vLLM and OpenRouter, and of OpenRouter."""


def _split_content(content: Any) -> tuple[str, str, str]:
    """Return text, thought and refusal of a message's content: a text, nothing, or a list of items.

    >>> _split_content([{"type": "thinking", "thinking": "Tesk?"}, {"type": "text", "text": "Oru"}])
    ('Oru', 'Tesk?', '')
    """
    if content is None or isinstance(content, str):
        return content or "", "", ""
    if not isinstance(content, list):
        raise TypeError("the content is neither a text nor a list of parts")
    text = thought = refusal = ""
    for item in content:
        if item["type"] == "refusal":
            refusal += item["refusal"]
        elif item["type"].startswith(("thinking", "reasoning")):
            inner = next((item[name] for name in ("thinking", "text", "summary", "reasoning") if item.get(name)), "")
            thought += "".join(_split_content(inner))
        else:
            text += item["text"]
    return text, thought, refusal


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read_count(value: Any) -> int:
    """Return a count of tokens; 0 for a value that can't be one."""
    return value if type(value) is int and 0 <= value < MAX_TOKEN_COUNT else 0


def describe_cause(error: BaseException) -> str:
    """Describe the innermost cause of an error, as the transport also reports a refused connection as a timeout."""
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


def retry_seconds(header: str | None) -> float | None:
    """Parse the seconds of a Retry-After header, a number or a date; None if it is neither.

    >>> [retry_seconds(text) for text in ("1.5", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", None)]
    [1.5, 0.0, None, None]
    """
    if header is None:
        return None
    with suppress(ValueError):
        return float(header)
    with suppress(ValueError, OverflowError, OSError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    return None
