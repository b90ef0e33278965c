"""A benchmark of the user's own: a file of questions with passages, in any form that `safe_stepwise.store.rows` reads.

Source, licence, citation and home page are what the user states, else unknown. A row in our columns (all but question,
answer and passages may be absent)::

    {"id": "q1", "question": "In which country is the town that the Vel crosses?", "answer": "Marn",
     "aliases": ["Republic of Marn"],
     "passages": [{"title": "Vel", "text": "The Vel is a river. It crosses Oru.", "is_gold": true},
                  {"title": "Oru", "text": "Oru is a town in Marn.", "is_gold": true}],
     "supporting_facts": [{"title": "Vel", "sentence": 1}],
     "evidence": [{"head": "Vel", "relation": "crosses", "tail": "Oru"}],
     "decomposition": [{"question": "Which country is Oru in?", "answer": "Marn", "passage": 2}]}

Quirks: a row without an id gets the SHA-256 of its content. If the file does not mark gold passages, all are gold. A
passage without a title gets the name with which it begins, or its number. Answers are scored by SQuAD's rule.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from builders.benchmarks import own_rows, sources
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.graphs.comparisons import is_comparison, operation
from safe_stepwise.language.mentions import names_in
from safe_stepwise.language.text import has_words, normal_name, normal_words
from safe_stepwise.records import Passage, Question
from safe_stepwise.scoring import BENCHMARKS
from safe_stepwise.store import boundary, names, rows, tables, terminal

UNKNOWN = "unknown"
"""The Hub's id for the licence of data whose user names none."""
_SEEN_ROWS = 100
"""The number of first rows of a file from which its columns are guessed."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,59}")
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]{0,59}")
_NO_TRIPLES = (
    "{} annotates no triples. *Verified* says that its gold passages name each other (or one thing in common) and "
    "hold the answer, or state the dates, nations or numbers that a comparison needs; whether they state the relation "
    "that the question asks for was not checked. A comparison whose values were not read is undecided."
)
_ALL_GOLD = "Nothing in {} says which passages are gold, so all passages of a question count as gold."
_NO_LINK = "Rows where no link leads from the question to the answer are undecided."


@dataclass(frozen=True, slots=True)
class OwnBenchmark:
    """A `Benchmark` as its user describes it, for the builds; empty texts are unknown."""

    name: str
    columns: rows.Columns = field(default_factory=dict)
    """The columns of the benchmark's file, by field."""
    license: str = UNKNOWN
    homepage: str = ""
    citation: str = ""
    marks_gold: bool = True
    """Whether the first rows mark gold passages; else all passages are gold, and a row with marks is rejected."""
    added: tuple[str, ...] = ("sentences", "title")
    """The parts that the file's passages lack and we add: ``sentences``, ``title``."""
    unused: tuple[str, ...] = ()
    """The columns of the file that hold no field."""

    @property
    def caveat(self) -> str:
        """The limits of the labels, given the annotations that the file lacks."""
        has_triples = {"evidence", "decomposition"} & set(self.columns)
        caveats = ["" if has_triples else _NO_TRIPLES, "" if self.marks_gold else _ALL_GOLD]
        caveats.append("" if has_triples or self.marks_gold else _NO_LINK)
        return " ".join(caveat.format(self.name) for caveat in caveats if caveat)

    def parse(self, row: Mapping[str, Any], split: str) -> Question:
        """Parse a row, adding titles, gold marks and kind if it lacks them; raise ``RowError`` if it is unusable."""
        question = own_rows.parse_row(rows.own_columns(row, self.columns), self.name, split)
        passages = [p if p.title else replace(p, title=_make_title(p, n)) for n, p in enumerate(question.passages, 1)]
        titles = {p.title for p in passages}
        for number, fact in enumerate(question.supporting_facts, 1):
            if fact.title not in titles:
                raise RowError(f"supporting fact {number} names {fact.title!r}, not a title of the passages")
        if not self.marks_gold and any(page.is_gold for page in passages):
            raise RowError(f"marks gold passages, but none of the first {_SEEN_ROWS} rows does: move such a row there")
        if not self.marks_gold:
            passages = [replace(p, is_gold=True) for p in passages]
        question = replace(question, passages=tuple(passages))
        return replace(question, kind=question.kind or _guess_kind(question))

    def render_columns(self) -> str:
        """Render which column of the file holds which field, as a table for the terminal."""
        cells = [(field, ", ".join(names)) for field, names in self.columns.items()]
        lines = [("field", "column"), *cells, *([("(not used)", ", ".join(self.unused))] if self.unused else [])]
        return tables.text_table([tuple(map(terminal.printable, line)) for line in lines])


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The options by which a user describes their benchmark; each may be left out."""

    name: str | None = None
    license: str | None = None
    homepage: str | None = None
    citation: Path | None = None
    fields: Path | None = None


def describe(source: str, split: str, terms: Terms) -> OwnBenchmark:
    """Describe a file's benchmark by terms and columns (guessed if not named); raise ``UserError`` for bad ones."""
    stem = Path(source.partition("@")[0]).name.partition(".")[0].lower()
    name = terms.name or re.sub(r"[^a-z0-9_.-]+", "-", stem).strip("-._")
    if not _NAME.fullmatch(name) or name.endswith((names.LABELED, names.EVAL)):
        raise UserError(
            f"--name {name!r}: write up to 60 letters a-z, digits, and . _ - between, such as my-questions"
        )
    if name in BENCHMARKS:
        raise UserError(
            f"--name {name}: is that of a benchmark known here; give another --name, or --benchmark {name}"
        )
    if terms.license is not None and not _LICENSE.fullmatch(terms.license):
        raise UserError(f"--license {terms.license!r}: write a Hub licence id, such as cc-by-4.0, or leave it out")
    if terms.homepage is not None and not terms.homepage.startswith(("https://", "http://")):
        raise UserError(f"--homepage {terms.homepage!r}: write an address that begins with https://")
    fixed_columns: rows.Columns = {}
    if terms.fields is not None:
        fixed_columns = rows.parse_columns(boundary.read_yaml(terms.fields), str(terms.fields))
    first_rows = []
    for row in islice(sources.read_rows(source, split), _SEEN_ROWS):
        with suppress(RowError):
            first_rows.append(sources.decode(row))
    columns = rows.guess_columns(first_rows, fixed_columns)
    rows.check_columns(columns, first_rows, source, "name the columns in a file for --fields, such as question: query")
    citation = terms.citation.read_text(encoding="utf-8") if terms.citation else ""
    if "```" in citation:
        raise UserError(f"{terms.citation}: has ```, which would end the citation on the card; write BibTeX alone")
    used = {column for group in columns.values() for column in group}
    unused = tuple(column for column in dict.fromkeys(chain.from_iterable(first_rows)) if column not in used)
    license, homepage = terms.license or UNKNOWN, terms.homepage or ""
    pages = [*_read_passages(first_rows, columns)]
    marks_gold, added = any(page.get("is_gold") for page in pages), ("sentences", "title")
    lacking = tuple(part for part in added if not all(page.get(part) for page in pages))
    return OwnBenchmark(name, columns, license, homepage, citation, marks_gold, lacking, unused)


