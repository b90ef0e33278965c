"""Evaluations joined: read, merged, compared, written down so that report and viewer open them.

A run may have a name, which sets its systems apart from systems of other runs with the same
method, players, options and conditions: another adapter of the same server, for example. A system that
several runs hold with the same outcomes to the byte, as a baseline beside each variant, is one
system without a variant's name. Equal systems with different outcomes need names.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any

from evaluators import outcomes as reading
from evaluators import report_page
from evaluators.comparison import ablation, report, score_tables
from evaluators.comparison.scores import Comparison
from evaluators.comparison.systems import VARIANT, System, name_systems, system_of, values_by_name
from evaluators.faithfulness import command as faithfulness
from evaluators.outcomes import METRIC_NAMES, Outcome, QuestionRecord, grouped
from evaluators.run.evaluation import SystemRun, write_outcomes
from safe_stepwise.errors import UserError
from safe_stepwise.records import canonical_json, identity
from safe_stepwise.store import files, published_tables
from safe_stepwise.store.boundary import read_json
from safe_stepwise.store.files import json_bytes, sha256_of, write_atomically
from safe_stepwise.store.names import COMPARISON, JOURNAL, QUESTIONS, REPORT, REPORT_PAGE, RESULTS, TRAJECTORIES
from safe_stepwise.store.tables import text_table

QuestionKey = tuple[str, str, int]
"""A question: its benchmark, its id, and its number among those with this id, from 0."""
HeldOutcomes = Mapping[System, Mapping[QuestionKey, Outcome]]
"""A run's outcomes on the shared questions."""
OWNED = (TRAJECTORIES, QUESTIONS, RESULTS, REPORT, *faithfulness.OWNED)


@dataclass(frozen=True)
class EvaluationRun:
    """An evaluation as its folder holds it."""

    folder: Path
    name: str
    """The name that the command line gives the run; may be empty."""
    settings: Mapping[str, Any]
    outcomes: tuple[Outcome, ...]
    questions: tuple[QuestionRecord, ...]

    @cached_property
    def systems(self) -> dict[System, dict[QuestionKey, Outcome]]:
        by_system: dict[System, dict[QuestionKey, Outcome]] = {}
        keyed = reading.numbered(self.outcomes, lambda o: (system_of(o), o.benchmark, o.question_id))
        for ((system, benchmark, id_), number), outcome in keyed:
            by_system.setdefault(system, {})[benchmark, id_, number] = outcome
        return by_system

    @cached_property
    def questions_by_key(self) -> dict[QuestionKey, dict[str, QuestionRecord]]:
        """The questions by key, then by the conditions that change them."""
        by_key: dict[QuestionKey, dict[str, QuestionRecord]] = {}
        keyed = reading.numbered(self.questions, lambda q: (q.benchmark, q.id, canonical_json(q.conditions)))
        for ((benchmark, id_, under), number), question in keyed:
            by_key.setdefault((benchmark, id_, number), {})[under] = question
        return by_key


def read_run(text: str) -> EvaluationRun:
    """Read the evaluation in ``DIR`` or ``DIR=NAME``; raise ``UserError`` if it has not ended, or a name is empty."""
    folder, name = Path(text), ""
    if "=" in text and not folder.is_dir():
        place, _, title = text.rpartition("=")
        if not place or not title.strip():
            raise UserError(f"{text!r}: write DIR, or DIR=NAME to call it so")
        folder, name = Path(place), " ".join(title.split())
    settings = reading.read_results(folder)["settings"]
    outcomes, questions = reading.read_outcomes(folder), reading.read_questions(folder)
    run = EvaluationRun(folder, name, settings, tuple(outcomes), tuple(questions))
    if not run.outcomes:
        raise UserError(f"{folder / TRAJECTORIES}: holds no trajectory; run the evaluation again")
    if unknown := set().union(*run.systems.values()) - run.questions_by_key.keys():
        benchmark, id_, _ = min(unknown)
        raise UserError(
            f"{folder}: {benchmark} {id_} was answered, and is not among its questions; "
            "make it anew with safe-stepwise evaluate_stepwise"
        )
    return run


