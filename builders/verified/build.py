"""Builds the two release folders from a benchmark's rows: verified benchmarks and noise labels.

A build is prepared in ``OUTPUT/.work/BENCHMARK-SPLIT`` and published when complete. Builds accumulate: each replaces
its own benchmark and split, and keeps all others, in the datasets and in the files of rows that are in no split.
"""

import functools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from builders.benchmarks import BENCHMARKS
from builders.benchmarks.sources import InputSource
from builders.verified import chunks, questions
from builders.verified.collect import Build, jobs, source_of
from builders.verified.questions import config_features
from builders.verified.statistics import TRUTH, KindCounts, ReferenceLabels, SampleCounts, Statistics, Tally
from builders.verified.teachers.choice import describe_unreadable
from builders.verified.teachers.published import PublishedTeachers
from builders.work import parquet, plans, publishing
from builders.work.collect import Collected, collect
from builders.work.rejects import RejectPolicy
from safe_stepwise.errors import UserError
from safe_stepwise.records import NO_NOISE, NOISE_TYPES
from safe_stepwise.store import agreement, boundary, names, published_labels, tables
from safe_stepwise.store.files import read_lines, sha256_of
from safe_stepwise.store.names import EVAL, LABELED, NOISE_LABELS, REJECTS, TEST, UNMATCHED, VALIDATION, VERIFIED
from safe_stepwise.store.parquet import parquet_files

DATASETS = (VERIFIED, NOISE_LABELS)
NONE, UNPARSED, UNDECIDED = "none", "unparsed", "undecided"

Card = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], str]
"""README text of a dataset, from the statistics of its builds and its ``dataset_info`` entries."""


def build(plan: Build, cards: Mapping[str, Card]) -> Statistics:
    """Build or replace one benchmark and split in both release folders; return the build's statistics.

    ``cards`` renders the READMEs. After a kill the same call resumes, and ends in the same bytes. Raises ``UserError``
    for what the user can fix, such as bad rows (unless ``keep_rejects``).
    """
    collected = Collected()
    with publishing.building(plan, DATASETS, lambda: f"{collected.standing.finished} rows verified", Statistics):
        other_lines = {name: _read_other_lines(plan, name) for name in (REJECTS, UNMATCHED)}
        source = source_of(plan)
        lists = plan.teacher.lists if isinstance(plan.teacher, PublishedTeachers) else ()
        tally = Tally(None if plan.published is None else published_labels.read_published(plan.published), lists)
        policy = RejectPolicy(plan.benchmark, plan.split, plan.keep_rejects)
        collect(plan, policy, functools.partial(jobs, plan), plan.teacher, [plan.source], collected)
        release = publishing.new_release(plan.work)
        files, sample = _write(plan, collected, release, tally)
        statistics = _make_statistics(plan, source, collected, tally, files, sample)
        _refuse_unjudged(plan, collected, statistics)
        _refuse_unnamed(plan, statistics)
        for name in DATASETS:
            _merge(plan, release / name, statistics, cards[name])
        for name in DATASETS:
            publishing.swap_in(release / name / "merged", plan.output / name)
        (plan.output / names.LABELS_PAGE).unlink(missing_ok=True)  # a page of the rows before
        new = {REJECTS: [(plan.work / REJECTS).read_bytes()], UNMATCHED: _list_unmatched(plan, tally)}
        for name, lines in new.items():
            publishing.publish_lines(plan.output / name, b"".join([*other_lines[name], *lines]))
        shutil.rmtree(release)
        if not plan.keep_work:
            publishing.remove_work(plan.work)
    return statistics


def _refuse_unjudged(plan: Build, collected: Collected, statistics: Statistics) -> None:
    """Raise ``UserError`` if a model judged no row; if all its replies were unreadable, the work is removed."""
    replies, unjudged = collected.replies, f"none of the {statistics.unparsed} rows could be judged"
    is_judged = statistics.unparsed < statistics.rows - statistics.rejected
    if plan.teacher.alone is not None:
        is_judged, unjudged = replies["read"] > 0, "none of its replies could be used"
    if not replies or is_judged:
        return
    *_, last = (reason for table in collected.tables() for reason in table.column("explanation").to_pylist())
    mend = "mend that and run the same command again: only what failed is asked"
    if not collected.replies["failed"]:
        shutil.rmtree(plan.work)
        mend = "to have it asked again, run with another --cache (or try another model)"
    raise UserError(
        f"{plan.teacher.name}: {unjudged}, and nothing was published; the last: {last.rstrip('.')}"
        f"{describe_unreadable(plan.teacher)}; {mend}"
    )


