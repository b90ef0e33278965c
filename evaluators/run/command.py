"""An evaluation from its plan to what is said of it: run, written down, compared, summed up."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evaluators.comparison.scores import METRICS
from evaluators.comparison.systems import LETTERS, System, condition_text, differing, values_by_name
from evaluators.comparison.tables import AVERAGE
from evaluators.outcomes import Outcome, QuestionRecord
from evaluators.run.evaluation import Evaluation, SystemRun, evaluate
from evaluators.run.journal import Progress
from evaluators.run.results import ALL, settings_of, write
from evaluators.run.truth import write_truth
from safe_stepwise.errors import UserError
from safe_stepwise.records import FAILED, Question
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import COMPARISON, METHODS_PAGE, REPORT, RESULTS, TRAJECTORIES
from safe_stepwise.store.parsing import read_json
from safe_stepwise.store.progress import telling
from safe_stepwise.store.tables import table

Asked = tuple[Outcome, Question]
"""An outcome with its question, as far as that is kept."""


def carry_out(
    plan: Evaluation,
    compare: Callable[[Sequence[Outcome], Path], Mapping[str, Any]],
    measure: Callable[[Sequence[Asked], Path, Path], tuple[Mapping[str, Any], str]],
    warn: Callable[[str], None],
) -> str:
    """Run everything, write it down, and say what came of it.

    ``compare`` writes a report on the outcomes into a folder and returns its results; ``measure``
    says whether answers were earned, beside the evaluation and in its report, and returns what of
    that stands in ``results.json``, by its key, and in words. Raises ``UserError`` if not one
    question could be answered.
    """
    if earlier := _earlier(plan):
        warn(earlier)
    progress = Progress(len(plan.questions) * len(plan.settings))
    stands = partial(progress.standing, plan.clients)
    with telling("evaluation", "trajectory", progress.total, lambda: progress.done, stands):
        runs = asyncio.run(evaluate(plan, progress))
    outcomes = [outcome for run in runs for outcome in run.outcomes]
    _refuse_nothing(plan, outcomes)
    results = write(plan, runs)
    write_truth(plan, runs, plan.output)
    compared = compare(outcomes, report_folder(plan))
    earned, told = measure(_asked(plan, runs), plan.output, report_folder(plan))
    whole = {**results, "comparison": compared, **earned}
    text = json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False)
    write_atomically(plan.output / RESULTS, f"{text}\n".encode())
    return summary(plan, results, told)


def _asked(plan: Evaluation, runs: Sequence[SystemRun]) -> list[Asked]:
    """Each outcome with its question, as far as that is kept, so that it can be measured anew."""
    kept = [QuestionRecord.of(question, plan.conditions).asked for question in plan.questions]
    return [pair for run in runs for pair in zip(run.outcomes, kept, strict=True)]


def report_folder(plan: Evaluation) -> Path:
    """Where tables and figures go."""
    return plan.report or plan.output / REPORT


def _earlier(plan: Evaluation) -> str:
    """What to say of results that this run takes the place of; nothing if they are the same."""
    file = plan.output / RESULTS
    try:
        before = _flat(read_json(file)["settings"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    now = _flat(json.loads(json.dumps(settings_of(plan))))
    other = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if not other:
        return ""
    return f"{file}: had other settings ({', '.join(other)}); this run takes its place"


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Players and options beside the other settings."""
    inner = [settings.get(name) or {} for name in ("players", "options")]
    return {**settings, "players": None, "options": None, **inner[0], **inner[1]}


def _refuse_nothing(plan: Evaluation, outcomes: Sequence[Outcome]) -> None:
    if all(outcome.trajectory.stop_reason == FAILED for outcome in outcomes):
        reason = next((c.last_error for c in plan.clients if c.last_error), "no reason given")
        raise UserError(
            f"all {len(outcomes)} trajectories failed and nothing was written; the last: {reason}; "
            "mend that and run the same command again"
        )


