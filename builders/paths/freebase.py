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
from safe_stepwise.errors import RowError
from safe_stepwise.graphs.store import NamedTriple
from safe_stepwise.records import KGQuestion
from safe_stepwise.store import fields
from safe_stepwise.store.boundary import parse_json

MAX_TRIPLES = 200_000
"""The most triples, or names, of a row; real rows have some thousands."""


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
    chunks = staticmethod(sources.chunks)

    def parse(self, row: Mapping[str, Any], split: str) -> KGQuestion:
        """Parse a row into its question; raise ``RowError`` with the reason if it is unusable.

        >>> row = {"id": "q7", "question": "what did ana write", "answer": ["Oru"], "q_entity": ["Ana"]}
        >>> WEBQSP.parse(row, "train").answers
        frozenset({'Oru'})
        """
        return KGQuestion(
            id=fields.filled_text(fields.require(row, "id"), "id"),
            benchmark=self.NAME,
            split=split,
            question=fields.filled_text(fields.require(row, "question"), "question"),
            topics=_names(fields.require(row, "q_entity"), "q_entity"),
            answers=frozenset(_names(fields.require(row, "answer", "a_entity"), "answer")),
        )

    @staticmethod
    def triples(row: Mapping[str, Any]) -> list[NamedTriple]:
        """Read the row's own part of the graph, blank names as ""; raise ``RowError`` if it is no list of triples."""
        graph = fields.require(row, "graph")
        if isinstance(graph, str):
            try:
                graph = parse_json(graph)
            except ValueError as error:
                raise RowError("graph is a string that isn't JSON") from error
        return [_triple(triple, number) for number, triple in enumerate(fields.items(graph, "graph", MAX_TRIPLES), 1)]


def _triple(triple: Any, number: int) -> NamedTriple:
    if not isinstance(triple, list | tuple) or len(triple) != 3:
        raise RowError(f"triple {number} of graph is not (head, relation, tail)")
    names = (fields.text("" if name is None else name, f"triple {number} of graph") for name in triple)
    head, relation, tail = (name if name.strip() else "" for name in names)
    return head, relation, tail


def _names(value: Any, label: str) -> tuple[str, ...]:
    """Return names in their order, each once."""
    names = [value] if isinstance(value, str) else fields.items(value, label, MAX_TRIPLES)
    return tuple(dict.fromkeys(fields.filled_text(name, label) for name in names))


WEBQSP = FreebaseQuestions(
    NAME="webqsp",
    HOMEPAGE="https://www.microsoft.com/en-us/download/details.aspx?id=52763",
    HOPS=2,
    CITATION="""\
@inproceedings{yih2016webqsp,
  title = {The Value of Semantic Parse Labeling for Knowledge Base Question Answering},
  author = {Yih, Wen-tau and Richardson, Matthew and Meek, Christopher and Chang, Ming-Wei
            and Suh, Jina},
  booktitle = {ACL},
  year = {2016}
}""",
)
CWQ = FreebaseQuestions(
    NAME="cwq",
    HOMEPAGE="https://www.tau-nlp.sites.tau.ac.il/compwebq",
    HOPS=4,
    CITATION="""\
@inproceedings{talmor2018complexwebquestions,
  title = {The Web as a Knowledge-Base for Answering Complex Questions},
  author = {Talmor, Alon and Berant, Jonathan},
  booktitle = {NAACL},
  year = {2018}
}""",
)
