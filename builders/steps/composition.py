"""Chooses the rows to publish from those that could be made: exact numbers, balanced over classes.

`choose` gives each benchmark a `_Target`, draws its questions, and fills the quota of each class from their rows.
Of the rows that a class may take next, the one is taken that brings the shares of its traits (`overlap.traits`)
nearest to those that all labels are to have, so that no overlap of words tells a label. A hash of (seed, id) decides
what is left open, so the order of the candidates does not matter.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from builders.steps.overlap import WEIGHTS, keep_limits, traits
from builders.steps.rows import StepRow
from safe_stepwise.errors import UserError
from safe_stepwise.records import StepKind
from safe_stepwise.store.grouping import grouped
from safe_stepwise.store.names import IDEAL, INJECTED, REFINED, Origin
from safe_stepwise.taxonomy import ERROR_TYPES, EVIDENCE_LABELS

_TYPES = tuple(entry.name for entry in ERROR_TYPES)
CLASSES = (IDEAL, REFINED, *_TYPES)
"""Classes of rows: ideal, refined, and injected by error type."""
ROWS_PER_QUESTION = 8
"""Default highest number of rows of a question."""
_OPTIONS = 256
"""The most candidates that one row is picked from."""


@dataclass(frozen=True, slots=True)
class Composition:
    """The number of rows and questions of a set, and of each class of rows (SAFE v1, Table 7).

    ``questions`` None means any number. ``ideal`` is a share of the rows (0-1), ``refined`` a number of rows (None:
    all available); all others are injected. ``per_benchmark`` has (rows, questions) of each benchmark, summing to the
    totals; None distributes rows evenly. No question has more than ``rows_per_question``.
    """

    rows: int
    questions: int | None = None
    ideal: float = 0.34
    refined: int | None = 0
    per_benchmark: Mapping[str, tuple[int, int]] | None = None
    rows_per_question: int = ROWS_PER_QUESTION

    def __post_init__(self) -> None:
        if not 0 <= self.ideal <= 1:
            raise UserError(f"ideal {self.ideal}: a share lies between 0 and 1")
        if self.rows_per_question < 1:
            raise UserError("rows_per_question has to be 1 or more")
        refined = self.refined or 0
        if refined < 0 or self.rows < 1:
            raise UserError("rows have to be 1 or more, refined rows not negative")
        if refined > self.rows - round(self.ideal * self.rows):
            raise UserError(f"{refined} refined rows and {self.ideal:.0%} ideal are too many")
        _check_questions("", self.rows, self.questions, self.rows_per_question)
        if self.per_benchmark is not None:
            rows, questions = (sum(target[i] for target in self.per_benchmark.values()) for i in (0, 1))
            if rows != self.rows or self.questions not in (None, questions):
                raise UserError(
                    f"per_benchmark sums to {rows} rows of {questions} questions, not to "
                    f"{self.rows} of {self.questions}"
                )
            for name, target in self.per_benchmark.items():
                _check_questions(f"{name}: ", *target, self.rows_per_question)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The fields of a row that the choice needs."""

    id: str
    benchmark: str
    question: str
    error_type: str
    position: int
    origin: Origin
    borrowed: str | None = None
    """The id of the question that lent a passage to this row's, if there is one."""
    incomplete: bool = False
    """Whether the row belongs to the incomplete-evidence set (`StepRow.incomplete`)."""
    family: str = ""
    """The weakness of a verifier that a refined row shows; empty if none is recorded."""
    kind: StepKind = "Attribution"
    traits: tuple[int, ...] = ()
    """What `overlap.traits` returns for the row."""

    @classmethod
    def of_row(cls, row: StepRow) -> "Candidate":
        question, label, position = row.question, row.feedback.error_type, row.step.number
        identity = (row.id, question.benchmark, question.id, label, position, row.origin)
        return cls(*identity, row.borrowed, row.incomplete, row.family, row.step.kind, traits(row))

    @property
    def row_class(self) -> str:
        """One of `CLASSES`."""
        return self.error_type if self.origin == INJECTED else self.origin

    @property
    def spread_key(self) -> str:
        """The key over which rows of one class are spread: the weakness of a verifier, else the position."""
        return self.family or f"{self.position:06}"


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """Ids of the chosen rows, and ``shortfalls``: numbers missing by benchmark and class, or of its ``questions``."""

    ids: frozenset[str]
    shortfalls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def choose(candidates: Iterable[Candidate], composition: Composition, seed: int) -> ChosenRows:
    """Choose exactly ``composition.rows`` rows, one of each question at least; raise ``UserError`` for fewer."""
    pools = grouped(sorted(candidates, key=lambda c: rank(seed, c.id)), lambda c: c.benchmark)
    available, shortage = available_rows([c for pool in pools.values() for c in pool], composition)
    if shortage:
        raise UserError(
            f"{composition.rows:,} rows are wanted, but {shortage}; ask for --rows {available} or fewer, raise "
            "--rows-per-question, or give it more questions (--pool N tries more of those it has)"
        )
    ids: set[str] = set()
    shortfalls = {}
    for benchmark, target in _targets(pools, composition).items():
        picked, short = _choose_for_benchmark(benchmark, pools.get(benchmark, []), target, seed)
        ids |= {candidate.id for candidate in picked}
        if short:
            shortfalls[benchmark] = short
    return ChosenRows(frozenset(ids), shortfalls)


