"""What the metric ``safe_stepwise`` computes: scores of answers given, or made by the loop.

``answers_given`` and ``answers_by_loop`` are behind the two configs of ``evaluate.load``
(``evaluators/safe_stepwise``), and can be called without it. Both may be called inside a running
event loop (a notebook): the work is done in another thread. Replies of engines are kept in the
response cache, so that what was interrupted goes on where it was.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

from tqdm import tqdm

from safe_stepwise import prompts
from safe_stepwise.engines.base import AS_PROMPTED
from safe_stepwise.engines.client import Client, render_requests
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import Method, option_values, options_type
from safe_stepwise.methods.limits import retries_of
from safe_stepwise.methods.loop import GENERATOR, VERIFIER
from safe_stepwise.methods.running import answering, run_questions, statistics
from safe_stepwise.methods.scene import JUDGE
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.metric import input as columns
from safe_stepwise.metric.judge import Case, Judge, Verdict, count
from safe_stepwise.open import opened
from safe_stepwise.records import FAILED, Passage, Question, Trajectory
from safe_stepwise.scoring import exact_match, f1, score
from safe_stepwise.store import progress
from safe_stepwise.store.event_loop import wait_for

BAR_AFTER_S = 1.0
"""Seconds of work before a bar shows."""
_UNJUDGED: Mapping[str, Any] = {"accuracy": None, "unscored": 0}
_TOLD = (
    *("calls_per_question", "steps_per_question", "error_types", "error_positions"),
    *("prompt_tokens", "cached_tokens"),
)
"""Of the loop's statistics."""


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
    """Scores of answers: ``exact_match``, ``f1``, ``accuracy`` (0 to 1), ``unscored`` (a count).

    ``references[i]`` are the accepted answers of ``predictions[i]`` (None: no answer was given).
    ``benchmark`` names the official scorer that counts. ``judge`` is the spec of an engine; it sees
    ``questions`` too, if they are given. ``accuracy`` is the share of correct answers among those
    with a verdict, None without a judge or verdict; ``unscored`` counts answers without one, 0
    without a judge. With a judge also ``judge_failed``: how many of those got no reply at all.

    ``judge_repeats`` above 1 adds ``judge_agreement`` (see `judge.Agreement`); ``skip_exact`` calls
    exact matches correct without asking; ``examples`` shows the judge some (SAFE v1, Figure 14);
    ``cache`` is the file of replies, if not the user's own; ``timeout`` is for one call to a
    server, in seconds. Where an engine without a model took part, ``simulated`` is True.

    Raises ``UserError``, of one line, for input that is none.

    >>> answers_given(["the Vel"], [["Vel", "River Vel"]], benchmark="musique")
    {'exact_match': 1.0, 'f1': 1.0, 'accuracy': None, 'unscored': 0}
    """
    given = columns.checked_predictions(predictions)
    accepted = columns.checked_references(references)
    asked = [""] * len(given) if questions is None else columns.checked_texts(questions, "questions")
    columns.same_length(predictions=given, references=accepted, questions=asked)
    if benchmark is None:
        raise UserError('name the benchmark whose scorer counts, as in benchmark="musique"')
    scores = score(given, accepted, benchmark)
    report = {"exact_match": scores.exact_match, "f1": scores.f1, **_UNJUDGED}
    if judge is None:
        return report
    cases = [Case(*case) for case in zip(given, accepted, asked, strict=True)]
    setting = _Setting(judge_repeats, skip_exact, True, examples, cache, timeout)

    async def judged() -> dict[str, Any]:
        async with setting.opened({"judge": judge}) as clients:
            verdicts = await _verdicts(setting.judge(clients), cases)
            return {**report, **_report(verdicts), **_notes(clients)}

    return wait_for(judged())


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

    ``generator``, ``verifier`` and ``judge`` are specs of engines; equal ones share one. Only those are asked whose
    role the method has; ``players`` names those of other roles. ``max_steps``, ``max_retries``, ``on_exhausted`` and
    ``feedback`` are those of `limits.Limits`, ``options`` its others, and those of other methods. ``examples`` go to
    the verifier, too, and with ``judge_without_question`` the judge goes by the answers alone. The other options are
    those of `answers_given`, ``benchmark`` being ``hotpotqa`` if not said.

    Beside what `answers_given` returns: ``calls_per_question`` of all roles, ``steps_per_question`` accepted,
    ``error_types`` and ``error_positions`` (tries by label, and by number of the step), ``prompt_tokens`` and
    ``cached_tokens`` by role, as the engines report them, replies from the cache included. ``failed`` counts questions
    that a failed request ended; having no answer, they score 0.

    Raises ``UserError``, of one line, for input that is none and where every question failed.
    """
    asked = columns.loop_questions(questions, passages, references, benchmark)
    known = {"generator": generator, "verifier": verifier, **(players or {})}
    chosen = _method(method, known)
    limits = {"max_steps": max_steps, "max_retries": max_retries, "on_exhausted": on_exhausted, "feedback": feedback}
    ours, specs = _options(chosen, limits, options or {}), _specs(asked, chosen, known, judge)
    setting = _Setting(judge_repeats, skip_exact, not judge_without_question, examples, cache, timeout)
    return wait_for(_answered(asked, chosen, ours, specs, setting))


@dataclass(frozen=True, slots=True)
class _Setting:
    """How the judge is asked, what engines are shown, and where replies are kept."""

    judge_repeats: int
    skip_exact: bool
    sees_question: bool
    examples: bool
    cache: str | Path | None
    timeout: float | None

    def opened(self, specs: Mapping[str, str]) -> AbstractAsyncContextManager[Mapping[str, Client]]:
        """Clients of engines by who they are."""
        shown = AS_PROMPTED.with_examples(prompts.examples((ROLE, JUDGE))) if self.examples else AS_PROMPTED
        return opened(specs, self.cache, self.timeout, shown)

    def judge(self, clients: Mapping[str, Client]) -> Judge:
        return Judge(clients["judge"], self.skip_exact, self.judge_repeats, self.sees_question)


async def _answered(
    questions: Sequence[Question], method: Method, options: Any, specs: Mapping[str, str], setting: _Setting
) -> dict[str, Any]:
    async with setting.opened(specs) as clients:
        trajectories = await _trajectories(clients, questions, method, options)
        report = _loop_report(questions, trajectories, options)
        if "judge" not in specs:
            return report | _notes(clients)
        answers = zip(questions, trajectories, strict=True)
        cases = [Case(trajectory.answer, question.accepted, question.question) for question, trajectory in answers]
        verdicts = await _verdicts(setting.judge(clients), cases)
        used = [reply.usage for verdict in verdicts for reply in verdict.replies]
        tokens = {
            "prompt_tokens": report["prompt_tokens"] | {"judge": sum(usage.prompt for usage in used)},
            "cached_tokens": report["cached_tokens"] | {"judge": sum(usage.cached for usage in used)},
        }
        return {**report, **_report(verdicts), **tokens, **_notes(clients)}


OPTIONS: Mapping[str, frozenset[str]] = {
    config: frozenset(
        name
        for name, parameter in inspect.signature(compute).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY or name == "questions"
    )
    for config, compute in (("default", answers_given), ("loop", answers_by_loop))
} | {"faithfulness": frozenset(("questions", "passages", "rule", "retrieval", "sigma"))}
"""What ``compute`` takes beside the columns, by config; ``faithfulness`` is the checker's, which
this room never hears of (`safe_stepwise.checking.faithfulness.judging`)."""


def checked_options(config: str, names: Iterable[str]) -> None:
    """Raise ``UserError`` for a config or an option that does not exist.

    >>> checked_options("default", ["benchmrk"])
    Traceback (most recent call last):
    safe_stepwise.errors.UserError: default has no option benchmrk; did you mean benchmark?
    """
    if config not in OPTIONS:
        *others, last = OPTIONS
        raise UserError(f"safe_stepwise has no config {config!r}: load {', '.join(others)} or {last}")
    for name in names:
        if name in OPTIONS[config]:
            continue
        near = difflib.get_close_matches(name, OPTIONS[config], n=1)
        other = next((one for one in OPTIONS if name in OPTIONS[one]), "")
        hint = f'{other} has: evaluate.load("safe_stepwise", "{other}")'
        if not other:
            hint = f"did you mean {near[0]}?" if near else ", ".join(sorted(OPTIONS[config]))
        raise UserError(f"{config} has no option {name}; {hint}")


def _method(name: str, players: Mapping[str, str | None]) -> Method:
    if name not in METHODS:
        raise UserError(f"unknown method {name!r}: give one of {', '.join(METHODS)}")
    lacking = [role for role in METHODS[name].roles if players.get(role) is None]
    if "generator" in lacking:
        raise UserError('name who answers, as in generator="openai:MODEL@http://HOST:8000/v1"')
    if "verifier" in lacking:
        raise UserError(f"the method {name} needs a verifier: name its engine, or choose self_verification")
    if lacking:
        raise UserError(
            f"the method {name} needs players: name the engine of {', '.join(lacking)}, as in "
            f'players={{"{lacking[0]}": "openai:MODEL@http://HOST:8000/v1"}}'
        )
    return METHODS[name]


def _options(method: Method, loops: Mapping[str, Any], others: Mapping[str, Any]) -> Any:
    for name in ("max_steps", "max_retries"):
        if not isinstance(loops[name], int):
            raise UserError(f"{name} is {loops[name]!r}: give a whole number")
    kind = options_type(method)
    has = {field.name for field in fields(kind)}
    if unknown := [name for name in others if name not in has]:
        raise UserError(f"the method {method.name} has no option {unknown[0]}")
    try:
        return kind(**{name: loops[name] for name in loops if name in has}, **others)
    except (ValueError, TypeError) as error:
        raise UserError(f"{error}") from None


def _specs(
    questions: Sequence[Question], method: Method, players: Mapping[str, str | None], judge: str | None
) -> dict[str, str]:
    named = {role: players[role] for role in method.roles}
    specs = {who: spec for who, spec in {**named, "judge": judge}.items() if spec is not None}
    annotated = any(question.is_annotated for question in questions)
    for who in method.roles:
        if not annotated and specs[who].partition(":")[0] == "symbolic":
            raise UserError(
                f"{who}: symbolic goes by annotations, which these questions lack; name a model, "
                "or give Question objects to safe_stepwise.metric.answers_by_loop"
            )
    return specs


async def _trajectories(
    clients: Mapping[str, Client], questions: Sequence[Question], method: Method, options: Any
) -> list[Trajectory]:
    playing = {role: clients[role] for role in method.roles}
    with _bar(len(questions), "question") as bar:
        ended = await run_questions(
            questions, answering(method, playing, options), on_done=lambda *_: _tell(bar, list(playing.values()))
        )
    if all(trajectory.stop_reason == FAILED for trajectory in ended):
        first, *others = playing.values()
        who = f"{first.engine.name} or the {method.roles[-1]}" if others else first.engine.name
        raise UserError(
            f"all {len(ended)} questions failed: {who} left a request of each "
            "unanswered; see to it and compute again, what was answered is kept"
        )
    return ended


async def _verdicts(judge: Judge, cases: Sequence[Case]) -> tuple[Verdict, ...]:
    with _bar(len(cases), "verdict") as bar:
        found = await judge.judge_all(cases, on_done=lambda _: _tell(bar, [judge.client]))
    asked = [verdict for verdict in found if verdict.replies]
    if asked and all(reply.failed for verdict in asked for reply in verdict.replies):
        raise UserError(f"judge: {judge.client.engine.name}: {asked[-1].explanation}")
    return found


def _bar(total: int, unit: str) -> tqdm[NoReturn]:
    return progress.bar(total=total, unit=unit, desc="safe_stepwise", delay=BAR_AFTER_S)


def _tell(bar: tqdm[NoReturn], clients: Sequence[Client]) -> None:
    bar.set_postfix_str(render_requests(client.total() for client in clients), refresh=False)
    bar.update(1)


def _notes(clients: Mapping[str, Client]) -> dict[str, bool]:
    simulated = any(client.engine.simulated for client in clients.values())
    return {"simulated": True} if simulated else {}


def _report(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    judged = count(verdicts)
    agreement = {"judge_agreement": asdict(judged.agreement)} if judged.agreement else {}
    return {"accuracy": judged.accuracy, "unscored": judged.unscored, "judge_failed": judged.failed, **agreement}


def _loop_report(questions: Sequence[Question], trajectories: Sequence[Trajectory], options: Any) -> dict[str, Any]:
    pairs = zip(questions, trajectories, strict=True)
    answers = [(trajectory.answer, question.accepted, question.benchmark) for question, trajectory in pairs]
    found = statistics(trajectories, retries_of(option_values(options)), (GENERATOR, VERIFIER))
    return {
        "exact_match": math.fsum(exact_match(*answer) for answer in answers) / len(answers),
        "f1": math.fsum(f1(*answer) for answer in answers) / len(answers),
        **_UNJUDGED,
        **{name: getattr(found, name) for name in _TOLD},
        "failed": found.stop_reasons.get(FAILED, 0),
    }
