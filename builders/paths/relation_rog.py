"""Rows in the form of RoG's copies of WebQSP and CWQ: a question with a part of Freebase.

A row, invented::

    {"id": "WebQTrn-7", "question": "what did ana brell write", "answer": ["Dune Rain"],
     "q_entity": ["Ana Brell"], "a_entity": ["Dune Rain"],
     "graph": [["Ana Brell", "book.author.works_written", "Dune Rain"]]}

Quirks: entities are names, so two of one name are one; those without a name are Freebase ids
(``m.0abc``, values that stand for a relation of several); ``graph`` may lack the answer; some rows
have no topic, and are rejected, or no answer, and give no path. No relation path is annotated.
"""

from collections.abc import Mapping
from typing import Any

from builders.work import fields
from safe_stepwise.errors import RowError
from safe_stepwise.graphs.triples import NamedTriple
from safe_stepwise.records import KGQuestion
from safe_stepwise.store.parsing import parse_json

NO_PATHS = "No relation path is annotated, so that precision and recall of the weak ones are unknown."
"""What the paths of such a benchmark can't tell; for the card."""
MOST_TRIPLES = 200_000
"""Of a row, and its names; real ones have some thousands."""


def parse_as(benchmark: str, row: Mapping[str, Any], split: str) -> KGQuestion:
    """The question of a row; RowError with the reason when it is unusable.

    >>> row = {"id": "q7", "question": "what did ana write", "answer": ["Oru"], "q_entity": ["Ana"]}
    >>> parse_as("webqsp", row, "train").answers
    frozenset({'Oru'})
    """
    topics = _names(fields.require(row, "q_entity"), "q_entity")
    if not topics:
        raise RowError("q_entity is empty: there is nowhere to start from")
    return KGQuestion(
        id=fields.filled_text(fields.require(row, "id"), "id"),
        benchmark=benchmark,
        split=split,
        question=fields.filled_text(fields.require(row, "question"), "question"),
        topics=topics,
        answers=frozenset(_names(fields.require(row, "answer", "a_entity"), "answer")),
    )


def triples_of(row: Mapping[str, Any]) -> list[NamedTriple]:
    """The row's own part of the graph; RowError for what is none."""
    said = fields.require(row, "graph")
    if isinstance(said, str):
        try:
            said = parse_json(said)
        except ValueError as error:
            raise RowError("graph is a string that isn't JSON") from error
    listed = fields.items(said, "graph", MOST_TRIPLES)
    return [_triple(one, number) for number, one in enumerate(listed, 1)]


def _triple(said: Any, number: int) -> NamedTriple:
    if not isinstance(said, list | tuple) or len(said) != 3:
        raise RowError(f"triple {number} of graph is not (head, relation, tail)")
    head, relation, tail = (fields.filled_text(name, f"triple {number} of graph") for name in said)
    return head, relation, tail


def _names(value: Any, what: str) -> tuple[str, ...]:
    """Names in their order, each once."""
    said = [value] if isinstance(value, str) else fields.items(value, what, MOST_TRIPLES)
    return tuple(dict.fromkeys(fields.filled_text(name, what) for name in said))
