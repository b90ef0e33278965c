"""The folders of evaluations, read and joined: equal systems are merged, variants are named.

A run may have a name, which sets its systems apart from systems of other runs with the same
method, players, options and conditions: another adapter behind the same server, say. A system that
several runs hold with the same outcomes to the byte, as a baseline beside each variant, is one
system without a variant's name. Equal systems with different outcomes need names.
"""

from collections import Counter
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

QuestionKey = tuple[str, str, int]
"""A question: its benchmark, its id, and its number among those with this id, from 0."""


@dataclass(frozen=True)
class Run:
    """An evaluation as its folder holds it."""

    folder: Path
    name: str
    """The name that the command line gives the run; may be empty."""
    settings: Mapping[str, Any]
    outcomes: tuple[Outcome, ...]
    questions: tuple[QuestionRecord, ...]

    @property
    def title(self) -> str:
        return str(self.folder)

    @cached_property
    def systems(self) -> dict[System, dict[QuestionKey, Outcome]]:
        by_system: dict[System, dict[QuestionKey, Outcome]] = {}
        keyed = reading.numbered(self.outcomes, lambda o: (system_of(o), o.benchmark, o.question_id))
        for ((system, benchmark, id_), number), outcome in keyed:
            by_system.setdefault(system, {})[benchmark, id_, number] = outcome
        return by_system

    @cached_property
    def questions_by_key(self) -> dict[QuestionKey, dict[str, QuestionRecord]]:
        """The questions by key, then by the conditions that change them."""
        by_key: dict[QuestionKey, dict[str, QuestionRecord]] = {}
        keyed = reading.numbered(self.questions, lambda q: (q.benchmark, q.id, canonical_json(q.conditions)))
        for ((benchmark, id_, under), number), question in keyed:
            by_key.setdefault((benchmark, id_, number), {})[under] = question
        return by_key


def read_run(text: str) -> Run:
    """Read the evaluation in a folder, given as ``DIR`` or ``DIR=NAME``.

    Raises ``UserError`` for a folder without an evaluation that has ended, and for an empty name.
    """
    folder, name = _folder_and_name(text)
    settings = reading.read_results(folder)["settings"]
    conditions = reading.conditions_of(settings)
    # Older runs keep their conditions in the settings alone.
    outcomes, questions = reading.read_outcomes(folder, conditions), reading.read_questions(folder, conditions)
    run = Run(folder, name, settings, tuple(outcomes), tuple(questions))
    if not run.outcomes:
        raise UserError(f"{folder / TRAJECTORIES}: holds no trajectory; run the evaluation again")
    unknown = set().union(*run.systems.values()) - run.questions_by_key.keys()
    if unknown:
        benchmark, id_, _ = min(unknown)
        raise UserError(
            f"{folder}: {benchmark} {id_} was answered, and is not among its questions; "
            "make it anew with safe-stepwise evaluate_stepwise"
        )
    return run


def _folder_and_name(text: str) -> tuple[Path, str]:
    """Split ``DIR=NAME``, unless the whole text is a folder."""
    if "=" not in text or Path(text).is_dir():
        return Path(text), ""
    folder, _, name = text.rpartition("=")
    if not folder or not name.strip():
        raise UserError(f"{text!r}: write DIR, or DIR=NAME to call it so")
    return Path(folder), " ".join(name.split())


def shared_keys(runs: Sequence[Run]) -> dict[str, set[QuestionKey]]:
    """Return, by benchmark, the questions that all runs with this benchmark have.

    Raises ``UserError`` where runs with a benchmark share no question of it, and where one id stands
    for different questions: another text or other answers, or other passages under equal conditions.
    """
    by_benchmark: dict[str, set[QuestionKey]] = {}
    for run in runs:
        for benchmark in dict.fromkeys(key[0] for key in run.questions_by_key):
            keys = {key for key in run.questions_by_key if key[0] == benchmark}
            by_benchmark[benchmark] = by_benchmark.get(benchmark, keys) & keys
            if not by_benchmark[benchmark]:
                titles = [r.title for r in runs if any(a[0] == benchmark for a in r.questions_by_key)]
                raise UserError(
                    f"{', '.join(titles)}: have no question of {benchmark} in common; evaluate the same sample in each"
                )
    for earlier, later in combinations(runs, 2):
        _check_alike(earlier, later)
    return by_benchmark


