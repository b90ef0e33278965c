"""A made-up graph of books in Freebase's form, and questions over it in the forms of GrailQA and of RoG."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from safe_stepwise.graphs.graph_store import NamedTriple

WROTE, EDITED = "book.author.works_written", "book.editor.works_edited"
EDITION, PUBLISHER = "book.book.editions", "book.edition.publisher"
PLACES = ["Oru", "Vel", "Marn", "Kelvia", "Tesk"]


def book(number: int) -> str:
    return f"Book {number}"


def triples(size: int = 24) -> list[NamedTriple]:
    """Each book has authors, an editor, and an edition without a name, which has a publisher."""
    rows: list[NamedTriple] = []
    for n in range(size):
        rows += [(f"Author {n % 8}", WROTE, book(n)), (f"Editor {n % 5}", EDITED, book(n))]
        rows += [(f"Author {(n + 3) % 8}", WROTE, book(n))] if n % 3 == 0 else []
        edition = f"m.0{'bcdfghjk'[n % 8]}{n:02d}{'qrst'[n % 4]}"
        rows += [(book(n), EDITION, edition), (edition, PUBLISHER, f"{PLACES[n * 3 % 5]} Press")]
    return rows


def node(nid: int, name: str, kind: str = "entity", **more: Any) -> dict[str, Any]:
    return {"nid": nid, "node_type": kind, "id": f"m.0{nid}x{name}", "class": "book.book", "friendly_name": name,
            "question_node": 0, "function": "none", **more}  # fmt: skip


def edge(start: int, relation: str, end: int) -> dict[str, Any]:
    return {"start": start, "end": end, "relation": relation, "friendly_name": relation.rpartition(".")[2]}


ASKED = node(0, "Book", "class", question_node=1)


def row(qid: int, question: str, answers: list[str], nodes: list[Any], edges: list[Any], kind: str = "Entity") -> Any:
    return {
        "qid": 2100001000000 + qid,
        "question": question.lower(),
        "answer": [
            {"answer_type": kind, "answer_argument": answer if kind == "Value" else f"m.0{answer}",
             **({"entity_name": answer} if kind == "Entity" else {})}
            for answer in answers
        ],
        "function": "count" if kind == "Value" else "none",
        "num_node": len(nodes) + 1,
        "num_edge": len(edges),
        "graph_query": {"nodes": [ASKED, *nodes], "edges": edges},
        "sparql_query": "", "s_expression": "", "domains": ["book"], "level": "i.i.d.",
    }  # fmt: skip


def grailqa(size: int = 24) -> list[Any]:
    """One hop; two, by an edition; two entities that meet at the answer; a number; no entity."""
    by_end: dict[tuple[str, str], list[str]] = defaultdict(list)
    for head, relation, tail in triples(size):
        by_end[relation, head].append(tail)
    rows = []
    for n in range(8):
        author, works = f"Author {n}", by_end[WROTE, f"Author {n}"]
        wrote, size_of = [edge(1, WROTE, 0)], [str(len(works))]
        rows.append(row(n, f"What did {author} write?", works, [node(1, author)], wrote))
        rows.append(row(100 + n, f"How many did {author} write?", size_of, [node(1, author)], wrote, "Value"))
        editor = f"Editor {n % 5}"
        if both := sorted({*works} & {*by_end[EDITED, editor]}):
            nodes = [node(1, author), node(2, editor)]
            question = f"What did {author} write and {editor} edit?"
            rows.append(row(200 + n, question, both, nodes, [*wrote, edge(2, EDITED, 0)]))
    for n in range(size):
        (edition,) = by_end[EDITION, book(n)]
        nodes, edges = [node(1, "Edition", "class"), node(2, book(n))], [edge(2, EDITION, 1), edge(1, PUBLISHER, 0)]
        rows.append(row(300 + n, f"Who published {book(n)}?", by_end[PUBLISHER, edition], nodes, edges))
    rows.append(row(400, "Which book is the longest?", [book(3)], [], []))
    return rows


def rog(size: int = 24) -> list[dict[str, Any]]:
    """The same questions with the whole graph in each row."""
    graph = [list(triple) for triple in triples(size)]
    return [
        {
            "id": f"WebQTest-{line['qid']}",
            "question": line["question"],
            "answer": [answer.get("entity_name", answer["answer_argument"]) for answer in line["answer"]],
            "q_entity": [n["friendly_name"] for n in line["graph_query"]["nodes"] if n["node_type"] == "entity"],
            "graph": graph,
        }
        for line in grailqa(size)
    ]


def written(folder: Path) -> tuple[Path, Path, Path]:
    """The files of the graph, of GrailQA's questions (one array, as published), and of RoG's."""
    kb, dev, lines = folder / "books.txt", folder / "grailqa_v1.0_dev.json", folder / "webqsp.jsonl"
    kb.write_text("".join("|".join(triple) + "\n" for triple in triples()), encoding="utf-8")
    dev.write_text(json.dumps(grailqa()), encoding="utf-8")
    lines.write_text("".join(json.dumps(line) + "\n" for line in rog()), encoding="utf-8")
    return kb, dev, lines