def _refuse_unnamed(plan: Build, statistics: Statistics) -> None:
    """Raise ``UserError`` if lists name no row of a whole split, as they belong to other questions then."""
    if statistics.listed is None or statistics.listed.rows or plan.limit is not None:
        return
    raise UserError(
        f"{plan.teacher.name}: names no row of {plan.benchmark} {plan.split}, so that all would "
        "count as sound, and nothing was published; give the lists of this split (a part of it, "
        "by --limit, may have none)"
    )


def _write(
    plan: Build, collected: Collected, release: Path, tally: Tally
) -> tuple[dict[str, parquet.FilesByConfig], SampleCounts | None]:
    """Write this build's files and count its rows in ``tally``; return the files and the sample's counts, if any."""
    name, split, is_sampled = plan.benchmark, plan.split, plan.split == VALIDATION
    sample = questions.EvaluationSample(
        plan.evaluation_size, plan.seed, plan.evaluation_passages, exact=plan.own_benchmark is None
    )
    verified, labels = (
        parquet.DatasetWriter(
            release / dataset / "new", _list_splits(plan, dataset).items(), functools.partial(config_features, dataset)
        )
        for dataset in DATASETS
    )
    for table in collected.tables():
        numbers = table.column("noise_type")
        tally.add(table, [NOISE_TYPES[number] for number in numbers.to_pylist()])
        sound = table.filter(pc.equal(numbers, NOISE_TYPES.index(NONE)))
        verified.add(name, split, sound)
        verified.add(name + LABELED, split, table)
        labels.add(name, split, table)
        if is_sampled:
            sample.offer(sound)
    if is_sampled:
        verified.add(name + EVAL, TEST, sample.rows())
    files = {VERIFIED: verified.close(), NOISE_LABELS: labels.close()}
    if not is_sampled:
        return files, None
    sample_rows = files[VERIFIED][name + EVAL][TEST].rows
    return files, SampleCounts(plan.evaluation_size, sample_rows, sample.left_out, sample.passages, sample.exact)


def _list_splits(plan: Build, dataset: str) -> dict[str, str]:
    name = plan.benchmark
    if dataset == NOISE_LABELS:
        return {name: plan.split}
    evaluation = {name + EVAL: TEST} if plan.split == VALIDATION else {}
    return {name: plan.split, name + LABELED: plan.split, **evaluation}


def _make_statistics(
    plan: Build,
    source: InputSource,
    collected: Collected,
    tally: Tally,
    files: Mapping[str, parquet.FilesByConfig],
    evaluation: SampleCounts | None,
) -> Statistics:
    types, kinds, unverifiable = Counter[str](), Counter[str](), Counter[str]()
    for (kind, type_), number in tally.rows.items():
        types[type_] += number
        kinds[kind] += number
        unverifiable[kind] += number if type_ not in NO_NOISE else 0
    reference = None
    if plan.published is not None:
        digest = sha256_of(plan.published)
        reference = ReferenceLabels(plan.published.name, digest, agreement.measure_agreement(tally.outcomes))
    elif tally.outcomes:
        reference = ReferenceLabels(TRUTH, "", agreement.measure_agreement(tally.outcomes))
    options = ("version", "benchmark", "split", "limit", "seed", "min_confidence")
    return Statistics(
        **{name: getattr(plan, name) for name in options},
        **_source_terms(plan),
        source=source,
        teacher=plan.teacher.name,
        simulated=plan.teacher.simulated,
        replies=dict(sorted(collected.replies.items())),
        rows=collected.standing.finished,
        verified=types.pop(NONE, 0),
        unparsed=types.pop(UNPARSED, 0),
        undecided=types.pop(UNDECIDED, 0),
        unverifiable={type_: types[type_] for type_ in NOISE_TYPES if types[type_]},
        rejected=collected.standing.failed,
        kinds={kind: KindCounts(kinds[kind], unverifiable[kind]) for kind in sorted(kinds)},
        evaluation=evaluation,
        files={
            name: {config: split_files for config, splits in configs.items() for split_files in splits.values()}
            for name, configs in files.items()
        },
        known=reference,
        libraries=plans.libraries(),
        code_sha256=chunks.code_of(plan.benchmark, plan.teacher.name),
        listed=tally.listed,
        adjudication=tally.adjudication,
    )


