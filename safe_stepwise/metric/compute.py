"""Computes the metric ``safe_stepwise``: scores of given answers, or of answers that the verified loop makes.

``evaluate.load`` calls ``answers_given`` for the config ``default`` and ``answers_by_loop`` for ``loop``
(``evaluators/safe_stepwise``). They can also be called directly, even inside a running event loop (a notebook): they
work in another thread. The response cache stores the engines' replies, so that an interrupted run resumes.
"""

import inspect
import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import AS_PROMPTED
from safe_stepwise.engines.client import Client, render_requests
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS, loop, running, scene
from safe_stepwise.methods.base import Method, option_values, options_type
from safe_stepwise.methods.limits import retries_of
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.metric import input as columns
from safe_stepwise.metric.judge import Judge, JudgeCase, Verdict, report_verdicts
from safe_stepwise.open import open_clients
from safe_stepwise.records import FAILED, Passage, Question, Trajectory
from safe_stepwise.scoring import exact_match, f1, score
from safe_stepwise.store import boundary, event_loop, progress

_UNJUDGED: Mapping[str, Any] = {"accuracy": None, "unscored": 0}
_REPORTED = (
    *("calls_per_question", "steps_per_question", "error_types", "error_positions"),
    *("prompt_tokens", "cached_tokens"),
)
"""The statistics of the loop that the metric reports."""


def answers_given(
    predictions: Sequence[str | None],
    references: Sequence[Sequence[str]],
    *,
    benchmark: str | None = None,
    judge: str | None = None,
    questions: Sequence[str] | None = None,
    judge_repeats: int = 1,
    skip_exact: bool = False,
    examples: bool = False,
    cache: str | Path | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Score answers: ``exact_match``, ``f1``, ``accuracy`` (0 to 1), ``unscored`` (a count).

    ``references[i]`` are the accepted answers of ``predictions[i]`` (None: no answer was given).
    ``benchmark`` names the official scorer that counts. ``judge`` is the spec of an engine; it sees
    ``questions`` too, if they are given. ``accuracy`` is the share of correct answers among those
    with a verdict, None without a judge or verdict; ``unscored`` counts answers without one, 0
    without a judge. With a judge also ``judge_failed``: how many of those got no reply at all.

    ``judge_repeats`` above 1 adds ``judge_agreement`` (see `judge.measure_agreement`); ``skip_exact`` calls
    exact matches correct without a request; ``examples`` puts worked examples into the judge's prompt (SAFE v1,
    Figure 14); ``cache`` is the file of replies, by default the user's own; ``timeout`` is for one call to a
    server, in seconds. Where an engine without a model took part, ``simulated`` is True.

    Raises ``UserError``, of one line, for input that is not valid.

    >>> answers_given(["the Vel"], [["Vel", "River Vel"]], benchmark="musique")
    {'exact_match': 1.0, 'f1': 1.0, 'accuracy': None, 'unscored': 0}
    """
    answers = columns.read_column(predictions, "predictions")
    accepted = [tuple(names) for names in columns.read_column(references, "references")]
    question_texts = [""] * len(answers) if questions is None else columns.read_column(questions, "questions")
    columns.check_lengths(predictions=answers, references=accepted, questions=question_texts)
    if benchmark is None:
        raise UserError('name the benchmark whose scorer counts, as in benchmark="musique"')
    scores = score(answers, accepted, benchmark)
    report = {"exact_match": scores.exact_match, "f1": scores.f1, **_UNJUDGED}
    if judge is None:
        return report
    cases = [JudgeCase(*case) for case in zip(answers, accepted, question_texts, strict=True)]
    setting = _LoopSettings(judge_repeats, skip_exact, True, examples, cache, timeout)

    async def judged() -> dict[str, Any]:
        async with setting.opened({"judge": judge}) as clients:
            verdicts = await _verdicts(setting.judge(clients), cases)
            return {**report, **report_verdicts(verdicts), **_notes(clients)}

    return event_loop.wait_for(judged())


def answers_by_loop(
    questions: Sequence[str | Question],
    passages: Sequence[Sequence[str | Mapping[str, Any] | Passage]] | None = None,
    references: Sequence[Sequence[str]] | None = None,
    *,
    generator: str | None = None,
    verifier: str | None = None,
    judge: str | None = None,
    method: str = "safe",
    max_steps: int = 10,
    max_retries: int = 3,
    benchmark: str | None = None,
    on_exhausted: str = "accept",
    feedback: str = "full",
    players: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    judge_repeats: int = 1,
    skip_exact: bool = False,
    judge_without_question: bool = False,
    examples: bool = False,
    cache: str | Path | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Let a method answer questions from their passages, and score its answers.

    A passage is a string, or a mapping with ``text`` or ``sentences`` and, if there is one, a ``title``. ``questions``
    may also be `Question` objects, which bring their passages, answers and benchmark along (the ``symbolic`` engine
    needs their annotations).

    ``generator``, ``verifier`` and ``judge`` are specs of engines; equal specs share an engine. Only the roles of the
    method are used; ``players`` are the specs of further roles. ``max_steps``, ``max_retries``, ``on_exhausted`` and
    ``feedback`` are fields of `limits.Limits`, ``options`` its other fields, or those of other methods. ``examples``
    go to the verifier, too; with ``judge_without_question`` the judge sees the answers alone. The other options are
    those of `answers_given`; ``benchmark`` is ``hotpotqa`` by default.

    Beside what `answers_given` returns: ``calls_per_question`` of all roles, ``steps_per_question`` accepted,
    ``error_types`` and ``error_positions`` (tries by label, and by number of the step), ``prompt_tokens`` and
    ``cached_tokens`` by role, as the engines report them, replies from the cache included. ``failed`` counts questions
    that a failed request ended; having no answer, they score 0.

    Raises ``UserError``, of one line, for input that is not valid and where every question failed.
    """
    rows = columns.loop_questions(questions, passages, references, benchmark)
    specs_by_role = {"generator": generator, "verifier": verifier, **(players or {})}
    chosen_method = _method(method, specs_by_role)
    limits = {"max_steps": max_steps, "max_retries": max_retries, "on_exhausted": on_exhausted, "feedback": feedback}
    method_options = _options(chosen_method, limits, options or {})
    chosen_specs = {**{role: specs_by_role[role] for role in chosen_method.roles}, "judge": judge}
    specs = {role: spec for role, spec in chosen_specs.items() if spec is not None}
    _refuse_symbolic(rows, chosen_method, specs)
    setting = _LoopSettings(judge_repeats, skip_exact, not judge_without_question, examples, cache, timeout)
    return event_loop.wait_for(_compute_loop(rows, chosen_method, method_options, specs, setting))


