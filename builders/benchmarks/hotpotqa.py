"""HotpotQA, distractor setting: two-hop questions over Wikipedia paragraphs.

Source: https://hotpotqa.github.io (``hotpot_train_v1.1.json``, ``hotpot_dev_distractor_v1.json``,
one JSON array each; train 90,447 rows, dev 7,405). Licence: CC BY-SA 4.0.

A row, invented, in the original shape::

    {"_id": "5f00", "question": "In which country is the town that the Vel crosses?",
     "answer": "Marn", "type": "bridge", "level": "hard",
     "supporting_facts": [["Vel", 0], ["Oru", 1]],
     "context": [["Vel", ["The Vel is a river.", " It crosses Oru."]],
                 ["Oru", ["Oru is a town.", " It lies in Marn."]]]}

The Hub copy ``hotpotqa/hotpot_qa:distractor`` says ``id`` for ``_id`` and holds columns:
``supporting_facts: {title, sent_id}``, ``context: {title, sentences}``.

Quirks, all read unchanged: sentences after the first begin with a space; questions may have
stray spaces; a few rows have fewer than 10 passages; a sentence (not a whole passage) may be blank.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from builders.benchmarks.terms import terms_of
from safe_stepwise.errors import RowError
from safe_stepwise.language.text import fold
from safe_stepwise.records import Passage, Question, SupportingFact
from safe_stepwise.store import fields

NAME = "hotpotqa"
LICENSE, HOMEPAGE, CITATION, CAVEAT, EXPECTED = terms_of(NAME)
TELLTALE = "level"
SCORING = "hotpotqa"
KINDS = ("bridge", "comparison")


def parse(row: Mapping[str, Any], split: str) -> Question:
    """Parse a row in the original form or in the Hub's columns; raise ``RowError`` if it is unusable."""
    return annotated_question(row, NAME, split, KINDS)


def annotated_question(row: Mapping[str, Any], benchmark: str, split: str, kinds: tuple[str, ...]) -> Question:
    """Parse a two-hop row of this form; raise ``RowError`` if its ``type`` is not one of ``kinds``."""
    passages, facts = _read_passages(row)
    kind = fields.text(fields.require(row, "type"), "type")
    if kind not in kinds:
        raise RowError(f"type is {kind!r}, expected one of {', '.join(kinds)}")
    return Question(
        id=fields.filled_text(fields.require(row, "_id", "id"), "id"),
        benchmark=benchmark,
        split=split,
        question=fields.filled_text(fields.require(row, "question"), "question"),
        answer=fields.answer(row),
        kind=kind,
        hops=2,
        passages=passages,
        supporting_facts=facts,
    )


def _read_passages(row: Mapping[str, Any]) -> tuple[tuple[Passage, ...], tuple[SupportingFact, ...]]:
    """Return a row's passages, gold if a fact names them, and its facts, whose titles may only look alike (`fold`)."""
    raw = fields.records(fields.require(row, "context"), ("title", "sentences"), "context")
    if not raw:
        raise RowError("context has no passages")
    context = [_read_passage(title, sentences, number) for number, (title, sentences) in enumerate(raw, 1)]
    columns, raw_facts = {"title": fields.text, "sent_id": fields.integer}, fields.require(row, "supporting_facts")
    pairs = fields.read_rows(raw_facts, "supporting_facts", "supporting fact", columns, sent_id="sentence")
    if not pairs:
        raise RowError("no supporting facts: a test split without annotations can't be verified")
    titles = {fold(title): title for title, _ in reversed(context)} | {title: title for title, _ in context}
    facts = tuple(SupportingFact(titles.get(title, titles.get(fold(title), title)), index) for title, index in pairs)
    gold = {_locate(context, fact, number) for number, fact in enumerate(facts, 1)}
    passages = tuple(Passage(title, sentences, index in gold) for index, (title, sentences) in enumerate(context))
    return passages, facts


def _read_passage(title: Any, sentences: Any, number: int) -> tuple[str, tuple[str, ...]]:
    label = f"passage {number}"
    checked = tuple(
        fields.text(sentence, f"{label} sentence {index}")
        for index, sentence in enumerate(fields.items(sentences, f"{label} sentences"))
    )
    title = fields.text(title, f"{label} title")
    if not any(sentence.strip() for sentence in checked):
        raise RowError(f"{label} ({title!r}) is empty")
    return title, checked


def _locate(context: Sequence[tuple[str, tuple[str, ...]]], fact: SupportingFact, number: int) -> int:
    """Return the index of the passage that has the fact's sentence."""
    for index, (title, sentences) in enumerate(context):
        if title == fact.title and 0 <= fact.sentence < len(sentences):
            return index
    raise RowError(
        f"supporting fact {number} names sentence {fact.sentence} of {fact.title!r}, which the context does not have"
    )
