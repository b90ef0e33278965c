"""The rows of a published set as a reviewer sees them, and the strata that they are in."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from evaluators.outcomes import grouped
from evaluators.verifier.step_set import read_step_rows
from safe_stepwise.errors import UserError
from safe_stepwise.records import NOISE_TYPES, identity
from safe_stepwise.store import boundary
from safe_stepwise.store.codec import label_of, question_of
from safe_stepwise.store.names import LABELS, ORIGINS, STEPS, VERIFIED, VERIFIER_STEPS, Audited
from safe_stepwise.store.parquet import dataset_folder, labeled_files, parquet_files, read_rows
from safe_stepwise.taxonomy import category, labels

Key = tuple[str, str]
"""Benchmark and id of a row."""
Stratum = tuple[str, ...]
"""Values of the `judgements.PARTS`."""
T = TypeVar("T")
_UNJUDGED = "unparsed"
_PLACE = ("id", "benchmark", "error_type", "origin")
_TEXTS = ("question", "current_step", "diagnosis", "guidance", "teacher")
_STEP = (*_PLACE, *_TEXTS, "passages", "previous_steps", "query")


@dataclass(frozen=True, slots=True)
class Row:
    """One row, with all that is shown of it (for JSON)."""

    key: Key
    stratum: Stratum
    shown: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        """Of all that a judgement of it is about."""
        return identity([self.key, self.stratum, self.shown])


def strata(folder: Path, of: Audited) -> dict[Key, Stratum]:
    """The rows that can be judged, each with its stratum.

    An id that is in several splits counts once, as the first; a row that was not judged by its
    teacher has no label to audit. Raises ``UserError`` for a folder that holds no such set.
    """
    found: dict[Key, Stratum] = {}
    if of == LABELS:
        places = _read_labels(folder, _label_place, ("id", "noise_type"))
    else:
        places = _read_steps(folder, _step_place, _PLACE)
    for key, stratum in places:
        found.setdefault(key, stratum)
    return {key: stratum for key, stratum in found.items() if stratum[1] != _UNJUDGED}


def rows(folder: Path, of: Audited, keys: Collection[Key]) -> dict[Key, Row]:
    """The rows with these keys, as far as they are there; raises as `strata`."""
    keys = frozenset(keys)
    ids = pa.array([id_ for _, id_ in keys], pa.string())
    wanted = lambda batch: pc.is_in(batch.column("id"), value_set=ids)  # noqa: E731
    if of == LABELS:
        read = _read_labels(folder, _label_row, wanted=wanted)
    else:
        read = _read_steps(folder, _step_row, _STEP, wanted)
    found: dict[Key, Row] = {}
    for row in read:
        if row.key in keys:
            found.setdefault(row.key, row)
    return found


def _read_labels(
    folder: Path,
    read: Callable[[str, Mapping[str, Any]], T],
    columns: Sequence[str] | None = None,
    wanted: Callable[[Any], Any] | None = None,
) -> Iterator[T]:
    dataset = dataset_folder(folder, VERIFIED)
    if dataset is None or not (by_benchmark := labeled_files(dataset)):
        raise UserError(f"{folder}: no {VERIFIED} in it; give the --output of build_verified or regenerate")
    for benchmark, files in by_benchmark.items():
        for file in files:
            yield from read_rows(file, partial(read, benchmark), columns, wanted)


def _read_steps(
    folder: Path,
    read: Callable[[Mapping[str, Any]], T],
    columns: Sequence[str],
    wanted: Callable[[Any], Any] | None = None,
) -> Iterator[T]:
    dataset = dataset_folder(folder, VERIFIER_STEPS)
    if dataset is None or not (files := parquet_files(dataset, STEPS)):
        raise UserError(
            f"{folder}: no {VERIFIER_STEPS} in it; give the --output of build_verifier_steps or regenerate"
        )
    for file in files:
        yield from read_step_rows(file, columns, read, wanted)


def _label_place(benchmark: str, row: Mapping[str, Any]) -> tuple[Key, Stratum]:
    return (benchmark, boundary.read(str, row["id"])), (benchmark, _named(row["noise_type"], NOISE_TYPES))


def _label_row(benchmark: str, row: Mapping[str, Any]) -> Row:
    asked = question_of(row, benchmark=benchmark, split="")
    label = label_of(row)
    shown = {
        "question": asked.question,
        "answers": list(asked.accepted),
        "passages": [
            {
                "title": p.title,
                "sentences": list(p.sentences),
                "gold": p.is_gold,
                "supporting": [
                    fact.sentence for fact in asked.supporting_facts if p.is_gold and fact.title == p.title
                ],
            }
            for p in asked.passages
        ],
        "evidence": [[t.head, t.relation, t.tail] for t in asked.evidence],
        "decomposition": [[hop.question, hop.answer, hop.passage] for hop in asked.decomposition],
        "label": label.noise_type,
        "confidence": label.confidence,
        "explanation": label.explanation,
        "path": [asdict(triple) for triple in label.reasoning_path],
        "graph": [asdict(triple) for triple in label.knowledge_graph],
        "teacher": label.teacher,
    }
    return Row((benchmark, asked.id), (benchmark, label.noise_type), shown)


def _step_place(row: Mapping[str, Any]) -> tuple[Key, Stratum]:
    benchmark, id_ = (boundary.read(str, row[name], name) for name in ("benchmark", "id"))
    error, origin = _named(row["error_type"], labels()), _named(row["origin"], ORIGINS)
    return (benchmark, id_), (benchmark, error, origin)


def _step_row(row: Mapping[str, Any]) -> Row:
    key, stratum = _step_place(row)
    shown = {
        **{name: boundary.read(str, row[name], name) for name in _TEXTS},
        "passages": [
            {name: boundary.read(str, passage[name], name) for name in ("title", "text")}
            for passage in row["passages"]
        ],
        "previous_steps": [*boundary.read(list[str], row["previous_steps"], "previous_steps")],
        "label": stratum[1],
        "category": category(stratum[1]),
        "origin": stratum[2],
        "query": boundary.read(str | None, row["query"], "query"),
    }
    return Row(key, stratum, shown)


def _named(place: int | None, names: Sequence[str]) -> str:
    """The name of a class, which a row may not lack."""
    if place is None or place < 0:
        raise ValueError("its label or origin is missing")
    return names[place]


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows drawn, in the order in which they are shown; ``sizes`` are rows of each stratum
    in the whole set."""

    of: Audited
    rows: tuple[Row, ...]
    sizes: Mapping[Stratum, int]

    @property
    def sha256(self) -> str:
        """Which rows these are, and what is shown of them."""
        return identity([self.of, [row.sha256 for row in self.rows]])


