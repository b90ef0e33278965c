"""The layer between callers and engines: every request to a model goes through a `Client`.

A client limits the requests under way, repeats failed requests, and counts requests and tokens by role in an
`Account`. Its `ResponseCache` is also the run's journal, one SQLite file that processes share: a completion is on disk
before its caller sees it, so a killed run repeats no call whose reply it had received. No server is trusted:
credentials are removed from every reply and error before it is stored or printed.
"""

import asyncio
import functools
import json
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry, retry_if_exception, stop_after_attempt, stop_after_delay
from tenacity.wait import wait_random, wait_random_exponential
from tqdm import tqdm

from safe_stepwise.engines.base import AS_PROMPTED, Allowance, Completion, Engine, EngineError, Request, request_key
from safe_stepwise.engines.readability import Readability, unreadable_because
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage
from safe_stepwise.store import boundary, event_loop
from safe_stepwise.store.progress import Wait, counts
from safe_stepwise.store.replies import MAX_CHARACTERS as MAX_REPLY_CHARS
from safe_stepwise.store.terminal import credentials, redact_keys, sanitize

TRIES = 8
"""Maximum calls of a request. At 20% random faults, 3 in a million requests fail for good."""
IN_FLIGHT = 256
"""Maximum requests under way: so many keep one vLLM replica busy."""
FIRST_IN_FLIGHT = 8
"""Maximum requests under way until the first is answered, so that a wrong key or model shows early."""
MAX_FAILURES = 50
"""Number of failed requests after which a run without an answered request ends."""
MAX_REFUSALS = 3
"""Number of forbidden requests after which such a run ends; a single request may be forbidden for its text."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0
LIMIT_OPTION, EFFORT_OPTION = "--max-tokens", "--reasoning-effort"
"""The options of commands that set an `Allowance`."""


_TABLE_SQL = """
create table if not exists completions (
    key text primary key, text text not null, finish text not null,
    prompt integer not null, cached integer not null, completion integer not null
) without rowid
"""
_INSERT_SQL = "insert into completions values (?, ?, 'stop', ?, ?, ?) on conflict (key) do nothing"
_LOCK_TIMEOUT_S = 60


def default_cache() -> Path:
    """Return the file of replies: ``$SAFE_STEPWISE_CACHE``, or one in the user's cache folder."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SAFE_STEPWISE_CACHE") or Path(folder) / "safe_stepwise" / "replies.sqlite")


class ResponseCache:
    """A file of completions by `request_key`.

    In SQLite's WAL mode readers never wait and writers queue. A file system without shared memory (NFS) can't do that,
    so processes on several machines need a file each. Raises ``UserError`` if the file can't be opened or is not a
    cache, or if the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()  # an abandoned run closes the file while its event loop may still read
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The event loop may read in another thread than the one that opens the file.
            self._db = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False)
            self._use_wal()
            # Replies survive a killed process; only a power cut may lose the last ones.
            self._db.execute("pragma synchronous = normal")
            self._db.execute(_TABLE_SQL)
            self._read_row("")  # a table of that name with other columns shows here
        except (OSError, sqlite3.Error) as error:
            raise UserError(f"{path}: cannot be used as a response cache ({error}); choose another --cache") from error

    def get(self, key: str) -> Completion | None:
        """Return the completion stored under a key, if any; raise ``UserError`` if the file is damaged."""
        try:
            row = self._read_row(key)
            return None if row is None else _decode_reply(*row)
        except (sqlite3.Error, ValueError) as error:
            raise UserError(f"{self.path}: cannot be read ({error}); choose another --cache") from error

    def store(self, replies: Iterable[tuple[str, Completion]]) -> None:
        """Store the completions that are whole, all or none; raises ``UserError`` if the file can't be written."""
        # JSON can hold the half surrogates that a broken reply may contain.
        complete = ((key, reply) for key, reply in replies if reply.ending == "whole")
        rows = [(key, json.dumps(_encode_reply(reply)), *astuple(reply.usage)[:3]) for key, reply in complete]
        try:
            with self._lock, self._db:
                self._db.execute("begin immediate")
                self._db.executemany(_INSERT_SQL, rows)
        except (sqlite3.Error, OverflowError) as error:
            raise UserError(f"{self.path}: cannot be written ({error})") from error

    @retry(
        retry=retry_if_exception(lambda e: "locked" in str(e)),
        wait=wait_random(0.01, 0.1),
        stop=stop_after_delay(_LOCK_TIMEOUT_S),
        reraise=True,
    )
    def _use_wal(self) -> None:
        """Switch to WAL mode, again if SQLite refuses because another process is switching."""
        self._db.execute("pragma journal_mode = wal")

    def _read_row(self, key: str) -> tuple[Any, ...] | None:
        query = "select text, finish, prompt, cached, completion from completions where key = ?"
        with self._lock:
            row: tuple[Any, ...] | None = self._db.execute(query, (key,)).fetchone()
        return row

    def __len__(self) -> int:
        (number,) = self._db.execute("select count(*) from completions").fetchone()
        return int(number)

    def close(self) -> None:
        with self._lock:
            self._db.close()


