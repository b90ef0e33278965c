"""From a benchmark's rows to the two release folders: verified benchmarks and noise labels.

Everything is prepared in ``OUTPUT/.work/BENCHMARK-SPLIT`` and swapped in when complete. Builds
accumulate: a build replaces its own benchmark and split and keeps the rest.
"""

from __future__ import annotations

import functools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from builders.benchmarks import BENCHMARKS
from builders.verified import features
from builders.verified.collect import Build, Collected, collect, source_of
from builders.verified.evaluation_sample import EvaluationSample
from builders.verified.statistics import Evaluation, Kind, Source, Statistics, libraries
from builders.work import folders
from builders.work.dataset_info import dataset_info
from builders.work.parquet import SplitFiles, SplitWriter
from builders.work.shards import code_digest, read_shard
from safe_stepwise.errors import UserError
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store import locks
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.layout import parquet_files
from safe_stepwise.store.names import (
    EVAL,
    LABELED,
    NOISE_LABELS,
    README,
    REJECTS,
    STATISTICS,
    TEST,
    VALIDATION,
    VERIFIED,
)

Card = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], str]
"""README text of a dataset, from the statistics of its builds and its ``dataset_info`` entries."""


def build(plan: Build, cards: Mapping[str, Card]) -> Statistics:
    """Build both release folders (again, if they are there) for one benchmark and split.

    ``cards`` makes the README of each of `VERIFIED` and `NOISE_LABELS`. Killed at any instant,
    the same call resumes, and ends in the same bytes.

    Raises ``UserError`` for what the user can mend: output folder, source, rows (unless
    ``keep_rejects``), a full disk.
    """
    with locks.exclusive(plan.output):
        for name in (VERIFIED, NOISE_LABELS):
            folders.recover(plan.output / name)
            folders.check_version(plan.output / name, plan.version)
        done = Collected()
        try:
            return _build(plan, cards, done)
        except OSError as error:
            shutil.rmtree(plan.work / "release", ignore_errors=True)
            if locks.is_disk_full(error):
                raise UserError(
                    f"{plan.output}: no space left on the disk, with {done.rows} rows verified; "
                    f"make room and run the same command again: it resumes from {plan.work}"
                ) from error
            if locks.is_forbidden(error):
                raise locks.cannot_write(Path(error.filename or plan.output), error) from error
            raise


