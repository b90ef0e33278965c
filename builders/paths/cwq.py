"""ComplexWebQuestions: WebQSP made harder, of up to four hops over Freebase.

Source: https://www.tau-nlp.sites.tau.ac.il/compwebq
(27,639 questions to train on, 3,519 to validate, 3,531 to test), read in the form of RoG's copies,
from a file or the Hub (`builders.paths.relation_rog` has a row and its quirks).
"""

from collections.abc import Mapping
from typing import Any

from builders.benchmarks.sources import chunks as chunks
from builders.paths.relation_rog import NO_PATHS, parse_as, triples_of
from safe_stepwise.records import KGQuestion

NAME = "cwq"
LICENSE = "unknown"
HOMEPAGE = "https://www.tau-nlp.sites.tau.ac.il/compwebq"
CITATION = """\
@inproceedings{talmor2018complexwebquestions,
  title = {The Web as a Knowledge-Base for Answering Complex Questions},
  author = {Talmor, Alon and Berant, Jonathan},
  booktitle = {NAACL},
  year = {2018}
}"""
CAVEAT = NO_PATHS
NEEDS_GRAPH = False

triples = triples_of


def parse(row: Mapping[str, Any], split: str) -> KGQuestion:
    """As `relation_rog.parse_as`."""
    return parse_as(NAME, row, split)
