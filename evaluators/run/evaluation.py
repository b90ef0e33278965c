"""Generators and methods over questions: trajectories, scores, verdicts, written down.

One setting (a generator, a method, its limits) after the other runs over all questions, so that
what a setting costs is its own. ``OUTPUT/.trajectories.jsonl`` keeps each trajectory as soon as it
ends, by everything that can change it: a run that is killed resumes from there, and within a
question from the clients' response cache. A trajectory that failed is not kept: the same command
asks for it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from evaluators.run.journal import Journal
from evaluators.run.outcomes import Outcome
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import generator as generating
from safe_stepwise.methods import verifier as verifying
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.methods.loop import Limits, Method
from safe_stepwise.methods.running import AT_ONCE, run_questions
from safe_stepwise.metric.judge import Case, Judge, Verdict
from safe_stepwise.records import Question, Trajectory, identity
from safe_stepwise.scoring import exact_match, f1
from safe_stepwise.store.code import code_digest, modules_of

JOURNAL = ".trajectories.jsonl"


@dataclass(frozen=True, slots=True)
class Setting:
    """What runs over all questions."""

    generator: Client
    method: Method
    limits: Limits

    def verifier_of(self, other: Client | None) -> Client | None:
        """Who verifies: nobody, the generator itself, or ``other``."""
        return {"no_verification": None, "self_verification": self.generator, "safe": other}[
            self.method
        ]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What to run."""

    questions: tuple[Question, ...]
    settings: tuple[Setting, ...]
    output: Path
    verifier: Client | None = None
    judge: Judge | None = None
    corpus: Corpus | None = None
    at_once: int = AT_ONCE
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Where the questions come from, for the record."""

    @property
    def clients(self) -> list[Client]:
        """All that may be asked, each once."""
        judge = self.judge.client if self.judge else None
        named = [*(s.generator for s in self.settings), self.verifier, judge]
        return list({id(client): client for client in named if client is not None}.values())


@dataclass(slots=True)
class Progress:
    """How a run stands, in trajectories."""

    total: int = 0
    done: int = 0
    """All that have ended, kept and failed ones included."""
    kept: int = 0
    """By an earlier run."""
    failed: int = 0

    def standing(self, clients: Sequence[Client]) -> str:
        """In words, with the calls and tokens of this run."""
        accounts = [client.total() for client in clients]
        prompt, cached = sum(a.prompt for a in accounts), sum(a.cached for a in accounts)
        share = f" ({cached / prompt:.0%} cached)" if prompt else ""
        return (
            f"done {self.done - self.kept - self.failed} cached {self.kept} failed {self.failed} "
            f"owed {self.total - self.done}; requests: done {sum(a.answered for a in accounts)} "
            f"cached {sum(a.hits for a in accounts)} failed {sum(a.failed for a in accounts)} "
            f"owed {sum(a.owed for a in accounts)}; prompt tokens {prompt:,}{share}"
        )


@dataclass(frozen=True, slots=True)
class Run:
    """What one setting came to; outcomes are in the order of the questions."""

    setting: Setting
    outcomes: tuple[Outcome, ...]
    verdicts: tuple[Verdict, ...]
    """None of them without a judge."""


async def evaluate(plan: Evaluation, progress: Progress) -> list[Run]:
    """A run for each setting, in their order.

    Raises ``UserError`` for what the user can mend.
    """
    progress.total = len(plan.questions) * len(plan.settings)
    journal = Journal(plan.output / JOURNAL)
    engines = {id(client.engine): client.engine for client in plan.clients}.values()
    asked = tuple(identity(question) for question in plan.questions)
    runs: list[Run] = []
    try:
        for engine in engines:
            await engine.check()
        for setting in plan.settings:
            ended = await _trajectories(plan, setting, asked, journal, progress)
            verdicts = await _verdicts(plan, ended)
            runs.append(Run(setting, _outcomes(plan, setting, ended, verdicts), verdicts))
    finally:
        journal.close()
        for engine in engines:
            await engine.close()
    return runs


async def _trajectories(
    plan: Evaluation,
    setting: Setting,
    asked: Sequence[str],
    journal: Journal,
    progress: Progress,
) -> list[Trajectory]:
    """One setting's trajectories: those in the journal, and the others made now."""
    common = _key_of(plan, setting)
    keys = [identity([common, question]) for question in asked]
    ended = {n: kept for n, key in enumerate(keys) if (kept := journal.get(key)) is not None}
    progress.kept += len(ended)
    progress.done += len(ended)
    owed = [n for n in range(len(keys)) if n not in ended]

    def on_done(place: int, trajectory: Trajectory) -> None:
        ended[owed[place]] = trajectory
        failed = trajectory.stop_reason == "failed"
        if not failed:
            journal.add(keys[owed[place]], trajectory)
        progress.done += 1
        progress.failed += failed

    await run_questions(
        [plan.questions[n] for n in owed],
        setting.generator,
        setting.verifier_of(plan.verifier),
        setting.limits,
        search=plan.corpus.search if plan.corpus else None,
        on_done=on_done,
        at_once=plan.at_once,
    )
    return [ended[n] for n in range(len(keys))]