def _read_passages(first_rows: Sequence[Mapping[str, Any]], columns: rows.Columns) -> Iterator[Mapping[str, Any]]:
    """Yield the passages of rows that can be read, in our columns."""
    for row in first_rows:
        with suppress(RowError):
            pages = rows.own_columns(row, columns).get("passages")
            yield from (page for page in (pages if isinstance(pages, list) else ()) if isinstance(page, dict))


def _guess_kind(question: Question) -> str:
    """Return "comparison" if answer or wording show one, or if several triples form no chain; else ""."""
    has_chain = {triple.head for triple in question.evidence} & {triple.tail for triple in question.evidence}
    is_branched = len(question.evidence) > 1 and not has_chain
    is_choice = operation(question.question) is not None and (" or " in question.question or _is_side(question))
    return "comparison" if is_branched or is_choice or is_comparison(question) else ""


def _is_side(question: Question) -> bool:
    """Whether a question without triples names several passages ("which of Oru and Vel"), one of them the answer."""
    words, answer = normal_words(question.question), normal_name(question.answer)
    sides = {name for page in question.passages if has_words(words, name := normal_name(page.title))}
    return len(sides) > 1 and answer in sides and not (question.evidence or question.decomposition)


def _make_title(passage: Passage, number: int) -> str:
    """Return the name with which a passage begins, or else its number."""
    text = passage.sentences[0]
    name = next((surface for surface, sentence in names_in(passage).values() if sentence == 0), "")
    prefix, separator, _ = text.partition(name) if name else ("", "", "")
    return f"{prefix}{name}" if separator and prefix.strip().lower() in ("", "the") else f"Passage {number}"
