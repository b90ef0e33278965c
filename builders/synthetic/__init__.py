"""Synthetic: multi-hop questions about a fictional world, whose noise is known for each row.

What it is: a seeded generator that writes encyclopedia-like passages about invented people, works,
places and organisations, asks 2-4 hop questions about them in the styles of 2WikiMultihopQA (10
passages, Wikidata-like triples), HotpotQA (10 passages, freer wording) and MuSiQue (20 passages,
decompositions), and spoils a given share of the rows in one known way, so that verification can be
scored against the truth at any size. Source: this file. Licence: CC0-1.0.

A row of its plain JSONL (``to_row``), shortened::

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

Quirks: row i depends only on (seed, split, noise rate, i) and on its block's world, so any worker can make any range;
each article draws its writer (``writers/``), unless the spec names one; ``truth`` is for scoring, and ``parse`` never
reads it; an ``unparsed`` row has no annotations and no gold passages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from click import BadParameter

from builders.synthetic.articles import write_article
from builders.synthetic.creation import make_world
from builders.synthetic.noise import shares, spoil
from builders.synthetic.passages import to_question
from builders.synthetic.questions import STYLES, plan
from builders.synthetic.small import MAX_PASSAGES, MIN_PASSAGES, make_row, name_filter
from builders.synthetic.world import NAME as NAME
from builders.synthetic.world import Namer, pick, pick_weighted
from builders.synthetic.writers import names, writer
from safe_stepwise.commands.values import NATURAL, Number, digits
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.records import NoiseType, Passage, Question, canonical_json
from safe_stepwise.store import boundary, codec, fields

LICENSE = "cc0-1.0"
HOMEPAGE = ""
CITATION = ""
TELLTALE = "truth"
SCORING = "synthetic"
CAVEAT = ""
EXPECTED: Mapping[str, Mapping[str, float]] = {  # not measured: about as the others
    "verification": {"calls": 9.0, "prompt": 7000, "reply": 1000},
    "verifier_steps": {"calls": 5, "prompt": 9600, "reply": 1200},
}

BLOCK = 200
"""Rows that share one world."""
MAX_ROWS = 10_000_000
"""Rows of a spec at most; a larger number is a typing mistake, and its build would not end."""


@dataclass(frozen=True)
class Spec:
    """What to generate: rows, seed, share of noise (0 to 1), and the ``writer`` of all articles (any if empty)."""

    rows: int
    seed: int = 0
    noise: float = 0.12
    writer: str = ""


@dataclass(frozen=True)
class SmallSpec(Spec):
    """The spec of a small world: rows of ``passages`` passages, each of one sentence (see `small`)."""

    passages: int = 5


_NUMBERS = {
    "rows": Number(digits, f"a whole number from 1 to {MAX_ROWS:,}", 1, MAX_ROWS),
    "seed": NATURAL,
    "noise": Number(float, "a share from 0 to 1", 0, 1),
    "passages": Number(digits, f"from {MIN_PASSAGES} to {MAX_PASSAGES} (a small world)", MIN_PASSAGES, MAX_PASSAGES),
}
"""The types of a spec's numbers."""


def parse_spec(text: str) -> Spec:
    """Parse the text that ``--input`` gives for this benchmark; raise UserError when it can't be read.

    >>> parse_spec("rows=20000,seed=7")
    Spec(rows=20000, seed=7, noise=0.12, writer='')
    >>> parse_spec("rows=300,passages=5,writer=plain")
    SmallSpec(rows=300, seed=0, noise=0.12, writer='plain', passages=5)
    """
    values: dict[str, Any] = {}
    for setting in text.split(","):
        name, _, value = (piece.strip() for piece in setting.partition("="))
        if name not in (*_NUMBERS, "writer") or name in values:
            raise _spec_error(text, f"{name!r} {'is given twice' if name in values else 'is not a setting'}")
        try:
            values[name] = writer(value).name if name == "writer" else _NUMBERS[name].convert(value, None, None)
        except BadParameter as error:
            raise _spec_error(text, f"{name}: {error.message}") from None
    if "rows" not in values:
        raise _spec_error(text, "names no number of rows")
    return SmallSpec(**values) if "passages" in values else Spec(**values)


