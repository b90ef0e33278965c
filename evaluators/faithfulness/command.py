"""Measure the faithfulness of an evaluation, as it ends or later, and write the files of the measures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import safe_stepwise
from evaluators import outcomes, report_page
from evaluators.faithfulness import judged_outcomes as records
from evaluators.faithfulness import tables
from evaluators.faithfulness.judged_outcomes import JudgedOutcome, Pair, compare_pairs, summarize_systems
from evaluators.faithfulness.measuring import DEFAULT, Options, measure
from evaluators.outcomes import Outcome
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, QuestionSet, canonical_json
from safe_stepwise.store import code, files, names

KEY = "faithfulness"
"""The key of faithfulness in ``results.json``."""
ACCEPTED = "accepted_unfaithful.jsonl"
OWNED = (names.FAITHFULNESS, names.CHAINS, ACCEPTED)
"""Files beside those of an evaluation."""


def measure_evaluation(pairs: Sequence[Pair], folder: Path, report: Path) -> tuple[dict[str, Any], str]:
    """Measure an evaluation as it ends; return its entry of ``results.json`` and a text (empty without evidence)."""
    if (record := write_measures(pairs, folder, report)) is None:
        return {}, ""
    return {KEY: record}, f"were right answers earned?\n{tables.render_text(record)}"


def write_measures(
    pairs: Sequence[Pair], folder: Path, report: Path, options: Options = DEFAULT, source: QuestionSet | None = None
) -> dict[str, Any] | None:
    """Measure outcomes, write the files and the report's page, and return the content of ``faithfulness.json``.

    ``pairs`` are outcomes with their questions. Without evidence, remove the files and return None. As
    ``faithfulness.json`` marks complete measures, it is removed first and written last. ``source`` is recorded as the
    evidence's, if the evaluation kept none.
    """
    (folder / names.FAITHFULNESS).unlink(missing_ok=True)
    if not any(records.is_grounded(question) for _, question in pairs):
        for name in OWNED:
            (folder / name).unlink(missing_ok=True)
        files.write_files(report, tables.FILES, {})
        return None
    all_judged = measure(pairs, options)
    record = _make_record(pairs, all_judged, options, source)
    indices = records.index_systems(all_judged)
    rows = (records.row_of(judged, indices[judged.system, judged.selection]) for judged in all_judged)
    files.write_lines(folder / names.CHAINS, map(canonical_json, rows))
    files.write_lines(folder / ACCEPTED, map(canonical_json, records.list_accepted_unfaithful(all_judged)))
    files.write_files(report, tables.FILES, tables.render_files(record))
    files.write_atomically(folder / names.FAITHFULNESS, files.json_bytes(record))
    return record


def _make_record(
    pairs: Sequence[Pair], all_judged: Sequence[JudgedOutcome], options: Options, source: QuestionSet | None
) -> dict[str, Any]:
    questions = {(q.benchmark, q.id): records.is_grounded(q) for _, q in pairs}
    return {
        "version": safe_stepwise.__version__,
        "simulated": any(outcome.simulated for outcome, _ in pairs),
        "settings": {
            "rules": [*options.rules],
            "retrieval": options.retrieval,
            "sigma": options.sigma,
            "kb": options.knowledge.record if options.knowledge else None,
            "evidence": {"source": source.source, "source_sha256": source.digest} if source else "kept",
            "questions": len(questions),
            "without_evidence": sum(not grounded for grounded in questions.values()),
            "code_sha256": code.code_digest(measure.__module__),
        },
        "systems": summarize_systems(all_judged, options.rules),
        "paired": compare_pairs(all_judged, options.rules),
    }


def measure_folder(
    folder: Path, options: Options, read_source: Callable[[Mapping[str, Any]], QuestionSet] | None = None
) -> str:
    """Measure the evaluation in ``folder``, write the files there, and return the summary.

    A folder without evidence needs ``read_source``: it gets the evaluation's settings and reads the questions with
    their evidence. Raise ``UserError`` for a folder without an evaluation, or if there is no evidence.
    """
    results = outcomes.read_results(folder)
    # A release has its tables beside the trajectories.
    report = folder if (folder / names.COMPARISON).is_file() else folder / names.REPORT
    with files.lock_folder(folder, "measurement", (*OWNED, *tables.FILES, names.RESULTS, names.REPORT)):
        source = read_source(results["settings"]) if read_source else None
        pairs = [*read_pairs(folder, source)]
        if not pairs:
            raise UserError(f"{folder / names.TRAJECTORIES}: holds no trajectory; run the evaluation again")
        if not any(records.is_grounded(question) for _, question in pairs):
            raise UserError(
                f"{folder / names.QUESTIONS}: keeps no evidence to judge by; name the questions that the evaluation "
                "was given, of a benchmark that annotates paths: --questions SOURCE (HotpotQA annotates none)"
            )

        measured = write_measures(pairs, folder, report, options, source)
        report_page.write(report)
        files.write_atomically(folder / names.RESULTS, files.json_bytes({**results, KEY: measured}))
    assert measured is not None
    paths = (folder / names.FAITHFULNESS, folder / names.CHAINS, folder / ACCEPTED, report / tables.PAGE)
    lines = [tables.render_text(measured)]
    if measured["simulated"]:
        lines.append("simulated: an engine without a model took part, so no number is a result")
    return "\n".join([*lines, "", *map(str, paths)])


def read_pairs(folder: Path, source: QuestionSet | None = None) -> Iterator[Pair]:
    """Yield each outcome in a folder with its question; questions that share an id keep their order.

    ``source`` adds annotations to questions without evidence. Raise ``UserError`` for files that can't be read, or
    that lack the question of an outcome.
    """

    def key_of(outcome: Outcome) -> tuple[str, str]:
        system = canonical_json([outcome.method, outcome.players, outcome.options, outcome.conditions])
        return _key(outcome.benchmark, outcome.question_id, outcomes.asking_conditions(outcome.conditions)), system

    keyed = outcomes.numbered(outcomes.read_questions(folder), lambda q: _key(q.benchmark, q.id, q.conditions))
    annotated = {(q.benchmark, q.id): q for q in source.questions} if source else {}
    by_key = {key: _annotate(record.as_question, annotated, source) for key, record in keyed}
    for ((key, _), number), outcome in outcomes.numbered(outcomes.read_outcomes(folder), key_of):
        if (question := by_key.get((key, number))) is None:
            raise UserError(
                f"{folder}: {outcome.benchmark} {outcome.question_id} was answered, and is not "
                f"in {names.QUESTIONS}; make it anew with safe-stepwise evaluate_stepwise"
            )
        yield outcome, question


def _key(benchmark: str, id_: str, conditions: Mapping[str, Any]) -> str:
    return canonical_json([benchmark, id_, conditions])


def _annotate(question: Question, by_key: Mapping[tuple[str, str], Question], source: QuestionSet | None) -> Question:
    """Add annotations to a question without evidence from the ``source``'s questions, if it is one of them."""
    annotated = by_key.get((question.benchmark, question.id))
    if source is None or annotated is None or records.is_grounded(question):
        return question
    if annotated.question != question.question:
        raise UserError(
            f"{source.source}: under {question.benchmark} {question.id} stands another question than "
            "the one that was asked; give --questions what the evaluation was given"
        )
    return replace(
        question,
        evidence=annotated.evidence,
        decomposition=annotated.decomposition,
        kind=question.kind or annotated.kind,
    )
