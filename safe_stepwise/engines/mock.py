"""Scripted replies, for tests and scheduling: simulated latency, prefix cache and faults.

Spec: ``mock:FILE``, a JSON or YAML file::

    replies:                       # the first rule that fits wins
      - match: "Title: \\"?Oru"     # a regular expression, sought in the last user message
        reply: '{"triples": []}'
      - contains: "Is it (1) or (2)?"   # the same as plain text
        role: judge                # who asks
        reply: ["(1)", "(2)"]      # in turn, the last from then on
    default: "I do not know."      # when none fits; without it that request fails
    latency: {base: 0.05, prefill: 5000, decode: 80}   # seconds; tokens a second
    cache: {block: 16, blocks: 4096}                   # of the prefix cache, in tokens
    faults: {rate: 0.2, seed: 1, kinds: ["429", "500", timeout, dropped], retry_after: 0.1}

Only ``replies`` is needed. Time is slept, unless ``latency`` has ``scale: 0``; ``seconds`` adds up what the calls
would have taken. A fault depends on the seed, the request and the number of the try. Replies given in turn depend on
the order of the calls, which is that of the requests only as long as one is asked after the other.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

from safe_stepwise.engines.base import NO_USAGE, Completion, EngineError, Request, completion, request_key
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage
from safe_stepwise.store.boundary import MOST_JSON, parse_json, parse_yaml, read, read_bounded

EXAMPLE = "mock:replies.json"
_TOKEN = re.compile(r"\w+|[^\w\s]")
FaultKind = Literal["429", "500", "timeout", "dropped"]
FAULTS: Mapping[FaultKind, str] = {
    "429": "HTTP 429",
    "500": "HTTP 500",
    "timeout": "timed out",
    "dropped": "connection failed",
}
"""What an error says, by the kind of fault."""
Tokens = tuple[Callable[[Request], Sequence[str]], Callable[[str], Sequence[str]]]


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of a call: ``base`` plus uncached prompt and completion tokens at their rates."""

    base: float = 0.0
    prefill: float = float("inf")
    decode: float = float("inf")
    scale: float = 1.0
    """How much of it is slept."""

    def __post_init__(self) -> None:
        _need(min(self.base, self.scale) >= 0, "base and scale are 0 or more")
        _need(min(self.prefill, self.decode) > 0, "prefill and decode are more than 0")

    def of(self, usage: Usage) -> float:
        """Seconds of a call with this usage."""
        computed = usage.prompt - usage.cached
        return self.base + computed / self.prefill + usage.completion / self.decode


@dataclass(frozen=True, slots=True)
class Faults:
    """The share of tries that go wrong, all in ways that may pass."""

    rate: float = 0.0
    seed: int = 0
    kinds: tuple[FaultKind, ...] = get_args(FaultKind)
    retry_after: float = 0.0
    """Seconds that a 429 asks for."""

    def __post_init__(self) -> None:
        _need(0 <= self.rate <= 1, "rate is from 0 to 1")
        _need(self.retry_after >= 0, "retry_after is 0 or more")
        _need(bool(self.kinds), "kinds are an empty list")

    def drawn(self, key: str, number: int) -> EngineError | None:
        """The error of a request's try, counted from 1, if it goes wrong."""
        chance = Random(f"{self.seed} {key} {number}")
        kind = chance.choice(self.kinds)
        if chance.random() >= self.rate:
            return None
        wait = self.retry_after if kind == "429" else None
        return EngineError(FAULTS[kind], transient=True, retry_after=wait)


