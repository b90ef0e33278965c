"""The nouns of the engine layer: a request, a completion, and what an engine has to do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal, Protocol, get_args

from safe_stepwise.errors import UserError, install
from safe_stepwise.records import Usage

FinishReason = Literal["stop", "length"]
Effort = Literal["low", "medium", "high"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample; the default is greedy, as everywhere in SAFE (v1, section 4.1)."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 2048
    seed: int = 0
    stop: tuple[str, ...] = ()
    effort: Effort | None = None
    """How hard a reasoning model thinks before it replies; None is as its server has it."""
    repetition_penalty: float = 1.0
    """Above 1 what was said is less likely to be said again; not every engine can."""


GREEDY = Sampling()


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON schema that the reply must have, where the engine can see to it; ``text`` is JSON.

    The order of its properties is part of it: an engine that sees to it has them written in that
    order, and a model that was trained on another would be led astray.
    """

    name: str
    text: str

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Any]) -> Schema:
        return cls(name, json.dumps(schema))


class Scene(Protocol):
    """What a simulating player goes by in a model's place; engines never look behind its key."""

    @property
    def key(self) -> list[Any]:
        """All of it, as JSON takes it, that can change a simulated reply to the same messages."""


Reader = Callable[[str], object]
"""Reads a reply; raises ``ValueError`` where nothing in it can be read."""


def anything(text: str) -> str:
    """The reader that takes whatever is said, of those who are measured by what they say.

    >>> anything(" ")
    Traceback (most recent call last):
    ValueError: it is empty
    """
    if not text.strip():
        raise ValueError("it is empty")
    return text


@dataclass(frozen=True, slots=True)
class Request:
    """One call. ``role`` says who asks (``extract``, ``judge``): tokens are accounted by it.

    ``choices`` are the only replies that may be given, to the letter; empty, any may. Engines that
    cannot see to them go by the ``schema``, which should list the same. ``reads`` decides whether a
    reply that was cut off is one at all; no engine looks at it.
    """

    messages: tuple[Message, ...]
    sampling: Sampling = GREEDY
    schema: Schema | None = None
    role: str = ""
    scene: Scene | None = field(default=None, compare=False, repr=False)
    reads: Reader = field(default=anything, compare=False, repr=False)
    choices: tuple[str, ...] = ()


NO_USAGE = Usage()
"""Of an engine that doesn't count."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply; ``finish`` is ``length`` when it was cut off at ``max_tokens``."""

    text: str
    usage: Usage = NO_USAGE
    finish: FinishReason = "stop"


class EngineError(Exception):
    """A request that got no reply; ``transient`` when another try may, after ``retry_after`` s.

    ``refused`` where it seems to be us, not the request, that the server won't answer.
    """

    def __init__(
        self, message: str, *, transient: bool = False, retry_after: float | None = None, refused: bool = False
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after
        self.refused = refused


class Engine(Protocol):
    """What every engine file offers. An engine belongs to the event loop that first uses it."""

    identity: Mapping[str, Any]
    """All of the engine that can change a reply: kind, model, revision, adapter, base URL."""
    name: str
    """What may be published: the identity without addresses."""
    simulated: bool
    """Whether replies come from annotations or a script, not from a model."""

    async def check(self) -> None:
        """Raise ``UserError`` if it can't work: no such server, model or file."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """One completion or error a request, in order; one that fails leaves the others alone."""

    async def close(self) -> None:
        """Free connections, threads, accelerator memory."""


def need(engine: str, library: str, extra: str, *modules: str) -> None:
    """Raise ``UserError`` if the modules that an engine stands on are not installed."""
    if any(find_spec(module) is None for module in modules):
        raise UserError(f"the {engine} engine needs {library}: {install(extra)}")


def request_key(engine: Engine, request: Request) -> str:
    """SHA-256 (64 hex digits) of everything that can change the reply (DESIGN, section 7).

    The role is not in it, as who asks does not change what a model says; a simulated engine may
    go by the role and the scene.
    """
    s = request.sampling
    sampling: tuple[Any, ...] = (s.temperature, s.top_p, s.max_tokens, s.seed, s.stop)
    if s.effort or s.repetition_penalty != 1:
        sampling = (*sampling, s.effort)
    if s.repetition_penalty != 1:
        sampling = (*sampling, s.repetition_penalty)
    asked: list[Any] = [
        dict(engine.identity),
        [(message.role, message.content) for message in request.messages],
        sampling,
        (request.schema.name, request.schema.text) if request.schema else None,
    ]
    if request.choices:
        asked.append({"choices": request.choices})
    if engine.simulated:
        asked += [request.role, *(request.scene.key if request.scene is not None else [None])]
    # Escaped to ASCII: a turn that repeats a broken reply may hold half a surrogate pair.
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
