"""An evaluation from its options to what is said of it: run, written down, compared, summed up."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluators.comparison import report
from evaluators.comparison.score_tables import choose_tables
from evaluators.comparison.scores import AVERAGE
from evaluators.comparison.systems import LETTERS, System, condition_text, differing, values_by_name
from evaluators.derivations import read_derivations
from evaluators.faithfulness import command as faithfulness
from evaluators.faithfulness.tables import FILES as PAGES
from evaluators.outcomes import METRICS, QuestionRecord
from evaluators.prompting import predictions
from evaluators.run.evaluation import Evaluation, evaluate
from evaluators.run.options import Options
from evaluators.run.results import ALL, TRUTH, settings_of, write
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.commands.ending import warn
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.open import Opener
from safe_stepwise.records import Question, QuestionSet, Triple
from safe_stepwise.scoring import CUSTOM
from safe_stepwise.store import files, names
from safe_stepwise.store.boundary import read_json
from safe_stepwise.store.files import json_bytes, sha256_of, write_atomically, write_parts
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import text_table

_FILES = (
    *(names.JOURNAL, names.TRAJECTORIES, names.QUESTIONS, names.RESULTS, names.REJECTS),
    *(TRUTH, predictions.FOLDER, *faithfulness.OWNED),
)
"""What an evaluation writes, beside its report."""
ReadQuestions = Callable[..., QuestionSet]
"""`builders.verified.evaluation_questions.read`."""


def run_evaluation(options: Options, read: ReadQuestions, benchmarks: Mapping[str, Any]) -> str:
    """Evaluate, and return what there is to say; raises ``UserError`` for what the user can mend.

    ``benchmarks`` are those that ``read`` knows; the ``SCORING`` of each says whose official scorer counts.
    """
    options.check()
    for note in options.faultless:
        warn(note)
    printed = choose_tables(options.published)
    questions = _questions_of(options, read, benchmarks)
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
    with files.exclusive(options.output, owned=(*_FILES, *pages)), options.replies() as replies:
        _keep_rejects(options, questions)
        plan = options.plan(questions.questions, Opener(options.timeout), corpus, replies, notes)
        scoring = {name: benchmark.SCORING for name, benchmark in benchmarks.items()}
        return _carry_out(replace(plan, scoring=scoring, derivations=derivations), options.seed, printed)


def _questions_of(options: Options, read: ReadQuestions, benchmarks: Iterable[str]) -> QuestionSet:
    """The questions that options choose; raises ``UserError`` where there are none to ask."""
    read_set = read(
        options.questions,
        [one_of(name, [*benchmarks, CUSTOM], "--benchmark") for name in options.benchmark],
        options.split,
        options.limit,
        options.seed,
        skip=options.on_error != "stop",
        planned=bool(options.symbolic),
        all_passages=options.passages == "all",
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


def _carry_out(plan: Evaluation, seed: int, printed: Sequence[PublishedScore]) -> str:
    if earlier := _earlier(plan):
        warn(earlier)
    runs = evaluate(plan)
    results = write(plan, runs)
    folder = report_folder(plan)
    compared = report.write([outcome for run in runs for outcome in run.outcomes], folder, seed, printed)
    # The questions as far as they are kept, so that faithfulness can be measured anew.
    kept = [QuestionRecord.from_question(question, plan.conditions).as_question for question in plan.questions]
    pairs = [pair for run in runs for pair in zip(run.outcomes, kept, strict=True)]
    earned, earned_text = faithfulness.measure_evaluation(pairs, plan.output, folder)
    whole = {**results, "comparison": compared.results, **earned}
    write_atomically(plan.output / names.RESULTS, json_bytes(whole))
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
    differing = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if not differing:
        return ""
    return f"{file}: had other settings ({', '.join(differing)}); this run takes its place"


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
    systems = [System.make(*(run[name] for name in ("method", "players", "options", "conditions"))) for run in runs]
    several = values_by_name(item for system in systems for item in system.other_players.items())
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
                *(system.other_players.get(role, "-") for role in roles),
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
            thought = sum(run[ALL].get("thought_tokens", {}).get(role, 0) for run in runs)
            spent = f"; {thought:,} reply tokens went into thoughts" if thought else ""
            lines.append(f"{role}: {prompt:,} prompt tokens, {cached / prompt:.1%} of them cached{spent}")
    return lines


_COUNTED: Mapping[str, str] = {
    "unscored": "verdicts that could not be had: {:,}; they are left out of Acc",
    "unread": "verdicts on steps that could not be read: {:,}",
    "malformed": "replies that are no step: {:,}",
    "salvaged": "steps that had to be taken out of Markdown: {:,}",
    "failed": "trajectories that failed: {:,}; they count as wrong. Run the same command again: only they are asked",
}


def without_drawn_gold(question: Question, seed: int = 0) -> Question:
    """The question without one of its gold passages, if it has any (SAFE v2, finding 5).

    Which one is drawn by its id and the seed: the last would be the end of most chains.
    """
    if not question.gold:
        return question
    drawn = choice_for(str(seed), question.id, "dropped gold") % len(question.gold)
    return without_passage(question, question.gold[drawn][0])


def without_passage(question: Question, number: int) -> Question:
    """A question without one of its passages (from 1); annotations count what is left.

    >>> from safe_stepwise.records import Passage
    >>> pages = (Passage("Oru", ("A town.",), True), Passage("Vel", ("A river.",), True))
    >>> less = without_passage(Question("q", "b", "test", "Where?", "Oru", passages=pages), 1)
    >>> [page.title for page in less.passages]
    ['Vel']
    """
    left = [n for n in range(1, len(question.passages) + 1) if n != number]
    new = {old: at for at, old in enumerate(left, 1)}

    def moved(triple: Triple) -> Triple:
        sentence = None if triple.passage == number else triple.sentence
        return replace(triple, passage=new.get(triple.passage or 0), sentence=sentence)

    return replace(
        question,
        passages=tuple(question.passages[n - 1] for n in left),
        evidence=tuple(map(moved, question.evidence)),
        decomposition=tuple(replace(hop, passage=new.get(hop.passage or 0)) for hop in question.decomposition),
    )