@dataclass(frozen=True, slots=True)
class _LoopSettings:
    """The judge's settings, whether prompts have examples, and the cache of replies."""

    judge_repeats: int
    skip_exact: bool
    sees_question: bool
    examples: bool
    cache: str | Path | None
    timeout: float | None

    def opened(self, specs: Mapping[str, str]) -> AbstractAsyncContextManager[Mapping[str, Client]]:
        allowance = AS_PROMPTED.with_examples(prompts.examples((ROLE, scene.JUDGE))) if self.examples else AS_PROMPTED
        return open_clients(specs, self.cache, self.timeout, allowance)

    def judge(self, clients: Mapping[str, Client]) -> Judge:
        return Judge(clients["judge"], self.skip_exact, self.judge_repeats, self.sees_question)


async def _compute_loop(
    questions: Sequence[Question], method: Method, options: Any, specs: Mapping[str, str], setting: _LoopSettings
) -> dict[str, Any]:
    async with setting.opened(specs) as clients:
        trajectories = await _trajectories(clients, questions, method, options)
        report = _loop_report(questions, trajectories, options)
        if "judge" not in specs:
            return report | _notes(clients)
        answers = zip(questions, trajectories, strict=True)
        cases = [JudgeCase(trajectory.answer, q.accepted, q.question) for q, trajectory in answers]
        verdicts = await _verdicts(setting.judge(clients), cases)
        usages = [reply.usage for verdict in verdicts for reply in verdict.replies]
        tokens = {
            "prompt_tokens": report["prompt_tokens"] | {"judge": sum(usage.prompt for usage in usages)},
            "cached_tokens": report["cached_tokens"] | {"judge": sum(usage.cached for usage in usages)},
        }
        return {**report, **report_verdicts(verdicts), **tokens, **_notes(clients)}


OPTIONS: Mapping[str, frozenset[str]] = {
    config: frozenset(
        name
        for name, parameter in inspect.signature(compute).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY or name == "questions"
    )
    for config, compute in (("default", answers_given), ("loop", answers_by_loop))
} | {"faithfulness": frozenset(("questions", "passages", "rule", "retrieval", "sigma"))}
"""The options of ``compute`` beside the columns, by config. Those of ``faithfulness`` are listed, as this module does
not import its functions (`safe_stepwise.checking.faithfulness.judging`)."""


