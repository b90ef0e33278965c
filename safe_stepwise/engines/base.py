"""The nouns of the engine layer: a request, a completion, and what an engine has to do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Literal, Protocol, get_args

from safe_stepwise.errors import UserError, install
from safe_stepwise.records import Usage
from safe_stepwise.store.thoughts import split_thought

Ending = Literal["whole", "cut", "thought", "refused", "failed"]
"""How a reply ended: by itself; at its limit of tokens; in a thought, with nothing said; as a refusal; in an error."""
_ENDINGS: Mapping[str, Ending] = {
    **dict.fromkeys(("", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "tool_calls"), "whole"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "cut"),
    **dict.fromkeys(("content_filter", "refusal", "safety"), "refused"),
}
"""By the finish reasons of servers; any other, as ``abort`` or ``error``, leaves half a reply."""
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
    def from_dict(cls, name: str, schema: Mapping[str, Any]) -> Schema:
        return cls(name, json.dumps(schema))


class Scene(Protocol):
    """What a simulating player goes by in a model's place; engines never look behind its key."""

    @property
    def key(self) -> list[Any]:
        """All of it, as JSON takes it, that can change a simulated reply to the same messages."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call. ``role`` says who asks (``extract``, ``judge``): tokens are accounted by it.

    ``choices`` are the only replies that may be given, to the letter; empty, any may. Engines that
    cannot see to them go by the ``schema``, which should list the same. ``in_full``: a reply that stays cut
    though it is asked for again is a failure, not a try that came to nothing.
    """

    messages: tuple[Message, ...]
    sampling: Sampling = GREEDY
    schema: Schema | None = None
    role: str = ""
    scene: Scene | None = field(default=None, compare=False, repr=False)
    choices: tuple[str, ...] = ()
    in_full: bool = field(default=False, compare=False, repr=False)


NO_USAGE = Usage()
"""Of an engine that doesn't count."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply: what was said, what was thought before it, and how it ended.

    ``text`` is said, without a thought, and is empty unless the reply is ``whole``: so no reader can take half of a
    reply, or a draft within a thought, for an answer. ``fragment`` is what another reply had said till it ended,
    ``reason`` why one was refused or failed.
    """

    text: str
    usage: Usage = NO_USAGE
    ending: Ending = "whole"
    thought: str = ""
    fragment: str = ""
    reason: str = ""

    @property
    def transcript(self) -> str:
        """What was said, whole or not, as records keep it."""
        return self.text or self.fragment

    @property
    def flaw(self) -> str:
        """Why nothing of it may be read; empty of a whole reply."""
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
    """The completion of what an engine got: the ``reply`` with whatever thoughts stand in it, and its finish reason.

    ``thought`` and ``refusal``: what a server gives apart.

    >>> reply = completion("<think>Tesk?</think>Oru")
    >>> reply.text, reply.ending, reply.thought
    ('Oru', 'whole', 'Tesk?')
    >>> completion("Or", finish="length").ending, completion("<think>Or", finish="stop").ending
    ('cut', 'thought')
    >>> completion("Or", finish="abort").flaw
    "the reply broke off (it ended with 'abort')"
    """
    text, within, is_open = split_thought(reply)
    thought = "\n\n".join(filter(None, (thought.strip(), within)))
    ending = "refused" if refusal else _ENDINGS.get((finish or "").lower(), "failed")
    if is_open or (thought and not text.strip()):
        ending = "thought" if ending in ("whole", "cut") else ending
    usage = count_thought(usage, thought, text)
    if ending == "whole":
        return Completion(text, usage, thought=thought)
    reason = refusal or (f"it ended with {finish!r}" if ending in ("refused", "failed") else "")
    return Completion("", usage, ending, thought, text, reason)


def count_thought(usage: Usage, thought: str, text: str) -> Usage:
    """The usage of a reply with its thought's tokens, which are estimated where the server counts none.

    The estimate is the thought's share of the reply's characters.

    >>> count_thought(Usage(9, 0, 40), "Is it Tesk? ", "Oru.")
    Usage(prompt=9, cached=0, completion=40, thought=30)
    """
    if usage.thought or not thought:
        return usage
    return replace(usage, thought=round(usage.completion * len(thought) / len(thought + text)))


