"""Read an experiment from a release folder."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluators.comparison.comparing import compare
from evaluators.comparison.systems import System, in_order, system_of
from evaluators.outcomes import Outcome, QuestionRecord, read_outcomes, read_questions
from safe_stepwise.commands.telling import lines_of_attempt
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verified import doubts, step_of
from safe_stepwise.records import Trajectory
from safe_stepwise.store import names
from safe_stepwise.store.boundary import read_file
from safe_stepwise.store.terminal import printable
from studies.experiment.experiment import Experiment, Gain, Gains, Record, Section, check, references
from studies.experiment.verdicts import Probe, probe_verdicts, read_steps, read_verdicts

ANEW = "make it anew with safe-stepwise regenerate"
QUALITY, VERDICTS = "verifier/verifier_quality.json", "verifier/verdicts.jsonl"


def read_experiment(folder: Path, lock: Record, probe: Probe) -> Experiment:
    """Read the experiment of a release folder and its ``lock``.

    ``probe`` learns from steps without their passages. Raises ``UserError`` for a folder without an evaluation.
    """
    main = _section(folder, "")
    if main.results is None:
        raise UserError(f"{folder}: has no {names.REPORT}/{names.RESULTS}: nothing was evaluated; {ANEW}")
    check(main.results, f"{folder / names.REPORT}")
    folders = sorted(path for path in folder.glob(f"{names.BLOCKS}/*") if path.is_dir())
    blocks = {path.name: _sections(folder, path) for path in folders}
    sections = [main, *(section for sections in blocks.values() for section in sections)]
    steps, main_outcomes = folder / names.DATASETS / names.VERIFIER_STEPS, [*read_outcomes(folder / names.REPORT)]
    plain, learned = (arm.key for arm in references(main, main))
    return Experiment(
        lock=lock,
        main=main,
        generator=_record(folder / names.GENERATOR / names.TRAINING),
        blocks=blocks,
        steps=read_steps(steps, names.TEST) if main.verdicts is not None else (),
        probe=probe_verdicts(steps, probe) if main.verdicts is not None else None,
        gains={h.place: _gains(folder, h, main, main_outcomes) for h in sections if h.results is not None},
        example=example([*read_questions(folder / names.REPORT)], main_outcomes, plain, learned),
    )


def _gains(folder: Path, section: Section, main: Section, main_outcomes: Sequence[Outcome]) -> Gains:
    assert main.results is not None
    keys = [arm.key for arm in references(section, main)]
    missing = {*keys} - {arm.key for arm in section.arms}
    outcomes = main_outcomes if section is main else [*read_outcomes(folder / section.place / names.REPORT)]
    added = [outcome for outcome in main_outcomes if system_of(outcome) in missing]
    systems, seed = [arm.key for arm in section.arms], main.results["settings"]["seed"]
    return gains([*outcomes, *added], systems, keys, seed)


def _sections(folder: Path, block: Path) -> list[Section]:
    """Read the block's own evaluation, or those of its adapters."""
    folders = [block, *sorted(path for path in block.iterdir() if (path / names.ADAPTER).is_dir())]
    sections = [_section(folder, path.relative_to(folder).as_posix()) for path in folders]
    return [section for section in sections if section.results is not None or section.quality is not None]


def _section(folder: Path, place: str) -> Section:
    report = folder / place / names.REPORT
    verdicts = report / VERDICTS
    return Section(
        place,
        _record(folder / place / names.ADAPTER / names.TRAINING),
        _record(report / QUALITY),
        read_verdicts(verdicts) if verdicts.is_file() else None,
        _record(report / names.RESULTS),
    )


def _record(file: Path) -> Any:
    return read_file(dict[str, Any], file, "the record", ANEW) if file.is_file() else None


def gains(outcomes: Iterable[Outcome], systems: Sequence[System], references: Sequence[System], seed: int) -> Gains:
    """Compute the gains of ``systems`` over each of ``references``, on the questions that both have.

    With several benchmarks it is the gain of their mean (`evaluators.comparison.comparing`).
    """
    pairs = [frozenset((system, reference)) for reference in references for system in systems if system != reference]

    def select_pairs(systems_run: Sequence[System]) -> list[tuple[System, System]]:
        present = [pair for pair in dict.fromkeys(pairs) if pair <= {*systems_run}]
        return [(first, last) for first, last in map(in_order, present)]

    comparison = compare(outcomes, seed, paired=select_pairs)
    benchmark = comparison.benchmarks[0] if len(comparison.benchmarks) == 1 else None
    by_pair: dict[tuple[System, System], Gain] = {}
    for row in comparison.differences:
        if (row.metric, row.benchmark) == ("exact_match", benchmark):
            gain = Gain(row.estimate, row.p, row.p_holm)
            by_pair |= {(row.first, row.second): gain, (row.second, row.first): gain.inverse()}
    return by_pair


def example(questions: Sequence[QuestionRecord], outcomes: Sequence[Outcome], plain: System, learned: System) -> str:
    """Render a question that is wrong alone and right with the verifier's remarks; "" if there is none.

    Of those in which a step was rejected it is the one with the fewest attempts, then the first of the run.
    """
    by_system: dict[System, dict[str, Outcome]] = {plain: {}, learned: {}}
    for outcome in outcomes:
        by_system.get(system_of(outcome), {})[outcome.question_id] = outcome
    alone, helped = by_system[plain], by_system[learned]
    candidates = [
        question
        for question in questions
        if question.id in alone and not alone[question.id].exact_match
        if question.id in helped and helped[question.id].exact_match
        # A step was rejected, and a verdict passed every accepted step.
        if any(not attempt.accepted for attempt in helped[question.id].trajectory.attempts)
        if not doubts(helped[question.id].trajectory)
    ]
    if not candidates:
        return ""
    chosen = min(candidates, key=lambda question: len(helped[question.id].trajectory.attempts))
    return "\n".join(_lines(chosen, alone[chosen.id].trajectory, helped[chosen.id].trajectory))


def _lines(question: QuestionRecord, plain: Trajectory, learned: Trajectory) -> Iterator[str]:
    for number, passage in enumerate(question.passages, 1):
        yield printable(f"Passage {number} ({passage.title}): {passage.text}")
    yield printable(f"Question: {question.question}")
    yield printable(f"Right: {question.references[0]}")
    yield from ("", "No verification:")
    yield from (printable(step_of(attempt)) for attempt in plain.attempts)
    yield from ("", "SAFE, learned verifier:")
    for attempt in learned.attempts:
        yield from lines_of_attempt(attempt)
