"""Read an experiment from a release's folder: what was trained, measured and evaluated.

An *arm* is one system of the evaluation: no verification, self-verification, or SAFE with one of its verifiers. A
*section* has the records of the release itself, of one of its blocks, or of one adapter of a block. A *gain* is the
difference in exact match between two arms, with its test.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.comparison.comparing import compare
from evaluators.comparison.scores import Comparison, Difference
from evaluators.comparison.significance import Estimate
from evaluators.comparison.systems import System, sort_systems, system_of
from evaluators.outcomes import Outcome, QuestionRecord, read_outcomes, read_questions
from evaluators.verifier.step_set import StepCase, read_cases
from safe_stepwise.commands.transcript import render_attempt
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import VERIFIER
from safe_stepwise.methods.verified import doubts, step_of
from safe_stepwise.records import Trajectory
from safe_stepwise.store import boundary, names, terminal
from safe_stepwise.store.names import GENERATOR, marked
from studies.experiment.verdicts import ProbeFunction, Verdicts, label_by_probe, read_verdicts

Record = Mapping[str, Any]
NAMES = {"no_verification": "no verification", "self_verification": "self-verification"}
PLAIN = NAMES["no_verification"]
LEARNED, CHECKER, CHANCE = "SAFE, learned verifier", "SAFE, graph checker", "SAFE, by chance"
_CHECKER = re.compile(r"symbolic:error_rate=0\.0,seed=\d+ \(simulated\)")
"""The name of the symbolic verifier without mistakes; with another error rate it is not the checker."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A system of ``results.json``."""

    name: str
    run: Record
    """Its entry in ``runs``: ``players``, ``options``, ``simulated``, and its totals in ``all``."""
    system: Record
    """Its entry in ``comparison``: scores in ``average`` with their intervals."""
    earned: Record | None
    """Its entry in ``faithfulness``: answers by EM and our checker's rule; None if they were not judged."""

    @property
    def key(self) -> System:
        return _key(self.run)

    @property
    def label(self) -> str:
        return marked(self.name, self.run["simulated"])

    @property
    def em(self) -> Estimate:
        """Exact match (0-1) with its 95% interval."""
        return Estimate(**self.system["average"]["exact_match"])

    @property
    def retries(self) -> int:
        """The largest number of retries of a step; 0 without a loop."""
        return int(self.run["options"].get("max_retries", 0))

    @property
    def rejected(self) -> float | None:
        """The share (0-1) of attempts at a step that were rejected; None without a verifier."""
        counts = self.run["all"]
        return self._share_of_judged(sum(counts["error_types"].values()) + counts["unread"])

    @property
    def unread(self) -> float | None:
        """The share (0-1) of attempts whose verdict could not be read; they count as rejected, too."""
        return self._share_of_judged(self.run["all"]["unread"])

    @property
    def earned_share(self) -> float | None:
        """The share (0-1) of questions answered rightly by a faithful chain; None if chains were not judged."""
        if self.earned is None:
            return None
        return float(self.earned["right"]["faithful"]) / float(self.run["all"]["questions"])

    def _share_of_judged(self, attempts: int) -> float | None:
        judged = self.run["all"]["calls"].get(VERIFIER, 0)
        return attempts / judged if judged else None


def list_arms(results: Record) -> list[Arm]:
    """List the arms in the order of the run; the first verifier of the run is the learned one."""
    first = next((r["players"][VERIFIER] for r in results["runs"] if VERIFIER in r["players"]), "")
    earned = {_key(system): system for system in results.get("faithfulness", {}).get("systems", ())}
    systems = {_key(system): system for system in results["comparison"]["systems"]}
    arms = []
    for run in results["runs"]:
        record = earned.get(_key(run))
        answers = record["all"]["rules"]["house"]["answers"]["exact_match"] if record else None
        arms.append(Arm(_name(run, first), run, systems[_key(run)], answers))
    return arms


def find_arm(candidates: Sequence[Arm], name: str, **options: Any) -> Arm | None:
    """Return the first arm with that name and these options; None if there is none."""
    is_match = lambda arm: arm.name == name and options.items() <= arm.run["options"].items()  # noqa: E731
    return next(filter(is_match, candidates), None)