def collect_thoughts(replies: Mapping[str, Completion]) -> dict[str, str]:
    """The thoughts of some replies by their keys, of those that have any."""
    return {role: reply.thought for role, reply in replies.items() if reply.thought}


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


def require_modules(engine: str, library: str, extra: str, *modules: str) -> None:
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


@dataclass(frozen=True, slots=True)
class Allowance:
    """Tokens a reply may have, reasoning effort, examples to go by; hashable and picklable.

    Each by role; roles that are not named keep what their requests say. Examples are texts, which
    go behind the instructions (`prompts.examples`); None: nothing was said of any.
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
        """That of some roles, in whatever order they come.

        >>> Allowance.by_role({"path": 4096}, {"path": "low", "judge": "high"}).plain
        {'max_tokens': 'path 4096', 'reasoning_effort': 'judge high, path low'}
        """
        return cls(
            tuple(sorted((max_tokens or {}).items())),
            tuple(sorted((effort or {}).items())),
            None if examples is None else tuple(sorted(examples.items())),
        )

    def with_examples(self, examples: Mapping[str, str]) -> Allowance:
        """The same with these examples, by role, and no others."""
        return replace(self, examples=tuple(sorted(examples.items())))

    def __bool__(self) -> bool:
        return bool(self.max_tokens or self.effort or self.examples)

    def only(self, roles: Collection[str]) -> Allowance:
        """What of it concerns these roles."""
        return Allowance(
            tuple(one for one in self.max_tokens if one[0] in roles),
            tuple(one for one in self.effort if one[0] in roles),
            self.examples and tuple(one for one in self.examples if one[0] in roles),
        )

    def limits(self, role: str) -> bool:
        """Whether it says how long a role's replies may be, or how hard it thinks."""
        return any(name == role for name, _ in (*self.max_tokens, *self.effort))

    def apply(self, request: Request) -> Request:
        """A request as it is asked under it.

        >>> Allowance.by_role({"judge": 99}).apply(Request((), role="judge")).sampling.max_tokens
        99
        """
        if shown := dict(self.examples or ()).get(request.role):
            first, *others = request.messages
            first = replace(first, content=f"{first.content}\n\n{shown}")
            request = replace(request, messages=(first, *others))
        if not self.limits(request.role):
            return request
        sampling = request.sampling
        return replace(
            request,
            sampling=replace(
                sampling,
                max_tokens=dict(self.max_tokens).get(request.role, sampling.max_tokens),
                effort=dict(self.effort).get(request.role, sampling.effort),
            ),
        )

    @property
    def plain(self) -> dict[str, str]:
        """For records and identities: nothing of what is not given."""
        shown = [(role, hashlib.sha256(text.encode()).hexdigest()[:8]) for role, text in self.examples or ()]
        given = {"max_tokens": self.max_tokens, "reasoning_effort": self.effort, "examples": shown}
        told = {name: ", ".join(f"{r} {value}" for r, value in by) for name, by in given.items()}
        return {name: words for name, words in told.items() if words}

    @property
    def suffix(self) -> str:
        """What it adds to an engine's name: a model that thinks harder says other things.

        >>> Allowance.by_role({"path": 4096}, {"path": "low"}).suffix
        ' (reasoning effort: path low)'
        """
        effort = self.plain.get("reasoning_effort")
        return f" (reasoning effort: {effort})" if effort else ""

    @property
    def shown(self) -> str:
        """What it adds to the name of a teacher, whose prompts are told there.

        >>> Allowance.by_role(examples={"path": "An example."}).shown
        ', examples path 25ed5198'
        """
        examples = self.plain.get("examples")
        return f", examples {examples}" if examples else ""


AS_PROMPTED = Allowance()
"""Nothing beside what requests say."""
