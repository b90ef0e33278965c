"""Run methods with their players over questions, score and judge the answers, and write the record.

The record has the settings, each setting's scores and the statistics of its loop.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import safe_stepwise
from evaluators.comparison.scores import AVERAGE
from evaluators.comparison.systems import values_by_name
from evaluators.derivations import Derivation
from evaluators.outcomes import CORPUS, DROP_GOLD, METRICS, PASSAGES, Outcome, QuestionRecord, conditions_of, grouped
from evaluators.prompting.measures import measure_trajectory, score_outcomes
from evaluators.run.runner import Task, run_tasks
from evaluators.uptake import MENDED, findings_at, list_retries
from safe_stepwise import prompts
from safe_stepwise.engines.base import AS_PROMPTED, Allowance
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import base, running
from safe_stepwise.methods.best_of import BestOf
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.methods.searching import add_retrieved
from safe_stepwise.metric import judge as judging
from safe_stepwise.players.steps import label_last
from safe_stepwise.records import Question, Trajectory, all_attempts, identity
from safe_stepwise.scoring import exact_match, f1
from safe_stepwise.store import code, files
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES

ALL = "all"
"""Scores over all questions; `AVERAGE` is the mean of the benchmarks (SAFE v1, Table 3)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A method with its players and options, which runs over all questions."""

    method: base.Method
    players: Mapping[str, Client]
    options: Any
    best_of: BestOf | None = None
    """Whether several trajectories of a question are sampled, and which one counts."""

    @property
    def names(self) -> dict[str, str]:
        return {role: client.engine.name for role, client in self.players.items()}

    @property
    def allowance(self) -> Allowance:
        """The allowance of the method's roles beside their prompts."""
        roles = prompts.roles_of(self.method.prompts)
        return next((client.allowance.restrict(roles) for client in self.players.values()), AS_PROMPTED)

    @property
    def option_record(self) -> dict[str, Any]:
        """The options and the allowance, as records have them."""
        choice = self.best_of.record if self.best_of else {}
        return {**base.option_values(self.options), **choice, **self.allowance.plain}

    def identity(self, corpus: Corpus | None) -> str:
        """Return the digest of all but the question that can change a trajectory, the code included."""
        engines = {role: dict(client.engine.identity) for role, client in self.players.items()}
        digests = base.prompts_digest(self.method, self.options), corpus.sha256 if corpus else None, code_of([self])
        return identity([self.method.name, engines, self.option_record, *digests])

    def make_answerer(self, corpus: Corpus | None) -> Callable[[Question], Awaitable[Trajectory]]:
        """Return the function from a question to its trajectory; methods that can search use the corpus."""
        options = self.options
        if corpus is not None and "search" in {field.name for field in fields(options)}:
            options = replace(options, search=corpus.search)
        method = self.best_of.applied_to(self.method) if self.best_of else self.method
        return running.make_answerer(method, self.players, options)


def code_of(settings: Iterable[Setting]) -> str:
    """Return the digest of the code that makes trajectories: running, methods, engines."""
    sources: list[object] = []
    for setting in settings:
        sources += [setting.method, *(client.engine for client in setting.players.values())]
        sources += [setting.best_of] if setting.best_of else []
    return code.code_digest("safe_stepwise.methods.running", *code.modules_of(sources))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The plan of an evaluation: questions, settings, judge, and the folders of the results."""

    questions: tuple[Question, ...]
    settings: tuple[Setting, ...]
    output: Path
    report: Path
    """The folder of tables and figures."""
    judge: judging.Judge | None = None
    corpus: Corpus | None = None
    at_once: int = running.AT_ONCE
    notes: Mapping[str, Any] = field(default_factory=dict)
    """The source of the questions, for the record."""
    scoring: Mapping[str, str] = field(default_factory=dict)
    """The benchmark whose rule scores the answers of another one, by that one's name."""
    derivations: Mapping[str, Sequence[Derivation]] = field(default_factory=dict)
    """People's derivations by question id (R4C), against which sub-answers are measured."""

    @property
    def evidence(self) -> dict[str, Any]:
        """The changes to the evidence, for the record."""
        corpus = self.corpus
        corpus_record = {"name": corpus.name, "sha256": corpus.sha256} if corpus else None
        passages = {PASSAGES: self.notes[PASSAGES]} if PASSAGES in self.notes else {}
        return {DROP_GOLD: self.notes.get(DROP_GOLD) or False, CORPUS: corpus_record, **passages}

    @property
    def judge_settings(self) -> dict[str, Any]:
        """The judge's settings that differ from our defaults, for the record."""
        if self.judge is None:
            return {}
        values = (not self.judge.sees_question, self.judge.client.allowance.plain.get("examples"))
        return {name: value for name, value in zip(judging.JUDGED, values, strict=True) if value}

    @property
    def conditions(self) -> dict[str, Any]:
        """The conditions that set its systems apart from those of other evaluations."""
        return conditions_of({**self.evidence, **self.judge_settings})

    @property
    def clients(self) -> list[Client]:
        clients = [client for setting in self.settings for client in setting.players.values()]
        clients += [self.judge.client] if self.judge else []
        return list({id(client): client for client in clients}.values())


@dataclass(frozen=True, slots=True)
class SystemRun:
    """One system's outcomes, and how far its judge agreed with itself (None: not known)."""

    outcomes: Sequence[Outcome]
    judge_agreement: Mapping[str, Any] | None = None


