"""Evaluations joined: read, merged, compared, written down so that report and viewer open them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safe_stepwise
from evaluators.comparison import ablation, report
from evaluators.comparison.score_tables import choose_tables
from evaluators.comparison.systems import names, system_of, values_by_name
from evaluators.faithfulness import command as faithfulness
from evaluators.joining.runs import Joined, Run, join_runs, read_run
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
"""Settings that make no difference between two runs of the same questions, or that tables show anyway."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The command's options: folders, as ``DIR`` or ``DIR=NAME``, and the reference systems."""

    folders: tuple[str, ...]
    output: Path
    reference: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    seed: int = 0


def join(options: Options) -> str:
    """Lay evaluations side by side; returns a summary.

    Raises ``UserError`` for folders that can't be joined, and for unknown names.
    """
    output, seed, rows = options.output, options.seed, choose_tables(options.published)
    runs = [read_run(folder) for folder in options.folders]
    _check_places(runs, output)
    judge = _judge(runs)
    union = join_runs(runs)
    tables = ablation.ablations(union.outcomes, options.reference, seed)
    for difference in _differences(runs):
        warn(difference)
    main = [row for row in rows if row.table == MAIN[row.paper]]
    further = [row for row in rows if row.table != MAIN[row.paper]]
    with files.exclusive(output, "join", OWNED):
        (output / RESULTS).unlink(missing_ok=True)
        write_lines(output / TRAJECTORIES, (outcome.to_json() for outcome in union.outcomes))
        write_lines(output / QUESTIONS, (question.to_json() for question in union.questions))
        comparison = report.write(union.outcomes, output / REPORT, seed, main)
        ablation.write(tables, output / REPORT, further)
        content = _results(runs, union, judge, seed)
        rules = [*faithfulness.read_pairs(output, content["settings"])]
        earned, summary = faithfulness.measure_evaluation(rules, output, output / REPORT)
        write_atomically(output / RESULTS, json_bytes({**content, "comparison": comparison.results, **earned}))
    return _summary(runs, union, tables[0], output, summary)


def _check_places(runs: Sequence[Run], output: Path) -> None:
    places = [run.folder.resolve() for run in runs]
    if len(set(places)) < len(places):
        raise UserError("one folder is named twice; name each evaluation once")
    if output.resolve() in places:
        raise UserError(f"{output}: is one of the evaluations; choose another --output")
    if (output / JOURNAL).exists() or not _may_be_replaced(output / RESULTS):
        raise UserError(f"{output}: holds an evaluation; choose another --output")


def _may_be_replaced(results: Path) -> bool:
    """Return whether there is no evaluation, or a joined one."""
    try:
        return not results.exists() or "joined" in read_json(results)["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _judge(runs: Sequence[Run]) -> str | None:
    judged = {str(run.settings["judge"]): run for run in runs if run.settings.get("judge")}
    if len(judged) > 1:
        judges = ", ".join(f"{run.title} by {judge}" for judge, run in judged.items())
        raise UserError(
            f"judged by different judges, whose accuracies are no one measure: {judges}; evaluate "
            "them with one --judge (it alone is asked anew)"
        )
    return next(iter(judged), None)


def _differences(runs: Sequence[Run]) -> list[str]:
    """Return a warning that names the settings in which runs differ and that no table shows."""
    values: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.settings.items():
            if name not in MAY_DIFFER:
                members = value.items() if isinstance(value, dict) else [("", value)]
                for key, content in members:
                    values.setdefault(f"{name} {key}".rstrip(), set()).add(identity(content))
    differ = [name for name, digests in values.items() if len(digests) > 1]
    return [f"the runs differ in {', '.join(differ)}, too; see their {RESULTS}"] if differ else []


def _results(runs: Sequence[Run], union: Joined, judge: str | None, seed: int) -> dict[str, Any]:
    """Return ``results.json`` as an evaluation writes it, with the joined runs as its sources."""
    by_system = grouped(union.outcomes, system_of)
    roles, systems = roles_of(union.outcomes), [*by_system]
    settings = {
        "joined": [
            {
                "folder": run.folder.resolve().name,
                "name": run.name or None,
                "trajectories_sha256": sha256_of(run.folder / TRAJECTORIES),
            }
            for run in runs
        ],
        "questions": dict(Counter(question.benchmark for question in union.questions)),
        "questions_sha256": identity([identity(question) for question in union.questions]),
        "left_out": dict(union.left_out),
        "methods": list(dict.fromkeys(system.method for system in systems)),
        "players": values_by_name(item for system in systems for item in system.players),
        "options": values_by_name(item for system in systems for item in system.options),
        "conditions": values_by_name(item for system in systems for item in system.conditions),
        "judge": judge,
        "seed": seed,
    }
    return {
        "version": safe_stepwise.__version__,
        "simulated": any(outcome.simulated for outcome in union.outcomes),
        "settings": settings,
        "runs": [{**record(outcomes, roles), "judge_agreement": None} for outcomes in by_system.values()],
    }


def _summary(runs: Sequence[Run], union: Joined, first: ablation.Ablation, output: Path, earned: str) -> str:
    system_names = names(list(dict.fromkeys(row.system for row in first.comparison.rows)))
    measure = METRIC_NAMES[ablation.headline_metric(first.comparison)]
    lines = [f"{first.title}, average {measure}:", text_table(ablation.average_table(first.comparison)), ""]
    lines += [earned, ""] if earned else []
    question_keys = {(q.benchmark, q.id) for q in union.questions}
    lines.append(f"evaluations: {len(runs)}; systems: {len(system_names)}; questions: {len(question_keys):,}")
    for name, count in union.left_out.items():
        lines.append(f"left out of {name}: {count:,} questions that not all were asked")
    for system in union.held_twice:
        label = system_names.get(system, system.title)
        lines.append(f"the same in several: {system.answering}, {label}")
    if any(outcome.simulated for outcome in union.outcomes):
        lines.append("simulated: an engine without a model took part, so no number is a result")
    files = (RESULTS, f"{REPORT}/ablation.md", f"{REPORT}/{COMPARISON}")
    lines += ["", *(str(output / name) for name in files), "", "to read the traces:"]
    return "\n".join([*lines, f"safe-stepwise view_traces {output}"])