class PrefixCache:
    """A radix cache: whole blocks of tokens, each known by the whole prefix that it ends.

    As in vLLM, a block is found only after all blocks before it, and at least the last token of a
    prompt is computed. When it is full, the leaf goes that was not used for longest: whatever uses
    a block uses all before it, and is noted as using those later, so the oldest is always a leaf.
    """

    def __init__(self, block: int = 16, blocks: int = 4096) -> None:
        self.block = block
        self.blocks = blocks
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def take(self, prompt: Sequence[str], reply: Sequence[str] = ()) -> int:
        """How many leading tokens of a prompt are cached; its blocks and the reply's then are.

        >>> cache = PrefixCache(block=2)
        >>> cache.take("abcde", "fgh"), cache.take("abcdefgh"), cache.take("abcx")
        (0, 6, 2)
        """
        names = list(self._names([*prompt, *reply]))
        found = next((n for n, name in enumerate(names) if name not in self._known), len(names))
        for name in reversed(names):  # so that a prefix outlives what builds on it
            self._known[name] = None
            self._known.move_to_end(name)
        for name in list(islice(self._known, max(0, len(self._known) - self.blocks))):
            del self._known[name]
        return min(found, max(0, len(prompt) - 1) // self.block) * self.block

    def _names(self, tokens: Sequence[str]) -> Iterator[bytes]:
        digest = hashlib.sha256()
        for start in range(0, len(tokens) - self.block + 1, self.block):
            # A token holds no space, so none can pass for two.
            text = " ".join(tokens[start : start + self.block]) + " "
            digest.update(text.encode("utf-8", "surrogatepass"))
            yield digest.digest()


@dataclass(frozen=True, slots=True)
class Rule:
    """Which requests it fits (all that it says must hold), and what they are told in turn."""

    reply: str | tuple[str, ...]
    match: str = ""
    contains: str = ""
    role: str | None = None

    def __post_init__(self) -> None:
        _need(self.reply != (), "reply is an empty list")


@dataclass(frozen=True, slots=True)
class CacheSize:
    """That of a `PrefixCache`."""

    block: int = 16
    blocks: int = 4096

    def __post_init__(self) -> None:
        _need(min(self.block, self.blocks) >= 1, "block and blocks are 1 or more")


@dataclass(frozen=True, slots=True)
class Script:
    """What a file says; see the module docstring."""

    replies: tuple[Rule, ...]
    default: str | None = None
    latency: Latency = Latency()
    cache: CacheSize = CacheSize()
    faults: Faults = Faults()


@dataclass
class MockEngine:
    """See the module docstring; ``reply`` makes the text of a request, or raises EngineError."""

    reply: Callable[[Request], str]
    digest: str = ""
    """Of the script, which decides on the replies."""
    latency: Latency = Latency()
    cache: PrefixCache = field(default_factory=PrefixCache)
    faults: Faults = Faults()
    seconds: float = 0.0
    """What the calls took, were they made one after the other."""
    tokens: Tokens = field(default_factory=lambda: (prompt_tokens, split_tokens))
    """How a request's prompt and a reply come apart into tokens."""

    simulated = True

    def __post_init__(self) -> None:
        self.name = f"mock:{self.digest[:12]} (simulated)"
        self.identity: Mapping[str, Any] = {"engine": "mock", "script": self.digest}
        self._tries: Counter[str] = Counter()

    @classmethod
    def read(cls, path: str | Path) -> MockEngine:
        """The engine of a script; raises ``UserError`` for a file that is none, with the place."""
        path = Path(path)
        try:
            raw = read_bounded(path, MOST_JSON)
            content = parse_json(raw) if path.suffix == ".json" else parse_yaml(raw)
            script = read(Script, content, "", exact=True)
            rules = [_turns(number, rule) for number, rule in enumerate(script.replies)]
        except OSError as error:
            raise UserError(f"mock:{path}: cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise UserError(
                f"mock:{path}: is no script of replies ({' '.join(str(error).split())[:300]}); see the docstring of "
                "safe_stepwise/engines/mock.py"
            ) from None
        prefixes = PrefixCache(script.cache.block, script.cache.blocks)
        reply = partial(_reply, rules, script.default)
        return cls(reply, hashlib.sha256(raw).hexdigest(), script.latency, prefixes, script.faults)

    async def check(self) -> None:
        """Nothing that could be missing."""

    async def close(self) -> None:
        """Nothing to free."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """One reply a request, all at once."""
        return await asyncio.gather(*map(self._one, requests))

    async def _one(self, request: Request) -> Completion | EngineError:
        try:
            self._draw_fault(request)
            whole = self.reply(request)
        except EngineError as error:
            return error
        text, is_whole = _cut(whole, request.sampling.max_tokens, request.sampling.stop)
        prompt, said = self.tokens[0](request), self.tokens[1](text)
        usage = Usage(len(prompt), self.cache.take(prompt, said), len(said))
        seconds = self.latency.of(usage)
        self.seconds += seconds
        if seconds and self.latency.scale:
            await asyncio.sleep(seconds * self.latency.scale)
        return completion(text, usage, "stop" if is_whole else "length")

    def _draw_fault(self, request: Request) -> None:
        if not self.faults.rate:
            return
        key = request_key(self, request)
        self._tries[key] += 1
        if fault := self.faults.drawn(key, self._tries[key]):
            raise fault
        del self._tries[key]  # asked again, it goes the same way again


def prompt_tokens(request: Request) -> list[str]:
    """Words, punctuation, and a token before every turn, the one to come included.

    >>> from safe_stepwise.engines.base import Message
    >>> prompt_tokens(Request((Message("user", "Where's Oru?"),)))
    ['<user>', 'Where', "'", 's', 'Oru', '?', '<assistant>']
    """
    turns = [[f"<{m.role}>", *split_tokens(m.content)] for m in request.messages]
    return [token for turn in turns for token in turn] + ["<assistant>"]


def split_tokens(text: str) -> list[str]:
    """The words and the punctuation of a text."""
    return _TOKEN.findall(text)


def _cut(text: str, max_tokens: int, stop: Sequence[str]) -> tuple[str, bool]:
    """What is said before a stop string or the limit, and whether the limit was kept."""
    for end in filter(None, stop):
        text = text.partition(end)[0]
    ends = [token.end() for token in islice(_TOKEN.finditer(text), max_tokens + 1)]
    if len(ends) <= max_tokens:
        return text, True
    return text[: ends[max_tokens - 1]] if max_tokens else "", False


def _turns(number: int, rule: Rule) -> tuple[Rule, re.Pattern[str], Iterator[str]]:
    """A rule, its pattern, and what it replies in turn."""
    try:
        pattern = re.compile(rule.match)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"replies[{number}].match: {error}") from None
    replies = (rule.reply,) if isinstance(rule.reply, str) else rule.reply
    return rule, pattern, chain(replies, repeat(replies[-1]))


def _reply(rules: Sequence[tuple[Rule, re.Pattern[str], Iterator[str]]], default: str | None, request: Request) -> str:
    """What a script says to a request."""
    turns = (m.content for m in reversed(request.messages) if m.role == "user")
    last = next(turns, "")
    for rule, pattern, replies in rules:
        if rule.role in (None, request.role) and rule.contains in last and pattern.search(last):
            return next(replies)
    if default is None:
        raise EngineError("no rule of the script fits, and it has no default")
    return default


class CountingClient(Client):
    """A client for one question, which counts where a simulated engine does not.

    Tokens are `mock`'s words and punctuation, and so is the prefix cache, of which each question
    has its own, with the instructions in it that all questions share: how many questions are under
    way, in what order, and whether a run was stopped in between, changes no number.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(client.engine)
        self._client = client
        self._prefixes = PrefixCache()
        self._instructions: set[str] = set()

    async def complete(self, request: Request) -> Completion:
        """The completion of one request; raises as the client does."""
        reply = await self._client.complete(request)
        if reply.usage != NO_USAGE or not self.engine.simulated:
            return reply
        sent = self._client.allowance.apply(request)
        usage = self._usage(sent, f"{reply.thought} {reply.transcript}")
        return replace(reply, usage=replace(usage, thought=len(split_tokens(reply.thought))))

    def _usage(self, request: Request, text: str) -> Usage:
        first = request.messages[0]
        if first.role == "system" and first.content not in self._instructions:
            self._instructions.add(first.content)
            self._prefixes.take(prompt_tokens(replace(request, messages=(first,)))[:-1])
        prompt, said = prompt_tokens(request), split_tokens(text)
        return Usage(len(prompt), self._prefixes.take(prompt, said), len(said))
