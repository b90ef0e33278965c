"""Read MetaQA: 1- to 3-hop questions about films, over a graph of 43,234 entities and 9 relations.

Source: https://github.com/yuyuz/MetaQA (``kb.txt``; ``qa_train.txt`` and so on in
``1-hop/vanilla``, ``2-hop/vanilla``, ``3-hop/vanilla``: 329,282 questions to train on, 39,138 and
39,093 to validate and test). Licence: CC BY 3.0, as its authors state.

A question of the original files (``.txt``), invented; the topic is in brackets, and a tab precedes the answers::

    who wrote the films directed by [Ana Brell]\tEdo Marn|Ors Velt

or as a JSON object, one per line::

    {"id": "2hop-dev-7", "hop": 2, "question": "who wrote the films directed by [Ana Brell]",
     "answers": ["Edo Marn", "Ors Velt"]}

Quirks: the original files give no ids and no hops, so both come from the file's place (a folder or
name with ``2-hop`` or ``2hop`` in it) and the line; names differ only by case, so nothing may be
normalised; a film and a person, or a year and a film, of one name are one entity. No relation path
is annotated: gold ones are derived from all questions of a template (`builders.paths.weak`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from builders.benchmarks import sources
from builders.benchmarks.terms import terms_of
from safe_stepwise.errors import RowError
from safe_stepwise.graphs.graph_store import NamedTriple
from safe_stepwise.records import KGQuestion
from safe_stepwise.store import fields, files

NAME = "metaqa"
LICENSE, HOMEPAGE, CITATION, *_ = terms_of(NAME)
CAVEAT = (
    "MetaQA annotates no relation path. Gold paths here are derived: of all questions that differ "
    "in their topic alone, the path of their number of hops that yields their answers best."
)
NEEDS_GRAPH = True
HOPS = 3
HAS_GOLD = True
MAX_ANSWERS = 50_000
"""The maximum number of answers of a question: more than the graph has entities."""

_TOPIC = re.compile(r"\[(.+)\]")
_HOP = re.compile(r"([123])-?hop")


def read_rows(source: str, split: str, limit: int | None = None) -> Iterator[sources.RawRow]:
    """Yield the source's rows in order, as `sources.read_rows`; rows of original files become JSON objects."""
    file = Path(source)
    if file.is_file() and file.name.removesuffix(".gz").endswith(".txt"):
        return sources.require_rows(islice(_read_lines(file, split), limit), file)
    return sources.read_rows(source, split, limit)


def parse(row: Mapping[str, Any], split: str) -> KGQuestion:
    """Parse a row into its question; raise ``RowError`` with the reason if it is unusable."""
    text = fields.filled_text(fields.require(row, "question"), "question")
    if (topic := _TOPIC.search(text)) is None:
        raise RowError("the question has no [topic entity] in brackets")
    hops = fields.integer(row.get("hop", 0), "hop")
    answers = fields.items(fields.require(row, "answers"), "answers", MAX_ANSWERS)
    if not answers:
        raise RowError("answers is empty")
    return KGQuestion(
        id=fields.filled_text(fields.require(row, "id"), "id"),
        benchmark=NAME,
        split=split,
        question=text,
        topics=(topic[1],),
        answers=frozenset(fields.filled_text(answer, "an answer") for answer in answers),
        hops=hops,
    )


def triples(row: Mapping[str, Any]) -> list[NamedTriple]:
    """Return no triples, as the graph is a separate file."""
    return []


def _read_lines(file: Path, split: str) -> Iterator[sources.RawRow]:
    """Yield the rows of an original file; `decode` reports a line that is not a row."""
    match = _HOP.search(f"{file.parent.parent.name}/{file.parent.name}/{file.name}".lower())
    hop = int(match[1]) if match else 0
    stem = f"{hop}hop-{split}" if hop else split
    for number, (_, line) in enumerate(files.read_lines(file, bytes, "question", "get it anew"), 1):
        if line.strip():
            text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
            question, tab, answers = text.partition("\t")
            row = {"id": f"{stem}-{number}", "hop": hop, "question": question}
            row |= {"answers": answers.split("|")} if tab else {}
            yield sources.RawRow(f"{file.name}:{number}", json.dumps(row))
