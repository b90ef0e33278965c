"""The questions that steps are made of, as `build_verified` wrote them: verified, as a rule."""

import hashlib
import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from builders.benchmarks import BENCHMARKS
from builders.steps import leakage
from builders.steps.composition import rank
from builders.verified import features
from builders.verified.evaluation_sample import PASSAGES, with_passages
from builders.verified.features import SPLITS
from builders.verified.statistics import Statistics
from builders.work.publishing import read_statistics
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.records import NOISE_TYPES, Label, Question, Triple
from safe_stepwise.store import boundary
from safe_stepwise.store.codec import label_of, question_of
from safe_stepwise.store.names import EVAL, LABELED, STATISTICS, VALIDATION, VERIFIED
from safe_stepwise.store.parquet import dataset_folder, parquet_files, read_rows

OF_A_BUILD = (
    *"benchmark split version source teacher simulated verified digest".split(),
    *"license homepage citation code_sha256".split(),
)
"""What a record of verified questions has to have, as it is carried over."""
NONE = NOISE_TYPES.index("none")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class VerifiedSet:
    """A ``safe-verified-multihop`` folder; ``builds`` are its statistics, with their digests."""

    folder: Path
    builds: tuple[Mapping[str, Any], ...]

    def of(self, benchmarks: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        """The builds of these benchmarks; of all if none is named.

        Raises ``UserError`` for a benchmark that is not there.
        """
        there = list(dict.fromkeys(build["benchmark"] for build in self.builds))
        for name in benchmarks:
            if name not in there:
                raise UserError(f"{self.folder}: holds no {name}, only {', '.join(there)}")
        return tuple(b for b in self.builds if not benchmarks or b["benchmark"] in benchmarks)


def open_verified(folder: Path, version: str) -> VerifiedSet:
    """The verified set in a folder that `build_verified` or `regenerate` wrote.

    Raises ``UserError`` if it is not there, holds other columns, or is of another version.
    """
    found = dataset_folder(folder, VERIFIED)
    if found is None or not (found / STATISTICS).is_dir():
        raise UserError(
            f"{folder}: no {VERIFIED} in it; build one with safe-stepwise build_verified --output {folder}"
        )
    builds = [
        {**record, "digest": hashlib.sha256(file.read_bytes()).hexdigest()}
        for file, record in zip(sorted((found / STATISTICS).glob("*.json")), read_statistics(found), strict=True)
    ]
    for build in builds:
        if lacking := sorted(set(OF_A_BUILD) - set(build)):
            raise UserError(
                f"{found}: statistics of another version of this program (no {lacking[0]} in one); "
                "build the questions anew with safe-stepwise build_verified"
            )
        _check_build(found, build)
        if build["version"] != version:
            raise UserError(
                f"{found}: is version {build['version']}, but this build is {version}; add "
                f"--version {build['version']}, or build the questions anew"
            )
    _check_columns(found)
    return VerifiedSet(found, tuple(builds))


def question_key(benchmark: str, question: str) -> str:
    """A question's key over all benchmarks."""
    return f"{benchmark}\0{question}"


def rows(
    verified: VerifiedSet,
    benchmark: str,
    split: str,
    pool: int | None,
    seed: int,
    unverifiable: bool = False,
    among: Sequence[str] | None = None,
) -> Iterator[Row]:
    """The verified rows of a split with their labels, or the unverifiable ones instead.

    Of ``pool``, the first by a draw; or those ``among`` some ids.
    """
    files = parquet_files(verified.folder, benchmark + LABELED, split)
    sound, wanted = partial(_sound, benchmark=benchmark, split=split), _wanted(unverifiable)
    if pool is not None:
        wanted = _among(_drawn(files, pool, seed, unverifiable))
    elif among is not None:
        wanted = _both(wanted, _among(among))
    for file in files:
        yield from read_rows(file, sound, wanted=wanted)


def splits_of(verified: VerifiedSet, benchmark: str) -> list[str]:
    """The splits of a benchmark that are there."""
    there = {build["split"] for build in verified.builds if build["benchmark"] == benchmark}
    return [split for split in SPLITS if split in there]


def evaluation_questions(verified: VerifiedSet) -> Iterator[Question]:
    """The questions of every benchmark's evaluation sample."""
    for benchmark in dict.fromkeys(build["benchmark"] for build in verified.builds):
        for file in parquet_files(verified.folder, benchmark + EVAL):
            yield from read_rows(file, partial(_question, benchmark=benchmark, split=VALIDATION))


def near_evaluation(verified: VerifiedSet) -> Callable[[str, str, Row], bool]:
    """Whether a row of a benchmark and split is one of an evaluation sample, or nearly."""
    evaluated = list(evaluation_questions(verified))
    ids = {(question.benchmark, question.id) for question in evaluated}
    index = leakage.Index(map(leakage.document, evaluated))

    def near(benchmark: str, split: str, row: Row) -> bool:
        if not evaluated or (benchmark, row["id"]) in ids:
            return bool(evaluated)
        return index.near(leakage.document(question_of(row, benchmark=benchmark, split=split)))

    return near


def prepared(row: Row, benchmark: str, split: str, seed: int) -> tuple[Question, Label]:
    """A row as the evaluation would show it, ten shuffled passages, and its label to match.

    Passage numbers of path and graph follow their passages. Raises ``ValueError`` for a row that
    cannot have ten passages because more are gold.
    """
    numbered = [{**p, "number": n} for n, p in enumerate(row["passages"], 1)]
    if sum(p["is_gold"] for p in numbered) > PASSAGES:
        raise ValueError(f"more than {PASSAGES} gold passages")
    cut = with_passages({**row, "passages": numbered}, seed)
    places = {passage["number"]: n for n, passage in enumerate(cut["passages"], 1)}
    label = label_of(row)

    def moved(triples: Sequence[Triple]) -> tuple[Triple, ...]:
        return tuple(replace(t, passage=t.passage and places.get(t.passage)) for t in triples)

    path, graph = moved(label.reasoning_path), moved(label.knowledge_graph)
    question = question_of(cut, benchmark=benchmark, split=split)
    return question, replace(label, reasoning_path=path, knowledge_graph=graph)


def _drawn(files: Sequence[Path], pool: int, seed: int, unverifiable: bool) -> list[str]:
    ids: list[str] = []
    columns, wanted = ["id", "noise_type", "unverifiable"], _wanted(unverifiable)
    for file in files:
        ids += read_rows(file, lambda row: boundary.read(str, row["id"], "id"), columns, wanted)
    return heapq.nsmallest(pool, ids, key=lambda id_: rank(seed, id_))


def _wanted(unverifiable: bool) -> Callable[[Any], Any]:
    """Says of a batch which of its rows are verified, or unverifiable."""
    if unverifiable:
        return lambda batch: batch.column("unverifiable")
    return lambda batch: pc.equal(batch.column("noise_type"), NONE)


def _among(ids: Sequence[str]) -> Callable[[Any], Any]:
    """Says of a batch which of its rows have one of some ids."""
    drawn = pa.array(ids, pa.string())
    return lambda batch: pc.is_in(batch.column("id"), value_set=drawn)


def _both(one: Callable[[Any], Any], other: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda batch: pc.and_(one(batch), other(batch))


def _question(row: Mapping[str, Any], benchmark: str, split: str) -> Question:
    found = question_of(row, benchmark=benchmark, split=split)
    return boundary.read(Question, found, "the question")


def _sound(row: Row, benchmark: str, split: str) -> Row:
    """The row, if it holds a question and a label."""
    _question(row, benchmark, split)
    label_of(row)
    return row


def _check_build(folder: Path, build: Mapping[str, Any]) -> None:
    """Raise ``UserError`` for a record that says something else than it should of itself."""
    kinds = get_type_hints(Statistics)
    try:
        for name in kinds.keys() & {*OF_A_BUILD, "unverifiable"}:
            boundary.read(kinds[name], build[name], name)
    except (ValueError, KeyError) as error:
        raise UserError(
            f"{folder}: statistics that cannot be read ({error}); build the questions anew with "
            "safe-stepwise build_verified"
        ) from None
    one_of(build["benchmark"], BENCHMARKS, f"{folder}: the benchmark")


def _check_columns(folder: Path) -> None:
    expected: pa.Schema = features.labeled_features().arrow_schema
    for file in parquet_files(folder, f"*{LABELED}"):
        try:
            schema = pq.read_schema(file)
        except (OSError, ValueError, pa.ArrowException) as error:
            reason = json.dumps(str(error).splitlines()[0])
            raise UserError(f"{file}: cannot be read ({reason}); build it anew") from None
        # Folders of before say no confidence of their labels.
        wanted = [f for f in expected if f.name != "confidence" or f.name in schema.names]
        if not schema.remove_metadata().equals(pa.schema(wanted)):
            raise UserError(
                f"{file}: has other columns than this code writes; build it anew with safe-stepwise build_verified"
            )