def _check_alike(earlier: Run, later: Run) -> None:
    before, after = earlier.questions_by_key, later.questions_by_key
    for key in before.keys() & after.keys():
        for question, candidate in product(before[key].values(), after[key].values()):
            difference = ""
            if (question.question, sorted(question.references)) != (candidate.question, sorted(candidate.references)):
                difference = "another question, or other answers"
            elif question.conditions == candidate.conditions and question.passages != candidate.passages:
                difference = "other passages"
            if difference:
                raise UserError(
                    f"{earlier.title} and {later.title}: under {key[0]} {key[1]} each asked "
                    f"{difference}; evaluate the same sample, by the same --seed, in each"
                )


HeldOutcomes = Mapping[System, Mapping[QuestionKey, Outcome]]
"""A run's outcomes on the shared questions."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Several runs, merged into one."""

    outcomes: tuple[Outcome, ...]
    """System by system, in the order of the runs."""
    questions: tuple[QuestionRecord, ...]
    left_out: Mapping[str, int]
    """The number of questions, by benchmark, that not all runs with this benchmark have."""
    held_twice: tuple[System, ...]
    """The systems that several runs hold with the same outcomes."""


def join_runs(runs: Sequence[Run]) -> Joined:
    """Join runs into one.

    Raises ``UserError`` for runs with different questions (`shared_keys`), and for equal systems with
    different outcomes.
    """
    common = shared_keys(runs)
    outcomes_by_run = [
        {
            system: {key: o for key, o in by_key.items() if key in common[key[0]]}
            for system, by_key in run.systems.items()
        }
        for run in runs
    ]
    merged: dict[System, dict[QuestionKey, Outcome]] = {}
    source: dict[tuple[System, QuestionKey], Run] = {}
    twice: dict[System, None] = {}
    for n, run in enumerate(runs):
        for system, by_key in outcomes_by_run[n].items():
            variant = _with_variant(system, _variant_name(system, n, runs, outcomes_by_run))
            outcomes = merged.setdefault(variant, {})
            for key, outcome in by_key.items():
                outcome = replace(outcome, conditions=dict(variant.conditions))
                earlier = outcomes.setdefault(key, outcome)
                if earlier is not outcome:
                    twice[variant] = None
                if earlier != outcome:
                    raise _clash(variant, key, source[variant, key], run)
                source.setdefault((variant, key), run)
    sizes = Counter(benchmark for benchmark, *_ in {key for run in runs for key in run.questions_by_key})
    left_out = {name: sizes[name] - len(keys) for name, keys in common.items()}
    return Joined(
        tuple(outcome for by_key in merged.values() for outcome in by_key.values()),
        _questions(runs, common),
        {name: count for name, count in left_out.items() if count},
        tuple(twice),
    )


def _variant_name(system: System, place: int, runs: Sequence[Run], outcomes_by_run: Sequence[HeldOutcomes]) -> str:
    """Return the name that sets a run's system apart, "" where it needs none."""
    holders = [n for n, systems in enumerate(outcomes_by_run) if system in systems]
    if len({runs[n].name for n in holders}) == 1:
        return runs[place].name
    pairs = [(a, b) for a, b in combinations(holders, 2) if runs[a].name != runs[b].name]
    are_equal = all(_are_equal(outcomes_by_run[a][system], outcomes_by_run[b][system]) for a, b in pairs)
    return "" if are_equal else runs[place].name


def _are_equal(earlier: Mapping[QuestionKey, Outcome], later: Mapping[QuestionKey, Outcome]) -> bool:
    keys = earlier.keys() & later.keys()
    return bool(keys) and all(earlier[key] == later[key] for key in keys)


def _with_variant(system: System, name: str) -> System:
    if not name:
        return system
    conditions = {**dict(system.conditions), VARIANT: name}
    return replace(system, conditions=tuple(sorted(conditions.items())))


def _clash(system: System, key: QuestionKey, earlier: Run, later: Run) -> UserError:
    name = f"{system.answering}, {names([system])[system]}"
    return UserError(
        f"{earlier.title} and {later.title}: both hold {name}, with other outcomes (the first on "
        f"{key[0]} {key[1]}); leave one out, or give them names of their own: "
        f"{earlier.title}=NAME {later.title}=NAME"
    )


def _questions(runs: Sequence[Run], common: Mapping[str, set[QuestionKey]]) -> tuple[QuestionRecord, ...]:
    """Return the common questions, each once under the conditions that change it."""
    questions: dict[tuple[QuestionKey, str], QuestionRecord] = {}
    for run in runs:
        for key, by_conditions in run.questions_by_key.items():
            if key in common[key[0]]:
                for conditions, question in by_conditions.items():
                    questions.setdefault((key, conditions), question)
    return tuple(questions.values())
