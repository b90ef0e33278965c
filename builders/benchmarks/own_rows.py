"""Read rows in our columns, which a benchmark of the user's own has, and the synthetic one."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from safe_stepwise.errors import RowError
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.records import Hop, Passage, Question, SupportingFact, Triple, identity
from safe_stepwise.store import fields, sizes

T = TypeVar("T")
_NO_ANSWER = "it has no answer: what counts as right has to be known"


def parse_row(row: Mapping[str, Any], benchmark: str, split: str) -> Question:
    """Parse a row in our columns; raise ``RowError`` with the reason if it is unusable."""
    question_text = fields.filled_text(fields.require(row, "question"), "question")
    answer, *aliases = _read_answers(row)
    passages = tuple(
        _read_passage(passage, f"passage {number}")
        for number, passage in enumerate(fields.items(fields.require(row, "passages"), "passages"), 1)
    )
    if not passages:
        raise RowError("passages is empty")

    def read_rows(record: Callable[..., T], name: str, **readers: fields.Reader) -> tuple[T, ...]:
        return tuple(record(*values) for values in fields.read_rows(row.get(name) or [], name, name, readers))

    id_, text = row.get("id"), fields.text
    sentence, passage = _read_number(0, fields.MAX_ENTRIES - 1), _read_number(1, len(passages), or_none=True)
    question = Question(
        id=fields.filled_text(id_, "id") if id_ is not None else identity([question_text, *passages]),
        benchmark=benchmark,
        split=split,
        question=question_text,
        answer=answer,
        aliases=tuple(aliases),
        kind=text(row.get("kind") or "", "kind"),
        hops=fields.integer(row.get("hops") or 0, "hops"),
        passages=passages,
        supporting_facts=read_rows(SupportingFact, "supporting_facts", title=text, sentence=sentence),
        evidence=read_rows(Triple, "evidence", head=text, relation=text, tail=text),
        decomposition=read_rows(Hop, "decomposition", question=text, answer=text, passage=passage),
    )
    sizes.check_size(question)
    return question


def _read_answers(row: Mapping[str, Any]) -> list[str]:
    """Read all accepted answers: ``references``, or ``answer`` and its ``aliases``."""
    if row.get("references") is not None:
        references = fields.items(row["references"], "references")
        if not references:
            raise RowError(_NO_ANSWER)
        return [fields.filled_text(reference, "reference") for reference in references]
    aliases = fields.items(row.get("aliases") or [], "aliases")
    if row.get("answer") is not None and not isinstance(row["answer"], str):
        raise RowError("answer is no text: write it in quotation marks")
    if not (row.get("answer") or "").strip():
        raise RowError(_NO_ANSWER)
    return [fields.text(row["answer"], "answer"), *(fields.text(a, "alias") for a in aliases)]


def _read_passage(content: Any, label: str) -> Passage:
    if isinstance(content, str):
        content = {"text": content}
    if not isinstance(content, Mapping):
        raise RowError(f"{label} is neither a text nor an object with title and text or sentences")
    title = fields.text(content.get("title") or "", f"{label} title")
    if content.get("sentences") is not None:
        listed = fields.items(content["sentences"], f"{label} sentences")
        sentences = tuple(fields.text(sentence, f"{label} sentence") for sentence in listed)
        if not any(sentence.strip() for sentence in sentences):
            raise RowError(f"{label} ({title!r}) is empty")
    else:
        sentences = split_sentences(fields.filled_text(fields.require(content, "text", "sentences"), f"{label} text"))
    return Passage(title, sentences, fields.boolean(content.get("is_gold") or False, f"{label} is_gold"))


def _read_number(first: int, last: int, or_none: bool = False) -> fields.Reader:
    def read(value: Any, label: str) -> Any:
        if value is None and or_none:
            return None
        if not first <= fields.integer(value, label) <= last:
            raise RowError(f"{label} is {str(value)[:20]}, expected {first} to {last}")
        return value

    return read
