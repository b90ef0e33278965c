"""WebQSP: questions that people asked a search engine, of up to two hops over Freebase.

Source: https://www.microsoft.com/en-us/download/details.aspx?id=52763
(2,826 questions to train on, 1,628 to test), read in the form of RoG's copies, from a file or the
Hub (`builders.paths.relation_rog` has a row and its quirks).
"""

from collections.abc import Mapping
from typing import Any

from builders.benchmarks.sources import chunks as chunks
from builders.paths.relation_rog import NO_PATHS, parse_as, triples_of
from safe_stepwise.records import KGQuestion

NAME = "webqsp"
LICENSE = "unknown"
HOMEPAGE = "https://www.microsoft.com/en-us/download/details.aspx?id=52763"
CITATION = """\
@inproceedings{yih2016webqsp,
  title = {The Value of Semantic Parse Labeling for Knowledge Base Question Answering},
  author = {Yih, Wen-tau and Richardson, Matthew and Meek, Christopher and Chang, Ming-Wei
            and Suh, Jina},
  booktitle = {ACL},
  year = {2016}
}"""
CAVEAT = NO_PATHS
NEEDS_GRAPH = False

triples = triples_of


def parse(row: Mapping[str, Any], split: str) -> KGQuestion:
    """As `relation_rog.parse_as`."""
    return parse_as(NAME, row, split)
