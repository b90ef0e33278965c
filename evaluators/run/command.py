"""Run an evaluation by its options: read the questions, run all systems, write the files, and render a summary."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaluators.comparison import report, score_tables, scores
from evaluators.comparison.systems import LETTERS, System, condition_text, find_differing, values_by_name
from evaluators.derivations import read_derivations
from evaluators.faithfulness import command as faithfulness
from evaluators.faithfulness.tables import FILES as PAGES
from evaluators.outcomes import METRICS, QuestionRecord
from evaluators.prompting import predictions
from evaluators.run.evaluation import ALL, TRUTH, Evaluation, evaluate, settings_of, write
from evaluators.run.options import Options
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.errors import UserError
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.open import Opener
from safe_stepwise.records import Question, QuestionSet
from safe_stepwise.scoring import CUSTOM
from safe_stepwise.store import boundary, files, names, published_tables, tables
from safe_stepwise.store.files import json_bytes, sha256_of, write_atomically, write_parts
from safe_stepwise.store.progress import note

_FILES = (
    *(names.JOURNAL, names.TRAJECTORIES, names.QUESTIONS, names.RESULTS, names.REJECTS),
    *(TRUTH, predictions.FOLDER, *faithfulness.OWNED),
)
"""The files of an evaluation, beside its report."""
ReadQuestions = Callable[..., QuestionSet]
"""`builders.verified.evaluation_questions.read`."""


def run_evaluation(options: Options, read: ReadQuestions, benchmarks: Mapping[str, Any]) -> str:
    """Run an evaluation and return its summary; raise ``UserError`` for bad options or files.

    The ``SCORING`` of each of ``benchmarks`` names the official scorer that counts; others count by SQuAD's rule.
    """
    options.check()
    published = score_tables.choose_tables(options.published)
    questions = _questions_of(options, read)
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
    pages = (*report.FILES, *PAGES) if options.report else [names.REPORT]
    with files.lock_folder(options.output, owned=(*_FILES, *pages)), options.replies() as replies:
        if questions.rejects:
            write_parts(options.output / names.REJECTS, questions.rejects)
        elif options.on_error != "stop":
            (options.output / names.REJECTS).unlink(missing_ok=True)
        plan = options.plan(questions.questions, Opener(options.timeout), corpus, replies, notes)
        scoring = {question.benchmark: CUSTOM for question in questions.questions}
        scoring |= {name: benchmark.SCORING for name, benchmark in benchmarks.items()}
        return _run_plan(replace(plan, scoring=scoring, derivations=derivations), options.seed, published)


def _questions_of(options: Options, read: ReadQuestions) -> QuestionSet:
    chosen = options.questions, options.benchmark, options.split, options.limit, options.seed
    rules = {"skip": options.on_error != "stop", "planned": bool(options.symbolic)}
    read_set = read(*chosen, **rules, all_passages=options.passages == "all")
    if read_set.skipped:
        note(f"rows kept apart in {names.REJECTS}: {len(read_set.skipped)}, the first: {read_set.skipped[0]}")
    if not any(question.is_annotated for question in read_set.questions):
        options.refuse_symbolic()
    if not options.drop_gold:
        return read_set
    if goldless := sum(not question.gold for question in read_set.questions):
        message = f"--drop-gold: {goldless} of {len(read_set.questions)} questions mark no gold passage"
        if goldless == len(read_set.questions):
            raise UserError(f'{message}; give passages "is_gold": true')
        note(f"{message}, and stay whole")
    reduced = tuple(remove_drawn_gold(question, options.seed) for question in read_set.questions)
    return replace(read_set, questions=reduced)


def _run_plan(plan: Evaluation, seed: int, published: Sequence[published_tables.PublishedScore]) -> str:
    if warning := _replaced_results(plan):
        note(warning)
    runs = evaluate(plan)
    results = write(plan, runs)
    comparison = report.write([outcome for run in runs for outcome in run.outcomes], plan.report, seed, published)
    # The questions as far as they are kept, so that faithfulness can be measured anew.
    questions = [QuestionRecord.from_question(q, plan.conditions).as_question for q in plan.questions]
    pairs = [pair for run in runs for pair in zip(run.outcomes, questions, strict=True)]
    earned, earned_text = faithfulness.measure_evaluation(pairs, plan.output, plan.report)
    write_atomically(plan.output / names.RESULTS, json_bytes({**results, "comparison": comparison.results, **earned}))
    return render_summary(plan, results, earned_text)


def _replaced_results(plan: Evaluation) -> str:
    """Return a warning about results with other settings that this run replaces, else ""."""
    file = plan.output / names.RESULTS
    try:
        earlier = _flatten(boundary.read_json(file)["settings"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    current = _flatten(json.loads(json.dumps(settings_of(plan))))
    changed = sorted(name for name in {*earlier, *current} if earlier.get(name) != current.get(name))
    if not changed:
        return ""
    return f"{file}: had other settings ({', '.join(changed)}); this run takes its place"


def _flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    inner = [settings.get(name) or {} for name in ("players", "options")]
    return {**settings, "players": None, "options": None, **inner[0], **inner[1]}


def render_summary(plan: Evaluation, results: Mapping[str, Any], earned: str = "") -> str:
    """Render a summary of scores, costs and files; ``earned`` is the text on faithfulness."""
    runs = results["runs"]
    sizes = ", ".join(f"{n:,} of {name}" for name, n in results["settings"]["questions"].items())
    means = " (EM, F1 and Acc are means of the benchmarks)" if sizes.count(" of ") > 1 else ""
    lines = [tables.text_table(_rows(runs)), "", f"questions: {sizes}{means}; calls and steps are a question's"]
    if conditions := [condition_text(name, value) for name, value in plan.conditions.items()]:
        lines.append(f"all of them with {', '.join(conditions)}")
    if followed_papers := plan.notes.get("as_published"):
        lines.append(f"as the papers have it, not we: {', '.join(followed_papers)}")
    lines += _tokens(runs)
    totals = {name: sum(run[ALL][name] for run in runs) for name in _WARNINGS}
    lines += [text.format(totals[name]) for name, text in _WARNINGS.items() if totals[name]]
    if totals["failed"] and (reasons := [c.last_error for c in plan.clients if c.last_error]):
        lines.append(f"the last that failed: {reasons[-1]}")
    if results["simulated"]:
        lines.append("simulated: an engine without a model took part, so no number is a result")
    lines += ["", earned] if earned else []
    files = [plan.output / names.TRAJECTORIES, plan.output / names.RESULTS, plan.report / names.COMPARISON]
    files += [page] if (page := plan.report / names.METHODS_PAGE).is_file() else []
    lines += ["", *map(str, files), "", "to read the traces:"]
    return "\n".join([*lines, f"safe-stepwise view_traces {plan.output}"])


def _rows(runs: Sequence[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """Return the table of scores; options and further roles have a column where runs differ, K and N always."""
    systems = [System.make(*(run[name] for name in ("method", "players", "options", "conditions"))) for run in runs]
    players_by_role = values_by_name(item for system in systems for item in system.other_players.items())
    roles = [role for role, players in players_by_role.items() if len(players) > 1]
    tried_values = values_by_name(item for run in runs for item in run["options"].items())
    option_names = [name for name in tried_values if name in LETTERS or name in find_differing(systems)]
    answering = {system.players[0][0] for system in systems}
    head = answering.pop() if len(answering) == 1 else "player"
    header = (head, "method", *roles, *(LETTERS.get(name, name) for name in option_names))
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


def _tokens(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for role in dict.fromkeys(role for run in runs for role in run[ALL]["prompt_tokens"]):
        kinds = ("prompt_tokens", "cached_tokens", "thought_tokens")
        prompt, cached, thought = (sum(run[ALL].get(kind, {}).get(role, 0) for run in runs) for kind in kinds)
        if prompt:
            spent = f"; {thought:,} reply tokens went into thoughts" if thought else ""
            lines.append(f"{role}: {prompt:,} prompt tokens, {cached / prompt:.1%} of them cached{spent}")
    return lines


_WARNINGS: Mapping[str, str] = {
    "unscored": "verdicts that could not be had: {:,}; they are left out of Acc",
    "unread": "verdicts on steps that could not be read: {:,}",
    "malformed": "replies that are no step: {:,}",
    "salvaged": "steps that had to be taken out of Markdown or other marks: {:,}",
    "failed": "trajectories that failed: {:,}; they count as wrong. Run the same command again: only they are asked",
}


def remove_drawn_gold(question: Question, seed: int = 0) -> Question:
    """Remove a gold passage, if there is one (SAFE v2, finding 5), by id and seed: the last would end most chains."""
    if not question.gold:
        return question
    place = choice_for(str(seed), question.id, "dropped gold") % len(question.gold)
    return remove_passage(question, question.gold[place][0])


def remove_passage(question: Question, number: int) -> Question:
    """Remove the passage with a number (from 1) from a question, and renumber those of its decomposition.

    >>> from safe_stepwise.records import Passage
    >>> pages = (Passage("Oru", ("A town.",), True), Passage("Vel", ("A river.",), True))
    >>> less = remove_passage(Question("q", "b", "test", "Where?", "Oru", passages=pages), 1)
    >>> [page.title for page in less.passages]
    ['Vel']
    """
    kept_numbers = [n for n in range(1, len(question.passages) + 1) if n != number]
    places = {old_number: place for place, old_number in enumerate(kept_numbers, 1)}
    hops = tuple(replace(hop, passage=places.get(hop.passage or 0)) for hop in question.decomposition)
    return replace(question, passages=tuple(question.passages[n - 1] for n in kept_numbers), decomposition=hops)
