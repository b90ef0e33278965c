"""Asking an engine all that is to be measured, through the response cache, with a progress bar."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.engines.base import NO_USAGE, Completion, EngineError, Request
from safe_stepwise.engines.client import Client, check
from safe_stepwise.records import Usage
from safe_stepwise.store.progress import counts, telling

Found = Completion | EngineError


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one request: an outcome, the raw text, why there is none to read, the tokens."""

    said: str
    text: str = ""
    reason: str = ""
    usage: Usage = NO_USAGE


def tokens(replies: Iterable[Reply]) -> dict[str, Any]:
    """Tokens of all requests; ``cached_share`` is the part of the prompts that a prefix cache held,
    None where the engine does not count."""
    used = [reply.usage for reply in replies]
    prompt, cached = sum(u.prompt for u in used), sum(u.cached for u in used)
    return {
        "requests": len(used),
        "prompt": prompt,
        "cached": cached,
        "cached_share": cached / prompt if prompt else None,
        "completion": sum(u.completion for u in used),
    }


def ask_all(client: Client, title: str, unit: str, requests: Sequence[Request]) -> list[Found]:
    """A reply or an error for each request; the client's engine is closed afterwards.

    What a run that was stopped had received is in the client's cache, and is not asked again.
    Raises ``UserError`` if the engine can't work, or answers none of its first requests.
    """
    owed = len(requests)
    with telling(title, unit, owed, lambda: _settled(client), lambda: standing(client, owed)):
        return asyncio.run(_ask(client, requests))


def spent(client: Client, who: str, failed: str = "count as not right") -> Iterator[str]:
    """What a client's requests came to, a line or two; ``failed``: what is made of those."""
    a = client.total()
    yield (
        f"{who}: {a.answered:,} requests answered, {a.hits:,} from the cache, {a.failed:,} "
        f"failed, {a.retries:,} retries; {a.prompt:,} prompt tokens ({a.cached:,} cached), "
        f"{a.completion:,} reply tokens"
    )
    if a.failed:
        yield (f"{a.failed:,} requests failed, and {failed}; run the same command again: only they are asked")


def standing(client: Client, requests: int) -> str:
    """How this many requests stand, for the bar."""
    a, owed = client.total(), requests - _settled(client)
    return counts(a.answered, a.hits, owed, failed=a.failed)


async def _ask(client: Client, requests: Sequence[Request]) -> list[Found]:
    try:
        await check(client.engine)
        return await client.ask_all(requests)
    finally:
        await client.engine.close()


def _settled(client: Client) -> int:
    whole = client.total()
    return whole.answered + whole.hits + whole.failed
