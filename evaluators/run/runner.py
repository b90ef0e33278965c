"""The one runner of evaluations: systems over questions, kept as they end, resumed where they were stopped.

A `Task` is one system (a method, its players, its options) over all questions. One task runs after the other, so that
what a system costs is its own. ``OUTPUT/.trajectories.jsonl`` keeps each trajectory as soon as it ends, under all that
can change it: a run that is killed resumes from there, and within a question from the clients' response cache. A
trajectory that failed is not kept: the same command asks for it again.

Where an item is one request alone (a step's verdict, a path's), the response cache is the journal (`run.verdicts`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from safe_stepwise.engines import client as engine_client
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.running import unreadable
from safe_stepwise.records import FAILED, Trajectory, canonical_json, identity
from safe_stepwise.store.boundary import parse_json, read
from safe_stepwise.store.event_loop import for_each
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import JOURNAL
from safe_stepwise.store.progress import counts, telling

FIRST = 8
"""Questions without a readable reply after which a run is given up."""
FEW, FEW_REPLIES = 3, 24
"""Fewer of them suffice if they had so many replies together."""
PROBES = 4
"""Questions under way till something can be read in a reply: a wrong model shows before many are asked."""
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Task(Generic[Item, Result]):
    """One system over all questions."""

    identity: str
    """Digest of all but the question that can change a trajectory."""
    items: Callable[[], Iterable[Item]]
    """What to answer, in the order of the questions."""
    answer: Callable[[Item], Awaitable[Trajectory]]
    finish: Callable[[Sequence[Trajectory]], Awaitable[Result]]
    """From the trajectories, in the order of the questions, to what the system came to."""


@dataclass(frozen=True, slots=True)
class Work(Generic[Item, Result]):
    """What to run, and how it is called while it runs."""

    title: str
    unit: str
    units: str
    questions: Sequence[Any]
    """What tells each question from all others, as a JSON value."""
    tasks: Sequence[Task[Item, Result]]
    clients: Sequence[Client]
    output: Path
    at_once: int


def run_tasks(work: Work[Item, Result]) -> list[Result]:
    """What each task came to, in their order.

    Raises ``UserError`` for what the user can mend, and if not one question could be answered.
    """
    progress = Progress(len(work.questions) * len(work.tasks), work.at_once)
    standing = partial(progress.standing, work.clients)
    with telling(work.title, work.unit, progress.total, lambda: progress.done, standing):
        return asyncio.run(_run_tasks(work, progress))


async def _run_tasks(work: Work[Item, Result], progress: "Progress") -> list[Result]:
    journal = Journal(work.output / JOURNAL)
    results: list[Result] = []
    every_key: list[str] = []
    failure = ""
    try:
        async with opened(work.clients):
            for task in work.tasks:
                keys = [identity([task.identity, question]) for question in work.questions]
                trajectories = await _run_task(task, keys, work.at_once, journal, progress)
                failure = next((t.failure for t in reversed(trajectories) if t.failure), failure)
                results.append(await task.finish(trajectories))
                every_key += keys
            journal.end(every_key)
    finally:
        journal.close()
    if progress.failed == progress.total:
        raise UserError(
            f"all {progress.total} {work.units} failed and nothing was written; the last: {failure}; "
            "mend that and run the same command again"
        )
    return results


async def _run_task(
    task: Task[Item, Result], keys: Sequence[str], at_once: int, journal: "Journal", progress: "Progress"
) -> list[Trajectory]:
    """The trajectories of one task: those in the journal, and the others made now."""
    ended = {place: kept for place, key in enumerate(keys) if (kept := journal.get(key)) is not None}
    progress.kept += len(ended)
    progress.done += len(ended)

    for trajectory in ended.values():
        progress.look(trajectory)

    async def answer(placed: tuple[int, Item]) -> None:
        place, item = placed
        async with progress.places:
            trajectory = ended[place] = await task.answer(item)
        failed = trajectory.stop_reason == FAILED
        if not failed:
            journal.add(keys[place], trajectory)
        progress.done += 1
        progress.failed += failed
        progress.look(trajectory)

    if len(ended) < len(keys):
        known = frozenset(ended)
        await for_each((placed for placed in enumerate(task.items()) if placed[0] not in known), answer, at_once)
    return [ended[place] for place in range(len(keys))]


@asynccontextmanager
async def opened(clients: Iterable[Client]) -> AsyncIterator[None]:
    """Have the engines of some clients checked first, each once, and closed at the end."""
    engines = {id(client.engine): client.engine for client in clients}.values()
    try:
        for engine in engines:
            await engine_client.check(engine)
        yield
    finally:
        for engine in engines:
            await engine.close()


class Journal:
    """Trajectories that ended, by key, one line each, on disk before the next one ends.

    A line that a kill tore, or that was damaged, is taken out: its question is owed again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Trajectory] = {}
        lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
        if (sound := [*filter(self._knows, lines), b""]) != lines:
            write_atomically(path, b"\n".join(sound))
        self._file = path.open("ab", buffering=0)

    def _knows(self, line: bytes) -> bool:
        """Whether a line holds a trajectory as it was written, which is then known."""
        try:
            entry = parse_json(line)
            key = read(str, entry["key"], "the key")
            trajectory = read(Trajectory, entry["trajectory"], "the trajectory")
            if self._line(key, trajectory) != line:
                return False
        except (ValueError, TypeError, KeyError):
            return False
        self._known[key] = trajectory
        return True

    def get(self, key: str) -> Trajectory | None:
        """The trajectory under a key, if it ended."""
        return self._known.get(key)

    def add(self, key: str, trajectory: Trajectory) -> None:
        """Keep a trajectory."""
        self._known[key] = trajectory
        left = memoryview(self._line(key, trajectory) + b"\n")
        while left:
            left = left[self._file.write(left) :]

    def end(self, keys: Iterable[str]) -> None:
        """Put what is kept under these keys last and in their order, whichever ended first."""
        last = dict.fromkeys(key for key in keys if key in self._known)
        order = [*(key for key in self._known if key not in last), *last]
        if order != [*self._known]:
            lines = [self._line(key, self._known[key]) for key in order]
            write_atomically(self._path, b"".join(line + b"\n" for line in lines))

    def _line(self, key: str, trajectory: Trajectory) -> bytes:
        return canonical_json({"key": key, "trajectory": trajectory}).encode("utf-8", "backslashreplace")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(slots=True)