def summary(plan: Evaluation, results: Mapping[str, Any], earned: str = "") -> str:
    """What was scored, what it took, where it is; ``earned`` says whether answers were."""
    runs = results["runs"]
    sizes = ", ".join(f"{n:,} of {name}" for name, n in results["settings"]["questions"].items())
    means = " (EM, F1 and Acc are means of the benchmarks)" if sizes.count(" of ") > 1 else ""
    lines = [table(_rows(runs)), "", f"questions: {sizes}{means}; calls and steps are a question's"]
    if under := [condition_text(name, value) for name, value in plan.conditions.items()]:
        lines.append(f"all of them with {', '.join(under)}")
    if followed := plan.notes.get("as_published"):
        lines.append(f"as the papers have it, not we: {', '.join(followed)}")
    lines += _tokens(runs)
    totals = {name: sum(run[ALL][name] for run in runs) for name in _COUNTED}
    lines += [say(totals[name]) for name, say in _COUNTED.items() if totals[name]]
    if totals["failed"] and (reasons := [c.last_error for c in plan.clients if c.last_error]):
        lines.append(f"the last that failed: {reasons[-1]}")
    if results["simulated"]:
        lines.append("simulated: an engine without a model took part, so no number is a result")
    lines += ["", earned] if earned else []
    files = [plan.output / TRAJECTORIES, plan.output / RESULTS, report_folder(plan) / COMPARISON]
    by_method = report_folder(plan) / METHODS_PAGE
    files += [by_method] if by_method.is_file() else []
    lines += ["", *map(str, files), "", "to read the traces:"]
    return "\n".join([*lines, f"safe-stepwise view_traces {plan.output}"])


def _rows(runs: Sequence[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """The table of scores.

    Options and the roles that do not answer have a column where runs differ in them, K and N
    always.
    """
    systems = [System.of(run["method"], run["players"], run["options"], run["conditions"]) for run in runs]
    several = values_by_name(item for system in systems for item in system.others.items())
    roles = [role for role, names in several.items() if len(names) > 1]
    options = values_by_name(item for run in runs for item in run["options"].items())
    told = [name for name in options if name in LETTERS or name in differing(systems)]
    answering = {system.players[0][0] for system in systems}
    who = answering.pop() if len(answering) == 1 else "player"
    header = (who, "method", *roles, *(LETTERS.get(name, name) for name in told))
    rows: list[tuple[object, ...]] = [(*header, "EM", "F1", "Acc", "calls", "steps", "failed")]
    for run, system in zip(runs, systems, strict=True):
        means, whole, known = run[AVERAGE], run[ALL], dict(system.options)
        rows.append(
            (
                *(system.answering, system.method),
                *(system.others.get(role, "-") for role in roles),
                *(_plain(known.get(name, "-")) for name in told),
                *("-" if means[m] is None else f"{means[m]:.3f}" for m in METRICS),
                f"{whole['calls_per_question']:.1f}",
                "-" if _has_no_steps(whole) else f"{whole['steps_per_question']:.1f}",
                whole["failed"],
            )
        )
    return rows


def _plain(value: Any) -> object:
    return ("yes" if value else "no") if isinstance(value, bool) else value


def _has_no_steps(whole: Mapping[str, Any]) -> bool:
    """Whether a prompting method took none, as those do that answer at once."""
    return "prompting" in whole and not whole["steps_per_question"]


def _tokens(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for role in dict.fromkeys(role for run in runs for role in run[ALL]["prompt_tokens"]):
        prompt, cached = (
            sum(run[ALL][f"{what}_tokens"].get(role, 0) for run in runs) for what in ("prompt", "cached")
        )
        if prompt:
            lines.append(f"{role}: {prompt:,} prompt tokens, {cached / prompt:.1%} of them cached")
    return lines


_COUNTED: Mapping[str, Callable[[int], str]] = {
    "unscored": "verdicts that could not be had: {:,}; they are left out of Acc".format,
    "unread": "verdicts on steps that could not be read: {:,}".format,
    "malformed": "replies that are no step: {:,}".format,
    "failed": (
        "trajectories that failed: {:,}; they count as wrong. Run the same command again: only they are asked"
    ).format,
}
