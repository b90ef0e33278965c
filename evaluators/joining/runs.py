"""The folders of evaluations, read to be joined, and whether they were asked the same."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from evaluators.comparison.systems import System
from evaluators.outcomes import (
    GIVE,
    Outcome,
    QuestionRecord,
    asked_under,
    conditions_of,
    read_outcomes,
    read_questions,
)
from safe_stepwise.errors import UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.store.names import RESULTS, TRAJECTORIES
from safe_stepwise.store.parsing import read_json

Asked = tuple[str, str, int]
"""A question: its benchmark, its id, and which of those with this id, from 0."""


@dataclass(frozen=True)
class Run:
    """An evaluation as it was written down."""

    folder: Path
    name: str
    """The one that it was given, if any."""
    settings: Mapping[str, Any]
    outcomes: tuple[Outcome, ...]
    questions: tuple[QuestionRecord, ...]

    @property
    def title(self) -> str:
        return str(self.folder)

    @cached_property
    def systems(self) -> dict[System, dict[Asked, Outcome]]:
        found: dict[System, dict[Asked, Outcome]] = {}
        seen = Counter[Any]()
        for o in self.outcomes:
            system = System.of(o.method, o.players, o.options, o.conditions)
            own = found.setdefault(system, {})
            own[o.benchmark, o.question_id, seen[system, o.benchmark, o.question_id]] = o
            seen[system, o.benchmark, o.question_id] += 1
        return found

    @cached_property
    def asked(self) -> dict[Asked, dict[str, QuestionRecord]]:
        """What was asked, by the conditions that change it."""
        found: dict[Asked, dict[str, QuestionRecord]] = {}
        seen = Counter[Any]()
        for q in self.questions:
            under = canonical_json(q.conditions)
            key = q.benchmark, q.id, seen[q.benchmark, q.id, under]
            found.setdefault(key, {})[under] = q
            seen[q.benchmark, q.id, under] += 1
        return found


def read_run(text: str) -> Run:
    """The evaluation in a folder that is named as ``DIR`` or ``DIR=NAME``.

    Raises ``UserError`` for a folder without an evaluation that has ended, and for an empty name.
    """
    folder, name = _named(text)
    settings, conditions = _settings(folder)
    # Older runs tell their conditions in the settings alone.
    outcomes = (replace(o, conditions={**conditions, **o.conditions}) for o in read_outcomes(folder))
    under = asked_under(conditions)
    questions = (replace(q, conditions={**under, **q.conditions}) for q in read_questions(folder))
    found = Run(folder, name, settings, tuple(outcomes), tuple(questions))
    if not found.outcomes:
        raise UserError(f"{folder / TRAJECTORIES}: holds no trajectory; run the evaluation again")
    unknown = {asked for own in found.systems.values() for asked in own} - found.asked.keys()
    if unknown:
        benchmark, id_, _ = min(unknown)
        raise UserError(
            f"{folder}: {benchmark} {id_} was answered, and is not among its questions; "
            "make it anew with safe-stepwise evaluate_stepwise"
        )
    return found


def _named(text: str) -> tuple[Path, str]:
    """A folder whose own name has an equals sign is a folder."""
    if "=" not in text or Path(text).is_dir():
        return Path(text), ""
    folder, _, name = text.rpartition("=")
    if not folder or not name.strip():
        raise UserError(f"{text!r}: write DIR, or DIR=NAME to call it so")
    return Path(folder), " ".join(name.split())


def _settings(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    file = folder / RESULTS
    try:
        settings = dict(read_json(file)["settings"])
        return settings, conditions_of(settings)
    except FileNotFoundError:
        begun = (folder / f".{TRAJECTORIES}").exists()
        mend = "it has not ended: run the same command again" if begun else GIVE
        raise UserError(f"{folder}: no {RESULTS} of an evaluation in it; {mend}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or "not the record of an evaluation"
        raise UserError(f"{file}: cannot be read ({reason}); run the evaluation again") from None


def shared(runs: Sequence[Run]) -> dict[str, set[Asked]]:
    """The questions that all runs which have a benchmark were asked, by benchmark.

    Raises ``UserError`` where two that have one share no question of it, and where two were asked
    something else under one id: another text or other answers, or other passages though nothing in
    their settings says so.
    """
    found: dict[str, set[Asked]] = {}
    for run in runs:
        for benchmark in dict.fromkeys(asked[0] for asked in run.asked):
            own = {asked for asked in run.asked if asked[0] == benchmark}
            found[benchmark] = found.get(benchmark, own) & own
            if not found[benchmark]:
                others = [r.title for r in runs if any(a[0] == benchmark for a in r.asked)]
                raise UserError(
                    f"{', '.join(others)}: have no question of {benchmark} in common; evaluate the same sample in each"
                )
    for one, other in combinations(runs, 2):
        _check_alike(one, other)
    return found


def _check_alike(one: Run, other: Run) -> None:
    for asked in one.asked.keys() & other.asked.keys():
        for first, second in _both(one.asked[asked], other.asked[asked]):
            texts = first.question, sorted(first.references)
            what = ""
            if texts != (second.question, sorted(second.references)):
                what = "another question, or other answers"
            elif first.conditions == second.conditions and first.passages != second.passages:
                what = "other passages"
            if what:
                raise UserError(
                    f"{one.title} and {other.title}: under {asked[0]} {asked[1]} each asked "
                    f"{what}; evaluate the same sample, by the same --seed, in each"
                )


def _both(
    one: Mapping[str, QuestionRecord], other: Mapping[str, QuestionRecord]
) -> Iterator[tuple[QuestionRecord, QuestionRecord]]:
    return ((first, second) for first in one.values() for second in other.values())
