"""A benchmark of the user's own: a file of questions with passages, in any form that `safe_stepwise.store.rows` reads.

Source, licence, citation and home page are what the user says, else unknown. A row, in our columns (all but question,
answer and passages may be absent)::

    {"id": "q1", "question": "In which country is the town that the Vel crosses?", "answer": "Marn",
     "aliases": ["Republic of Marn"],
     "passages": [{"title": "Vel", "text": "The Vel is a river. It crosses Oru.", "is_gold": true},
                  {"title": "Oru", "text": "Oru is a town in Marn.", "is_gold": true}],
     "supporting_facts": [{"title": "Vel", "sentence": 1}],
     "evidence": [{"head": "Vel", "relation": "crosses", "tail": "Oru"}],
     "decomposition": [{"question": "Which country is Oru in?", "answer": "Marn", "passage": 2}]}

Quirks: a row without an id gets the SHA-256 of its content; where nothing says which passages are gold, all are; a
passage without a title gets the name with which it begins, or its number. Answers count by SQuAD's rule.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from builders.benchmarks import sources
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.graphs.comparisons import is_comparison, operation
from safe_stepwise.language.mentions import names_in
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.records import Hop, Passage, Question, SupportingFact, Triple, identity
from safe_stepwise.scoring import BENCHMARKS
from safe_stepwise.store import boundary, fields, names, rows, sizes, tables
from safe_stepwise.store.terminal import printable

T = TypeVar("T")
UNKNOWN = "unknown"
"""The licence, by its id on the Hub, of data whose user names none."""
_SEEN_ROWS = 100
"""Rows of a file from which its columns are guessed."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,59}")
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]{0,59}")
_NO_TRIPLES = (
    "{} annotates no triples. *Verified* says that its gold passages name each other (or one thing in common) and "
    "hold the answer; whether they state the relation that the question asks for was not checked."
)
_ALL_GOLD = (
    "Nothing in {} says which passages are gold, so all passages of a question count as gold, and rows where no "
    "link leads from the question to the answer are undecided."
)


@dataclass(frozen=True, slots=True)
class OwnBenchmark:
    """What a user says of their benchmark: a `Benchmark` for the builds. Empty texts are unknown."""

    name: str
    columns: rows.Columns = field(default_factory=dict)
    """The columns of its file, by field."""
    license: str = UNKNOWN
    homepage: str = ""
    citation: str = ""
    marks_gold: bool = True
    """Whether its rows say which passages are gold; else all are."""
    unused: tuple[str, ...] = ()
    """The columns of its file that hold no field."""

    @property
    def caveat(self) -> str:
        """What the labels can't tell, as its file lacks annotations."""
        has_triples = {"evidence", "decomposition"} & set(self.columns)
        caveats = ["" if has_triples else _NO_TRIPLES, "" if self.marks_gold else _ALL_GOLD]
        return " ".join(caveat.format(self.name) for caveat in caveats if caveat)

    def parse(self, row: Mapping[str, Any], split: str) -> Question:
        """Parse a row, adding titles, gold marks and kind if it lacks them; raise ``RowError`` if it is unusable."""
        question = parse_row(rows.own_columns(row, self.columns), self.name, split)
        passages = [p if p.title else replace(p, title=_title(p, n)) for n, p in enumerate(question.passages, 1)]
        titles = {p.title for p in passages}
        for number, fact in enumerate(question.supporting_facts, 1):
            if fact.title not in titles:
                raise RowError(f"supporting fact {number} names {fact.title!r}, not a title of the passages")
        if not self.marks_gold:
            passages = [replace(p, is_gold=True) for p in passages]
        question = replace(question, passages=tuple(passages))
        return replace(question, kind=question.kind or _kind(question))

    def table(self) -> str:
        """Render which columns of its file hold what, for the terminal."""
        cells = [(field, ", ".join(names)) for field, names in self.columns.items()]
        lines = [("field", "column"), *cells, *([("(not used)", ", ".join(self.unused))] if self.unused else [])]
        return tables.text_table([tuple(map(printable, line)) for line in lines])


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The options by which a user describes their benchmark; each may be left out."""

    name: str | None = None
    license: str | None = None
    homepage: str | None = None
    citation: Path | None = None
    fields: Path | None = None


def describe(source: str, split: str, terms: Terms) -> OwnBenchmark:
    """Describe a file's benchmark: its terms and columns (guessed if not named); raise ``UserError`` for bad ones."""
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
    for row in islice(sources.raw_rows(source, split), _SEEN_ROWS):
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
    return OwnBenchmark(name, columns, license, homepage, citation, _marks_gold(first_rows, columns), unused)


