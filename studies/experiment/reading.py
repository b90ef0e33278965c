"""An experiment read from a release folder: all of it that is there, once."""

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
from studies.experiment.experiment import Experiment, Gain, Gains, Home, Record, check, references
from studies.experiment.verdicts import Probe, probed, read_steps, read_verdicts

ANEW = "make it anew with safe-stepwise regenerate"
QUALITY, VERDICTS = "verifier/verifier_quality.json", "verifier/verdicts.jsonl"


def read_experiment(folder: Path, lock: Record, probe: Probe) -> Experiment:
    """The experiment of a release folder and its ``lock``.

    ``probe`` learns from steps whose passages it lacks. Raises ``UserError`` for a folder that
    holds no such evaluation.
    """
    own = _home(folder, "")
    if own.results is None:
        raise UserError(f"{folder}: has no {names.REPORT}/{names.RESULTS}: nothing was evaluated; {ANEW}")
    check(own.results, f"{folder / names.REPORT}")
    there = sorted(path for path in folder.glob(f"{names.BLOCKS}/*") if path.is_dir())
    blocks = {path.name: _homes(folder, path) for path in there}
    homes = [own, *(home for found in blocks.values() for home in found)]
    steps, main = folder / names.DATASETS / names.VERIFIER_STEPS, [*read_outcomes(folder / names.REPORT)]
    plain, learned = (arm.key for arm in references(own, own))
    return Experiment(
        lock=lock,
        own=own,
        generator=_record(folder / names.GENERATOR / names.TRAINING),
        blocks=blocks,
        steps=read_steps(steps, names.TEST) if own.said is not None else (),
        probe=probed(steps, probe) if own.said is not None else None,
        gains={h.place: _gains(folder, h, own, main) for h in homes if h.results is not None},
        example=example([*read_questions(folder / names.REPORT)], main, plain, learned),
    )


def _gains(folder: Path, home: Home, own: Home, main: Sequence[Outcome]) -> Gains:
    assert own.results is not None
    keys = [arm.key for arm in references(home, own)]
    lacking = {*keys} - {arm.key for arm in home.arms}
    there = main if home is own else [*read_outcomes(folder / home.place / names.REPORT)]
    added = [one for one in main if system_of(one) in lacking]
    systems, seed = [arm.key for arm in home.arms], own.results["settings"]["seed"]
    return gains([*there, *added], systems, keys, seed)


def _homes(folder: Path, block: Path) -> list[Home]:
    """The block's own evaluation, or its adapters."""
    found = [block, *sorted(path for path in block.iterdir() if (path / names.ADAPTER).is_dir())]
    homes = [_home(folder, path.relative_to(folder).as_posix()) for path in found]
    return [home for home in homes if home.results is not None or home.quality is not None]


def _home(folder: Path, place: str) -> Home:
    report = folder / place / names.REPORT
    verdicts = report / VERDICTS
    return Home(
        place,
        _record(folder / place / names.ADAPTER / names.TRAINING),
        _record(report / QUALITY),
        read_verdicts(verdicts) if verdicts.is_file() else None,
        _record(report / names.RESULTS),
    )


def _record(file: Path) -> Any:
    return read_file(dict[str, Any], file, "the record", ANEW) if file.is_file() else None


def gains(outcomes: Iterable[Outcome], systems: Sequence[System], references: Sequence[System], seed: int) -> Gains:
    """Those of ``systems`` over each of ``references``, on the questions that both have.

    With one benchmark they are its own, with several those of the mean of benchmarks
    (`evaluators.comparison.comparing`).
    """
    wanted = [frozenset((one, other)) for other in references for one in systems if one != other]

    def paired(known: Sequence[System]) -> list[tuple[System, System]]:
        found = [pair for pair in dict.fromkeys(wanted) if pair <= {*known}]
        return [(one, other) for one, other in map(in_order, found)]

    found = compare(outcomes, seed, paired=paired)
    of = found.benchmarks[0] if len(found.benchmarks) == 1 else None
    both: dict[tuple[System, System], Gain] = {}
    for one in found.differences:
        if (one.metric, one.benchmark) == ("exact_match", of):
            gain = Gain(one.estimate, one.p, one.p_holm)
            both |= {(one.first, one.second): gain, (one.second, one.first): gain.turned()}
    return both


def example(questions: Sequence[QuestionRecord], outcomes: Sequence[Outcome], plain: System, learned: System) -> str:
    """The first question that is wrong alone and right with remarks, in few tries; "" if none is.

    Of those in which a step was rejected the one with the fewest tries, by their order in the run.
    """
    by_system: dict[System, dict[str, Outcome]] = {plain: {}, learned: {}}
    for o in outcomes:
        by_system.get(system_of(o), {})[o.question_id] = o
    alone, helped = by_system[plain], by_system[learned]
    fitting = [
        asked
        for asked in questions
        if asked.id in alone and not alone[asked.id].exact_match
        if asked.id in helped and helped[asked.id].exact_match
        if _mended(helped[asked.id].trajectory)
    ]
    if not fitting:
        return ""
    asked = min(fitting, key=lambda one: len(helped[one.id].trajectory.attempts))
    return "\n".join(_lines(asked, alone[asked.id].trajectory, helped[asked.id].trajectory))


def _mended(trajectory: Trajectory) -> bool:
    """Whether something was rejected, and a verdict passed all that was accepted."""
    rejected = any(not attempt.accepted for attempt in trajectory.attempts)
    return rejected and not doubts(trajectory)


def _lines(asked: QuestionRecord, plain: Trajectory, learned: Trajectory) -> Iterator[str]:
    for number, passage in enumerate(asked.passages, 1):
        yield printable(f"Passage {number} ({passage.title}): {passage.text}")
    yield printable(f"Question: {asked.question}")
    yield printable(f"Right: {asked.references[0]}")
    yield from ("", "No verification:")
    yield from (printable(step_of(attempt)) for attempt in plain.attempts)
    yield from ("", "SAFE, learned verifier:")
    for attempt in learned.attempts:
        yield from lines_of_attempt(attempt)