def _key_of(plan: Evaluation, setting: Setting) -> str:
    """Of all but the question that can change a trajectory."""
    verifier = setting.verifier_of(plan.verifier)
    incomplete = plan.corpus is not None
    return identity(
        [
            dict(setting.generator.engine.identity),
            dict(verifier.engine.identity) if verifier else None,
            setting.method,
            asdict(setting.limits),
            generating.prompt_digest(),
            verifying.prompt_digest(incomplete) if verifier else None,
            plan.corpus.sha256 if plan.corpus and verifier else None,
            code_of([setting.generator, *([verifier] if verifier else [])]),
        ]
    )


def code_of(clients: Iterable[Client]) -> str:
    """Digest of the code that makes trajectories with these clients' engines."""
    engines = modules_of(client.engine for client in clients)
    return code_digest("safe_stepwise.methods.running", *engines)


async def _verdicts(plan: Evaluation, ended: Sequence[Trajectory]) -> tuple[Verdict, ...]:
    """The judge's verdict on each answer, benchmark by benchmark; none without a judge."""
    if plan.judge is None:
        return ()
    found: dict[int, Verdict] = {}
    for benchmark, places in by_benchmark(plan.questions).items():
        judge = replace(plan.judge, benchmark=benchmark)
        cases = [
            Case(ended[n].answer, references(plan.questions[n]), plan.questions[n].question)
            for n in places
        ]
        found.update(zip(places, await judge.judge_all(cases), strict=True))
    return tuple(found[n] for n in range(len(ended)))


def _outcomes(
    plan: Evaluation,
    setting: Setting,
    ended: Sequence[Trajectory],
    verdicts: Sequence[Verdict],
) -> tuple[Outcome, ...]:
    verifier = setting.verifier_of(plan.verifier)
    judge = plan.judge.client if plan.judge else None
    took_part = [client for client in (setting.generator, verifier, judge) if client is not None]
    return tuple(
        Outcome(
            benchmark=question.benchmark,
            generator=setting.generator.engine.name,
            verifier=verifier.engine.name if verifier else "",
            method=setting.method,
            max_steps=setting.limits.max_steps,
            max_retries=setting.limits.max_retries,
            question_id=question.id,
            exact_match=exact_match(trajectory.answer, references(question), question.benchmark),
            f1=f1(trajectory.answer, references(question), question.benchmark),
            verdict=verdict.outcome if verdict else None,
            trajectory=trajectory,
            simulated=any(client.engine.simulated for client in took_part),
            judge=verdict.explanation if verdict else "",
        )
        for question, trajectory, verdict in zip_longest(plan.questions, ended, verdicts)
    )


def references(question: Question) -> tuple[str, ...]:
    """The accepted answers."""
    return (question.answer, *question.aliases)


def by_benchmark(questions: Sequence[Question]) -> dict[str, list[int]]:
    """The places of each benchmark's questions."""
    places: dict[str, list[int]] = {}
    for n, question in enumerate(questions):
        places.setdefault(question.benchmark, []).append(n)
    return places
