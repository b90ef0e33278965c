"""Run an evaluation by its options: read the questions, run all systems, write the files, and render a summary.

`run_evaluation` is what `safe-stepwise evaluate_stepwise` calls.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluators import report_page
from evaluators.comparison import report, score_tables, scores
from evaluators.comparison.systems import LETTERS, System, condition_text, find_differing, values_by_name
from evaluators.derivations import read_derivations
from evaluators.faithfulness import command as faithfulness
from evaluators.faithfulness.tables import FILES as PAGES
from evaluators.outcomes import METRICS, QuestionRecord
from evaluators.prompting.measures import SAMPLES
from evaluators.run.evaluation import ALL, Evaluation, evaluate, settings_of, write_outcomes
from evaluators.run.options import Options
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.errors import UserError
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.open import Opener
from safe_stepwise.records import Question, QuestionSet, select_passages
from safe_stepwise.scoring import CUSTOM
from safe_stepwise.store import files, names, progress, tables
from safe_stepwise.store.files import json_bytes, sha256_of, write_atomically, write_parts

_FILES = (*(names.JOURNAL, names.TRAJECTORIES, names.QUESTIONS, names.RESULTS, names.REJECTS), *faithfulness.OWNED)
"""The files of an evaluation, beside its report."""
ReadQuestions = Callable[..., QuestionSet]
"""`builders.verified.evaluation_questions.read`."""


def run_evaluation(options: Options, read: ReadQuestions, benchmarks: Mapping[str, Any]) -> str:
    """Run an evaluation and return its summary; raise ``UserError`` for bad options or files.

    The ``SCORING`` of each of ``benchmarks`` names the official scorer that counts; others count by SQuAD's rule.
    """
    options.check()
    published = score_tables.choose_tables(options.published)
    questions = _select_questions(options, read)
    notes = {
        "source": questions.source,
        "source_sha256": questions.digest,
        "split": questions.split,
        "skipped": len(questions.skipped),
    }
    derivations = read_derivations(options.derivations) if options.derivations else {}
    if options.derivations:
        notes["derivations"] = sha256_of(options.derivations)
    corpus = Corpus.open(options.corpus, options.cache_file.parent / "corpora") if options.corpus else None
    report_files = (*report.FILES, *PAGES) if options.report else [names.REPORT]
    with files.lock_folder(options.output, owned=(*_FILES, *report_files)), options.replies() as replies:
        if questions.rejects:
            write_parts(options.output / names.REJECTS, questions.rejects)
        elif options.on_error != "stop":
            (options.output / names.REJECTS).unlink(missing_ok=True)
        plan = options.plan(questions.questions, Opener(options.timeout), corpus, replies, notes)
        scoring = {question.benchmark: CUSTOM for question in questions.questions}
        scoring |= {name: benchmark.SCORING for name, benchmark in benchmarks.items()}
        plan = replace(plan, scoring=scoring, derivations=derivations)
        runs = evaluate(plan)
        records = [QuestionRecord.from_question(question, plan.conditions) for question in plan.questions]
        results = write_outcomes(plan.output, settings_of(plan), runs, records)
        # The questions as far as they are kept, so that faithfulness can be measured anew.
        kept = [record.as_question for record in records]
        pairs = [pair for run in runs for pair in zip(run.outcomes, kept, strict=True)]
        comparison = report.write([outcome for outcome, _ in pairs], plan.report, options.seed, published)
        faithfulness_results, faithfulness_text = faithfulness.measure_evaluation(pairs, plan.output, plan.report)
        report_page.write(plan.report)
        contents = {**results, "comparison": comparison.results, **faithfulness_results}
        write_atomically(plan.output / names.RESULTS, json_bytes(contents))
    return render_summary(plan, results, faithfulness_text)


def _select_questions(options: Options, read: ReadQuestions) -> QuestionSet:
    """Read the options' questions, with the passages that they may have; note what is set apart or stays whole."""
    selection = options.questions, options.benchmark, options.split, options.limit, options.seed
    rules = {"skip": options.on_error != "stop", "planned": bool(options.symbolic)}
    read_set = read(*selection, **rules, all_passages=options.passages == "all")
    if read_set.skipped:
        progress.note(f"rows kept apart in {names.REJECTS}: {len(read_set.skipped)}, the first: {read_set.skipped[0]}")
    if options.passages == "none":
        read_set = replace(read_set, questions=tuple(select_passages(question, ()) for question in read_set.questions))
    if not any(question.passages for question in read_set.questions):
        options.refuse_without_passages()
    if not any(question.is_annotated for question in read_set.questions):
        options.refuse_symbolic()
    if not options.drop_gold:
        return read_set
    if goldless := sum(not question.gold for question in read_set.questions):
        message = f"--drop-gold: {goldless} of {len(read_set.questions)} questions mark no gold passage"
        if goldless == len(read_set.questions):
            raise UserError(f'{message}; give passages "is_gold": true')
        progress.note(f"{message}, and stay whole")
    reduced = [remove_random_gold(q, options.seed, options.drop_gold_count) for q in read_set.questions]
    return replace(read_set, questions=tuple(reduced))


