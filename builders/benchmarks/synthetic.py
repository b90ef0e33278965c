"""Synthetic: multi-hop questions about a fictional world, whose noise is known for each row.

What it is: rows of `builders.synthetic`, a seeded generator that writes encyclopedia-like passages about invented
people, works, places and organisations, asks 2-4 hop questions about them in the styles of 2WikiMultihopQA (10
passages, Wikidata-like triples), HotpotQA (10 passages, freer wording) and MuSiQue (20 passages, decompositions), and
spoils a given share of the rows in one known way, so that verification can be scored against the truth at any size.
Source: the generator. Licence: CC0-1.0.

A row of its plain JSONL (`builders.synthetic.to_row`), shortened::

    {"id": "synthetic-validation-7-12", "question": "Where was the director of film Marel Vo born?",
     "answer": "Brelstad", "aliases": [], "kind": "compositional", "hops": 2,
     "passages": [{"title": "Marel Vo", "sentences": ["Marel Vo is a 1954 Kelvian crime film.",
                   "It was directed by Tomek Veldin."], "is_gold": true},
                  {"title": "Tomek Veldin", "sentences": ["Tomek Veldin (born 1 May 1920) is a
                   Kelvian film director.", "A native of Brelstad, he left school early."],
                   "is_gold": true}],
     "supporting_facts": [{"title": "Marel Vo", "sentence": 1},
                          {"title": "Tomek Veldin", "sentence": 1}],
     "evidence": [{"head": "Marel Vo", "relation": "director", "tail": "Tomek Veldin"},
                  {"head": "Tomek Veldin", "relation": "place of birth", "tail": "Brelstad"}],
     "decomposition": [], "truth": "none"}

Quirks: the columns are ours, so that `own_rows` reads them; ``truth`` is for scoring, and ``parse`` never reads it; an
``unparsed`` row has no annotations and no gold passages.
"""

from collections.abc import Mapping
from typing import Any

from builders.benchmarks import own_rows
from builders.benchmarks.terms import terms_of
from builders.synthetic.world import NAME as NAME
from safe_stepwise.records import Question

LICENSE, HOMEPAGE, CITATION, CAVEAT, EXPECTED = terms_of(NAME)
TELLTALE = "truth"
SCORING = "synthetic"


def parse(row: Mapping[str, Any], split: str) -> Question:
    """Parse a row in our columns; raise ``RowError`` with the reason if it is unusable."""
    return own_rows.parse_row(row, NAME, split)
