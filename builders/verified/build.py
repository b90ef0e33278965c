"""From a benchmark's rows to the two release folders: verified benchmarks and noise labels.

Everything is prepared in ``OUTPUT/.work/BENCHMARK-SPLIT`` and swapped in when complete. Builds
accumulate: a build replaces its own benchmark and split and keeps the rest.
"""

import functools
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from builders.benchmarks import BENCHMARKS
from builders.verified import features, left_out
from builders.verified.chunks import code_of
from builders.verified.collect import Build, Collected, collect, source_of
from builders.verified.evaluation_sample import EvaluationSample, rendered
from builders.verified.statistics import TRUTH, InputSource, Kind, Known, SampleCounts, Statistics, libraries
from builders.verified.tally import Tally
from builders.verified.teachers.published import lists_of
from builders.work import publishing
from builders.work.parquet import SplitFiles, SplitWriter
from builders.work.shards import read_shard
from safe_stepwise.errors import UserError
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.agreement import Seen, agreement_of
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.layout import parquet_files
from safe_stepwise.store.names import (
    EVAL,
    INPUT,
    LABELED,
    NOISE_LABELS,
    README,
    STATISTICS,
    TEST,
    VALIDATION,
    VERIFIED,
)
from safe_stepwise.store.published import read_published

DATASETS = (VERIFIED, NOISE_LABELS)
NONE, UNPARSED = "none", "unparsed"

_Files = dict[str, dict[str, SplitFiles]]
"""By dataset and config."""

Card = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], str]
"""README text of a dataset, from the statistics of its builds and its ``dataset_info`` entries."""


def build(plan: Build, cards: Mapping[str, Card]) -> Statistics:
    """Build both release folders (again, if they are there) for one benchmark and split.

    ``cards`` makes the README of each of `VERIFIED` and `NOISE_LABELS`. Killed at any instant,
    the same call resumes, and ends in the same bytes.

    Raises ``UserError`` for what the user can mend: output folder, source, rows (unless
    ``keep_rejects``), a full disk.
    """
    done = Collected()

    def verified() -> str:
        return f"{done.standing.done} rows verified"

    with publishing.building(plan.output, DATASETS, plan.version, plan.work, verified, Statistics):
        kept = left_out.of_others(plan)
        source = source_of(plan)
        lists = lists_of(plan.teacher)
        tally = Tally(None if plan.published is None else read_published(plan.published), lists)
        collect(plan, done)
        release = publishing.new_release(plan.work)
        statistics = _statistics(plan, source, done, tally, *_write(plan, done, release, tally))
        _refuse_unjudged(plan, done, statistics)
        _refuse_unnamed(plan, statistics)
        for name in DATASETS:
            _merge(plan, release / name, statistics, cards[name])
        for name in DATASETS:
            publishing.swap_in(release / name / "merged", plan.output / name)
        left_out.publish(plan, kept, lists, tally)
        _forget(plan, release)
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


def _refuse_unnamed(plan: Build, statistics: Statistics) -> None:
    """Raise ``UserError`` if lists name no row of a whole split: they are of other questions."""
    if statistics.listed is None or statistics.listed.rows or plan.limit is not None:
        return
    raise UserError(
        f"{plan.teacher.name}: names no row of {plan.benchmark} {plan.split}, so that all would "
        "count as sound, and nothing was published; give the lists of this split (a part of it, "
        "by --limit, may have none)"
    )


def _forget(plan: Build, release: Path) -> None:
    """Everything is in place: what it was made of can go."""
    shutil.rmtree(release)
    if not plan.keep_work:
        publishing.forget(plan.work)


