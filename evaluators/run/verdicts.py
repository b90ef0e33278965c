"""Verdicts of a player, each on one item and by one request: collected, counted, written.

Replies of a stopped run are in the client's cache, and are not requested again.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.run.runner import opened
from safe_stepwise import prompts
from safe_stepwise.engines.base import NO_USAGE, Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.feedback import FeedbackError
from safe_stepwise.records import FAILED, Usage, canonical_json
from safe_stepwise.store.progress import counts, telling
from safe_stepwise.store.replies import ReplyError


@dataclass(frozen=True, slots=True)
class Reply:
    """One request's verdict (`FAILED` without a reply), its raw text, the reason for no verdict, its tokens."""

    verdict: str
    text: str = ""
    reason: str = ""
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One player's verdicts. ``name`` may be published; ``role`` is unique within the run."""

    name: str
    role: str
    simulated: bool
    replies: Mapping[Any, Reply]
    """Replies by item, in order."""
    is_constant: bool = False
    """Whether this is a baseline with one verdict for every item, without requests."""

    def tokens(self) -> dict[str, Any]:
        """Tokens of all requests; ``cached_share`` is the part of the prompts that a prefix cache held, None where the
        engine does not count."""
        usages = [] if self.is_constant else [reply.usage for reply in self.replies.values()]
        prompt, cached, thought = (sum(getattr(u, name) for u in usages) for name in ("prompt", "cached", "thought"))
        return {
            "requests": len(usages),
            "prompt": prompt,
            "cached": cached,
            "cached_share": cached / prompt if prompt else None,
            "completion": sum(u.completion for u in usages),
            **({"thought": thought} if thought else {}),
        }

    def line(self, item: Any, **about: Any) -> str:
        """Return a JSON line: fields about an item, the verdict on it, the raw reply."""
        reply = self.replies[item]
        content = {"said": reply.verdict, "reply": reply.text, "reason": reply.reason, "simulated": self.simulated}
        return canonical_json({**about, **content})


def collect_verdicts(
    client: Client, role: str, unit: str, requests: Mapping[Any, Request], read: Callable[[str, str], str], unread: str
) -> Verdicts:
    """Collect the verdicts of a client's engine, which is closed afterwards.

    ``read`` makes a verdict from a reply and its prompt's data; ``unread`` stands for a missing one. Raises
    ``UserError`` if the engine can't work, or answers none of its first requests.
    """
    total = len(requests)
    with telling(role, unit, total, lambda: _count_ended(client), lambda: standing(client, total)):
        completions = asyncio.run(_ask_all(client, [*requests.values()]))
    replies = {}
    for (item, request), completion in zip(requests.items(), completions, strict=True):
        if isinstance(completion, EngineError):
            replies[item] = Reply(FAILED, reason=str(completion))
            continue
        try:
            verdict, reason = read(completion.text, prompts.data_of(request)), ""
        except (FeedbackError, ReplyError) as error:
            verdict, reason = unread, completion.flaw or str(error)
        replies[item] = Reply(verdict, completion.transcript, reason, completion.usage)
    return Verdicts(client.name, role, client.engine.simulated, replies)


async def _ask_all(client: Client, requests: Sequence[Request]) -> list[Completion | EngineError]:
    async with opened([client]):
        return await client.ask_all(requests)


def usage_lines(client: Client, title: str, failed: str = "count as not right") -> Iterator[str]:
    """Yield a line or two on a client's requests; ``failed`` says how failed requests count."""
    a = client.total()
    thought = f", {a.thought:,} of them thought" if a.thought else ""
    yield (
        f"{title}: {a.answered:,} requests answered, {a.hits:,} from the cache, {a.failed:,} failed, {a.retries:,} "
        f"retries; {a.prompt:,} prompt tokens ({a.cached:,} cached), {a.completion:,} reply tokens{thought}"
    )
    if a.failed:
        yield (f"{a.failed:,} requests failed, and {failed}; run the same command again: only they are asked")


def standing(client: Client, requests: int) -> str:
    """Return the progress of so many requests, for the bar."""
    a, pending = client.total(), requests - _count_ended(client)
    return counts(a.answered, a.hits, pending, failed=a.failed)


def _count_ended(client: Client) -> int:
    account = client.total()
    return account.answered + account.hits + account.failed


def lines_bytes(lines: Iterable[str]) -> bytes:
    """Encode lines as a file's content; half a surrogate pair of a broken reply becomes its escape."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
