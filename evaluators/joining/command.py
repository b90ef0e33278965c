"""Evaluations joined: read, merged, compared, written down so that report and viewer open them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safe_stepwise
from evaluators.comparison import ablation, report
from evaluators.comparison.score_tables import chosen
from evaluators.comparison.systems import names, system_of, values_by_name
from evaluators.faithfulness import command as faithfulness
from evaluators.joining.runs import Joined, Run, joined, read_run
from evaluators.outcomes import METRIC_NAMES, grouped
from evaluators.run.results import record, roles_of
from safe_stepwise.commands.ending import warn
from safe_stepwise.errors import UserError
from safe_stepwise.metric.judge import JUDGED
from safe_stepwise.records import identity
from safe_stepwise.store import files
from safe_stepwise.store.boundary import read_json
from safe_stepwise.store.files import json_bytes, sha256_of, write_atomically, write_lines
from safe_stepwise.store.names import COMPARISON, JOURNAL, QUESTIONS, REPORT, RESULTS, TRAJECTORIES
from safe_stepwise.store.published_tables import MAIN
from safe_stepwise.store.tables import text_table

OWNED = (TRAJECTORIES, QUESTIONS, RESULTS, REPORT, *faithfulness.OWNED)
MAY_DIFFER = frozenset(
    ("corpus", "drop_gold", "joined", "left_out", "methods", "options", "players", "passages",
     "questions", "questions_sha256", "seed", "skipped", "source", "source_sha256", "split",
     "conditions", "as_published", "derivations", *JUDGED)
)  # fmt: skip
"""Settings that make no difference between two runs of the same questions, or are told anyway."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is joined: folders, as ``DIR`` or ``DIR=NAME``, and what their systems are set against."""

    folders: tuple[str, ...]
    output: Path
    reference: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    seed: int = 0


def join(options: Options) -> str:
    """Lay evaluations side by side; returns a summary.

    Raises ``UserError`` for folders that can't be joined, and for names that nothing has.
    """
    output, seed, printed = options.output, options.seed, chosen(options.published)
    runs = [read_run(folder) for folder in options.folders]
    _check_places(runs, output)
    judge = _judge(runs)
    found = joined(runs)
    against = ablation.ablations(found.outcomes, options.reference, seed)
    for told in _differences(runs):
        warn(told)
    main = [row for row in printed if row.table == MAIN[row.paper]]
    others = [row for row in printed if row.table != MAIN[row.paper]]
    with files.exclusive(output, "join", OWNED):
        (output / RESULTS).unlink(missing_ok=True)
        write_lines(output / TRAJECTORIES, (outcome.to_json() for outcome in found.outcomes))
        write_lines(output / QUESTIONS, (question.to_json() for question in found.questions))
        compared = report.write(found.outcomes, output / REPORT, seed, main)
        ablation.write(against, output / REPORT, others)
        content = _results(runs, found, judge, seed)
        asked = [*faithfulness.kept(output, content["settings"])]
        earned, said = faithfulness.as_it_ends(asked, output, output / REPORT)
        write_atomically(output / RESULTS, json_bytes({**content, "comparison": compared.results, **earned}))
    return _summary(runs, found, against[0], output, said)


def _check_places(runs: Sequence[Run], output: Path) -> None:
    places = [run.folder.resolve() for run in runs]
    if len(set(places)) < len(places):
        raise UserError("one folder is named twice; name each evaluation once")
    if output.resolve() in places:
        raise UserError(f"{output}: is one of the evaluations; choose another --output")
    if (output / JOURNAL).exists() or not _may_be_replaced(output / RESULTS):
        raise UserError(f"{output}: holds an evaluation; choose another --output")


def _may_be_replaced(results: Path) -> bool:
    """Whether no evaluation is there, or one that was joined."""
    try:
        return not results.exists() or "joined" in read_json(results)["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _judge(runs: Sequence[Run]) -> str | None:
    judged = {str(run.settings["judge"]): run for run in runs if run.settings.get("judge")}
    if len(judged) > 1:
        said = ", ".join(f"{run.title} by {judge}" for judge, run in judged.items())
        raise UserError(
            f"judged by different judges, whose accuracies are no one measure: {said}; evaluate "
            "them with one --judge (it alone is asked anew)"
        )
    return next(iter(judged), None)


def _differences(runs: Sequence[Run]) -> list[str]:
    """In which settings runs differ that have them, and that no table tells."""
    values: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.settings.items():
            if name not in MAY_DIFFER:
                parts = value.items() if isinstance(value, dict) else [("", value)]
                for part, of in parts:
                    values.setdefault(f"{name} {part}".rstrip(), set()).add(identity(of))
    differ = [name for name, found in values.items() if len(found) > 1]
    return [f"the runs differ in {', '.join(differ)}, too; see their {RESULTS}"] if differ else []


def _results(runs: Sequence[Run], found: Joined, judge: str | None, seed: int) -> dict[str, Any]:
    """``results.json`` as an evaluation writes it, with the runs in the place of their sources."""
    by_system = grouped(found.outcomes, system_of)
    roles, systems = roles_of(found.outcomes), [*by_system]
    settings = {
        "joined": [
            {
                "folder": run.folder.resolve().name,
                "name": run.name or None,
                "trajectories_sha256": sha256_of(run.folder / TRAJECTORIES),
            }
            for run in runs
        ],
        "questions": dict(Counter(question.benchmark for question in found.questions)),
        "questions_sha256": identity([identity(question) for question in found.questions]),
        "left_out": dict(found.left_out),
        "methods": list(dict.fromkeys(system.method for system in systems)),
        "players": values_by_name(item for system in systems for item in system.players),
        "options": values_by_name(item for system in systems for item in system.options),
        "conditions": values_by_name(item for system in systems for item in system.conditions),
        "judge": judge,
        "seed": seed,
    }
    return {
        "version": safe_stepwise.__version__,
        "simulated": any(outcome.simulated for outcome in found.outcomes),
        "settings": settings,
        "runs": [{**record(outcomes, roles), "judge_agreement": None} for outcomes in by_system.values()],
    }


def _summary(runs: Sequence[Run], found: Joined, against: ablation.Ablation, output: Path, earned: str) -> str:
    known = names(list(dict.fromkeys(row.system for row in against.comparison.rows)))
    measure = METRIC_NAMES[ablation.told_metric(against.comparison)]
    lines = [f"{against.title}, average {measure}:", text_table(ablation.average_table(against.comparison)), ""]
    lines += [earned, ""] if earned else []
    asked = {(q.benchmark, q.id) for q in found.questions}
    lines.append(f"evaluations: {len(runs)}; systems: {len(known)}; questions: {len(asked):,}")
    for name, count in found.left_out.items():
        lines.append(f"left out of {name}: {count:,} questions that not all were asked")
    for system in found.held_twice:
        what = known.get(system, system.title)
        lines.append(f"the same in several: {system.answering}, {what}")
    if any(outcome.simulated for outcome in found.outcomes):
        lines.append("simulated: an engine without a model took part, so no number is a result")
    files = (RESULTS, f"{REPORT}/ablation.md", f"{REPORT}/{COMPARISON}")
    lines += ["", *(str(output / name) for name in files), "", "to read the traces:"]
    return "\n".join([*lines, f"safe-stepwise view_traces {output}"])
