"""The rows of ``safe-path-probe`` that an engine is measured on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safe_stepwise.engines.base import Request
from safe_stepwise.errors import UserError
from safe_stepwise.methods.paths import Way, path_request
from safe_stepwise.records import Triple
from safe_stepwise.store import boundary
from safe_stepwise.store.boundary import read_file
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import CORRUPTIONS, PATH_PROBE, PROBE_RECORD, PROBED, Corruption
from safe_stepwise.store.parquet import ANEW, dataset_folder, parquet_files, read_rows

COLUMNS = (*("id", "benchmark", "question_id", "question", "answer", "path", "corruption", "pair_id"),)


@dataclass(frozen=True, slots=True)
class PathCase:
    """One row. ``gold``: the valid path of its question, for a simulating player alone."""

    id: str
    benchmark: str
    question_id: str
    question: str
    answer: str
    path: tuple[Triple, ...]
    corruption: Corruption
    pair_id: str
    gold: tuple[Triple, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether the right verdict on it is YES."""
        return self.corruption == "valid"

    @property
    def about(self) -> dict[str, str]:
        """What a verdict's record says of it."""
        gold = "YES" if self.is_valid else "NO"
        names = ("id", "benchmark", "question_id", "corruption")
        return {**{name: getattr(self, name) for name in names}, "gold": gold}

    def request(self, way: Way) -> Request:
        """What is asked of it."""
        return path_request(self.question, self.answer, self.path, way, self.gold)


def find_probe(folder: Path) -> Path:
    """The probe in a folder that `build_path_probe` wrote; raises ``UserError`` where none is."""
    found = dataset_folder(folder, PATH_PROBE)
    if found is None or not (found / "data" / PROBED).is_dir():
        raise UserError(
            f"{folder}: no {PATH_PROBE} in it; build one with safe-stepwise build_path_probe --output {folder}"
        )
    return found


def about(probe: Path, split: str) -> dict[str, Any]:
    """What is known of a probe and a split of it: version, digests, whether it is simulated."""
    record = probe / PROBE_RECORD
    told = read_file(dict[str, Any], record, "the record", ANEW) if record.is_file() else {}
    sources = told.get("verified", [])
    return {
        "name": PATH_PROBE,
        "version": told.get("version"),
        "simulated": any(build.get("simulated") for build in sources),
        "split": split,
        "sha256": {file.name: sha256_of(file) for file in parquet_files(probe, PROBED, split)},
    }


def read_cases(probe: Path, split: str, limit: int | None = None) -> list[PathCase]:
    """The rows of a split, or the first ``limit`` of them (a draw: the probe is shuffled).

    Raises ``UserError`` for a split without rows, or rows of another form.
    """
    files = parquet_files(probe, PROBED, split)
    cases = [case for file in files for case in read_rows(file, _case, COLUMNS)]
    if not cases:
        there = sorted({file.name.split("-")[0] for file in parquet_files(probe, PROBED)})
        raise UserError(f"{probe}: its split {split!r} has no rows; choose --split from {', '.join(there) or 'none'}")
    gold = {case.id: case.path for case in cases if case.is_valid}
    return [replace(case, gold=gold.get(case.pair_id, ())) for case in cases[:limit]]


def _case(row: Mapping[str, Any]) -> PathCase:
    number = row["corruption"]
    if not isinstance(number, int) or not 0 <= number < len(CORRUPTIONS):
        raise ValueError("its corruption is missing or unknown")
    triples = tuple(Triple(t["head"], t["relation"], t["tail"]) for t in row["path"])
    known = {name: row[name] for name in COLUMNS}
    return boundary.read(
        PathCase, PathCase(**{**known, "path": triples, "corruption": CORRUPTIONS[number]}), "the row"
    )
