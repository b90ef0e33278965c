"""Between caller and engine: the response cache, bounded retries, a limit, and the accounts.

A server is a stranger: whatever it says passes here before anyone keeps or prints it, and loses the keys that it
was sent. No engine has to think of it, and none can forget it.

The response cache is also the journal: one SQLite file, shared by several processes. A completion is on disk before
its caller sees it, so a run that is killed and started again repeats no call whose reply it had received.
"""

import asyncio
import functools
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry, retry_if_exception, stop_after_attempt, stop_after_delay
from tenacity.wait import wait_base, wait_random, wait_random_exponential
from tqdm import tqdm

from safe_stepwise.engines.base import (
    AS_PROMPTED,
    Allowance,
    Completion,
    Engine,
    EngineError,
    Request,
    completion,
    count_thought,
    request_key,
)
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.event_loop import gather_all
from safe_stepwise.store.progress import Wait
from safe_stepwise.store.replies import LONGEST as LONGEST_REPLY
from safe_stepwise.store.terminal import credentials, redact_keys, sanitize

TRIES = 8
"""Calls a request may cost. At 20% random faults 3 in a million requests fail for good."""
IN_FLIGHT = 256
"""Requests under way at a time: what keeps one vLLM replica busy."""
FIRST = 8
"""The same until one is answered: a wrong key or model shows before hundreds are sent."""
HOPELESS = 50
"""Requests that have to fail, with none answered, for a run to be given up."""
REFUSALS = 3
"""The same of requests that were forbidden: one alone may be for what its text says."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0
LIMIT, EFFORT = "--max-tokens", "--reasoning-effort"
"""How commands call the two kinds of `Allowance`."""


_TABLE = """
create table if not exists completions (
    key text primary key, text text not null, finish text not null,
    prompt integer not null, cached integer not null, completion integer not null
) without rowid
"""
_PUT = """
insert into completions values (?, ?, ?, ?, ?, ?) on conflict (key) do update set
    text = excluded.text, finish = excluded.finish, prompt = excluded.prompt,
    cached = excluded.cached, completion = excluded.completion
where completions.finish = 'length'
"""
_BUSY_S = 60


def default_cache() -> Path:
    """Where replies of models are kept: ``$SAFE_STEPWISE_CACHE``, or the user's cache folder."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    named = os.environ.get("SAFE_STEPWISE_CACHE")
    return Path(named) if named else Path(folder) / "safe_stepwise" / "replies.sqlite"


class ResponseCache:
    """Completions by `request_key`.

    Opened in WAL mode, where readers never wait and writers queue; a file system without shared memory (NFS) can't do
    that, so processes on several machines need a file each. Raises ``UserError`` when the file can't be opened, is no
    such cache, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The event loop that asks may run in another thread than the one that opens.
            self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            self._use_wal()
            # Survives a killed process; only a power cut may lose the last replies.
            self._db.execute("pragma synchronous = normal")
            self._db.execute(_TABLE)
            self._row("")  # a table of that name with other columns shows here
        except (OSError, sqlite3.Error) as error:
            raise UserError(f"{path}: cannot be used as a response cache ({error}); choose another --cache") from error

    def get(self, key: str) -> Completion | None:
        """The completion stored under a key; raises ``UserError`` if the file is damaged."""
        try:
            row = self._row(key)
            if row is None:
                return None
            return _completion(*row)
        except (sqlite3.Error, ValueError) as error:
            raise UserError(f"{self.path}: cannot be read ({error}); choose another --cache") from error

    def store(self, found: Sequence[tuple[str, Completion]]) -> None:
        """Store whole completions, all or none; what is there already stays, unless it was cut off.

        Earlier versions kept what was cut, too.
        """
        # As JSON, which can hold the half surrogates that a broken reply may contain.
        rows = [
            (key, json.dumps(_stored_reply(reply)), "stop", *astuple(reply.usage)[:3])
            for key, reply in found
            if reply.ending == "whole"
        ]
        try:
            with self._db:
                self._db.execute("begin immediate")
                self._db.executemany(_PUT, rows)
        except (sqlite3.Error, OverflowError) as error:
            raise UserError(f"{self.path}: cannot be written ({error})") from error

    @retry(
        retry=retry_if_exception(lambda e: "locked" in str(e)),
        wait=wait_random(0.01, 0.1),
        stop=stop_after_delay(_BUSY_S),
        reraise=True,
    )
    def _use_wal(self) -> None:
        """Of several who open a new file at once SQLite lets one switch and sends the rest away."""
        self._db.execute("pragma journal_mode = wal")

    def _row(self, key: str) -> tuple[Any, ...] | None:
        query = "select text, finish, prompt, cached, completion from completions where key = ?"
        row: tuple[Any, ...] | None = self._db.execute(query, (key,)).fetchone()
        return row

    def __len__(self) -> int:
        (number,) = self._db.execute("select count(*) from completions").fetchone()
        return int(number)

    def close(self) -> None:
        """Close the file; what was put stays."""
        self._db.close()


def _stored_reply(reply: Completion) -> str | dict[str, Any]:
    if not (reply.thought or reply.usage.thought):
        return reply.text
    return {"text": reply.text, "thought": reply.thought, "thought_tokens": reply.usage.thought}


def _completion(reply: Any, finish: Any, *counts: Any) -> Completion:
    """What a row says; ``ValueError`` if we never wrote it, as SQLite's columns take any type."""
    stored = parse_json(reply) if isinstance(reply, str) else None
    parts: dict[str, Any] = stored if isinstance(stored, dict) else {"text": stored, "thought": ""}
    text, thought, counts = parts.get("text"), parts.get("thought"), (*counts, parts.get("thought_tokens", 0))
    counted = all(type(count) is int and count >= 0 for count in counts)
    if not (isinstance(text, str) and isinstance(thought, str) and finish in ("stop", "length") and counted):
        raise ValueError("a row is no reply of a model")
    usage = Usage(*counts)
    if "thought_tokens" not in parts:  # as earlier versions kept it
        usage = count_thought(usage, thought, text)
    if parts is stored:
        return Completion(text, usage, thought=thought)
    return completion(text, usage, finish)


