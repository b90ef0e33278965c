"""Generators and methods over questions: trajectories, scores, verdicts, written down.

One setting (a generator, a method, its limits) after the other runs over all questions, so that
what a setting costs is its own. ``OUTPUT/.trajectories.jsonl`` keeps each trajectory as soon as it
ends, by everything that can change it: a run that is killed resumes from there, and within a
question from the clients' response cache. A trajectory that failed is not kept: the same command
asks for it again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import safe_stepwise
from evaluators.outcomes import QUESTIONS, RESULTS, TRAJECTORIES, Asked, Outcome, trajectory_of
from safe_stepwise import generator as generating
from safe_stepwise import judge as judging
from safe_stepwise import verifier as verifying
from safe_stepwise.corpus import Corpus
from safe_stepwise.engines.client import Client
from safe_stepwise.files import write_atomically, write_lines
from safe_stepwise.judge import Case, Judge, Verdict
from safe_stepwise.loop import Limits, Method
from safe_stepwise.records import Question, Trajectory, canonical_json, identity
from safe_stepwise.running import AT_ONCE, run_questions, statistics
from safe_stepwise.scoring import exact_match, f1

JOURNAL = ".trajectories.jsonl"
ALL = "all"


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
    """What to run. ``code_sha256`` stands for the code: other code, other trajectories."""

    questions: tuple[Question, ...]
    settings: tuple[Setting, ...]
    output: Path
    verifier: Client | None = None
    judge: Judge | None = None
    corpus: Corpus | None = None
    at_once: int = AT_ONCE
    code_sha256: str = ""
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


async def evaluate(plan: Evaluation, progress: Progress) -> list[Outcome]:
    """The outcomes of all settings, in their order, each over the questions in their order.

    Raises ``UserError`` for what the user can mend.
    """
    progress.total = len(plan.questions) * len(plan.settings)
    journal = Journal(plan.output / JOURNAL)
    engines = {id(client.engine): client.engine for client in plan.clients}.values()
    asked = tuple(identity(question) for question in plan.questions)
    outcomes: list[Outcome] = []
    try:
        for engine in engines:
            await engine.check()
        for setting in plan.settings:
            ended = await _trajectories(plan, setting, asked, journal, progress)
            verdicts = await _verdicts(plan, ended)
            outcomes += _outcomes(plan, setting, ended, verdicts)
    finally:
        journal.close()
        for engine in engines:
            await engine.close()
    return outcomes


class Journal:
    """Trajectories by key, one line each, on disk before the next one ends.

    A last line that a kill tore is cut off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, Trajectory] = {}
        sound = 0
        if path.exists():
            for line in path.read_bytes().splitlines(keepends=True):
                try:
                    entry = json.loads(line) if line.endswith(b"\n") else None
                    self._known[entry["key"]] = trajectory_of(entry["trajectory"])
                except (ValueError, TypeError, KeyError):
                    break  # torn, or damaged: from here on all is owed again
                sound += len(line)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        os.ftruncate(self._file, sound)
        os.lseek(self._file, sound, os.SEEK_SET)

    def get(self, key: str) -> Trajectory | None:
        """The trajectory under a key, if it ended."""
        return self._known.get(key)

    def add(self, key: str, trajectory: Trajectory) -> None:
        """Keep a trajectory."""
        self._known[key] = trajectory
        line = canonical_json({"key": key, "trajectory": asdict(trajectory)}) + "\n"
        left = memoryview(line.encode("utf-8", "backslashreplace"))
        while left:
            left = left[os.write(self._file, left) :]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


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
            plan.code_sha256,
        ]
    )


async def _verdicts(plan: Evaluation, ended: Sequence[Trajectory]) -> Sequence[Verdict | None]:
    """The judge's verdict on each answer, benchmark by benchmark."""
    found: list[Verdict | None] = [None] * len(ended)
    if plan.judge is None:
        return found
    for benchmark, places in _by_benchmark(plan.questions).items():
        judge = replace(plan.judge, benchmark=benchmark)
        cases = [
            Case(ended[n].answer, references(plan.questions[n]), plan.questions[n].question)
            for n in places
        ]
        for n, verdict in zip(places, await judge.judge_all(cases), strict=True):
            found[n] = verdict
    return found


def _outcomes(
    plan: Evaluation,
    setting: Setting,
    ended: Sequence[Trajectory],
    verdicts: Sequence[Verdict | None],
) -> list[Outcome]:
    verifier = setting.verifier_of(plan.verifier)
    judge = plan.judge.client if plan.judge else None
    took_part = [client for client in (setting.generator, verifier, judge) if client is not None]
    return [
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
        for question, trajectory, verdict in zip(plan.questions, ended, verdicts, strict=True)
    ]


