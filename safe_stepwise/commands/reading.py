"""Reads a user's own files: the passages of one question, or rows of many questions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.formats import FORMATS
from safe_stepwise.formats.chains import Chain, check_chain
from safe_stepwise.metric.input import plain_passage
from safe_stepwise.records import Passage, Question, identity
from safe_stepwise.store import boundary, rows, sizes, terminal

EXAMPLES = Path(__file__).with_name("examples.yaml")
_ANNOTATIONS: Mapping[str, str] = {"decomposition": "musique", "evidence": "2wikimultihopqa"}
"""A column of annotations, and the benchmark that has it; all other rows are read as HotpotQA's."""
MAX_SENTENCES = 10_000
"""Sentences of a passage."""
_OVER_LINES = re.compile(r"\s*(?:\[\s*?(?:\{|\n)|\{[ \t\r]*\n)")
"""How a list of objects, or an indented object, opens; no line of JSONL does."""
_LISTS = ("aliases", "supporting_facts", "evidence", "decomposition")


def examples() -> list[dict[str, Any]]:
    """Read the package's example rows: questions with passages and annotations."""
    return list(boundary.read_yaml(EXAMPLES))


def read_values(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield a file's JSON values after their places (``FILE, line 3``); raises ``UserError`` for bad JSON."""
    text = _read_text(file)
    if file.suffix == ".json" or _OVER_LINES.match(text):
        try:
            content = boundary.parse_json(text, unique=True)
        except ValueError as error:
            raise UserError(f"{file}: is no JSON ({error})") from None
        members = content if isinstance(content, list) else [content]
        yield from ((f"{file}, number {n}", member) for n, member in enumerate(members, 1))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                value = boundary.parse_json(line, unique=True)
            except ValueError as error:
                raise UserError(f"{file}, line {number}: is no JSON ({error})") from None
            yield f"{file}, line {number}", value


def read_rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON objects of a file as `read_values` does; raises ``UserError`` for other values, or no rows."""
    is_empty = True
    for place, row in read_values(file):
        if not isinstance(row, dict):
            raise UserError(f"{place}: is no JSON object")
        is_empty = False
        yield place, row
    if is_empty:
        raise UserError(f"{file}: has no rows")


def own_row(place: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of any form that `rows.own_columns` knows, with our columns besides its own."""
    with at_place(place, RowError):
        return {**row, **rows.with_answer(rows.own_columns(row))}


def read_chains(file: Path, format: str) -> Iterator[tuple[str, Chain]]:
    """Yield the chains of a file in one of the `FORMATS`, each after its place; raises ``UserError`` for a bad row."""
    for place, row in read_rows(file):
        with at_place(place, ValueError):
            chain = check_chain(FORMATS[format].read(row))
        yield place, chain


_COLUMNS: Mapping[str, tuple[type, str, str]] = {
    "question": (str, "a question", "a text"),
    "passages": (list, "passages", "a list"),
    "steps": (list, "steps", "a list of texts"),
}


def check_columns(place: str, row: Mapping[str, Any], *names: str) -> None:
    """Raise ``UserError`` with ``place`` and all named columns that a row lacks, or has empty or of another type."""
    faults = []
    if lacking := ["{1} ({2})".format(*_COLUMNS[name]) for name in names if row.get(name) is None]:
        keys = terminal.printable(", ".join(row))[:200]
        faults.append(f"lacks {', '.join(lacking)}" + (f" and has {keys}" if keys else ""))
        faults += ["a chat is read by safe-stepwise import --format openai"] if "messages" in row else []
    for name in names:
        kind, _, form = _COLUMNS[name]
        value = row.get(name)
        if value is not None and not isinstance(value, kind):
            faults.append(f"{name} is not {form}")
        elif value is not None and not (value.strip() if isinstance(value, str) else value):
            faults.append(f"{name} is empty")
    if faults:
        raise UserError(f"{place}: {'; '.join(faults)}")


def parse_question(place: str, row: Mapping[str, Any], benchmark: str | None = None) -> Question:
    """Parse the question of a row in our columns (`own_row`), of which ``question`` and ``passages`` are required.

    Annotations (``supporting_facts``, ``evidence``, ``decomposition``) have the form of the published configs.
    ``benchmark`` replaces that of the row. Raises ``UserError`` with ``place`` for a row that is not valid.
    """
    check_columns(place, row, "question", "passages")
    pages = [
        {"is_gold": bool(isinstance(page, Mapping) and page.get("is_gold"))}
        | plain_passage(page, f"{place}, passage {n}")
        for n, page in enumerate(row["passages"], 1)
    ]
    annotated = next((b for name, b in _ANNOTATIONS.items() if row.get(name)), "hotpotqa")
    defaults = {"id": identity(row["question"]), "answer": "", "kind": "", "hops": 0, "split": "", "paths": ()}
    lists = {name: row.get(name) or [] for name in _LISTS}
    content = {**defaults, "benchmark": annotated, **row, **lists, "passages": pages}
    content |= {"benchmark": benchmark} if benchmark else {}
    columns = {field.name: content[field.name] for field in fields(Question)}
    with at_place(place, ValueError):
        question = boundary.read(Question, columns, "row")
    if not all(0 <= fact.sentence < MAX_SENTENCES for fact in question.supporting_facts):
        raise UserError(f"{place}: row.supporting_facts: a sentence's number is too low or high")
    with at_place(place, RowError):
        sizes.check_size(question)
    return question


def read_question(file: Path, question: str | None) -> Question:
    """Read a question's passages from a file: JSON, JSONL, or text with a blank line after each passage.

    In a file of rows, ``question`` selects the row, with its annotations; None selects the only row. Raises
    ``UserError`` for a file without passages, and if no row, or more than one, is selected.
    """
    if file.suffix not in (".json", ".jsonl"):
        blocks = re.split(r"\n\s*\n", _read_text(file).replace("\r", ""))
        pages = [Passage("", (" ".join(block.split()),)) for block in blocks if block.strip()]
    else:
        values = [(place, own_row(place, v) if isinstance(v, Mapping) else v) for place, v in read_values(file)]
        if values and all(isinstance(value, Mapping) and "passages" in value for _, value in values):
            chosen = [row for row in values if question in (None, row[1].get("question"))]
            if not chosen or (question is None and len(chosen) > 1):
                raise UserError(f"{file}: has {len(values)} rows; give --question in the words of one of them")
            return parse_question(*chosen[0])
        pages = [parse_passage(value, place) for place, value in values]
    if not pages:
        raise UserError(f"{file}: has no passages")
    if question is None:
        raise UserError("give --question, too: the passages alone ask nothing")
    return unannotated_question(question, pages)


def unannotated_question(question: str, pages: Sequence[Passage]) -> Question:
    """Make a question without annotations from its text and passages; raises ``UserError`` if it is too large."""
    name = identity([question, [[page.title, page.text] for page in pages]])
    plain = Question(name, "hotpotqa", "", question, "", passages=tuple(pages))
    with at_place("the question", RowError):
        sizes.check_size(plain)
    return plain


def parse_passage(value: Any, place: str) -> Passage:
    """Parse a passage in one of the forms of `plain_passage`; raises ``UserError`` with ``place`` for others."""
    page = plain_passage(value, place)
    return Passage(page["title"], tuple(page["sentences"]))


def _read_text(file: Path) -> str:
    try:
        return boundary.read_content(input_path(file), boundary.MAX_JSON_BYTES).decode("utf-8-sig")
    except ValueError as error:
        raise UserError(f"{file}: cannot be read ({error}); save it as UTF-8") from None


def input_path(file: Path) -> Path:
    """Return the path to read for a file that a command names; ``-`` is standard input."""
    return Path("/dev/stdin") if str(file) == "-" else file
