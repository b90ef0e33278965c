"""An engine of scripted replies, for tests and load studies, with simulated latency and prefix cache.

Spec: ``mock:FILE``, a JSON or YAML file::

    replies:                       # the first rule that fits wins
      - match: "Title: \\"?Oru"     # a regular expression, searched for in the last user message
        reply: '{"triples": []}'
      - contains: "Is it (1) or (2)?"   # the same as plain text
        role: judge                # the request's role
        reply: ["(1)", "(2)"]      # in turn, the last from then on
    default: "I do not know."      # when none fits; without it that request fails
    latency: {base: 0.05, prefill: 5000, decode: 80}   # seconds; tokens a second
    cache: {block: 16, blocks: 4096}                   # of the prefix cache, in tokens

Only ``replies`` is required. The engine sleeps for the latency, unless its ``scale`` is 0; ``seconds`` is the sum over
all calls. Replies in turn depend on the order of the calls, which is that of the requests only as long as they are
sent one after another.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

from safe_stepwise.engines.base import NO_USAGE, Completion, Engine, EngineError, Request, completion
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage
from safe_stepwise.store.boundary import MAX_JSON_BYTES, parse_json, parse_yaml, read, read_bounded

EXAMPLE = "mock:replies.json"
_TOKEN = re.compile(r"\w+|[^\w\s]")
Tokenizers = tuple[Callable[[Request], Sequence[str]], Callable[[str], Sequence[str]]]


def _require(is_valid: bool, message: str) -> None:
    if not is_valid:
        raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Latency:
    """The seconds of a call: ``base``, plus uncached prompt and completion tokens at their rates (tokens a second)."""

    base: float = 0.0
    prefill: float = float("inf")
    decode: float = float("inf")
    scale: float = 1.0
    """The share of the seconds that the engine sleeps."""

    def __post_init__(self) -> None:
        _require(min(self.base, self.scale) >= 0, "base and scale are 0 or more")
        _require(min(self.prefill, self.decode) > 0, "prefill and decode are more than 0")

    def seconds(self, usage: Usage) -> float:
        """Return the seconds of a call with a usage."""
        computed = usage.prompt - usage.cached
        return self.base + computed / self.prefill + usage.completion / self.decode


@dataclass(slots=True)
class PrefixCache:
    """A radix cache of full blocks of tokens; a block is identified by the prompt's prefix up to its end.

    As in vLLM, a block is a hit only after all blocks before it, and at least the last token of a prompt is computed.
    A full cache evicts the least recently used block. A prompt's blocks are marked as used in reverse order, so that
    the evicted block is always the last one of a prefix.
    """

    block: int = 16
    """Number of tokens in a block; ``blocks`` is the maximum number of blocks."""
    blocks: int = 4096
    _blocks: OrderedDict[bytes, None] = field(init=False, repr=False, default_factory=OrderedDict)

    def __post_init__(self) -> None:
        _require(min(self.block, self.blocks) >= 1, "block and blocks are 1 or more")

    def __len__(self) -> int:
        return len(self._blocks)

    def take(self, prompt: Sequence[str], reply: Sequence[str] = ()) -> int:
        """Return how many leading tokens of a prompt are cached, then cache its blocks and the reply's.

        >>> cache = PrefixCache(block=2)
        >>> cache.take("abcde", "fgh"), cache.take("abcdefgh"), cache.take("abcx")
        (0, 6, 2)
        """
        names = list(self._name_blocks([*prompt, *reply]))
        hits = next((n for n, name in enumerate(names) if name not in self._blocks), len(names))
        for name in reversed(names):  # so that a prefix outlives its continuations
            self._blocks[name] = None
            self._blocks.move_to_end(name)
        for name in list(islice(self._blocks, max(0, len(self._blocks) - self.blocks))):
            del self._blocks[name]
        return min(hits, max(0, len(prompt) - 1) // self.block) * self.block

    def _name_blocks(self, tokens: Sequence[str]) -> Iterator[bytes]:
        digest = hashlib.sha256()
        for start in range(0, len(tokens) - self.block + 1, self.block):
            # No token contains a space, so that joined tokens stay distinct.
            text = " ".join(tokens[start : start + self.block]) + " "
            digest.update(text.encode("utf-8", "surrogatepass"))
            yield digest.digest()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a script: conditions on a request, all of which must hold, and the replies in turn."""

    reply: str | tuple[str, ...]
    match: str = ""
    contains: str = ""
    role: str | None = None

    def __post_init__(self) -> None:
        _require(self.reply != (), "reply is an empty list")


@dataclass(frozen=True, slots=True)
class Script:
    """The content of a script file; see the module docstring."""

    replies: tuple[Rule, ...]
    default: str | None = None
    latency: Latency = Latency()
    cache: PrefixCache = field(default_factory=PrefixCache)


