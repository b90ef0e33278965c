"""Read GrailQA: questions of up to four relations over Freebase, each with its query as a graph.

Source: https://dki-lab.github.io/GrailQA (44,337 questions to train on, 6,763 to validate; the answers to 13,231 to
test are hidden). Licence: CC BY-SA 4.0, as its authors state. The graph is a separate file of triples by names. A row
of the authors' file, invented, without the fields that are not read::

    {"qid": 7, "question": "what did ana brell write",
     "answer": [{"answer_type": "Entity", "answer_argument": "m.0def", "entity_name": "Dune Rain"}],
     "graph_query": {
       "nodes": [{"nid": 0, "node_type": "class", "id": "book.book", "friendly_name": "Book", "question_node": 1},
                 {"nid": 1, "node_type": "entity", "id": "m.0abc", "friendly_name": "Ana Brell", "question_node": 0}],
       "edges": [{"start": 1, "end": 0, "relation": "book.author.works_written"}]}}

Gold paths are the walks of the query from each entity to the question's node (arXiv 2402.11199, Appendix A, takes the
subgraph of the same query). Quirks: an entity without a name has its Freebase id; a question about numbers or a whole
class has no topic; the path of a question that counts leads to what is counted.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from builders.benchmarks import sources
from builders.benchmarks.terms import terms_of
from builders.paths import metaqa
from safe_stepwise.errors import RowError
from safe_stepwise.graphs.graph_store import inverse
from safe_stepwise.records import Candidate, KGQuestion, RelationPath
from safe_stepwise.store import fields
from safe_stepwise.store.rows import entries

NAME = "grailqa"
LICENSE, HOMEPAGE, CITATION, *_ = terms_of(NAME)
CAVEAT = "A gold path is a walk of GrailQA's query; what else the query asks for is no part of the path."
NEEDS_GRAPH, HAS_GOLD = True, True
HOPS = 4
MAX_EDGES = 20
"""The maximum number of edges of a query; real ones have up to four."""
_TEXTS = dict.fromkeys(("node_type", "id", "friendly_name"), fields.text)
_NODE = {"nid": fields.integer, **_TEXTS, "question_node": fields.integer}
_EDGE = {"start": fields.integer, "end": fields.integer, "relation": fields.filled_text}
MAX_ANSWERS, read_rows, triples = metaqa.MAX_ANSWERS, sources.read_rows, metaqa.triples


def parse(row: Mapping[str, Any], split: str) -> KGQuestion:
    """Parse a row into its question; raise ``RowError`` with the reason if it is unusable."""
    if not row.get("answer") or not row.get("graph_query"):
        raise RowError("its answers or its query are hidden, as in GrailQA's test split; take the one to validate")
    qid, (topics, gold_paths) = fields.require(row, "qid"), _read_query(row["graph_query"])
    lengths = {len(gold.path) for gold in gold_paths}
    answers = fields.items(entries(row["answer"]), "answer", MAX_ANSWERS)
    objects = (answer if isinstance(answer, Mapping) else {} for answer in answers)
    names = (answer.get("entity_name") or fields.require(answer, "answer_argument") for answer in objects)
    return KGQuestion(
        id=fields.filled_text(qid if isinstance(qid, str) else str(fields.integer(qid, "qid")), "qid"),
        benchmark=NAME,
        split=split,
        question=fields.filled_text(fields.require(row, "question"), "question"),
        topics=topics,
        answers=frozenset(fields.filled_text(name, "an answer") for name in names),
        gold_paths=gold_paths,
        hops=lengths.pop() if len(lengths) == 1 else 0,
    )


def _read_query(query: Any) -> tuple[tuple[str, ...], tuple[Candidate, ...]]:
    """Return a query's entities, and the walks from each to the question's node."""
    if not isinstance(query, Mapping):
        raise RowError("graph_query is no object with nodes and edges")
    nodes = fields.read_rows(query.get("nodes"), "nodes", "node", _NODE)
    edges = fields.read_rows(query.get("edges"), "edges", "edge", _EDGE)
    goals = [nid for nid, *_, is_goal in nodes if is_goal]
    if len(goals) != 1 or len(edges) > MAX_EDGES:
        raise RowError(
            f"its query has {len(goals)} question nodes and {len(edges)} edges; write 1, and at most {MAX_EDGES}"
        )
    ids = [nid for nid, *_ in nodes]
    if len(ids) != len({*ids}) or not {nid for edge in edges for nid in edge[:2]} <= {*ids}:
        raise RowError("its query has two nodes of one nid, or an edge of a nid that no node has")
    steps: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for start, end, relation in edges:
        steps[start].append((relation, end))
        steps[end].append((inverse(relation), start))
    names = {
        nid: fields.filled_text(name or id_, "an entity") for nid, kind, id_, name, _ in nodes if kind == "entity"
    }
    walks = (Candidate(name, path) for nid, name in names.items() for path in _walk(steps, (nid,), goals[0]) if path)
    return tuple(dict.fromkeys(names.values())), tuple(dict.fromkeys(walks))


def _walk(steps: Mapping[int, list[tuple[str, int]]], chain: tuple[int, ...], goal: int) -> Iterator[RelationPath]:
    """Yield the relations of each walk that continues a chain of nodes to ``goal`` and visits no node twice."""
    if chain[-1] == goal:
        yield ()
        return
    for relation, end in steps.get(chain[-1], ()):
        if end not in chain:
            yield from ((relation, *path) for path in _walk(steps, (*chain, end), goal))
