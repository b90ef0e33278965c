"""An evaluation from its options to what is said of it: run, written down, compared, summed up."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluators.comparison import published
from evaluators.comparison.scores import AVERAGE
from evaluators.comparison.systems import LETTERS, System, condition_text, differing, values_by_name
from evaluators.derivations import read_derivations
from evaluators.outcomes import METRICS, Outcome, QuestionRecord
from evaluators.prompting import predictions
from evaluators.run.evaluation import Evaluation, evaluate
from evaluators.run.options import Options
from evaluators.run.questions import without_drawn_gold
from evaluators.run.results import ALL, TRUTH, settings_of, write
from safe_stepwise.commands.ending import warn
from safe_stepwise.engines.client import ResponseCache, default_cache
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.open import Opener
from safe_stepwise.records import Question, QuestionSet
from safe_stepwise.scoring import CUSTOM
from safe_stepwise.store import files, names
from safe_stepwise.store.files import sha256_of, write_atomically, write_parts
from safe_stepwise.store.parsing import read_json
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import text_table

_FILES = (
    *(names.JOURNAL, names.TRAJECTORIES, names.QUESTIONS, names.RESULTS, names.REJECTS),
    *(TRUTH, predictions.FOLDER),
)
"""What an evaluation writes, beside its report."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """What an evaluation takes from rooms that it may not import."""

    read: Callable[..., QuestionSet]
    """`builders.verified.evaluation_questions.read`."""
    scoring: Mapping[str, str]
    """Whose official scorer counts, by each benchmark."""
    compare: Callable[[Sequence[Outcome], Path, int, Sequence[PublishedScore]], Mapping[str, Any]]
    """Writes the report on outcomes into a folder, by a seed and beside published rows; returns its results."""
    measure: Callable[[Sequence[tuple[Outcome, Question]], Path, Path], tuple[dict[str, Any], str]]
    """Says whether answers were earned, beside the evaluation and in its report; returns what of that stands in
    ``results.json``, and in words: `faithfulness.command.as_it_ends`."""
    measured_files: Sequence[str] = ()
    """Those that ``measure`` writes beside the evaluation."""
    pages: Sequence[str] = ()
    """Those that both write into the report."""


def run_evaluation(options: Options, rooms: Rooms) -> str:
    """Evaluate, and return what there is to say; raises ``UserError`` for what the user can mend."""
    options.check()
    for note in options.faultless:
        warn(note)
    printed = published.chosen(options.published)
    questions = _questions_of(options, rooms)
    notes = {
        "source": questions.source,
        "source_sha256": questions.digest,
        "split": questions.split,
        "skipped": len(questions.skipped),
    }
    derivations = read_derivations(options.derivations) if options.derivations else {}
    if options.derivations:
        notes["derivations"] = sha256_of(options.derivations)
    file = options.cache or default_cache()
    corpus = Corpus.open(options.corpus, file.parent / "corpora") if options.corpus else None
    pages = rooms.pages if options.report else [names.REPORT]
    owned = (*_FILES, *rooms.measured_files, *pages)
    with files.exclusive(options.output, owned=owned), closing(ResponseCache(file)) as cache:
        _keep_rejects(options, questions)
        plan = options.plan(questions.questions, Opener(options.timeout), corpus, cache, notes)
        plan = replace(plan, scoring=rooms.scoring, derivations=derivations)
        return _carry_out(plan, options.seed, printed, rooms)


def _questions_of(options: Options, rooms: Rooms) -> QuestionSet:
    """The questions that options choose; raises ``UserError`` where there are none to ask."""
    read_set = rooms.read(
        options.questions,
        [one_of(name, [*rooms.scoring, CUSTOM], "--benchmark") for name in options.benchmark],
        options.split,
        options.limit,
        options.seed,
        skip=options.on_error != "stop",
        planned=bool(options.symbolic),
        whole=options.passages == "all",
    )
    if read_set.skipped:
        warn(f"rows kept apart in {names.REJECTS}: {len(read_set.skipped)}, the first: {read_set.skipped[0]}")
    if not any(question.is_annotated for question in read_set.questions):
        options.refuse_symbolic()
    if not options.drop_gold:
        return read_set
    if without := sum(not question.gold for question in read_set.questions):
        note = f"--drop-gold: {without} of {len(read_set.questions)} questions mark no gold passage"
        if without == len(read_set.questions):
            raise UserError(f'{note}; give passages "is_gold": true')
        warn(f"{note}, and stay whole")
    reduced = tuple(without_drawn_gold(question, options.seed) for question in read_set.questions)
    return replace(read_set, questions=reduced)


def _keep_rejects(options: Options, questions: QuestionSet) -> None:
    if questions.rejects:
        write_parts(options.output / names.REJECTS, questions.rejects)
    elif options.on_error != "stop":
        (options.output / names.REJECTS).unlink(missing_ok=True)


def _carry_out(plan: Evaluation, seed: int, printed: Sequence[PublishedScore], rooms: Rooms) -> str:
    if earlier := _earlier(plan):
        warn(earlier)
    runs = evaluate(plan)
    results = write(plan, runs)
    folder = report_folder(plan)
    compared = rooms.compare([outcome for run in runs for outcome in run.outcomes], folder, seed, printed)
    # The questions as far as they are kept, so that faithfulness can be measured anew.
    kept = [QuestionRecord.of(question, plan.conditions).asked for question in plan.questions]
    pairs = [pair for run in runs for pair in zip(run.outcomes, kept, strict=True)]
    earned, earned_text = rooms.measure(pairs, plan.output, folder)
    whole = {**results, "comparison": compared, **earned}
    text = json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False)
    write_atomically(plan.output / names.RESULTS, f"{text}\n".encode())
    return summary(plan, results, earned_text)


def report_folder(plan: Evaluation) -> Path:
    """Where tables and figures go."""
    return plan.report or plan.output / names.REPORT


def _earlier(plan: Evaluation) -> str:
    """What to say of results that this run takes the place of; nothing if they are the same."""
    file = plan.output / names.RESULTS
    try:
        before = _flat(read_json(file)["settings"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    now = _flat(json.loads(json.dumps(settings_of(plan))))
    differing_names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if not differing_names:
        return ""
    return f"{file}: had other settings ({', '.join(differing_names)}); this run takes its place"


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Players and options beside the other settings."""
    inner = [settings.get(name) or {} for name in ("players", "options")]
    return {**settings, "players": None, "options": None, **inner[0], **inner[1]}


