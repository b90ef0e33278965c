"""Defines the configs of ``safe-verifier-steps`` in one table, and writes their files.

Rows of prompt and completion hold the loop's request to a verifier. `PREFERENCE` and `KTO` are for generators: the
prompt is the loop's request for a step, without remarks. The rejected step is that of a row with an error; the chosen
one is the step of the set's ideal trajectories after the same steps and with the same passages.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from builders.steps import leakage
from builders.steps.composition import rank
from builders.steps.rows import StepRow
from builders.work import columns
from builders.work.parquet import DatasetWriter, FilesByConfig, interleave
from safe_stepwise import taxonomy
from safe_stepwise.engines.base import conversation
from safe_stepwise.feedback import format_feedback
from safe_stepwise.methods import generator, quoting, verifier
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.records import EVIDENCE_FIRST
from safe_stepwise.steps import format_step, successions
from safe_stepwise.store import codec, names

SPLITS = (names.TRAIN, names.TEST)
_ROWS_AT_ONCE = 1_000
"""Rows rendered at a time, as each prompt repeats a question's passages."""

Row = dict[str, Any]
Place = tuple[str, str, tuple[str, ...]]
"""A question's key, the digest of its passages, and the steps accepted so far."""
RowGroups = Mapping[str, Sequence[StepRow]]
"""Rows by split, or a split's rows by config."""
ByConfig = Mapping[str, RowGroups]
"""Rows by config, then split, for the configs whose rows no other config has."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """How rows are rendered: ``right`` are the `right_steps`, ``unseen`` test rows whose wording train lacks."""

    right: Mapping[Place, str]
    unseen: frozenset[str] = frozenset()
    prompt_set: PromptSet = PAPER
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Config:
    """One config: the choice of its rows, the form of a row, and its columns in TRL's conversational forms."""

    rows: Callable[[RowGroups, Rendering], Sequence[StepRow]]
    form: Callable[[StepRow, Rendering], Row]
    turns: tuple[str, ...] = ()
    """Columns beside ``id``: turns of a conversation, or a ``label``; empty for a config of step rows."""


def config_features(config: str) -> Any:
    if turns := CONFIGS[config].turns:
        return columns.features("id", "turns", "pair", "desirable", only=("id", *turns))
    return columns.features("step", **_class_labels(config != names.STEPS))


def _class_labels(incomplete_evidence: bool) -> dict[str, Sequence[str]]:
    """Return the columns that are stored as numbers, each with the names of its numbers."""
    return {
        "error_type": taxonomy.labels(incomplete_evidence),
        "error_category": [c for c in taxonomy.CATEGORIES if incomplete_evidence or c != taxonomy.MISSING_EVIDENCE],
        "origin": names.ORIGINS,
        "wording": names.WORDINGS,
        "context": names.CONTEXTS,
    }


_COLUMNS: Mapping[str, Callable[[StepRow], Any]] = {
    "id": lambda row: row.id,
    "benchmark": lambda row: row.question.benchmark,
    "question_id": lambda row: row.question.id,
    "question": lambda row: row.question.question,
    "passages": lambda row: [{"title": p.title, "text": p.text} for p in row.question.passages],
    "previous_steps": lambda row: [format_step(step) for step in row.previous],
    "current_step": lambda row: format_step(row.step),
    "step_kind": lambda row: row.step.kind,
    "error_type": lambda row: row.feedback.error_type,
    "error_category": lambda row: taxonomy.category(row.feedback.error_type),
    "diagnosis": lambda row: row.feedback.diagnosis,
    "guidance": lambda row: row.feedback.guidance,
    "query": lambda row: row.feedback.query,
    "origin": lambda row: row.origin,
    "position": lambda row: row.step.number,
    "teacher": lambda row: row.teacher,
    "wording": lambda row: names.SEEN,
    "context": lambda row: row.context,
}
"""How each column of a config with one row a step is read; class labels are still names."""


def step_row(row: StepRow, incomplete_evidence: bool = False, wording: names.Wording = names.SEEN) -> Row:
    """Return a row's columns, class labels as numbers; raise ``ValueError`` for a row that `check_row` refuses."""
    values: Row = {name: read(row) for name, read in _COLUMNS.items()} | {"wording": wording}
    numbers = {name: labels.index(values[name]) for name, labels in _class_labels(incomplete_evidence).items()}
    return values | numbers


def _verifier_turns(row: StepRow, incomplete_evidence: bool, prompt_set: PromptSet) -> Row:
    """Render the loop's request about a row, and the reply that it should get, in the form of ``prompt_set``."""
    step_input = (row.question.question, row.question.passages, row.previous, row.step)
    request = verifier.verifier_request(*step_input, incomplete_evidence, prompt_set=prompt_set)
    order, feedback = prompt_set.verdict_order, row.feedback
    if order == EVIDENCE_FIRST:
        feedback = quoting.with_evidence(feedback, *step_input)
    return conversation(request, format_feedback(feedback, order))


def _generator_turns(row: StepRow, prompt_set: PromptSet) -> dict[str, list[Row]]:
    """Render the loop's request for the row's step, and the step."""
    q = row.question
    request = generator.generator_request(q.question, q.passages, row.previous, prompt_set=prompt_set)
    return conversation(request, format_step(row.step))


def _pair_turns(row: StepRow, rendering: Rendering) -> Row:
    """Render a rejected row, with the right step as the chosen one."""
    turns = _generator_turns(row, rendering.prompt_set)
    chosen = [{**turns["completion"][0], "content": rendering.right[_place(row)]}]
    return {"prompt": turns["prompt"], "chosen": chosen, "rejected": turns["completion"]}


