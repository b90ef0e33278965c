"""Read the questions to evaluate on, from a verified folder, a file, or a dataset on the Hub.

A verified folder gives its evaluation sample (``split`` test), or the verified rows of another split. A file or Hub
dataset has rows in the form of a benchmark, rows as `build_verified` publishes them, or custom rows, an object a
line::

    {"question": "Where is Oru?", "answer": "Marn", "passages": [{"title": "Oru", "text": "..."}]}

Optional fields are ``id``, ``aliases`` or ``references`` (all accepted answers, in place of ``answer``), ``sentences``
in place of ``text``, ``is_gold``, and the annotations of our own columns. Rows in a benchmark's form, and those of
another split than the sample, are cut to ten passages like the sample, unless ``all_passages`` keeps all in their
order. Custom rows keep all their passages.
"""

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from builders.benchmarks import BENCHMARKS, looks_like, own_rows, parse_row, sources, synthetic
from builders.benchmarks.hub import HubSource
from builders.verified.questions import PASSAGES, with_passages
from builders.work.rejects import Reject, RejectPolicy
from safe_stepwise.checking.plans import MAX_GOLD
from safe_stepwise.errors import RowError, UserError, check_choice
from safe_stepwise.records import Question, QuestionSet
from safe_stepwise.scoring import CUSTOM
from safe_stepwise.store import codec, rows, sizes
from safe_stepwise.store.names import EVAL, LABELED, TEST, VALIDATION, VERIFIED
from safe_stepwise.store.parquet import dataset_folder, labeled_files, parquet_files, read_rows

_TYPO = 0.8
"""How like a known benchmark's name another name is at least (0-1), if it is taken for a mistake."""


def read(
    source: str,
    benchmarks: Sequence[str] = (),
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    *,
    skip: bool = False,
    planned: bool = False,
    all_passages: bool = False,
) -> QuestionSet:
    """Read the first ``limit`` questions of each of ``benchmarks``, or of all benchmarks of the source.

    ``seed`` draws ten passages of more, unless ``all_passages``. Raises ``UserError`` for a bad source and, unless
    ``skip``, for a row that can't be read, repeats an id or, if ``planned``, is too large for a plan.
    """
    if Path(source).is_dir():
        return _read_folder(Path(source), benchmarks, split or TEST, limit, seed, all_passages)
    questions: dict[tuple[str, str], Question] = {}
    skipped: list[str] = []
    rejects: list[bytes] = []
    for location, benchmark, row_split in (locations := _locations(source, benchmarks, split)):
        _refuse_whole_sample(source, row_split, all_passages)
        remaining = limit
        for row in sources.read_rows(location, row_split):
            try:
                question = question_of(sources.decode(row), benchmark, row_split, seed, all_passages)
                if (question.benchmark, question.id) in questions:
                    raise RowError(f"its id {question.id!r} is that of an earlier row")
                if planned and (gold := len(question.gold)) > MAX_GOLD:
                    raise RowError(f"{gold} gold passages, at most {MAX_GOLD} can be planned for")
            except RowError as error:
                if not skip:
                    mend = "mend the row, or keep such rows apart with --on-error keep"
                    raise UserError(f"{row.location}: {error}; {mend}") from None
                skipped.append(f"{row.location}: {error}")
                reject = Reject(len(rejects), row.location, None, str(error), row.payload)
                rejects.append(RejectPolicy(benchmark or "", row_split, keep=True).line(reject))
                continue
            questions[question.benchmark, question.id] = question
            remaining = None if remaining is None else remaining - 1
            if remaining == 0:
                break
    if not questions:
        raise UserError(f"{source}: none of its rows can be read; the first: {skipped[0]}")
    name = Path(source).name if Path(source).exists() else source
    first, _, its_split = locations[0]
    return QuestionSet(
        tuple(questions.values()), name, sources.digest(first), its_split, tuple(skipped), tuple(rejects)
    )


def _refuse_whole_sample(source: str, split: str, all_passages: bool) -> None:
    if all_passages and split == TEST:
        raise UserError(
            f"--passages all: the evaluation sample of {source} has {PASSAGES} a question; give "
            "--split validation, or a file of the benchmark"
        )


