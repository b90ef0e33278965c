"""What a build of the verifier set read, made, left out and chose: ``statistics/*.json``."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builders.steps.composition import Composition
from builders.steps.features import step_row
from builders.steps.lengths import Lengths
from builders.steps.probes import Probe, probed
from builders.steps.rows import StepRow
from builders.steps.skeletons import COMMONEST, MOST_SHARE, Variety, common_diagnoses, varieties
from builders.work.parquet import SplitFiles
from safe_stepwise.store.names import CONTEXTS, IDEAL, INJECTED, ORIGINS
from safe_stepwise.taxonomy import TAXONOMY, category

Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Rewording:
    """What became of the rows: how many there were, were reworded, and why others were not."""

    teacher: str
    simulated: bool
    rows: int
    reworded: int
    kept: Mapping[str, int]
    """Rows that stay as they were, by reason up to its first colon."""


@dataclass(frozen=True, slots=True)
class StepStatistics:
    """The record of one build; every mapping counts rows unless it says otherwise.

    ``refused`` is by error type ("" for ideal trajectories and whole questions) and reason up to
    its first colon. ``trajectories`` counts questions by benchmark, those of the evaluation sample
    included: ``questions`` seen, ``passing`` with an ideal trajectory. ``kept_out`` counts what the
    evaluation sample keeps out of the candidates.
    """

    version: str
    seed: int
    teacher: str
    simulated: bool
    unverifiable: bool
    """Whether the questions are those that could not be verified, and no step was checked."""
    composition: Composition
    test_share: float
    test_split: str | None
    """The benchmarks' split whose questions make up test, in the place of the share."""
    pool: int | None
    refined: Mapping[str, Any] | None
    """Where the refined rows come from, if any was given (see `refined.origin_of`)."""
    rewording: Rewording | None
    """What became of the rows that a model was to word anew, if one was."""
    rows_of: Mapping[str, Any] | None
    """The build whose rows these are by another teacher, if there is one: its ``name``,
    ``revision``, ``teacher`` and ``sha256`` (of its record), how many ``rows`` it has, by what they
    were ``matched`` (id, position, type), which were ``lost`` by row class, and how many questions
    ``moved`` out of its test split."""
    rows: int
    questions: int
    splits: Counts
    """Rows and questions of each split."""
    benchmarks: Counts
    """Rows, questions, and rows by origin of each benchmark (SAFE v1, Table 7)."""
    origins: Counts
    """By split, then origin."""
    types: Mapping[str, Counts]
    """By benchmark, then error type, then split."""
    positions: Counts
    """By position, then origin."""
    contexts: Mapping[str, int]
    """Rows by `names.ContextKind`: in how many a passage was changed, or exchanged for another."""
    per_question: Mapping[str, float]
    """Rows of a question: their mean, and the most that one has."""
    wordings: Counts
    """Test rows by config, then `names.WORDINGS`."""
    variety: Mapping[str, Variety]
    """By error type."""
    most_alike: float
    """The share of a type's rows that one skeleton should not exceed."""
    common_diagnoses: Mapping[str, float | None]
    """How many ``skeletons`` of diagnoses are the commonest, and the ``share`` of rows with one."""
    probes: Sequence[Probe]
    """What can be labelled without passages."""
    missing_evidence: Mapping[str, int]
    """Rows of the config of that name by split."""
    missing_evidence_twins: Mapping[str, int]
    """Likewise."""
    missing_evidence_probe: Probe
    """What tells the rows of the two without passages."""
    preference: Counts
    """By split, the rows of `preference` and `kto` (see `preference.counts`)."""
    trajectories: Counts
    refused: Counts
    kept_out: Counts
    overlap: Mapping[str, int]
    """Rows by config that were taken out of test, as their step stands in train verbatim."""
    shortfalls: Counts
    groups: Mapping[str, int]
    """Groups of questions that may not be parted: how many, the questions of the largest."""
    lengths: Lengths
    verified: Sequence[Mapping[str, Any]]
    """The builds of the questions: benchmark, split, source, licence, digest of their record."""
    files: Mapping[str, Mapping[str, SplitFiles]]
    """By config, then split."""
    examples: Sequence[Mapping[str, Any]]
    prompts: Mapping[str, str]
    """What of `methods.prompt_sets.PromptSet` is not the paper's."""
    prompt_sha256: str
    generator_prompt_sha256: str
    """Of the prompts of `preference` and `kto`."""
    missing_evidence_prompt_sha256: str
    """Of the prompts with twelve labels."""
    libraries: Mapping[str, str]
    code_sha256: str