def _source_terms(plan: Build) -> dict[str, Any]:
    """Return licence, home page, citation and caveat of the source, and the columns of the user's own benchmark."""
    slots = ("license", "homepage", "citation", "caveat")
    if plan.own_benchmark is None:
        terms: dict[str, Any] = {name: getattr(BENCHMARKS[plan.benchmark], name.upper()) for name in slots}
    else:
        terms = {name: getattr(plan.own_benchmark, name) for name in (*slots, "columns", "added")}
    if terms["caveat"] and plan.teacher.alone is not None:
        terms["caveat"] = f"Of the labels that no model decided: {terms['caveat']}"
    return terms


def _merge(plan: Build, dataset: Path, statistics: Statistics, card: Card) -> None:
    """Merge this build with the builds in the output folder, in ``DATASET/merged``."""
    merged, name = dataset / "merged", dataset.name
    if (plan.output / name).exists():
        shutil.copytree(plan.output / name, merged, copy_function=publishing.link_or_copy)
    for config, split in _list_splits(plan, name).items():
        for old in parquet_files(merged, config, split):
            old.unlink()
    for new in sorted((dataset / "new").glob("*/*.parquet")):
        target = merged / "data" / new.parent.name / new.name
        target.parent.mkdir(parents=True, exist_ok=True)
        new.rename(target)
    publishing.complete(
        merged,
        f"{names.STATISTICS}/{plan.benchmark}-{plan.split}.json",
        statistics,
        lambda builds, info: {names.README: card(builds, info).encode()},
        lambda build: {config: [files] for config, files in build["files"][name].items()},
        functools.partial(config_features, name),
    )


def _list_unmatched(plan: Build, tally: Tally) -> Iterator[bytes]:
    """Yield JSON lines of the list entries that no row matches."""
    for listed in tally.lists:
        for text in tally.unmatched(listed):
            place = {"benchmark": plan.benchmark, "split": plan.split, "list": listed.name}
            line = json.dumps({**place, "question": text}, ensure_ascii=False)
            yield f"{line}\n".encode("utf-8", "backslashreplace")


def _read_other_lines(plan: Build, name: str) -> list[bytes]:
    """Read the lines of other builds in a file, which stay; raise ``UserError`` if one lacks benchmark or split."""

    def read(line: bytes) -> tuple[bool, bytes]:
        row = boundary.read(Mapping[str, Any], boundary.parse_json(line))
        return (row["benchmark"], row["split"]) == (plan.benchmark, plan.split), line.removesuffix(b"\n") + b"\n"

    file = plan.output / name
    lines = read_lines(file, read, "line of a build", "mend the line or remove it") if file.exists() else ()
    return [line for _, (is_replaced, line) in lines if not is_replaced]


def summary(plan: Build, statistics: Statistics) -> str:
    """Render the build's counts, its folder and how to load it, for the terminal."""
    rows: list[tuple[str, object]] = [
        (f"{plan.benchmark} {plan.split}", "rows"),
        ("read", statistics.rows),
        ("verified", statistics.verified),
        ("unverifiable", sum(statistics.unverifiable.values())),
        *((f"  {type_}", count) for type_, count in statistics.unverifiable.items()),
        ("undecided", statistics.undecided),
        ("not judged", statistics.unparsed),
        ("rejected", statistics.rejected),
    ]
    folder = Path(__file__).parent / "templates"
    return tables.fill(folder, "summary.txt", rows=rows, plan=plan, statistics=statistics, names=names).rstrip()


def overview(builds: Sequence[Statistics]) -> str:
    """Render several builds as a table, one line each."""
    header = ("benchmark", "split", "rows", "verified", "unverifiable", "undecided", "not judged", "rejected")
    rows = (
        (s.benchmark, s.split, s.rows, s.verified, sum(s.unverifiable.values()), s.undecided, s.unparsed, s.rejected)
        for s in builds
    )
    return tables.text_table([header, *rows])


def counts(builds: Sequence[Statistics]) -> dict[str, Any]:
    """Return row counts for a release's lock, by ``BENCHMARK-SPLIT``."""
    columns = ("rows", "verified", "unverifiable", "undecided", "unparsed", "rejected")
    return {f"{s.benchmark}-{s.split}": {name: getattr(s, name) for name in columns} for s in builds}