@dataclass(slots=True)
class Account:
    """What a role's requests came to in this run; tokens are those of calls made, not of hits."""

    hits: int = 0
    """Replies that cost no call: from the cache, or shared with one who asked first."""
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
    """The part of ``completion`` that reasoning models spent before they replied."""


@dataclass
class Client:
    """How everything here asks a model.

    A reply is looked up, then asked for at most once however many ask for it at the same time. Transient errors are
    tried again with jittered back-off (or after what the server says). A reply that was cut, or ended in a thought, is
    asked for once more, with twice the tokens. If that one says nothing, either, or the request wants it in full, the
    request failed; else it is given back as it is. No cache keeps a reply that is not whole.
    """

    engine: Engine
    cache: ResponseCache | None = None
    in_flight: int = IN_FLIGHT
    tries: int = TRIES
    allowance: Allowance = AS_PROMPTED
    accounts: dict[str, Account] = field(default_factory=dict)
    last_error: str = ""
    """Why the last request that failed for good did."""
    _ours: Collection[str] = field(default_factory=lambda: tuple(credentials().values()))
    _pending: dict[str, asyncio.Future[Completion]] = field(default_factory=dict)
    _waiting_for: Counter[str] = field(default_factory=Counter)
    """How many wait for the call under a key."""
    _fault: str = ""
    """What the last call came to, if to nothing."""
    _refused: int = 0
    _over: str = ""
    """Why the run was given up, if it was: whoever still waits for a place sends nothing."""

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(min(FIRST, self.in_flight))
        self._held_back = max(0, self.in_flight - FIRST)
        self._wait = Wait(lambda seconds: self._waiting(seconds))

    async def complete(self, request: Request) -> Completion:
        """The completion of one request; raises ``EngineError`` when every try failed."""
        account = self.accounts.setdefault(request.role, Account())
        asked = self.allowance.apply(request)
        key = request_key(self.engine, asked)
        if (stored := self._stored(key, asked, request.sampling.max_tokens)) is not None:
            account.hits += 1
            return stored
        if asked.sampling.effort and self.engine.simulated:
            raise UserError(f"{self.engine.name}: no model thinks there; leave out {EFFORT} for it")
        pending = self._pending.get(key)
        shared = pending is not None
        if pending is None:
            pending = asyncio.ensure_future(self._call(key, asked, account))
            self._pending[key] = pending
            pending.add_done_callback(functools.partial(self._settle, key))
        self._waiting_for[key] += 1
        try:
            completion = await asyncio.shield(pending)  # one who gives up must not take the reply from the others
        finally:
            self._waiting_for[key] -= 1
            if not self._waiting_for[key]:
                del self._waiting_for[key]
                self._drop(key, pending)
        account.hits += shared
        return completion

    def cached_reply(self, request: Request) -> Completion | None:
        """The reply that the cache holds, if it is whole."""
        asked = self.allowance.apply(request)
        key = request_key(self.engine, asked)
        return self._stored(key, asked, request.sampling.max_tokens)

    def _stored(self, key: str, asked: Request, own: int) -> Completion | None:
        """What a model ended by itself in the prompt's ``own`` room it would not end otherwise with
        more: a limit that is raised for the few costs no call for the many."""
        if self.cache is None:
            return None
        found = self.cache.get(key)
        if found is None and asked.sampling.max_tokens > own and not self.engine.simulated:
            found = self.cache.get(request_key(self.engine, _with_room(asked, own)))
        return found if found is not None and found.ending == "whole" else None

    @property
    def name(self) -> str:
        """The engine's, with the effort that it is asked for."""
        return f"{self.engine.name}{self.allowance.effort_suffix}"

    async def complete_all(self, requests: Sequence[Request]) -> list[Completion | EngineError]:
        """A completion or an error for each request, in order.

        Anything but an ``EngineError`` ends it at once: a run given up waits for no other request.
        """
        return await gather_all(self._settled(request) for request in requests)

    def total(self) -> Account:
        """The sum over roles."""
        return _total(self.accounts.values())

    def _drop(self, key: str, call: asyncio.Future[Completion]) -> None:
        """End a call that nobody waits for any more, so that its place is free."""
        if not call.done():
            self._pending.pop(key, None)
            call.cancel()

    def _settle(self, key: str, done: asyncio.Future[Completion]) -> None:
        if self._pending.get(key) is done:
            del self._pending[key]
        if not done.cancelled():
            done.exception()  # looked at: asyncio would print that of a call nobody waits for

    async def _settled(self, request: Request) -> Completion | EngineError:
        try:
            return await self.complete(request)
        except EngineError as error:
            return error

    async def _call(self, key: str, request: Request, account: Account) -> Completion:
        account.pending += 1
        try:
            async with self._slots:
                found = await self._whole(key, request, account)
        except EngineError as error:
            account.failed += 1
            self.last_error = str(error)
            self._give_up_if_hopeless(error)
            raise
        except UserError as error:
            self._over = str(error)
            raise
        finally:
            account.pending -= 1
        account.answered += 1
        while self._held_back:
            self._held_back -= 1
            self._slots.release()
        if self.cache is not None:
            self.cache.store([*found.items()])
        return found[key]

    def _give_up_if_hopeless(self, error: EngineError) -> None:
        """Stop a run of which nothing comes, instead of failing every row of it."""
        whole = self.total()
        self._refused += error.refused
        if whole.answered or whole.hits:
            return
        if whole.failed >= HOPELESS or self._refused >= REFUSALS:
            self._over = f"{self.engine.name}: the first {whole.failed} requests failed, the last: {error}"
            raise UserError(self._over)

    async def _whole(self, key: str, request: Request, account: Account) -> dict[str, Completion]:
        """The reply under its key; if it took a second call, also under the key of that."""
        first = await self._tried(request, account)
        if first.ending not in ("cut", "thought"):
            return {key: first}
        limit = request.sampling.max_tokens
        more = _with_room(request, 2 * limit)
        account.retries += 1
        try:
            second = await self._tried(more, account)
        except EngineError as error:
            raise EngineError(f"cut at {limit:,} tokens; with {2 * limit:,}: {error}") from None
        if second.ending != "whole" and (request.in_full or not second.fragment.strip()):
            thinking = "in a thought, with nothing said" if second.thought else "with nothing readable in it"
            raise EngineError(
                f"cut at {2 * limit:,} tokens {thinking}; raise {LIMIT} {request.role}=N above {2 * limit}"
            )
        both = Usage(*map(sum, zip(astuple(first.usage), astuple(second.usage), strict=True)))
        return {request_key(self.engine, more): second, key: replace(second, usage=both)}

    async def _tried(self, request: Request, account: Account) -> Completion:
        tries = AsyncRetrying(
            stop=stop_after_attempt(self.tries),
            wait=_Wait(),
            retry=retry_if_exception(lambda e: isinstance(e, EngineError) and e.transient),
            reraise=True,
        )

        async def tried() -> Completion:
            if self._over:
                raise UserError(self._over)
            account.calls += 1
            account.retries += tries.statistics["attempt_number"] > 1
            found = await self._generated(request)
            self._wait.restart()
            account.prompt += found.usage.prompt
            account.cached += found.usage.cached
            account.completion += found.usage.completion
            account.thought += found.usage.thought
            if found.ending == "failed":
                raise EngineError(found.flaw, transient=True)
            return found

        with self._wait:
            return await tries(tried)

    async def _generated(self, request: Request) -> Completion:
        try:
            reply = await complete_once(self.engine, request, self._ours)
        except EngineError as error:
            self._fault = str(error)
            raise
        self._fault = ""
        return reply

    def _waiting(self, seconds: int) -> str:
        where = self.engine.identity.get("base_url") or "a reply"
        last = f"; the last error: {self._fault}" if self._fault else ""
        return f"{self.engine.name}: waiting for {where} since {seconds} s{last}"