def available_rows(candidates: Collection[Candidate], composition: Composition) -> tuple[int, str]:
    """Return how many rows the candidates give a composition, and, if they are too few, that in words."""
    available = _capacity(candidates, composition.rows_per_question)
    if available >= composition.rows:
        return available, ""
    return available, f"only {available:,} could be made with at most {composition.rows_per_question} rows a question"


def rank(seed: int, id_: str) -> bytes:
    """Return a random sort key of 16 bytes that depends only on seed and id."""
    return hashlib.sha256(f"{seed}\0{id_}".encode("utf-8", "replace")).digest()[:16]


def split_evenly(number: int, capacity: Mapping[str, int]) -> dict[str, int]:
    """Distribute ``number`` as evenly as the ``capacity`` of each name allows; fewer in all if it does not suffice.

    >>> split_evenly(10, {"a": 2, "b": 9, "c": 9})
    {'a': 2, 'b': 4, 'c': 4}
    """
    numbers = dict.fromkeys(capacity, 0)
    unfilled = [name for name in capacity if capacity[name] > 0]
    while number and unfilled:
        even_share = number // len(unfilled)
        if even_share == 0:
            for name in unfilled[:number]:
                numbers[name] += 1
            break
        for name in unfilled:
            increase = min(even_share, capacity[name] - numbers[name])
            numbers[name] += increase
            number -= increase
        unfilled = [name for name in unfilled if numbers[name] < capacity[name]]
    return numbers


def _capacity(pool: Iterable[Candidate], per_question: int) -> int:
    """Return the number of rows of a pool with at most ``per_question`` of each question."""
    return sum(min(number, per_question) for number in Counter((c.benchmark, c.question) for c in pool).values())


@dataclass(frozen=True, slots=True)
class _Target:
    """The numbers of rows and questions that a composition wants of one benchmark."""

    rows: int
    questions: int | None
    ideal: int
    refined: int
    per_question: int
    """Rows of a question."""


def _targets(pools: Mapping[str, Sequence[Candidate]], composition: Composition) -> dict[str, _Target]:
    questions: dict[str, int] = {}
    per_question = composition.rows_per_question
    if composition.per_benchmark is not None:
        rows = {name: n for name, (n, _) in sorted(composition.per_benchmark.items())}
        questions = {name: q for name, (_, q) in composition.per_benchmark.items()}
    else:
        rows = split_evenly(composition.rows, {name: _capacity(pools[name], per_question) for name in sorted(pools)})
        if composition.questions is not None:
            capacity = {n: min(len({c.question for c in pools[n]}), rows[n]) for n in rows}
            questions = split_evenly(composition.questions, capacity)
            if (most_questions := sum(capacity.values())) < composition.questions:
                raise UserError(
                    f"{composition.questions:,} questions are wanted, but only {most_questions:,} have a row; ask for "
                    "fewer, or give it more verified questions"
                )
    ideal = _split_by_weight(round(composition.ideal * composition.rows), rows)
    refined = _refined_numbers(pools, composition, {name: rows[name] - ideal[name] for name in rows})
    return {n: _Target(rows[n], questions.get(n), ideal[n], refined[n], per_question) for n in rows}


def _refined_numbers(
    pools: Mapping[str, Sequence[Candidate]], composition: Composition, capacity: Mapping[str, int]
) -> dict[str, int]:
    """Return the number of refined rows for each benchmark, as evenly distributed as the supply allows."""
    refined = {name: sum(c.origin == REFINED for c in pools.get(name, ())) for name in capacity}
    available = {name: min(refined[name], capacity[name]) for name in capacity}
    number = sum(available.values()) if composition.refined is None else composition.refined
    numbers = split_evenly(number, available)
    # The rest is still asked for where there would have been room, and reported as a shortfall.
    extra = split_evenly(number - sum(numbers.values()), {name: capacity[name] - numbers[name] for name in capacity})
    return {name: numbers[name] + extra[name] for name in capacity}