def checked_options(config: str, names: Iterable[str]) -> None:
    """Raise ``UserError`` for a config or an option that does not exist."""
    if config not in OPTIONS:
        *configs, last = OPTIONS
        raise UserError(f"safe_stepwise has no config {config!r}: load {', '.join(configs)} or {last}")
    if unknown := [name for name in names if name not in OPTIONS[config]]:
        hint = boundary.key_hint(unknown[0], sorted(OPTIONS[config]))
        raise UserError(f"the config {config} has no option {unknown[0]}; {hint}")


def _method(name: str, players: Mapping[str, str | None]) -> Method:
    if name not in METHODS:
        raise UserError(f"unknown method {name!r}: give one of {', '.join(METHODS)}")
    if lacking := [role for role in METHODS[name].roles if players.get(role) is None]:
        engine = "openai:MODEL@http://HOST:8000/v1"
        raise UserError(f"the method {name} needs a {' and a '.join(lacking)}: name its engine, as in {engine!r}")
    return METHODS[name]


def _refuse_symbolic(questions: Sequence[Question], method: Method, specs: Mapping[str, str]) -> None:
    if any(question.is_annotated for question in questions):
        return
    for role in method.roles:
        if specs[role].partition(":")[0] == "symbolic":
            raise UserError(
                f"{role}: symbolic goes by annotations, which these questions lack; name a model, "
                "or give Question objects to safe_stepwise.metric.answers_by_loop"
            )


def _options(method: Method, limits: Mapping[str, Any], extra: Mapping[str, Any]) -> Any:
    kind = options_type(method)
    shared = {field.name: limits[field.name] for field in fields(kind) if field.name in limits}
    try:
        return boundary.read(kind, {**shared, **extra}, method.name, exact=True)
    except ValueError as error:
        raise UserError(str(error)) from None


async def _trajectories(
    clients: Mapping[str, Client], questions: Sequence[Question], method: Method, options: Any
) -> list[Trajectory]:
    playing = {role: clients[role] for role in method.roles}
    completed: list[int] = []
    with _bar("question", questions, completed, playing.values()):
        answerer = running.make_answerer(method, playing, options)
        trajectories = await running.run_questions(
            questions, answerer, on_done=lambda index, _: completed.append(index)
        )
    if all(trajectory.stop_reason == FAILED for trajectory in trajectories):
        engine = playing[method.roles[0]].engine.name
        source = f"{engine} or the {method.roles[-1]}" if len(playing) > 1 else engine
        raise UserError(
            f"all {len(trajectories)} questions failed: {source} left a request of each "
            "unanswered; see to it and compute again, what was answered is kept"
        )
    return trajectories


async def _verdicts(judge: Judge, cases: Sequence[JudgeCase]) -> tuple[Verdict, ...]:
    completed: list[Verdict] = []
    with _bar("verdict", cases, completed, [judge.client]):
        verdicts = await judge.judge_all(cases, on_done=completed.append)
    judged = [verdict for verdict in verdicts if verdict.replies]
    if judged and all(reply.failed for verdict in judged for reply in verdict.replies):
        raise UserError(f"judge: {judge.client.engine.name}: {judged[-1].explanation}")
    return verdicts


def _bar(unit: str, items: Sized, done: Sized, clients: Collection[Client]) -> AbstractContextManager[None]:
    def standing() -> str:
        return render_requests(client.total() for client in clients)

    return progress.show_progress("safe_stepwise", unit, len(items), lambda: len(done), standing)


def _notes(clients: Mapping[str, Client]) -> dict[str, bool]:
    return {"simulated": True} if any(client.engine.simulated for client in clients.values()) else {}


def _loop_report(questions: Sequence[Question], trajectories: Sequence[Trajectory], options: Any) -> dict[str, Any]:
    pairs = zip(questions, trajectories, strict=True)
    answers = [(trajectory.answer, question.accepted, question.benchmark) for question, trajectory in pairs]
    stats = running.statistics(trajectories, retries_of(option_values(options)), (loop.GENERATOR, loop.VERIFIER))
    return {
        "exact_match": math.fsum(exact_match(*answer) for answer in answers) / len(answers),
        "f1": math.fsum(f1(*answer) for answer in answers) / len(answers),
        **_UNJUDGED,
        **{name: getattr(stats, name) for name in _REPORTED},
        "failed": stats.stop_reasons.get(FAILED, 0),
    }