def _encode_reply(reply: Completion) -> str | dict[str, Any]:
    """Return the JSON value of a reply in the cache: its text, or an object if it has a thought or score."""
    if not (reply.thought or reply.usage.thought or reply.score is not None):
        return reply.text
    stored = {"text": reply.text, "thought": reply.thought, "thought_tokens": reply.usage.thought}
    return stored if reply.score is None else {**stored, "score": reply.score}


def _decode_reply(reply: Any, finish: Any, *counts: Any) -> Completion:
    """Make the completion of a row; raise ``ValueError`` for values of wrong types, which SQLite's columns accept."""
    stored = boundary.parse_json(reply) if isinstance(reply, str) else None
    fields: dict[str, Any] = stored if isinstance(stored, dict) else {"text": stored}
    text, thought, score = fields.get("text"), fields.get("thought", ""), fields.get("score")
    counts = (*counts, fields.get("thought_tokens", 0))
    are_counts = all(type(count) is int and count >= 0 for count in counts)
    if not (isinstance(text, str) and isinstance(thought, str) and finish == "stop" and are_counts):
        raise ValueError("a row does not hold a model's reply")
    if not (score is None or (isinstance(score, float | int) and 0 <= score <= 1)):
        raise ValueError("the score of a reply is not a probability")
    return Completion(text, Usage(*counts), thought=thought, score=score)


@dataclass(slots=True)
class Account:
    """The numbers of requests and tokens of one role in this run; replies from the cache (``hits``) add no tokens."""

    hits: int = 0
    """Replies without a call: from the cache, or from an equal request that was under way."""
    answered: int = 0
    calls: int = 0
    retries: int = 0
    failed: int = 0
    pending: int = 0
    """Requests under way."""
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    thought: int = 0
    """The tokens of ``completion`` that belong to thoughts."""


