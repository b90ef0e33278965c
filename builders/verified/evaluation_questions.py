"""The questions to evaluate on: a verified folder, a file, or a dataset on the Hub.

A verified folder gives its evaluation sample (``split`` test), or the verified rows of another
split. A file or Hub dataset holds rows of a benchmark in its own shape, rows as `build_verified`
publishes them, or anyone's own, an object a line::

    {"question": "Where is Oru?", "answer": "Marn", "passages": [{"title": "Oru", "text": "..."}]}

with, if wanted, ``id``, ``aliases`` or ``references`` (all accepted answers, in the place of ``answer``),
``sentences`` instead of ``text``, ``is_gold``, and the annotations of our own columns. Rows in a benchmark's own
shape, and those of another split than the sample, are cut to ten passages as the sample is, unless all are asked for
(``whole``), which then stand in their own order; others are taken as they are.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from builders import synthetic
from builders.benchmarks import BENCHMARKS, looks_like, parse_row, sources
from builders.benchmarks.hub import HubSource
from builders.benchmarks.musique import split_sentences
from builders.verified.questions import PASSAGES, with_passages
from builders.work import fields
from builders.work.rejects import Reject, RejectPolicy
from safe_stepwise.checking.plans import MOST_GOLD
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.records import Hop, Passage, Question, QuestionSet, SupportingFact, Triple, identity
from safe_stepwise.scoring import CUSTOM
from safe_stepwise.store import codec
from safe_stepwise.store.names import EVAL, TEST, VALIDATION, VERIFIED
from safe_stepwise.store.parquet import dataset_folder, parquet_files, read_rows
from safe_stepwise.store.sizes import check_size

T = TypeVar("T")


def read(
    source: str,
    benchmarks: Sequence[str] = (),
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    *,
    skip: bool = False,
    planned: bool = False,
    whole: bool = False,
) -> QuestionSet:
    """The first ``limit`` questions of each benchmark; without ``benchmarks`` of all there are.

    ``seed`` draws passages where there are more than ten, of which ``whole`` leaves none out; ``planned`` says that
    plans will be made of a file's rows. Raises ``UserError`` for a source that can't be read and, unless they are to
    be skipped, for a row that can't be, or planned for, or whose id came before, with its place.
    """
    if Path(source).is_dir():
        return _of_folder(Path(source), benchmarks, split or TEST, limit, seed, whole)
    questions: dict[tuple[str, str], Question] = {}
    skipped: list[str] = []
    rejects: list[bytes] = []
    for part, benchmark, part_split in (parts := _parts(source, benchmarks, split)):
        _refuse_whole_sample(source, part_split, whole)
        left = limit
        for row in sources.raw_rows(part, part_split):
            try:
                question = question_of(sources.decode(row), benchmark, part_split, seed, whole)
                if (question.benchmark, question.id) in questions:
                    raise RowError(f"its id {question.id!r} is that of an earlier row")
                if planned and (gold := len(question.gold)) > MOST_GOLD:
                    raise RowError(f"{gold} gold passages, at most {MOST_GOLD} can be planned for")
            except RowError as error:
                if not skip:
                    mend = "mend the row, or keep such rows apart with --on-error keep"
                    raise UserError(f"{row.location}: {error}; {mend}") from None
                skipped.append(f"{row.location}: {error}")
                reject = Reject(len(rejects), row.location, None, str(error), row.payload)
                rejects.append(RejectPolicy(benchmark or "", part_split, keep=True).line(reject))
                continue
            questions[question.benchmark, question.id] = question
            left = None if left is None else left - 1
            if left == 0:
                break
    if not questions:
        raise UserError(f"{source}: none of its rows can be read; the first: {skipped[0]}")
    name = Path(source).name if Path(source).exists() else source
    first, _, its_split = parts[0]
    return QuestionSet(
        tuple(questions.values()), name, sources.digest(first), its_split, tuple(skipped), tuple(rejects)
    )


def _refuse_whole_sample(source: str, split: str, whole: bool) -> None:
    if whole and split == TEST:
        raise UserError(
            f"--passages all: the evaluation sample of {source} has {PASSAGES} a question; give "
            "--split validation, or a file of the benchmark"
        )


# --------------------------------------------------------------------------------- verified folders


def _of_folder(
    folder: Path, benchmarks: Sequence[str], split: str, limit: int | None, seed: int, whole: bool
) -> QuestionSet:
    _refuse_whole_sample(str(folder), split, whole)
    dataset = dataset_folder(folder, VERIFIED)
    if dataset is None:
        raise UserError(
            f"{folder}: no {VERIFIED} in it; give a folder of safe-stepwise build_verified, a file, or a Hub dataset"
        )
    there = {name: parquet_files(dataset, _config(name, split), split) for name in BENCHMARKS}
    chosen = list(benchmarks) or [name for name, files in there.items() if files]
    lacking = [name for name in chosen if not there.get(name)]
    if lacking or not chosen:
        what = "evaluation sample" if split == TEST else f"verified {split} rows"
        of = f" of {lacking[0]}" if lacking else ""
        mend = (
            "build one with safe-stepwise build_verified --split validation, or give --split"
            if split == TEST
            else "give another --split"
        )
        raise UserError(f"{dataset}: holds no {what}{of}; {mend}")
    questions: list[Question] = []
    digest = hashlib.sha256()
    for name in chosen:

        def sized(row: Mapping[str, Any], name: str = name) -> Question:
            question = codec.question_of(row, benchmark=name, split=_split_of(split))
            question = question if whole or split == TEST else with_passages(question, seed)[0]
            check_size(question)
            return question

        questions += islice(chain.from_iterable(read_rows(file, sized) for file in there[name]), limit)
        for file in there[name]:
            digest.update(file.read_bytes())
    return QuestionSet(tuple(questions), VERIFIED, digest.hexdigest(), split)


def _config(benchmark: str, split: str) -> str:
    return benchmark + EVAL if split == TEST else benchmark


def _split_of(split: str) -> str:
    """The sample is drawn from the validation split."""
    return VALIDATION if split == TEST else split


# ----------------------------------------------------------------------------- files and Hub copies


def _parts(source: str, benchmarks: Sequence[str], split: str | None) -> list[tuple[str, str | None, str]]:
    """What to read: source, benchmark if known, split."""
    hub = None if Path(source).exists() else HubSource.read(source)
    if hub is not None and hub.config is None and hub.repo.endswith(f"/{VERIFIED}"):
        revision = f"@{hub.revision}" if hub.revision else ""
        asked = split or TEST
        return [(f"{hub.repo}:{_config(name, asked)}{revision}", name, asked) for name in benchmarks or BENCHMARKS]
    if len(benchmarks) > 1:
        raise UserError(f"{source}: holds rows of one benchmark; give one --benchmark")
    config = (hub.config if hub else None) or ""
    of_config = config.removesuffix(EVAL)
    benchmark = next(iter(benchmarks), of_config if of_config in BENCHMARKS else None)
    return [(source, benchmark, split or (TEST if config.endswith(EVAL) else VALIDATION))]


def question_of(
    row: Mapping[str, Any], benchmark: str | None, split: str, seed: int = 0, whole: bool = False
) -> Question:
    """The question of a row in any of the shapes; raises RowError with the reason.

    >>> row = {"question": "Where?", "references": ["Marn", "Marnland"], "passages": ["Oru: Marn."]}
    >>> found = question_of(row, None, "test")
    >>> found.benchmark, found.answer, found.aliases, found.passages[0].sentences
    ('custom', 'Marn', ('Marnland',), ('Oru: Marn.',))
    """
    if "passages" in row:
        name = benchmark or (synthetic.NAME if synthetic.TELLTALE in row else CUSTOM)
        return _own(row, name, _split_of(split))
    name = benchmark or looks_like(row) or ""
    if name not in BENCHMARKS:
        raise RowError(
            "no passages; a row is {question, answer or references, passages: [{title, text}]}, "
            "or that of a benchmark named by --benchmark"
        )
    question = parse_row(row, name, _split_of(split))
    if whole or len(question.gold) > PASSAGES:
        return question
    return with_passages(question, seed)[0]


def _own(row: Mapping[str, Any], benchmark: str, split: str) -> Question:
    asked = fields.filled_text(fields.require(row, "question"), "question")
    answer, *aliases = _answers(row)
    passages = tuple(
        _passage(passage, f"passage {number}")
        for number, passage in enumerate(fields.items(row["passages"], "passages"), 1)
    )
    if not passages:
        raise RowError("passages is empty")

    def annotated(record: Callable[..., T], name: str, **readers: fields.Reader) -> tuple[T, ...]:
        return tuple(record(*values) for values in fields.typed(row.get(name) or [], name, name, readers))

    id_, text = row.get("id"), fields.text
    sentence, passage = _number(0, fields.MOST - 1), _number(1, len(passages), or_none=True)
    question = Question(
        id=fields.filled_text(id_, "id") if id_ is not None else identity([asked, *passages]),
        benchmark=benchmark,
        split=split,
        question=asked,
        answer=answer,
        aliases=tuple(aliases),
        kind=text(row.get("kind") or "", "kind"),
        hops=fields.integer(row.get("hops") or 0, "hops"),
        passages=passages,
        supporting_facts=annotated(SupportingFact, "supporting_facts", title=text, sentence=sentence),
        evidence=annotated(Triple, "evidence", head=text, relation=text, tail=text),
        decomposition=annotated(Hop, "decomposition", question=text, answer=text, passage=passage),
    )
    check_size(question)
    return question


def _answers(row: Mapping[str, Any]) -> list[str]:
    """All accepted answers: ``references``, or ``answer`` and its ``aliases``."""
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


def _passage(content: Any, what: str) -> Passage:
    if isinstance(content, str):
        content = {"text": content}
    if not isinstance(content, Mapping):
        raise RowError(f"{what} is neither a text nor an object with title and text or sentences")
    title = fields.text(content.get("title") or "", f"{what} title")
    if content.get("sentences") is not None:
        listed = fields.items(content["sentences"], f"{what} sentences")
        sentences = tuple(fields.text(sentence, f"{what} sentence") for sentence in listed)
    else:
        sentences = split_sentences(fields.filled_text(fields.require(content, "text", "sentences"), f"{what} text"))
    return Passage(title, sentences, fields.boolean(content.get("is_gold") or False, f"{what} is_gold"))


def _number(first: int, last: int, or_none: bool = False) -> fields.Reader:
    def read(value: Any, what: str) -> Any:
        if value is None and or_none:
            return None
        if not first <= fields.integer(value, what) <= last:
            raise RowError(f"{what} is {str(value)[:20]}, expected {first} to {last}")
        return value

    return read