def render_summary(plan: Evaluation, results: Mapping[str, Any], faithfulness_text: str = "") -> str:
    """Render a summary of scores, costs and files; ``faithfulness_text`` is about right answers that were earned."""
    runs, pages = results["runs"], (names.COMPARISON, names.METHODS_PAGE, names.REPORT_PAGE)
    counts = ("unscored", "unread", "malformed", "salvaged", "failed")
    return tables.fill(
        Path(__file__).parent / "templates",
        "summary.txt.jinja",
        plan=plan,
        results=results,
        rows=_score_rows(runs),
        sizes=", ".join(f"{n:,} of {name}" for name, n in results["settings"]["questions"].items()),
        samples=_sample_lines(runs),
        conditions=[condition_text(name, value) for name, value in plan.conditions.items()],
        tokens=_token_lines(runs),
        totals={name: sum(run[ALL][name] for run in runs) for name in counts},
        last_errors=[client.last_error for client in plan.clients if client.last_error],
        earned=faithfulness_text,
        files=[plan.output / names.TRAJECTORIES, plan.output / names.RESULTS, *(plan.report / page for page in pages)],
    ).rstrip("\n")


def _score_rows(runs: Sequence[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """Return the table of scores; options and further roles have a column where runs differ, K and N always."""
    systems = [System.make(*(run[name] for name in ("method", "players", "options", "conditions"))) for run in runs]
    players_by_role = values_by_name(item for system in systems for item in system.other_players.items())
    roles = [role for role, players in players_by_role.items() if len(players) > 1]
    tried_values = values_by_name(item for run in runs for item in run["options"].items())
    option_names = [name for name in tried_values if name in LETTERS or name in find_differing(systems)]
    answering = {system.players[0][0] for system in systems}
    first_title = answering.pop() if len(answering) == 1 else "player"
    header = (first_title, "method", *roles, *(LETTERS.get(name, name) for name in option_names))
    rows: list[tuple[object, ...]] = [(*header, "EM", "F1", "Acc", "calls", "steps", "failed")]
    for run, system in zip(runs, systems, strict=True):
        means, totals, options = run[scores.AVERAGE], run[ALL], dict(system.options)
        shown_values = [options.get(name, "-") for name in option_names]
        # Prompting methods that answer at once take no steps.
        has_steps = "prompting" not in totals or totals["steps_per_question"]
        steps = f"{totals['steps_per_question']:.1f}" if has_steps else "-"
        cells = (
            *(system.answering, system.method),
            *(system.other_players.get(role, "-") for role in roles),
            *(("yes" if v else "no") if isinstance(v, bool) else v for v in shown_values),
            *("-" if means[m] is None else f"{means[m]:.3f}" for m in METRICS),
            *(f"{totals['calls_per_question']:.1f}", steps, totals["failed"]),
        )
        rows.append(cells)
    return rows


def _sample_lines(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what a choice among samples is to be compared with, a line for each method, generator and size."""
    lines: dict[str, None] = {}  # the runs that differ only in the way to choose have the same line
    for run in runs:
        if sample_scores := run[ALL].get(SAMPLES):
            scores_text = ", ".join(f"{name} {share:.3f}" for name, share in sample_scores.items())
            options = {name: value for name, value in run["options"].items() if name not in ("best_of", "choose")}
            options_text = "".join(f", {name}={value}" for name, value in options.items())
            players = " with ".join(run["players"].values())
            system = f"{run['method']} by {players}{options_text}, {run['options']['best_of']} samples"
            lines[f"{system} (EM over all questions): {scores_text}"] = None
    return [*lines]


def _token_lines(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each role with its prompt tokens, the cached share, and the tokens of its thoughts."""
    lines = []
    for role in dict.fromkeys(role for run in runs for role in run[ALL]["prompt_tokens"]):
        kinds = ("prompt_tokens", "cached_tokens", "thought_tokens")
        prompt, cached, thought = (sum(run[ALL].get(kind, {}).get(role, 0) for run in runs) for kind in kinds)
        if prompt:
            thought_text = f"; {thought:,} reply tokens went into thoughts" if thought else ""
            lines.append(f"{role}: {prompt:,} prompt tokens, {cached / prompt:.1%} of them cached{thought_text}")
    return lines


def remove_random_gold(question: Question, seed: int = 0, count: int = 1) -> Question:
    """Remove ``count`` gold passages, as far as there are any, drawn by id and seed (the last ends most chains)."""
    for _ in range(min(count, len(question.gold))):
        place = choice_for(str(seed), question.id, "dropped gold") % len(question.gold)
        question = remove_passage(question, question.gold[place][0])
    return question


def remove_passage(question: Question, number: int) -> Question:
    """Remove the passage with a number (from 1) from a question, and renumber those of its decomposition."""
    return select_passages(question, [n for n in range(1, len(question.passages) + 1) if n != number])