@dataclass
class MockEngine(Engine):
    """An engine whose ``reply`` function returns the text for a request, or raises ``EngineError``."""

    reply: Callable[[Request], str]
    digest: str = ""
    """The SHA-256 of the script, which determines the replies."""
    latency: Latency = Latency()
    cache: PrefixCache = field(default_factory=PrefixCache)
    seconds: float = 0.0
    """The seconds of all calls, as if they were made one after another."""
    tokens: Tokenizers = field(default_factory=lambda: (prompt_tokens, split_tokens))
    """The functions that split a request's prompt and a reply into tokens."""

    simulated = True

    def __post_init__(self) -> None:
        self.name = f"mock:{self.digest[:12]} (simulated)"
        self.identity: Mapping[str, Any] = {"engine": "mock", "script": self.digest}

    @classmethod
    def read(cls, path: str | Path) -> "MockEngine":
        """Make the engine of a script file; raise ``UserError`` with the place of a fault in it."""
        path = Path(path)
        try:
            raw = read_bounded(path, MAX_JSON_BYTES)
            content = parse_json(raw) if path.suffix == ".json" else parse_yaml(raw)
            script = read(Script, content, "", exact=True)
            rules = [_compile_rule(number, rule) for number, rule in enumerate(script.replies)]
        except OSError as error:
            raise UserError(f"mock:{path}: cannot be read ({error.strerror})") from None
        except ValueError as error:
            reason = " ".join(str(error).split())[:300]
            advice = "see the docstring of safe_stepwise/engines/mock.py"
            raise UserError(f"mock:{path}: is not a script of replies ({reason}); {advice}") from None
        reply, digest = partial(_reply, rules, script.default), hashlib.sha256(raw).hexdigest()
        return cls(reply, digest, script.latency, script.cache)

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """Reply to all requests at once."""
        return await asyncio.gather(*map(self._complete, requests))

    async def _complete(self, request: Request) -> Completion | EngineError:
        try:
            reply = self.reply(request)
        except EngineError as error:
            return error
        text, is_whole = _cut_reply(reply, request.sampling.max_tokens, request.sampling.stop)
        prompt_words, reply_words = self.tokens[0](request), self.tokens[1](text)
        usage = Usage(len(prompt_words), self.cache.take(prompt_words, reply_words), len(reply_words))
        seconds = self.latency.seconds(usage)
        self.seconds += seconds
        if seconds and self.latency.scale:
            await asyncio.sleep(seconds * self.latency.scale)
        return completion(text, usage, "stop" if is_whole else "length")


def prompt_tokens(request: Request) -> list[str]:
    """Split a prompt into words, punctuation, and a token before every turn, the next one included.

    >>> from safe_stepwise.engines.base import Message
    >>> prompt_tokens(Request((Message("user", "Where's Oru?"),)))
    ['<user>', 'Where', "'", 's', 'Oru', '?', '<assistant>']
    """
    turns = [[f"<{m.role}>", *split_tokens(m.content)] for m in request.messages]
    return [token for turn in turns for token in turn] + ["<assistant>"]


def split_tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _cut_reply(text: str, max_tokens: int, stop: Sequence[str]) -> tuple[str, bool]:
    """Return the text before a stop string or the limit of tokens, and whether it is within the limit."""
    for stop_string in filter(None, stop):
        text = text.partition(stop_string)[0]
    ends = [token.end() for token in islice(_TOKEN.finditer(text), max_tokens + 1)]
    if len(ends) <= max_tokens:
        return text, True
    return text[: ends[max_tokens - 1]] if max_tokens else "", False


def _compile_rule(number: int, rule: Rule) -> tuple[Rule, re.Pattern[str], Iterator[str]]:
    try:
        pattern = re.compile(rule.match)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"replies[{number}].match: {error}") from None
    replies = (rule.reply,) if isinstance(rule.reply, str) else rule.reply
    return rule, pattern, chain(replies, repeat(replies[-1]))


def _reply(rules: Sequence[tuple[Rule, re.Pattern[str], Iterator[str]]], default: str | None, request: Request) -> str:
    turn = next((m.content for m in reversed(request.messages) if m.role == "user"), "")
    for rule, pattern, replies in rules:
        if rule.role in (None, request.role) and rule.contains in turn and pattern.search(turn):
            return next(replies)
    if default is None:
        raise EngineError("no rule of the script fits, and it has no default")
    return default


class CountingClient(Client):
    """A client for one question that counts the tokens of a simulated engine, which does not count them itself.

    Tokens are words and punctuation. Each question has its own prefix cache, which also has the instructions that all
    questions share. So the counts do not depend on other questions under way or on an interruption.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(client.engine)
        self._client = client
        self._prefixes = PrefixCache()
        self._instructions: set[str] = set()

    async def complete(self, request: Request) -> Completion:
        """Complete one request; raise as the client does."""
        reply = await self._client.complete(request)
        if reply.usage != NO_USAGE or not self.engine.simulated:
            return reply
        sent = self._client.allowance.apply(request)
        usage = self._count_usage(sent, f"{reply.thought} {reply.transcript}")
        return replace(reply, usage=replace(usage, thought=len(split_tokens(reply.thought))))

    def _count_usage(self, request: Request, text: str) -> Usage:
        system = request.messages[0]
        if system.role == "system" and system.content not in self._instructions:
            self._instructions.add(system.content)
            self._prefixes.take(prompt_tokens(replace(request, messages=(system,)))[:-1])
        prompt_words, reply_words = prompt_tokens(request), split_tokens(text)
        return Usage(len(prompt_words), self._prefixes.take(prompt_words, reply_words), len(reply_words))
