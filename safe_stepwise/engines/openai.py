"""Any OpenAI-compatible server: ``vllm serve``, SGLang, hosted APIs.

Spec: ``openai:MODEL@http://host:8000/v1``, or ``openai:MODEL`` for ``OPENAI_BASE_URL`` (else
OpenAI's own). The key is read from ``OPENAI_API_KEY`` and never stored. A LoRA adapter is served
under a model name of its own: name that as MODEL, with its revision in the name.

What a server takes beside that differs (`engines.dialect`). Models that can think are asked not to, by
``chat_template_kwargs``, where a server hands them to the model's template: where its list of models says that it is
vLLM, SGLang or llama.cpp. ``?template=on`` at the end of a spec sends them to a server that says nothing of itself (a
proxy before vLLM), ``?template=off`` lets a model think. A request with a reasoning effort has ``reasoning_effort`` in
their place: who names an effort wants thought. ``?without=temperature,top_p,seed,schema`` leaves fields out,
``?system=user`` puts a system turn into the user's, ``?max_tokens`` names the limit as older servers do; several are
joined by ``&``. Unsaid, they are learned from the first refusal that names such a field.

Replies that a request lists are held to by a server that says that it is vLLM (0.11 or later); any
other is sent the request's schema, as it would be without them.
"""

from __future__ import annotations

import asyncio
import functools
import json
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

from safe_stepwise.engines.base import Completion, EngineError, Message, Request, Sampling, completion, require_modules
from safe_stepwise.engines.dialect import FIELD_NAMES, Complaint, Dialect
from safe_stepwise.errors import UserError, start_server
from safe_stepwise.records import Usage
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.names import LOOPBACK, SIMULATED
from safe_stepwise.store.progress import note
from safe_stepwise.store.terminal import redact

if TYPE_CHECKING:
    import openai

EXAMPLE = "openai:gpt-oss-120b@http://localhost:8000/v1"
STAND_IN = "simulated"
"""What all models of `safe-stepwise stand-in` are called, or begin with and a hyphen."""
TIMEOUT_S = 600.0
"""Of one call, from its first byte to its last."""
CHECK_TIMEOUT_S = 30.0
_TRANSIENT = frozenset((408, 409, 425, 429))
_HOME = "https://api.openai.com/v1"
_NO_KEY = "none"
_A_WORD = Request((Message("user", "Reply with one word."),), Sampling(max_tokens=16))
_NO_HEADERS: Mapping[str, str] = {}
_LONGEST_NAME, _LONGEST_PLACE, _MOST_NAMES = 100, 200, 5
_ADDRESS = re.compile(r"@(https?://\S+)$", re.IGNORECASE)
_BARE_ADDRESS = re.compile(r"@((?:localhost|[^@]*:\d+|(?:\d+\.){3}\d+|[^@]*/v1)(?:/\S*)?)$", re.I)
"""A host with a port, or whatever else no revision of a model is called."""


