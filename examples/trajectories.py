"""Correct and wrong trajectories that the checker's reward (`safe_stepwise.rewards`) has to tell apart.

Each verified question has its ideal trajectory, trajectories with one error that the checker confirms (as in the
verifier set), and trajectories with one error in held-back wordings, whether the checker finds it or not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builders.steps.contexts import StepSource
from builders.steps.making import UNSEEN, check_trajectory, errors, inject, read_wordings
from builders.steps.proposals import Injector
from builders.steps.rows import TrajectoryError
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.rewards import trajectory_reward
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.records import Label, Question, Step
from safe_stepwise.steps import format_step
from safe_stepwise.store.codec import label_row, question_row


@dataclass(frozen=True, slots=True)
class Trajectories:
    """The trajectories of one question, as texts."""

    row: Mapping[str, Any]
    """The published row with its label, which the reward reads."""
    ideal: tuple[str, ...]
    injected: tuple[str, ...]
    """Those with one error that the checker confirms."""
    held_back: tuple[str, ...]
    """Those with one error in a held-back wording."""

    def rewards(self, texts: Sequence[str]) -> list[float]:
        """Return the rewards of texts, without those that the reward abstains from."""
        columns = {name: [value] * len(texts) for name, value in self.row.items()}
        return [reward for reward in trajectory_reward([""] * len(texts), texts, **columns) if reward is not None]


def trajectories(rows: Iterable[tuple[Question, Label]], seed: int = 0) -> Iterator[Trajectories]:
    """Yield the trajectories of each question whose ideal trajectory passes the checker."""
    wordings = read_wordings(UNSEEN)
    for question, label in rows:
        try:
            source = StepSource.build(question, label)
            ideal = write_trajectory(source.checker, seed)
            check_trajectory(source.checker, ideal)
        except (PlanError, TrajectoryError):
            continue
        injected, _ = inject(Injector(source, seed), ideal, "")
        held_back = [step for _, step in errors(source, ideal, seed, wordings) if step != ideal[step.number - 1]]
        yield Trajectories(
            {**question_row(question), **label_row(label)},
            (_text(ideal),),
            tuple(_replace_step(ideal, row.step) for row in injected if row.question == question),
            tuple(_replace_step(ideal, step) for step in held_back),
        )


def _replace_step(ideal: Sequence[Step], step: Step) -> str:
    return _text((*ideal[: step.number - 1], step, *ideal[step.number :]))


def _text(steps: Iterable[Step]) -> str:
    return "\n".join(map(format_step, steps))
