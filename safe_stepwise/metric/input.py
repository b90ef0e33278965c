"""Checks the columns of the metric's input; a value of another form raises a `UserError` that names its row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.records import Passage, Question, canonical_json, identity
from safe_stepwise.scoring import exact_match
from safe_stepwise.store import codec, sizes


def checked_texts(texts: Sequence[Any], name: str) -> list[str]:
    """Return a column of texts as a list; raises ``UserError`` for other values, half surrogate pairs, or no text."""
    if isinstance(texts, str):
        raise UserError(f"{name} is one string: give a list of strings")
    items = list(texts)
    for number, text in enumerate(items):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise UserError(f"{name}[{number}] is no string but of type {kind}: {_short(text)}")
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            mend = "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
            raise UserError(f"{name}[{number}] holds half of a surrogate pair: {_short(text)}; mend it by {mend}")
    if not items:
        raise UserError(f"there are no {name}: give at least one")
    return items


def checked_predictions(predictions: Sequence[Any], name: str = "predictions") -> list[str]:
    """Return answers as strings; a missing answer (None) becomes an empty one."""
    if not isinstance(predictions, str):
        predictions = ["" if p is None else p for p in predictions]
    return checked_texts(predictions, name)


def checked_references(references: Sequence[Any]) -> list[tuple[str, ...]]:
    """Return the accepted answers of each question, at least one; raises ``UserError`` for anything else."""
    lists = _lists(references, "references", "accepted answers", "lists of strings")
    return [tuple(checked_texts(accepted, place)) for place, accepted in lists]


def _lists(column: Sequence[Any], name: str, content: str, plural: str = "") -> Iterator[tuple[str, list[Any]]]:
    if isinstance(column, str):
        raise UserError(f"{name} is one string: give a list of {plural or f'{content} for each question'}")
    for number, entry in enumerate(column):
        if not isinstance(entry, Iterable) or isinstance(entry, str | Mapping):
            raise UserError(f"{name}[{number}] is {_short(entry)}: give a list of {content}")
        yield f"{name}[{number}]", list(entry)


def checked_steps(steps: Sequence[Any]) -> list[list[str]]:
    """Return the steps of each chain as texts; a chain may have none."""
    chains = [checked_texts(chain, place) if chain else [] for place, chain in _lists(steps, "steps", "texts")]
    for number, chain in enumerate(chains):
        with at_place(f"steps[{number}]", RowError):
            sizes.check_steps(chain)
    return chains


def checked_evidence(evidence: Sequence[Any]) -> list[list[list[str]]]:
    """Return the triples of each question as three texts; a given triple is three texts or a mapping with these keys.

    >>> checked_evidence([[("Oru", "country", "Marn")], []])
    [[['Oru', 'country', 'Marn']], []]
    """
    return [
        [_triple(triple, f"{place}[{n}]") for n, triple in enumerate(path)]
        for place, path in _lists(evidence, "evidence", "triples")
    ]


def _triple(value: Any, place: str) -> list[str]:
    if isinstance(value, Mapping) and {"head", "relation", "tail"} <= set(value):
        value = [value["head"], value["relation"], value["tail"]]
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence) or len(value) != 3:
        raise UserError(f"{place} is {_short(value)}: give a triple of head, relation and tail")
    return checked_texts(value, place)


def check_lengths(**columns: Sequence[Any]) -> None:
    """Raise ``UserError`` if columns, given by name, differ in length.

    >>> check_lengths(predictions=["Oru"], references=[])
    Traceback (most recent call last):
    safe_stepwise.errors.UserError: 1 predictions but 0 references: give as many of each
    """
    (first, size), *lengths = ((name, len(column)) for name, column in columns.items())
    for name, length in lengths:
        if length != size:
            raise UserError(f"{size} {first} but {length} {name}: give as many of each")


def plain_passage(value: Any, place: str) -> dict[str, Any]:
    """Return a passage as ``title`` and ``sentences``; raises ``UserError`` for a value that is no passage.

    A passage is a string, a mapping with title and text or sentences, or HotpotQA's pair of title and sentences.

    >>> plain_passage("Oru lies on the Vel.", "passages[0][0]")
    {'title': '', 'sentences': ['Oru lies on the Vel.']}
    >>> plain_passage(["Oru", ["Oru lies on the Vel."]], "passages[0][0]")
    {'title': 'Oru', 'sentences': ['Oru lies on the Vel.']}
    """
    if isinstance(value, Passage):
        return {"title": value.title, "sentences": list(value.sentences)}
    if isinstance(value, str):
        return {"title": "", "sentences": [value]}
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str):
        value = {"title": value[0], "sentences": value[1]}
    if not isinstance(value, Mapping) or not ({"text", "sentences"} & set(value)):
        forms = "a string, or a mapping with title and text (or a pair of title and sentences)"
        raise UserError(f"{place} is {_short(value)}: give {forms}")
    text, sentences = value.get("text"), value.get("sentences")
    if isinstance(text, str) and isinstance(sentences, list) and text.split() != " ".join(map(str, sentences)).split():
        raise UserError(f"{place} has a text and sentences that differ: give one of them")
    content = sentences if sentences is not None else text
    sentences = [content] if isinstance(content, str) else content
    title = value.get("title") or ""
    if not isinstance(sentences, Sequence) or not isinstance(title, str):
        raise UserError(f"{place}: its title has to be a string, its text a string or sentences")
    checked_texts([title], f"{place} title")
    return {"title": title, "sentences": checked_texts(sentences, f"{place} sentences")}


def plain_passages(passages: Sequence[Any]) -> list[list[dict[str, Any]]]:
    plain = []
    for place, pages in _lists(passages, "passages", "passages"):
        if not pages:
            raise UserError(f"{place} is empty: the loop answers from passages, give at least one")
        plain.append([plain_passage(page, f"{place}[{n}]") for n, page in enumerate(pages)])
    return plain


def checked_columns(columns: Mapping[str, Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """Check that ``columns`` are exactly those of ``names``, and return them as lists of JSON values.

    A column that is None counts as missing. Raises ``UserError`` for a missing, unknown or invalid column.

    >>> checked_columns({"questions": ("Where?",), "passages": None}, ["questions"])
    {'questions': ['Where?']}
    """
    present = {name: column for name, column in columns.items() if column is not None}
    if present.keys() != set(names):
        raise UserError(f"given {', '.join(sorted(present))}: give {', '.join(names)}")
    for name, column in present.items():
        if not isinstance(column, Iterable):
            raise UserError(f"{name} is {_short(column)}: give a list")
    readers: Mapping[str, Callable[[Any], Sequence[Any]]] = {
        "predictions": checked_predictions,
        "references": lambda column: [list(accepted) for accepted in checked_references(column)],
        "passages": plain_passages,
        "questions": lambda column: checked_texts(column, "questions"),
        "answers": lambda column: checked_predictions(column, "answers"),
        "steps": checked_steps,
        "evidence": checked_evidence,
    }
    checked = {name: list(readers[name](column)) for name, column in present.items()}
    check_lengths(**checked)
    return checked


def loop_questions(
    questions: Sequence[Any], passages: Sequence[Any] | None, references: Sequence[Any] | None, benchmark: str | None
) -> list[Question]:
    """Make the loop's questions from columns (with the SHA-256 of their content as id), or from `Question` objects."""
    items = [] if isinstance(questions, str) else list(questions)
    if items and all(isinstance(question, Question) for question in items):
        if passages is not None or references is not None:
            raise UserError("Question objects bring passages and references: leave those out")
        rows = [replace(q, benchmark=benchmark or q.benchmark) for q in items]
    else:
        texts = checked_texts(questions, "questions")
        if passages is None or references is None:
            raise UserError("the loop needs passages and references beside the questions")
        pages, accepted = plain_passages(passages), checked_references(references)
        check_lengths(questions=texts, passages=pages, references=accepted)
        rows = []
        for text, content, names in zip(texts, pages, accepted, strict=True):
            row = Question(
                identity([text, canonical_json(content), names]), benchmark or "hotpotqa", "", text, names[0]
            )
            rows.append(replace(row, aliases=names[1:], passages=tuple(map(codec.passage_of, content))))
    for question in rows:
        exact_match("", question.accepted, question.benchmark)  # raises for an unknown benchmark
    return rows


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:59] + "…"
