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

Quirks, all read as they stand: sentences after the first begin with a space; questions may have
stray spaces; a few rows have fewer than 10 passages; a sentence (not a whole passage) may be blank.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.language.text import fold
from safe_stepwise.records import Passage, Question, SupportingFact
from safe_stepwise.store import fields

NAME = "hotpotqa"
LICENSE = "cc-by-sa-4.0"
HOMEPAGE = "https://hotpotqa.github.io"
CITATION = """\
@inproceedings{yang2018hotpotqa,
  title = {{HotpotQA}: A Dataset for Diverse, Explainable Multi-hop Question Answering},
  author = {Yang, Zhilin and Qi, Peng and Zhang, Saizheng and Bengio, Yoshua and
            Cohen, William W. and Salakhutdinov, Ruslan and Manning, Christopher D.},
  booktitle = {Proceedings of EMNLP},
  year = {2018}
}"""
TELLTALE = "level"
SCORING = "hotpotqa"
CAVEAT = (
    "HotpotQA annotates no triples. *Verified* says of a bridge question that its gold "
    "passages name each other (or one thing in common) and hold the answer, of a comparison that "
    "each side is described and no date compared contradicts the answer; most other noise goes "
    "unseen. The relation of its triples is the text before a name, or `names`."
)
EXPECTED: Mapping[str, Mapping[str, float]] = {
    "verification": {"calls": 8.0, "prompt": 6093, "reply": 818},
    "verifier_steps": {"calls": 5, "prompt": 10591, "reply": 1200},
}
KINDS = ("bridge", "comparison")


def parse(row: Mapping[str, Any], split: str) -> Question:
    """Parse a row in the original form or in the Hub's columns; raise ``RowError`` if it is unusable.

    >>> row = {"_id": "5f00", "question": "Which country has Oru?", "answer": "Marn",
    ...        "type": "bridge", "level": "hard", "supporting_facts": [["Oru", 1]],
    ...        "context": [["Oru", ["Oru is a town.", " It lies in Marn."]]]}
    >>> question = parse(row, "validation")
    >>> question.passages[0].is_gold, question.supporting_facts[0].sentence, question.hops
    (True, 1, 2)
    """
    return annotated_question(row, NAME, split, KINDS)


def annotated_question(row: Mapping[str, Any], benchmark: str, split: str, kinds: tuple[str, ...]) -> Question:
    """Parse a two-hop row of this form; raise ``RowError`` if its ``type`` is not one of ``kinds``."""
    passages, facts = _annotated_passages(row)
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


def _annotated_passages(row: Mapping[str, Any]) -> tuple[tuple[Passage, ...], tuple[SupportingFact, ...]]:
    """Return a row's passages, gold if a fact names them, and its facts; raise ``RowError`` for bad ones.

    A fact means the passage whose title looks alike (`fold`); of several, the first that has its sentence.
    """
    raw = fields.records(fields.require(row, "context"), ("title", "sentences"), "context")
    if not raw:
        raise RowError("context has no passages")
    context = [_passage(title, sentences, number) for number, (title, sentences) in enumerate(raw, 1)]
    columns, raw_facts = {"title": fields.text, "sent_id": fields.integer}, fields.require(row, "supporting_facts")
    pairs = fields.read_rows(raw_facts, "supporting_facts", "supporting fact", columns, sent_id="sentence")
    if not pairs:
        raise RowError("no supporting facts: a test split without annotations can't be verified")
    titles = {fold(title): title for title, _ in reversed(context)} | {title: title for title, _ in context}
    facts = tuple(SupportingFact(titles.get(title, titles.get(fold(title), title)), index) for title, index in pairs)
    gold = {_locate(context, fact, number) for number, fact in enumerate(facts, 1)}
    passages = tuple(Passage(title, sentences, index in gold) for index, (title, sentences) in enumerate(context))
    return passages, facts


def _passage(title: Any, sentences: Any, number: int) -> tuple[str, tuple[str, ...]]:
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
    sizes = [(i, len(sentences)) for i, (title, sentences) in enumerate(context) if title == fact.title]
    for index, size in sizes:
        if 0 <= fact.sentence < size:
            return index
    if not sizes:
        raise RowError(f"supporting fact {number} names {fact.title!r}, not a title of the context")
    last = max(size for _, size in sizes) - 1
    raise RowError(
        f"supporting fact {number} names sentence {fact.sentence} of {fact.title!r}, whose sentences are 0 to {last}"
    )
