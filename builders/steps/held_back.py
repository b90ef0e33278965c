"""Errors in words that the checker has not seen: what it finds in them, and what its reward gives to them.

An error is put into the ideal trajectory of a verified question at every position, and none is left out
for what the checker says of it. All are beside the question's own passages.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from builders.steps.contexts import Source
from builders.steps.making import checked, inject, well_formed
from builders.steps.proposals import Injector, Wordings
from builders.steps.rows import TrajectoryError
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.rewards import trajectory_reward
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.errors import UserError
from safe_stepwise.records import Feedback, Label, Question, Step
from safe_stepwise.steps import format_step
from safe_stepwise.store.codec import label_row, question_row
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES

UNSEEN = Path(__file__).with_name("unseen_injections.yaml")
SHARE = 3
"""One question in so many is measured on."""


def read_wordings(file: Path) -> Wordings:
    """Wordings of errors; ``UserError`` for a file that can't be read or lacks one of ours."""
    try:
        words: Wordings = yaml.safe_load(file.read_text(encoding="utf-8"))
        form = yaml.safe_load(UNSEEN.read_text(encoding="utf-8"))
        lacking = [f"{t}/{w}" for t, ways in form.items() for w in ways if not words[t][w]]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        lacking = [str(error)]
    if lacking:
        raise UserError(f"{file}: no wordings in the form of builders/steps/{UNSEEN.name} ({lacking[0]})")
    return words


def errors(source: Source, ideal: Sequence[Step], seed: int, words: Wordings) -> Iterator[tuple[str, Step]]:
    """The first step that is proposed for each error type at each position, and that type."""
    injector = Injector(source, seed, words=words)
    for error_type in ERROR_TYPES:
        for position in range(1, len(ideal) + 1):
            proposals = injector.propose(error_type.name, position)
            step = next(filter(None, (well_formed(proposal, position) for proposal in proposals)), None)
            if step is not None:
                yield error_type.name, step


def probed(
    rows: Iterable[tuple[Question, Label]], seed: int, words: Wordings
) -> tuple[Counter[tuple[str, str | None]], Counter[str | None]]:
    """Pairs (error meant, error found), and what was found in unchecked ideal steps.

    One question in `SHARE` is looked at. Found is None where the checker abstains.
    """
    pairs: Counter[tuple[str, str | None]] = Counter()
    ideal: Counter[str | None] = Counter()
    for question, label in rows:
        if label.noise_type != "none" or choice_for("held back", question.id) % SHARE:
            continue
        try:
            source = Source.of(question, label)
        except PlanError:
            continue
        steps = write_trajectory(source.checker, seed)
        for number, step in enumerate(steps):
            label_found = _label(source.checker.check(steps[:number], step))
            ideal[label_found] += 1
            if label_found != CORRECT:
                break  # what follows would build on a step that was not passed
        try:
            checked(source.checker, steps)
        except TrajectoryError:
            continue
        pairs.update(meant_and_found(source, steps, seed, words))
    return pairs, ideal


def meant_and_found(
    source: Source, ideal: Sequence[Step], seed: int, words: Wordings
) -> Iterator[tuple[str, str | None]]:
    """What each of the `errors` was meant to have, and what the checker finds in it (None: nothing)."""
    for error_type, step in errors(source, ideal, seed, words):
        yield error_type, _label(source.checker.check(ideal[: step.number - 1], step))


def _label(verdict: Feedback | None) -> str | None:
    return None if verdict is None else verdict.error_type


@dataclass(frozen=True, slots=True)
class Trajectories:
    """Of one question, as a model writes them: what the checker's reward (`safe_stepwise.rewards`) tells apart."""

    row: Mapping[str, Any]
    """The published row with its label, by which they are judged."""
    ideal: tuple[str, ...]
    injected: tuple[str, ...]
    """With one error that the checker confirms, as the verifier set has them."""
    held_back: tuple[str, ...]

    def rewards(self, texts: Sequence[str]) -> list[float]:
        """What the reward gives to some of them."""
        columns = {name: [value] * len(texts) for name, value in self.row.items()}
        given = trajectory_reward([""] * len(texts), texts, **columns)
        return [reward for reward in given if reward is not None]


def trajectories(rows: Iterable[tuple[Question, Label]], seed: int = 0) -> Iterator[Trajectories]:
    """Those of every question whose ideal trajectory passes."""
    words = read_wordings(UNSEEN)
    for question, label in rows:
        try:
            source = Source.of(question, label)
            ideal = write_trajectory(source.checker, seed)
            checked(source.checker, ideal)
        except (PlanError, TrajectoryError):
            continue
        injected, _ = inject(Injector(source, seed), ideal, "")
        held_back = [step for _, step in errors(source, ideal, seed, words) if step != ideal[step.number - 1]]
        yield Trajectories(
            {**question_row(question), **label_row(label)},
            (_text(ideal),),
            tuple(_put(ideal, row.step) for row in injected if row.question == question),
            tuple(_put(ideal, step) for step in held_back),
        )


def _put(ideal: Sequence[Step], step: Step) -> str:
    """The ideal trajectory with another step in one place."""
    return _text((*ideal[: step.number - 1], step, *ideal[step.number :]))


def _text(steps: Iterable[Step]) -> str:
    return "\n".join(map(format_step, steps))