@dataclass
class Client:
    """Completes requests by an engine, with a cache, retries, and accounts by role.

    A client looks in the cache first, and sends equal requests at the same time only once. After a transient error, it
    repeats a request with jittered back-off or when the server says, in up to ``tries`` calls. If a reply was cut or
    ended in a thought, the client repeats the request once with twice the tokens; the request has failed if that reply
    has no text, or if it is cut and the request is ``in_full``. The cache keeps only whole replies.
    """

    engine: Engine
    cache: ResponseCache | None = None
    in_flight: int = IN_FLIGHT
    tries: int = TRIES
    allowance: Allowance = AS_PROMPTED
    accounts: dict[str, Account] = field(default_factory=dict)
    last_error: str = ""
    """The error of the last request that failed for good."""
    readability: Readability = field(init=False)
    """Tracks whether the replies of `reading` could be read."""
    _credentials: Collection[str] = field(default_factory=lambda: tuple(credentials().values()))
    _pending: dict[str, asyncio.Future[Completion]] = field(default_factory=dict)
    _waiting_for: Counter[str] = field(default_factory=Counter)
    """The number of callers that wait for the call under a key."""
    _last_fault: str = ""
    """The error of the last call; empty if it succeeded."""
    _refused: int = 0
    _end_reason: str = ""
    """Why the run ended early (then waiting requests are not sent); empty if it did not."""

    def __post_init__(self) -> None:
        self.readability = Readability(self.in_flight)
        self._slots = asyncio.Semaphore(min(FIRST_IN_FLIGHT, self.in_flight))
        self._withheld_slots = max(0, self.in_flight - FIRST_IN_FLIGHT)
        self._wait = Wait(lambda seconds: self._describe_wait(seconds))

    async def complete(self, request: Request) -> Completion:
        """Return the reply to a request; raise ``EngineError`` if it failed, ``UserError`` if the run has to end."""
        account = self.accounts.setdefault(request.role, Account())
        sent = self.allowance.apply(request)
        key = self._key(sent)
        if (reply := self._look_up(key, sent, request.sampling.max_tokens)) is not None:
            account.hits += 1
            return reply
        if sent.sampling.effort and self.engine.simulated:
            raise UserError(f"{self.engine.name}: no model thinks there; leave out {EFFORT_OPTION} for it")
        pending = self._pending.get(key)
        is_shared = pending is not None
        if pending is None:
            pending = asyncio.ensure_future(self._call(key, sent, account))
            self._pending[key] = pending
            pending.add_done_callback(functools.partial(self._forget_call, key))
        self._waiting_for[key] += 1
        try:
            reply = await asyncio.shield(pending)  # a caller that gives up must not cancel the call of the others
        finally:
            self._waiting_for[key] -= 1
            if not self._waiting_for[key]:
                del self._waiting_for[key]
                if not pending.done():
                    self._pending.pop(key, None)
                    pending.cancel()
        account.hits += is_shared
        return reply

    @asynccontextmanager
    async def reading(self, request: Request) -> AsyncIterator[Completion]:
        """Yield the completion of a request to a block that reads it; a ``ValueError`` there means *unreadable*.

        Raises the errors of `complete`, and ``UserError`` if none of the run's first replies is readable.
        """
        async with self.readability.slots:
            self.readability.check()
            reply, reason = await self.complete(request), ""
            try:
                yield reply
            except ValueError as error:
                reason = unreadable_because(reply.transcript, reply.flaw or str(error))
                raise
            finally:
                self.readability.record(reason)

    def cached_reply(self, request: Request) -> Completion | None:
        """Return the reply to a request in the cache; None if there is none."""
        sent = self.allowance.apply(request)
        return self._look_up(self._key(sent), sent, request.sampling.max_tokens)

    def _look_up(self, key: str, sent: Request, limit: int) -> Completion | None:
        """Return the reply to a request as it is ``sent``, which the cache has under ``key``.

        A reply that ended by itself within the prompt's own ``limit`` of tokens is also valid under a higher limit.
        """
        if self.cache is None:
            return None
        reply = self.cache.get(key)
        if reply is None and sent.sampling.max_tokens > limit and not self.engine.simulated:
            reply = self.cache.get(self._key(_limit_tokens(sent, limit)))
        return reply

    def _key(self, request: Request) -> str:
        """Return the key of a reply in the cache; the key of a simulated reply changes with the player's code."""
        return request_key(self.engine, request) + getattr(self.engine, "code", "")

    @property
    def name(self) -> str:
        """The engine's name, with the reasoning effort."""
        return f"{self.engine.name}{self.allowance.effort_suffix}"

    async def complete_all(self, requests: Sequence[Request]) -> list[Completion | EngineError]:
        """Return a completion or an ``EngineError`` for each request, in order; any other exception ends all."""

        async def complete_or_fail(request: Request) -> Completion | EngineError:
            try:
                return await self.complete(request)
            except EngineError as error:
                return error

        return await event_loop.gather_all(complete_or_fail(request) for request in requests)

    def total(self) -> Account:
        """Return the sums of all roles' accounts."""
        return _sum_accounts(self.accounts.values())

    def _forget_call(self, key: str, call: asyncio.Future[Completion]) -> None:
        if self._pending.get(key) is call:
            del self._pending[key]
        if not call.cancelled():
            call.exception()  # asyncio prints an exception that nobody retrieves

    async def _call(self, key: str, request: Request, account: Account) -> Completion:
        account.pending += 1
        try:
            async with self._slots:
                replies = await self._complete_cut(key, request, account)
        except EngineError as error:
            account.failed += 1
            self.last_error = str(error)
            self._give_up_if_hopeless(error)
            raise
        except UserError as error:
            self._end_reason = str(error)
            raise
        finally:
            account.pending -= 1
        account.answered += 1
        while self._withheld_slots:
            self._withheld_slots -= 1
            self._slots.release()
        if self.cache is not None:
            self.cache.store(replies.items())
        return replies[key]

    def _give_up_if_hopeless(self, error: EngineError) -> None:
        """Stop a run in which every request fails, instead of failing each of its rows."""
        total = self.total()
        self._refused += error.refused
        if total.answered or total.hits:
            return
        if total.failed >= MAX_FAILURES or self._refused >= MAX_REFUSALS:
            self._end_reason = f"{self.engine.name}: the first {total.failed} requests failed, the last: {error}"
            raise UserError(self._end_reason)

    async def _complete_cut(self, key: str, request: Request, account: Account) -> dict[str, Completion]:
        """Complete a request, with twice the tokens if its reply is cut; return each reply by its request's key."""
        reply = await self._retry(request, account)
        if reply.ending not in ("cut", "thought"):
            return {key: reply}
        limit = request.sampling.max_tokens
        longer_request = _limit_tokens(request, 2 * limit)
        account.retries += 1
        try:
            longer_reply = await self._retry(longer_request, account)
        except EngineError as error:
            raise EngineError(f"cut at {limit:,} tokens; with {2 * limit:,}: {error}") from None
        if longer_reply.ending != "whole" and (request.in_full or not longer_reply.fragment.strip()):
            flaw = "in a thought, with nothing said" if longer_reply.thought else "with nothing readable in it"
            raise EngineError(
                f"cut at {2 * limit:,} tokens {flaw}; raise {LIMIT_OPTION} {request.role}=N above {2 * limit}"
            )
        usage = reply.usage + longer_reply.usage
        return {self._key(longer_request): longer_reply, key: replace(longer_reply, usage=usage)}

    async def _retry(self, request: Request, account: Account) -> Completion:
        tries = AsyncRetrying(
            stop=stop_after_attempt(self.tries),
            wait=_back_off,
            retry=retry_if_exception(lambda e: isinstance(e, EngineError) and e.transient),
            reraise=True,
        )

        async def call() -> Completion:
            if self._end_reason:
                raise UserError(self._end_reason)
            account.calls += 1
            account.retries += tries.statistics["attempt_number"] > 1
            try:
                reply = await complete_once(self.engine, request, self._credentials)
            except EngineError as error:
                self._last_fault = str(error)
                raise
            self._last_fault = ""
            self._wait.restart()
            account.prompt += reply.usage.prompt
            account.cached += reply.usage.cached
            account.completion += reply.usage.completion
            account.thought += reply.usage.thought
            if reply.ending == "failed":
                raise EngineError(reply.flaw, transient=True)
            return reply

        with self._wait:
            return await tries(call)

    def _describe_wait(self, seconds: int) -> str:
        source = self.engine.identity.get("base_url") or "a reply"
        fault = f"; the last error: {self._last_fault}" if self._last_fault else ""
        return f"{self.engine.name}: waiting for {source} since {seconds} s{fault}"