def references(question: Question) -> tuple[str, ...]:
    """The accepted answers."""
    return (question.answer, *question.aliases)


def _by_benchmark(questions: Sequence[Question]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for n, question in enumerate(questions):
        places.setdefault(question.benchmark, []).append(n)
    return places


# ----------------------------------------------------------------------------------------- results


def write(plan: Evaluation, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Write trajectories, questions and, last of all, results; returns the results.

    While they change there is no ``results.json``.
    """
    found = results(plan, outcomes)
    (plan.output / RESULTS).unlink(missing_ok=True)
    write_lines(plan.output / TRAJECTORIES, (outcome.to_json() for outcome in outcomes))
    write_lines(plan.output / QUESTIONS, (_asked(q).to_json() for q in plan.questions))
    return found


def finish(plan: Evaluation, found: Mapping[str, Any]) -> None:
    """Write ``results.json``: all else is written."""
    text = json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    write_atomically(plan.output / RESULTS, text.encode())


def results(plan: Evaluation, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The record of a run: its settings, and a setting's scores by benchmark and over all."""
    size = len(plan.questions)
    runs = [
        _run(plan, setting, outcomes[n * size : (n + 1) * size])
        for n, setting in enumerate(plan.settings)
    ]
    return {
        "version": safe_stepwise.__version__,
        "simulated": any(outcome.simulated for outcome in outcomes),
        "settings": settings_of(plan),
        "runs": runs,
    }


def settings_of(plan: Evaluation) -> dict[str, Any]:
    """All that decides on a run's results, addresses left out."""
    limits = plan.settings[0].limits
    judge = plan.judge
    return {
        **plan.notes,
        "questions": {name: len(p) for name, p in _by_benchmark(plan.questions).items()},
        "questions_sha256": identity([identity(question) for question in plan.questions]),
        "generators": list(dict.fromkeys(s.generator.engine.name for s in plan.settings)),
        "methods": list(dict.fromkeys(s.method for s in plan.settings)),
        "max_steps": sorted({s.limits.max_steps for s in plan.settings}),
        "max_retries": sorted({s.limits.max_retries for s in plan.settings}),
        "on_exhausted": limits.on_exhausted,
        "feedback": limits.feedback,
        "verifier": plan.verifier.engine.name if plan.verifier else None,
        "judge": judge.client.engine.name if judge else None,
        "judge_repeats": judge.repeats if judge else None,
        "judge_skips_exact": judge.skip_exact if judge else None,
        "corpus": {"name": plan.corpus.name, "sha256": plan.corpus.sha256} if plan.corpus else None,
        "prompts_sha256": {
            "generator": generating.prompt_digest(),
            "verifier": verifying.prompt_digest(plan.corpus is not None),
            "judge": judging.prompt_digest(),
        },
        "code_sha256": plan.code_sha256,
    }


def _run(plan: Evaluation, setting: Setting, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    places = _by_benchmark(plan.questions)
    return {
        "generator": setting.generator.engine.name,
        "verifier": outcomes[0].verifier,
        "method": setting.method,
        "max_steps": setting.limits.max_steps,
        "max_retries": setting.limits.max_retries,
        "simulated": any(outcome.simulated for outcome in outcomes),
        "benchmarks": {
            name: scores([outcomes[n] for n in numbers], setting.limits)
            for name, numbers in places.items()
        },
        ALL: scores(outcomes, setting.limits),
    }


def scores(outcomes: Sequence[Outcome], limits: Limits) -> dict[str, Any]:
    """Means over outcomes of one setting, and what its loop did.

    A question that ``failed`` counts as answered with nothing; one whose verdict is ``unscored`` is
    left out of ``accuracy``, which is None without any verdict.
    """
    size = len(outcomes)
    right = sum(outcome.verdict == "correct" for outcome in outcomes)
    judged = right + sum(outcome.verdict == "incorrect" for outcome in outcomes)
    return {
        "exact_match": sum(outcome.exact_match for outcome in outcomes) / size,
        "f1": sum(outcome.f1 for outcome in outcomes) / size,
        "accuracy": right / judged if judged else None,
        "unscored": sum(outcome.verdict == "unscored" for outcome in outcomes),
        "failed": sum(outcome.trajectory.stop_reason == "failed" for outcome in outcomes),
        **asdict(statistics([outcome.trajectory for outcome in outcomes], limits)),
    }


def _asked(question: Question) -> Asked:
    return Asked(
        question.benchmark,
        question.id,
        question.question,
        references(question),
        question.passages,
    )