def _spec_error(text: str, problem: str) -> UserError:
    return UserError(f"synthetic spec {text!r}: {problem}: write it like rows=20000,seed=7,noise=0.12")


def generate(
    spec: Spec, start: int = 0, stop: int | None = None, split: str = "validation"
) -> Iterator[tuple[Question, NoiseType]]:
    """Generate rows ``start`` to ``stop`` (excluded), the same in every range, each with its true noise type.

    >>> spec = Spec(rows=300, seed=1)
    >>> [q.id for q, _ in generate(spec, 199, 201)]
    ['synthetic-validation-1-199', 'synthetic-validation-1-200']
    """
    stop = spec.rows if stop is None else min(stop, spec.rows)
    authors = [writer(name) for name in ([spec.writer] if spec.writer else names())]
    small = spec if isinstance(spec, SmallSpec) else None
    write = partial(write_article, authors, is_short=small is not None)
    block, noise = None, shares()
    for i in range(start, stop):
        if i // BLOCK != block:
            block = i // BLOCK
            chance = Random(f"{spec.seed}:{split}:{block}")
            world = make_world(chance, write, Namer(chance, name_filter(split), plain=True) if small else None)
            library: dict[tuple[int, bool], Passage] = {}
        rng = Random(f"{spec.seed}:{split}:{spec.noise}:{i}")
        truth = pick_weighted(rng, noise) if rng.random() < spec.noise else "none"
        distractors = None
        if small:
            draft, distractors = make_row(world, rng, truth, small.passages)
        else:
            style = pick(rng, STYLES)
            while not spoil(draft := plan(world, rng, truth, style)):  # until a draft can carry the noise
                pass
        yield to_question(draft, f"{NAME}-{split}-{spec.seed}-{i}", split, library, distractors), truth


_COLUMNS = tuple(codec.question_row(Question("", "", "", "", "")))


_NESTED: Mapping[str, tuple[str, ...]] = {
    "passages": ("title", "sentences", "is_gold"),
    "supporting_facts": ("title", "sentence"),
    "evidence": ("head", "relation", "tail"),
    "decomposition": ("question", "answer", "passage"),
}


def to_row(question: Question, truth: NoiseType) -> dict[str, Any]:
    """Make the plain JSON object of a row with its truth; ``parse`` reads it back."""
    return {**codec.question_row(question), "truth": truth}


def parse(row: Mapping[str, Any], split: str) -> Question:
    """Parse a ``to_row`` object without its truth; raise RowError when a field is unusable.

    >>> question, truth = next(generate(Spec(rows=1, seed=3)))
    >>> parse(to_row(question, truth), "validation") == question
    True
    """
    columns = {name: fields.require(row, name) for name in _COLUMNS}
    for name, keys in _NESTED.items():  # lists of objects travel through Parquet and the Hub in other shapes, too
        columns[name] = [dict(zip(keys, record, strict=True)) for record in fields.records(columns[name], keys, name)]
    for name in ("id", "question"):
        fields.filled_text(columns[name], name)
    columns["answer"] = fields.answer(row)
    try:
        question = boundary.read(Question, {**columns, "benchmark": NAME, "split": split}, "the row")
        canonical_json(question).encode()  # no half of a character
    except ValueError as error:
        raise RowError(str(error)) from None
    _check_numbers(question)
    return question


def _check_numbers(question: Question) -> None:
    """Raise RowError for a passage without text, and for a sentence or passage number that does not exist."""
    if not question.passages:
        raise RowError("no passages")
    for number, page in enumerate(question.passages, 1):
        if not page.text.strip():
            raise RowError(f"passage {number} ({page.title!r}) is empty")
    sentences = {page.title: len(page.sentences) for page in question.passages}
    for fact in question.supporting_facts:
        if not 0 <= fact.sentence < sentences.get(fact.title, 0):
            raise RowError(f"supporting fact {fact.title!r} {fact.sentence}: no such sentence")
    for hop in question.decomposition:
        if hop.passage is None or not 1 <= hop.passage <= len(question.passages):
            raise RowError(f"a hop points at passage {hop.passage}, which is not there")
