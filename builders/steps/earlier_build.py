"""Matches the rows of an earlier build with those of a new one by another teacher (SAFE v2, Table 6).

The new set should differ only by its teacher: it has the questions, errors, positions and test split of the earlier
set, as far as the new teacher makes such rows. An earlier row is matched by its id. If the new words give another id,
it is matched by a row of the same question, origin and error type, at the same position if there is one. A refined row
is matched only by its id, as it is the step of another player.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from builders.benchmarks.hub import HubSource, download
from builders.steps.composition import Candidate, Composition, rank
from builders.steps.rows import Refused, question_key
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, names
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.parquet import ANEW, dataset_folder, parquet_files, read_rows
from safe_stepwise.taxonomy import labels

_COLUMNS = ("id", "benchmark", "question_id", "error_type", "origin", "position")
NO_MATCH = "a row of the first teacher that this one did not make"


def find_steps(source: str, split: str, configs: Sequence[str] = (names.STEPS,)) -> tuple[Path, str, str | None]:
    """Find a verifier set, and return its folder, its name, and its commit (None for a local folder).

    ``source`` is a folder or ``hub-id@revision``. From the Hub, ``split`` and train of the ``configs`` are downloaded.
    Raises ``UserError`` for a dataset that is not pinned, or can't be pulled.
    """
    folder = Path(source)
    hub = None if folder.exists() else HubSource.read(source)
    if hub is None:
        return dataset_folder(folder, names.VERIFIER_STEPS) or folder, names.VERIFIER_STEPS, None
    splits = dict.fromkeys((split, names.TRAIN))
    files = [
        *(f"data/{config}/{name}-*.parquet" for config in configs for name in splits),
        f"{names.STATISTICS}/*.json",
    ]
    pulled, commit = download(hub, files)
    return pulled, hub.repo, commit


@dataclass(frozen=True, slots=True)
class Matches:
    """Ids of new rows that match rows of the earlier build, and counts by kind of match."""

    ids: frozenset[str]
    matched: Mapping[str, int]
    """Number of rows matched by ``id``, by ``position``, and by ``type`` only."""
    lost: Sequence[Candidate]
    """Rows of the earlier build without a match."""

    @property
    def refused(self) -> list[Refused]:
        """A refusal for each lost row; its error type is empty for an ideal row."""
        error_types = [(row, "" if row.origin == names.IDEAL else row.error_type) for row in self.lost]
        return [Refused(r.benchmark, r.question, type_, r.position, f"{NO_MATCH}: {r.id}") for r, type_ in error_types]


@dataclass(frozen=True, slots=True)
class EarlierRecord:
    """The fields of the earlier build's record that the new build needs."""

    teacher: str
    test_share: float
    seed: int
    unverifiable: bool
    composition: Composition


@dataclass(frozen=True)
class EarlierBuild:
    """An earlier build: its record, and its rows by split; ``revision`` is a commit, None for a local folder."""

    name: str
    revision: str | None
    sha256: str
    """SHA-256 of the record."""
    record: EarlierRecord
    rows: Mapping[str, Sequence[Candidate]]

    @cached_property
    def all_rows(self) -> list[Candidate]:
        return [row for split in (names.TRAIN, names.TEST) for row in self.rows[split]]

    @cached_property
    def questions(self) -> Mapping[str, Sequence[str]]:
        ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for row in self.all_rows:
            ids[row.benchmark][row.question] = None
        return {name: [*question_ids] for name, question_ids in sorted(ids.items())}

    @cached_property
    def test_keys(self) -> frozenset[str]:
        """The keys of the test questions (`question_key`)."""
        return frozenset(question_key(row.benchmark, row.question) for row in self.rows[names.TEST])

    @property
    def plan_options(self) -> dict[str, Any]:
        """The options that a new `StepsBuild` takes from this build: all but folders, version and teacher."""
        per_question = self.record.composition.rows_per_question
        ideal = sum(row.origin == names.IDEAL for row in self.all_rows) / len(self.all_rows)
        return {
            "earlier": self,
            "composition": Composition(len(self.all_rows), ideal=ideal, refined=None, rows_per_question=per_question),
            "benchmarks": tuple(self.questions),
            **{name: getattr(self.record, name) for name in ("test_share", "seed", "unverifiable")},
        }

    def match(self, candidates: Iterable[Candidate], seed: int) -> Matches:
        """Match candidates with the rows of this build; ``seed`` decides between several that fit."""
        unmatched: defaultdict[tuple[str, str], dict[str, Candidate]] = defaultdict(dict)
        for candidate in sorted(candidates, key=lambda c: rank(seed, c.id)):
            unmatched[candidate.benchmark, candidate.question][candidate.id] = candidate
        ids, matched, pending = set[str](), Counter[str](), self.all_rows
        for key in ("id", "position", "type"):
            unmatched_rows = []
            for row in pending:
                options = unmatched[row.benchmark, row.question]
                if match := _match(row, options.values(), key):
                    ids.add(options.pop(match.id).id)
                    matched[key] += 1
                else:
                    unmatched_rows.append(row)
            pending = unmatched_rows
        return Matches(frozenset(ids), dict(matched), pending)

    def describe_matches(self, matches: Matches, moved: Collection[str]) -> dict[str, Any]:
        """Return this build's identity and counts of matches, for a record; ``moved`` are keys now in train."""
        return {
            "name": self.name,
            "revision": self.revision,
            "sha256": self.sha256,
            "teacher": self.record.teacher,
            "rows": len(self.all_rows),
            "matched": {key: matches.matched.get(key, 0) for key in ("id", "position", "type")},
            "lost": dict(sorted(Counter(row.row_class for row in matches.lost).items())),
            "moved": len(self.test_keys.intersection(moved)),
        }


def read_earlier_build(source: str) -> EarlierBuild:
    """Read a set from a folder or ``hub-id@revision``; raise ``UserError`` if it is unpinned or not complete."""
    folder, name, revision = find_steps(source, names.TEST)
    record = folder / names.STEPS_RECORD
    if not record.is_file():
        raise UserError(f"{source}: no verifier set with its record in it; {ANEW}")
    content = boundary.read_file(EarlierRecord, record, "the record", ANEW)
    rows = {
        split: [row for file in parquet_files(folder, names.STEPS, split) for row in read_rows(file, _row, _COLUMNS)]
        for split in (names.TRAIN, names.TEST)
    }
    if not any(rows.values()):
        raise UserError(f"{source}: its set has no rows; {ANEW}")
    return EarlierBuild(name, revision, sha256_of(record), content, rows)


def _row(row: Mapping[str, Any]) -> Candidate:
    if row["error_type"] < 0 or row["origin"] < 0:
        raise ValueError("its label or origin is missing")
    label, origin = labels()[row["error_type"]], names.ORIGINS[row["origin"]]
    content = {**row, "question": row["question_id"], "error_type": label, "origin": origin}
    return boundary.read(Candidate, content, "the row")


def _match(row: Candidate, candidates: Collection[Candidate], key: str) -> Candidate | None:
    """Return the candidate that matches a row by ``key`` (id, position, or type: the nearest position), or None."""
    if key == "id":
        return next((candidate for candidate in candidates if candidate.id == row.id), None)
    if row.origin == names.REFINED:
        return None
    alike = [candidate for candidate in candidates if candidate.row_class == row.row_class]
    if key == "position":
        return next((candidate for candidate in alike if candidate.position == row.position), None)
    return min(alike, key=lambda candidate: abs(candidate.position - row.position), default=None)
