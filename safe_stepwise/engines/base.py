"""The nouns of the engine layer (request, completion, allowance) and the protocol of engines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, get_args

from safe_stepwise.records import Usage
from safe_stepwise.store.event_loop import gather_all
from safe_stepwise.store.thoughts import split_thought

Ending = Literal["whole", "cut", "thought", "refused", "failed"]
"""How a reply ended: by itself, at its limit of tokens, within a thought, as a refusal, or in an error."""
_ENDINGS: Mapping[str, Ending] = {
    **dict.fromkeys(("", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "tool_calls"), "whole"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "cut"),
    **dict.fromkeys(("content_filter", "refusal", "safety"), "refused"),
}
"""Maps a server's finish reason to an ending; any other reason, such as ``abort`` or ``error``, means *failed*."""
Effort = Literal["low", "medium", "high"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling parameters of a request; the default is greedy, as in SAFE (v1, section 4.1)."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 2048
    seed: int = 0
    stop: tuple[str, ...] = ()
    effort: Effort | None = None
    """How much a reasoning model thinks before it replies; None keeps the server's default."""
    repetition_penalty: float = 1.0
    """A value above 1 makes tokens less likely if the text already has them; not every engine supports it."""


GREEDY = Sampling()


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON schema that the reply must follow, if the engine can enforce it; ``text`` is JSON.

    The order of the properties matters: an engine that enforces the schema generates them in this order, and a model
    that was trained on another order would be misled.
    """

    name: str
    text: str

    @classmethod
    def from_dict(cls, name: str, schema: Mapping[str, Any]) -> Schema:
        return cls(name, json.dumps(schema))

    def with_properties(self, **properties: Any) -> Schema:
        """Return the schema with other values of these properties, in the same order."""
        content = json.loads(self.text)
        return Schema.from_dict(self.name, {**content, "properties": content["properties"] | properties})


class Scene(Protocol):
    """The annotations from which a *player* replies, which simulates a model; engines read only the ``key``."""

    @property
    def key(self) -> list[Any]:
        """Everything in the scene that can change a simulated reply to the same messages, as JSON values."""


class Pair(NamedTuple):
    """A request as a question of entailment, with the reply for each answer.

    The premise entails the hypothesis (``stated``), contradicts it (``denied``), or does neither (``absent``).
    """

    premise: str
    hypothesis: str
    stated: str
    denied: str
    absent: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model. The ``role`` names the caller (``extract``, ``judge``); tokens are counted by role.

    ``choices`` are the only replies that the model may give, to the letter (empty: any reply). An engine that can't
    enforce them uses the ``schema``, which should list the same replies. The reply has one of ``labels`` as its
    ``error_type``, and an engine that can tell returns the probability of the first. ``pair`` puts the question of the
    messages to a model of entailment. With ``in_full``, a reply that is cut even on its second call is an error;
    otherwise it is returned.
    """

    messages: tuple[Message, ...]
    sampling: Sampling = GREEDY
    schema: Schema | None = None
    role: str = ""
    scene: Scene | None = field(default=None, compare=False, repr=False)
    choices: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    pair: Pair | None = field(default=None, compare=False, repr=False)
    in_full: bool = field(default=False, compare=False, repr=False)


def conversation(request: Request, reply: str) -> dict[str, list[dict[str, str]]]:
    """Return a request and its reply in TRL's conversational form: ``prompt`` and ``completion``."""
    prompt = [{"role": turn.role, "content": turn.content} for turn in request.messages]
    return {"prompt": prompt, "completion": [{"role": "assistant", "content": reply}]}


NO_USAGE = Usage()
"""The usage of an engine that does not count tokens."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply: its text, the thought before it, its usage, and how it ended.

    ``text`` has no thought and is empty unless the reply is ``whole``, so that no reader mistakes half a reply, or a
    draft in a thought, for an answer. ``fragment`` is the text of a reply that is not whole; ``reason`` says why
    the model refused or failed. ``score`` is the probability (0-1) of the first of the request's labels, if the
    engine returns it.
    """

    text: str
    usage: Usage = NO_USAGE
    ending: Ending = "whole"
    thought: str = ""
    fragment: str = ""
    reason: str = ""
    score: float | None = None

    @property
    def transcript(self) -> str:
        """The reply's text, whole or not, as records store it."""
        return self.text or self.fragment

    @property
    def flaw(self) -> str:
        """The reason why no reader may use the reply; empty for a whole reply."""
        return {
            "whole": "",
            "cut": "the reply was cut at its limit of tokens",
            "thought": "the reply is a thought alone, which says nothing",
            "refused": f"the model refused to reply ({self.reason})",
            "failed": f"the reply broke off ({self.reason})",
        }[self.ending]


def completion(
    reply: str, usage: Usage = NO_USAGE, finish: str | None = "stop", *, thought: str = "", refusal: str = ""
) -> Completion:
    """Make a completion from an engine's raw ``reply``, which may hold thoughts, and from its ``finish`` reason.

    ``thought`` and ``refusal`` are texts that a server returns in separate fields.

    >>> reply = completion("<think>Tesk?</think>Oru")
    >>> reply.text, reply.ending, reply.thought
    ('Oru', 'whole', 'Tesk?')
    >>> completion("Or", finish="length").ending, completion("<think>Or", finish="stop").ending
    ('cut', 'thought')
    >>> completion("Or", finish="abort").flaw
    "the reply broke off (it ended with 'abort')"
    """
    text, inline_thought, is_open = split_thought(reply)
    thought = "\n\n".join(filter(None, (thought.strip(), inline_thought)))
    ending = "refused" if refusal else _ENDINGS.get((finish or "").lower(), "failed")
    if is_open or (thought and not text.strip()):
        ending = "thought" if ending in ("whole", "cut") else ending
    if thought and not usage.thought:  # the server counts none: estimated by the share of the characters
        usage = replace(usage, thought=round(usage.completion * len(thought) / len(thought + text)))
    if ending == "whole":
        return Completion(text, usage, thought=thought)
    reason = refusal or (f"it ended with {finish!r}" if ending in ("refused", "failed") else "")
    return Completion("", usage, ending, thought, text, reason)


def collect_thoughts(replies: Mapping[str, Completion]) -> dict[str, str]:
    """Collect the thoughts of the replies that have one, by role."""
    return {role: reply.thought for role, reply in replies.items() if reply.thought}


class EngineError(Exception):
    """A request failed. If ``transient``, it may succeed when it is sent again, after ``retry_after`` seconds.

    ``refused``: the server seems to refuse the client, whatever it requests.
    """

    def __init__(
        self, message: str, *, transient: bool = False, retry_after: float | None = None, refused: bool = False
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after
        self.refused = refused


class Engine(Protocol):
    """The protocol of every engine file. An engine belongs to the event loop that first uses it.

    A derived engine without its own `check` needs nothing, one without its own `close` has nothing to free.
    """

    identity: Mapping[str, Any]
    """Everything about the engine that can change a reply: kind, model, revision, adapter, base URL."""
    name: str
    """The name that may be published: the identity without addresses."""
    simulated: bool
    """Whether replies come from annotations or a script, not from a model."""

    async def check(self) -> None:
        """Raise ``UserError`` if the engine's server, model or file is missing."""
        return

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """Return a completion or an error for each request, in order; a failing request does not affect the others."""

    async def close(self) -> None:
        """Free connections, threads and accelerator memory."""
        return


class Relay(Engine):
    """An engine that passes each request on to some of its ``stages``, which are engines."""

    stages: Sequence[Engine]

    async def check(self) -> None:
        """Raise ``UserError`` if a stage can't work."""
        for stage in self.stages:
            await stage.check()

    async def close(self) -> None:
        """Close all stages."""
        for stage in self.stages:
            await stage.close()

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return await gather_all(map(self.answer, requests))

    async def answer(self, request: Request) -> Completion | EngineError:
        """Return the reply to one request."""
        raise NotImplementedError


def models_of(engine: Engine) -> Iterator[Engine]:
    """Yield the engines to which an engine passes requests, at any depth, or else itself."""
    if isinstance(engine, Relay):
        for stage in engine.stages:
            yield from models_of(stage)
    else:
        yield engine


def request_key(engine: Engine, request: Request) -> str:
    """Return the key of a reply in the cache: the SHA-256 (64 hex digits) of everything that can change the reply.

    The role and the scene count only for a simulated engine, as a model does not receive them.
    """
    sampling = request.sampling
    parameters: list[Any] = [sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed, sampling.stop]
    has_penalty = sampling.repetition_penalty != 1
    # Later versions added these; they are left out by default, so that earlier keys remain valid.
    parameters += [sampling.effort] if sampling.effort or has_penalty else []
    parameters += [sampling.repetition_penalty] if has_penalty else []
    content: list[Any] = [
        dict(engine.identity),
        [(message.role, message.content) for message in request.messages],
        parameters,
        (request.schema.name, request.schema.text) if request.schema else None,
    ]
    if request.choices:
        content.append({"choices": request.choices})
    if request.labels:
        content.append({"labels": request.labels})
    if engine.simulated:
        content += [request.role, *(request.scene.key if request.scene is not None else [None])]
    # Escaped to ASCII: a turn that repeats a broken reply may hold half a surrogate pair.
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Allowance:
    """The maximum tokens of replies, the reasoning effort, and the examples in a prompt, each by role.

    Roles that it does not name keep the values of their requests. Examples are texts, which are appended to the
    instructions (`prompts.examples`); None means that none were chosen. Hashable and picklable.
    """

    max_tokens: tuple[tuple[str, int], ...] = ()
    effort: tuple[tuple[str, Effort], ...] = ()
    examples: tuple[tuple[str, str], ...] | None = None

    @classmethod
    def by_role(
        cls,
        max_tokens: Mapping[str, int] | None = None,
        effort: Mapping[str, Effort] | None = None,
        examples: Mapping[str, str] | None = None,
    ) -> Allowance:
        """Make an allowance from mappings of roles to values.

        >>> Allowance.by_role({"path": 4096}, {"path": "low", "judge": "high"}).plain
        {'max_tokens': 'path 4096', 'reasoning_effort': 'judge high, path low'}
        """
        return cls(
            tuple(sorted((max_tokens or {}).items())),
            tuple(sorted((effort or {}).items())),
            None if examples is None else tuple(sorted(examples.items())),
        )

    def with_examples(self, examples: Mapping[str, str]) -> Allowance:
        """Return this allowance with only these examples, by role."""
        return replace(self, examples=tuple(sorted(examples.items())))

    def __bool__(self) -> bool:
        return bool(self.max_tokens or self.effort or self.examples)

    def restrict(self, roles: Collection[str]) -> Allowance:
        """Return this allowance with only these roles."""
        return Allowance(
            tuple((role, limit) for role, limit in self.max_tokens if role in roles),
            tuple((role, effort) for role, effort in self.effort if role in roles),
            self.examples and tuple((role, text) for role, text in self.examples if role in roles),
        )

    def has_limits(self, role: str) -> bool:
        """Whether this allowance sets the tokens of a role's replies, or its effort."""
        return any(name == role for name, _ in (*self.max_tokens, *self.effort))

    def apply(self, request: Request) -> Request:
        """Return the request with this allowance's tokens, effort and examples for its role.

        >>> Allowance.by_role({"judge": 99}).apply(Request((), role="judge")).sampling.max_tokens
        99
        """
        if examples := dict(self.examples or ()).get(request.role):
            system, *turns = request.messages
            system = replace(system, content=f"{system.content}\n\n{examples}")
            request = replace(request, messages=(system, *turns))
        if not self.has_limits(request.role):
            return request
        sampling = request.sampling
        max_tokens = dict(self.max_tokens).get(request.role, sampling.max_tokens)
        effort = dict(self.effort).get(request.role, sampling.effort)
        return replace(request, sampling=replace(sampling, max_tokens=max_tokens, effort=effort))

    @property
    def plain(self) -> dict[str, str]:
        """The values that are set, in the form of records and identities; examples as digests of 8 hex digits."""
        digests = [(role, hashlib.sha256(text.encode()).hexdigest()[:8]) for role, text in self.examples or ()]
        values = {"max_tokens": self.max_tokens, "reasoning_effort": self.effort, "examples": digests}
        return {key: ", ".join(f"{role} {value}" for role, value in pairs) for key, pairs in values.items() if pairs}

    @property
    def effort_suffix(self) -> str:
        """The reasoning effort as a suffix of an engine's name, as it changes replies."""
        effort = self.plain.get("reasoning_effort")
        return f" (reasoning effort: {effort})" if effort else ""

    @property
    def examples_suffix(self) -> str:
        """The examples' digests as a suffix of a teacher's name, which also holds its prompts' digest.

        >>> Allowance.by_role(examples={"path": "An example."}).examples_suffix
        ', examples path 25ed5198'
        """
        examples = self.plain.get("examples")
        return f", examples {examples}" if examples else ""


AS_PROMPTED = Allowance()
"""The allowance that does not change requests."""