def _name(run: Record, first: str) -> str:
    if (verifier := run["players"].get(VERIFIER)) is None:
        return NAMES.get(run["method"], str(run["method"]))
    if verifier == first:
        return LEARNED
    if _CHECKER.fullmatch(verifier):
        return CHECKER
    return CHANCE if verifier.startswith("chance:") else f"SAFE, {verifier}"


def _key(system: Record) -> System:
    return System.make(*(system[name] for name in ("method", "players", "options", "conditions")))


def check(results: Record, place: str) -> None:
    """Raise ``UserError``, with ``place`` in front, for results without a run of SAFE or one of no verifier."""
    if missing := {PLAIN, LEARNED} - {arm.name for arm in list_arms(results)}:
        raise UserError(
            f"{place}: has no {' and no '.join(sorted(missing))}; evaluate no_verification and safe with one generator"
        )


@dataclass(frozen=True, slots=True)
class Section:
    """The records of one folder of a release: a training, a verifier's quality, an evaluation."""

    place: str
    """The folder's path inside the release; empty for the release itself."""
    training: Record | None
    """The record of the verifier's training."""
    quality: Record | None
    verdicts: Verdicts | None
    results: Record | None

    @property
    def name(self) -> str:
        return self.place.partition("/")[2] or "the release's own"

    def label(self, arm: Arm) -> str:
        """Name an arm; a verifier that was trained for a block bears the section's name."""
        trained = self.place and self.training is not None and arm.name == LEARNED
        return f"SAFE, {self.name}" if trained else arm.label

    @property
    def arms(self) -> Sequence[Arm]:
        return list_arms(self.results) if self.results is not None else []

    @property
    def measures(self) -> Mapping[str, float | None]:
        """The verifier's measures on the test steps; empty if it was not measured."""
        measures: Mapping[str, float | None] = {} if self.quality is None else self.quality["verifiers"][0]["measures"]
        return measures


@dataclass(frozen=True, slots=True)
class Experiment:
    """Everything that the report of an experiment shows."""

    lock: Record
    main: Section
    generator: Record | None
    """The record of the generator's training."""
    blocks: Mapping[str, Sequence[Section]]
    """By the block's name: the block's own section, or one for each adapter that it trains."""
    steps: Sequence[StepCase]
    """Test rows of the verifier set."""
    probe: Verdicts | None
    """The verdicts of a probe that sees no passage on the steps; None if no verifier was measured."""
    gains: Mapping[str, Comparison]
    """The comparison of a section's arms with its `references`, by the section's place."""
    example: str
    """One question answered with and without verification; "" if none is fit to show."""

    @property
    def results(self) -> Record:
        assert self.main.results is not None
        return self.main.results

    @property
    def trainings(self) -> Mapping[str, Record]:
        """The records of all trainings, by the trained model's name."""
        records = {"generator": self.generator, "verifier": self.main.training}
        for sections in self.blocks.values():
            records |= {section.name: section.training for section in sections}
        return {name: record for name, record in records.items() if record is not None}

    @property
    def simulated(self) -> bool:
        arms = (find_arm(self.main.arms, name) for name in (LEARNED, PLAIN))
        return any(arm is not None and arm.run["simulated"] for arm in arms)


def references(section: Section, main: Section) -> tuple[Arm, Arm]:
    """Return a section's arms without verification and with the release's learned verifier.

    If several arms have these players, it is the one with the ``main`` section's options; if none, the main section's.
    """
    references = []
    for name in (PLAIN, LEARNED):
        main_arm = find_arm(main.arms, name)
        assert main_arm is not None  # `check`
        same_players = [arm for arm in section.arms if arm.run["players"] == main_arm.run["players"]]
        same_options = [arm for arm in same_players if arm.run["options"] == main_arm.run["options"]]
        references.append(next(iter([*same_options, *same_players]), main_arm))
    return references[0], references[1]


def require_same_models(fresh: Experiment, experiment: Experiment, place: str) -> None:
    """Raise ``UserError`` if ``fresh`` was made with models of other revisions than ``experiment``."""
    for role in (GENERATOR, VERIFIER):
        names = [references(e.main, e.main)[1].run["players"][role] for e in (fresh, experiment)]
        if len({name.rpartition("@")[2] for name in names}) > 1:
            raise UserError(
                f"{place}: its {role} is {names[0]}, where {names[1]} is asked for; evaluate the same models there"
            )