def counted(rows: Mapping[str, Sequence[StepRow]]) -> dict[str, Any]:
    """The counts of the chosen rows, given by split, as fields of `StepStatistics`."""
    everything = [row for split in rows.values() for row in split]
    by_benchmark = _grouped(everything, lambda row: row.question.benchmark)
    by_position = _grouped(everything, lambda row: row.step.number)
    contexts = Counter(row.context for row in everything)
    return {
        **_sizes(everything),
        "splits": {split: _sizes(part) for split, part in rows.items()},
        "benchmarks": {benchmark: {**_sizes(part), **_by_origin(part)} for benchmark, part in by_benchmark.items()},
        "origins": {split: _by_origin(part) for split, part in rows.items()},
        "types": _types(rows),
        "positions": {str(number): _by_origin(part) for number, part in by_position.items()},
        "contexts": {name: contexts[name] for name in CONTEXTS},
        "per_question": _per_question(everything),
        "variety": varieties(everything),
        "most_alike": MOST_SHARE,
        "common_diagnoses": {"skeletons": COMMONEST, "share": common_diagnoses(everything)},
        "probes": probed(everything),
    }


def concerns(made: StepStatistics) -> Iterator[str]:
    """What in a set is not as it should be, a line each: for the one who builds it."""
    for probe in (*made.probes, made.missing_evidence_probe):
        if probe.is_above:
            yield (
                f"without its passages {probe.score:.2f} of the set can be labelled ({probe.name}, "
                f"{probe.measure}), more than {probe.aim:.2f}"
            )
    for name, found in made.variety.items():
        yield from _monotony(f"steps of {name}", found.commonest_step, found.rows)
        yield from _monotony(f"diagnoses of {name}", found.commonest_diagnosis, found.rows)


def _monotony(what: str, share: float | None, rows: int) -> Iterator[str]:
    # Where a single row is a greater share, nothing can be said.
    if share is not None and share > MOST_SHARE and rows * MOST_SHARE >= 1:
        yield f"{share:.1%} of the {what} are worded alike, more than {MOST_SHARE:.0%}"


def examples(rows: Sequence[StepRow]) -> list[dict[str, Any]]:
    """Three rows for a card: an ideal one, two injected ones of different types."""
    ideal = [row for row in rows if row.origin == IDEAL and row.step.kind != "Final Answer"]
    injected = [row for row in rows if row.origin == INJECTED]
    first = injected[:1]
    other = [r for r in injected if category(_type(r)) != category(_type(first[0]))] or [
        r for r in injected if _type(r) != _type(first[0])
    ]
    return [
        {**step_row(row), "error_type": _type(row), "error_category": category(_type(row)), "origin": row.origin}
        for row in (*(ideal[:1] or rows[:1]), *first, *other[:1])
    ]


def _types(rows: Mapping[str, Sequence[StepRow]]) -> dict[str, dict[str, dict[str, int]]]:
    found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for split, part in rows.items():
        for row in part:
            found[row.question.benchmark][_type(row)][split] += 1
    return {
        benchmark: {
            entry.name: {split: types[entry.name][split] for split in rows}
            for entry in TAXONOMY
            if entry.name in types
        }
        for benchmark, types in sorted(found.items())
    }


def _grouped(rows: Iterable[StepRow], key: Callable[[StepRow], Any]) -> dict[Any, list[StepRow]]:
    found: dict[Any, list[StepRow]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return dict(sorted(found.items()))


def _sizes(rows: Sequence[StepRow]) -> dict[str, int]:
    questions = {(row.question.benchmark, row.question.id) for row in rows}
    return {"rows": len(rows), "questions": len(questions)}


def _by_origin(rows: Sequence[StepRow]) -> dict[str, int]:
    counts = Counter(row.origin for row in rows)
    return {origin: counts[origin] for origin in ORIGINS}


def _per_question(rows: Sequence[StepRow]) -> dict[str, float]:
    counts = Counter((row.question.benchmark, row.question.id) for row in rows)
    most = max(counts.values(), default=0)
    return {"mean": round(len(rows) / max(1, len(counts)), 2), "most": most}


def _type(row: StepRow) -> str:
    return row.feedback.error_type