def right_steps(rows: Iterable[StepRow]) -> dict[Place, str]:
    """Collect the right step of each place; a refined row gives only its own, as those before it may be wrong."""
    right: dict[Place, str] = {}
    for row in rows:
        question, pages, previous = _place(row)
        current = format_step(row.step) if row.feedback.error_type == taxonomy.CORRECT else None
        for before, step in successions(previous, current):
            if row.origin != names.REFINED or before == previous:
                right[question, pages, before] = step
    return right


def select_rejected(rows: Iterable[StepRow], right: Mapping[Place, str]) -> list[StepRow]:
    """Return the rows with an error for which the right step is known."""
    return [row for row in rows if row.feedback.error_type != taxonomy.CORRECT and _place(row) in right]


def _place(row: StepRow) -> Place:
    return row.question_key, codec.passages_digest(row.question.passages), tuple(map(format_step, row.previous))


def preference_counts(rows: Sequence[StepRow]) -> dict[str, int]:
    """Count a split's rows in `PREFERENCE` and `KTO`; ``unpaired`` are errors without a right step."""
    pairs = len(select_rejected(rows, right_steps(rows)))
    correct = sum(row.feedback.error_type == taxonomy.CORRECT for row in rows)
    wrong = len(rows) - correct
    return {"pairs": pairs, "unpaired": wrong - pairs, "desirable": correct, "undesirable": wrong}


def by_config(picked: Iterable[StepRow]) -> dict[str, list[StepRow]]:
    """Group rows by the only config that has them."""
    rows: dict[str, list[StepRow]] = {config: [] for config in names.STEP_CONFIGS[True]}
    for row in picked:
        incomplete = names.MISSING if row.feedback.error_type == taxonomy.MISSING_EVIDENCE else names.MISSING_TWINS
        rows[incomplete if row.incomplete else names.STEPS].append(row)
    return rows


def by_split(picked: Sequence[StepRow], test: set[str]) -> dict[str, list[StepRow]]:
    """Group rows by split, given the keys of the test questions."""
    rows_by_split: dict[str, list[StepRow]] = {split: [] for split in SPLITS}
    for row in picked:
        rows_by_split[names.TEST if row.question_key in test else names.TRAIN].append(row)
    return rows_by_split


def without_copies(rows: ByConfig) -> tuple[ByConfig, dict[str, int]]:
    """Drop test rows whose step is in train, and incomplete rows without others; return the rest, and the numbers."""
    train = [row for by_split in rows.values() for row in by_split[names.TRAIN]]
    copies = leakage.find_copies([row for by_split in rows.values() for row in by_split[names.TEST]], train)
    questions = {row.question_key for row in rows[names.STEPS][names.TEST] if row.id not in copies}
    remaining, dropped = {}, {}
    for config, by_split in rows.items():
        unique = [row for row in by_split[names.TEST] if row.id not in copies and row.question_key in questions]
        remaining[config], dropped[config] = {**by_split, names.TEST: unique}, len(by_split[names.TEST]) - len(unique)
    return remaining, dropped


def write_configs(rows: ByConfig, folder: Path, rendering: Rendering) -> FilesByConfig:
    """Write the files of every config, and return them."""
    writer = DatasetWriter(folder, [(name, split) for name in CONFIGS for split in SPLITS], config_features)
    for name, config in CONFIGS.items():
        for split in SPLITS:
            chosen = config.rows({key: by_split[split] for key, by_split in rows.items()}, rendering)
            for start in range(0, len(chosen), _ROWS_AT_ONCE):
                batch = chosen[start : start + _ROWS_AT_ONCE]
                writer.add(name, split, [{"id": row.id, **config.form(row, rendering)} for row in batch])
    return writer.close()


def _shuffle(by_config: RowGroups, rendering: Rendering) -> list[StepRow]:
    """Shuffle the rows of all settings by a separate draw, as the ids have already ranked those of `STEPS`."""
    salt = f"{names.MISSING_PROMPT_COMPLETION} "
    return sorted(chain.from_iterable(by_config.values()), key=lambda row: rank(rendering.seed, salt + row.id))


def _step_config(name: str) -> Config:
    def form(row: StepRow, rendering: Rendering) -> Row:
        return step_row(row, name != names.STEPS, names.UNSEEN if row.id in rendering.unseen else names.SEEN)

    return Config(lambda by_config, _: by_config[name], form)


_TURNS = ("prompt", "completion")
CONFIGS: Mapping[str, Config] = {
    names.STEPS: _step_config(names.STEPS),
    names.PROMPT_COMPLETION: Config(
        lambda groups, _: groups[names.STEPS], lambda row, r: _verifier_turns(row, False, r.prompt_set), _TURNS
    ),
    names.PREFERENCE: Config(
        lambda groups, r: select_rejected(groups[names.STEPS], r.right), _pair_turns, ("prompt", "chosen", "rejected")
    ),
    names.KTO: Config(
        lambda groups, r: interleave(groups[names.STEPS], r.seed, lambda row: row.question_key),
        lambda row, r: {**_generator_turns(row, r.prompt_set), "label": row.feedback.error_type == taxonomy.CORRECT},
        (*_TURNS, "label"),
    ),
    names.MISSING: _step_config(names.MISSING),
    names.MISSING_TWINS: _step_config(names.MISSING_TWINS),
    names.MISSING_PROMPT_COMPLETION: Config(_shuffle, lambda row, r: _verifier_turns(row, True, r.prompt_set), _TURNS),
}
"""A new config is an entry here, its name in `store.names` and its words on the card."""