def _split_by_weight(number: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Split a number into whole shares in proportion to the weights (largest remainders)."""
    total = sum(weights.values())
    exact = {name: number * weight / total for name, weight in weights.items()}
    numbers = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(weights, key=lambda name: (numbers[name] - exact[name], name))
    for name in by_remainder[: number - sum(numbers.values())]:
        numbers[name] += 1
    return numbers


def _choose_for_benchmark(
    benchmark: str, pool: list[Candidate], target: _Target, seed: int
) -> tuple[list[Candidate], dict[str, int]]:
    """Choose one benchmark's rows from a pool in random order; return them and the shortfalls."""
    short: dict[str, int] = {}
    eligible, suffix = pool, ""
    if target.questions is not None:
        lacking = target.questions - len({c.question for c in pool})
        if lacking > 0:
            short["questions"] = lacking
        questions, suffix = _draw_questions(pool, target, seed), f" of {target.questions:,} questions"
        eligible = [c for c in pool if c.question in questions]
    if (available := _capacity(eligible, target.per_question)) < target.rows:
        raise UserError(
            f"{benchmark}: {target.rows:,} rows are wanted{suffix}, but only {available:,} could be made with at most "
            f"{target.per_question} rows a question; ask for fewer rows, or give it more verified questions"
        )
    picked = _fill_quota(eligible, target)
    counts = Counter(c.row_class for c in picked)
    per_type = (target.rows - target.ideal - target.refined) // len(_TYPES)
    quota = {IDEAL: target.ideal, REFINED: target.refined, **dict.fromkeys(_TYPES, per_type)}
    return picked, short | {name: quota[name] - counts[name] for name in CLASSES if quota[name] > counts[name]}


def _draw_questions(pool: Sequence[Candidate], target: _Target, seed: int) -> set[str]:
    """Draw the questions of a benchmark: first those with rows of rare classes, then any."""
    assert target.questions is not None
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for candidate in pool:
        rows[candidate.question][candidate.row_class] += 1
    names = sorted(rows, key=lambda name: rank(seed, name))
    supply = Counter(c.row_class for c in pool)
    quota = _quota(target, supply)
    questions: set[str] = set()
    for row_class in sorted(quota, key=lambda c: (supply[c] / max(quota[c], 1), c)):
        covered = sum(rows[name][row_class] for name in questions)
        for name in names:
            if covered >= quota[row_class] or len(questions) >= target.questions:
                break
            if name not in questions and rows[name][row_class]:
                questions.add(name)
                covered += rows[name][row_class]
    questions |= {*islice((name for name in names if name not in questions), target.questions - len(questions))}
    capacity = {name: min(counts.total(), target.per_question) for name, counts in rows.items()}
    if sum(capacity[name] for name in questions) < target.rows:
        names.sort(key=lambda name: -capacity[name])
        return set(names[: target.questions])
    return questions


def _quota(target: _Target, supply: Counter[str]) -> dict[str, int]:
    """Return the number of rows by class, as near to the target as the supply allows; they sum to its rows."""
    quota = {IDEAL: min(target.ideal, supply[IDEAL]), REFINED: min(target.refined, supply[REFINED])}
    injected = target.rows - sum(quota.values())
    quota |= split_evenly(injected, {name: supply[name] for name in _TYPES})
    for name in (IDEAL, REFINED):
        missing = target.rows - sum(quota.values())
        quota[name] += min(missing, supply[name] - quota[name])
    return quota


def _fill_quota(pool: Sequence[Candidate], target: _Target) -> list[Candidate]:
    """Pick the target's rows, spread over positions; one of every question comes first if their number is fixed."""
    supply = Counter(c.row_class for c in pool)
    quota = _quota(target, supply)
    selection = _Selection(pool, target.per_question)
    if target.questions is not None:
        for by_class in selection.by_question.values():
            row_class = max(by_class, key=lambda name: (quota[name] - selection.counts[name].total(), name))
            used = selection.counts[row_class]
            fewest = min(used[c.spread_key] for c in by_class[row_class])
            selection.add(selection.closest(c for c in by_class[row_class] if used[c.spread_key] == fewest))
    for name in sorted(quota, key=lambda c: (supply[c] / max(quota[c], 1), c)):
        selection.take(name, min(quota[name] - selection.counts[name].total(), target.rows - len(selection.picked)))
    while missing := target.rows - len(selection.picked):
        capacity = selection.available()
        errors = {name: capacity.get(name, 0) for name in _TYPES}  # if there are any left to take
        for name, number in split_evenly(missing, errors if any(errors.values()) else capacity).items():
            selection.take(name, number)
    return list(selection.picked.values())


def _target_trait_shares(pool: Iterable[Candidate]) -> Mapping[int, float]:
    """Return the share of rows that are to have each trait, whatever their label.

    It is the mean over the labels of `EVIDENCE_LABELS`, which only passages tell apart, kept within `overlap.LIMITS`.
    """
    shares: dict[int, float] = defaultdict(float)
    numbers: dict[tuple[StepKind, str], Counter[int]] = defaultdict(Counter)
    rows: Counter[tuple[StepKind, str]] = Counter()
    for candidate in pool:
        if candidate.kind == "Logical" or candidate.error_type in EVIDENCE_LABELS:
            numbers[candidate.kind, candidate.error_type].update(candidate.traits)
            rows[candidate.kind, candidate.error_type] += 1
    labels = Counter(kind for kind, _ in rows)
    for group, counts in numbers.items():
        for trait, number in counts.items():
            shares[trait] += number / rows[group] / labels[group[0]]
    return keep_limits(shares)


class _Selection:
    """Picks rows from a pool, in its order, and keeps count."""

    def __init__(self, pool: Sequence[Candidate], per_question: int) -> None:
        self.picked: dict[str, Candidate] = {}
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        """Picked rows by class, then `Candidate.spread_key`."""
        self.by_question: dict[str, dict[str, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
        """The pool by question, then class."""
        self._by_class: dict[str, dict[str, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
        self._open: dict[str, int] = {}
        """Rows that each question may still give."""
        self._trait_shares = _target_trait_shares(pool)
        self._trait_counts: dict[tuple[str, StepKind], Counter[int]] = defaultdict(Counter)
        """Picked rows by class and kind of step, then trait; `_numbers` has their number."""
        self._numbers: Counter[tuple[str, StepKind]] = Counter()
        for candidate in pool:
            self.by_question[candidate.question][candidate.row_class].append(candidate)
            self._by_class[candidate.row_class][candidate.spread_key].append(candidate)
            self._open[candidate.question] = per_question

    def add(self, candidate: Candidate) -> None:
        self.picked[candidate.id] = candidate
        self.counts[candidate.row_class][candidate.spread_key] += 1
        self._open[candidate.question] -= 1
        group = candidate.row_class, candidate.kind
        self._trait_counts[group].update(candidate.traits)
        self._numbers[group] += 1

    def closest(self, candidates: Iterable[Candidate]) -> Candidate:
        """Return the candidate, of the first one's class and kind of step, whose traits its class lacks most."""
        options = [*islice(candidates, _OPTIONS)]
        group = options[0].row_class, options[0].kind
        counts, rows = self._trait_counts[group], self._numbers[group] + 1

        @cache
        def excess(trait: int) -> float:
            # By how much the row adds to the squared distance of the class from the shares, times ``rows``.
            return WEIGHTS.get(trait, 1) * ((2 * counts[trait] + 1) / rows - 2 * self._trait_shares.get(trait, 0))

        return min((c for c in options if c.kind == group[1]), key=lambda c: sum(map(excess, c.traits)))

    def available(self) -> dict[str, int]:
        """Return the number of candidates by class that could be picked next."""
        return {
            name: sum(self._is_free(c) for queue in queues.values() for c in queue)
            for name, queues in self._by_class.items()
        }

    def take(self, row_class: str, number: int) -> None:
        """Pick ``number`` rows of a class, or all available ones, evenly over `Candidate.spread_key`."""
        queues = {
            key: [c for c in reversed(queue) if self._is_free(c)]
            for key, queue in sorted(self._by_class[row_class].items())
        }
        counts = self.counts[row_class]
        while number > 0:
            for queue in queues.values():
                while queue and not self._is_free(queue[-1]):
                    queue.pop()
            unfilled = [key for key, queue in queues.items() if queue]
            if not unfilled:
                break
            queue = queues[min(unfilled, key=lambda p: (counts[p], p))]
            candidate = self.closest(c for c in reversed(queue) if self._is_free(c))
            queue.remove(candidate)
            self.add(candidate)
            number -= 1

    def _is_free(self, candidate: Candidate) -> bool:
        return candidate.id not in self.picked and self._open[candidate.question] > 0


def _check_questions(prefix: str, rows: int, questions: int | None, per_question: int) -> None:
    if questions is None:
        return
    if not 1 <= questions <= rows:
        raise UserError(f"{prefix}{questions} questions: each needs a row, and there are {rows}")
    if questions * per_question < rows:
        raise UserError(
            f"{prefix}{questions} questions with at most {per_question} rows each are too few for {rows} "
            "rows; ask for more questions, or raise --rows-per-question"
        )
