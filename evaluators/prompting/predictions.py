"""Predictions in the form that each benchmark's official scorer reads, and the gold rows beside.

``predictions/SYSTEM/`` holds a file a benchmark, of strict answers (one that could not be read is empty),
``predictions/gold/`` the same questions as they were asked, in the benchmark's own shape: of a sample passages were
left out and moved, so that a file of the whole does not fit it. ``predictions/systems.json`` says which folder is
which system. What a method does not name (SAFE no facts and no triples) is empty.

==================  =====================================================================
HotpotQA            ``{"answer": {id: answer}, "sp": {id: [[title, sentence], ...]}}``
2WikiMultihopQA     the same with ``"evidence": {id: [[subject, relation, object], ...]}``
MuSiQue             a line a question: ``id, predicted_answer, predicted_support_idxs`` (the
                    passages' place, from 0; retrieved ones come behind the question's own),
                    ``predicted_answerable``
==================  =====================================================================

Benchmarks of our own and of others have HotpotQA's form, with evidence where they annotate it.
Other wordings of their answers stand in ``gold/BENCHMARK_id_aliases.json``, a line a question as
2WikiMultihopQA's scorer (v1.1) has them; HotpotQA's knows none.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluators.outcomes import Outcome, grouped
from evaluators.prompting.answers import Said
from safe_stepwise.records import Question, canonical_json
from safe_stepwise.store.files import json_bytes, remove_folder, whole_folder, write_atomically, write_lines

FOLDER, GOLD, INDEX = "predictions", "gold", "systems.json"
_LONGEST = 80
"""Characters of a folder's name."""
_LINES = "musique"
"""Whose form is a line a question."""
Asked = Sequence[tuple[Question, Outcome]]


def write(
    runs: Mapping[str, Asked], scoring: Mapping[str, str], folder: Path, systems: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write ``folder``/NAME/ for each system of ``runs``, all asked the same, and ``folder``/gold/.

    ``scoring`` names the benchmark whose form another one has, where that is not its own;
    ``systems`` say what each folder is of. What was in ``folder`` before is removed.
    """
    remove_folder(folder)
    with whole_folder(folder) as half:
        write_atomically(half / INDEX, json_bytes(systems, indent=1))
        for name, asked in runs.items():
            for benchmark, part in grouped(asked, _benchmark).items():
                form = scoring.get(benchmark, benchmark)
                _write(half / name, benchmark, form, predictions(part, form))
        for benchmark, part in grouped(next(iter(runs.values())), _benchmark).items():
            form = scoring.get(benchmark, benchmark)
            questions = [question for question, _ in part]
            _write(half / GOLD, benchmark, form, gold(questions, form))
            rows = [{"Q_id": q.id, "aliases": q.aliases, "demonyms": []} for q in questions if q.aliases]
            if rows and form != _LINES:
                write_lines(half / GOLD / f"{benchmark}_id_aliases.json", map(canonical_json, rows))


def predictions(asked: Asked, form: str) -> Any:
    """What the official scorer reads: one object, or MuSiQue's rows."""
    answers = [Said.of(question, o.trajectory, bool(o.options.get("evidence"))) for question, o in asked]
    if form == _LINES:
        return [*map(_row, answers)]
    content: dict[str, Any] = {
        "answer": {said.question.id: said.answer for said in answers},
        "sp": {said.question.id: said.cited_facts for said in answers},
    }
    if any(said.question.evidence for said in answers):
        content["evidence"] = {said.question.id: list(said.triples or ()) for said in answers}
    return content


def gold(questions: Iterable[Question], form: str) -> list[dict[str, Any]]:
    """The questions in the shape that the official scorer reads beside."""
    return [_musique(q) if form == _LINES else _hotpotqa(q) for q in questions]


def folders(names: Sequence[str]) -> list[str]:
    """A folder for each system by its name, of those that come more than once with a number.

    >>> folders(["cot samples=1", "direct", "cot samples=5", "safe", "safe"])
    ['cot-samples=1', 'direct', 'cot-samples=5', 'safe-1', 'safe-2']
    """
    plain = [re.sub(r"[^\w=.]+", "-", name)[:_LONGEST].strip("-.") for name in names]
    numbers = [plain[: place + 1].count(name) for place, name in enumerate(plain)]
    return [f"{name}-{n}" if plain.count(name) > 1 else name for name, n in zip(plain, numbers, strict=True)]


def _row(said: Said) -> dict[str, Any]:
    return {
        "id": said.question.id,
        "predicted_answer": said.answer,
        "predicted_support_idxs": [page - 1 for page in sorted((said.answer and said.passages) or ())],
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


def _benchmark(asked: tuple[Question, Outcome]) -> str:
    return asked[0].benchmark


def _write(folder: Path, benchmark: str, form: str, content: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if form == _LINES:
        write_lines(folder / f"{benchmark}.jsonl", map(canonical_json, content))
    else:
        write_atomically(folder / f"{benchmark}.json", json_bytes(content, indent=1))
