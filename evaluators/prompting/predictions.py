"""Writes predictions in the form that each benchmark's official scorer reads, and the gold rows in the same form.

``predictions/SYSTEM/`` holds one file per benchmark with strict answers (an unreadable answer is an empty string).
``predictions/gold/`` holds the gold rows of these questions: a sample drops and moves passages, so the benchmark's
own file does not fit it. ``predictions/systems.json`` says which folder is which system. Fields that a method does
not name (SAFE names no facts and no triples) are empty.

==================  =====================================================================
HotpotQA            ``{"answer": {id: answer}, "sp": {id: [[title, sentence], ...]}}``
2WikiMultihopQA     the same with ``"evidence": {id: [[subject, relation, object], ...]}``
MuSiQue             one line per question: ``id, predicted_answer, predicted_support_idxs`` (numbers
                    of passages from 0; retrieved ones come after the question's own),
                    ``predicted_answerable``
==================  =====================================================================

All other benchmarks use HotpotQA's form, with evidence if they annotate it. Other wordings of their
answers are in ``gold/BENCHMARK_id_aliases.json``, one line per question in the form
 of 2WikiMultihopQA's scorer (v1.1); HotpotQA's scorer reads none.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluators.outcomes import Outcome, grouped
from evaluators.prompting.answers import SupportedAnswer
from safe_stepwise.records import Question, canonical_json
from safe_stepwise.store.files import json_bytes, remove_folder, write_atomically, write_folder, write_lines

FOLDER, GOLD, INDEX = "predictions", "gold", "systems.json"
_MAX_NAME_CHARS = 80
_LINES_BENCHMARK = "musique"
"""The benchmark whose form is one line per question."""
Answered = Sequence[tuple[Question, Outcome]]


def write(
    runs: Mapping[str, Answered], scoring: Mapping[str, str], folder: Path, systems: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write ``folder``/NAME/ for each system of ``runs``, which all answered the same questions, and ``folder``/gold/.

    ``scoring`` maps a benchmark to the one whose form it has, if that is not its own;
    ``systems`` describes each folder's system. Earlier content of ``folder`` is removed.
    """
    remove_folder(folder)
    with write_folder(folder) as partial:
        write_atomically(partial / INDEX, json_bytes(systems, indent=1))
        for name, answered in runs.items():
            for benchmark, group in grouped(answered, _benchmark).items():
                form = scoring.get(benchmark, benchmark)
                _write(partial / name, benchmark, form, format_predictions(group, form))
        for benchmark, group in grouped(next(iter(runs.values())), _benchmark).items():
            form = scoring.get(benchmark, benchmark)
            questions = [question for question, _ in group]
            _write(partial / GOLD, benchmark, form, gold_rows(questions, form))
            rows = [{"Q_id": q.id, "aliases": q.aliases, "demonyms": []} for q in questions if q.aliases]
            if rows and form != _LINES_BENCHMARK:
                write_lines(partial / GOLD / f"{benchmark}_id_aliases.json", map(canonical_json, rows))


def format_predictions(answered: Answered, form: str) -> Any:
    """Return what the official scorer reads: one object, or MuSiQue's rows."""
    answers = [
        SupportedAnswer.from_trajectory(question, o.trajectory, bool(o.options.get("evidence")))
        for question, o in answered
    ]
    if form == _LINES_BENCHMARK:
        return [*map(_row, answers)]
    content: dict[str, Any] = {
        "answer": {support.question.id: support.answer for support in answers},
        "sp": {support.question.id: support.cited_facts for support in answers},
    }
    if any(support.question.evidence for support in answers):
        content["evidence"] = {support.question.id: list(support.triples or ()) for support in answers}
    return content


def gold_rows(questions: Iterable[Question], form: str) -> list[dict[str, Any]]:
    """Return the questions in the shape of the official scorer's gold file."""
    return [_musique(q) if form == _LINES_BENCHMARK else _hotpotqa(q) for q in questions]


def name_folders(names: Sequence[str]) -> list[str]:
    """Return a folder's name for each system; equal names get a number.

    >>> name_folders(["cot samples=1", "direct", "cot samples=5", "safe", "safe"])
    ['cot-samples=1', 'direct', 'cot-samples=5', 'safe-1', 'safe-2']
    """
    plain = [re.sub(r"[^\w=.]+", "-", name)[:_MAX_NAME_CHARS].strip("-.") for name in names]
    numbers = [plain[: place + 1].count(name) for place, name in enumerate(plain)]
    return [f"{name}-{n}" if plain.count(name) > 1 else name for name, n in zip(plain, numbers, strict=True)]


def _row(support: SupportedAnswer) -> dict[str, Any]:
    return {
        "id": support.question.id,
        "predicted_answer": support.answer,
        "predicted_support_idxs": [page - 1 for page in sorted((support.answer and support.passages) or ())],
        "predicted_answerable": True,
    }


def _hotpotqa(question: Question) -> dict[str, Any]:
    return {
        "_id": question.id,
        "question": question.question,
        "answer": question.answer,
        "answer_id": question.id if question.aliases else "",
        "supporting_facts": [[fact.title, fact.sentence] for fact in question.supporting_facts],
        "evidences": [[t.head, t.relation, t.tail] for t in question.evidence],
        "evidences_id": [],
        "context": [[page.title, list(page.sentences)] for page in question.passages],
    }


def _musique(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "question": question.question,
        "answer": question.answer,
        "answer_aliases": list(question.aliases),
        "answerable": True,
        "paragraphs": [
            {"idx": n, "title": page.title, "paragraph_text": page.text,
             "is_supporting": page.is_gold}
            for n, page in enumerate(question.passages)
        ],
    }  # fmt: skip


def _benchmark(item: tuple[Question, Outcome]) -> str:
    return item[0].benchmark


def _write(folder: Path, benchmark: str, form: str, content: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if form == _LINES_BENCHMARK:
        write_lines(folder / f"{benchmark}.jsonl", map(canonical_json, content))
    else:
        write_atomically(folder / f"{benchmark}.json", json_bytes(content, indent=1))
