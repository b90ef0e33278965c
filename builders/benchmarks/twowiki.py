"""2WikiMultihopQA: template questions over Wikipedia, with Wikidata triples as evidence.

Source: https://github.com/Alab-NII/2wikimultihop (``train.json``, ``dev.json``, one JSON array
each; train 167,454 rows, dev 12,576; the ``data_ids`` release adds ids). Licence: Apache-2.0.

A row, invented, in the original shape (HotpotQA's, plus ``evidences`` and ids)::

    {"_id": "8a01", "type": "compositional", "question": "Where was the director of Low Tide born?",
     "answer": "Oru", "answer_id": "Q0", "entity_ids": "Q1_Q2",
     "supporting_facts": [["Low Tide", 0], ["Ana Brell", 1]],
     "evidences": [["Low Tide", "director", "Ana Brell"], ["Ana Brell", "place of birth", "Oru"]],
     "evidences_id": [["Q1", "director", "Q2"], ["Q2", "place of birth", "Q0"]],
     "context": [["Low Tide", ["Low Tide is a film by Ana Brell."]],
                 ["Ana Brell", ["Ana Brell is a director.", "She was born in Oru."]]]}

Hub copies (``framolfese/2WikiMultihopQA``, voidful's, xanhho's) say ``id`` or ``_id``; they hold the original nesting,
HotpotQA's columns, evidences as ``{fact, relation, entity}``, or each nested field as a JSON string: all are read.

Quirks: some rows lack ``answer_id``, ``entity_ids``, ``evidences_id`` (none is used here); a
passage may occur twice; a handful of rows name a supporting sentence that does not exist
(RowError); a comparison may have more than two evidences, a bridge comparison more than four.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from builders.benchmarks.hotpotqa import annotated_question
from builders.benchmarks.terms import terms_of
from safe_stepwise.records import Question, Triple
from safe_stepwise.store import fields

NAME = "2wikimultihopqa"
LICENSE, HOMEPAGE, CITATION, CAVEAT, EXPECTED = terms_of(NAME)
TELLTALE = "evidences"
SCORING = "2wikimultihopqa"
KINDS = ("compositional", "comparison", "inference", "bridge_comparison")


def parse(row: Mapping[str, Any], split: str) -> Question:
    """Parse a row in the original form or in that of a Hub copy; raise ``RowError`` if it is unusable."""
    question = annotated_question(row, NAME, split, KINDS)
    hops = 4 if question.kind == "bridge_comparison" else 2
    columns = dict.fromkeys(("fact", "relation", "entity"), fields.text)
    evidences, names = fields.require(row, "evidences"), {"fact": "subject", "entity": "object"}
    triples = fields.read_rows(evidences, "evidences", "evidence", columns, **names)
    return replace(question, hops=hops, evidence=tuple(Triple(*triple) for triple in triples))
