"""The folders of evaluations, read and joined: which of their systems are one system, and what each is called.

A run may be given a name, which tells its systems from those of other runs that are alike in
method, players, options and conditions: another adapter behind the same server, say. A system that
several runs hold with the same outcomes to the byte, as a baseline that was run beside each
variant, is one, and none's. What is alike and differs has to be told apart by names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any

from evaluators import outcomes as reading
from evaluators.comparison.systems import VARIANT, System, names, system_of
from evaluators.outcomes import Outcome, QuestionRecord
from safe_stepwise.errors import UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.store.names import TRAJECTORIES

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
        keyed = reading.numbered(self.outcomes, lambda o: (system_of(o), o.benchmark, o.question_id))
        for ((system, benchmark, id_), number), outcome in keyed:
            found.setdefault(system, {})[benchmark, id_, number] = outcome
        return found

    @cached_property
    def asked(self) -> dict[Asked, dict[str, QuestionRecord]]:
        """What was asked, by the conditions that change it."""
        found: dict[Asked, dict[str, QuestionRecord]] = {}
        keyed = reading.numbered(self.questions, lambda q: (q.benchmark, q.id, canonical_json(q.conditions)))
        for ((benchmark, id_, under), number), question in keyed:
            found.setdefault((benchmark, id_, number), {})[under] = question
        return found


def read_run(text: str) -> Run:
    """The evaluation in a folder that is named as ``DIR`` or ``DIR=NAME``.

    Raises ``UserError`` for a folder without an evaluation that has ended, and for an empty name.
    """
    folder, name = _named(text)
    settings = reading.read_results(folder)["settings"]
    conditions = reading.conditions_of(settings)
    # Older runs tell their conditions in the settings alone.
    outcomes, questions = reading.read_outcomes(folder, conditions), reading.read_questions(folder, conditions)
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
        for first, second in product(one.asked[asked].values(), other.asked[asked].values()):
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


Held = Mapping[System, Mapping[Asked, Outcome]]
"""What a run holds of the questions that are shared."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What several runs came to together."""

    outcomes: tuple[Outcome, ...]
    """System by system, in the order of the runs."""
    questions: tuple[QuestionRecord, ...]
    left_out: Mapping[str, int]
    """By benchmark, the questions that not all runs were asked which have it."""
    held_twice: tuple[System, ...]
    """Those that several runs hold with the same outcomes."""


def joined(runs: Sequence[Run]) -> Joined:
    """The runs as one.

    Raises ``UserError`` for runs that were not asked the same (`shared`), and for systems that are
    alike in all but their outcomes.
    """
    common = shared(runs)
    held = [
        {
            system: {asked: o for asked, o in own.items() if asked in common[asked[0]]}
            for system, own in run.systems.items()
        }
        for run in runs
    ]
    found: dict[System, dict[Asked, Outcome]] = {}
    source: dict[tuple[System, Asked], Run] = {}
    twice: dict[System, None] = {}
    for n, run in enumerate(runs):
        for system, own in held[n].items():
            called = _called(system, _variant(system, n, runs, held))
            outcomes = found.setdefault(called, {})
            for asked, outcome in own.items():
                outcome = replace(outcome, conditions=dict(called.conditions))
                before = outcomes.setdefault(asked, outcome)
                if before is not outcome:
                    twice[called] = None
                if before != outcome:
                    raise _clash(called, asked, source[called, asked], run)
                source.setdefault((called, asked), run)
    every = {asked for run in runs for asked in run.asked}
    left_out = {name: sum(a[0] == name for a in every) - len(of) for name, of in common.items()}
    return Joined(
        tuple(outcome for own in found.values() for outcome in own.values()),
        _questions(runs, common),
        {name: count for name, count in left_out.items() if count},
        tuple(twice),
    )


def _variant(system: System, at: int, runs: Sequence[Run], held: Sequence[Held]) -> str:
    """The name that a system of a run gets from it."""
    holders = [n for n, own in enumerate(held) if system in own]
    if len({runs[n].name for n in holders}) == 1:
        return runs[at].name
    apart = [(a, b) for a, b in combinations(holders, 2) if runs[a].name != runs[b].name]
    same = all(_same(held[a][system], held[b][system]) for a, b in apart)
    return "" if same else runs[at].name


def _same(one: Mapping[Asked, Outcome], other: Mapping[Asked, Outcome]) -> bool:
    both = one.keys() & other.keys()
    return bool(both) and all(one[asked] == other[asked] for asked in both)


def _called(system: System, name: str) -> System:
    if not name:
        return system
    conditions = {**dict(system.conditions), VARIANT: name}
    return replace(system, conditions=tuple(sorted(conditions.items())))


def _clash(system: System, asked: Asked, first: Run, second: Run) -> UserError:
    what = f"{system.answering}, {names([system])[system]}"
    return UserError(
        f"{first.title} and {second.title}: both hold {what}, with other outcomes (the first on "
        f"{asked[0]} {asked[1]}); leave one out, or give them names of their own: "
        f"{first.title}=NAME {second.title}=NAME"
    )


def _questions(runs: Sequence[Run], common: Mapping[str, set[Asked]]) -> tuple[QuestionRecord, ...]:
    """What was asked, each once under the conditions that change it."""
    found: dict[tuple[Asked, str], QuestionRecord] = {}
    for run in runs:
        for asked, under in run.asked.items():
            if asked in common[asked[0]]:
                for conditions, question in under.items():
                    found.setdefault((asked, conditions), question)
    return tuple(found.values())