ANEW = "make it anew with safe-stepwise regenerate"
QUALITY, VERDICTS = "verifier/verifier_quality.json", "verifier/verdicts.jsonl"


def read_experiment(folder: Path, lock: Record, probe: ProbeFunction) -> Experiment:
    """Read an experiment and its ``lock``; ``probe`` sees no passages. Raises ``UserError`` without an evaluation."""
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
        steps=read_cases(steps, names.TEST) if main.verdicts is not None else (),
        probe=label_by_probe(steps, probe) if main.verdicts is not None else None,
        gains={h.place: _gains(folder, h, main, main_outcomes) for h in sections if h.results is not None},
        example=example([*read_questions(folder / names.REPORT)], main_outcomes, plain, learned),
    )


def _gains(folder: Path, section: Section, main: Section, main_outcomes: Sequence[Outcome]) -> Comparison:
    """Compute a section's gains; arms that it lacks come from the main section."""
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
    report, training = folder / place / names.REPORT, folder / place / names.ADAPTER / names.TRAINING
    verdicts = read_verdicts(report / VERDICTS) if (report / VERDICTS).is_file() else None
    return Section(place, _record(training), _record(report / QUALITY), verdicts, _record(report / names.RESULTS))


def _record(file: Path) -> Any:
    return boundary.read_file(dict[str, Any], file, "the record", ANEW) if file.is_file() else None


def gains(
    outcomes: Iterable[Outcome], systems: Sequence[System], references: Sequence[System], seed: int
) -> Comparison:
    """Compare ``systems`` with ``references`` on shared questions."""
    pairs = [frozenset((system, reference)) for reference in references for system in systems if system != reference]

    def select_pairs(systems_run: Sequence[System]) -> list[tuple[System, System]]:
        present = [pair for pair in dict.fromkeys(pairs) if pair <= {*systems_run}]
        return [(first, last) for first, last in map(sort_systems, present)]

    return compare(outcomes, seed, paired=select_pairs)


def gain(comparison: Comparison, arm: Arm, reference: Arm) -> Difference | None:
    """Return an arm's gain over another one, over benchmarks by their mean; None if the two were not compared."""
    benchmark = comparison.benchmarks[0] if len(comparison.benchmarks) == 1 else None
    return comparison.gain(arm.key, reference.key, benchmark, "exact_match")


def example(questions: Sequence[QuestionRecord], outcomes: Sequence[Outcome], plain: System, learned: System) -> str:
    """Render a question that ``plain`` answers wrongly and ``learned`` rightly, after rejecting a step; "" if none.

    Of several it is the one with the fewest attempts, then the first of the run.
    """
    by_system: dict[System, dict[str, Outcome]] = {plain: {}, learned: {}}
    for outcome in outcomes:
        by_system.get(system_of(outcome), {})[outcome.question_id] = outcome
    unverified, verified = by_system[plain], by_system[learned]
    candidates = [
        question
        for question in questions
        if question.id in unverified and not unverified[question.id].exact_match
        if question.id in verified and verified[question.id].exact_match
        # A step was rejected, and a verdict passed every accepted step.
        if any(not attempt.accepted for attempt in verified[question.id].trajectory.attempts)
        if not doubts(verified[question.id].trajectory)
    ]
    if not candidates:
        return ""
    chosen = min(candidates, key=lambda question: len(verified[question.id].trajectory.attempts))
    return "\n".join(_lines(chosen, unverified[chosen.id].trajectory, verified[chosen.id].trajectory))


def _lines(question: QuestionRecord, plain: Trajectory, learned: Trajectory) -> Iterator[str]:
    for number, passage in enumerate(question.passages, 1):
        yield terminal.printable(f"Passage {number} ({passage.title}): {passage.text}")
    yield terminal.printable(f"Question: {question.question}")
    yield terminal.printable(f"Right: {question.references[0]}")
    yield from ("", "No verification:")
    yield from (terminal.printable(step_of(attempt)) for attempt in plain.attempts)
    yield from ("", "SAFE, learned verifier:")
    for attempt in learned.attempts:
        yield from render_attempt(attempt)
