"""Open a verified set that `build_verified` wrote, and read the questions that steps are made for."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from builders.steps import composition, leakage
from builders.verified import questions as verified_rows
from builders.verified.statistics import Statistics
from builders.work.publishing import read_statistics
from safe_stepwise.errors import UserError, check_choice
from safe_stepwise.records import Question
from safe_stepwise.store import boundary, names
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.parquet import dataset_folder, labeled_files, parquet_files, read_rows

_OF_A_BUILD = tuple("benchmark split version source teacher simulated verified digest".split()) + tuple(
    "license homepage citation code_sha256 columns".split()
)
"""Fields of a record of verified questions that the record of the steps repeats."""


def source_record(build: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the record of a set that is made of verified questions repeats of theirs."""
    return {name: build[name] for name in _OF_A_BUILD if name in build}


@dataclass(frozen=True, slots=True)
class VerifiedSet:
    """A ``safe-verified-multihop`` folder; ``builds`` are its statistics, with their digests."""

    folder: Path
    builds: tuple[Mapping[str, Any], ...]

    def select_builds(self, benchmarks: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        """Return the builds of these benchmarks, or all if none is named; raise ``UserError`` for one that lacks."""
        available = list(dict.fromkeys(build["benchmark"] for build in self.builds))
        for name in benchmarks:
            if name not in available:
                raise UserError(f"{self.folder}: holds no {name}, only {', '.join(available)}")
        return tuple(b for b in self.builds if not benchmarks or b["benchmark"] in benchmarks)

    def splits(self, benchmarks: Sequence[str] = ()) -> list[tuple[str, str]]:
        """Return the available (benchmark, split) pairs of these benchmarks, or of all if none is named."""
        available = {(build["benchmark"], build["split"]) for build in self.builds}
        selected = dict.fromkeys(build["benchmark"] for build in self.select_builds(benchmarks))
        return [(name, split) for name in selected for split in verified_rows.SPLITS if (name, split) in available]

    def questions(
        self,
        benchmark: str,
        split: str,
        pool: int | None = None,
        seed: int = 0,
        unverifiable: bool = False,
        among: Sequence[str] | None = None,
    ) -> Iterator[verified_rows.VerifiedQuestion]:
        """Yield a split's verified (or unverifiable) questions: the first ``pool`` by rank, or those ``among`` ids."""
        files = parquet_files(self.folder, benchmark + names.LABELED, split)
        chosen = (lambda batch: batch.column("unverifiable")) if unverifiable else verified_rows.is_sound
        if pool is not None:
            columns = ["id", "noise_type", "unverifiable"]
            ids = (read_rows(file, lambda row: boundary.read(str, row["id"], "id"), columns, chosen) for file in files)
            sample_ids = heapq.nsmallest(pool, chain.from_iterable(ids), key=lambda id_: composition.rank(seed, id_))
            chosen = verified_rows.select_ids(sample_ids)
        elif among is not None:
            chosen = verified_rows.select_ids(among, chosen)
        return verified_rows.verified_questions(files, benchmark, split, chosen)

    def evaluation_questions(self) -> Iterator[Question]:
        """Yield the questions of every benchmark's evaluation sample."""
        for benchmark in dict.fromkeys(build["benchmark"] for build in self.builds):
            files = parquet_files(self.folder, benchmark + names.EVAL)
            yield from verified_rows.questions_in(files, benchmark, names.VALIDATION)

    def near_evaluation(self) -> Callable[[Question], bool]:
        """Return a test whether a question is in an evaluation sample, or nearly the same as one."""
        evaluated = list(self.evaluation_questions())
        ids = {(question.benchmark, question.id) for question in evaluated}
        index = leakage.DocumentIndex(map(leakage.document, evaluated))
        return lambda q: (q.benchmark, q.id) in ids or bool(evaluated and index.near(leakage.document(q)))


def open_verified(folder: Path, version: str) -> VerifiedSet:
    """Open the verified set of a folder; raise ``UserError`` if it is missing, or has another version."""
    place = dataset_folder(folder, names.VERIFIED)
    if place is None or not (place / names.STATISTICS).is_dir():
        raise UserError(f"{folder}: no {names.VERIFIED} in it; give the --output of build_verified or of verify FILE")
    records = read_statistics(place, Statistics, "build the questions anew with safe-stepwise build_verified")
    files = sorted((place / names.STATISTICS).glob("*.json"))
    builds = [{**record, "digest": sha256_of(file)} for file, record in zip(files, records, strict=True)]
    for build in builds:
        check_choice(build["benchmark"], labeled_files(place), f"{place}: the benchmark")
        if build["version"] != version:
            raise UserError(
                f"{place}: is version {build['version']}, but this build is {version}; add "
                f"--version {build['version']}, or build the questions anew"
            )
    return VerifiedSet(place, tuple(builds))