async def complete_once(engine: Engine, request: Request, secrets: Collection[str] = ()) -> Completion:
    """Call an engine once and return its reply, whole or not, without ``secrets``; raise ``EngineError``."""
    with printable_errors():
        (reply,) = await engine.generate([request])
        if isinstance(reply, EngineError):
            raise reply
    return redact_reply(reply, secrets)


async def check(engine: Engine) -> None:
    """Raise ``UserError`` if an engine's server, model or file is missing; print a line if the check takes long."""
    source = engine.identity.get("base_url") or "the model"
    with Wait(lambda seconds: f"{engine.name}: waiting for {source} since {seconds} s", soon=True), printable_errors():
        await engine.check()


def _limit_tokens(request: Request, tokens: int) -> Request:
    return replace(request, sampling=replace(request.sampling, max_tokens=tokens))


def _back_off(retry_state: RetryCallState) -> float:
    """Return the seconds of a jittered exponential back-off, but never less than the server's Retry-After."""
    error = retry_state.outcome.exception() if retry_state.outcome else None
    retry_after = error.retry_after if isinstance(error, EngineError) else None
    jittered = wait_random_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)(retry_state)
    return max(jittered, min(retry_after or 0.0, LONGEST_WAIT_S))


def render_requests(accounts: Iterable[Account]) -> str:
    """Render the numbers of done, cached, failed and pending (``owed``) requests of all accounts as one line."""
    total = _sum_accounts(accounts)
    return f"requests: {counts(total.answered, total.hits, total.pending, failed=total.failed)}"


def _sum_accounts(accounts: Iterable[Account]) -> Account:
    total = Counter[str]()
    for account in accounts:
        total.update(asdict(account))
    return Account(**total)


def render_usage(account: Account) -> str:
    """Render an account's requests and tokens as one line."""
    a, short = account, tqdm.format_sizeof
    thought = f" (of which thought {short(a.thought)})" if a.thought else ""
    return (
        f"requests: done {a.answered} cached {a.hits} failed {a.failed} under way {a.pending}; "
        f"tokens {short(a.prompt)} in (of which cached {short(a.cached)}) {short(a.completion)} out{thought}"
    )


MAX_ERROR_CHARS, MAX_FATAL_CHARS = 300, 1000
"""Maximum length of the error of one request, and of an error that ends the run; longer errors are shortened."""


def redact_reply(reply: Completion, secrets: Collection[str]) -> Completion:
    """Return a reply without ``secrets`` and all that looks like a key; its texts are cut at `MAX_REPLY_CHARS`."""
    # Readers use no more than that, and redacting longer texts takes too long.
    texts = {name: getattr(reply, name) for name in ("text", "thought", "fragment", "reason")}
    clean = {name: redact_keys(text[: MAX_REPLY_CHARS + 1], secrets) for name, text in texts.items() if text}
    return reply if all(text == texts[name] for name, text in clean.items()) else replace(reply, **clean)  # type: ignore[arg-type]


@contextmanager
def printable_errors() -> Iterator[None]:
    """Re-raise ``EngineError`` and ``UserError`` with texts of one line without credentials, cut at their limits."""
    try:
        yield
    except (EngineError, UserError) as error:
        error.args = (sanitize(error, MAX_FATAL_CHARS if isinstance(error, UserError) else MAX_ERROR_CHARS),)
        raise