def draw(folder: Path, of: Audited, wanted: int, seed: int) -> Sample:
    """A sample of ``wanted`` rows of a published set, or of all there are.

    Every choice is made by a hash of seed and id, so the order of the files changes nothing.
    Raises ``UserError`` for a folder that holds no such set, or one without rows.
    """
    known = strata(folder, of)
    if not known:
        raise UserError(f"{folder}: holds no row to judge; build with more rows")
    groups = grouped(known, known.__getitem__)
    chosen = balanced(groups, wanted, seed)
    found = rows(folder, of, chosen)
    sizes = {stratum: len(group) for stratum, group in sorted(groups.items())}
    return Sample(of, tuple(found[key] for key in chosen), sizes)


def balanced(groups: Mapping[Stratum, list[Key]], wanted: int, seed: int) -> list[Key]:
    """Keys in rounds, one of each group that still has any: whoever stops early has all kinds.

    >>> groups = {("b", "rare"): [("b", "1")], ("b", "often"): [("b", "2"), ("b", "3")]}
    >>> ("b", "1") in balanced(groups, 2, seed=0), len(balanced(groups, 9, seed=0))
    (True, 3)
    """
    order = sorted(groups, key=lambda stratum: _rank(seed, stratum))
    ranked = (sorted(groups[stratum], key=lambda key: _rank(seed, key)) for stratum in order)
    rounds = chain.from_iterable(zip_longest(*ranked))
    return list(islice((key for key in rounds if key is not None), wanted))


def _rank(seed: int, name: tuple[str, ...]) -> str:
    return identity([seed, *name])
