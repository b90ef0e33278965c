"""The rows of an earlier build, for a second one by another teacher (SAFE v2, Table 6).

The second set is to differ by its teacher alone: it has the questions, the errors, their places and
the test split of the first, as far as the second teacher makes such rows. Another's words make
other ids, so that a row of the first is matched by what its id stands for: by the very id where the
second has it, else by a row of its question, origin and error type, at its position if there is
one. A refined row is a step that somebody else took, and only its own id will do.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from builders.steps.composition import Candidate, Composition, rank
from builders.steps.published import find_steps
from builders.steps.rows import Refused
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary
from safe_stepwise.store.boundary import read_file
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import IDEAL, ORIGINS, REFINED, STEPS, STEPS_RECORD, TEST, TRAIN
from safe_stepwise.store.parquet import ANEW, parquet_files, read_rows
from safe_stepwise.taxonomy import labels

_COLUMNS = ("id", "benchmark", "question_id", "error_type", "origin", "position")
NO_MATCH = "a row of the first teacher that this one did not make"
Question = tuple[str, str]
"""A benchmark and an id."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The ids that stand for rows of the first, and what they were matched by."""

    ids: frozenset[str]
    matched: Mapping[str, int]
    """Rows by ``id``, by ``position``, and by the ``type`` alone."""
    lost: Sequence[Candidate]
    """Rows of the first for which there is none."""

    @property
    def refused(self) -> Iterator[Refused]:
        """A line for each that is lost."""
        for row in self.lost:
            meant = "" if row.origin == IDEAL else row.error_type
            reason = f"{NO_MATCH}: {row.id}"
            yield Refused(row.benchmark, row.question, meant, row.position, reason)


@dataclass(frozen=True)
class First:
    """An earlier build: its record, and its rows by split."""

    name: str
    revision: str | None
    sha256: str
    """Of the record."""
    about: Mapping[str, Any]
    rows: Mapping[str, Sequence[Candidate]]

    @cached_property
    def every(self) -> list[Candidate]:
        """The rows of both splits."""
        return [row for split in (TRAIN, TEST) for row in self.rows[split]]

    @cached_property
    def questions(self) -> Mapping[str, Sequence[str]]:
        """The ids of its questions by benchmark."""
        found: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for row in self.every:
            found[row.benchmark][row.question] = None
        return {name: [*ids] for name, ids in sorted(found.items())}

    @property
    def tested(self) -> frozenset[Question]:
        """The questions of its test split."""
        return frozenset((row.benchmark, row.question) for row in self.rows[TEST])

    @property
    def terms(self) -> dict[str, Any]:
        """What a `StepsBuild` has of it: all but folders, version and teacher."""
        most = self.about["composition"]["rows_per_question"]
        ideal = sum(row.origin == IDEAL for row in self.every) / len(self.every)
        return {
            "first": self,
            "composition": Composition(len(self.every), ideal=ideal, refined=None, rows_per_question=most),
            "benchmarks": tuple(self.questions),
            "test_share": self.about["test_share"],
            "seed": self.about["seed"],
            "unverifiable": self.about["unverifiable"],
        }

    def check(self, builds: Iterable[Mapping[str, Any]]) -> None:
        """Raise ``UserError`` unless its questions are those of these verified builds."""
        digests = {(b["benchmark"], b["split"]): b["digest"] for b in builds}
        for build in self.about["verified"]:
            place = (build["benchmark"], build["split"])
            if digests.get(place) != build["digest"]:
                raise UserError(
                    f"{self.name}: was made of another build of {' '.join(place)} than is in "
                    "--verified; name the folder that it was made of"
                )

    def take(self, candidates: Iterable[Candidate], seed: int) -> Taken:
        """The candidates that stand for its rows; of several, by a draw."""
        left: defaultdict[Question, dict[str, Candidate]] = defaultdict(dict)
        for one in sorted(candidates, key=lambda c: rank(seed, c.id)):
            left[one.benchmark, one.question][one.id] = one
        ids, matched, owed = set[str](), Counter[str](), self.every
        for how in ("id", "position", "type"):
            lost = []
            for row in owed:
                there = left[row.benchmark, row.question]
                found = _match(row, there.values(), how)
                if found is None:
                    lost.append(row)
                else:
                    del there[found.id]
                    ids.add(found.id)
                    matched[how] += 1
            owed = lost
        return Taken(frozenset(ids), dict(matched), owed)

    def told(self, taken: Taken, moved: int) -> dict[str, Any]:
        """What came of its rows, for the record; ``moved`` of its test questions are in train."""
        lost = Counter(row.row_class for row in taken.lost)
        return {
            "name": self.name,
            "revision": self.revision,
            "sha256": self.sha256,
            "teacher": self.about["teacher"],
            "rows": len(self.every),
            "matched": {how: taken.matched.get(how, 0) for how in ("id", "position", "type")},
            "lost": dict(sorted(lost.items())),
            "moved": moved,
        }


def read_first(source: str) -> First:
    """The verifier set in a folder, or on the Hub at a revision.

    Raises ``UserError`` where there is none, or one without rows.
    """
    folder, name, revision = find_steps(source, TEST)
    record = folder / STEPS_RECORD
    if not record.is_file():
        raise UserError(f"{source}: no verifier set with its record in it; {ANEW}")
    about = read_file(dict[str, Any], record, "the record", ANEW)
    try:
        shown = {key: about[key] for key in ("teacher", "test_share", "seed", "unverifiable")}
        kinds = {"teacher": str, "test_share": float, "seed": int, "unverifiable": bool}
        for key, value in shown.items():
            boundary.read(kinds[key], value, key)
        boundary.read(int, about["composition"]["rows_per_question"], "rows_per_question")
        boundary.read(list[str], [b["digest"] for b in about["verified"]], "verified")
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{record}: cannot be read ({error}); {ANEW}") from None
    rows = {split: [*_rows(folder, split)] for split in (TRAIN, TEST)}
    if not any(rows.values()):
        raise UserError(f"{source}: its set has no rows; {ANEW}")
    return First(name, revision, sha256_of(record), about, rows)


def _rows(folder: Path, split: str) -> Iterator[Candidate]:
    for file in parquet_files(folder, STEPS, split):
        yield from read_rows(file, _row, _COLUMNS)


def _row(row: Mapping[str, Any]) -> Candidate:
    if row["error_type"] < 0 or row["origin"] < 0:
        raise ValueError("its label or origin is missing")
    where = (row["id"], row["benchmark"], row["question_id"])
    label, origin = labels()[row["error_type"]], ORIGINS[row["origin"]]
    return boundary.read(Candidate, Candidate(*where, label, row["position"], origin), "the row")


def _match(row: Candidate, there: Collection[Candidate], how: str) -> Candidate | None:
    """The first of some candidates that stands for a row, as far as ``how`` tells them apart."""
    if how == "id":
        return next((one for one in there if one.id == row.id), None)
    if row.origin == REFINED:
        return None
    alike = [one for one in there if one.row_class == row.row_class]
    if how == "position":
        return next((one for one in alike if one.position == row.position), None)
    return min(alike, key=lambda one: abs(one.position - row.position), default=None)


def held_out(groups: Sequence[Sequence[str]], tested: Collection[str]) -> set[str]:
    """The questions of test: those of groups that the first build had there whole."""
    kept = (group for group in groups if all(key in tested for key in group))
    return {key for group in kept for key in group}
