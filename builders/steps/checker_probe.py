"""What the checker finds in errors that are worded as it has not seen them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import yaml

from builders.steps.contexts import Source
from builders.steps.making import well_formed
from builders.steps.proposals import Injector, Wordings
from builders.steps.rows import TrajectoryError
from builders.steps.trajectories import checked
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.errors import UserError
from safe_stepwise.records import Label, Question, Step
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES

UNSEEN = Path(__file__).with_name("unseen_injections.yaml")
SHARE = 3
"""One question in so many is measured on."""


def probed(
    rows: Iterable[tuple[Question, Label]], seed: int, words: Wordings
) -> tuple[Counter[tuple[str, str | None]], Counter[str | None]]:
    """Pairs (error meant, error found), and what was found in unchecked ideal steps.

    Errors are put into the ideal trajectories of one question in `SHARE`, at every position, and
    none is left out for what the checker says of it. Found is None where it abstains.
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
        checker = source.checker
        steps = write_trajectory(checker, seed)
        for number, step in enumerate(steps):
            verdict = checker.check(steps[:number], step)
            ideal[None if verdict is None else verdict.error_type] += 1
            if verdict is None or verdict.error_type != CORRECT:
                break  # what follows would build on a step that was not passed
        try:
            checked(checker, steps)
        except TrajectoryError:
            continue
        pairs.update(meant_and_found(source, steps, seed, words))
    return pairs, ideal


def meant_and_found(
    source: Source, ideal: Sequence[Step], seed: int, words: Wordings
) -> Iterator[tuple[str, str | None]]:
    """What each first proposal was meant to have, and what the checker finds in it (None: nothing).

    Nothing is left out because the checker disagrees, so this measures it.
    """
    injector = Injector(source, seed, words=words)
    for error_type in ERROR_TYPES:
        for position in range(1, len(ideal) + 1):
            for proposal in injector.propose(error_type.name, position):
                step = well_formed(proposal, position)
                if step is not None:
                    feedback = source.checker.check(ideal[: position - 1], step)
                    yield error_type.name, None if feedback is None else feedback.error_type
                    break


def read_wordings(file: Path) -> Wordings:
    """Wordings of errors; ``UserError`` for a file that can't be read or lacks one of ours."""
    try:
        words = yaml.safe_load(file.read_text(encoding="utf-8"))
        form = yaml.safe_load(UNSEEN.read_text(encoding="utf-8"))
        lacking = [f"{t}/{w}" for t, ways in form.items() for w in ways if not words[t][w]]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        lacking = [str(error)]
    if lacking:
        raise UserError(f"{file}: no wordings in the form of builders/steps/{UNSEEN.name} ({lacking[0]})")
    found: Wordings = words
    return found
