"""Read the rows of a published set as a reviewer sees them, and draw samples that are balanced over strata."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from safe_stepwise.records import NOISE_TYPES, Passage, identity
from safe_stepwise.store import boundary, codec, parquet
from safe_stepwise.store.names import LABELED, LABELS, ORIGINS, STEPS, VERIFIED, VERIFIER_STEPS, Audited
from safe_stepwise.taxonomy import category, labels

Key = tuple[str, str]
"""Benchmark and id of a row."""
Stratum = tuple[str, ...]
"""The values of a row's `score.STRATUM_FIELDS`."""
T = TypeVar("T")
_UNJUDGED = "unparsed"
_STEP_PLACE = ("id", "benchmark", "error_type", "origin")
_STEP_TEXTS = ("question", "current_step", "diagnosis", "guidance", "teacher")
_STEP_COLUMNS = (*_STEP_PLACE, *_STEP_TEXTS, "passages", "previous_steps", "query")


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One row, with everything that the page shows of it as JSON (``content``)."""

    key: Key
    stratum: Stratum
    content: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        """The digest of everything that a reviewer judges."""
        return identity([self.key, self.stratum, self.content])


def read_strata(folder: Path, audited: Audited) -> dict[Key, Stratum]:
    """Map the key of each row that a teacher judged to its (first) stratum; raise ``UserError`` without a set."""
    by_key: dict[Key, Stratum] = {}
    reading = (read_place, ("id", "noise_type")) if audited == LABELS else (_read_step_place, _STEP_PLACE)
    for key, stratum in _read_set(folder, audited, *reading):
        by_key.setdefault(key, stratum)
    return {key: stratum for key, stratum in by_key.items() if stratum[1] != _UNJUDGED}


def select_rows(folder: Path, audited: Audited, keys: Collection[Key]) -> dict[Key, AuditRow]:
    """Read the rows that have one of these keys; raise the errors of `read_strata`."""

    def read_label_row(benchmark: str, row: Mapping[str, Any]) -> AuditRow:
        return AuditRow(*read_place(benchmark, row), label_content(benchmark, row))

    keys, by_key = frozenset(keys), dict[Key, AuditRow]()
    read: Callable[..., AuditRow] = read_label_row if audited == LABELS else _read_step_row
    columns = None if audited == LABELS else _STEP_COLUMNS
    for row in _read_set(folder, audited, read, columns, has_id(id_ for _, id_ in keys)):
        if row.key in keys:
            by_key.setdefault(row.key, row)
    return by_key


def has_id(ids: Iterable[str]) -> Callable[[Any], Any]:
    """Return a function that tells for each row of an Arrow batch whether it has one of these ids."""
    values = pa.array([*ids], pa.string())
    return lambda batch: pc.is_in(batch.column("id"), value_set=values)


def _read_set(
    folder: Path, audited: Audited, read: Callable[..., T], columns: Sequence[str] | None, condition: Any = None
) -> Iterator[T]:
    """Read the rows of a set that meet a condition; ``read`` gets a label's benchmark and row, or a step's row."""
    if audited == LABELS:
        for benchmark, _, file in labeled_splits(folder):
            yield from parquet.read_rows(file, partial(read, benchmark), columns, condition)
        return
    advice = "give the --output of build_verifier_steps or regenerate"
    for file in parquet.find_files(folder, VERIFIER_STEPS, STEPS, advice):
        yield from read_step_rows(file, columns or (), read, condition)


def labeled_splits(folder: Path) -> list[tuple[str, str, Path]]:
    """List benchmark, split and Parquet file of all labelled rows; raise ``UserError`` for a folder without any."""
    files = parquet.find_files(folder, VERIFIED, f"*{LABELED}", "give the --output of build_verified or regenerate")
    return [(file.parent.name.removesuffix(LABELED), file.name.partition("-")[0], file) for file in files]


def read_place(benchmark: str, row: Mapping[str, Any]) -> tuple[Key, Stratum]:
    """Return key and stratum of a labelled row; raise ``ValueError`` for a row with a different schema."""
    return (benchmark, boundary.read(str, row["id"])), (benchmark, codec.class_of(row, "noise_type", NOISE_TYPES))


def label_content(benchmark: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a page shows of a labelled row, as JSON; raise ``ValueError`` for a row of another schema."""
    question, label = codec.question_of(row, benchmark=benchmark, split=""), codec.label_of(row)

    def list_supporting(p: Passage) -> list[int]:
        return [fact.sentence for fact in question.supporting_facts if p.is_gold and fact.title == p.title]

    return {
        "question": question.question,
        "answers": list(question.accepted),
        "passages": [
            {"title": p.title, "sentences": list(p.sentences), "gold": p.is_gold, "supporting": list_supporting(p)}
            for p in question.passages
        ],
        "evidence": [[t.head, t.relation, t.tail] for t in question.evidence],
        "decomposition": [[hop.question, hop.answer, hop.passage] for hop in question.decomposition],
        "label": label.noise_type,
        "confidence": label.confidence,
        "explanation": label.explanation,
        "path": [asdict(triple) for triple in label.reasoning_path],
        "graph": [asdict(triple) for triple in label.knowledge_graph],
        "teacher": label.teacher,
    }


def _read_step_place(row: Mapping[str, Any]) -> tuple[Key, Stratum]:
    benchmark, id_ = (boundary.read(str, row[name], name) for name in ("benchmark", "id"))
    error = codec.class_of(row, "error_type", labels())
    return (benchmark, id_), (benchmark, error, codec.class_of(row, "origin", ORIGINS))


def _read_step_row(row: Mapping[str, Any]) -> AuditRow:
    key, stratum = _read_step_place(row)
    content = {
        **{name: boundary.read(str, row[name], name) for name in _STEP_TEXTS},
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
    return AuditRow(key, stratum, content)


@dataclass(frozen=True, slots=True)
class AuditSample:
    """The sampled rows in the page's order; ``sizes`` counts the rows of each stratum in the whole set."""

    audited: Audited
    rows: tuple[AuditRow, ...]
    sizes: Mapping[Stratum, int]

    @property
    def sha256(self) -> str:
        """The digest of the rows and of everything that the page shows of them."""
        return identity([self.audited, [row.sha256 for row in self.rows]])


def draw(folder: Path, audited: Audited, size: int, seed: int) -> AuditSample:
    """Draw at most ``size`` rows of a set by a hash of seed and key; raise ``UserError`` for a folder without rows."""
    by_key = read_strata(folder, audited)
    if not by_key:
        raise UserError(f"{folder}: holds no row to judge; build with more rows")
    groups = grouped(by_key, by_key.__getitem__)
    selected = select_rows(folder, audited, chosen := balance_keys(groups, size, seed))
    sizes = {stratum: len(group) for stratum, group in sorted(groups.items())}
    return AuditSample(audited, tuple(selected[key] for key in chosen), sizes)


def balance_keys(groups: Mapping[Stratum, list[Key]], size: int, seed: int) -> list[Key]:
    """Order keys in rounds, with one key of each group that is not exhausted, and return the first ``size``."""
    rank = lambda name: identity([seed, *name])  # noqa: E731
    ranked = (sorted(groups[stratum], key=rank) for stratum in sorted(groups, key=rank))
    rounds = chain.from_iterable(zip_longest(*ranked))
    return list(islice((key for key in rounds if key is not None), size))