def evaluate(plan: Evaluation) -> list[SystemRun]:
    """Run each setting over all questions, in order; raises the errors of `run_tasks`."""
    questions = [identity(question) for question in plan.questions]
    tasks = [_task(plan, setting) for setting in plan.settings]
    return run_tasks(questions, tasks, plan.clients, plan.output, plan.at_once)


def _task(plan: Evaluation, setting: Setting) -> Task[Question, SystemRun]:
    async def finish(trajectories: Sequence[Trajectory]) -> SystemRun:
        answers = zip(trajectories, plan.questions, strict=True)
        cases = [judging.JudgeCase(trajectory.answer, q.accepted, q.question) for trajectory, q in answers]
        verdicts = await plan.judge.judge_all(cases) if plan.judge else ()
        outcomes = _outcomes(plan, setting, trajectories, verdicts)
        return SystemRun(outcomes, judging.measure_agreement(verdicts))

    return Task(setting.identity(plan.corpus), lambda: plan.questions, setting.make_answerer(plan.corpus), finish)


def _outcomes(
    plan: Evaluation, setting: Setting, trajectories: Sequence[Trajectory], verdicts: Sequence[judging.Verdict]
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
        outcome = Outcome(
            benchmark=question.benchmark,
            question_id=question.id,
            exact_match=exact_match(trajectory.answer, question.accepted),
            f1=f1(trajectory.answer, question.accepted, scoring),
            verdict=verdict.outcome if verdict else None,
            trajectory=trajectory,
            judge=verdict.explanation if verdict else "",
            measures={
                **measure_trajectory(question, trajectory, setting.options, scoring, derivations),
                **measure_mended(question, trajectory),
            },
            **common,
        )
        outcomes.append(outcome)
    return tuple(outcomes)


def measure_mended(question: Question, trajectory: Trajectory) -> dict[str, list[str]]:
    """Judge mended retries by the annotations (measure `MENDED`); return {} if the checker can tell of none."""
    labels = []
    for retry in list_retries(trajectory):
        if retry.uptake == "mended":
            is_machine = bool(retry.attempt.next_state)
            steps = findings_at(trajectory, retry.place) if is_machine else trajectory.steps[: retry.attempt.number]
            labels.append(label_last(add_retrieved(question, trajectory.attempts[: retry.place]), steps))
    return {MENDED: labels} if any(labels) else {}


def write_outcomes(
    folder: Path, settings: Mapping[str, Any], runs: Sequence[SystemRun], questions: Iterable[QuestionRecord]
) -> dict[str, Any]:
    """Write trajectories and questions; return ``results.json``, which the caller writes last: settings and scores."""
    (folder / RESULTS).unlink(missing_ok=True)
    outcomes = [outcome for run in runs for outcome in run.outcomes]
    files.write_lines(folder / TRAJECTORIES, map(Outcome.to_json, outcomes))
    files.write_lines(folder / QUESTIONS, map(QuestionRecord.to_json, questions))
    attempts = (attempt for outcome in outcomes for attempt in all_attempts(outcome.trajectory))
    roles = list(dict.fromkeys(role for attempt in attempts for role in attempt.usage))
    return {
        "version": safe_stepwise.__version__,
        "simulated": any(outcome.simulated for outcome in outcomes),
        "settings": settings,
        "runs": [{**summarize_system(run.outcomes, roles), "judge_agreement": run.judge_agreement} for run in runs],
    }


def settings_of(plan: Evaluation) -> dict[str, Any]:
    """Return all settings that decide a run's results, without addresses."""
    judge = plan.judge
    options = [setting.option_record for setting in plan.settings]
    digests = values_by_name((s.method.name, base.prompts_digest(s.method, s.options)) for s in plan.settings)
    return {
        **plan.notes,
        "questions": dict(Counter(question.benchmark for question in plan.questions)),
        "questions_sha256": identity([identity(question) for question in plan.questions]),
        "methods": list(dict.fromkeys(setting.method.name for setting in plan.settings)),
        "players": values_by_name(item for s in plan.settings for item in s.names.items()),
        "options": values_by_name(item for values in options for item in values.items()),
        "judge": judge.client.name if judge else None,
        **({f"judge_{name}": value for name, value in judge.client.allowance.plain.items()} if judge else {}),
        **plan.judge_settings,
        "judge_repeats": judge.repeats if judge else None,
        "judge_skips_exact": judge.skip_exact if judge else None,
        **plan.evidence,
        "prompts_sha256": {
            **{name: " ".join(values) for name, values in digests.items()},
            "judge": prompts.digest(judging.PROMPT),
        },
        "code_sha256": code_of(plan.settings),
    }


def summarize_system(outcomes: Sequence[Outcome], roles: Sequence[str]) -> dict[str, Any]:
    """Return one system's scores and statistics; the calls of all ``roles`` are counted, so that systems compare."""
    by_benchmark = grouped(outcomes, lambda outcome: outcome.benchmark)
    benchmarks = {name: score_outcomes(group, roles) for name, group in by_benchmark.items()}
    columns = {metric: [group[metric] for group in benchmarks.values()] for metric in METRICS}
    return {
        **outcomes[0].system,
        "simulated": any(outcome.simulated for outcome in outcomes),
        "benchmarks": benchmarks,
        AVERAGE: {name: None if None in values else sum(values) / len(values) for name, values in columns.items()},
        ALL: score_outcomes(outcomes, roles),
    }
