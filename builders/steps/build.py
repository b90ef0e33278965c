"""From verified questions to the step-level verifier set, ``safe-verifier-steps``.

Steps are made chunk by chunk into ``OUTPUT/.work/verifier-steps``; from all that passed, rows are
chosen, split by groups of questions, written beside the work and swapped in whole.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.steps import leakage
from builders.steps.collect import Found, StepsBuild, make, question_key
from builders.steps.composition import choose, rank
from builders.steps.features import CONFIGS, config_features, prompt_completion_row, step_row
from builders.steps.lengths import check_lengths
from builders.steps.questions import VerifiedSet, open_verified
from builders.steps.refined import origin_of
from builders.steps.rows import StepRow
from builders.steps.shards import Maker, read_rows
from builders.steps.statistics import StepStatistics, builds_of, counted, examples
from builders.verified.statistics import libraries
from builders.work import folders
from builders.work.dataset_info import dataset_info
from builders.work.parquet import SplitFiles, SplitWriter
from builders.work.shards import code_digest
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import prompt_digest
from safe_stepwise.store import locks
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import (
    MISSING,
    PROMPT_COMPLETION,
    REFUSED,
    STEPS,
    STEPS_RECORD,
    TEST,
    TRAIN,
    VERIFIER_STEPS,
)

SPLITS = (TRAIN, TEST)

Card = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], Mapping[str, bytes]]
"""The dataset's README and images by file name, from its statistics and ``dataset_info``."""


def build(
    plan: StepsBuild, maker: Maker, card: Card, warn: Callable[[str], object] = print
) -> StepStatistics:
    """Build ``OUTPUT/safe-verifier-steps`` (again, if it is there) and ``OUTPUT/refused.jsonl``.

    Killed at any instant, the same call resumes, and ends in the same bytes, for any number of
    workers. ``warn`` is told what may matter but stops nothing.

    Raises ``UserError`` for what the user can mend: folders, versions, too few rows, rows that are
    too long, a full disk.
    """
    if not 0 < plan.test_share < 1:
        raise UserError(f"--test-share {plan.test_share}: a share lies between 0 and 1")
    verified = open_verified(plan.verified, plan.version)
    verified.of(plan.benchmarks)
    for warning in verified.warnings:
        warn(warning)
    with locks.exclusive(plan.output):
        folders.recover(plan.output / VERIFIER_STEPS)
        folders.check_version(plan.output / VERIFIER_STEPS, plan.version)
        _check_kind(plan)
        found = Found()
        try:
            maker.check()
            return _build(plan, verified, maker, card, found)
        except OSError as error:
            shutil.rmtree(plan.work / "release", ignore_errors=True)
            if locks.is_disk_full(error):
                raise UserError(
                    f"{plan.output}: no space left on the disk, with {found.done} questions done; "
                    f"make room and run the same command again: it resumes from {plan.work}"
                ) from error
            if locks.is_forbidden(error):
                raise locks.cannot_write(Path(error.filename or plan.output), error) from error
            raise
        finally:
            maker.close()


def _check_kind(plan: StepsBuild) -> None:
    """Raise ``UserError`` if checked steps would be put in the place of unchecked ones, or so."""
    place = plan.output / VERIFIER_STEPS
    for build in folders.read_statistics(place):
        if bool(build.get("unverifiable")) != plan.unverifiable:
            there = "verified" if plan.unverifiable else "unverifiable"
            raise UserError(
                f"{place}: holds steps of {there} questions, which these would replace; choose "
                "another --output"
            )


def _build(
    plan: StepsBuild, verified: VerifiedSet, maker: Maker, card: Card, found: Found
) -> StepStatistics:
    (plan.work / "shards").mkdir(parents=True, exist_ok=True)
    make(plan, verified, maker, found)
    chosen = choose(found.candidates, plan.composition, plan.seed)
    questions = {
        question_key(c.benchmark, c.question) for c in found.candidates if c.id in chosen.ids
    }
    missing = {c.id for c in found.missing if question_key(c.benchmark, c.question) in questions}
    picked = _read(found.shards, chosen.ids | missing, plan.seed)
    steps = [row for row in picked if row.id in chosen.ids]
    test, groups = _split(plan, steps)
    by_config = {
        STEPS: _by_split(steps, test),
        MISSING: _by_split([row for row in picked if row.id in missing], test),
    }
    lengths = check_lengths(picked, plan.max_length, plan.tokenizer)
    release = plan.work / "release"
    shutil.rmtree(release, ignore_errors=True)
    files = _write(by_config, release / "data")
    builds = verified.of(plan.benchmarks)
    statistics = StepStatistics(
        version=plan.version,
        seed=plan.seed,
        teacher=maker.name,
        simulated=maker.simulated,
        unverifiable=plan.unverifiable,
        composition=plan.composition,
        test_share=plan.test_share,
        pool=plan.pool,
        refined=origin_of(plan.refined, found.refined),
        **counted(by_config[STEPS]),
        missing_evidence={split: len(part) for split, part in by_config[MISSING].items()},
        trajectories={
            name: {"questions": found.seen[name], "passing": found.passing[name]}
            for name in sorted(found.seen)
        },
        refused=_refused_counts(found),
        kept_out={
            name: {"questions": number, "rows": found.kept_rows[name]}
            for name, number in sorted(found.kept_questions.items())
        },
        shortfalls=chosen.shortfalls,
        groups=groups,
        lengths=lengths,
        verified=builds_of(builds),
        files=files,
        examples=examples(by_config[STEPS][TRAIN]),
        prompt_sha256=prompt_digest(),
        libraries={**libraries(), "matplotlib": installed_version("matplotlib")},
        code_sha256=code_digest(),
    )
    _publish(plan, release, statistics, card)
    return statistics