def _marks_gold(first_rows: Sequence[Mapping[str, Any]], columns: rows.Columns) -> bool:
    for row in first_rows:
        with suppress(RowError):
            pages = rows.own_columns(row, columns).get("passages")
            if isinstance(pages, list) and any(isinstance(page, dict) and page.get("is_gold") for page in pages):
                return True
    return False


def _kind(question: Question) -> str:
    """Return "comparison" if the answer, the words or the triples (none leads to another) say so, else ""."""
    apart = not {triple.head for triple in question.evidence} & {triple.tail for triple in question.evidence}
    is_branched = len(question.evidence) > 1 and apart
    is_choice = " or " in question.question and operation(question.question) is not None
    return "comparison" if is_branched or is_choice or is_comparison(question) else ""


def _title(passage: Passage, number: int) -> str:
    """Return the name with which a passage begins, or else its number."""
    text = passage.sentences[0]
    name = next((surface for surface, sentence in names_in(passage).values() if sentence == 0), "")
    place = text.find(name) if name else -1
    return (
        text[: place + len(name)]
        if text[:place].strip().lower() in ("", "the") and place >= 0
        else f"Passage {number}"
    )


def parse_row(row: Mapping[str, Any], benchmark: str, split: str) -> Question:
    """Parse a row in our columns; raise ``RowError`` with the reason if it is unusable."""
    question_text = fields.filled_text(fields.require(row, "question"), "question")
    answer, *aliases = _answers(row)
    passages = tuple(
        _passage(passage, f"passage {number}")
        for number, passage in enumerate(fields.items(fields.require(row, "passages"), "passages"), 1)
    )
    if not passages:
        raise RowError("passages is empty")

    def read_rows(record: Callable[..., T], name: str, **readers: fields.Reader) -> tuple[T, ...]:
        return tuple(record(*values) for values in fields.read_rows(row.get(name) or [], name, name, readers))

    id_, text = row.get("id"), fields.text
    sentence, passage = _number(0, fields.MAX_ENTRIES - 1), _number(1, len(passages), or_none=True)
    question = Question(
        id=fields.filled_text(id_, "id") if id_ is not None else identity([question_text, *passages]),
        benchmark=benchmark,
        split=split,
        question=question_text,
        answer=answer,
        aliases=tuple(aliases),
        kind=text(row.get("kind") or "", "kind"),
        hops=fields.integer(row.get("hops") or 0, "hops"),
        passages=passages,
        supporting_facts=read_rows(SupportingFact, "supporting_facts", title=text, sentence=sentence),
        evidence=read_rows(Triple, "evidence", head=text, relation=text, tail=text),
        decomposition=read_rows(Hop, "decomposition", question=text, answer=text, passage=passage),
    )
    sizes.check_size(question)
    return question


def _answers(row: Mapping[str, Any]) -> list[str]:
    """Read all accepted answers: ``references``, or ``answer`` and its ``aliases``."""
    if row.get("references") is not None:
        references = fields.items(row["references"], "references")
        if not references:
            raise RowError("references is empty")
        return [fields.filled_text(reference, "reference") for reference in references]
    aliases = fields.items(row.get("aliases") or [], "aliases")
    if row.get("answer") is not None and not isinstance(row["answer"], str):
        raise RowError("answer is no text: write it in quotation marks")
    if not (row.get("answer") or "").strip():
        raise RowError("neither answer nor references: what counts as right has to be known")
    return [fields.text(row["answer"], "answer"), *(fields.text(a, "alias") for a in aliases)]


def _passage(content: Any, label: str) -> Passage:
    if isinstance(content, str):
        content = {"text": content}
    if not isinstance(content, Mapping):
        raise RowError(f"{label} is neither a text nor an object with title and text or sentences")
    title = fields.text(content.get("title") or "", f"{label} title")
    if content.get("sentences") is not None:
        listed = fields.items(content["sentences"], f"{label} sentences")
        sentences = tuple(fields.text(sentence, f"{label} sentence") for sentence in listed)
    else:
        sentences = split_sentences(fields.filled_text(fields.require(content, "text", "sentences"), f"{label} text"))
    return Passage(title, sentences, fields.boolean(content.get("is_gold") or False, f"{label} is_gold"))


def _number(first: int, last: int, or_none: bool = False) -> fields.Reader:
    def read(value: Any, label: str) -> Any:
        if value is None and or_none:
            return None
        if not first <= fields.integer(value, label) <= last:
            raise RowError(f"{label} is {str(value)[:20]}, expected {first} to {last}")
        return value

    return read
