"""Run systems over questions, keep each trajectory as it ends, and resume an evaluation that was stopped.

A `Task` is one system (a method, its players, its options) over all questions. Tasks run one after the other, so
that the cost of each system is measured alone. ``OUTPUT/.trajectories.jsonl`` keeps each trajectory when it ends,
under a digest of all that can change it. A killed run resumes from there, and within a question from the clients'
response cache. A failed trajectory is not kept, so the same command repeats it.

If an item is a single request (for a verdict on a step or a path), the response cache is the journal (`Verdicts`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from safe_stepwise import prompts
from safe_stepwise.engines import client as engine_client
from safe_stepwise.engines.base import NO_USAGE, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.readability import PROBES, Readability
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError
from safe_stepwise.methods.running import unreadable
from safe_stepwise.records import FAILED, Trajectory, Usage, canonical_json, identity
from safe_stepwise.store import files, names
from safe_stepwise.store.boundary import parse_json, read
from safe_stepwise.store.event_loop import for_each, gather_all
from safe_stepwise.store.progress import counts, show_progress
from safe_stepwise.store.replies import ReplyError

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Task(Generic[Item, Result]):
    """One system over all questions."""

    identity: str
    """Digest of all but the question that can change a trajectory."""
    items: Callable[[], Iterable[Item]]
    """The items to answer, in the order of the questions."""
    answer: Callable[[Item], Awaitable[Trajectory]]
    finish: Callable[[Sequence[Trajectory]], Awaitable[Result]]
    """Makes the system's result from its trajectories, in the order of the questions."""


def run_tasks(
    questions: Sequence[Any], tasks: Sequence[Task[Item, Result]], clients: Sequence[Client], output: Path, limit: int
) -> list[Result]:
    """Return the tasks' results in order, with at most ``limit`` questions at a time.

    ``questions`` are their identities as JSON values. Raises ``UserError`` if an engine can't work or answers nothing.
    """
    progress = Progress(len(questions) * len(tasks), limit)

    async def run_all(journal: Journal) -> list[Result]:
        results, every_key = list[Result](), list[str]()
        async with opened(clients):
            for task in tasks:
                keys = [identity([task.identity, question]) for question in questions]
                results.append(await task.finish(await _run_task(task, keys, limit, journal, progress)))
                every_key += keys
            journal.end(every_key)
        return results

    standing = partial(progress.standing, clients)
    bar = show_progress("evaluation", "trajectory", progress.total, lambda: progress.ended, standing)
    with bar, closing(Journal(output / names.JOURNAL)) as journal:
        results = asyncio.run(run_all(journal))
    if progress.failed == progress.total:
        raise UserError(
            f"all {progress.total} trajectories failed and nothing was written; the last: {progress.last_failure}; "
            "mend that and run the same command again"
        )
    return results


async def _run_task(
    task: Task[Item, Result], keys: Sequence[str], at_once: int, journal: "Journal", progress: "Progress"
) -> list[Trajectory]:
    ended = {place: finished for place, key in enumerate(keys) if (finished := journal.get(key)) is not None}
    progress.resumed += len(ended)
    progress.ended += len(ended)

    for trajectory in ended.values():
        progress.look(trajectory)

    async def answer(placed: tuple[int, Item]) -> None:
        place, item = placed
        async with progress.readability.slots:
            trajectory = ended[place] = await task.answer(item)
        failed = trajectory.stop_reason == FAILED
        if not failed:
            journal.add(keys[place], trajectory)
        progress.ended += 1
        progress.failed += failed
        progress.look(trajectory)

    if len(ended) < len(keys):
        resumed = frozenset(ended)
        await for_each((placed for placed in enumerate(task.items()) if placed[0] not in resumed), answer, at_once)
    trajectories = [ended[place] for place in range(len(keys))]
    progress.last_failure = next((t.failure for t in reversed(trajectories) if t.failure), progress.last_failure)
    return trajectories


@asynccontextmanager
async def opened(clients: Iterable[Client]) -> AsyncIterator[None]:
    """Check the engines of clients, each once, and close them when the context ends."""
    engines = {id(client.engine): client.engine for client in clients}.values()
    try:
        for engine in engines:
            await engine_client.check(engine)
        yield
    finally:
        for engine in engines:
            await engine.close()