async def complete_once(engine: Engine, request: Request, ours: Collection[str] = ()) -> Completion:
    """One reply, whole or not, without ``ours``, our credentials; raises ``EngineError`` where there is none."""
    with fit_to_print():
        (reply,) = await engine.generate([request])
        if isinstance(reply, EngineError):
            raise reply
    return kept(reply, ours)


async def check(engine: Engine) -> None:
    """Raise ``UserError`` if an engine can't work, and say so if that takes long to find out."""
    where = engine.identity.get("base_url") or "the model"
    with Wait(lambda seconds: f"{engine.name}: waiting for {where} since {seconds} s", soon=True), fit_to_print():
        await engine.check()


def _with_room(request: Request, tokens: int) -> Request:
    return replace(request, sampling=replace(request.sampling, max_tokens=tokens))


class _Wait(wait_base):
    """Jittered exponential back-off, and never less than the server asked for."""

    def __init__(self) -> None:
        self._jittered = wait_random_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = error.retry_after if isinstance(error, EngineError) else None
        return max(self._jittered(retry_state), min(asked or 0.0, LONGEST_WAIT_S))


def render_requests(accounts: Iterable[Account]) -> str:
    """How the requests of some accounts stand together."""
    whole = _total(accounts)
    return f"requests: done {whole.answered} cached {whole.hits} failed {whole.failed} owed {whole.pending}"


