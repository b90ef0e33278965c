"""An experiment as it lies in a release folder: all of it that is there, read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.experiment import arms as of_arms
from evaluators.experiment.arms import Arm, Record
from evaluators.experiment.verdicts import (
    LabelledStep,
    Probe,
    Said,
    probed,
    read_steps,
    read_verdicts,
)
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import (
    ADAPTER,
    BLOCKS,
    DATASETS,
    GENERATOR,
    LOCK,
    REPORT,
    RESULTS,
    TEST,
    TRAINING,
    VERIFIER_STEPS,
)
from safe_stepwise.store.parsing import read_record

ANEW = "make it anew with python -m scripts.regenerate"
QUALITY, VERDICTS = "verifier/verifier_quality.json", "verifier/verdicts.jsonl"


@dataclass(frozen=True, slots=True)
class Home:
    """What was trained, measured and evaluated in one place of a release."""

    place: str
    """The folder, from the release's; empty of the release's own."""
    training: Record | None
    """Of the verifier."""
    quality: Record | None
    said: Said | None
    results: Record | None

    @property
    def arms(self) -> Sequence[Arm]:
        """What was evaluated there."""
        return of_arms.arms(self.results) if self.results is not None else []

    @property
    def measures(self) -> Mapping[str, float | None]:
        """Of the verifier on the steps of test; empty if it was not measured."""
        found: Mapping[str, float | None] = (
            {} if self.quality is None else self.quality["verifiers"][0]["measures"]
        )
        return found


@dataclass(frozen=True, slots=True)
class Experiment:
    """All that a report is made of."""

    lock: Record
    own: Home
    generator: Record | None
    """The record of its training."""
    blocks: Mapping[str, Sequence[Home]]
    """By name: the block itself, or each of the adapters that it trains."""
    steps: Sequence[LabelledStep]
    """Test rows of the verifier set."""
    probe: Said | None
    """What a probe says of them that sees no passage; None where no verifier was measured."""

    @property
    def results(self) -> Record:
        """Of the main evaluation."""
        assert self.own.results is not None
        return self.own.results

    @property
    def simulated(self) -> bool:
        """Whether the learned verifier or the generator was only played."""
        first = of_arms.one_of(self.own.arms, of_arms.LEARNED)
        baseline = of_arms.one_of(self.own.arms, of_arms.NAMES["no_verification"])
        return any(arm is not None and arm.run["simulated"] for arm in (first, baseline))


def read_experiment(folder: Path, probe: Probe) -> Experiment:
    """The experiment of a release folder; ``probe`` learns from steps whose passages it lacks.

    Raises ``UserError`` for a folder that is not complete, or holds no such evaluation.
    """
    if not (folder / LOCK).is_file():
        raise UserError(f"{folder}: has no {LOCK}, so it is not complete; {ANEW}")
    own = _home(folder, "")
    if own.results is None:
        raise UserError(f"{folder}: has no {REPORT}/{RESULTS}: nothing was evaluated; {ANEW}")
    of_arms.check(own.results, f"{folder / REPORT}")
    steps = folder / DATASETS / VERIFIER_STEPS
    return Experiment(
        lock=read_record(folder / LOCK, ANEW),
        own=own,
        generator=_record(folder / GENERATOR / TRAINING),
        blocks={block.name: _homes(folder, block) for block in sorted(folder.glob(f"{BLOCKS}/*"))},
        steps=read_steps(steps, TEST) if own.said is not None else (),
        probe=probed(steps, probe) if own.said is not None else None,
    )


def _homes(folder: Path, block: Path) -> list[Home]:
    """The block's own evaluation, or its adapters."""
    found = [block, *sorted(path for path in block.iterdir() if (path / ADAPTER).is_dir())]
    homes = [_home(folder, path.relative_to(folder).as_posix()) for path in found]
    return [home for home in homes if home.results is not None or home.quality is not None]


def _home(folder: Path, place: str) -> Home:
    report = folder / place / REPORT
    verdicts = report / VERDICTS
    return Home(
        place,
        _record(folder / place / ADAPTER / TRAINING),
        _record(report / QUALITY),
        read_verdicts(verdicts) if verdicts.is_file() else None,
        _record(report / RESULTS),
    )


def _record(file: Path) -> Any:
    return read_record(file, ANEW) if file.is_file() else None
