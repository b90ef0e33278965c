"""MuSiQue-Ans: 2-4 hop questions composed from single-hop ones, over 20 paragraphs.

Source: https://github.com/StonyBrookNLP/musique (``musique_ans_v1.0_{train,dev}.jsonl``, one row
a line; train 19,938 rows, dev 2,417). Licence: CC BY 4.0.

A row, invented, in the original shape (the Hub copies ``dgslibisey/MuSiQue`` and ``bdsaglam/musique:answerable`` keep
it, or hold lists of objects as columns; further columns are ignored)::

    {"id": "2hop__11_12", "question": "Which country is the birthplace of Ana Brell in?",
     "answer": "Marn", "answer_aliases": ["Republic of Marn"], "answerable": true,
     "question_decomposition": [
       {"id": 11, "question": "Ana Brell >> place of birth", "answer": "Oru",
        "paragraph_support_idx": 1},
       {"id": 12, "question": "Which country is #1 in?", "answer": "Marn",
        "paragraph_support_idx": 0}],
     "paragraphs": [
       {"idx": 0, "title": "Oru", "paragraph_text": "Oru is a town in Marn.",
        "is_supporting": true},
       {"idx": 1, "title": "Ana Brell", "paragraph_text": "Ana Brell was born in Oru.",
        "is_supporting": true}]}

Quirks: no sentence annotation, so paragraphs are split here and ``supporting_facts`` is empty; paragraphs may share a
title, so hops point by ``idx``; the id's prefix is the shape of the reasoning (2hop, 3hop1, 4hop3, ...).
MuSiQue-Full's unanswerable rows are refused: their answer is not in the paragraphs by construction.
"""

import re
from collections.abc import Mapping
from typing import Any

from builders.benchmarks.terms import terms_of
from safe_stepwise.errors import RowError
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.records import Hop, Passage, Question
from safe_stepwise.store import fields

NAME = "musique"
LICENSE, HOMEPAGE, CITATION, CAVEAT, EXPECTED = terms_of(NAME)
TELLTALE = "paragraphs"
SCORING = "musique"

_PARAGRAPH = {
    "idx": fields.integer,
    "title": fields.text,
    "paragraph_text": fields.text,
    "is_supporting": fields.boolean,
}
_HOP = {"question": fields.filled_text, "answer": fields.filled_text, "paragraph_support_idx": fields.integer}


def parse(row: Mapping[str, Any], split: str) -> Question:
    """Parse a row in the original form or in that of a Hub copy; raise ``RowError`` if it is unusable."""
    if not fields.boolean(row.get("answerable", True), "answerable"):
        raise RowError("unanswerable rows of MuSiQue-Full are not supported: use MuSiQue-Ans")
    answer, aliases = fields.answer(row), row.get("answer_aliases")
    aliases = () if aliases is None else aliases
    numbers, passages = _read_passages(row)
    hops = _read_decomposition(row, numbers)
    identifier = fields.filled_text(fields.require(row, "id"), "id")
    prefix = re.match(r"\d+hop\d*(?=_)", identifier)
    return Question(
        id=identifier,
        benchmark=NAME,
        split=split,
        question=fields.filled_text(fields.require(row, "question"), "question"),
        answer=answer,
        aliases=tuple(fields.text(a, "answer alias") for a in fields.items(aliases, "answer_aliases")),
        kind=prefix.group() if prefix else f"{len(hops)}hop",
        hops=len(hops),
        passages=passages,
        decomposition=hops,
    )


def _read_passages(row: Mapping[str, Any]) -> tuple[dict[int, int], tuple[Passage, ...]]:
    """Return the 1-based passage number of each paragraph ``idx``, and the passages in the row's order."""
    numbers: dict[int, int] = {}
    passages: list[Passage] = []
    raw = fields.read_rows(fields.require(row, "paragraphs"), "paragraphs", "paragraph", _PARAGRAPH)
    for number, (idx, title, body, is_supporting) in enumerate(raw, 1):
        if numbers.setdefault(idx, number) != number:
            raise RowError(f"paragraph {number} has the idx {idx} of paragraph {numbers[idx]}")
        sentences = split_sentences(body)
        if not sentences:
            raise RowError(f"paragraph {number} ({title!r}) is empty")
        passages.append(Passage(title, sentences, is_supporting))
    if not any(passage.is_gold for passage in passages):
        raise RowError("no supporting paragraph: a split without annotations can't be verified")
    return numbers, tuple(passages)


def _read_decomposition(row: Mapping[str, Any], numbers: Mapping[int, int]) -> tuple[Hop, ...]:
    name = "question_decomposition"
    hops = fields.read_rows(fields.require(row, name), name, "hop", _HOP)
    if not hops:
        raise RowError("question_decomposition has no hops")
    for number, (_, _, idx) in enumerate(hops, 1):
        if idx not in numbers:
            raise RowError(f"hop {number} points at paragraph idx {idx}, which is not there")
    return tuple(Hop(question, answer, numbers[idx]) for question, answer, idx in hops)
