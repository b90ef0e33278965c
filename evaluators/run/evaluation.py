"""Methods and their players over questions: trajectories, scores, verdicts."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from evaluators.derivations import Derivation
from evaluators.outcomes import CORPUS, DROP_GOLD, PASSAGES, Outcome, conditions_of
from evaluators.prompting.measures import measures
from evaluators.run.runner import Task, Work, run_tasks
from safe_stepwise import prompts
from safe_stepwise.engines.base import AS_PROMPTED, Allowance
from safe_stepwise.engines.client import Client
from safe_stepwise.methods.base import Method, option_values, prompts_digest
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.methods.running import AT_ONCE, answering
from safe_stepwise.metric.judge import JUDGED, Case, Judge, Verdict
from safe_stepwise.records import Question, Trajectory, identity
from safe_stepwise.scoring import exact_match, f1
from safe_stepwise.store.code import code_digest, modules_of


@dataclass(frozen=True, slots=True)
class Setting:
    """A method with its players and options, which runs over all questions."""

    method: Method
    players: Mapping[str, Client]
    options: Any

    @property
    def names(self) -> dict[str, str]:
        """The players' names by role."""
        return {role: client.engine.name for role, client in self.players.items()}

    @property
    def allowance(self) -> Allowance:
        """The allowance of the method's roles beside their prompts."""
        roles = {prompts.load(name).role for name in self.method.prompts}
        clients = self.players.values()
        return next((client.allowance.restrict(roles) for client in clients), AS_PROMPTED)

    @property
    def option_record(self) -> dict[str, Any]:
        """The options and the allowance, as records have them."""
        return {**option_values(self.options), **self.allowance.plain}

    def identity(self, corpus: Corpus | None) -> str:
        """Return the digest of all but the question that can change a trajectory, the code included."""
        return identity(
            [
                self.method.name,
                {role: dict(client.engine.identity) for role, client in self.players.items()},
                self.option_record,
                prompts_digest(self.method, self.options),
                corpus.sha256 if corpus else None,
                code_of([self]),
            ]
        )

    def answering(self, corpus: Corpus | None) -> Callable[[Question], Awaitable[Trajectory]]:
        """Return the function from a question to its trajectory; methods that can search use the corpus."""
        options = self.options
        if corpus is not None and "search" in {field.name for field in fields(options)}:
            options = replace(options, search=corpus.search)
        return answering(self.method, self.players, options)


def code_of(settings: Iterable[Setting]) -> str:
    """Return the digest of the code that makes trajectories: running, methods, engines."""
    sources: list[object] = []
    for setting in settings:
        sources += [setting.method, *(client.engine for client in setting.players.values())]
    return code_digest("safe_stepwise.methods.running", *modules_of(sources))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation's plan: questions, settings, judge, and where results go."""

    questions: tuple[Question, ...]
    settings: tuple[Setting, ...]
    output: Path
    judge: Judge | None = None
    corpus: Corpus | None = None
    at_once: int = AT_ONCE
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Where the questions come from, for the record."""
    scoring: Mapping[str, str] = field(default_factory=dict)
    """The benchmark whose rule scores the answers of another one, by that one's name."""
    report: Path | None = None
    """The folder of tables and figures, if not within ``output``."""
    derivations: Mapping[str, Sequence[Derivation]] = field(default_factory=dict)
    """People's derivations by question id (R4C), against which sub-answers are measured."""

    @property
    def evidence(self) -> dict[str, Any]:
        """The changes to the evidence, for the record."""
        corpus = self.corpus
        corpus_record = {"name": corpus.name, "sha256": corpus.sha256} if corpus else None
        passages = {PASSAGES: self.notes[PASSAGES]} if PASSAGES in self.notes else {}
        return {DROP_GOLD: bool(self.notes.get(DROP_GOLD)), CORPUS: corpus_record, **passages}

    @property
    def judging(self) -> dict[str, Any]:
        """The judge's settings that differ from our defaults, for the record."""
        if self.judge is None:
            return {}
        examples = self.judge.client.allowance.plain.get("examples")
        values = (not self.judge.sees_question, examples)
        return {name: value for name, value in zip(JUDGED, values, strict=True) if value}

    @property
    def conditions(self) -> dict[str, Any]:
        """The conditions that set its systems apart from those of other evaluations."""
        return conditions_of({**self.evidence, **self.judging})

    @property
    def clients(self) -> list[Client]:
        """All clients of the plan, each once."""
        clients = [client for setting in self.settings for client in setting.players.values()]
        clients += [self.judge.client] if self.judge else []
        return list({id(client): client for client in clients}.values())


@dataclass(frozen=True, slots=True)
class SystemRun:
    """The results of one setting; outcomes are in the order of the questions."""

    setting: Setting
    outcomes: tuple[Outcome, ...]
    verdicts: tuple[Verdict, ...]
    """Empty without a judge."""


def evaluate(plan: Evaluation) -> list[SystemRun]:
    """Run each setting over all questions, in order; raises the errors of `run_tasks`."""
    return run_tasks(
        Work(
            *("evaluation", "trajectory", "trajectories"),
            questions=[identity(question) for question in plan.questions],
            tasks=[_task(plan, setting) for setting in plan.settings],
            clients=plan.clients,
            output=plan.output,
            at_once=plan.at_once,
        )
    )


def _task(plan: Evaluation, setting: Setting) -> Task[Question, SystemRun]:
    async def finish(trajectories: Sequence[Trajectory]) -> SystemRun:
        answers = zip(trajectories, plan.questions, strict=True)
        cases = [Case(trajectory.answer, q.accepted, q.question) for trajectory, q in answers]
        verdicts = await plan.judge.judge_all(cases) if plan.judge else ()
        return SystemRun(setting, _outcomes(plan, setting, trajectories, verdicts), verdicts)

    return Task(setting.identity(plan.corpus), lambda: plan.questions, setting.answering(plan.corpus), finish)


def _outcomes(
    plan: Evaluation, setting: Setting, trajectories: Sequence[Trajectory], verdicts: Sequence[Verdict]
) -> tuple[Outcome, ...]:
    clients = [*setting.players.values(), *([plan.judge.client] if plan.judge else [])]
    common: dict[str, Any] = {
        "method": setting.method.name,
        "players": setting.names,
        "options": setting.option_record,
        "simulated": any(client.engine.simulated for client in clients),
        "conditions": plan.conditions,
    }
    outcomes = []
    for question, trajectory, verdict in zip_longest(plan.questions, trajectories, verdicts):
        scoring = plan.scoring.get(question.benchmark, question.benchmark)
        derivations = plan.derivations.get(question.id, ())
        outcomes.append(
            Outcome(
                benchmark=question.benchmark,
                question_id=question.id,
                exact_match=exact_match(trajectory.answer, question.accepted),
                f1=f1(trajectory.answer, question.accepted, scoring),
                verdict=verdict.outcome if verdict else None,
                trajectory=trajectory,
                judge=verdict.explanation if verdict else "",
                measures=measures(question, trajectory, setting.options, scoring, derivations),
                **common,
            )
        )
    return tuple(outcomes)