class Journal:
    """A file of ended trajectories by key, on disk before the next one ends; a damaged line is dropped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._trajectories: dict[str, Trajectory] = {}
        lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
        if (sound := [*filter(self._load_line, lines), b""]) != lines:
            files.write_atomically(path, b"\n".join(sound))
        self._file = path.open("ab", buffering=0)

    def _load_line(self, line: bytes) -> bool:
        """Load a line's trajectory; returns whether the line is sound."""
        try:
            entry = parse_json(line)
            key = read(str, entry["key"], "the key")
            trajectory = read(Trajectory, entry["trajectory"], "the trajectory")
            if self._line(key, trajectory) != line:
                return False
        except (ValueError, TypeError, KeyError):
            return False
        self._trajectories[key] = trajectory
        return True

    def get(self, key: str) -> Trajectory | None:
        return self._trajectories.get(key)

    def add(self, key: str, trajectory: Trajectory) -> None:
        self._trajectories[key] = trajectory
        remaining = memoryview(self._line(key, trajectory) + b"\n")
        while remaining:
            remaining = remaining[self._file.write(remaining) :]

    def end(self, keys: Iterable[str]) -> None:
        """Move the trajectories of these keys to the end, in this order, whichever ended first."""
        last = dict.fromkeys(key for key in keys if key in self._trajectories)
        order = [*(key for key in self._trajectories if key not in last), *last]
        if order != [*self._trajectories]:
            lines = [self._line(key, self._trajectories[key]) for key in order]
            files.write_atomically(self._path, b"".join(line + b"\n" for line in lines))

    def _line(self, key: str, trajectory: Trajectory) -> bytes:
        # Without a digest, a changed letter of a reply would go unseen.
        entry = {"digest": identity([key, trajectory]), "key": key, "trajectory": trajectory}
        return canonical_json(entry).encode("utf-8", "backslashreplace")

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True)
class Progress:
    """The progress of a run, in trajectories."""

    total: int
    at_once: int = PROBES
    readability: Readability = field(init=False)
    ended: int = 0
    """All ended trajectories, resumed and failed ones included."""
    resumed: int = 0
    """Trajectories of an earlier run."""
    failed: int = 0
    last_failure: str = ""

    def __post_init__(self) -> None:
        self.readability = Readability(self.at_once, self.total, "questions")

    def look(self, trajectory: Trajectory) -> None:
        """Count whether a trajectory was readable; raise ``UserError`` once too many were not."""
        if trajectory.stop_reason != FAILED and not self.readability.is_readable:
            replies = sum(bool(attempt.usage) for attempt in trajectory.attempts)
            self.readability.record(unreadable(trajectory.attempts), replies)

    def standing(self, clients: Sequence[Client]) -> str:
        """Render the progress, with the calls and tokens of this run."""
        accounts = [client.total() for client in clients]
        prompt, cached = sum(a.prompt for a in accounts), sum(a.cached for a in accounts)
        share = f" ({cached / prompt:.0%} cached)" if prompt else ""
        done_now, pending = self.ended - self.resumed - self.failed, self.total - self.ended
        stands = counts(done_now, self.resumed, pending, failed=self.failed)
        return f"{stands}; {engine_client.render_requests(accounts)}; prompt tokens {prompt:,}{share}"


@dataclass(frozen=True, slots=True)
class VerdictReply:
    """The verdict of a request (`FAILED` without a reply), the raw reply, the reason for no verdict, the tokens.

    ``score`` is the probability of `Correct` (0-1), None where it was not told.
    """

    verdict: str
    text: str = ""
    reason: str = ""
    usage: Usage = NO_USAGE
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts of one player; ``name`` may be published, and ``role`` is unique within the run."""

    name: str
    role: str
    simulated: bool
    replies: Mapping[Any, VerdictReply]
    """Replies by item, in order."""
    is_constant: bool = False
    """Whether this is a baseline that sends no requests, such as one verdict for every item, or a probe."""

    def tokens(self) -> dict[str, Any]:
        """Tokens of all requests; ``cached_share``: of the prompts, in a prefix cache (None: not counted)."""
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
        return canonical_json({**about, **content, **({} if reply.score is None else {"score": reply.score})})


def collect_verdicts(
    client: Client,
    role: str,
    unit: str,
    requests: Mapping[Any, Request],
    read: Callable[[str, str], str],
    unread: str,
    *,
    is_first: bool = True,
) -> Verdicts:
    """Collect the verdicts of a client's engine, which is closed afterwards.

    ``read`` makes a verdict from a reply and its prompt's data; ``unread`` stands for a missing one. Raises
    ``UserError`` if the engine can't work, or if none of the first replies of the ``is_first`` player can be read.
    """
    total = len(requests)
    client.readability = Readability(client.in_flight, total, is_readable=not is_first)

    async def request_verdict(request: Request) -> VerdictReply:
        try:
            async with client.reading(request) as reply:
                verdict, reason = read(reply.text, prompts.data_of(request)), ""
        except EngineError as error:
            return VerdictReply(FAILED, reason=str(error))
        except (FeedbackError, ReplyError) as error:
            verdict, reason = unread, reply.flaw or str(error)
        return VerdictReply(verdict, reply.transcript, reason, reply.usage, reply.score)

    async def request_all() -> list[VerdictReply]:
        async with opened([client]):
            return await gather_all(map(request_verdict, requests.values()))

    with show_progress(role, unit, total, lambda: _count_ended(client), lambda: standing(client, total)):
        replies = dict(zip(requests, asyncio.run(request_all()), strict=True))
    return Verdicts(client.name, role, client.engine.simulated, replies)


def render_run_usage(client: Client, title: str, failed: str = "count as not right") -> Iterator[str]:
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
    """Render the progress of so many requests, for the bar."""
    a, pending = client.total(), requests - _count_ended(client)
    return counts(a.answered, a.hits, pending, failed=a.failed)


def _count_ended(client: Client) -> int:
    account = client.total()
    return account.answered + account.hits + account.failed


def encode_lines(lines: Iterable[str]) -> bytes:
    """Encode lines as a file's content; half a surrogate pair of a broken reply becomes its escape."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