def _build(plan: Build, cards: Mapping[str, Card], done: Collected) -> Statistics:
    source = source_of(plan)
    plan.work.mkdir(parents=True, exist_ok=True)
    collect(plan, done)
    release = plan.work / "release"
    shutil.rmtree(release, ignore_errors=True)
    statistics = _write(plan, source, done, release)
    _refuse_unjudged(plan, done, statistics)
    content = json.dumps(asdict(statistics), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    for name in (VERIFIED, NOISE_LABELS):
        _merge(plan, release / name, content, cards[name])
    _publish(plan, release)
    return statistics


def _refuse_unjudged(plan: Build, done: Collected, statistics: Statistics) -> None:
    """Raise ``UserError`` if a model judged nothing; its replies stay, and so what failed is owed.

    Replies that can't be read are no work to keep: another cache is to be asked for others.
    """
    if not done.replies or statistics.unparsed < statistics.rows - statistics.rejected:
        return
    shards = (read_shard(path) for path, _ in done.finished)
    *_, last = (reason for shard in shards for reason in shard.column("explanation").to_pylist())
    mend = "mend that and run the same command again: only what failed is asked"
    if not done.replies["failed"]:
        shutil.rmtree(plan.work)
        mend = "to have it asked again, run with another --cache (or try another model)"
    raise UserError(
        f"{plan.teacher.name}: none of the {statistics.unparsed} rows could be judged, and nothing "
        f"was published; the last: {last.rstrip('.')}; {mend}"
    )


def _publish(plan: Build, release: Path) -> None:
    """Everything is written: put it in place, and only then forget the work."""
    for name in (VERIFIED, NOISE_LABELS):
        folders.swap_in(release / name / "merged", plan.output / name)
    _publish_rejects(plan)
    shutil.rmtree(release)
    if not plan.keep_work:
        shutil.rmtree(plan.work)
        with suppress(OSError):
            plan.work.parent.rmdir()


def _writers(plan: Build, release: Path) -> dict[tuple[str, str], SplitWriter]:
    name = plan.benchmark
    columns = {
        (VERIFIED, name): features.question_features(),
        (VERIFIED, name + LABELED): features.labeled_features(),
        (NOISE_LABELS, name): features.noise_label_features(),
    }
    return {
        (dataset, config): SplitWriter(release / dataset / "new" / config, plan.split, columns_)
        for (dataset, config), columns_ in columns.items()
    }


def _write(plan: Build, source: Source, done: Collected, release: Path) -> Statistics:
    """Write the Parquet files of this build under ``release/DATASET/new`` and count."""
    writers = _writers(plan, release)
    sample = EvaluationSample(plan.evaluation_size, plan.seed)
    noise: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    unverifiable_kinds: Counter[str] = Counter()
    for path, dropped in done.finished:
        table = _without(read_shard(path), dropped)
        types = [NOISE_TYPES[number] for number in table.column("noise_type").to_pylist()]
        row_kinds = table.column("kind").to_pylist()
        noise.update(types)
        kinds.update(row_kinds)
        flags = table.column("unverifiable").to_pylist()
        unverifiable_kinds.update(k for k, flag in zip(row_kinds, flags, strict=True) if flag)
        verified = table.filter(pc.equal(table.column("noise_type"), NOISE_TYPES.index("none")))
        writers[VERIFIED, plan.benchmark].add(verified)
        writers[VERIFIED, plan.benchmark + LABELED].add(table)
        writers[NOISE_LABELS, plan.benchmark].add(table)
        if plan.split == VALIDATION:
            sample.offer(verified)
    files: dict[str, dict[str, SplitFiles]] = {VERIFIED: {}, NOISE_LABELS: {}}
    for (dataset, config), writer in writers.items():
        files[dataset][config] = writer.close()
    evaluation = None
    if plan.split == VALIDATION:
        config = plan.benchmark + EVAL
        files[VERIFIED][config] = _write_sample(sample, release / VERIFIED / "new" / config)
        rows = files[VERIFIED][config].rows
        evaluation = Evaluation(plan.evaluation_size, rows, sample.left_out)
    benchmark = BENCHMARKS[plan.benchmark]
    return Statistics(
        version=plan.version,
        benchmark=plan.benchmark,
        split=plan.split,
        source=source,
        limit=plan.limit,
        teacher=plan.teacher.name,
        simulated=plan.teacher.simulated,
        replies=dict(sorted(done.replies.items())),
        seed=plan.seed,
        rows=done.rows,
        verified=noise.pop("none", 0),
        unparsed=noise.pop("unparsed", 0),
        unverifiable={type_: noise[type_] for type_ in NOISE_TYPES if noise[type_]},
        rejected=done.rejected,
        kinds={k: Kind(kinds[k], unverifiable_kinds[k]) for k in sorted(kinds)},
        evaluation=evaluation,
        files=files,
        license=benchmark.LICENSE,
        homepage=benchmark.HOMEPAGE,
        citation=benchmark.CITATION,
        caveat=benchmark.CAVEAT,
        libraries=libraries(),
        code_sha256=code_digest(),
    )


def _without(table: pa.Table, dropped: frozenset[int]) -> pa.Table:
    if not dropped:
        return table
    kept = [index not in dropped for index in table.column("index").to_pylist()]
    return table.filter(pa.array(kept, pa.bool_()))


def _write_sample(sample: EvaluationSample, folder: Path) -> SplitFiles:
    columns = features.question_features()
    writer = SplitWriter(folder, TEST, columns)
    writer.add(pa.Table.from_pylist(sample.rows(), schema=columns.arrow_schema))
    return writer.close()


def _merge(plan: Build, dataset: Path, statistics: str, card: Card) -> None:
    """Lay this build over what the output folder has, in ``DATASET/merged``."""
    merged = dataset / "merged"
    folders.link_tree(plan.output / dataset.name, merged)
    splits = {plan.benchmark: plan.split, plan.benchmark + LABELED: plan.split}
    if plan.split == VALIDATION:
        splits[plan.benchmark + EVAL] = TEST
    for config, split in splits.items():
        for old in parquet_files(merged, config, split):
            old.unlink()
    for new in sorted((dataset / "new").glob("*/*.parquet")):
        target = merged / "data" / new.parent.name / new.name
        target.parent.mkdir(parents=True, exist_ok=True)
        new.rename(target)
        folders.sync_folder(target.parent)
    records = merged / STATISTICS
    records.mkdir(parents=True, exist_ok=True)
    name = f"{plan.benchmark}-{plan.split}.json"
    write_atomically(records / name, statistics.encode())
    builds = folders.read_statistics(merged)
    readme = card(builds, _dataset_info(builds, dataset.name))
    write_atomically(merged / README, readme.encode())


def _dataset_info(builds: Sequence[Mapping[str, Any]], dataset: str) -> list[dict[str, Any]]:
    """The ``dataset_info`` entries of a README: every config with features and split sizes."""
    splits: dict[str, list[Mapping[str, Any]]] = {}
    for entry in builds:
        for config, files in entry["files"][dataset].items():
            splits.setdefault(config, []).append(files)
    return dataset_info(splits, functools.partial(_features, dataset))


def _features(dataset: str, config: str) -> Any:
    if dataset == NOISE_LABELS:
        return features.noise_label_features()
    if config.endswith(LABELED):
        return features.labeled_features()
    return features.question_features()


def _publish_rejects(plan: Build) -> None:
    """Put this build's rejects in the place of those of an earlier build of the same split."""
    target, new = plan.output / REJECTS, plan.work / REJECTS
    lines = []
    if target.exists():
        ours = (plan.benchmark, plan.split)
        for line in target.read_bytes().splitlines(keepends=True):
            record = json.loads(line)
            if (record["benchmark"], record["split"]) != ours:
                lines.append(line)
    content = b"".join(lines) + new.read_bytes()
    if content:
        write_atomically(target, content)
    else:
        target.unlink(missing_ok=True)