def _total(accounts: Iterable[Account]) -> Account:
    whole = Counter[str]()
    for account in accounts:
        whole.update(asdict(account))
    return Account(**whole)


def render_usage(account: Account) -> str:
    """How an account's requests stand, of which nobody knows how many will come, and the tokens."""
    a, short = account, tqdm.format_sizeof
    thought = f" (of which thought {short(a.thought)})" if a.thought else ""
    return (
        f"requests: done {a.answered} cached {a.hits} failed {a.failed} under way {a.pending}; "
        f"tokens {short(a.prompt)} in (of which cached {short(a.cached)}) {short(a.completion)} out{thought}"
    )


LONGEST, LONGEST_ENDING = 300, 1000
"""Characters that are kept of a request's error, and of one that ends the run."""


def kept(reply: Completion, ours: Collection[str]) -> Completion:
    """A completion without ``ours``, our credentials, what only a key looks like, and excess."""
    # Beyond that no reader looks, and a hundred such replies would be waited for at a time.
    texts = {name: getattr(reply, name) for name in ("text", "thought", "fragment", "reason")}
    clean = {name: redact_keys(text[: LONGEST_REPLY + 1], ours) for name, text in texts.items() if text}
    return reply if all(text == texts[name] for name, text in clean.items()) else replace(reply, **clean)  # type: ignore[arg-type]


@contextmanager
def fit_to_print() -> Iterator[None]:
    """Errors raised inside lose what looks like a credential, and become one line."""
    try:
        yield
    except (EngineError, UserError) as error:
        error.args = (fitted(error),)
        raise


def fitted(error: EngineError | UserError) -> str:
    """An error's text as one line without credentials, cut at its limit.

    >>> fitted(EngineError("Bearer abcdefgh12345678\\nis unknown"))
    'Bearer [redacted] is unknown'
    """
    return sanitize(error, LONGEST_ENDING if isinstance(error, UserError) else LONGEST)
