"""The probe's files: rows of each split, in the order of a draw of questions.

The rows of a question stand together, and questions of all benchmarks among each other, so that the
first rows of a split are a draw.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from builders.paths.asked import Asked
from builders.paths.features import CONFIGS, config_features, row_of
from builders.paths.rows import ProbeRow, rows_of
from builders.paths.statistics import Tally
from builders.paths.world import World
from builders.work.parquet import SplitFiles, SplitWriter
from safe_stepwise.records import Triple, canonical_json
from safe_stepwise.store.names import TEST, TRAIN, VALIDATION

SPLITS = (TRAIN, VALIDATION, TEST)
COMPLETE = ("metaqa", "synthetic")
"""Benchmarks whose graph is all there is."""
_TENTHS = {8: VALIDATION, 9: TEST}
_GROUP = 1_000
"""Rows that are written at a time."""


def write(
    folder: Path,
    asked: Mapping[str, Sequence[Asked]],
    known: Mapping[str, Iterable[Triple]],
    seed: int,
    tally: Tally,
    rejects: list[str],
) -> dict[str, dict[str, SplitFiles]]:
    """Write the files of every config; returns what they are, by config and split.

    ``asked`` are the questions by benchmark, ``known`` whole knowledge bases likewise; ``tally``
    and ``rejects`` take what was made and what was not.
    """
    worlds = {b: World(of, known.get(b, ()), b in COMPLETE) for b, of in asked.items()}
    features = {config: config_features(config) for config in CONFIGS}
    files: dict[str, dict[str, SplitFiles]] = {config: {} for config in CONFIGS}
    for split in SPLITS:
        own = [one for of in asked.values() for one in of if split_of(one) == split]
        own.sort(key=lambda one: rank(seed, one))
        writers = {config: SplitWriter(folder / config, split, features[config]) for config in CONFIGS}
        for rows in _grouped(_made(own, worlds, seed, tally, rejects), _GROUP):
            for row in rows:
                tally.add(split, row)
            for config, writer in writers.items():
                content = [row_of(config, row) for row in rows]
                writer.add(pa.Table.from_pylist(content, schema=features[config].arrow_schema))
        for config, writer in writers.items():
            files[config][split] = writer.close()
    return files


def split_of(asked: Asked) -> str:
    """The split of a question: by its words alone, but that evaluation questions are in test."""
    if asked.is_held_out:
        return TEST
    digest = hashlib.sha256(asked.key.encode("utf-8", "replace")).digest()
    return _TENTHS.get(int.from_bytes(digest[:8], "big") % 10, TRAIN)


def rank(seed: int, asked: Asked) -> bytes:
    """A sort key that depends on nothing but the seed and the question's words."""
    return hashlib.sha256(f"{seed}\0{asked.key}".encode("utf-8", "replace")).digest()


def reject(benchmark: str, id_: str, corruption: str, reason: str) -> str:
    """A line about what is not in the probe; ``corruption`` is empty for a whole question."""
    told = {"benchmark": benchmark, "question_id": id_, "corruption": corruption, "reason": reason}
    return canonical_json(told)


def _made(
    questions: Sequence[Asked], worlds: Mapping[str, World], seed: int, tally: Tally, rejects: list[str]
) -> Iterator[ProbeRow]:
    """The rows of questions of one split; what was refused is counted and told.

    The path of another question is one of its split and benchmark, as long if there are such.
    """
    alike: dict[tuple[str, int], list[Asked]] = defaultdict(list)
    beside: dict[str, list[Asked]] = defaultdict(list)
    for one in questions:
        alike[one.benchmark, len(one.path)].append(one)
        beside[one.benchmark].append(one)
    for one in questions:
        same = alike[one.benchmark, len(one.path)]
        donors = same if len(same) > 1 else beside[one.benchmark]
        for made in rows_of(one, worlds[one.benchmark], donors, seed, tally.drawn):
            if isinstance(made, ProbeRow):
                yield made
            else:
                tally.refused[made.corruption, made.reason] += 1
                rejects.append(reject(one.benchmark, one.id, made.corruption, made.reason))


def _grouped(rows: Iterable[ProbeRow], size: int) -> Iterator[list[ProbeRow]]:
    group: list[ProbeRow] = []
    for row in rows:
        group.append(row)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