def shared_keys(runs: Sequence[EvaluationRun]) -> dict[str, set[QuestionKey]]:
    """Return, by benchmark, the questions that all runs with this benchmark have.

    Raises ``UserError`` where runs with a benchmark share no question of it, and where one id stands
    for different questions: another text or other answers, or other passages under equal conditions.
    """
    by_benchmark: dict[str, set[QuestionKey]] = {}
    for run in runs:
        for benchmark in dict.fromkeys(key[0] for key in run.questions_by_key):
            keys = {key for key in run.questions_by_key if key[0] == benchmark}
            by_benchmark[benchmark] = by_benchmark.get(benchmark, keys) & keys
            if not by_benchmark[benchmark]:
                titles = [str(r.folder) for r in runs if any(a[0] == benchmark for a in r.questions_by_key)]
                raise UserError(
                    f"{', '.join(titles)}: have no question of {benchmark} in common; evaluate the same sample in each"
                )
    for earlier, later in combinations(runs, 2):
        _check_alike(earlier, later)
    return by_benchmark


def _check_alike(earlier: EvaluationRun, later: EvaluationRun) -> None:
    before, after = earlier.questions_by_key, later.questions_by_key
    for key in before.keys() & after.keys():
        for question, candidate in product(before[key].values(), after[key].values()):
            difference = ""
            if (question.question, sorted(question.references)) != (candidate.question, sorted(candidate.references)):
                difference = "another question, or other answers"
            elif question.conditions == candidate.conditions and question.passages != candidate.passages:
                difference = "other passages"
            if difference:
                raise UserError(
                    f"{earlier.folder} and {later.folder}: under {key[0]} {key[1]} each asked "
                    f"{difference}; evaluate the same sample, by the same --seed, in each"
                )


@dataclass(frozen=True, slots=True)
class Joined:
    """Several runs, merged into one."""

    outcomes: tuple[Outcome, ...]
    """System by system, in the order of the runs."""
    questions: tuple[QuestionRecord, ...]
    left_out: Mapping[str, int]
    """The number of questions, by benchmark, that not all runs with this benchmark have."""


def join_runs(runs: Sequence[EvaluationRun]) -> Joined:
    """Join runs into one; raise as `shared_keys`, and ``UserError`` for equal systems with different outcomes."""
    common = shared_keys(runs)

    def shared(by_key: Mapping[QuestionKey, Outcome]) -> dict[QuestionKey, Outcome]:
        return {key: outcome for key, outcome in by_key.items() if key in common[key[0]]}

    outcomes_by_run = [{system: shared(by_key) for system, by_key in run.systems.items()} for run in runs]
    merged: dict[System, dict[QuestionKey, Outcome]] = {}
    source: dict[tuple[System, QuestionKey], EvaluationRun] = {}
    for n, run in enumerate(runs):
        for system, by_key in outcomes_by_run[n].items():
            variant = _variant(system, n, runs, outcomes_by_run)
            outcomes = merged.setdefault(variant, {})
            for key, outcome in by_key.items():
                outcome = replace(outcome, conditions=dict(variant.conditions))
                earlier = outcomes.setdefault(key, outcome)
                if earlier != outcome:
                    first, name = source[variant, key], f"{variant.answering}, {name_systems([variant])[variant]}"
                    raise UserError(
                        f"{first.folder} and {run.folder}: both hold {name}, with other outcomes (the first on "
                        f"{key[0]} {key[1]}); leave one out, or give them names of their own: "
                        f"{first.folder}=NAME {run.folder}=NAME"
                    )
                source.setdefault((variant, key), run)
    sizes = Counter(benchmark for benchmark, *_ in {key for run in runs for key in run.questions_by_key})
    left_out = {name: sizes[name] - len(keys) for name, keys in common.items()}
    # Each question once under the conditions that change it.
    questions: dict[tuple[QuestionKey, str], QuestionRecord] = {}
    for key, by_conditions in (item for run in runs for item in run.questions_by_key.items()):
        if key in common[key[0]]:
            for conditions, question in by_conditions.items():
                questions.setdefault((key, conditions), question)
    return Joined(
        tuple(outcome for by_key in merged.values() for outcome in by_key.values()),
        tuple(questions.values()),
        {name: count for name, count in left_out.items() if count},
    )


def _variant(
    system: System, place: int, runs: Sequence[EvaluationRun], outcomes_by_run: Sequence[HeldOutcomes]
) -> System:
    """Return a run's system, with the run's name as a condition where that sets it apart."""
    holders = [n for n, systems in enumerate(outcomes_by_run) if system in systems]
    pairs = [(a, b) for a, b in combinations(holders, 2) if runs[a].name != runs[b].name]
    differs = not pairs
    for earlier, later in ((outcomes_by_run[a][system], outcomes_by_run[b][system]) for a, b in pairs):
        keys = earlier.keys() & later.keys()
        differs |= not keys or any(earlier[key] != later[key] for key in keys)
    if not (differs and runs[place].name):
        return system
    return replace(system, conditions=tuple(sorted({**dict(system.conditions), VARIANT: runs[place].name}.items())))