def _read(shards: Sequence[Path], ids: frozenset[str], seed: int) -> list[StepRow]:
    """The rows of these ids, each once, in the order of the draw."""
    found: dict[str, StepRow] = {}
    for path in shards:
        for row in read_rows(path, ids):
            found.setdefault(row.id, row)
    return [found[id_] for id_ in sorted(found, key=lambda id_: rank(seed, id_))]


def _split(plan: StepsBuild, steps: Sequence[StepRow]) -> tuple[set[str], dict[str, int]]:
    """The questions of the test split, and counts of the groups that hold together."""
    sizes = Counter(question_key(row.question.benchmark, row.question.id) for row in steps)
    asked = {question_key(row.question.benchmark, row.question.id): row.question for row in steps}
    documents = {key: leakage.document(question) for key, question in asked.items()}
    together = leakage.groups(documents)
    together.sort(key=lambda group: rank(plan.seed, group[0]))
    # Benchmark by benchmark, so that the test split has its share of each.
    of: dict[str, list[list[str]]] = defaultdict(list)
    for group in together:
        of[asked[group[0]].benchmark].append(group)
    test: set[str] = set()
    for _, groups in sorted(of.items()):
        rows_there = sum(sizes[key] for group in groups for key in group)
        for number in leakage.held_out(groups, sizes, round(plan.test_share * rows_there)):
            test.update(groups[number])
    return test, {"groups": len(together), "largest": max(map(len, together))}


def _by_split(picked: Sequence[StepRow], test: set[str]) -> dict[str, list[StepRow]]:
    parts: dict[str, list[StepRow]] = {split: [] for split in SPLITS}
    for row in picked:
        key = question_key(row.question.benchmark, row.question.id)
        parts[TEST if key in test else TRAIN].append(row)
    return parts


def _write(
    by_config: Mapping[str, Mapping[str, Sequence[StepRow]]], folder: Path
) -> dict[str, dict[str, SplitFiles]]:
    files: dict[str, dict[str, SplitFiles]] = {}
    for config in CONFIGS:
        columns = config_features(config)
        source = by_config[MISSING if config == MISSING else STEPS]
        files[config] = {}
        for split, part in source.items():
            writer = SplitWriter(folder / config, split, columns)
            # A row group at a time, as prompts repeat a question's passages in each row.
            for start in range(0, len(part), 1_000):
                content = [_columns(config, row) for row in part[start : start + 1_000]]
                writer.add(pa.Table.from_pylist(content, schema=columns.arrow_schema))
            files[config][split] = writer.close()
    return files


def _columns(config: str, row: StepRow) -> dict[str, Any]:
    if config == PROMPT_COMPLETION:
        return prompt_completion_row(row)
    return step_row(row, incomplete_evidence=config == MISSING)


def _publish(plan: StepsBuild, release: Path, statistics: StepStatistics, card: Card) -> None:
    """Write the record and the card, put all in place, and only then forget the work."""
    record = json.loads(json.dumps(asdict(statistics)))
    content = json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    info = dataset_info(
        {config: list(splits.values()) for config, splits in record["files"].items()},
        config_features,
    )
    written = {
        **card(record, info),
        STEPS_RECORD: content.encode(),
    }
    for name, data in written.items():
        (release / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(release / name, data)
    for made in (*release.glob("*"), *release.glob("*/*")):
        if made.is_dir():
            folders.sync_folder(made)
    folders.swap_in(release, plan.output / VERIFIER_STEPS)
    _publish_refused(plan)
    shutil.rmtree(plan.work)
    with suppress(OSError):
        plan.work.parent.rmdir()


def _publish_refused(plan: StepsBuild) -> None:
    content = (plan.work / REFUSED).read_bytes()
    if content:
        write_atomically(plan.output / REFUSED, content)
    else:
        (plan.output / REFUSED).unlink(missing_ok=True)


def _refused_counts(found: Found) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for (error_type, reason), number in sorted(found.refused.items()):
        counts[error_type][reason] = number
    return dict(counts)