def _write(plan: Build, done: Collected, release: Path, tally: Tally) -> tuple[_Files, SampleCounts | None]:
    """Write the Parquet files of this build under ``release/DATASET/new``, and count their rows.

    Returns them, and what came of the sample.
    """
    name = plan.benchmark
    sample = EvaluationSample(plan.evaluation_size, plan.seed, plan.evaluation_passages)
    writers = {
        (dataset, config): SplitWriter(release / dataset / "new" / config, split, _features(dataset, config))
        for dataset in DATASETS
        for config, split in _splits(plan, dataset).items()
    }
    for path, dropped in done.finished:
        table = _without(read_shard(path), dropped)
        numbers = table.column("noise_type")
        types = [NOISE_TYPES[number] for number in numbers.to_pylist()]
        tally.add(table, types)
        verified = table.filter(pc.equal(numbers, NOISE_TYPES.index("none")))
        writers[VERIFIED, name].add(verified)
        writers[VERIFIED, name + LABELED].add(table)
        writers[NOISE_LABELS, name].add(table)
        if plan.split == VALIDATION:
            sample.offer(verified)
    if plan.split == VALIDATION:
        schema = features.evaluation_features().arrow_schema
        rows = [{**row, INPUT: rendered(row)} for row in sample.rows()]
        writers[VERIFIED, name + EVAL].add(pa.Table.from_pylist(rows, schema=schema))
    files: _Files = {dataset: {} for dataset in DATASETS}
    for (dataset, config), writer in writers.items():
        files[dataset][config] = writer.close()
    if plan.split != VALIDATION:
        return files, None
    drawn = files[VERIFIED][name + EVAL].rows
    counts = SampleCounts(plan.evaluation_size, drawn, sample.left_out, plan.evaluation_passages)
    return files, counts


def _known(plan: Build, seen: Mapping[Seen, int]) -> Known | None:
    if plan.published is not None:
        return Known(plan.published.name, sha256_of(plan.published), agreement_of(seen))
    return Known(TRUTH, "", agreement_of(seen)) if seen else None


def _splits(plan: Build, dataset: str) -> dict[str, str]:
    """The configs that a build writes, and the split of each."""
    name = plan.benchmark
    if dataset == NOISE_LABELS:
        return {name: plan.split}
    evaluation = {name + EVAL: TEST} if plan.split == VALIDATION else {}
    return {name: plan.split, name + LABELED: plan.split, **evaluation}


def _features(dataset: str, config: str) -> Any:
    if dataset == NOISE_LABELS:
        return features.noise_label_features()
    if config.endswith(LABELED):
        return features.labeled_features()
    return features.evaluation_features() if config.endswith(EVAL) else features.question_features()


def _statistics(
    plan: Build, source: InputSource, done: Collected, tally: Tally, files: _Files, evaluation: SampleCounts | None
) -> Statistics:
    types, kinds, unverifiable = Counter[str](), Counter[str](), Counter[str]()
    for (kind, type_), number in tally.rows.items():
        types[type_] += number
        kinds[kind] += number
        unverifiable[kind] += number if type_ not in (NONE, UNPARSED) else 0
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
        rows=done.standing.done,
        verified=types.pop(NONE, 0),
        unparsed=types.pop(UNPARSED, 0),
        unverifiable={type_: types[type_] for type_ in NOISE_TYPES if types[type_]},
        rejected=done.standing.failed,
        kinds={kind: Kind(kinds[kind], unverifiable[kind]) for kind in sorted(kinds)},
        evaluation=evaluation,
        files=files,
        license=benchmark.LICENSE,
        homepage=benchmark.HOMEPAGE,
        citation=benchmark.CITATION,
        caveat=benchmark.CAVEAT,
        min_confidence=plan.min_confidence,
        known=_known(plan, tally.seen),
        libraries=libraries(),
        code_sha256=code_of(plan.benchmark, plan.teacher.name),
        listed=tally.listed,
        examples=tally.examples,
    )


def _without(table: pa.Table, dropped: frozenset[int]) -> pa.Table:
    if not dropped:
        return table
    kept = [index not in dropped for index in table.column("index").to_pylist()]
    return table.filter(pa.array(kept, pa.bool_()))


def _merge(plan: Build, dataset: Path, statistics: Statistics, card: Card) -> None:
    """Lay this build over what the output folder has, in ``DATASET/merged``."""
    merged, name = dataset / "merged", dataset.name
    publishing.link_tree(plan.output / name, merged)
    for config, split in _splits(plan, name).items():
        for old in parquet_files(merged, config, split):
            old.unlink()
    for new in sorted((dataset / "new").glob("*/*.parquet")):
        target = merged / "data" / new.parent.name / new.name
        target.parent.mkdir(parents=True, exist_ok=True)
        new.rename(target)
    publishing.complete(
        merged,
        f"{STATISTICS}/{plan.benchmark}-{plan.split}.json",
        # Noise labels are published without the questions.
        statistics if name == VERIFIED else replace(statistics, examples=()),
        lambda builds, info: {README: card(builds, info).encode()},
        lambda build: {config: [files] for config, files in build["files"][name].items()},
        functools.partial(_features, name),
    )
