"""Runs over questions: who proposes, who verifies; trajectories kept as soon as they end.

One run after the other goes over all questions. ``OUTPUT/.trajectories.jsonl`` keeps each
trajectory under all that can change it, and replies are in the clients' cache: a run that is killed
goes on from there and repeats no call that was completed. A question that failed is asked again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evaluators.comparison.systems import VARIANT
from evaluators.deliberation.answering import answered
from evaluators.deliberation.asked import Asked, Source
from evaluators.deliberation.contending import Contender
from evaluators.deliberation.proposing import PROPOSER
from evaluators.run.journal import Journal, Progress
from safe_stepwise import prompts
from safe_stepwise.engines.client import Client, check
from safe_stepwise.methods.deliberation import Deliberating, Knowledge
from safe_stepwise.methods.path_deliberating import PROMPTS
from safe_stepwise.methods.running import AT_ONCE
from safe_stepwise.records import FAILED, Trajectory, identity
from safe_stepwise.store.code import code_digest, modules_of
from safe_stepwise.store.event_loop import for_each
from safe_stepwise.store.names import JOURNAL

_LEARNING = ("train", "labels")
"""Conditions that set apart those alone who learn from a set."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    source: Source
    contenders: tuple[Contender, ...]
    output: Path
    generator: Client | None = None
    options: Deliberating = field(default_factory=Deliberating)
    at_once: int = AT_ONCE
    seed: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Where questions, graph and labels come from, for the record."""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """What sets its runs apart from others by the same players, beside the loop's options."""

    @property
    def players(self) -> dict[str, Client]:
        """The loop's; none without a generator."""
        return {} if self.generator is None else {"generator": self.generator}

    @property
    def clients(self) -> list[Client]:
        """All that may be asked, each once."""
        proposing = [one.proposer.client for one in self.contenders]
        asked = [c for c in (*proposing, self.generator) if c is not None]
        return [*{id(client): client for client in asked}.values()]

    @property
    def told(self) -> dict[str, Any]:
        """The loop's options and what its roles are allowed, as they are recorded."""
        if self.generator is None:
            return {}
        return {**asdict(self.options), **self.generator.allowance.plain}

    def names(self, contender: Contender) -> dict[str, str]:
        """Who plays, by role."""
        generator = {} if self.generator is None else {"generator": self.generator.name}
        return {**generator, PROPOSER: contender.proposer.name}

    def label(self, contender: Contender) -> dict[str, Any]:
        """What tells a run's records from those of any other by the same players and options.

        A model learnt from what its adapter is named after, and not from the set beside it.
        """
        learns = contender.proposer.client is None
        told = {n: value for n, value in self.conditions.items() if learns or n not in _LEARNING}
        return {**told, VARIANT: contender.name}

    def is_simulated(self, contender: Contender) -> bool:
        """Whether an engine without a model takes part."""
        asked = [c for c in (contender.proposer.client, self.generator) if c is not None]
        return any(client.engine.simulated for client in asked)

    def code(self) -> str:
        """Digest of the code that makes trajectories."""
        engines = [client.engine for client in self.clients]
        graphs = ("safe_stepwise.graphs.knowledge", "evaluators.deliberation.answering")
        return code_digest(*graphs, *modules_of(engines))

    def identity(self, contender: Contender) -> str:
        """Of all but the question that can change a trajectory."""
        generator = None if self.generator is None else dict(self.generator.engine.identity)
        digest = prompts.digest(*map(prompts.load, PROMPTS))
        known = [contender.proposer.identity, generator, self.told, digest, self.source.graph]
        return identity([*known, self.code()])


@dataclass(frozen=True, slots=True)
class Run:
    """What one contender came to; trajectories are in the order of the questions."""

    contender: Contender
    trajectories: tuple[Trajectory, ...]


async def carried_out(plan: Plan, progress: Progress) -> list[Run]:
    """A run for each contender, in their order; raises ``UserError`` for what can be mended."""
    journal = Journal(plan.output / JOURNAL)
    runs: list[Run] = []
    every: list[str] = []
    engines = {id(client.engine): client.engine for client in plan.clients}.values()
    try:
        for engine in engines:
            await check(engine)
        for contender in plan.contenders:
            common = plan.identity(contender)
            keys = [identity([common, asked]) for asked in _plain(plan.source.asked)]
            runs.append(Run(contender, await _ended(plan, contender, keys, journal, progress)))
            every += keys
        journal.end(every)
    finally:
        journal.close()
        for engine in engines:
            await engine.close()
    return runs


def _plain(asked: Sequence[Asked]) -> Iterator[Any]:
    for one in asked:
        yield [one.question, {topic: list(paths) for topic, paths in one.gold.items()}]


async def _ended(
    plan: Plan, contender: Contender, keys: Sequence[str], journal: Journal, progress: Progress
) -> tuple[Trajectory, ...]:
    ended = {n: kept for n, key in enumerate(keys) if (kept := journal.get(key)) is not None}
    progress.kept += len(ended)
    progress.done += len(ended)

    async def work(item: tuple[int, Asked, Knowledge]) -> None:
        place, asked, knowledge = item
        proposer, players = contender.proposer, plan.players
        found = await answered(asked, knowledge, proposer, players, plan.options)
        ended[place] = found
        failed = found.stop_reason == FAILED
        if not failed:
            journal.add(keys[place], found)
        progress.done += 1
        progress.failed += failed

    if len(ended) < len(keys):
        await for_each(_owed(plan.source, frozenset(ended)), work, plan.at_once)
    return tuple(ended[n] for n in range(len(keys)))


def _owed(source: Source, ended: frozenset[int]) -> Iterator[tuple[int, Asked, Knowledge]]:
    pairs = zip(source.asked, source.knowledge(), strict=True)
    for place, (asked, knowledge) in enumerate(pairs):
        if place not in ended:
            yield place, asked, knowledge
