"""From the chosen rows to the files of every config of ``safe-verifier-steps``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.steps import leakage, preference
from builders.steps.composition import rank
from builders.steps.features import CONFIGS, TWELVE_LABELS, config_features, prompt_completion_row, step_row
from builders.steps.rows import StepRow
from builders.work.dealing import dealt
from builders.work.parquet import SplitFiles, SplitWriter
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.store.names import (
    ASKED_OF,
    KTO,
    MISSING,
    MISSING_PROMPT_COMPLETION,
    MISSING_TWINS,
    PREFERENCE,
    PROMPT_COMPLETION,
    SEEN,
    STEPS,
    TEST,
    TRAIN,
    UNSEEN,
)
from safe_stepwise.taxonomy import MISSING_EVIDENCE

SPLITS = (TRAIN, TEST)

ByConfig = Mapping[str, Mapping[str, Sequence[StepRow]]]
"""Rows by config, then split: of those configs whose rows no other has."""


def by_config(picked: Iterable[StepRow]) -> dict[str, list[StepRow]]:
    """Rows by the config that has them alone."""
    of: dict[str, list[StepRow]] = {config: [] for config in ASKED_OF[True]}
    for row in picked:
        lacks = row.feedback.error_type == MISSING_EVIDENCE
        of[(MISSING if lacks else MISSING_TWINS) if row.incomplete else STEPS].append(row)
    return of


def sizes(parts: Mapping[str, Sequence[StepRow]]) -> dict[str, int]:
    """Rows by split."""
    return {split: len(part) for split, part in parts.items()}


key_of = preference.question_of


def by_split(picked: Sequence[StepRow], test: set[str]) -> dict[str, list[StepRow]]:
    """Rows by split, given the keys of the questions of test."""
    parts: dict[str, list[StepRow]] = {split: [] for split in SPLITS}
    for row in picked:
        parts[TEST if key_of(row) in test else TRAIN].append(row)
    return parts


def without_copies(rows: ByConfig) -> tuple[ByConfig, dict[str, int]]:
    """The rows without those of test whose step stands in train, and how many they were.

    Rows of incomplete evidence whose question has no other row any more go with them.
    """
    train = [row for parts in rows.values() for row in parts[TRAIN]]
    test = {config: parts[TEST] for config, parts in rows.items()}
    out = leakage.copied([row for part in test.values() for row in part], train)
    there = {key_of(row) for row in test[STEPS] if row.id not in out}
    left = {
        config: [row for row in part if row.id not in out and key_of(row) in there] for config, part in test.items()
    }
    made = {config: {**parts, TEST: left[config]} for config, parts in rows.items()}
    return made, {config: len(test[config]) - len(left[config]) for config in test}


def wordings(test: Sequence[StepRow], new: frozenset[str]) -> dict[str, int]:
    """Rows of test by wording; ``new`` are ids of those with an unseen one."""
    number = sum(row.id in new for row in test)
    return {SEEN: len(test) - number, UNSEEN: number}


def files(
    rows: ByConfig, new: frozenset[str], folder: Path, seed: int, prompt_set: PromptSet = PAPER
) -> dict[str, dict[str, SplitFiles]]:
    """Write the files of every config, and return what they are, by config and split."""
    written: dict[str, dict[str, SplitFiles]] = {}
    right = preference.right_steps(row for part in rows[STEPS].values() for row in part)
    for config in CONFIGS:
        columns, form = config_features(config), _form(config, new, right, prompt_set)
        written[config] = {}
        for split in SPLITS:
            of = {name: parts[split] for name, parts in rows.items()}
            part = _rows_of(config, of, right, seed)
            writer = SplitWriter(folder / config, split, columns)
            # A row group at a time, as prompts repeat a question's passages in each row.
            for start in range(0, len(part), 1_000):
                content = [form(row) for row in part[start : start + 1_000]]
                writer.add(pa.Table.from_pylist(content, schema=columns.arrow_schema))
            written[config][split] = writer.close()
    return written


def _rows_of(
    config: str, of: Mapping[str, Sequence[StepRow]], right: preference.Right, seed: int
) -> Sequence[StepRow]:
    """A split's rows of a config; where it has those of others, in the order of one draw."""
    if config == PREFERENCE:
        return preference.rejected(of[STEPS], right)
    if config == KTO:
        return dealt(of[STEPS], seed, preference.question_of)
    if config == MISSING_PROMPT_COMPLETION:
        # A draw of its own: rows of `STEPS` are those that came first by the seed and their ids.
        drawn = chain.from_iterable(of.values())
        return sorted(drawn, key=lambda row: rank(seed, f"{config} {row.id}"))
    return of[STEPS if config == PROMPT_COMPLETION else config]


def _form(
    config: str, new: frozenset[str], right: preference.Right, prompt_set: PromptSet
) -> Callable[[StepRow], dict[str, Any]]:
    """How a config has its rows; ``new`` are ids of rows with unseen wordings."""
    if config == PREFERENCE:
        return lambda row: preference.preference_row(row, right, prompt_set)
    if config == KTO:
        return lambda row: preference.kto_row(row, prompt_set)
    incomplete = config in TWELVE_LABELS
    if config in (PROMPT_COMPLETION, MISSING_PROMPT_COMPLETION):
        return lambda row: prompt_completion_row(row, incomplete, prompt_set)
    return lambda row: step_row(row, incomplete, UNSEEN if row.id in new else SEEN)
