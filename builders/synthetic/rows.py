"""Rows as plain JSON objects, and back."""

from collections.abc import Mapping
from typing import Any

from builders.synthetic.world import NAME
from builders.work import fields as read
from safe_stepwise.errors import RowError
from safe_stepwise.records import Hop, NoiseType, Passage, Question, SupportingFact, Triple
from safe_stepwise.store.codec import question_row


def to_row(question: Question, truth: NoiseType) -> dict[str, Any]:
    """The plain JSON object of a row, truth included; ``parse`` reads it back."""
    return {**question_row(question), "truth": truth}


def parse(row: Mapping[str, Any], split: str) -> Question:
    """The Question of a ``to_row`` object, its truth unread. RowError when a field is unusable.

    >>> from builders.synthetic import Spec, generate
    >>> question, truth = next(generate(Spec(rows=1, seed=3)))
    >>> parse(to_row(question, truth), "validation") == question
    True
    """
    passages = _passages(row)
    sentences = {p.title: len(p.sentences) for p in passages}
    facts = tuple(
        SupportingFact(read.text(title, "title"), read.integer(sentence, "sentence"))
        for title, sentence in _records(row, "supporting_facts", "title", "sentence")
    )
    for fact in facts:
        if not 0 <= fact.sentence < sentences.get(fact.title, 0):
            raise RowError(f"supporting fact {fact.title!r} {fact.sentence}: no such sentence")
    aliases = read.items(read.require(row, "aliases"), "aliases")
    return Question(
        id=read.filled_text(read.require(row, "id"), "id"),
        benchmark=NAME,
        split=split,
        question=read.filled_text(read.require(row, "question"), "question"),
        answer=read.answer(row),
        aliases=tuple(read.text(alias, "alias") for alias in aliases),
        kind=read.text(read.require(row, "kind"), "kind"),
        hops=read.integer(read.require(row, "hops"), "hops"),
        passages=passages,
        supporting_facts=facts,
        evidence=tuple(
            Triple(read.text(head, "head"), read.text(relation, "relation"), read.text(tail, "tail"))
            for head, relation, tail in _records(row, "evidence", "head", "relation", "tail")
        ),
        decomposition=_hops(row, len(passages)),
    )


def _records(row: Mapping[str, Any], name: str, *columns: str) -> list[tuple[Any, ...]]:
    return read.records(read.require(row, name), columns, name)


def _passages(row: Mapping[str, Any]) -> tuple[Passage, ...]:
    passages = []
    for number, (title, sentences, is_gold) in enumerate(
        _records(row, "passages", "title", "sentences", "is_gold"), 1
    ):
        texts = tuple(read.text(s, "sentence") for s in read.items(sentences, "sentences"))
        if not "".join(texts).strip():
            raise RowError(f"passage {number} ({title!r}) is empty")
        passages.append(Passage(read.text(title, "title"), texts, read.boolean(is_gold, "is_gold")))
    if not passages:
        raise RowError("no passages")
    return tuple(passages)


def _hops(row: Mapping[str, Any], passages: int) -> tuple[Hop, ...]:
    hops = []
    for question, answer, passage in _records(row, "decomposition", "question", "answer", "passage"):
        if not 1 <= read.integer(passage, "hop's passage") <= passages:
            raise RowError(f"a hop points at passage {passage}, which is not there")
        hops.append(Hop(read.filled_text(question, "hop"), read.text(answer, "answer"), passage))
    return tuple(hops)
