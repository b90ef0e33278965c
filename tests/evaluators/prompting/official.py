"""What prompting methods answered, in the form that each benchmark's official scorer reads, and the gold rows.

``SYSTEM/`` holds one file per benchmark with strict answers (an unreadable answer is an empty string), ``gold/`` the
gold rows of these questions. Fields that a method does not name are empty.

==================  =====================================================================
HotpotQA            ``{"answer": {id: answer}, "sp": {id: [[title, sentence], ...]}}``
2WikiMultihopQA     the same with ``"evidence": {id: [[subject, relation, object], ...]}``
MuSiQue             one line per question: ``id, predicted_answer, predicted_support_idxs`` (numbers
                    of passages from 0; retrieved ones come after the question's own),
                    ``predicted_answerable``
==================  =====================================================================

Other wordings of answers are in ``gold/BENCHMARK_id_aliases.json``, one line per question in the form of
2WikiMultihopQA's scorer (v1.1); HotpotQA's scorer reads none.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from evaluators.outcomes import Outcome, grouped
from evaluators.prompting.measures import SupportedAnswer
from safe_stepwise.records import Question, canonical_json
from safe_stepwise.store.files import json_bytes, write_atomically, write_lines

GOLD = "gold"
_LINES_BENCHMARK = "musique"
"""The benchmark whose form is one line per question."""
Answered = Sequence[tuple[Question, Outcome]]


def write(name: str, answered: Answered, folder: Path) -> None:
    """Write ``folder``/NAME/ for a system's answers, and ``folder``/gold/."""
    for benchmark, group in grouped(answered, _benchmark).items():
        _write(folder / name, benchmark, format_predictions(group, benchmark))
        questions = [question for question, _ in group]
        _write(folder / GOLD, benchmark, gold_rows(questions, benchmark))
        rows = [{"Q_id": q.id, "aliases": q.aliases, "demonyms": []} for q in questions]
        write_lines(folder / GOLD / f"{benchmark}_id_aliases.json", map(canonical_json, rows))


def format_predictions(answered: Answered, benchmark: str) -> Any:
    """Return what the official scorer reads: one object, or MuSiQue's rows."""
    answers = [
        SupportedAnswer.from_trajectory(question, o.trajectory, bool(o.options.get("evidence")))
        for question, o in answered
    ]
    if benchmark == _LINES_BENCHMARK:
        return [*map(_row, answers)]
    content: dict[str, Any] = {
        "answer": {support.question.id: support.answer for support in answers},
        "sp": {support.question.id: support.cited_facts for support in answers},
    }
    if any(support.question.evidence for support in answers):
        content["evidence"] = {support.question.id: list(support.triples or ()) for support in answers}
    return content


def gold_rows(questions: Iterable[Question], benchmark: str) -> list[dict[str, Any]]:
    """Return the questions in the shape of the official scorer's gold file."""
    return [_musique(q) if benchmark == _LINES_BENCHMARK else _hotpotqa(q) for q in questions]


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


def _write(folder: Path, benchmark: str, content: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if benchmark == _LINES_BENCHMARK:
        write_lines(folder / f"{benchmark}.jsonl", map(canonical_json, content))
    else:
        write_atomically(folder / f"{benchmark}.json", json_bytes(content, indent=1))