class Progress:
    """How a run stands, in trajectories."""

    total: int
    at_once: int = PROBES
    done: int = 0
    """All that have ended, kept and failed ones included."""
    kept: int = 0
    """By an earlier run."""
    failed: int = 0
    unread: int = 0
    """Those in no reply of which anything could be read, till one comes in which something could."""
    unread_replies: int = 0
    is_readable: bool = False
    places: asyncio.Semaphore = field(init=False)
    """Room for questions under way."""

    def __post_init__(self) -> None:
        self.places = asyncio.Semaphore(min(PROBES, self.at_once))

    def look(self, trajectory: Trajectory) -> None:
        """Note whether anything could be read; raises ``UserError`` where nothing ever can, by the first or by all."""
        if self.is_readable or trajectory.stop_reason == FAILED:
            return
        why = unreadable(trajectory.attempts)
        if not why:
            self.is_readable = True
            for _ in range(self.at_once - PROBES):
                self.places.release()
            return
        self.unread += 1
        self.unread_replies += sum(bool(attempt.usage) for attempt in trajectory.attempts)
        enough = FEW if self.unread_replies >= FEW_REPLIES else FIRST
        if self.unread >= min(enough, self.total):
            raise UserError(f"nothing could be read in any reply to the first {self.unread} questions; {why}")

    def standing(self, clients: Sequence[Client]) -> str:
        """In words, with the calls and tokens of this run."""
        accounts = [client.total() for client in clients]
        prompt, cached = sum(a.prompt for a in accounts), sum(a.cached for a in accounts)
        share = f" ({cached / prompt:.0%} cached)" if prompt else ""
        done, owed = self.done - self.kept - self.failed, self.total - self.done
        stands = counts(done, self.kept, owed, failed=self.failed)
        return f"{stands}; {engine_client.requests(accounts)}; prompt tokens {prompt:,}{share}"