class OpenAIEngine:
    """See the module docstring; ``timeout`` is that of one call, in seconds.

    ``dialect`` is what a spec says of the fields that the server takes. Raises ``UserError`` for an address or key
    that can't be one; without the extra only when it is to answer, as an estimate needs no more than its name.
    """

    def __init__(
        self, model: str, base_url: str | None = None, *, timeout: float | None = None, dialect: Dialect | None = None
    ) -> None:
        dialect = dialect or Dialect()
        self.model = model
        self.simulated = model == STAND_IN or model.startswith(f"{STAND_IN}-")
        marked = SIMULATED if self.simulated else ""
        self.name = f"openai:{model}{dialect.query}{marked}"
        self.base_url = _address(base_url or os.environ.get("OPENAI_BASE_URL") or None)
        self._spec = dialect
        self._dialect = dialect if self.base_url else dialect.resolve("openai")
        self._looking = asyncio.Lock()
        _key()
        self.timeout = timeout or TIMEOUT_S
        self.identity: Mapping[str, Any] = {
            "engine": "openai",
            "model": model,
            "base_url": self.base_url,
            **dialect.plain,
        }

    @classmethod
    def read(cls, rest: str) -> OpenAIEngine:
        """The engine of ``MODEL[@ADDRESS][?SWITCHES]``; ``UserError`` for anything else."""
        before, _, query = rest.rpartition("?")
        dialect = Dialect.read(query) if before else None
        rest = before if dialect else rest
        address = _ADDRESS.search(rest)
        model = rest[: address.start()] if address else rest
        if not model or "://" in model:
            raise UserError(f"'openai:{rest}' names no model, or its address can't be read: write {EXAMPLE}")
        bare = None if address else _BARE_ADDRESS.search(rest)
        if bare:
            meant = f"openai:{rest[: bare.start()]}@http://{bare[1]}"
            raise UserError(f"'openai:{rest}': its address lacks http://; write {meant}")
        return cls(model, address[1] if address else None, dialect=dialect)

    @functools.cached_property
    def _library(self) -> Any:
        # aiohttp is its transport, which a bare `pip install openai` lacks.
        require_modules("openai", "its client", "openai", "openai", "aiohttp")
        import openai

        return openai

    @functools.cached_property
    def _client(self) -> openai.AsyncOpenAI:
        """Opened with the first call: until then an engine is only a name."""
        client: openai.AsyncOpenAI = self._library.AsyncOpenAI(
            base_url=self.base_url or _HOME,
            api_key=_key(),
            timeout=self.timeout,
            max_retries=0,  # the client of this package retries, counts and backs off
            # The default transport looks through all its connections on every call. Redirects
            # would take the key, and the questions, to another place than the user named.
            http_client=self._library.DefaultAioHttpClient(
                follow_redirects=False, event_hooks={"response": [Reader()]}
            ),
        )
        return client

    async def check(self) -> None:
        """Raise ``UserError`` if the server is not there or does not serve the model."""
        errors, where = self._library, f"openai:{self.model}@{self.base_url or _HOME}"
        if self.base_url is None and _key() == _NO_KEY:
            raise UserError(
                f"openai:{self.model}: OpenAI's own server wants a key: set OPENAI_API_KEY, or "
                f"name another server as openai:{self.model}@http://localhost:8000/v1"
            )
        try:
            served = _served(await self._models())
        except errors.AuthenticationError:
            raise UserError(f"{where}: the key was refused; set OPENAI_API_KEY") from None
        except errors.APIStatusError as error:
            if 300 <= error.status_code < 400:
                raise UserError(f"{where}: the server {_redirected(error.response.headers)}") from None
            return  # a server without a list of models may well answer
        except (errors.APIConnectionError, TimeoutError) as error:
            mend = "correct the address, or look to your network"
            if urlsplit(self.base_url or _HOME).hostname in LOOPBACK:
                mend = f"{start_server(self.model)}, or correct the address"
            reason = fault(error)
            raise UserError(f"{where}: no server answers there ({reason}); {mend}") from None
        except Exception:  # aiohttp's and the JSON reader's own errors, which the client lets pass
            raise UserError(
                f"{where}: what answers there is no OpenAI-compatible server; "
                "correct the address, which usually ends in /v1"
            ) from None
        self._dialect = self._dialect.resolve(served.get(self.model))
        if served and self.model not in served:
            await self._try_unlisted(where, served)

    async def _try_unlisted(self, where: str, served: Mapping[str, str]) -> None:
        """Ask a model for a word that the server does not list: many serve more than they list."""
        first = [redact(name)[:_LONGEST_NAME] for name in sorted(served)[:_MOST_NAMES]]
        names = ", ".join([*first, *(["..."] if len(served) > _MOST_NAMES else [])])
        reply: Completion | EngineError | None = None
        with suppress(TimeoutError):  # it may take minutes to load
            async with asyncio.timeout(min(self.timeout, CHECK_TIMEOUT_S)):
                reply = await self._one(_A_WORD)
        if isinstance(reply, EngineError) and not reply.transient:
            raise UserError(f"{where}: the server lists {names}, not this model, and refuses it ({reply})")
        note(f"{where} lists {names}; asked for {self.model} all the same")

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """One call a request, all at once."""
        return await asyncio.gather(*map(self._one, requests))

    async def close(self) -> None:
        """Close the connections, if any were opened."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            await client.close()

    async def _models(self) -> bytes:
        """The server's list of models."""
        # The client's own limit starts anew with every byte that comes.
        async with asyncio.timeout(min(self.timeout, CHECK_TIMEOUT_S)):
            found: bytes = await self._client.get("/models", cast_to=bytes)
            return found

    async def _look(self) -> None:
        """Find out what the server takes beyond the common fields; raises ``EngineError``.

        Found out once: what passes is tried again, as half of a run must not think.
        """
        async with self._looking:
            if self._dialect.template is None or self._dialect.choices is None:
                self._dialect = self._dialect.resolve(await self._owner())

    async def _owner(self) -> str | None:
        """Who serves the model, by the list of models; None where there is no such list."""
        try:
            with self._failing():
                listed = await self._models()
                with suppress(LookupError, TypeError, AttributeError):  # JSON that is no list
                    return _served(listed).get(self.model)
        except EngineError as error:
            if error.transient and not str(error).startswith("HTTP 500"):  # that is no list, and stays none
                raise
        return None

    async def _one(self, request: Request) -> Completion | EngineError:
        try:
            if self._dialect.template is None or (request.choices and self._dialect.choices is None):
                await self._look()
            dialect, learned = self._dialect, list[tuple[str, _Refusal]]()
            while True:
                body = dialect.body(self.model, request)
                try:
                    reply = await self._posted(json.dumps(body, allow_nan=False).encode())
                except _Refusal as refusal:
                    found = dialect.relearn(refusal.complaint, body) if refusal.is_of_form else None
                    if found is None:
                        return refusal
                    field, dialect = found
                    learned.append((field, refusal))
                else:
                    self._adopt(learned)
                    return reply
        except EngineError as error:
            return error
        except ValueError as error:
            return EngineError(f"the request can't be sent ({error})")

    async def _posted(self, content: bytes) -> Completion:
        with self._failing():
            async with asyncio.timeout(self.timeout):
                # By path: the typed method spends more on walking our data than all the rest.
                reply = await self._client.post("/chat/completions", cast_to=bytes, content=content)
            return read_completion(reply)

    def _adopt(self, learned: Sequence[tuple[str, _Refusal]]) -> None:
        """Leave out from now on what a request was answered without, and say so once.

        Of one that was never answered nothing is learned: its refusals may be of what it says.
        """
        for field, refusal in learned:
            if (dialect := self._dialect.drop(field)) == self._dialect:  # another request has learned the same
                continue
            self._dialect = dialect
            switches = replace(dialect, template=self._spec.template).query
            advice = f"; end the spec in {switches}, and records say so, too" if switches != self._spec.query else ""
            note(f"{self.name}: asked without {FIELD_NAMES.get(field, field)} from now on ({refusal}){advice}")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Whatever goes wrong while a server is asked, as an ``EngineError``."""
        errors = self._library
        try:
            yield
        except errors.APIStatusError as error:
            complaint = Complaint.read(error.response.content)
            raise self._refusal(error.status_code, complaint, error.response.headers) from None
        except (errors.APIConnectionError, TimeoutError) as error:
            raise EngineError(fault(error), transient=True) from None
        except _Failed as error:
            raise self._refusal(error.complaint.status or 502, error.complaint, is_told_as_well=True) from None
        except EngineError:
            raise
        except Exception as error:
            # A body that is cut short, has no choices or is no HTTP: the client lets it pass.
            raise EngineError(f"unreadable reply ({type(error).__name__})", transient=True) from None

    def _refusal(
        self,
        status: int,
        complaint: Complaint,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        is_told_as_well: bool = False,
    ) -> EngineError:
        """An answer that is none; one of the key or the account ends the run, as it won't get better.

        ``is_told_as_well``: it came with HTTP 200.
        """
        reason = "HTTP 200 with an error" if is_told_as_well else f"HTTP {status}"
        reason += f": {complaint.text}" if complaint.text else ""
        if status == 401:
            raise UserError(
                f"{self.name}: the key was refused; set OPENAI_API_KEY, and run the same command again ({reason})"
            )
        if status == 402 or complaint.is_about_account:
            mend = "mend that, and run the same command again"
            raise UserError(f"{self.name}: the account is out of credit, or closed; {mend} ({reason})")
        if status == 404 and not re.search(r"/v\d+/?$", self.base_url or _HOME):
            reason += " (the address usually ends in /v1)"
        if 300 <= status < 400:
            reason += f": {_redirected(headers)}"
        return _Refusal(
            reason,
            complaint,
            # llama.cpp says with HTTP 500 that a template takes no system turn.
            is_of_form=(status in (400, 422) and not is_told_as_well) or "raise_exception" in complaint.text,
            transient=status in _TRANSIENT or status >= 500,
            retry_after=wait(headers.get("retry-after")),
            refused=status == 403,
        )


class _Refusal(EngineError):
    """An error that a server answered with; ``is_of_form`` where the request may be to blame."""

    def __init__(self, reason: str, complaint: Complaint, *, is_of_form: bool, **more: Any) -> None:
        super().__init__(reason, **more)
        self.complaint, self.is_of_form = complaint, is_of_form


class _Failed(Exception):
    """An error in a response that says that all went well."""

    def __init__(self, error: Any) -> None:
        self.complaint = Complaint.read(json.dumps({"error": error}).encode()[:LARGEST_ERROR])


def _address(text: str | None) -> str | None:
    """The address of a server if it can be one, else ``UserError``; none is OpenAI's own.

    >>> _address("http://localhost:8000/v1")
    'http://localhost:8000/v1'
    """
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or not re.fullmatch("[!-~]+", text):
        raise UserError(f"{text!r} is no server's address: write it as http://localhost:8000/v1")
    if parts.username is not None or parts.password is not None:
        raise UserError("a server's address must hold no user or password: set OPENAI_API_KEY")
    return text


def _key() -> str:
    key = os.environ.get("OPENAI_API_KEY", "").strip() or _NO_KEY
    if not (key.isascii() and key.isprintable()):
        raise UserError("OPENAI_API_KEY holds characters that no key has; set it anew")
    return key


def _served(content: bytes) -> dict[str, str]:
    """The models of a list, and who is said to own each."""
    listed = parse_json(content)["data"]
    return {str(model["id"]): str(model.get("owned_by")) for model in listed}


def _redirected(headers: Mapping[str, str]) -> str:
    place = redact(str(headers.get("location")))[:_LONGEST_PLACE]
    return f"redirects to {place}, which is not followed: name the address that answers"


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


def read_completion(content: bytes) -> Completion:
    """What a response says; ``ValueError``, ``LookupError`` or ``TypeError`` where it is none."""
    reply = parse_json(content)
    if "choices" not in reply and reply.get("error"):
        raise _Failed(reply["error"])
    choice = reply["choices"][0]
    if choice.get("error"):
        raise _Failed(choice["error"])
    message = choice["message"]
    usage = _mapping(reply.get("usage"))
    prompt, spent = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    cached = _count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    reasoning = _count(_mapping(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    if usage.get("total_tokens") == prompt + spent + reasoning:  # xAI counts a thought beside the completion
        spent += reasoning
    text, thought, refusal = _parts(message.get("content"))
    for name in _THOUGHTS:
        thought = thought or "".join(_parts(message.get(name))[:2])
    refusal = refusal or _parts(message.get("refusal"))[0]
    if not (text or thought or refusal) and message.get("tool_calls"):
        refusal = "it calls a tool, and none was offered"
    counts = Usage(prompt, min(cached, prompt), spent, min(reasoning, spent))
    return completion(text, counts, choice.get("finish_reason"), thought=thought, refusal=refusal)


_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
"""Where servers put thoughts: vLLM and DeepSeek, vLLM and OpenRouter, OpenRouter."""


def _parts(content: Any) -> tuple[str, str, str]:
    """Text, thought and refusal of a message's content: a text, nothing, or a list of parts.

    >>> _parts([{"type": "thinking", "thinking": "Tesk?"}, {"type": "text", "text": "Oru"}])
    ('Oru', 'Tesk?', '')
    """
    if content is None or isinstance(content, str):
        return content or "", "", ""
    if not isinstance(content, list):
        raise TypeError("the content is neither a text nor a list of parts")
    text = thought = refusal = ""
    for part in content:
        if part["type"] == "refusal":
            refusal += part["refusal"]
        elif part["type"].startswith(("thinking", "reasoning")):
            found = next((part[name] for name in ("thinking", "text", "summary", "reasoning") if part.get(name)), "")
            thought += "".join(_parts(found))
        else:
            text += part["text"]
    return text, thought, refusal


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
