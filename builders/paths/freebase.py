"""Read WebQSP and ComplexWebQuestions in the form of the copies by RoG: a question with a part of Freebase.

*WebQSP*: questions that people asked a search engine, of up to two hops over Freebase. Source:
https://www.microsoft.com/en-us/download/details.aspx?id=52763 (2,826 questions to train on, 1,628 to test).

*ComplexWebQuestions*: harder questions made from those of WebQSP, of up to four hops. Source:
https://www.tau-nlp.sites.tau.ac.il/compwebq (27,639 questions to train on, 3,519 to validate, 3,531 to test).

Both are read from a file or the Hub. A row, invented::

    {"id": "WebQTrn-7", "question": "what did ana brell write", "answer": ["Dune Rain"],
     "q_entity": ["Ana Brell"], "a_entity": ["Dune Rain"],
     "graph": [["Ana Brell", "book.author.works_written", "Dune Rain"]]}

Quirks: entities are names, so two of one name are one; those without a name are Freebase ids (``m.0abc``, values that
stand for a relation of several); ``graph`` may lack the answer; triples with a blank name are left out; some rows have
no topic (a build rejects them) or no answer, and give no path. No relation path is annotated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from builders.benchmarks import sources
from builders.benchmarks.terms import TERMS
from safe_stepwise.errors import RowError
from safe_stepwise.graphs.graph_store import NamedTriple
from safe_stepwise.records import KGQuestion
from safe_stepwise.store import boundary, fields

MAX_TRIPLES = 200_000
"""The maximum number of triples, or names, of a row; real rows have some thousands."""


@dataclass
class FreebaseQuestions:
    """One of these benchmarks, as a `relation_readers.Reader`."""

    NAME: str
    HOMEPAGE: str
    CITATION: str
    HOPS: int
    LICENSE: str = "unknown"
    CAVEAT: str = "No relation path is annotated, so that precision and recall of the weak ones are unknown."
    NEEDS_GRAPH: bool = False
    HAS_GOLD: bool = False
    read_rows = staticmethod(sources.read_rows)

    def parse(self, row: Mapping[str, Any], split: str) -> KGQuestion:
        """Parse a row into its question; raise ``RowError`` with the reason if it is unusable."""
        return KGQuestion(
            id=fields.filled_text(fields.require(row, "id"), "id"),
            benchmark=self.NAME,
            split=split,
            question=fields.filled_text(fields.require(row, "question"), "question"),
            topics=_read_names(fields.require(row, "q_entity"), "q_entity"),
            answers=frozenset(_read_names(fields.require(row, "answer", "a_entity"), "answer")),
        )

    @staticmethod
    def triples(row: Mapping[str, Any]) -> list[NamedTriple]:
        """Read the row's own part of the graph, blank names as ""; raise ``RowError`` for other than triples."""
        graph = fields.require(row, "graph")
        if isinstance(graph, str):
            try:
                graph = boundary.parse_json(graph)
            except ValueError as error:
                raise RowError("graph is a string that isn't JSON") from error
        triples = enumerate(fields.items(graph, "graph", MAX_TRIPLES), 1)
        return [_read_triple(triple, number) for number, triple in triples]


def _read_triple(triple: Any, number: int) -> NamedTriple:
    if not isinstance(triple, list | tuple) or len(triple) != 3:
        raise RowError(f"triple {number} of graph is not (head, relation, tail)")
    names = (fields.text("" if name is None else name, f"triple {number} of graph") for name in triple)
    head, relation, tail = (name if name.strip() else "" for name in names)
    return head, relation, tail


def _read_names(value: Any, label: str) -> tuple[str, ...]:
    """Return names in their order, without repeats."""
    names = [value] if isinstance(value, str) else fields.items(value, label, MAX_TRIPLES)
    return tuple(dict.fromkeys(fields.filled_text(name, label) for name in names))


WEBQSP, CWQ = (
    FreebaseQuestions(name, TERMS[name]["homepage"], TERMS[name]["citation"], hops)
    for name, hops in {"webqsp": 2, "cwq": 4}.items()
)