@dataclass(frozen=True, kw_only=True)
class Options:
    """The command's options: folders, as ``DIR`` or ``DIR=NAME``, and the reference."""

    folders: tuple[str, ...]
    output: Path
    reference: str = ""
    published: tuple[str, ...] = ()
    seed: int = 0


def join(options: Options) -> str:
    """Lay evaluations side by side, return a summary; raise ``UserError`` for what can't be joined or is not known."""
    output, seed, rows = options.output, options.seed, score_tables.choose_tables(options.published)
    runs = [read_run(folder) for folder in options.folders]
    _check_places(runs, output)
    judge = _judge(runs)
    union = join_runs(runs)
    ablated = ablation.compare_with(union.outcomes, options.reference, seed)
    main = [row for row in rows if row.table == published_tables.MAIN[row.paper]]
    further = [row for row in rows if row.table != published_tables.MAIN[row.paper]]
    systems = [*map(SystemRun, grouped(union.outcomes, system_of).values())]
    with files.lock_folder(output, "join", OWNED):
        results = write_outcomes(output, _describe_settings(runs, union, judge, seed), systems, union.questions)
        comparison = report.write(union.outcomes, output / REPORT, seed, main)
        ablation.write(ablated, options.reference, output / REPORT, further)
        pairs = [*faithfulness.read_pairs(output)]
        faithfulness_results, earned = faithfulness.measure_evaluation(pairs, output, output / REPORT)
        report_page.write(output / REPORT)
        contents = {**results, "comparison": comparison.results, **faithfulness_results}
        write_atomically(output / RESULTS, json_bytes(contents))
    return _render(runs, union, options, ablated, earned)


def _check_places(runs: Sequence[EvaluationRun], output: Path) -> None:
    places = [run.folder.resolve() for run in runs]
    if len(set(places)) < len(places):
        raise UserError("one folder is named twice; name each evaluation once")
    if output.resolve() in places:
        raise UserError(f"{output}: is one of the evaluations; choose another --output")
    is_replaceable = False  # as is a joined evaluation, and none
    with suppress(OSError, ValueError, KeyError, TypeError):
        is_replaceable = not (output / RESULTS).exists() or "joined" in read_json(output / RESULTS)["settings"]
    if (output / JOURNAL).exists() or not is_replaceable:
        raise UserError(f"{output}: holds an evaluation; choose another --output")


def _judge(runs: Sequence[EvaluationRun]) -> str | None:
    judged = {str(run.settings["judge"]): run for run in runs if run.settings.get("judge")}
    if len(judged) > 1:
        judges = ", ".join(f"{run.folder} by {judge}" for judge, run in judged.items())
        raise UserError(
            f"judged by different judges, whose accuracies are no one measure: {judges}; evaluate "
            "them with one --judge (it alone is asked anew)"
        )
    return next(iter(judged), None)


def _describe_settings(runs: Sequence[EvaluationRun], union: Joined, judge: str | None, seed: int) -> dict[str, Any]:
    """Return the settings in ``results.json`` as an evaluation has them, with the joined runs as its sources."""
    systems = [*dict.fromkeys(map(system_of, union.outcomes))]
    return {
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


def _render(runs: Sequence[EvaluationRun], union: Joined, options: Options, ablated: Comparison, earned: str) -> str:
    output, title = options.output, ablation.title_of(options.reference)
    system_names = name_systems([row.system for row in ablated.rows])
    average = "average " if None in ablated.places else ""
    lines = [f"{title}, {average}{METRIC_NAMES[ablated.headline]}:", text_table(ablation.average_table(ablated)), ""]
    lines += [earned, ""] if earned else []
    question_keys = {(q.benchmark, q.id) for q in union.questions}
    lines.append(f"evaluations: {len(runs)}; systems: {len(system_names)}; questions: {len(question_keys):,}")
    for name, count in union.left_out.items():
        lines.append(f"left out of {name}: {count:,} questions that not all were asked")
    if any(outcome.simulated for outcome in union.outcomes):
        lines.append("simulated: an engine without a model took part, so no number is a result")
    files = (RESULTS, *(f"{REPORT}/{name}" for name in ("ablation.md", COMPARISON, REPORT_PAGE)))
    lines += ["", *(str(output / name) for name in files), "", "to read the traces:"]
    return "\n".join([*lines, f"safe-stepwise view_traces {output}"])
