"""What the commands read: passages of one question, and rows of many, from a user's own files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.metric.input import plain_passage
from safe_stepwise.records import Passage, Question, identity
from safe_stepwise.store import boundary
from safe_stepwise.store.boundary import MOST_JSON, parse_json, read_content
from safe_stepwise.store.sizes import check_size
from safe_stepwise.store.terminal import printable

EXAMPLES = Path(__file__).with_name("examples.yaml")
_ANNOTATIONS: Mapping[str, str] = {"decomposition": "musique", "evidence": "2wikimultihopqa"}
"""What a row has, and whose rows have it; all others are read as HotpotQA's."""
MOST_SENTENCES = 10_000
"""Of a passage."""
MOST_TOLD = 3
"""Questions of a file that a message shows."""
_LISTS = ("aliases", "supporting_facts", "evidence", "decomposition")


def examples() -> list[dict[str, Any]]:
    """Rows of questions of our own making, with their annotations, to try things out."""
    rows: list[dict[str, Any]] = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    return rows


def lines_of(file: Path) -> Iterator[tuple[str, Any]]:
    """The values of a JSONL file, or the members of a JSON list, each with its place.

    Raises ``UserError`` for a file, or a line, that can't be read.
    """
    text = _text(file)
    if file.suffix == ".json":
        try:
            whole = parse_json(text)
        except ValueError as error:
            raise UserError(f"{file}: is no JSON ({error})") from None
        parts = whole if isinstance(whole, list) else [whole]
        yield from ((f"{file}, number {n}", part) for n, part in enumerate(parts, 1))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                value = parse_json(line)
            except ValueError as error:
                raise UserError(f"{file}, line {number}: is no JSON ({error})") from None
            yield f"{file}, line {number}", value


def rows_of(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of such a file, each with its place; ``UserError`` for anything else."""
    found = False
    for where, row in lines_of(file):
        if not isinstance(row, dict):
            raise UserError(f"{where}: is no JSON object")
        found = True
        yield where, row
    if not found:
        raise UserError(f"{file}: has no rows")


def question_in(where: str, row: Mapping[str, Any], benchmark: str | None = None) -> Question:
    """The question of a row, of which only ``question`` and ``passages`` are needed.

    Annotations (``supporting_facts``, ``evidence``, ``decomposition``) are read as they stand in
    the published configs. Raises ``UserError`` for a row that is none, with its place.
    """
    if not isinstance(row.get("question"), str) or not isinstance(row.get("passages"), list):
        raise UserError(f"{where}: lacks a question (a text) or passages (a list)")
    if not row["passages"]:
        raise UserError(f"{where}: its passages are an empty list")
    pages = [
        {"is_gold": bool(isinstance(page, Mapping) and page.get("is_gold"))}
        | plain_passage(page, f"{where}, passage {n}")
        for n, page in enumerate(row["passages"], 1)
    ]
    whose = next((b for name, b in _ANNOTATIONS.items() if row.get(name)), "hotpotqa")
    told = {"id": identity(row["question"]), "answer": "", "kind": "", "hops": 0, "split": ""}
    lists = {name: row.get(name) or [] for name in _LISTS}
    known = {**told, "benchmark": whose, **row, **lists, "passages": pages}
    if benchmark:
        known["benchmark"] = benchmark
    columns = {field.name: known[field.name] for field in fields(Question)}
    with at_place(where, ValueError):
        found = boundary.read(Question, columns, "row")
    if not all(0 <= fact.sentence < MOST_SENTENCES for fact in found.supporting_facts):
        raise UserError(f"{where}: row.supporting_facts: a sentence's number is too low or high")
    return _of_real_size(found, where)


def _of_real_size(question: Question, where: str) -> Question:
    """The question; raises ``UserError`` for one that is larger than anything real (`store.sizes`)."""
    with at_place(where, RowError):
        check_size(question)
    return question


def question_from(file: Path, question: str | None) -> Question:
    """The question with the passages of a file: JSON, JSONL, or text with blank lines between.

    A file of rows gives the passages, and the annotations, of its row with that question, or of
    its only one. Raises ``UserError`` for a file without any.
    """
    if file.suffix not in (".json", ".jsonl"):
        return _asked(question, _paragraphs(file))
    found = list(lines_of(file))
    if not found:
        raise UserError(f"{file}: has no passages")
    if all(isinstance(value, Mapping) and "passages" in value for _, value in found):
        rows = [row for row in found if question in (None, row[1].get("question"))]
        if not rows or (question is None and len(rows) > 1):
            raise UserError(f"{file}: {_questions([row.get('question') for _, row in found])}")
        return question_in(*rows[0])
    return _asked(question, [passage_of(value, where) for where, value in found])


def _questions(questions: Sequence[Any]) -> str:
    """What to say of a file of rows of which none has the question that is meant."""
    texts = [text for text in questions if isinstance(text, str)]
    if not texts:
        return "no row has a question (a text)"
    choice = [*map(printable, texts[:MOST_TOLD]), *(["..."] if len(texts) > MOST_TOLD else [])]
    return f"has {len(questions)} rows; give --question as one has it: {'; '.join(choice)}"


def _asked(question: str | None, pages: list[Passage]) -> Question:
    if question is None:
        raise UserError("give --question, too: the passages alone ask nothing")
    return unannotated(question, pages)


def unannotated(question: str, pages: Sequence[Passage]) -> Question:
    """A question of which nothing is known but the passages to answer it from; ``UserError`` where it is too large."""
    name = identity([question, [[page.title, page.text] for page in pages]])
    return _of_real_size(Question(name, "hotpotqa", "", question, "", passages=tuple(pages)), "the question")


def passage_of(value: Any, where: str) -> Passage:
    """A passage as users write it; raises ``UserError`` with its place."""
    page = plain_passage(value, where)
    return Passage(page["title"], tuple(page["sentences"]))


def _text(file: Path) -> str:
    try:
        return read_content(file, MOST_JSON).decode("utf-8-sig")
    except ValueError as error:
        raise UserError(f"{file}: cannot be read ({error})") from None


def _paragraphs(file: Path) -> list[Passage]:
    text = _text(file)
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.replace("\r", ""))]
    pages = [Passage("", (part,)) for part in parts if part]
    if not pages:
        raise UserError(f"{file}: has no passages")
    return pages
