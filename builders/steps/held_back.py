"""Errors in words that the checker has not seen, and what it finds in them.

An error is put into the ideal trajectory of a verified question at every position, and none is left out
for what the checker says of it. All are beside the question's own passages.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import yaml

from builders.steps.contexts import Source
from builders.steps.making import checked, well_formed
from builders.steps.proposals import Injector, Wordings
from builders.steps.rows import TrajectoryError
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.errors import UserError
from safe_stepwise.records import Feedback, Label, Question, Step
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