def _read_folder(
    folder: Path, benchmarks: Sequence[str], split: str, limit: int | None, seed: int, all_passages: bool
) -> QuestionSet:
    _refuse_whole_sample(str(folder), split, all_passages)
    if (dataset := dataset_folder(folder, VERIFIED)) is None:
        raise UserError(
            f"{folder}: no {VERIFIED} in it; give a folder of safe-stepwise build_verified, a file, or a Hub dataset"
        )
    built = (name.removesuffix(LABELED) for name in labeled_files(dataset))
    available = {name: parquet_files(dataset, _config(name, split), split) for name in (*BENCHMARKS, *built)}
    chosen = list(benchmarks) or [name for name, files in available.items() if files]
    lacking = [name for name in chosen if not available.get(name)]
    if lacking or not chosen:
        content = "evaluation sample" if split == TEST else f"verified {split} rows"
        suffix = f" of {lacking[0]}" if lacking else ""
        mend = (
            "build one with safe-stepwise build_verified --split validation, or give --split train"
            if split == TEST
            else "give another --split"
        )
        raise UserError(f"{dataset}: holds no {content}{suffix}; {mend}")
    questions: list[Question] = []
    digest = hashlib.sha256()
    for name in chosen:

        def read_question(row: Mapping[str, Any], name: str = name) -> Question:
            question = codec.question_of(row, benchmark=name, split=_split_of(split))
            question = question if all_passages or split == TEST else with_passages(question, seed)[0]
            sizes.check_size(question)
            return question

        questions += islice(chain.from_iterable(read_rows(file, read_question) for file in available[name]), limit)
        for file in available[name]:
            digest.update(file.read_bytes())
    return QuestionSet(tuple(questions), VERIFIED, digest.hexdigest(), split)


def _config(benchmark: str, split: str) -> str:
    return benchmark + EVAL if split == TEST else benchmark


def _split_of(split: str) -> str:
    """Return the split of the questions: the sample is drawn from the validation split."""
    return VALIDATION if split == TEST else split


def _locations(source: str, benchmarks: Sequence[str], split: str | None) -> list[tuple[str, str | None, str]]:
    """Return the sources to read, each with its benchmark, if known, and its split."""
    hub = None if Path(source).exists() else HubSource.read(source)
    if hub is not None and hub.config is None and hub.repo.endswith(f"/{VERIFIED}"):
        revision = f"@{hub.revision}" if hub.revision else ""
        split = split or TEST
        return [(f"{hub.repo}:{_config(name, split)}{revision}", name, split) for name in benchmarks or BENCHMARKS]
    if len(benchmarks) > 1:
        raise UserError(f"{source}: holds rows of one benchmark; give one --benchmark")
    for name in benchmarks:
        if difflib.get_close_matches(name, BENCHMARKS, cutoff=_TYPO):
            check_choice(name, [*BENCHMARKS, CUSTOM], "--benchmark")
    config = (hub.config if hub else None) or ""
    config_benchmark = config.removesuffix(EVAL)
    is_ours = hub is not None and hub.repo.endswith(f"/{VERIFIED}")
    benchmark = next(iter(benchmarks), config_benchmark if config_benchmark in BENCHMARKS or is_ours else None)
    return [(source, benchmark, split or (TEST if config.endswith(EVAL) else VALIDATION))]


def question_of(
    row: Mapping[str, Any], benchmark: str | None, split: str, seed: int = 0, all_passages: bool = False
) -> Question:
    """Parse a row in any of the module's shapes; raise RowError with the reason."""
    name = benchmark or looks_like(row) or CUSTOM
    if "passages" in row or name not in BENCHMARKS:
        columns = rows.own_columns(row)
        if "passages" not in columns:
            raise RowError(
                "no passages; a row is {question, answer or references, passages: [{title, text}]}, "
                "or that of a benchmark named by --benchmark"
            )
        own_name = benchmark or (synthetic.NAME if synthetic.TELLTALE in row else CUSTOM)
        return own_rows.parse_row(columns, own_name, _split_of(split))
    question = parse_row(row, name, _split_of(split))
    if all_passages or len(question.gold) > PASSAGES:
        return question
    return with_passages(question, seed)[0]