def summary(plan: Evaluation, results: Mapping[str, Any], earned: str = "") -> str:
    """What was scored, what it took, where it is; ``earned`` says whether answers were."""
    runs = results["runs"]
    sizes = ", ".join(f"{n:,} of {name}" for name, n in results["settings"]["questions"].items())
    means = " (EM, F1 and Acc are means of the benchmarks)" if sizes.count(" of ") > 1 else ""
    lines = [text_table(_rows(runs)), "", f"questions: {sizes}{means}; calls and steps are a question's"]
    if under := [condition_text(name, value) for name, value in plan.conditions.items()]:
        lines.append(f"all of them with {', '.join(under)}")
    if followed := plan.notes.get("as_published"):
        lines.append(f"as the papers have it, not we: {', '.join(followed)}")
    lines += _tokens(runs)
    totals = {name: sum(run[ALL][name] for run in runs) for name in _COUNTED}
    lines += [text.format(totals[name]) for name, text in _COUNTED.items() if totals[name]]
    if totals["failed"] and (reasons := [c.last_error for c in plan.clients if c.last_error]):
        lines.append(f"the last that failed: {reasons[-1]}")
    if results["simulated"]:
        lines.append("simulated: an engine without a model took part, so no number is a result")
    lines += ["", earned] if earned else []
    folder = report_folder(plan)
    files = [plan.output / names.TRAJECTORIES, plan.output / names.RESULTS, folder / names.COMPARISON]
    files += [folder / names.METHODS_PAGE] if (folder / names.METHODS_PAGE).is_file() else []
    lines += ["", *map(str, files), "", "to read the traces:"]
    return "\n".join([*lines, f"safe-stepwise view_traces {plan.output}"])


def _rows(runs: Sequence[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """The table of scores.

    Options and the roles that do not answer have a column where runs differ in them, K and N always.
    """
    systems = [System.of(*(run[name] for name in ("method", "players", "options", "conditions"))) for run in runs]
    several = values_by_name(item for system in systems for item in system.others.items())
    roles = [role for role, players in several.items() if len(players) > 1]
    tried = values_by_name(item for run in runs for item in run["options"].items())
    shown = [name for name in tried if name in LETTERS or name in differing(systems)]
    answering = {system.players[0][0] for system in systems}
    who = answering.pop() if len(answering) == 1 else "player"
    header = (who, "method", *roles, *(LETTERS.get(name, name) for name in shown))
    rows: list[tuple[object, ...]] = [(*header, "EM", "F1", "Acc", "calls", "steps", "failed")]
    for run, system in zip(runs, systems, strict=True):
        means, whole, options = run[AVERAGE], run[ALL], dict(system.options)
        shown_values = [options.get(name, "-") for name in shown]
        # Prompting methods that answer at once take no steps.
        has_steps = "prompting" not in whole or whole["steps_per_question"]
        rows.append(
            (
                *(system.answering, system.method),
                *(system.others.get(role, "-") for role in roles),
                *(("yes" if v else "no") if isinstance(v, bool) else v for v in shown_values),
                *("-" if means[m] is None else f"{means[m]:.3f}" for m in METRICS),
                f"{whole['calls_per_question']:.1f}",
                f"{whole['steps_per_question']:.1f}" if has_steps else "-",
                whole["failed"],
            )
        )
    return rows


def _tokens(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for role in dict.fromkeys(role for run in runs for role in run[ALL]["prompt_tokens"]):
        prompt, cached = (
            sum(run[ALL][f"{what}_tokens"].get(role, 0) for run in runs) for what in ("prompt", "cached")
        )
        if prompt:
            lines.append(f"{role}: {prompt:,} prompt tokens, {cached / prompt:.1%} of them cached")
    return lines


_COUNTED: Mapping[str, str] = {
    "unscored": "verdicts that could not be had: {:,}; they are left out of Acc",
    "unread": "verdicts on steps that could not be read: {:,}",
    "malformed": "replies that are no step: {:,}",
    "salvaged": "steps that had to be taken out of Markdown: {:,}",
    "failed": "trajectories that failed: {:,}; they count as wrong. Run the same command again: only they are asked",
}
