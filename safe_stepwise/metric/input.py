"""The columns that the metric takes, checked: what is not of their form raises a `UserError`.

Its one line names the row, so that a mistake in a thousand rows is found.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.records import Passage, Question, canonical_json, identity
from safe_stepwise.scoring import exact_match
from safe_stepwise.store.codec import passage_of
from safe_stepwise.store.sizes import check_steps


def checked_texts(texts: Sequence[Any], what: str) -> list[str]:
    """The strings in a sequence; raises ``UserError`` for anything else, and for text that UTF-8 can't hold."""
    if isinstance(texts, str):
        raise UserError(f"{what} is one string: give a list of strings")
    found = list(texts)
    for number, text in enumerate(found):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise UserError(f"{what}[{number}] is no string but of type {kind}: {_short(text)}")
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            mend = "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
            raise UserError(f"{what}[{number}] holds half of a surrogate pair: {_short(text)}; mend it by {mend}")
    if not found:
        raise UserError(f"there are no {what}: give at least one")
    return found


def checked_predictions(predictions: Sequence[Any], what: str = "predictions") -> list[str]:
    """Answers as strings, one that is missing (None) as an empty one."""
    if not isinstance(predictions, str):
        predictions = ["" if p is None else p for p in predictions]
    return checked_texts(predictions, what)


def checked_references(references: Sequence[Any]) -> list[tuple[str, ...]]:
    """Accepted answers, at least one a question; raises ``UserError`` for anything else."""
    lists = _lists(references, "references", "accepted answers", "lists of strings")
    return [tuple(checked_texts(accepted, where)) for where, accepted in lists]


def _lists(column: Sequence[Any], name: str, what: str, whole: str = "") -> Iterator[tuple[str, list[Any]]]:
    if isinstance(column, str):
        raise UserError(f"{name} is one string: give a list of {whole or f'{what} for each question'}")
    for number, given in enumerate(column):
        if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
            raise UserError(f"{name}[{number}] is {_short(given)}: give a list of {what}")
        yield f"{name}[{number}]", list(given)


def checked_steps(steps: Sequence[Any]) -> list[list[str]]:
    """The steps of each chain as texts; one may have none."""
    chains = [checked_texts(chain, where) if chain else [] for where, chain in _lists(steps, "steps", "texts")]
    for number, chain in enumerate(chains):
        with at_place(f"steps[{number}]", RowError):
            check_steps(chain)
    return chains


def checked_evidence(evidence: Sequence[Any]) -> list[list[list[str]]]:
    """The triples of each question, lists of three texts or mappings; one may have none.

    >>> checked_evidence([[("Oru", "country", "Marn")], []])
    [[['Oru', 'country', 'Marn']], []]
    """
    return [
        [_triple(triple, f"{where}[{n}]") for n, triple in enumerate(path)]
        for where, path in _lists(evidence, "evidence", "triples")
    ]


def _triple(value: Any, where: str) -> list[str]:
    if isinstance(value, Mapping) and {"head", "relation", "tail"} <= set(value):
        value = [value["head"], value["relation"], value["tail"]]
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence) or len(value) != 3:
        raise UserError(f"{where} is {_short(value)}: give a triple of head, relation and tail")
    return checked_texts(value, where)


def same_length(**columns: Sequence[Any]) -> None:
    """Raise ``UserError`` where columns differ in length.

    >>> same_length(predictions=["Oru"], references=[])
    Traceback (most recent call last):
    safe_stepwise.errors.UserError: 1 predictions but 0 references: give as many of each
    """
    (first, one), *others = columns.items()
    for name, other in others:
        if len(other) != len(one):
            raise UserError(f"{len(one)} {first} but {len(other)} {name}: give as many of each")


def plain_passage(value: Any, where: str) -> dict[str, Any]:
    """A passage as ``title`` and ``sentences``; raises ``UserError`` for what is none.

    >>> plain_passage("Oru lies on the Vel.", "passages[0][0]")
    {'title': '', 'sentences': ['Oru lies on the Vel.']}
    """
    if isinstance(value, Passage):
        return {"title": value.title, "sentences": list(value.sentences)}
    if isinstance(value, str):
        return {"title": "", "sentences": [value]}
    if not isinstance(value, Mapping) or not ({"text", "sentences"} & set(value)):
        raise UserError(f"{where} is {_short(value)}: give a string, or a mapping with title and text")
    told = value["sentences"] if value.get("sentences") is not None else value.get("text")
    sentences = [told] if isinstance(told, str) else told
    title = value.get("title") or ""
    if not isinstance(sentences, Sequence) or not isinstance(title, str):
        raise UserError(f"{where}: its title has to be a string, its text a string or sentences")
    checked_texts([title], f"{where} title")
    return {"title": title, "sentences": checked_texts(sentences, f"{where} sentences")}


def plain_passages(passages: Sequence[Any]) -> list[list[dict[str, Any]]]:
    """The passages of each question, as `plain_passage` makes them."""
    plain = []
    for where, pages in _lists(passages, "passages", "passages"):
        if not pages:
            raise UserError(f"{where} is empty: the loop answers from passages, give at least one")
        plain.append([plain_passage(page, f"{where}[{n}]") for n, page in enumerate(pages)])
    return plain


def checked_columns(columns: Mapping[str, Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """The columns of these names, checked and made plain; None stands for one that is not given.

    Raises ``UserError`` for a column that is missing, not known, or not of its form.

    >>> checked_columns({"questions": ("Where?",), "passages": None}, ["questions"])
    {'questions': ['Where?']}
    """
    given = {name: column for name, column in columns.items() if column is not None}
    if given.keys() != set(names):
        raise UserError(f"given {', '.join(sorted(given))}: give {', '.join(names)}")
    for name, column in given.items():
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
    checked = {name: list(readers[name](column)) for name, column in given.items()}
    same_length(**checked)
    return checked


def loop_questions(
    questions: Sequence[Any], passages: Sequence[Any] | None, references: Sequence[Any] | None, benchmark: str | None
) -> list[Question]:
    """What the loop is to answer; the id is the SHA-256 of the content."""
    whole = [] if isinstance(questions, str) else list(questions)
    if whole and all(isinstance(question, Question) for question in whole):
        if passages is not None or references is not None:
            raise UserError("Question objects bring passages and references: leave those out")
        found = [replace(q, benchmark=benchmark or q.benchmark) for q in whole]
    else:
        texts = checked_texts(questions, "questions")
        if passages is None or references is None:
            raise UserError("the loop needs passages and references beside the questions")
        pages, accepted = plain_passages(passages), checked_references(references)
        same_length(questions=texts, passages=pages, references=accepted)
        found = [
            Question(
                id=identity([text, canonical_json(shown), names]),
                benchmark=benchmark or "hotpotqa",
                split="",
                question=text,
                answer=names[0],
                aliases=names[1:],
                passages=tuple(map(passage_of, shown)),
            )
            for text, shown, names in zip(texts, pages, accepted, strict=True)
        ]
    for question in found:
        exact_match("", question.accepted, question.benchmark)  # an unknown benchmark is told now
    return found


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:59] + "…"
